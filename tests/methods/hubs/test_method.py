"""Hub searches from a study to a list of hubs: what is found, paid and refused."""

import warnings
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from silograph import Federation, HubSearch, Ledger, NodeUniverse, Provenance, Silo
from silograph.dp.loss import worst_losses
from silograph.errors import ArgumentError, LedgerWarning, PrivacyWarning, ReleaseError, StudyError
from silograph.graph.samples import clustered_power_law, split
from silograph.local.drive import Traffic
from silograph.methods.catalogue import plan_study
from silograph.methods.hubs import machines
from silograph.methods.hubs.method import SettledHubs, degrees_in_chunks
from silograph.methods.hubs.noise import HubNoise
from silograph.methods.study import COMMITTEE, RELEASE, Index
from silograph.page.result import result_page
from tests.methods.test_study import FOUR, study

#: Three silos that share many edges, over names.
SILOS = split(clustered_power_law(90, edges_per_node=4, seed=3), 3, seed=3, rate=0.4)
HUBS: dict[str, Any] = {"method": "hubs", "query": RELEASE, "protocol": "masked"}


def search(silos: list[Silo] = SILOS, epsilon: float = 0.5, **more: Any) -> HubSearch:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LedgerWarning)
        return Federation.simulate(silos).find_hubs(epsilon, **more)


def found(degrees: list[int], ids: str = "abcdef") -> HubSearch:
    universe = NodeUniverse(list(ids[: len(degrees)]))
    made = Provenance("hubs", "masked", 3, 1)
    return HubSearch(HubNoise.choose(1.0, 3, 1), universe, made, np.array(degrees))


class TestFederation:
    def test_with_little_noise_the_sums_are_those_of_all_silos(self) -> None:
        """Scale 2·3/50: a noise of 0 has a chance of 1 − 2e^−8 or so."""
        result, truth = search(epsilon=50.0), sum(silo.degrees() for silo in SILOS)
        assert np.count_nonzero(result.degrees != truth) < 10
        largest = np.argsort(-truth, kind="stable")[:5]
        assert set(result.top(8)) >= {SILOS[0].universe.id(int(i)) for i in largest}
        assert result.provenance.method == "hubs"
        assert (result.provenance.protocol, result.provenance.collusion) == ("masked", 1)
        assert result.universe == SILOS[0].universe
        assert result.scale == 0.12

    def test_more_than_one_chunk(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(machines.HubParameters.__init__, "__defaults__", (64,))
        result, truth = search(epsilon=50.0), sum(silo.degrees() for silo in SILOS)
        assert np.count_nonzero(result.degrees != truth) < 10

    def test_noise_is_there(self) -> None:
        """Its mean square over all nodes, by the law of all three shares."""
        result, truth = search(), sum(silo.degrees() for silo in SILOS)
        away = (result.degrees - truth).astype(float)
        assert result.stderr == pytest.approx(np.sqrt(2 * 1.5) * 12, rel=0.01)
        assert 0.4 < np.sqrt(np.mean(away**2)) / result.stderr < 2.5

    def test_the_ledger_is_charged_before_anything_leaves(self, tmp_path: Path) -> None:
        with Ledger(tmp_path / "own.ledger") as ledger:
            result = Federation.simulate(SILOS, ledger).find_hubs(0.5)
            (spend,) = ledger.rows()
        assert spend.method == "hubs masked"
        assert result.losses == HubNoise.choose(0.5, 3, 1).losses
        assert spend.losses == worst_losses(result.losses)
        assert (spend.losses[0], spend.delta, result.epsilon) == (0.5, 0.0, 0.5)

    def test_without_collusion_a_caller_is_warned(self) -> None:
        with pytest.warns(PrivacyWarning, match="a silo that gets to see the release has a loss"):
            search(collusion=0)

    def test_what_travels(self) -> None:
        """Sizes follow from the number of nodes, whatever the silos hold."""
        nothing = [Silo.from_edges(SILOS[0].universe, []) for _ in SILOS]
        sizes = []
        for silos in (SILOS, nothing):
            traffic, made = Traffic(), Federation.simulate(silos)
            made._record = traffic
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", LedgerWarning)
                made.find_hubs(1.0)
            sizes.append([traffic.of(place) for place in range(3)])
        assert sizes[0] == sizes[1]
        assert {name for place in sizes[0] for name in place} == {
            "key", "keys", "confirm", "confirms", "chunk",
        }  # fmt: skip

    @pytest.mark.parametrize("given", [{"epsilon": 0}, {"epsilon": 51}, {"collusion": 3}])
    def test_nonsense(self, given: dict[str, Any]) -> None:
        with pytest.raises(ArgumentError):
            search(**given)

    def test_it_counts_nothing(self) -> None:
        with pytest.raises(ArgumentError, match="unknown method 'hubs'"):
            Federation.simulate(SILOS).count("edges", "hubs", epsilon=1.0)


class TestStudy:
    def test_settled(self) -> None:
        plan = plan_study(study(**HUBS))
        assert isinstance(plan, SettledHubs)
        assert (plan.what, plan.delta, plan.advice) == ("hubs masked", 0.0, "")
        assert plan.losses == HubNoise.choose(plan.study.epsilon, 3, 1).losses

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"query": "edges"}, "does not answer edges"),
            ({"query": "degrees"}, "does not answer degrees"),
            ({"protocol": ""}, "'masked' alone"),
            ({"protocol": "elgamal/blinded"}, "'masked' alone"),
            ({"protocol": COMMITTEE, "members": FOUR}, "'masked' alone"),
            ({"members": FOUR}, "no committee"),
            ({"delta": 1e-6}, "no use for delta"),
            ({"options": {"raw": True}}, "no use for option 'raw'"),
            ({"k": 2}, "k"),
            ({"index": Index("fold", groups=9, sub=1, form="plain")}, "pairs, not on fold"),
        ],
    )
    def test_refused(self, change: dict[str, Any], message: str) -> None:
        with pytest.raises(StudyError, match=message):
            plan_study(study(**HUBS | change))

    def test_degrees_in_chunks(self) -> None:
        take = degrees_in_chunks(SILOS[0], 64)
        both = np.frombuffer(take(b"", 0) + take(b"", 1), "<i8")
        assert both.tolist() == SILOS[0].degrees().tolist()
        assert (len(take(b"", 0)), len(take(b"", 1))) == (8 * 64, 8 * 26)


