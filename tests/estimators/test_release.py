"""Releases: draws that follow the channel, files that survive or say why not, exports that warn."""

import dataclasses
import hashlib
import json
import math
import warnings
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from silograph import (
    Channel,
    Federation,
    NodeUniverse,
    Release,
    Silo,
    View,
    clustered_power_law,
    split,
)
from silograph.errors import (
    ArgumentError,
    CalibrationWarning,
    ChannelError,
    LedgerWarning,
    ReleaseError,
    UniverseError,
)
from silograph.estimators.estimate import Provenance
from silograph.methods.union import settle_union
from tests import limits

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
        for release in (Release.draw(silo, c, seed=1) for c in (CHANNEL, Channel.symmetric(1.0))):
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
        assert again.losses == release.losses == {0: CHANNEL.epsilon}
        assert again.triangles().value == release.triangles().value
        assert [p.name for p in tmp_path.iterdir()] == ["graph.release"]

    def test_golden(self, release: Release, tmp_path: Path) -> None:
        """What a format says is written for as long as it has its number."""
        path = tmp_path / "graph.release"
        wide = Channel(1, "1/4")
        views = (View("coordinator", math.inf), View("1 silo + release", math.inf, claimed=False))
        made = Provenance("feat", "elgamal/replace", 2, 0, "0f" * 16)
        losses = {0: math.inf, 1: math.inf}
        replace = dataclasses.replace
        replace(release, channel=wide, provenance=made, views=views, losses=losses).save(path)
        content = path.read_bytes()
        end = 24 + int.from_bytes(content[20:24], "little")
        assert content[:20] == b"silograph.releas\2\0\0\0"
        assert content[24:end].decode() == (
            '{"losses":{"0":"unbounded","1":"unbounded"},"n":60,"p01":"1/4","p11":"1",'
            '"provenance":{"collusion":0,"method":"feat","protocol":"elgamal/replace",'
            f'"run":"{"0f" * 16}","silos":2}},"universe":"{SILO.universe.digest}","views":['
            '{"claimed":true,"delta":0.0,"epsilon":"unbounded","name":"coordinator"},'
            '{"claimed":false,"delta":0.0,"epsilon":"unbounded","name":"1 silo + release"}]}'
        )
        assert content[end:-32] == release.graph.to_triangle()
        again = Release.load(path)
        assert (again.views, again.losses) == (views, losses)

    def test_a_header_is_json_that_all_can_read(
        self, masked_release: Release, tmp_path: Path
    ) -> None:
        """Without Python's own words for infinity and the like."""
        path = tmp_path / "graph.release"

        def refuse(constant: str) -> None:
            raise AssertionError(constant)

        open_ended = {0: masked_release.losses[0], 1: masked_release.losses[1], 2: math.inf}
        for losses in (masked_release.losses, open_ended):
            dataclasses.replace(masked_release, losses=losses).save(path)
            content = path.read_bytes()
            header = content[24 : 24 + int.from_bytes(content[20:24], "little")]
            json.loads(header, parse_constant=refuse)
            again = Release.load(path)
            assert again.losses == losses
            origin = again.edges().origin
            assert origin is not None
            assert origin.losses == losses

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
            ReleaseError, match="format 9; this version of Silograph reads format 2"
        ):
            Release.load(path)

    @settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=200)
    @given(body=st.binary(max_size=300))
    def test_foreign_bytes(self, tmp_path: Path, body: bytes) -> None:
        path = tmp_path / "foreign"
        for content in (body, b"silograph.releas" + body, b"silograph.releas\2\0\0\0" + body):
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


