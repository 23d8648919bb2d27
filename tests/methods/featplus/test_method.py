"""feat+ as a whole, without messages: unbiased, of bounded sensitivity, and careful with what it is
shown."""

import itertools
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from silograph.dp.channel import Channel
from silograph.errors import ArgumentError, PayloadError
from silograph.estimators.estimate import Provenance
from silograph.estimators.release import Release
from silograph.graph.bits import BitRows
from silograph.graph.silo import Silo
from silograph.graph.universe import NodeUniverse
from silograph.methods.featplus.answer import combine, local_report, share
from silograph.methods.featplus.method import LOCAL_QUERIES, settle_featplus
from silograph.methods.featplus.noise import STEPS, Split
from silograph.methods.featplus.rounds import FeatPlusTerms, Shared
from tests.estimators.tiny import all_graphs, graph, naive, outcomes, pairs_of
from tests.sampled import sampled

NODES = NodeUniverse.range(4)
CHANNELS = [Channel("3/4", "1/4"), Channel("20/21", "1/15")]
QUERIES = [
    (query, 2 if query == "kstars" else None, local)
    for local, queries in LOCAL_QUERIES.items()
    for query in queries
]
#: Besides the first pair, whose holders vary: who holds what, for two and for three silos.
REST = {2: [[1, 3], [2, 3, 4]], 3: [[1, 3], [3, 4], [2, 5]]}


def tiny_plan(
    query: str, k: int | None, local: str, silos: int, channel: Channel, **more: object
) -> FeatPlusTerms:
    return settle_featplus(
        query, k, local, "paper", 3.0, silos, 1, "clear", 4, channel=channel, **more  # type: ignore[arg-type]
    )  # fmt: skip


def holding(bits: list[int]) -> Silo:
    return Silo.from_edges(NODES, [pairs_of(4)[bit] for bit in sorted(bits)])


def release_of(plan: FeatPlusTerms, noisy: int) -> Release:
    provenance = Provenance("feat+", "clear", plan.union.silos)
    union = plan.union
    shown = graph(4, noisy).graph
    return Release(shown, union.channel, "", provenance, union.views, union.losses)


