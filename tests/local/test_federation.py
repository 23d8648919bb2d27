"""The federation: real protocol runs, ledgers, and arguments that are refused before any cost."""

import math
import warnings
from pathlib import Path

import numpy as np
import pytest

import silograph as sg
from silograph import _core
from silograph.cli.demo import QUERIES
from silograph.errors import (
    ArgumentError,
    BudgetError,
    LedgerError,
    LedgerWarning,
    PrivacyWarning,
    UniverseError,
)
from silograph.estimators.pair_sums import GraphSums
from silograph.graph.bits import BitRows, PairBits
from silograph.graph.samples import union
from silograph.messages.entropy import OsEntropy
from silograph.methods.committee.noise import CommitteeNoise
from silograph.methods.masked.noise import MaskedNoise
from tests import limits

GRAPH = sg.clustered_power_law(80, edges_per_node=5, seed=1)
SILOS = sg.split(GRAPH, 4, seed=1)


@pytest.fixture
def ledger(tmp_path: Path) -> sg.Ledger:
    return sg.Ledger(tmp_path / "ledger")


@pytest.fixture
def fed(ledger: sg.Ledger) -> sg.Federation:
    return sg.Federation.simulate(SILOS, ledger)


class TestCollect:
    def test_a_release_says_who_learns_what(self, fed: sg.Federation) -> None:
        release = fed.collect(epsilon=2.0, protocol="masked")
        noise = MaskedNoise.choose(2.0, 4, 1)
        assert release.channel == noise.channel
        assert [view.name for view in release.views] == [
            "coordinator",
            "coordinator + 1 silo",
            "1 silo + release",
        ]
        assert release.epsilon <= 2.0
        assert release.provenance.protocol == "masked"
        assert release.universe_digest == GRAPH.universe.digest
        assert release.universe is GRAPH.universe

    def test_four_silos_are_a_committee(self, fed: sg.Federation) -> None:
        release = fed.collect(epsilon=2.0)
        assert release.provenance.protocol == "committee"
        assert release.channel == CommitteeNoise.choose(2.0, 4, 1).channel
        assert [(view.name, view.claimed) for view in release.views] == [
            ("coordinator", True),
            ("coordinator + 1 member", True),
            ("1 member + release", True),
            ("2 members", False),
        ]
        assert release.epsilon <= 2.0
        assert fed.collect(epsilon=2.0, collusion=2).provenance.protocol == "masked"

    @pytest.mark.parametrize("silos", [2, 3])
    def test_helpers_complete_a_committee(self, silos: int, tmp_path: Path) -> None:
        fed = sg.Federation.simulate(sg.split(GRAPH, silos), sg.Ledger(tmp_path / "l"))
        with pytest.warns(PrivacyWarning, match="simulated helpers? complete"):
            release = fed.collect(epsilon=40.0, protocol="committee")
        assert round(release.edges().value) == len(union(fed.silos).pairs)

    def test_two_members_may_not_pool(self, fed: sg.Federation) -> None:
        with pytest.raises(ArgumentError, match="collusion is at most 1"):
            fed.collect(epsilon=2.0, protocol="committee", collusion=2)

    def test_without_collusion_both_numbers_are_shown(self, fed: sg.Federation) -> None:
        with pytest.warns(PrivacyWarning, match=r"has a loss of 2\.\d+;"):
            release = fed.collect(epsilon=2.0, protocol="masked", collusion=0)
        assert release.epsilon <= 2.0 < release.views[-1].epsilon
        assert "1 silo + release" in str(release)
        assert "(not claimed)" in str(release)

    def test_two_silos_mean_local_noise(self, tmp_path: Path) -> None:
        fed = sg.Federation.simulate(sg.split(GRAPH, 2, rate=0.6), sg.Ledger(tmp_path / "l"))
        with pytest.warns(PrivacyWarning, match="as in the local model"):
            fed.collect(epsilon=2.0)

    @pytest.mark.slow
    @pytest.mark.parametrize("protocol", ["masked", "clear"])
    def test_every_pair_follows_the_channel(self, fed: sg.Federation, protocol: str) -> None:
        """The real protocol with the operating system's entropy: exact limits over all pairs."""
        runs, n = 40, len(GRAPH.universe)
        edges, others = 0, 0
        for _ in range(runs):
            bits = fed.collect(epsilon=1.0, protocol=protocol).graph.bits(slice(0, n))
            held = int(bits[GRAPH.pairs[:, 0], GRAPH.pairs[:, 1]].sum())
            edges += held
            others += int(bits.sum()) // 2 - held
        channel = MaskedNoise.choose(1.0, 4, 1).channel
        pairs = n * (n - 1) // 2
        for count, size, p in (
            (edges, len(GRAPH), channel.p11),
            (others, pairs - len(GRAPH), channel.p01),
        ):
            low, high = limits.binomial(runs * size, float(p))
            assert low <= count <= high

    def test_runs_differ(self, fed: sg.Federation) -> None:
        assert fed.collect(1.0).graph != fed.collect(1.0).graph

    def test_a_chosen_channel_is_for_clear_alone(self, fed: sg.Federation) -> None:
        channel = sg.Channel.symmetric(1.0)
        assert fed.collect(1.0, "clear", channel=channel).channel == channel
        with pytest.raises(ArgumentError, match="'clear' only"):
            fed.collect(1.0, channel=channel)


