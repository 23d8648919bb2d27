"""Folded releases: their questions, their files, what they cost, and how they are shown."""

import dataclasses
import hashlib
import json
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from silograph import (
    Channel,
    FoldedRelease,
    NodeUniverse,
    Release,
    Silo,
    View,
    clustered_power_law,
)
from silograph.dp.loss import worst_losses
from silograph.errors import ArgumentError, ReleaseError
from silograph.estimators.estimate import Provenance
from silograph.estimators.folded_release import FOLD_NOTE, FOLDED_QUERIES
from silograph.graph.fold import BucketCounts, Folding, Layout
from silograph.methods.committee.noise import CommitteeNoise
from silograph.methods.hubs.noise import HubNoise
from silograph.methods.masked.noise import MaskedNoise
from tests.estimators.test_release import WRONG, places, with_header

SILO = clustered_power_law(200, edges_per_node=3, seed=5)
HUBS = ("0", "1", "2")


def made(
    silo: Silo = SILO, groups: int = 1000, hubs: tuple[str, ...] = HUBS, sub: int = 1, **more: Any
) -> FoldedRelease:
    """A release that is all but exact: no noise, and hardly two edges in one bucket."""
    layout = Layout(groups, len(hubs), sub)
    bits = Folding.of(b"a run", layout, hubs).fold(silo.universe, silo.pairs).tobytes()
    noise = MaskedNoise.choose(3.0, 4, 1)
    given: dict[str, Any] = {
        "channel": Channel(1, 0),
        "views": (View("coordinator", math.inf),),
        "losses": dict.fromkeys(range(4), math.inf),
    }
    if "channel" in more:
        given = {"views": noise.views, "losses": {t: noise.epsilon(4 - t) for t in range(4)}}
    return FoldedRelease(
        BucketCounts(layout, bits), hubs, silo.universe.form, len(silo.universe),
        universe_digest=silo.universe.digest, provenance=Provenance("feat", "masked", 4, 1),
        **(given | more),
    )  # fmt: skip


def wheels(hubs: int, nodes: int) -> Silo:
    """A few nodes that know most others, and nothing else."""
    edges = [(u, v) for u in range(hubs) for v in range(u + 1, nodes) if (u + v) % 3]
    return Silo.from_edges(NodeUniverse.range(nodes), edges)


@pytest.fixture(scope="module")
def exact() -> FoldedRelease:
    return made()


@pytest.fixture
def priced() -> FoldedRelease:
    """One with the views and losses of a masked union at ε = 3."""
    return made(groups=9, hubs=("0", "1"), channel=MaskedNoise.choose(3.0, 4, 1).channel)


