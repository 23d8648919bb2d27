"""Method ``feat+``: how epsilon is split, and how a study is settled, run and answered."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from silograph import _core
from silograph.dp.channel import Channel
from silograph.dp.loss import check_epsilon, worst_losses
from silograph.errors import ArgumentError, StudyError
from silograph.estimators.gradient import GRADIENTS
from silograph.estimators.reference import Reference, guess
from silograph.estimators.release import Release
from silograph.graph.bits import BitRows
from silograph.graph.silo import Silo
from silograph.graph.universe import NodeUniverse
from silograph.messages.entropy import Entropy
from silograph.messages.identity import Identity, Roster
from silograph.messages.machine import CoordinatorSession, SiloSession
from silograph.methods.cost import Cost, union_cost
from silograph.methods.featplus.answer import combine, local_report, share
from silograph.methods.featplus.machines import (
    FeatPlusCoordinator,
    FeatPlusHelper,
    FeatPlusResult,
    FeatPlusSilo,
)
from silograph.methods.featplus.noise import FeatPlusNoise, Local, Split, paper_sensitivity
from silograph.methods.featplus.rounds import FeatPlusTerms, check_bound
from silograph.methods.method import Outcome, SettledStudy, release_of, with_source
from silograph.methods.prediction import (
    Question,
    feat_error,
    gradient_error,
    paper_error,
    union_channel,
    wobble,
)
from silograph.methods.study import Option, Study, StudyMember
from silograph.methods.union import given_channel, settle_union

__all__ = ["LOCAL_QUERIES", "ChosenSplit", "SettledFeatPlus", "choose_split", "settle_featplus"]


# --- How ``feat+`` splits epsilon between the release, the partition and the local answers --------
#
# Local answers remove the noise of owned edges from the release and add their own Laplace noise.
# The partition and the local answers take their budget from the release. If edges are assigned to
# silos at random, this never pays: most of the noise comes from pairs that no silo holds. So the
# best split is often to give everything to the release, which is ``feat``.
_RELEASE = (0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.925, 0.95, 0.975)
#: The shares that are tried for the partition, out of what the release leaves.
_PARTITION = (0.02, 0.05, 0.1, 0.2, 0.35, 0.5)
_QUANTILES = (0.5, 0.75, 0.9, 0.95, 0.99, 1.0)
#: Local answers are used only if they reduce the predicted error below this factor.
_WORTH = 0.98


@dataclass(frozen=True)
class ChosenSplit:
    """A split, the bound of the gradients (None without local answers), and the expected error."""

    split: Split
    bound: float | None
    error: float


@lru_cache(maxsize=64)
def choose_split(
    reference: Reference,
    question: Question,
    protocol: str,
    local: str = "gradient",
    bound: float | None = None,
    worth: float = _WORTH,
) -> ChosenSplit:
    """The split with the smallest predicted error and, for ``gradient``, its bound.

    A given bound is kept. Both are fixed here, before the release is made, so that they cannot
    depend on it. Local answers are used only if their predicted error is below ``worth`` times that
    of the release alone; with ``worth`` infinite they are always used.
    """
    alone = feat_error(reference, question, protocol)
    found = (
        _paper(reference, question, protocol)
        if local == "paper"
        else _gradient(reference, question, protocol, bound)
    )
    best = min(found, key=lambda chosen: chosen.error)
    if best.error < alone * worth:
        return best
    return ChosenSplit(Split.of((1, 0, 0), question.epsilon), None, alone)


def _shares() -> Iterator[tuple[float, float, float]]:
    for release in _RELEASE:
        for part in _PARTITION:
            yield release, (1 - release) * part, (1 - release) * (1 - part)


def _paper(reference: Reference, question: Question, protocol: str) -> Iterator[ChosenSplit]:
    for shares in _shares():
        split = Split.of(shares, question.epsilon)
        yield ChosenSplit(split, None, paper_error(reference, question, protocol, split))


def _gradient(
    reference: Reference, question: Question, protocol: str, bound: float | None
) -> Iterator[ChosenSplit]:
    steps = reference.gradients(question.query, question.k)
    heights = np.quantile(steps, _QUANTILES).tolist() if len(steps) else [0.0]
    for shares in _shares():
        split = Split.of(shares, question.epsilon)
        channel = union_channel(protocol, split.release_epsilon, question.silos, question.collusion)
        margin = 2 * wobble(reference, question, channel.weights)
        for tried in (
            {max(height + margin, 1.0) for height in heights} if bound is None else {bound}
        ):
            error = gradient_error(reference, question, protocol, split, tried)
            yield ChosenSplit(split, tried, error)


# --- A study by feat+ -----------------------------------------------------------------------------


class SettledFeatPlus(SettledStudy):
    """A release at ε1, owners of nodes at ε2, and local answers at ε3.

    Options: ``local`` (gradient or paper), ``split`` (paper, or three numbers separated by commas)
    and ``bound`` (for gradient). The planner chooses the split if the proposer leaves it out.
    """

    options = frozenset({"local", "split", "bound", "channel"})

    def __init__(self, study: Study) -> None:
        super().__init__(study)
        self.plan = _plan(study, _split(study.options.get("split", "paper")))
        self.losses, self.views, self.advice = self.plan.losses, self.plan.views, self.plan.advice
        self.protocol = self.plan.union.protocol

    @property
    def cost(self) -> Cost:
        """Traffic, time and memory with all parties on this machine; the union is nearly all."""
        return union_cost(self.plan.union, self.study.nodes)

    @property
    def upload(self) -> int:
        """The union, and a number a node for the noisy degrees."""
        return union_cost(self.plan.union, self.study.nodes).sent + 8 * self.study.nodes

    @classmethod
    def settled(cls, study: Study, like: Reference | None, owned: float | None) -> Study:
        """The study with the planner's split and bound, if they are not given."""
        if study.options.get("split", "auto") != "auto":
            return study
        plan = _plan(study, "auto", like, owned)
        shares = plan.noise.split
        given: dict[str, Option] = {**study.options, "local": plan.local}
        given["split"] = ",".join(
            repr(float(share)) for share in (shares.release, shares.partition, shares.local)
        )
        if plan.bound is not None:
            given["bound"] = float(plan.bound)
        return replace(study, options=given)

    def silo(
        self, roster: Roster, place: int, identity: Identity, entropy: Entropy, silo: Silo
    ) -> SiloSession:
        """Make a silo's session, for the union and the parts after it."""
        of, run, subject = self.study, self.study.id, self.study.subject
        union = self.plan.union.silo(of.pairs, subject, roster, run, place, identity, entropy, silo)
        if not self.plan.answers_locally:
            return union
        return FeatPlusSilo(
            self.plan, subject, union, roster, run, place, identity, entropy, silo, local_report
        )

    def helper(
        self, roster: Roster, place: int, identity: Identity, entropy: Entropy
    ) -> SiloSession:
        """Make a helper's session: it takes part in the union alone."""
        of = self.study
        union = self.plan.union.helper(
            of.pairs, of.subject, roster, of.id, place, identity, entropy
        )
        if not self.plan.answers_locally:
            return union
        return FeatPlusHelper(self.plan, of.subject, union, roster, of.id, place)

    def coordinator(
        self, roster: Roster, identity: Identity, entropy: Entropy
    ) -> CoordinatorSession[FeatPlusResult] | CoordinatorSession[_core.OpenBits]:
        """Make the coordinator's session, for the union and the parts after it."""
        of, run, subject = self.study, self.study.id, self.study.subject
        union = self.plan.union.coordinator(of.pairs, subject, roster, run, identity, entropy)
        if not self.plan.answers_locally:
            return union
        return FeatPlusCoordinator(self.plan, subject, union, roster, run, identity, share)

    def outcome(self, result: FeatPlusResult | _core.OpenBits, universe: NodeUniverse) -> Outcome:
        """The release, and the answer from it and the local answers."""
        if not isinstance(result, FeatPlusResult):
            result = FeatPlusResult(BitRows(result.rows(self.study.nodes)), None, ())
        # The parties of the run also saw degrees and reports, so the release states that loss.
        release = release_of(
            self.plan.union, self._provenance(), result.graph, universe,
            self.views, worst_losses(self.losses),
        )  # fmt: skip
        answer = combine(self.plan, release, result.shared, result.reports)
        return Outcome(release, with_source(answer, release))