@pytest.mark.slow
@pytest.mark.parametrize(("query", "k", "local"), sampled(QUERIES, 0, -1))
@pytest.mark.parametrize(
    ("silos", "channel"),
    [
        (2, CHANNELS[1]),
        pytest.param(2, CHANNELS[0], marks=pytest.mark.whole),
        pytest.param(3, CHANNELS[1], marks=pytest.mark.whole),
    ],
    ids=str,
)
def test_unbiased_for_every_holder_set(
    query: str, k: int | None, local: str, silos: int, channel: Channel
) -> None:
    """All releases of a federation, for every holder set of one pair and owners of many kinds."""
    bound = 1.25 if local == "gradient" else None
    plan = tiny_plan(query, k, local, silos, channel, bound=bound)
    releases = [release_of(plan, y) for y in all_graphs(4)]
    maps = [[i * (7 + place) // 5 % silos for i in range(4)] for place in range(3)] + [[1, 0, 0, 1]]
    holders = [h for r in range(silos + 1) for h in itertools.combinations(range(silos), r)]
    for owners, having in itertools.product(maps, holders):
        held = [[*bits, 0] if i in having else bits for i, bits in enumerate(REST[silos])]
        silo = [holding(bits) for bits in held]
        truth = sum(1 << bit for bit in {bit for bits in held for bit in bits})
        mean = 0.0
        for noisy, p in outcomes(4, truth, channel):
            shared = Shared(graph(4, noisy).graph, np.array(owners, dtype=np.uint8), bound or 0.0)
            reports = [local_report(plan, shared, own, i) for i, own in enumerate(silo)]
            mean += float(p) * combine(plan, releases[noisy], shared, reports).value
        assert mean == pytest.approx(naive(query, graph(4, truth), k or 0), abs=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize(("query", "k", "local"), QUERIES)
@pytest.mark.parametrize("silos", [2, 3])
def test_neighbouring_federations(query: str, k: int | None, local: str, silos: int) -> None:
    """The edge is there or not in every silo that holds it: the reports of all silos together move
    by no more than the noise is made for."""
    channel = Channel("2/3", "1/4")
    bound = 0.75 if local == "gradient" else None
    plan = tiny_plan(query, k, local, silos, channel, bound=bound)
    maps = list(itertools.product(range(silos), repeat=4))[:: 1 if silos == 2 else 7]
    most = 0
    for bit in (0, 4):
        pairs = []
        for bits in REST[silos]:
            others = [b for b in bits if b != bit]
            pairs.append((holding([*others, bit]), holding(others)))
        for noisy, owners in itertools.product((0, 13, 37, 63), maps):
            places = np.array(owners, dtype=np.uint8)
            shared = Shared(graph(4, noisy).graph, places, bound or 0.0)
            moved = [
                abs(local_report(plan, shared, one, i) - local_report(plan, shared, two, i))
                for i, (one, two) in enumerate(pairs)
            ]
            most = max(most, sum(moved))
            assert sum(moved) <= plan.noise.local_steps
    assert most >= STEPS / 4


class TestPlan:
    def plan(self, **changes: object) -> FeatPlusTerms:
        base: dict[str, object] = {"query": "triangles", "k": None, "local": "gradient"}
        base |= {"split": "paper", "epsilon": 3.0, "silos": 4, "collusion": 1}
        base |= {"protocol": "masked", "n": 100}
        return settle_featplus(**(base | changes))  # type: ignore[arg-type]

    def test_a_plan_keeps_to_epsilon(self) -> None:
        for local, protocol in itertools.product(LOCAL_QUERIES, ("masked", "elgamal", "clear")):
            plan = self.plan(local=local, protocol=protocol)
            assert 2.5 < plan.epsilon <= 3.0
            assert sorted(plan.losses) == [0, 1, 2, 3]
            assert plan.losses[1] == plan.views[-1].epsilon or protocol == "clear"
        assert self.plan(protocol="elgamal").union.protocol == "elgamal/blinded"

    def test_all_to_the_release(self) -> None:
        plan = self.plan(split=(1, 0, 0))
        assert not plan.answers_locally
        assert plan.losses == plan.union.losses
        assert plan.union == self.plan(split=(3, 0, 0)).union

    def test_sensitivities(self) -> None:
        plan = self.plan()
        d = max(abs(1 - plan.union.channel.alpha), abs(1 - plan.union.channel.beta))
        assert plan.sensitivity(8.0) == 8 * d
        assert plan.unit(8.0) * STEPS == 8 * d
        paper = self.plan(local="paper")
        assert paper.sensitivity(0.0) == paper.unit(0.0) * STEPS > d * 98

    @pytest.mark.parametrize(
        ("change", "why"),
        [
            ({"local": "guess"}, "unknown local answers 'guess'"),
            ({"query": "clustering"}, "answers edges, kstars, triangles, four_cycles, not clust"),
            ({"query": "edges", "local": "paper"}, "answers kstars, triangles, not edges"),
            ({"query": "kstars"}, "kstars needs k"),
            ({"k": 2}, "kstars needs k"),
            ({"query": "kstars", "k": 100}, "needs more than 100 nodes"),
            ({"bound": 0.0}, "a bound must be a positive, finite number"),
            ({"bound": math.nan}, "a bound must be a positive, finite number"),
            ({"bound": math.inf}, "a bound must be a positive, finite number"),
            ({"bound": True}, "a bound must be a positive, finite number"),
            ({"bound": 2.0, "local": "paper"}, "for local='gradient' only"),
            ({"collusion": 0}, "shows the release to all silos"),
            ({"protocol": "elgamal/replace"}, "holds against silos"),
            ({"protocol": "elgamal/printed", "collusion": 0}, "holds against silos"),
            ({"split": (1, 2, 3)}, "adds up to"),
            ({"epsilon": -1.0}, "epsilon must be"),
            ({"silos": 1}, "2 to 64 silos"),
            ({"protocol": "carrier pigeon"}, "unknown protocol"),
            ({"n": 2, "local": "paper"}, "triangles of 2 nodes"),
        ],
        ids=str,
    )
    def test_what_is_refused(self, change: dict[str, object], why: str) -> None:
        with pytest.raises(ArgumentError, match=why):
            self.plan(**change)

    def test_messages_are_about_the_whole_plan(self) -> None:
        """Whoever plans anything else cannot take part."""
        changes: list[dict[str, object]] = [
            {},
            {"query": "edges"},
            {"query": "kstars", "k": 2},
            {"query": "kstars", "k": 3},
            {"local": "paper"},
            {"split": (0.5, 0.1, 0.4)},
            {"epsilon": 2.0},
            {"collusion": 2},
            {"protocol": "clear"},
            {"n": 101},
            {"bound": 2.0},
        ]
        plans = [self.plan(**change) for change in changes]
        for message in ("degrees", "shown"):
            digests = {getattr(plan, message)(b"universe").digest for plan in plans}
            assert len(digests) == len(plans)
        assert plans[0].degrees(b"universe").digest != plans[0].degrees(b"other").digest
        assert plans[0].reports(b"x", 2.0).digest != plans[0].reports(b"y", 2.0).digest
        assert plans[0].reports(b"x", 2.0).digest != plans[0].reports(b"x", 3.0).digest


class TestShared:
    def shared(self, local: str = "gradient") -> tuple[FeatPlusTerms, Shared]:
        plan = tiny_plan("triangles", None, local, 3, CHANNELS[0])
        return plan, share(plan, graph(4, 21).graph, [[1, 0, 2, 9], [3, -4, 2, 1], [0, 5, 2, 9]])

    def test_what_is_shown_comes_back(self) -> None:
        for local in LOCAL_QUERIES:
            plan, shared = self.shared(local)
            again = Shared.read(plan, shared.content)
            assert again.graph == shared.graph
            assert again.owners.tolist() == [1, 2, 0, 0]
            assert again.bound == shared.bound
            assert (shared.bound > 0) == (local == "gradient")
            assert len(shared.content) == plan.shown(b"").length

    def test_a_given_bound_is_taken(self) -> None:
        plan = replace(self.shared()[0], bound=3.5)
        shared = share(plan, graph(4, 21).graph, [[1, 0, 2, 9]] * 3)
        assert shared.bound == 3.5
        other = replace(shared, bound=4.0)
        with pytest.raises(PayloadError, match="not the one agreed on"):
            Shared.read(plan, other.content)

    def test_owners_and_bound_do_not_look_at_the_release(self) -> None:
        degrees = [[1, 0, 2, 9], [3, -4, 2, 1], [0, 5, 2, 9]]
        for query, k, local in QUERIES:
            plan = tiny_plan(query, k, local, 3, CHANNELS[0])
            found = [share(plan, graph(4, noisy).graph, degrees) for noisy in all_graphs(4)]
            assert len({shared.bound for shared in found}) == 1
            assert len({shared.owners.tobytes() for shared in found}) == 1

    def test_what_makes_no_sense_is_refused(self) -> None:
        plan, shared = self.shared()
        for content in (shared.content[1:], shared.content + b"\0"):
            with pytest.raises(PayloadError, match="a release and its owners"):
                Shared.read(plan, content)
        for bound in (0.0, -1.0, math.inf, math.nan):
            with pytest.raises(PayloadError, match="positive, finite"):
                Shared.read(plan, replace(shared, bound=bound).content)
        owners = np.array([0, 1, 2, 3], dtype=np.uint8)
        with pytest.raises(PayloadError, match="not one of 3 silos"):
            Shared.read(plan, replace(shared, owners=owners).content)
        paper, shown = self.shared("paper")
        with pytest.raises(PayloadError, match="has no bound"):
            Shared.read(paper, replace(shown, bound=1.0).content)


class TestCombine:
    def test_what_each_part_bought(self) -> None:
        plan = tiny_plan("triangles", None, "gradient", 2, CHANNELS[0], bound=2.0)
        release = release_of(plan, 63)
        shared = Shared(graph(4, 63).graph, np.zeros(4, dtype=np.uint8), 2.0)
        unit = plan.unit(2.0)
        answer = combine(plan, release, shared, [STEPS, -STEPS // 2])
        own = release.triangles()
        assert answer.value == pytest.approx(own.value + float(unit) * STEPS / 2)
        laplace = math.sqrt(4) * float(unit * plan.noise.local_scale)
        assert answer.stderr == pytest.approx(math.hypot(own.stderr, laplace))
        assert answer.method == "feat+"
        assert answer.epsilon == plan.epsilon
        spent = answer.parameters["spent"]
        assert sum(spent.values()) == pytest.approx(3.0)
        assert list(spent) == ["release", "partition", "local"]
        assert answer.parameters["bought"]["local noise"] == pytest.approx(laplace)
        assert "ε2 = 0.3 owners of nodes" in answer.note
        assert answer.name == "triangles"
        assert answer.to_dict()["parameters"]["bought"]["bound"] == 2.0

    def test_paper_is_the_sum_of_the_reports(self) -> None:
        plan = tiny_plan("kstars", 2, "paper", 2, CHANNELS[0])
        shared = Shared(graph(4, 63).graph, np.zeros(4, dtype=np.uint8), 0.0)
        answer = combine(plan, release_of(plan, 63), shared, [3 * STEPS, STEPS])
        assert answer.value == pytest.approx(4 * float(plan.sensitivity(0.0)))
        assert answer.name == "kstars(k=2, local=paper)"

    def test_without_local_answers_it_is_feat(self) -> None:
        plan = replace(tiny_plan("edges", None, "gradient", 2, CHANNELS[0]))
        split = Split.of((1, 0, 0), 3.0)
        plan = replace(plan, noise=replace(plan.noise, split=split))
        release = release_of(plan, 11)
        answer = combine(plan, release, None, ())
        assert (answer.value, answer.stderr) == (release.edges().value, release.edges().stderr)
        assert "as in feat" in answer.note


def test_reports_of_whole_graphs(facebook: BitRows) -> None:
    """Where one silo holds and owns everything, the first-order error of the release is gone."""
    universe = NodeUniverse.range(facebook.n)
    whole = Silo.from_edges(universe, facebook.pairs())
    nothing = Silo.from_edges(universe, np.empty((0, 2), dtype=np.int64))
    channel = Channel.symmetric(3.0)
    plan = settle_featplus(
        "kstars", 2, "gradient", "paper", 3.0, 2, 1, "clear", facebook.n, 4e3, channel
    )
    release = Release.draw(whole, channel, 4)
    shared = Shared(release.graph, np.zeros(facebook.n, dtype=np.uint8), 4e3)
    reports = [local_report(plan, shared, silo, i) for i, silo in enumerate((whole, nothing))]
    assert reports[1] == 0
    corrected = release.kstars(2).value + float(plan.unit(4e3) * reports[0])
    # 2-stars of a release with every true edge known, computed from its weights.
    known = Fraction(0)
    own, noisy = facebook.degrees.tolist(), release.graph
    both = facebook.pairs()[noisy.at(facebook.pairs()) == 1]
    shared_ones = np.bincount(both.ravel().astype(np.int64), minlength=facebook.n)
    a, b = channel.alpha, channel.beta
    linear = 0.0
    for d, y, s in zip(own, noisy.degrees.tolist(), shared_ones.tolist(), strict=True):
        other = a * (y - s) + b * (facebook.n - 1 - d - (y - s))
        known += Fraction(d * (d - 1), 2) + d * other
        squares = a**2 * (y - s) + b**2 * (facebook.n - 1 - d - (y - s))
        known += (other**2 - squares) / 2
        # What is of second order in the edges has its sign turned.
        excess = (a - 1) * s + (b - 1) * (d - s)
        excess2 = (a - 1) ** 2 * s + (b - 1) ** 2 * (d - s)
        linear += float((excess**2 - excess2) / 2)
    assert corrected == pytest.approx(float(known) - linear, rel=1e-9)
