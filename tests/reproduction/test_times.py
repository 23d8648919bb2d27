"""The time of whole studies: that they are studies, what a row says, and how it is scaled."""

import tomllib
from importlib import resources

import numpy as np
import pytest

import silograph as sg
from reproduction import times
from reproduction.printed import printed_local_triangles
from reproduction.times import (
    WAYS,
    Way,
    WholeStudy,
    cases,
    count_printed_feat,
    count_printed_featplus,
    draw_printed_release,
    elgamal_union,
    first_nodes,
    measure,
    mended,
    nodes_for,
    printed_baseline,
    scale_up,
)
from silograph.dp.channel import Channel
from silograph.errors import ArgumentError
from silograph.graph.bits import BitRows
from silograph.graph.samples import union
from silograph.graph.silo import Silo
from silograph.methods.featplus.answer import node_owners, owned_nodes
from silograph.methods.featplus.noise import Split

GRAPH = sg.clustered_power_law(60, edges_per_node=5, seed=3)
SILOS = sg.split(GRAPH, 4, seed=2)
TRUTH = {"triangles": GRAPH.triangles(), "2-stars": sum(d * (d - 1) // 2 for d in GRAPH.degrees())}
#: With so much of it there is no noise to speak of.
EPSILON = 1000.0
KEYS = {
    "experiment", "graph", "rho", "method", "form", "union", "query", "seconds",
    "measured_pairs", "pairs", "scaled", "repetitions", "spread", "work", "note",
}  # fmt: skip


def asked(query: str, epsilon: float = EPSILON) -> WholeStudy:
    return WholeStudy(SILOS, query, epsilon)


def row(way: Way, query: str = "triangles", elgamal_pairs: int = 300, repetitions: int = 1):
    return measure(
        SILOS,
        graph="generated",
        rho=0.3,
        query=query,
        **way._asdict(),
        epsilon=3.0,
        delta=1e-9,
        collusion=1,
        elgamal_pairs=elgamal_pairs,
        repetitions=repetitions,
    )


@pytest.mark.usefixtures("hardly_any_noise")
@pytest.mark.parametrize("query", TRUTH)
class TestStudies:
    @pytest.mark.parametrize("method", ["baseline", "feat", "feat+", "sealed"])
    def test_mended(self, query: str, method: str) -> None:
        assert mended(asked(query), method) == pytest.approx(TRUTH[query], rel=0.05)

    def test_printed_baseline(self, query: str) -> None:
        assert printed_baseline(asked(query)) == TRUTH[query]
        # With noise the union gathers that of all silos.
        assert printed_baseline(asked(query, 3.0)) > 5 * TRUTH[query]

    def test_printed_feat(self, query: str) -> None:
        question = asked(query)
        release = elgamal_union(question)
        assert release == BitRows.from_pairs(question.n, union(SILOS).pairs).to_triangle()
        assert count_printed_feat(question, release) == pytest.approx(TRUTH[query])

    def test_releases_are_drawn_from_the_channel_of_the_method(self, query: str) -> None:
        """As many ones as ε, or the paper's share of it, gives."""
        question, edges = asked(query, 4.0), len(union(SILOS))
        for method, epsilon in (("feat", 4.0), ("feat+", 0.45 * 4.0)):
            p = float(Channel.symmetric(epsilon).p01)
            drawn = BitRows.from_triangle(question.n, draw_printed_release(question, method, 1))
            due = edges * (1 - p) + (question.pairs - edges) * p
            assert abs(drawn.edges - due) < 7 * (question.pairs * p) ** 0.5


def test_printed_featplus_stars(hardly_any_noise: None) -> None:
    question = asked("2-stars")
    found = count_printed_featplus(question, draw_printed_release(question, "feat+", 1))
    assert found == pytest.approx(TRUTH["2-stars"], rel=0.01)


def test_printed_featplus_triangles_are_the_printed_ones(hardly_any_noise: None) -> None:
    """They are wrong, even without noise: Proposition 5."""
    question = asked("triangles")
    release = draw_printed_release(question, "feat+", 1)
    noisy = BitRows.from_triangle(question.n, release)
    p = Channel.symmetric(Split.of("paper", EPSILON).release_epsilon).p01
    owners = node_owners(np.array([silo.degrees() for silo in SILOS]))
    due = sum(
        printed_local_triangles(
            BitRows.from_pairs(question.n, silo.pairs), noisy, owned_nodes(owners, place), p
        )
        for place, silo in enumerate(SILOS)
    )
    found = count_printed_featplus(question, release)
    assert found == pytest.approx(float(due), abs=20)
    assert abs(found - TRUTH["triangles"]) > 100


class TestRows:
    @pytest.mark.parametrize("way", WAYS, ids="-".join)
    def test_complete(self, way: Way) -> None:
        found = row(way)
        assert set(found) == KEYS
        assert found["seconds"] > 0
        assert found["pairs"] == 60 * 59 // 2
        scaled = way.union == "elgamal/replace"
        assert found["scaled"] is scaled
        assert found["measured_pairs"] == (300 if scaled else found["pairs"])
        assert bool(found["note"]) == (scaled or way.method == "sealed")
        assert (found["repetitions"], found["spread"]) == (1, 0.0)

    def test_the_least_of_the_repetitions_counts(self, monkeypatch: pytest.MonkeyPatch) -> None:
        moments = iter([0.0, 3.0, 10.0, 11.0, 20.0, 25.0])
        work = iter([0.0, 2.5, 3.0, 5.0, 6.0, 7.5])
        monkeypatch.setattr(times.time, "perf_counter", lambda: next(moments))
        monkeypatch.setattr(times.time, "process_time", lambda: next(work))
        monkeypatch.setattr(times, "printed_baseline", lambda _: 0.0)
        found = row(WAYS[0], repetitions=3)
        assert (found["seconds"], found["spread"], found["repetitions"]) == (1.0, 2.0, 3)
        assert found["work"] == 1.5

    def test_nothing_is_scaled_where_all_pairs_were_measured(self) -> None:
        found = row(Way("feat", "meant", "elgamal/replace"), elgamal_pairs=2000)
        assert (found["scaled"], found["measured_pairs"], found["note"]) == (False, 1770, "")

    def test_an_unknown_way_is_refused(self) -> None:
        with pytest.raises(ArgumentError, match="no such way"):
            row(Way("feat", "printed", "masked"))
        with pytest.raises(ArgumentError, match="unknown query"):
            row(WAYS[0], query="squares")
        with pytest.raises(ArgumentError, match="repetitions"):
            row(WAYS[0], repetitions=0)


class TestScaling:
    def test_the_unions_part_alone_is_scaled(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A union takes 1 s and .01 s a pair, counting 5 s (feat) or 7 s (feat+)."""
        clock, unions = [0.0], []

        def union_of(part: WholeStudy) -> bytes:
            unions.append(part.pairs)
            clock[0] += 1 + 0.01 * part.pairs
            return b""

        def counting(seconds: float):
            def count(question: WholeStudy, _: bytes) -> float:
                assert question.n == 60
                clock[0] += seconds
                return 0.0

            return count

        monkeypatch.setattr(times, "elgamal_union", union_of)
        monkeypatch.setattr(times, "_COUNTS", {"feat": counting(5), "feat+": counting(7)})
        monkeypatch.setattr(times.time, "perf_counter", lambda: clock[0])
        monkeypatch.setattr(times.time, "process_time", lambda: 2 * clock[0])
        times._union_times.cache_clear()
        feat, plus = (row(Way(m, "meant", "elgamal/replace")) for m in ("feat", "feat+"))
        times._union_times.cache_clear()
        assert feat["seconds"] == pytest.approx(1 + 17.70 + 5, abs=0.1)
        assert plus["seconds"] - feat["seconds"] == pytest.approx(2)
        assert feat["work"] == pytest.approx(2 * feat["seconds"])
        assert unions.count(300) == 1, "measured once for both"

    def test_arithmetic(self) -> None:
        assert scale_up(10.0, 0.0, 131_328, 8_154_741) == pytest.approx(620.9446, abs=1e-4)
        assert scale_up(3.0, 1.0, 10, 10) == 3.0
        assert scale_up(1.0, 2.0, 10, 100) == 1.0, "a fixed part is never more than all"

    @pytest.mark.parametrize("pairs", [1, 2, 3, 4, 10, 11, 131_072, 131_328, 131_329, 10**12])
    def test_nodes_for(self, pairs: int) -> None:
        n = nodes_for(pairs)
        assert (n - 1) * (n - 2) // 2 < pairs <= n * (n - 1) // 2
        with pytest.raises(ArgumentError):
            nodes_for(0)

    def test_first_nodes(self) -> None:
        for whole, part in zip(SILOS, first_nodes(SILOS, 20), strict=True):
            assert len(part.universe) == 20
            kept = [pair for pair in whole.pairs.tolist() if max(pair) < 20]
            assert part.pairs.tolist() == kept
            assert isinstance(part, Silo)


class TestParameters:
    @pytest.fixture
    def parameters(self) -> dict[str, object]:
        file = resources.files("reproduction") / "parameters" / "time.toml"
        return tomllib.loads(file.read_text(encoding="utf-8"))

    def test_every_way_has_its_rows(self, parameters: dict[str, object]) -> None:
        found = cases(parameters)
        keys = {
            (c["graph"], c["rho"], c["query"], Way(c["method"], c["form"], c["union"]))
            for c in found
        }
        assert len(keys) == len(found) == 2 * 2 * 5 * 6
        assert {c["repetitions"] for c in found if c["union"] == "elgamal/replace"} == {1}
        assert {c["elgamal_pairs"] for c in found} == {2**17}

    def test_quick(self, parameters: dict[str, object]) -> None:
        quick = {**parameters, **parameters["quick"]}  # type: ignore[dict-item]
        found = cases(quick)
        assert {Way(c["method"], c["form"], c["union"]) for c in found} == set(WAYS)
        assert {c["rho"] for c in found if c["method"] == "sealed"} == {0.3}
        assert row(WAYS[2], elgamal_pairs=found[0]["elgamal_pairs"])["seconds"] > 0

    def test_sealed_values_are_values(self, parameters: dict[str, object]) -> None:
        with pytest.raises(ArgumentError, match="sealed_values"):
            cases({**parameters, "sealed_values": [0.35]})