def _plan(
    study: Study,
    split: str | tuple[float, float, float],
    like: Reference | None = None,
    owned: float | None = None,
) -> FeatPlusTerms:
    local, bound = study.options.get("local", "gradient"), study.options.get("bound")
    if not isinstance(local, str) or isinstance(bound, str | bool):
        raise StudyError("option local must be a text, and bound a number")
    return settle_featplus(
        study.query, study.k, local, split, study.epsilon, len(study.silos), study.collusion,
        study.protocol, study.nodes, None if bound is None else float(bound),
        channel=given_channel(study), reference=like, owned=owned, members=study.members,
    )  # fmt: skip


def _split(given: Option) -> str | tuple[float, float, float]:
    if given == "paper":
        return "paper"
    try:
        release, partition, local = (float(part) for part in str(given).split(","))
    except ValueError:
        raise StudyError("option split must be paper, or three numbers with commas") from None
    return release, partition, local


#: The queries that each form of local answers supports.
LOCAL_QUERIES: dict[str, tuple[str, ...]] = {
    "gradient": tuple(GRADIENTS),
    "paper": ("kstars", "triangles"),
}


def settle_featplus(
    query: str,
    k: int | None,
    local: str,
    split: Split | str | tuple[float, float, float],
    epsilon: float,
    silos: int,
    collusion: int,
    protocol: str,
    n: int,
    bound: float | None = None,
    channel: Channel | None = None,
    reference: Reference | None = None,
    owned: float | None = None,
    members: tuple[StudyMember, ...] = (),
) -> FeatPlusTerms:
    """Choose all parameters of a run, or raise an error that says what is wrong.

    ``split`` is ``"auto"`` (the smallest error on a graph like the ``reference``), ``"paper"``
    (.45, .1, .45), or three numbers (ε1, ε2, ε3) that add up to epsilon or to 1. ``bound`` is κ of
    ``gradient``. A ``channel`` may be chosen for protocol ``clear``. All silos see the release, so
    collusion must be at least 1.
    """
    if local not in LOCAL_QUERIES:
        raise ArgumentError(f"unknown local answers {local!r}; choose from gradient, paper")
    if query not in LOCAL_QUERIES[local]:
        known = ", ".join(LOCAL_QUERIES[local])
        raise ArgumentError(f"feat+ with local={local!r} answers {known}, not {query}")
    Release.check_leaves(query, k, n)
    if bound is not None:
        if local != "gradient":
            raise ArgumentError("a bound is for local='gradient' only")
        check_bound(bound, ArgumentError)
    if split == "auto":
        asked = Question(query, check_epsilon(epsilon), silos, collusion, k, owned=owned)
        chosen = choose_split(reference or guess(n), asked, protocol, local, bound)
        split, bound = chosen.split, chosen.bound if chosen.split.answers_locally else bound
    shares = Split.of(split, epsilon)
    form: Local = "gradient" if local == "gradient" else "paper"
    noise = FeatPlusNoise(shares, silos, collusion, form)
    if protocol != "clear" and (collusion == 0 or protocol in _OPEN_TO_SILOS):
        raise ArgumentError(
            "feat+ shows the release to all silos: it needs collusion of at least 1, and a union "
            "that holds against silos (committee, masked or elgamal/blinded)"
        )
    union = settle_union(protocol, shares.release_epsilon, silos, collusion, channel, members)
    if form == "paper":
        paper_sensitivity(query, k, union.channel, n)
    losses = noise.losses(union.losses)
    views = noise.views(losses, drawn=union.noise is None)
    views += tuple(view for view in union.views if not view.claimed)
    return FeatPlusTerms(query, k, n, union, noise, bound, views, losses, union.advice)


_OPEN_TO_SILOS = ("elgamal/printed", "elgamal/replace")