class TestTop:
    def test_the_largest_first_and_ties_by_position(self) -> None:
        result = found([3, 7, -2, 7, 9])
        assert result.top(0) == ()
        assert result.top(1) == ("e",)
        assert result.top(4) == ("e", "b", "d", "a")
        assert result.top(99) == ("e", "b", "d", "a", "c")

    def test_a_threshold(self) -> None:
        result = found([3, 7, -2, 7, 9])
        assert result.top(5, least=7) == ("e", "b", "d")
        assert result.top(2, least=Fraction(1, 2)) == ("e", "b")  # type: ignore[arg-type]
        assert result.top(5, least=100) == ()

    @pytest.mark.parametrize("count", [-1, 1.0, True, "3", None])
    def test_nonsense(self, count: Any) -> None:
        with pytest.raises(ArgumentError, match="count must be a whole number"):
            found([1, 2]).top(count)
        with pytest.raises(ArgumentError, match="least must be a number"):
            found([1, 2]).top(1, least="2")  # type: ignore[arg-type]

    def test_one_number_per_node(self) -> None:
        with pytest.raises(ArgumentError, match="each of 2 nodes"):
            HubSearch(HubNoise.choose(1.0, 3, 1), NodeUniverse(["a", "b"]),
                      Provenance("hubs", "masked", 3, 1), np.array([1, 2, 3]))  # fmt: skip


class TestFile:
    def test_a_table_with_the_largest_first(self, tmp_path: Path) -> None:
        path = tmp_path / "sums.csv"
        found([3, 7, -2], ids='a,"').save(path)
        assert path.read_text() == 'node,noisy_degree_sum\n",",7\na,3\n"""",-2\n'

    def test_a_folder_that_is_not_there(self, tmp_path: Path) -> None:
        with pytest.raises(ReleaseError, match="cannot write the sums"):
            found([1]).save(tmp_path / "no" / "sums.csv")

    def test_shown(self) -> None:
        text, page = str(found([1, 2])), found([1, 2])._repr_html_()
        assert "hub search on 2 nodes" in text
        assert "coordinator + 1 silo: ε = 0.666667" in text
        assert "standard error" in page

    def test_no_page_is_made_of_it(self) -> None:
        with pytest.raises(ArgumentError, match="a page is made of"):
            result_page(found([1, 2]))  # type: ignore[arg-type]
