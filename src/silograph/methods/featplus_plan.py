"""A study by feat+."""

from dataclasses import replace

from silograph.crypto.identity import Identity
from silograph.errors import ArgumentError, StudyError
from silograph.graph.silo import Silo
from silograph.graph.universe import NodeUniverse
from silograph.methods.featplus import combine, local_report, share
from silograph.methods.featplus_rounds import FeatPlusPlan, check_bound
from silograph.methods.featplus_sessions import (
    FeatPlusCoordinatorSession,
    FeatPlusResult,
    FeatPlusSiloSession,
)
from silograph.methods.plans import Outcome, StudyPlan, given_channel, release_of, with_source
from silograph.methods.prediction import Question
from silograph.methods.split import choose_split
from silograph.methods.study import Option, Study
from silograph.methods.union import plan_union
from silograph.privacy.channel import Channel
from silograph.privacy.featplus import (
    FeatPlusNoise,
    Local,
    Split,
    paper_sensitivity,
)
from silograph.privacy.loss import check_epsilon, worst_losses
from silograph.protocol.entropy import Entropy
from silograph.protocol.machine import CoordinatorSession, SiloSession
from silograph.protocol.roster import Roster
from silograph.queries.gradient import GRADIENTS
from silograph.queries.outline import Outline
from silograph.queries.outline_sources import guess
from silograph.queries.release import Release

__all__ = ["FeatPlusStudyPlan", "LOCAL_QUERIES", "plan_featplus"]


class FeatPlusStudyPlan(StudyPlan):
    """A release at ε1, owners of nodes at ε2, local answers at ε3.

    Options: ``local`` (gradient or paper), ``split`` (paper, or three numbers with commas between
    them), ``bound`` (of gradient). The proposer may leave the split to the planner.
    """

    options = frozenset({"local", "split", "bound", "channel"})

    def __init__(self, study: Study) -> None:
        super().__init__(study)
        self.plan = _plan(study, _split(study.options.get("split", "paper")))
        self.losses, self.views, self.advice = self.plan.losses, self.plan.views, self.plan.advice
        self.protocol = self.plan.union.protocol

    @classmethod
    def settled(cls, study: Study, like: Outline | None, owned: float | None) -> Study:
        """With the planner's split and bound, where none are given."""
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
        """A silo in the union, and after it."""
        of, run, subject = self.study, self.study.id, self.study.subject
        union = self.plan.union.silo(of.pairs, subject, roster, run, place, identity, entropy, silo)
        if not self.plan.answers_locally:
            return union
        return FeatPlusSiloSession(
            self.plan, subject, union, roster, run, place, identity, entropy, silo, local_report
        )

    def coordinator(
        self, roster: Roster, identity: Identity, entropy: Entropy
    ) -> CoordinatorSession[FeatPlusResult | bytes]:
        """The coordinator of the union, and after it."""
        of, run, subject = self.study, self.study.id, self.study.subject
        union = self.plan.union.coordinator(of.pairs, subject, roster, run, identity, entropy)
        if not self.plan.answers_locally:
            return union
        return FeatPlusCoordinatorSession(self.plan, subject, union, roster, run, identity, share)

    def outcome(self, result: FeatPlusResult | bytes, universe: NodeUniverse) -> Outcome:
        """The release and the local answers together."""
        if isinstance(result, bytes):
            result = FeatPlusResult(result, None, ())
        # Whoever had a part in the run saw degrees and reports too: the release says so.
        release = release_of(
            self.plan.union, self._provenance(), result.triangle, universe,
            self.views, worst_losses(self.losses),
        )  # fmt: skip
        answer = combine(self.plan, release, result.shared, result.reports)
        return Outcome(release, with_source(answer, release))


def _plan(
    study: Study,
    split: str | tuple[float, float, float],
    like: Outline | None = None,
    owned: float | None = None,
) -> FeatPlusPlan:
    local, bound = study.options.get("local", "gradient"), study.options.get("bound")
    if not isinstance(local, str) or isinstance(bound, str | bool):
        raise StudyError("option local is a text, and bound a number")
    return plan_featplus(
        study.query, study.k, local, split, study.epsilon, len(study.silos), study.collusion,
        study.protocol, study.nodes, None if bound is None else float(bound),
        channel=given_channel(study), outline=like, owned=owned,
    )  # fmt: skip


def _split(given: Option) -> str | tuple[float, float, float]:
    if given == "paper":
        return "paper"
    try:
        release, partition, local = (float(part) for part in str(given).split(","))
    except ValueError:
        raise StudyError("option split is paper, or three numbers with commas") from None
    return release, partition, local


#: What each form of local answers can be asked.
LOCAL_QUERIES: dict[str, tuple[str, ...]] = {
    "gradient": tuple(GRADIENTS),
    "paper": ("kstars", "triangles"),
}


def plan_featplus(
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
    outline: Outline | None = None,
    owned: float | None = None,
) -> FeatPlusPlan:
    """Choose all parameters of a run, or say what is wrong with the request.

    ``split`` is ``"auto"`` (the least error on a graph like the ``outline``), ``"paper"`` (.45, .1,
    .45), or three numbers (ε1, ε2, ε3) that add up to epsilon or to 1. ``bound`` is κ of
    ``gradient``; a ``channel`` may be chosen for protocol ``clear``. The release is shown to all
    silos, so that collusion is at least 1.
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
        chosen = choose_split(outline or guess(n), asked, protocol, local, bound)
        split, bound = chosen.split, chosen.bound if chosen.split.answers_locally else bound
    shares = Split.of(split, epsilon)
    form: Local = "gradient" if local == "gradient" else "paper"
    noise = FeatPlusNoise(shares, silos, collusion, form)
    if protocol != "clear" and (collusion == 0 or protocol in _OPEN_TO_SILOS):
        raise ArgumentError(
            "feat+ shows the release to all silos: it needs collusion of at least 1, and a union "
            "that holds against silos (masked or elgamal/blinded)"
        )
    union = plan_union(protocol, shares.release_epsilon, silos, collusion, channel)
    if form == "paper":
        paper_sensitivity(query, k, union.channel, n)
    losses = noise.losses(union.losses)
    views = noise.views(losses, drawn=union.noise is None)
    return FeatPlusPlan(query, k, n, union, noise, bound, views, losses, union.advice)


_OPEN_TO_SILOS = ("elgamal/printed", "elgamal/replace")
