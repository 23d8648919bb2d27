"""Releases: draws that follow the channel, files that survive or say why not, exports that warn."""

import hashlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from silograph import Channel, NodeUniverse, Release, Silo, View, clustered_power_law
from silograph.errors import ArgumentError, CalibrationWarning, ReleaseError, UniverseError

from .. import limits

SILO = clustered_power_law(60, edges_per_node=3, seed=5)
CHANNEL = Channel("20/21", "1/16")


@pytest.fixture
def release() -> Release:
    return Release.draw(SILO, CHANNEL, seed=7)


class TestDraw:
    def test_golden(self, release: Release) -> None:
        """A fixed seed gives fixed bits, on every machine."""
        digest = hashlib.sha256(release.graph.to_triangle()).hexdigest()
        assert digest == "50211b41d3df83ba84c26da8d42575e1a1b2670576d79218c12e9cd6d4ab05db"

    def test_seeds_differ(self, release: Release) -> None:
        assert Release.draw(SILO, CHANNEL, seed=8).graph != release.graph
        assert Release.draw(SILO, CHANNEL, seed=7).graph == release.graph

    @pytest.mark.parametrize("channel", [CHANNEL, Channel("2/3", "1/4")], ids=str)
    def test_every_pair_follows_the_channel(self, channel: Channel) -> None:
        """Each of 1,770 pairs, edges and others, over 3,000 draws: exact binomial limits."""
        draws, n = 3000, len(SILO.universe)
        ones = np.zeros((n, n), dtype=np.int64)
        for seed in range(draws):
            ones += Release.draw(SILO, channel, seed).graph.bits(slice(0, n))
        assert (ones == ones.T).all()
        assert (np.diag(ones) == 0).all()
        upper = np.triu_indices(n, 1)
        truth = np.zeros((n, n), dtype=bool)
        truth[SILO.pairs[:, 0], SILO.pairs[:, 1]] = True
        for edge, p in ((True, channel.p11), (False, channel.p01)):
            counts = ones[upper][truth[upper] == edge]
            low, high = limits.binomial(draws, float(p))
            assert low <= counts.min()
            assert counts.max() <= high
            low, high = limits.binomial(draws * counts.size, float(p))
            assert low <= counts.sum() <= high

    @pytest.mark.parametrize("seed", [-1, 1.5, True, "1", None])
    def test_bad_seeds(self, seed: object) -> None:
        with pytest.raises(ArgumentError, match="seed"):
            Release.draw(SILO, CHANNEL, seed)  # type: ignore[arg-type]

    @pytest.mark.parametrize("n", [1, 2, 3])
    def test_tiny_universes(self, n: int) -> None:
        silo = Silo.from_edges(NodeUniverse.range(n), np.empty((0, 2), dtype=np.int64))
        release = Release.draw(silo, Channel.symmetric(1.0), seed=1)
        for estimate in (release.edges(), release.triangles(), release.four_cycles()):
            assert np.isfinite([estimate.value, estimate.stderr]).all()
        assert release.degrees().value.shape == (n,)
        assert release.degree_histogram().value.sum() == pytest.approx(n)


class TestFile:
    def test_round_trip(self, release: Release, tmp_path: Path) -> None:
        path = tmp_path / "graph.release"
        release.save(path)
        again = Release.load(path, SILO.universe)
        assert again.graph == release.graph
        assert again.channel == release.channel
        assert again.views == release.views == (View("published", CHANNEL.epsilon),)
        assert again.provenance == release.provenance
        assert again.triangles().value == release.triangles().value
        assert [p.name for p in tmp_path.iterdir()] == ["graph.release"]

    def test_every_truncation_and_every_flipped_bit_is_found(
        self, release: Release, tmp_path: Path
    ) -> None:
        path = tmp_path / "graph.release"
        release.save(path)
        content = path.read_bytes()
        for length in range(len(content)):
            path.write_bytes(content[:length])
            with pytest.raises(ReleaseError, match=r"not a Silograph|truncated|damaged"):
                Release.load(path)
        for position in range(len(content)):
            damaged = bytearray(content)
            damaged[position] ^= 1 << position % 8
            path.write_bytes(damaged)
            with pytest.raises(ReleaseError, match=r"graph\.release: "):
                Release.load(path)
        path.write_bytes(content + b"\0")
        with pytest.raises(ReleaseError, match="damaged"):
            Release.load(path)

    def test_other_versions_are_named(self, release: Release, tmp_path: Path) -> None:
        path = tmp_path / "graph.release"
        release.save(path)
        content = bytearray(path.read_bytes())
        content[16] = 9
        path.write_bytes(content)
        with pytest.raises(
            ReleaseError, match="format 9; this version of Silograph reads format 1"
        ):
            Release.load(path)

    @settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=200)
    @given(body=st.binary(max_size=300))
    def test_foreign_bytes(self, tmp_path: Path, body: bytes) -> None:
        path = tmp_path / "foreign"
        for content in (body, b"silograph.releas" + body, b"silograph.releas\1\0\0\0" + body):
            path.write_bytes(content)
            with pytest.raises(ReleaseError):
                Release.load(path)

    def test_a_header_cannot_ask_for_memory(self, release: Release, tmp_path: Path) -> None:
        """A valid checksum over a header that claims an absurd size is still refused."""
        path = tmp_path / "graph.release"
        release.save(path)
        content = path.read_bytes()[:-32].replace(b'"n":60', b'"n":9999999999')
        content = (
            content[:20]
            + (int.from_bytes(content[20:24], "little") + 8).to_bytes(4, "little")
            + content[24:]
        )
        path.write_bytes(content + hashlib.sha256(content).digest())
        with pytest.raises(ReleaseError, match="length is wrong"):
            Release.load(path)

    def test_missing_and_unwritable(self, release: Release, tmp_path: Path) -> None:
        with pytest.raises(ReleaseError, match="No such file"):
            Release.load(tmp_path / "absent")
        with pytest.raises(ReleaseError, match="Is a directory"):
            Release.load(tmp_path)
        with pytest.raises(ReleaseError, match="cannot write"):
            release.save(tmp_path / "absent" / "graph.release")
        release.save(tmp_path / "graph.release")
        with pytest.raises(ReleaseError, match="cannot write"):
            release.save(tmp_path)
        assert sorted(p.name for p in tmp_path.iterdir()) == ["graph.release"]

    def test_another_universe(self, release: Release, tmp_path: Path) -> None:
        path = tmp_path / "graph.release"
        release.save(path)
        with pytest.raises(UniverseError, match="another node list"):
            Release.load(path, NodeUniverse.range(61))


