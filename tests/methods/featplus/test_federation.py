"""feat+ through the whole stack: real messages, one spend, honest intervals."""

import hashlib
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import silograph as sg
from silograph.errors import ArgumentError, BudgetError, PrivacyWarning
from silograph.graph.bits import BitRows, PairBits
from silograph.ledger.book import NoLedger
from silograph.methods.featplus.method import settle_featplus
from silograph.methods.featplus.noisy_vectors import VectorSilo
from tests import limits
from tests.support.parties import SeededEntropy

GRAPH = sg.clustered_power_law(60, edges_per_node=4, seed=2)
SILOS = sg.split(GRAPH, 4, seed=1)
TRUTH = {
    ("edges", None): len(GRAPH),
    ("triangles", None): GRAPH.triangles(),
    ("kstars", 2): sum(math.comb(d, 2) for d in GRAPH.degrees().tolist()),
    ("four_cycles", None): BitRows.from_pairs(60, GRAPH.pairs).four_cycles,
}
FORMS = [(q, k, "gradient") for q, k in TRUTH] + [
    ("triangles", None, "paper"),
    ("kstars", 2, "paper"),
]


@pytest.fixture
def ledger(tmp_path: Path) -> sg.Ledger:
    return sg.Ledger(tmp_path / "ledger")


@pytest.fixture
def fed(ledger: sg.Ledger) -> sg.Federation:
    return sg.Federation.simulate(SILOS, ledger)


class TestCount:
    @pytest.mark.parametrize("protocol", ["masked", "clear"])
    @pytest.mark.parametrize(("query", "k", "local"), FORMS)
    def test_every_form_answers(
        self, fed: sg.Federation, query: str, k: int | None, local: str, protocol: str
    ) -> None:
        answer = fed.count(
            query, "feat+", epsilon=4.0, k=k, local=local, protocol=protocol, split="paper"
        )
        assert answer.query == query
        assert answer.method == "feat+"
        assert answer.epsilon <= 4.0
        assert math.isfinite(answer.value)
        assert 0 < answer.stderr < math.inf
        assert "ε3 = 1.8 local answers" in answer.note

    def test_elgamal(self, ledger: sg.Ledger) -> None:
        graph = sg.clustered_power_law(12, edges_per_node=3, seed=2)
        fed = sg.Federation.simulate(sg.split(graph, 3), ledger)
        assert (
            fed.count("edges", "feat+", epsilon=4.0, protocol="elgamal", split="paper").epsilon
            <= 4.0
        )

    def test_two_silos_are_told(self, ledger: sg.Ledger) -> None:
        fed = sg.Federation.simulate(sg.split(GRAPH, 2, rate=0.6), ledger)
        with pytest.warns(PrivacyWarning, match="as in the local model"):
            fed.count("edges", "feat+", epsilon=2.0, split="paper")

    def test_all_to_the_release(self, fed: sg.Federation, ledger: sg.Ledger) -> None:
        answer = fed.count("triangles", "feat+", epsilon=2.0, split=(1, 0, 0))
        assert "as in feat" in answer.note
        assert len(ledger.rows()) == 1

    def test_what_is_refused_costs_nothing(self, fed: sg.Federation, ledger: sg.Ledger) -> None:
        for change, why in (
            ({"collusion": 0}, "shows the release"),
            ({"local": "guess"}, "unknown local"),
            ({"bound": -1.0}, "positive"),
            ({"raw": True}, "feat\\+ has no use for raw"),
        ):
            with pytest.raises(ArgumentError, match=why):
                fed.count("triangles", "feat+", epsilon=1.0, **change)  # type: ignore[arg-type]
        with pytest.raises(ArgumentError, match="feat has no use for bound"):
            fed.count("triangles", "feat", epsilon=1.0, bound=2.0)
        assert ledger.rows() == []