class TestCount:
    @pytest.mark.parametrize("query", ["edges", "triangles", "four_cycles", "clustering"])
    def test_queries(self, fed: sg.Federation, query: str) -> None:
        answer = fed.count(query, epsilon=4.0)
        assert answer.query == query
        assert math.isfinite(answer.value)
        assert answer.epsilon <= 4.0

    def test_arrays_and_stars(self, fed: sg.Federation) -> None:
        assert fed.count("degrees", epsilon=3.0).value.shape == (80,)
        assert fed.count("kstars", k=3, epsilon=3.0).parameters == {"k": 3}

    @pytest.mark.parametrize("query", ["edges", "triangles", "four_cycles", "clustering"])
    def test_baseline(self, fed: sg.Federation, ledger: sg.Ledger, query: str) -> None:
        answer = fed.count(query, "baseline", epsilon=8.0, collusion=0)
        assert answer.method == "baseline"
        assert answer.epsilon <= 8.0
        assert math.isfinite(answer.stderr)
        raw = fed.count(query, "baseline", epsilon=8.0, collusion=0, raw=True)
        assert "biased" in raw.note
        assert len(ledger.rows()) == 2

    def test_baseline_reports_follow_their_channel(self, fed: sg.Federation) -> None:
        runs, ones, pairs = 20, 0, 80 * 79 // 2
        for _ in range(runs):
            reports = fed.reports(epsilon=2.0)
            ones += int(reports.counts.totals @ np.arange(5))
        held = sum(len(silo) for silo in SILOS)
        p11, p01 = (float(p) for p in (reports.noise.channel.p11, reports.noise.channel.p01))
        mean = runs * (held * p11 + (4 * pairs - held) * p01)
        spread = math.sqrt(runs * 4 * pairs * p11 * p01)
        assert abs(ones - mean) < 6.2 * spread  # a false alarm once in a billion

    @pytest.mark.slow
    @pytest.mark.parametrize("protocol", ["elgamal", "elgamal/replace", "elgamal/printed"])
    def test_elgamal(self, fed: sg.Federation, protocol: str) -> None:
        with pytest.warns(PrivacyWarning):
            release = fed.collect(epsilon=3.0, protocol=protocol, collusion=0)
        variant = "printed" if protocol.endswith("printed") else "replace"
        assert release.provenance.protocol == f"elgamal/{variant}"
        assert release.epsilon == pytest.approx(12.0 if variant == "printed" else 3.0)

    @pytest.mark.slow
    def test_elgamal_with_colluders_is_blinded(self, fed: sg.Federation) -> None:
        assert fed.collect(3.0, "elgamal").provenance.protocol == "elgamal/blinded"

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ({"epsilon": 0}, "positive, finite"),
            ({"epsilon": -1}, "positive, finite"),
            ({"epsilon": math.nan}, "positive, finite"),
            ({"epsilon": math.inf}, "positive, finite"),
            ({"collusion": 4}, "from 0 to 3"),
            ({"collusion": -1}, "from 0 to 3"),
            ({"query": "squares"}, "unknown query 'squares'"),
            ({"method": "magic"}, "unknown method 'magic'"),
            ({"protocol": "pigeon"}, "unknown protocol 'pigeon'"),
            ({"query": "kstars"}, "kstars needs k"),
            ({"query": "kstars", "k": 0}, "at least 1"),
            ({"query": "kstars", "k": 80}, "more than 80 nodes"),
            ({"k": 2}, "nothing else takes it"),
            ({"raw": True}, "feat has no use for raw"),
            ({"epsilon": "3"}, "epsilon must be a number"),
            ({"epsilon": True}, "epsilon must be a number"),
            ({"epsilon": 1e8}, "protects nobody"),
            ({"epsilon": 1e-9}, "all noise"),
            ({"collusion": True}, "collusion must be an integer"),
            ({"method": "sealed", "epsilon": 1e8}, "protects nobody"),
            ({"method": "sealed", "delta": "1e-9"}, "delta must be a number"),
            ({"method": "sealed", "protocol": "masked"}, "sealed has no use for protocol"),
            ({"method": "sealed", "like": "facebook"}, "like must be a Reference or"),
            ({"method": "feat+", "bound": "2"}, "bound must be a number"),
            ({"method": "feat+", "split": 3}, "three numbers"),
            ({"method": "baseline", "protocol": "masked"}, "baseline has no use for protocol"),
            ({"method": "baseline", "raw": 1}, "raw must be a bool"),
            ({"method": "auto", "protocol": "telepathy"}, "auto has no use for protocol"),
            ({"method": "auto", "bound": 2.0}, "auto has no use for bound"),
            ({"method": "auto", "trust": "helpers"}, "trust must be a list"),
            ({"method": "auto", "trust": 5}, "trust must be a list"),
            ({"method": "auto", "owned": 17.0}, "owned must be from 0 to 1"),
            ({"method": "feat+", "split": "paper", "owned": 0.5}, "no use for owned"),
            ({"method": "feat+", "split": (1e308, 1e308, 1e308)}, "three numbers"),
            ({"method": "feat+", "bound": math.inf}, "option bound"),
            ({"protocol": ""}, "unknown protocol ''"),
            ({"method": "baseline", "query": "degree_histogram"}, "does not answer"),
            ({"protocol": "elgamal/replace"}, "needs collusion=0"),
        ],
    )
    def test_wrong_arguments_cost_nothing(
        self, fed: sg.Federation, ledger: sg.Ledger, arguments: dict[str, object], message: str
    ) -> None:
        given = {"query": "triangles", "method": "feat", "epsilon": 1.0} | arguments
        with pytest.raises(ArgumentError, match=message):
            fed.count(**given)  # type: ignore[arg-type]
        assert ledger.rows() == []