class TestQueries:
    @pytest.mark.parametrize("query", FOLDED_QUERIES)
    def test_buckets_that_are_too_full_give_no_answer(self, query: str) -> None:
        """Edges read 118 ± 6 where there were 224, and nobody said that they were too many."""
        k = 2 if query == "kstars" else None
        for groups, crowded in ((10, True), (24, True), (50, False), (90, False)):
            found = made(groups=groups, hubs=()).ask(query, k)
            assert found.note.startswith("no usable answer: ") is crowded, (groups, found.note)
            assert (not math.isfinite(found.stderr)) is crowded
            assert not crowded or not found.usable
        low, high = made(groups=10, hubs=()).ask(query, k).interval_at(0.5)
        assert (low, high) == ((0.0, 1.0) if query == "clustering" else (-math.inf, math.inf))

    @pytest.mark.parametrize(
        ("silo", "groups", "hubs"), [(SILO, 24, ()), (wheels(8, 800), 300, tuple("01234567"))]
    )
    def test_the_number_of_groups_that_is_advised_is_enough(
        self, silo: Silo, groups: int, hubs: tuple[str, ...]
    ) -> None:
        """Full rows of hubs are noticed, too: 2-stars were twice as many, with an interval."""
        release = made(silo, groups, hubs)
        note = release.edges().note
        assert note.startswith("no usable answer: "), note
        advised = int(note.rsplit("fold into ", 1)[1].split()[0].replace(",", ""))
        assert advised > groups
        enough = made(silo, advised, hubs)
        assert enough.edges().note == FOLD_NOTE
        assert 0.15 < enough.sums.load < 0.35

    def test_without_noise_and_collisions_they_are_right(self, exact: FoldedRelease) -> None:
        degrees = SILO.degrees()
        stars = int((degrees * (degrees - 1) // 2).sum())
        found = {name: exact.ask(name, 2 if name == "kstars" else None) for name in FOLDED_QUERIES}
        truth = {
            "edges": len(SILO),
            "kstars": stars,
            "triangles": SILO.triangles(),
            "clustering": 3 * SILO.triangles() / stars,
        }
        for name, value in truth.items():
            assert found[name].value == pytest.approx(value, rel=0.15), name
            assert abs(found[name].value - value) <= 5 * found[name].stderr + 1e-9
        for estimate in found.values():
            assert estimate.note == FOLD_NOTE
            assert estimate.origin is not None
            assert estimate.origin.release is exact
            assert math.isfinite(estimate.value + estimate.stderr)
            assert (estimate.epsilon, estimate.delta) == (exact.epsilon, exact.delta)

    def test_stars_with_one_leaf_are_edges_twice(self, exact: FoldedRelease) -> None:
        one, edges = exact.kstars(1), exact.edges()
        assert (one.value, one.stderr) == pytest.approx((2 * edges.value, 2 * edges.stderr))
        assert one.name == "kstars(k=1)"

    @pytest.mark.parametrize("k", [3, 0, -1, 1.5, "2", math.nan])
    def test_no_other_stars(self, k: Any, exact: FoldedRelease) -> None:
        with pytest.raises(ArgumentError, match="for k = 1 and 2"):
            exact.kstars(k)
        with pytest.raises(ArgumentError, match="for k = 1 and 2"):
            exact.ask("kstars", k)

    @pytest.mark.parametrize(
        ("query", "k", "words"),
        [
            ("degrees", None, "do not answer degrees; they answer edges"),
            ("node_triangles", None, "do not answer"),
            ("degree_histogram", None, "do not answer"),
            ("save", None, "do not answer"),
            ("release", None, "this is the release"),
            ("kstars", None, "kstars needs k"),
            ("edges", 2, "nothing else takes it"),
        ],
    )
    def test_what_is_not_answered(
        self, query: str, k: int | None, words: str, exact: FoldedRelease
    ) -> None:
        with pytest.raises(ArgumentError, match=words):
            exact.ask(query, k)

    def test_hubs_have_rows_of_their_own(self) -> None:
        """A star whose centre is a hub has all its 2-stars, whatever the groups are."""
        star = Silo.from_edges(SILO.universe, np.array([[0, i] for i in range(1, 100)]))
        found = made(star, groups=500, hubs=("0",)).kstars(2)
        assert found.value == pytest.approx(99 * 98 / 2, rel=0.15)


class TestFile:
    def test_round_trip(self, priced: FoldedRelease, tmp_path: Path) -> None:
        path = tmp_path / "g.release"
        for release in (priced, made(sub=3, hubs=()), dataclasses.replace(priced, nodes=0)):
            release.save(path)
            again = FoldedRelease.load(path)
            for field in dataclasses.fields(FoldedRelease):
                if field.name != "counts":
                    assert getattr(again, field.name) == getattr(release, field.name), field.name
            assert again.counts.bits == release.counts.bits
            assert again.layout == release.layout
            assert again.edges().value == release.edges().value
            assert str(again) == str(release)
        assert [p.name for p in tmp_path.iterdir()] == ["g.release"]

    def test_golden(self, priced: FoldedRelease, tmp_path: Path) -> None:
        path = tmp_path / "g.release"
        priced.save(path)
        content = path.read_bytes()
        end = 24 + int.from_bytes(content[20:24], "little")
        assert content[:20] == b"silograph.folded\2\0\0\0"
        header = json.loads(content[24:end])
        own = {"groups": 9, "hubs": ["0", "1"], "sub": 1, "nodes": 200, "hub_epsilon": 0.0}
        assert own.items() <= header.items()
        assert header["form"] == "strip=0;case=none"
        assert content[end:-32] == priced.counts.bits

    def test_every_truncation_and_every_flipped_bit_is_found(
        self, priced: FoldedRelease, tmp_path: Path
    ) -> None:
        path = tmp_path / "g.release"
        priced.save(path)
        content = path.read_bytes()
        for length in range(0, len(content), 7):
            path.write_bytes(content[:length])
            with pytest.raises(ReleaseError, match=r"not a Silograph|truncated|damaged"):
                FoldedRelease.load(path)
        for position in range(len(content)):
            damaged = bytearray(content)
            damaged[position] ^= 1 << position % 8
            path.write_bytes(damaged)
            with pytest.raises(ReleaseError, match=r"g\.release: "):
                FoldedRelease.load(path)
        path.write_bytes(content + b"\0")
        with pytest.raises(ReleaseError, match="damaged"):
            FoldedRelease.load(path)

    def test_the_other_kind_is_named(self, priced: FoldedRelease, tmp_path: Path) -> None:
        path = tmp_path / "g.release"
        priced.save(path)
        with pytest.raises(ReleaseError, match="this is a folded release, not a release"):
            Release.load(path)
        Release.draw(SILO, Channel("20/21", "1/16"), seed=7).save(path)
        with pytest.raises(ReleaseError, match="this is a release, not a folded release"):
            FoldedRelease.load(path)

    @settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
    @given(body=st.binary(max_size=300))
    def test_foreign_bytes(self, tmp_path: Path, body: bytes) -> None:
        path = tmp_path / "foreign"
        for content in (body, b"silograph.folded\2\0\0\0" + body):
            path.write_bytes(content)
            with pytest.raises(ReleaseError):
                FoldedRelease.load(path)

    @pytest.mark.parametrize(
        ("at", "value", "words"),
        [
            (("groups",), 10, "its length is wrong"),
            (("groups",), 1, "groups must be an integer from 2 up"),
            (("groups",), 10**30, "groups must be from 3 to 1,048,576"),
            (("groups",), 1 << 20, "buckets; at most"),
            (("groups",), True, "groups must be an integer"),
            (("sub",), 2, "its length is wrong"),
            (("sub",), 65, "sub must be from 1 to 64"),
            (("hubs",), list("012345"), "its length is wrong"),
            (("hubs",), ["0", "0"], "a list of different short texts"),
            (("hubs",), ["0", 1], "a list of different short texts"),
            (("hubs",), "01", "a list of different short texts"),
            (("hubs",), ["0", "a\nb"], "a list of different short texts"),
            (("form",), "", "form must be a text of 1 to 200"),
            (("nodes",), -1, "nodes must be an integer from 0 to"),
            (("nodes",), 1 << 40, "nodes must be an integer from 0 to"),
            (("hub_epsilon",), -1, "hub_epsilon must be a number from 0 up"),
            (("hub_epsilon",), 3.1, "finding hubs cost more than all"),
            (("hub_epsilon",), "unbounded", "finding hubs cost more than all"),
            (("n",), 200, "'n' is not a field of this format"),
            (("p01",), "1/1000", "but anyone who sees its noise has a loss of"),
            (("views", 0, "epsilon"), 0.1, "but anyone who sees its noise has a loss of"),
            (("losses", "1"), 5.0, "with 1 silos that collude its noise costs 5"),
        ],
    )
    def test_forged_headers(
        self, at: tuple[Any, ...], value: Any, words: str, priced: FoldedRelease, tmp_path: Path
    ) -> None:
        path = tmp_path / "g.release"
        priced.save(path)
        forge(path, at, value)
        with pytest.raises(ReleaseError) as caught:
            FoldedRelease.load(path)
        assert words in str(caught.value)

    @pytest.mark.parametrize("name", ["groups", "hubs", "sub", "form", "nodes", "hub_epsilon"])
    def test_a_missing_field(self, name: str, priced: FoldedRelease, tmp_path: Path) -> None:
        path = tmp_path / "g.release"
        priced.save(path)
        with_header(path, lambda header: {key: header[key] for key in header if key != name})
        with pytest.raises(ReleaseError, match=f"{name} is missing"):
            FoldedRelease.load(path)

    def test_bits_after_the_last_bucket(self, priced: FoldedRelease, tmp_path: Path) -> None:
        """They would count as occupied buckets that no cell has."""
        path = tmp_path / "g.release"
        priced.save(path)
        content = bytearray(path.read_bytes()[:-32])
        assert priced.layout.buckets % 64
        content[-1] |= 0x80
        path.write_bytes(bytes(content) + hashlib.sha256(content).digest())
        with pytest.raises(ReleaseError, match="bits after the last bucket"):
            FoldedRelease.load(path)

    @pytest.mark.slow
    def test_any_field_with_any_value(self, priced: FoldedRelease, tmp_path: Path) -> None:
        """One clear line, or a release that can be shown, asked and saved again."""
        path = tmp_path / "g.release"
        priced.save(path)
        whole = path.read_bytes()
        header = json.loads(whole[24 : 24 + int.from_bytes(whole[20:24], "little")])
        lines = []
        for at in places(header):
            for value in WRONG:
                path.write_bytes(whole)
                forge(path, at, value)
                try:
                    found = FoldedRelease.load(path)
                except ReleaseError as error:
                    lines.append(str(error))
                    continue
                assert found.epsilon >= found.channel.epsilon
                assert str(found)
                assert found._repr_html_()
                found.save(path)
        assert all(len(line.splitlines()) == 1 for line in lines)


def forge(path: Path, at: tuple[Any, ...], value: Any) -> None:
    def change(header: Any) -> Any:
        if not at:
            return value
        for key in at[:-1]:
            header = header[key]
        header[at[-1]] = value
        return None

    with_header(path, change)


NOISES = {
    "masked": MaskedNoise.choose,
    "committee": CommitteeNoise.choose,
}


def union(kind: str, epsilon: float, silos: int, collusion: int) -> dict[str, Any]:
    """The channel, the views and the losses of a union."""
    noise: Any = NOISES[kind](epsilon, silos, collusion)
    losses = (
        noise.losses
        if isinstance(noise, CommitteeNoise)
        else {t: noise.epsilon(silos - t) for t in range(silos)}
    )
    return {
        "channel": noise.channel, "views": noise.views, "losses": losses,
        "provenance": Provenance("feat", kind, silos, collusion),
    }  # fmt: skip


class TestSearch:
    """What a search for hubs adds is never understated."""

    @pytest.mark.parametrize("kind", NOISES)
    @pytest.mark.parametrize(
        ("silos", "collusion"), [(4, 1), (4, 0), (6, 1), (8, 5), (8, 7), (2, 1)]
    )
    def test_both_add_up_for_every_coalition(
        self, kind: str, silos: int, collusion: int, tmp_path: Path
    ) -> None:
        if kind == "committee" and collusion > 1:
            pytest.skip("a committee is for a collusion of at most 1")
        parts = union(kind, 2.4, silos, collusion)
        release = dataclasses.replace(made(groups=9, hubs=("0",), channel=None), **parts)
        search = HubNoise.choose(0.6, silos, collusion)
        both = release.with_search(search.views, search.losses)
        for t in range(silos):
            own = worst_losses(release.losses)[t]
            if own == math.inf:
                assert both.losses[t] == math.inf
                continue
            assert Fraction(both.losses[t]) >= Fraction(own) + Fraction(search.losses[t])
        for before, after in zip(release.views, both.views, strict=True):
            assert (after.name, after.claimed) == (before.name, before.claimed)
            least = max(search.losses[t] for t in range(collusion + 1))
            assert after.epsilon >= before.epsilon + least
        worst = max(both.losses[t] for t in range(collusion + 1))
        assert both.epsilon >= worst
        assert both.hub_epsilon >= max(v.epsilon for v in search.views if v.claimed)
        path = tmp_path / "g.release"
        both.save(path)  # a file whose views were below its losses would not be read
        again = FoldedRelease.load(path)
        assert (again.views, again.losses, again.hub_epsilon) == (
            both.views, both.losses, both.hub_epsilon,
        )  # fmt: skip

    def test_a_search_that_costs_most_against_few(self, priced: FoldedRelease) -> None:
        """Its loss falls with collusion; a claim for one silo holds for none, too."""
        search = (View("coordinator", 2.0), View("coordinator + 1 silo", 0.5))
        both = priced.with_search(search, {0: 2.0, 1: 0.5, 2: 0.5, 3: 0.5})
        assert list(both.losses.values()) == sorted(both.losses.values())
        assert both.losses[1] >= priced.losses[1] + 2.0
        assert min(v.epsilon for v in both.views) >= 2.0 + min(v.epsilon for v in priced.views)

    def test_a_search_that_costs_most_in_between(self, priced: FoldedRelease) -> None:
        """A coalition that no view names costs more than those that are named."""
        release = dataclasses.replace(
            priced, provenance=dataclasses.replace(priced.provenance, collusion=2)
        )
        search = (View("coordinator", 0.5), View("coordinator + 2 silos", 0.5))
        both = release.with_search(search, {0: 0.5, 1: 1.5, 2: 0.5, 3: 9.0})
        assert both.hub_epsilon == 1.5
        assert all(
            after.epsilon >= before.epsilon + 1.5
            for before, after in zip(release.views, both.views, strict=True)
        )

    def test_views_that_are_not_claimed_or_not_named(self, priced: FoldedRelease) -> None:
        search = (
            View("coordinator", 0.5),
            View("1 silo + release", 7.0, 1e-9, claimed=False),
            View("someone", 5.0, claimed=False),
        )
        both = priced.with_search(search, dict.fromkeys(range(4), 0.5))
        before = {view.name: view.epsilon for view in priced.views}
        after = {view.name: view for view in both.views}
        assert after["coordinator"].epsilon == pytest.approx(before["coordinator"] + 0.5)
        assert after["1 silo + release"].epsilon >= before["1 silo + release"] + 7.0
        # The search does not say what this one sees of it.
        assert after["coordinator + 1 silo"].epsilon >= before["coordinator + 1 silo"] + 7.0
        assert all(view.delta == 1e-9 for view in both.views)
        unbounded = priced.with_search(
            (View("coordinator", 0.5), View("x", math.inf, claimed=False)),
            {0: 0.5, 1: 0.5, 2: math.inf, 3: math.inf},
        )
        assert unbounded.losses[2] == math.inf
        assert unbounded.epsilon == math.inf

    def test_sums_are_rounded_up(self, priced: FoldedRelease) -> None:
        for epsilon in (0.1, 0.3, 1e-9, 5e-17):
            both = priced.with_search((View("coordinator", epsilon),),
                                      dict.fromkeys(range(4), epsilon))  # fmt: skip
            for before, after in zip(priced.views, both.views, strict=True):
                assert Fraction(after.epsilon) >= Fraction(before.epsilon) + Fraction(epsilon)
            for t, loss in both.losses.items():
                assert Fraction(loss) >= Fraction(priced.losses[t]) + Fraction(epsilon)


class TestDisplay:
    def test_text(self, priced: FoldedRelease) -> None:
        shown = str(priced)
        assert "into 9 groups and 2 hubs; 109 buckets" in shown
        assert "200, list " in shown
        assert "ε = 3, paid; every question on it is free" in shown
        assert "coordinator + 1 silo: ε = 3" in shown
        assert max(map(len, shown.splitlines())) <= 80
        assert repr(priced) == "FoldedRelease(groups=9, hubs=2, sub=1, masked, ε = 3)"

    def test_an_open_universe_and_hubs_that_were_found(self, priced: FoldedRelease) -> None:
        found = dataclasses.replace(priced, nodes=0, hub_epsilon=0.25)
        for shown in (str(found), found._repr_html_()):
            assert "any, by the normal form" in shown
            assert "2 hubs, found with ε = 0.25" in shown
            assert "list" not in shown

    def test_html_is_escaped(self, priced: FoldedRelease) -> None:
        nasty = "</script><img src=x onerror=alert(1)>"
        hostile = dataclasses.replace(
            priced, provenance=Provenance(nasty, nasty, 2), views=(View(nasty, 3.0),)
        )
        assert "<img" not in hostile._repr_html_()
        assert "folded release" in priced._repr_html_()