class TestLedger:
    def test_one_spend_of_everything(self, fed: sg.Federation, ledger: sg.Ledger) -> None:
        fed.count("triangles", "feat+", epsilon=3.0, protocol="masked", split="paper")
        (row,) = ledger.rows()
        plan = settle_featplus("triangles", None, "gradient", "paper", 3.0, 4, 1, "masked", 60)
        assert dict(row.losses) == plan.losses
        assert row.method == "feat+ masked"

    def test_over_the_limit_nothing_leaves(
        self, fed: sg.Federation, ledger: sg.Ledger, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def nothing(*_: object) -> bytes:
            raise AssertionError("bits were read")

        monkeypatch.setattr(PairBits, "chunk", nothing)
        monkeypatch.setattr(VectorSilo, "numbers", nothing)
        ledger.set_limit("simulation", epsilon=2.0, collusion=1)
        for protocol in ("masked", "clear"):
            with pytest.raises(BudgetError):
                fed.count("triangles", "feat+", epsilon=3.0, protocol=protocol, split="paper")
        assert ledger.rows() == []


def recorded(seed: int, local: str = "gradient") -> tuple[list[int], list[tuple[int, int, bytes]]]:
    """All messages of one run, and where the spend was among them."""
    messages: list[tuple[int, int, bytes]] = []
    spent: list[int] = []

    class Watched(NoLedger):
        def spend(self, *_: Any, **__: Any) -> Any:
            spent.append(len(messages))

    fed = sg.Federation(
        SILOS, None, "x", SeededEntropy(seed), record=lambda *message: messages.append(message)
    )
    fed._ledger = Watched()
    fed.count("triangles", "feat+", epsilon=3.0, protocol="masked", local=local, split="paper")
    return spent, messages


def digest(messages: list[tuple[int, int, bytes]]) -> str:
    seen = hashlib.sha256()
    for sender, receiver, raw in messages:
        seen.update(b"%d %d %d " % (sender, receiver, len(raw)) + raw)
    return seen.hexdigest()


class TestTranscript:
    def test_golden(self) -> None:
        spent, messages = recorded(1)
        assert spent == [16]  # four keys and confirmations, and what is relayed of them
        assert (
            digest(messages) == "9cf4ed542e7a0b2acdde7f8362434b01586a19cd403dfd6df4e986fff8d17ae6"
        )

    def test_sizes_do_not_depend_on_edges(self) -> None:
        """Message for message of the same length, whatever the silos hold and the noise is."""
        sizes = [[len(raw) for _, _, raw in recorded(seed)[1]] for seed in (1, 2)]
        assert sizes[0] == sizes[1]
        assert digest(recorded(1)[1]) != digest(recorded(2)[1])


@pytest.mark.whole
@pytest.mark.parametrize(("query", "k", "local"), FORMS)
def test_intervals_cover(query: str, k: int | None, local: str, fed: sg.Federation) -> None:
    """No bias that many runs can see, and 95 % intervals that hold at least 95 % of the time (the
    limits raise a false alarm once in a billion runs)."""
    runs, truth = 150, TRUTH[query, k]
    answers = [
        fed.count(query, "feat+", epsilon=4.0, k=k, local=local, protocol="clear", split="paper")
        for _ in range(runs)
    ]
    errors = np.array([a.value - truth for a in answers])
    covered = sum(a.interval[0] <= truth <= a.interval[1] for a in answers)
    low, _ = limits.binomial(runs, 0.95)
    assert covered >= low
    assert abs(errors.mean()) < 6.2 * errors.std() / math.sqrt(runs)


def test_an_empty_silo_takes_part() -> None:
    nothing = sg.Silo.from_edges(GRAPH.universe, np.empty((0, 2), dtype=np.int64))
    silos = [replace_name(SILOS[0], "a"), nothing]
    fed = sg.Federation(silos, None, "x", SeededEntropy(3))
    with pytest.warns(sg.errors.SilographWarning):
        assert math.isfinite(fed.count("triangles", "feat+", epsilon=3.0, split="paper").value)


def replace_name(silo: sg.Silo, name: str) -> sg.Silo:
    return sg.Silo.from_edges(silo.universe, silo.pairs, name=name)