def with_header(path: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Write a release file anew with another header, and a checksum that fits."""
    content = path.read_bytes()
    end = 24 + int.from_bytes(content[20:24], "little")
    header = json.loads(content[24:end])
    changed = change(header)
    encoded = json.dumps(header if changed is None else changed).encode()
    body = content[:20] + len(encoded).to_bytes(4, "little") + encoded + content[end:-32]
    path.write_bytes(body + hashlib.sha256(body).digest())


def places(given: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where something stands in a header: each field, each view, and the whole."""
    yield at
    inside = dict(enumerate(given)) if isinstance(given, list) else given
    if isinstance(inside, dict):
        for key, value in inside.items():
            yield from places(value, (*at, key))


def nested(depth: int) -> list[Any]:
    return [nested(depth - 1)] if depth else []


WRONG: list[Any] = [
    None, True, False, [], {}, [1], {"a": 1}, nested(90), 0, -1, 1, 65, 10**30, -(10**30), 10**400,
    0.5, -0.5, 1e308, math.nan, math.inf, -math.inf, "", "x", "é\n", "a" * 300, "0" * 64,
    "9" * 5000, "1/0", "-1/2", "1e9", "nan", "1/2", "1", "0",
]  # fmt: skip


@pytest.fixture(scope="module")
def masked_release() -> Release:
    silos = split(SILO, 3, seed=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LedgerWarning)
        return Federation.simulate(silos).collect(epsilon=3.0, collusion=1, progress=False)


class TestHostileFile:
    """Whoever can write a file can write its checksum: every field is looked at."""

    def set(self, path: Path, at: tuple[Any, ...], value: Any) -> None:
        def change(header: Any) -> Any:
            if not at:
                return value
            for key in at[:-1]:
                header = header[key]
            header[at[-1]] = value
            return None

        with_header(path, change)

    @pytest.mark.slow
    @pytest.mark.parametrize("kind", ["draw", pytest.param("masked", marks=pytest.mark.whole)])
    def test_any_field_with_any_value(
        self, kind: str, release: Release, masked_release: Release, tmp_path: Path
    ) -> None:
        """One clear line, or a release that can be shown and asked."""
        path = tmp_path / "graph.release"
        saved = release if kind == "draw" else masked_release
        saved.save(path)
        whole, lines, taken = path.read_bytes(), [], 0
        header = json.loads(whole[24 : 24 + int.from_bytes(whole[20:24], "little")])
        for at in places(header):
            for value in WRONG:
                path.write_bytes(whole)
                self.set(path, at, value)
                try:
                    found = Release.load(path)
                except ReleaseError as error:
                    lines.append(str(error))
                    continue
                taken += 1
                assert math.isfinite(found.edges().value)
                assert found.epsilon >= found.channel.epsilon
                assert str(found)
                assert found._repr_html_()
                assert found.edges().origin is not None
        for line in lines:
            assert line.startswith(f"{path}: ")
            assert len(line.splitlines()) == 1
            assert len(line) < len(str(path)) + 250
        assert len(lines) > 3 * taken

    @pytest.mark.parametrize(
        ("at", "value", "words"),
        [
            ((), [], "the header must be an object, not []"),
            (("n",), True, "n must be an integer from 1 up, not True"),
            (("n",), 60.0, "n must be an integer from 1 up, not 60.0"),
            (("n",), 0, "n must be an integer from 1 up, not 0"),
            (("n",), 61, "its length is wrong"),
            (("p11",), 0.9, "p11 must be a fraction such as '20/21', not 0.9"),
            (("p11",), "1/0", "p11 must be a fraction"),
            (("p11",), "3/2", "p11 must be a number from 0 to 1"),
            (("p01",), "1", "must be less than p11"),
            (("universe",), "AB" * 32, "universe must be 64 hexadecimal digits"),
            (("provenance",), [], "provenance must be an object, not []"),
            (("provenance", "silos"), "4", "provenance.silos must be an integer from 1 to 64"),
            (("provenance", "silos"), 0, "provenance.silos must be an integer from 1 to 64"),
            (("provenance", "collusion"), 1, "provenance.collusion must be an integer from 0 to 0"),
            (("provenance", "method"), 7, "provenance.method must be a text of 1 to 200"),
            (("provenance", "protocol"), "a\nb", "provenance.protocol must be a text"),
            (
                ("provenance", "run"),
                "xyz",
                "provenance.run must be 32 hexadecimal digits, or empty",
            ),
            (("provenance", "extra"), 1, "provenance.'extra' is not a field of this format"),
            (("extra",), 1, "'extra' is not a field of this format"),
            (("views",), {}, "views must be a list, not {}"),
            (("views",), [], "no view is claimed"),
            (("views", 0), "published", "views[0] must be an object, not 'published'"),
            (("views", 0), {}, "views[0].name is missing"),
            (("views", 0, "name"), 7, "views[0].name must be a text of 1 to 200 characters, not 7"),
            (
                ("views", 0, "epsilon"),
                "3",
                "views[0].epsilon must be a number from 0 up, or 'unbounded', not '3'",
            ),
            (("views", 0, "epsilon"), math.nan, "views[0].epsilon must be a number from 0 up"),
            (("views", 0, "epsilon"), 10**400, "views[0].epsilon must be a number from 0 up"),
            (("views", 0, "epsilon"), math.inf, "views[0].epsilon must be a number from 0 up"),
            (("views", 0, "epsilon"), True, "views[0].epsilon must be a number from 0 up"),
            (("views", 0, "delta"), "unbounded", "views[0].delta must be a number from 0 to 1"),
            (("views", 0, "delta"), True, "views[0].delta must be a number from 0 to 1, not True"),
            (("views", 0, "delta"), 2, "views[0].delta must be a number from 0 to 1, not 2"),
            (("views", 0, "claimed"), 1, "views[0].claimed must be true or false, not 1"),
            (("views", 0, "claimed"), False, "no view is claimed"),
            (("losses",), [3.0], "losses must be an object, not [3.0]"),
            (("losses",), {}, "losses.0 is missing"),
            (("losses", "1"), 9.0, "losses.'1' is not a field of this format"),
            (("losses", "00"), 9.0, "losses.'00' is not a field of this format"),
            (("losses", "-1"), 9.0, "losses.'-1' is not a field of this format"),
            (("losses", "0"), None, "losses.0 must be a number from 0 up, or 'unbounded', not No"),
            (("losses", "0"), "∞", "losses.0 must be a number from 0 up, or 'unbounded', not '∞'"),
            (("losses", "0"), math.inf, "losses.0 must be a number from 0 up"),
            (("losses", "0"), math.nan, "losses.0 must be a number from 0 up"),
            (("losses", "0"), 10**400, "losses.0 must be a number from 0 up"),
            (("losses", "0"), -1, "losses.0 must be a number from 0 up"),
            (("losses", "0"), True, "losses.0 must be a number from 0 up"),
            (("losses", "0"), 1e300, "with 0 silos that collude its noise costs 1e+300"),
        ],
        ids=lambda part: part[:30] if isinstance(part, str) else "",
    )
    def test_every_field_has_its_error(
        self, at: tuple[Any, ...], value: Any, words: str, release: Release, tmp_path: Path
    ) -> None:
        path = tmp_path / "graph.release"
        release.save(path)
        self.set(path, at, value)
        with pytest.raises(ReleaseError) as caught:
            Release.load(path)
        assert words in str(caught.value)

    @pytest.mark.parametrize(
        "name", ["n", "p11", "p01", "universe", "provenance", "views", "losses"]
    )
    def test_a_missing_field(self, name: str, release: Release, tmp_path: Path) -> None:
        path = tmp_path / "graph.release"
        release.save(path)
        with_header(path, lambda header: header.pop(name) and None)
        with pytest.raises(ReleaseError, match=f"{name} is missing"):
            Release.load(path)

    def test_two_views_of_one_name(self, release: Release, tmp_path: Path) -> None:
        path = tmp_path / "graph.release"
        release.save(path)
        with_header(path, lambda header: header["views"].append(header["views"][0]))
        with pytest.raises(ReleaseError, match="two views 'published'"):
            Release.load(path)

    @pytest.mark.parametrize("raw", [b"", b"{", b"\xff", b"[" * 60_000, b"9" * 5_000])
    def test_a_header_that_is_no_json(self, raw: bytes, release: Release, tmp_path: Path) -> None:
        path = tmp_path / "graph.release"
        release.save(path)
        content = path.read_bytes()
        body = content[:20] + len(raw).to_bytes(4, "little") + raw + content[24:-32]
        path.write_bytes(body + hashlib.sha256(body).digest())
        with pytest.raises(ReleaseError, match="the release is damaged"):
            Release.load(path)

    def test_probabilities_next_to_each_other(self, release: Release, tmp_path: Path) -> None:
        """Weights of 10^2000 pass the range of a float in every question."""
        path = tmp_path / "graph.release"
        release.save(path)
        big = 2**7_000
        self.set(path, ("p11",), f"{big // 2 + 1}/{big}")
        self.set(path, ("p01",), "1/2")
        with pytest.raises(ReleaseError, match="nothing but noise would come through"):
            Release.load(path)

    def test_more_digits_than_are_written(self, tmp_path: Path) -> None:
        least = Fraction(1, 2**15_000)
        made = Release.draw(SILO, Channel(1 - least, least), seed=1)
        with pytest.raises(ReleaseError, match="too long to be written"):
            made.save(tmp_path / "graph.release")
        assert list(tmp_path.iterdir()) == []


class TestLies:
    """A release may not say that it costs less than its noise does."""

    @pytest.mark.parametrize(
        ("p11", "p01"),
        [("1", "0"), ("1", "1/20"), ("19/20", "0"), ("19/20", "1/21"), ("3/4", "1/4")],
    )
    @pytest.mark.parametrize("claimed", [True, False])
    def test_a_view_below_the_channel(
        self, p11: str, p01: str, claimed: bool, tmp_path: Path
    ) -> None:
        path = tmp_path / "graph.release"
        made = Release.draw(SILO, Channel(p11, p01), seed=1)
        lie = View("coordinator", 1.0, claimed=claimed)
        dataclasses.replace(made, views=(*made.views, lie)).save(path)
        with pytest.raises(
            ReleaseError, match=r"view 'coordinator' says ε = 1, but anyone who sees"
        ):
            Release.load(path)

    def test_the_least_float_that_is_enough(self, tmp_path: Path) -> None:
        path = tmp_path / "graph.release"
        loss = CHANNEL.epsilon
        made = Release.draw(SILO, CHANNEL, seed=1)
        dataclasses.replace(made, views=(View("published", loss),)).save(path)
        assert Release.load(path).epsilon == loss
        below = View("published", math.nextafter(loss, 0))
        dataclasses.replace(made, views=(below,)).save(path)
        with pytest.raises(ReleaseError, match="view 'published' says"):
            Release.load(path)

    def test_colluding_silos_are_not_left_out(
        self, masked_release: Release, tmp_path: Path
    ) -> None:
        """The channel's own loss is not enough, where silos that collude see more."""
        path = tmp_path / "graph.release"
        only = (View("coordinator", masked_release.channel.epsilon),)
        dataclasses.replace(masked_release, views=only).save(path)
        with pytest.raises(ReleaseError, match="with 1 silos that collude its noise costs"):
            Release.load(path)

    @pytest.mark.parametrize("t", [0, 1, 2])
    def test_losses_below_the_channel(
        self, t: int, masked_release: Release, tmp_path: Path
    ) -> None:
        path = tmp_path / "graph.release"
        below = math.nextafter(masked_release.channel.epsilon, 0)
        losses = {**masked_release.losses, t: below}
        dataclasses.replace(masked_release, losses=losses).save(path)
        with pytest.raises(ReleaseError, match=rf"losses\.{t} says .*, but anyone who sees"):
            Release.load(path)

    def test_losses_never_fall(self, masked_release: Release, tmp_path: Path) -> None:
        path = tmp_path / "graph.release"
        losses = dict(masked_release.losses)
        assert masked_release.channel.epsilon <= losses[0] < losses[1] < losses[2]
        losses[2] = math.nextafter(losses[1], 0)
        dataclasses.replace(masked_release, losses=losses).save(path)
        with pytest.raises(ReleaseError, match=r"losses\.2 says .*, less than with one silo fewer"):
            Release.load(path)
        losses[2] = losses[1]
        dataclasses.replace(masked_release, losses=losses).save(path)
        assert Release.load(path).losses == losses

    @pytest.mark.parametrize("silos", [2, 4])
    def test_losses_for_every_number_of_silos_and_no_other(
        self, silos: int, masked_release: Release, tmp_path: Path
    ) -> None:
        path = tmp_path / "graph.release"
        losses = dict.fromkeys(range(silos), masked_release.epsilon)
        dataclasses.replace(masked_release, losses=losses).save(path)
        said = r"losses\.2 is missing" if silos == 2 else r"losses\.'3' is not a field"
        with pytest.raises(ReleaseError, match=said):
            Release.load(path)

    @pytest.mark.parametrize("channel", [Channel(1, 0), Channel(1, "1/9"), Channel("1/3", 0)])
    def test_no_noise_is_fine_where_it_is_said(self, channel: Channel, tmp_path: Path) -> None:
        Release.draw(SILO, channel, seed=1).save(tmp_path / "graph.release")
        assert Release.load(tmp_path / "graph.release").epsilon == math.inf

    @pytest.mark.parametrize(
        ("protocol", "silos", "collusion"),
        [
            *(("masked", m, t) for m in (2, 3, 4, 64) for t in (0, 1, m - 1)),
            *(("clear", m, t) for m in (2, 4) for t in (0, 1)),
            *(("elgamal/blinded", m, t) for m in (2, 3, 4) for t in (0, 1)),
            ("elgamal/replace", 3, 0),
            ("elgamal/printed", 3, 0),
        ],
    )
    @pytest.mark.parametrize("epsilon", [0.3, 1.0, 3.0, 12.0])
    def test_every_union_tells_the_truth(
        self, protocol: str, silos: int, collusion: int, epsilon: float, tmp_path: Path
    ) -> None:
        try:
            plan = settle_union(protocol, epsilon, silos, collusion)
        except (ArgumentError, ChannelError):
            pytest.skip("there is no such union")
        drawn = Release.draw(SILO, CHANNEL, seed=1)
        made = Provenance("feat", plan.protocol, silos, collusion, "0f" * 16)
        changed = dataclasses.replace(
            drawn, channel=plan.channel, provenance=made, views=plan.views, losses=plan.losses
        )
        changed.save(tmp_path / "graph.release")
        found = Release.load(tmp_path / "graph.release")
        assert (found.views, found.losses) == (plan.views, plan.losses)


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
        assert "60, one per node" in str(release.degrees())
        plain = release.degrees().to_dict()
        assert len(plain["value"]) == len(plain["interval"][0]) == 60

    def test_clustering_of_nothing(self) -> None:
        empty = Silo.from_edges(NodeUniverse.range(5), np.empty((0, 2), dtype=np.int64))
        answer = Release.draw(empty, Channel(1, 0), seed=1).clustering()
        assert np.isnan(answer.value)
        assert np.isinf(answer.stderr)
