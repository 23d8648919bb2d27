"""A study by the sealed method."""

import math
from dataclasses import replace
from typing import cast, get_args

from silograph.crypto.identity import Identity
from silograph.errors import StudyError
from silograph.graph.silo import Silo
from silograph.graph.universe import NodeUniverse
from silograph.methods.plans import Outcome, StudyPlan, answered
from silograph.methods.prediction import Question
from silograph.methods.sealed import (
    SEALED_QUERIES,
    TRUST_NOTE,
    plan_sealed,
    sealed_parameters,
    sealed_release,
    with_trust_note,
)
from silograph.methods.study import RELEASE, Option, Study
from silograph.methods.union import bits_of
from silograph.privacy.loss import shown_loss
from silograph.privacy.sealed import Answer, Kind, SealedNoise
from silograph.protocol.entropy import Entropy
from silograph.protocol.machine import CoordinatorSession, SiloSession
from silograph.protocol.roster import Roster
from silograph.protocol.sealed import MOST_NODES, check_matrix
from silograph.protocol.sealed_answers import SealedResult
from silograph.protocol.sealed_dealer import SealedDealer
from silograph.protocol.sealed_silo import SealedSilo
from silograph.queries.outline import Outline
from silograph.queries.outline_sources import guess

__all__ = ["SealedStudyPlan"]


class SealedStudyPlan(StudyPlan):
    """Exact counting on the hidden union, opened with noise.

    The coordinator deals, honestly, and colludes with no silo. Options: ``answers`` (with commas),
    ``degree_share`` and ``noise`` (shared or each); the proposer may leave them to the planner.
    """

    protocol = "sealed"
    what = "sealed"
    view = "t silos + answers"
    assumes = TRUST_NOTE
    takes_delta = True
    options = frozenset({"answers", "degree_share", "noise"})

    def __init__(self, study: Study) -> None:
        super().__init__(study)
        _check(study)
        options = {"answers": "degrees,triangles", "degree_share": 0.1, **study.options}
        answers, share = str(options["answers"]).split(","), options["degree_share"]
        if not set(answers) <= set(get_args(Answer)) or not isinstance(share, float):
            raise StudyError("option answers names what is opened, and degree_share is a number")
        self.noise = SealedNoise.choose(
            study.epsilon, study.nodes, self.silos, study.collusion,
            cast("list[Answer]", answers), delta=study.delta, degree_share=share,
            kind=_kind(study),
        )  # fmt: skip
        if "degree_share" in study.options and not _shares(self.noise):
            raise StudyError("degree_share is for degrees or edges beside counts")
        self.losses, self.delta, self.views = self.noise.losses, self.noise.delta, self.noise.views
        self._parameters = sealed_parameters(self.noise, study.subject)
        beyond = [v for v in self.views if not v.claimed and math.isfinite(v.epsilon)]
        if beyond:
            loss = shown_loss(beyond[0].epsilon)
            self.advice = f"with collusion=0 one who holds {beyond[0].name} has a loss of {loss}"

    @classmethod
    def settled(cls, study: Study, like: Outline | None, owned: float | None) -> Study:
        """With what the planner would open, and at what share, where it is not given."""
        if "answers" in study.options or study.query == RELEASE:
            return study
        _check(study)
        question = Question(
            study.query, study.epsilon, len(study.silos), study.collusion, study.k, study.delta
        )
        noise = plan_sealed(like or guess(study.nodes), question, _kind(study)).noise
        given: dict[str, Option] = {**study.options, "answers": ",".join(noise.answers)}
        if _shares(noise):
            given["degree_share"] = float(noise.budgets[noise.answers[0]] / sum(
                noise.budgets.values()))  # fmt: skip
        return replace(study, options=given, delta=noise.delta)

    def silo(
        self, roster: Roster, place: int, identity: Identity, entropy: Entropy, silo: Silo
    ) -> SiloSession:
        """A silo."""
        given, run = self._parameters, self.study.id
        return SealedSilo(given, roster, run, place, identity, entropy, bits_of(silo, given))

    def coordinator(
        self, roster: Roster, identity: Identity, entropy: Entropy
    ) -> CoordinatorSession[SealedResult]:
        """The dealer."""
        return SealedDealer(self._parameters, roster, self.study.id, identity, entropy)

    def outcome(self, result: SealedResult, universe: NodeUniverse) -> Outcome:
        """The question, asked of what was opened."""
        release = sealed_release(self.noise, result, universe, self.study.run)
        found = answered(release, self.study)
        return Outcome(release, found.answer and with_trust_note(found.answer))


def _check(study: Study) -> None:
    if study.protocol not in ("", "sealed"):
        raise StudyError("method 'sealed' has no protocol to choose")
    if study.query not in (*SEALED_QUERIES, RELEASE):
        raise StudyError(f"sealed answers {', '.join(SEALED_QUERIES)}, not {study.query}")
    # Before anything is planned for a graph of so many nodes.
    if study.query in ("triangles", "clustering"):
        check_matrix(study.nodes, len(study.silos), ("degrees", "triangles"))
    if study.nodes > MOST_NODES:
        raise StudyError(f"{study.nodes:,} nodes are too many to seal; {MOST_NODES:,} at most")


def _shares(noise: SealedNoise) -> bool:
    """Whether degrees, or edges, have a part of epsilon beside counts."""
    first, *rest = noise.answers
    return bool(rest) and first in ("edges", "degrees")


def _kind(study: Study) -> Kind:
    kind = study.options.get("noise", "shared")
    if kind not in get_args(Kind):
        raise StudyError("option noise is shared or each")
    return cast("Kind", kind)