class TestExport:
    def test_all_forms_hold_the_same_edges_and_warn(self, release: Release) -> None:
        with pytest.warns(CalibrationWarning, match="not calibrated") as caught:
            graph = release.to_networkx()
            matrix = release.to_scipy()
            edges = release.to_edges()
        assert len(caught) == 3
        assert all(warning.filename == __file__ for warning in caught)
        pairs = release.graph.pairs()
        assert list(graph.nodes) == list(SILO.universe.ids)
        assert {frozenset(map(int, e)) for e in graph.edges} == {
            frozenset(e) for e in pairs.tolist()
        }
        assert (matrix.toarray() == release.graph.bits(slice(0, 60))).all()
        assert (edges.astype(np.int64) == pairs).all()

    def test_without_a_universe_positions_are_used(self, release: Release, tmp_path: Path) -> None:
        release.save(tmp_path / "r")
        with pytest.warns(CalibrationWarning):
            assert (Release.load(tmp_path / "r").to_edges() == release.graph.pairs()).all()


class TestQueries:
    def test_a_perfect_channel_gives_the_truth(self) -> None:
        perfect = Release.draw(SILO, Channel(1, 0), seed=1)
        degrees = SILO.degrees()
        assert perfect.edges().value == len(SILO)
        assert perfect.edges().stderr == 0
        assert (perfect.degrees().value == degrees).all()
        assert perfect.triangles().value == SILO.triangles()
        assert perfect.node_triangles().value.sum() == 3 * SILO.triangles()
        assert perfect.kstars(2).value == (degrees * (degrees - 1)).sum() / 2
        expected = np.histogram(degrees, perfect.degree_histogram().parameters["bins"])[0]
        assert perfect.degree_histogram().value == pytest.approx(expected, abs=0.5)

    @pytest.mark.parametrize("k", [0, -1, 60, 1000, 1.5, True, None])
    def test_bad_k(self, release: Release, k: object) -> None:
        with pytest.raises(ArgumentError, match="k"):
            release.kstars(k)  # type: ignore[arg-type]

    def test_the_largest_star(self, release: Release) -> None:
        for k in (30, 59):
            estimate = release.kstars(k)
            assert np.isfinite([estimate.value, estimate.stderr]).all()

    @pytest.mark.parametrize(
        "bins", [[0], [0, 0, 60], [5, 60], [0, 10], [0, 1.5, 60], [60, 0]], ids=str
    )
    def test_bad_bins(self, release: Release, bins: list[int]) -> None:
        with pytest.raises(ArgumentError, match="bins"):
            release.degree_histogram(bins)

    def test_answers_say_what_they_cost(self, release: Release) -> None:
        answer = release.kstars(3)
        assert answer.epsilon == release.epsilon == CHANNEL.epsilon
        assert (answer.query, answer.parameters, answer.method) == ("kstars", {"k": 3}, "feat")
        assert "kstars(k=3)" in str(answer)
        assert "not unbiased" in str(release.clustering())
        assert "60 values" in str(release.degrees())
        plain = release.degrees().to_dict()
        assert len(plain["value"]) == len(plain["interval"][0]) == 60

    def test_clustering_of_nothing(self) -> None:
        empty = Silo.from_edges(NodeUniverse.range(5), np.empty((0, 2), dtype=np.int64))
        answer = Release.draw(empty, Channel(1, 0), seed=1).clustering()
        assert np.isnan(answer.value)
        assert np.isinf(answer.stderr)