class TestLedgers:
    def test_a_path_is_no_ledger(self, tmp_path: Path) -> None:
        with pytest.raises(ArgumentError, match="ledger must be a Ledger"):
            sg.Federation.simulate(SILOS, tmp_path / "ledger")  # type: ignore[arg-type]
        with pytest.raises(ArgumentError, match="a lineage"):
            sg.Federation.simulate(SILOS, lineage=3)  # type: ignore[arg-type]
        assert list(tmp_path.iterdir()) == []

    def test_a_lineage_that_a_limited_ledger_does_not_know(self, ledger: sg.Ledger) -> None:
        ledger.set_limit("pay", 1.0)
        for lineage in ("simulation", "typo"):
            with pytest.raises(LedgerError, match="new_lineage=True"):
                sg.Federation.simulate(SILOS, ledger, lineage=lineage).collect(epsilon=1.0)
        assert ledger.rows() == []
        sg.Federation.simulate(SILOS, ledger, lineage="new", new_lineage=True).collect(epsilon=1.0)
        assert [row.lineage for row in ledger.rows()] == ["new"]

    def test_the_coordinator_s_loss_counts_where_it_is_the_largest(self, ledger: sg.Ledger) -> None:
        """Of two silos: one baseline at ε = 1 costs the coordinator's 1, not a half."""
        ledger.set_limit("simulation", 1.0, collusion=1)
        fed = sg.Federation.simulate(sg.split(GRAPH, 2, rate=0.6, seed=1), ledger)
        fed.count("edges", "baseline", epsilon=1.0)
        with pytest.raises(BudgetError):
            fed.count("edges", "baseline", epsilon=1.0)


class TestSilos:
    def test_different_universes(self) -> None:
        other = sg.clustered_power_law(81, edges_per_node=5, seed=1)
        with pytest.raises(UniverseError, match="silos 1 and 2 are over different universes"):
            sg.Federation.simulate([GRAPH, other])

    @pytest.mark.parametrize("silos", [[], [GRAPH], [GRAPH] * 65])
    def test_too_few_and_too_many(self, silos: list[sg.Silo]) -> None:
        with pytest.raises(ArgumentError, match="2 to 64 silos"):
            sg.Federation.simulate(silos)

    def test_names_and_kinds(self) -> None:
        named = sg.Silo.from_pairs(GRAPH.universe, GRAPH.pairs, name="bank")
        with pytest.raises(ArgumentError, match="same name"):
            sg.Federation.simulate([named, named])
        with pytest.raises(ArgumentError, match="a list of Silo"):
            sg.Federation.simulate(["bank", "hospital"])  # type: ignore[list-item]
        alone = sg.Silo.from_edges(sg.NodeUniverse.range(1), np.empty((0, 2), dtype=np.int64))
        with pytest.raises(UniverseError, match="no pairs"):
            sg.Federation.simulate([alone, alone])


class TestLedger:
    def test_the_whole_loss_is_recorded_for_every_level(
        self, fed: sg.Federation, ledger: sg.Ledger
    ) -> None:
        fed.collect(epsilon=2.0, protocol="masked")
        (row,) = ledger.rows()
        noise = MaskedNoise.choose(2.0, 4, 1)
        assert row.losses == {t: noise.epsilon(4 - t) for t in range(4)}
        assert ledger.spent("simulation", collusion=1).epsilon <= 2.0

    def test_two_members_of_a_committee_are_beyond_every_bound(
        self, fed: sg.Federation, ledger: sg.Ledger
    ) -> None:
        fed.collect(epsilon=2.0)
        (row,) = ledger.rows()
        loss = CommitteeNoise.choose(2.0, 4, 1).epsilon(1)
        assert row.method == "feat committee"
        assert row.losses == {0: loss, 1: loss, 2: math.inf, 3: math.inf}
        assert ledger.spent("simulation", collusion=1).epsilon == loss <= 2.0

    def test_a_run_beyond_the_limit_is_refused_before_a_chunk_is_made(
        self, fed: sg.Federation, ledger: sg.Ledger, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        ledger.set_limit("simulation", 3.0)
        fed.collect(epsilon=2.0)
        monkeypatch.setattr(PairBits, "chunk", lambda *_: pytest.fail("bits were read"))
        with pytest.raises(BudgetError, match="left"):
            fed.collect(epsilon=2.0)
        assert len(ledger.rows()) == 1

    @pytest.mark.parametrize("protocol", ["committee", "masked", "elgamal/blinded", "clear"])
    def test_spent_before_released(
        self,
        fed: sg.Federation,
        ledger: sg.Ledger,
        monkeypatch: pytest.MonkeyPatch,
        protocol: str,
    ) -> None:
        """A crash in the first chunk finds the whole cost already in the ledger."""

        def crash(*_: object) -> bytes:
            assert len(ledger.rows()) == 1
            raise KeyboardInterrupt

        monkeypatch.setattr(PairBits, "chunk", crash)
        monkeypatch.setattr(_core, "draw_rows", crash)
        with pytest.raises(KeyboardInterrupt):
            fed.collect(epsilon=2.0, protocol=protocol)
        assert len(ledger.rows()) == 1

    def test_without_a_ledger_it_is_said_once(self) -> None:
        fed = sg.Federation.simulate(SILOS)
        with pytest.warns(LedgerWarning, match="recorded nowhere"):
            fed.collect(epsilon=2.0)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            fed.collect(epsilon=2.0)


def test_entropy_is_the_operating_systems() -> None:
    drawn = {OsEntropy().bytes(32) for _ in range(100)}
    assert len(drawn) == 100
    assert all(len(secret) == 32 for secret in drawn)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::silograph.errors.PrivacyWarning")
@pytest.mark.parametrize(
    ("protocol", "epsilon", "runs"),
    [
        ("masked", 3.0, 5),
        *(
            pytest.param(*each, marks=pytest.mark.whole)
            for each in (("masked", 3.0, 40), ("committee", 1.0, 100))
        ),
    ],
)
def test_feat_on_facebook_through_the_real_protocol(
    protocol: str, epsilon: float, runs: int, data_folder: Path, tmp_path: Path
) -> None:
    """Many runs at t = 0: the error is what the channel's variance formula says."""
    graph = sg.dataset("facebook", folder=data_folder)
    fed = sg.Federation.simulate(sg.split(graph, 4), sg.Ledger(tmp_path / "ledger"))
    target = QUERIES["triangles"]
    truth = GraphSums(BitRows.from_pairs(len(graph.universe), graph.pairs))
    kinds = {"masked": MaskedNoise, "committee": CommitteeNoise}
    variance = target.variance(truth, kinds[protocol].choose(epsilon, 4, 0).channel)
    errors = []
    for _ in range(runs):
        release = fed.collect(epsilon, protocol, collusion=0)
        errors.append(triangles_of(release) - truth.graph.triangles)
    low, high = limits.chi_square(runs)
    assert low <= float(np.sum(np.square(errors))) / variance <= high


def triangles_of(release: sg.Release) -> float:
    """The value without its standard error, which costs ten times as much."""
    from silograph.estimators.triangles import triangles_value

    return float(triangles_value(release.sums, release.channel))
