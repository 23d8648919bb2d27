"""Method ``sealed``: exact counts on the hidden union, opened only with noise.

What is opened depends on the query. If delta allows it, the noisy degrees can be opened first and
bound the noise of triangles and 2-stars. Whether they are, by which rule, and how the answers share
epsilon is what has the smallest expected error on a graph like the reference; it is chosen before
anything is drawn.
"""

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product
from string import ascii_lowercase, ascii_uppercase, digits
from typing import Any, cast, get_args

import numpy as np

from silograph.dp.loss import check_delta
from silograph.errors import ArgumentError, StudyError
from silograph.estimators.estimate import Estimate, Provenance
from silograph.estimators.groups import Groups
from silograph.estimators.reference import Reference, guess
from silograph.estimators.stars import square_root
from silograph.graph.fold import Layout
from silograph.graph.silo import Silo
from silograph.graph.universe import NodeUniverse
from silograph.messages.entropy import Entropy
from silograph.messages.identity import Identity, Roster
from silograph.messages.machine import CoordinatorSession, SiloSession
from silograph.methods.committee.rounds import MEMBERS
from silograph.methods.cost import Cost, sealed_cost
from silograph.methods.method import Outcome, SettledStudy, answered
from silograph.methods.prediction import Question
from silograph.methods.sealed.answer import SealedRelease
from silograph.methods.sealed.coordinator import SealedCoordinator
from silograph.methods.sealed.expected import expected_bound
from silograph.methods.sealed.folded import FOLDED_ANSWERS, SealedFoldedRelease
from silograph.methods.sealed.noise import NOISE_DELTA, Answer, Kind, Output, Rule, SealedNoise
from silograph.methods.sealed.party import SealedParty
from silograph.methods.sealed.rounds import (
    MOST_GROUPS,
    MOST_MATRIX_NODES,
    MOST_NODES,
    SealedParameters,
    SealedResult,
    check_matrix,
    member_cost,
)
from silograph.methods.sealed.stars import kstars_variance
from silograph.methods.study import COMMITTEE, LABELS, RELEASE, Option, Study, places_of
from silograph.methods.union import input_bits

__all__ = [
    "SEALED_QUERIES",
    "TRUST_NOTE",
    "ChosenNoise",
    "SettledSealed",
    "choose_noise",
    "expected_error",
    "group_options",
    "kind_of",
    "sealed_delta",
    "sealed_limit",
    "sealed_parameters",
    "sealed_release",
    "with_trust_note",
]


# --- What is opened, and with what noise ----------------------------------------------------------

#: The queries that this method answers.
SEALED_QUERIES = (
    "edges", "degrees", "degree_histogram", "kstars", "triangles", "clustering", "mixing",
)  # fmt: skip
#: The note of every sealed answer.
TRUST_NOTE = "assumes that of the committee's four members at most one is dishonest"
#: The least share of epsilon that a study may name.
_LEAST_SHARE = 0.0001
#: With noise of a larger standard deviation the law of a degree is too long to make a table of.
_WIDEST = 1e5
#: The shares of epsilon that are tried for the degrees.
_SHARES = (0.005, 0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.3, 0.5)


@dataclass(frozen=True)
class ChosenNoise:
    """The noise of a run and its expected error."""

    noise: SealedNoise
    error: float


def sealed_parameters(
    noise: SealedNoise,
    members: tuple[int, ...],
    subject: bytes,
    layout: Layout | None = None,
    groups: Groups | None = None,
) -> SealedParameters:
    """What the machines of a run agree on; with a layout, on folded nodes."""
    outputs = tuple(Output(answer, noise.drawn(answer)) for answer in noise.answers)
    labels, count = (b"", 0) if groups is None else (_bytes(groups), len(groups.names))
    return SealedParameters(
        noise.silos, members, noise.nodes, subject, outputs, layout=layout, labels=labels,
        groups=count,
    )  # fmt: skip


# --- A public partition in a study ----------------------------------------------------------------
#
# A study gives every node of the list a letter, in the order of the list, and every letter a name.
# Both are part of what is signed, so that all parties count the same cells.

_LETTERS = digits + ascii_uppercase + ascii_lowercase + "+-"
_NAMES = "group_names"


def group_options(groups: Groups) -> dict[str, Option]:
    """The options by which a study names a public partition.

    >>> group_options(Groups(("fr", "uk"), np.array([1, 0, 0], dtype=np.uint32)))
    {'groups': '100', 'group_names': '["fr","uk"]'}
    """
    if not 1 <= len(groups.names) <= MOST_GROUPS:
        raise ArgumentError(
            f"{len(groups.names):,} groups; sealed counts edges between at most {MOST_GROUPS}"
        )
    letters = np.frombuffer(_LETTERS.encode(), dtype=np.uint8)[groups.labels]
    return {LABELS: letters.tobytes().decode(), _NAMES: _names(groups.names)}


def _names(names: Sequence[str]) -> str:
    return json.dumps(list(names), separators=(",", ":"))


def _groups(study: Study) -> Groups | None:
    """The partition that a study names, checked before anything is computed from it."""
    given = {LABELS, _NAMES} & set(study.options)
    if len(given) != (2 if study.query == "mixing" else 0):
        raise StudyError("mixing needs the group of every node, and nothing else takes groups")
    if not given:
        return None
    text, named = str(study.options[LABELS]), str(study.options[_NAMES])
    try:
        names = json.loads(named)
    except (ValueError, RecursionError):
        names = None
    fine = isinstance(names, list) and all(
        isinstance(name, str) and name and name.isprintable() for name in names
    )
    if not fine or len(set(names)) != len(names) or _names(names) != named:
        raise StudyError(f"option {_NAMES} must be a list of different names")
    if not 1 <= len(names) <= MOST_GROUPS:
        raise StudyError(f"{len(names)} groups; there may be 1 to {MOST_GROUPS}")
    if len(text) != study.nodes or not set(text) <= set(_LETTERS[: len(names)]):
        raise StudyError("option groups must have a letter of a group for every node of the list")
    place = np.zeros(256, dtype=np.uint32)
    place[np.frombuffer(_LETTERS.encode(), dtype=np.uint8)] = np.arange(MOST_GROUPS)
    return Groups(tuple(names), place[np.frombuffer(text.encode(), dtype=np.uint8)])


def _bytes(groups: Groups) -> bytes:
    return groups.labels.astype(np.uint8).tobytes()


def sealed_delta(delta: float | None, noise: object = None) -> float:
    """The delta that is asked for: by default what the noise needs by itself.

    >>> sealed_delta(1e-9), sealed_delta(None, "shares"), sealed_delta(None) == 2**-60
    (1e-09, 0.0, True)
    """
    if delta is not None:
        return check_delta(delta)
    return 0.0 if noise == "shares" else NOISE_DELTA


def sealed_release(
    noise: SealedNoise,
    result: SealedResult,
    universe: NodeUniverse,
    run: str,
    groups: Groups | None = None,
) -> SealedRelease:
    """The release of a run: what was opened, with the law of its noise."""
    opened = result.values
    numbers = {name: int(x[0]) for name, x in opened.items() if name not in ("degrees", "mixing")}
    return SealedRelease(
        noise,
        universe.digest,
        Provenance("sealed", COMMITTEE, noise.silos, noise.collusion, run),
        noisy_degrees=opened.get("degrees"),
        noisy_mixing=opened.get("mixing"),
        universe=universe,
        groups=groups,
        **{f"noisy_{name}": number for name, number in numbers.items()},
    )


def with_trust_note(answer: Estimate[Any]) -> Estimate[Any]:
    """The answer with a note of what it assumes about the committee."""
    note = f"{answer.note}; {TRUST_NOTE}" if answer.note else TRUST_NOTE
    return replace(answer, note=note)


def sealed_limit(query: str) -> int:
    """The largest number of nodes for which this method answers the query."""
    return MOST_MATRIX_NODES if query in ("triangles", "clustering") else MOST_NODES


def kind_of(delta: float | None) -> Kind:
    """The kind of noise for a delta: shares where it is too small for committee noise."""
    return "committee" if delta is None or delta >= NOISE_DELTA else "shares"


@lru_cache(maxsize=64)
def choose_noise(
    reference: Reference, question: Question, kind: Kind | None = None, *, inside: bool = False
) -> ChosenNoise:
    """The noise with the smallest expected error; raises an error if there is none.

    Without a ``kind`` the question's delta decides: None is committee noise without bounds, and
    less than ``NOISE_DELTA`` is noise in shares. ``inside`` says that the coordinator is one of the
    four members.
    """
    if question.query not in SEALED_QUERIES:
        raise ArgumentError(f"sealed answers {', '.join(SEALED_QUERIES)}, not {question.query}")
    if question.query == "kstars" and question.k is None:
        raise ArgumentError("kstars needs k, and nothing else takes it")
    plans = [
        ChosenNoise(noise, expected_error(reference, question, noise))
        for noise in _candidates(reference, question, kind or kind_of(question.delta), inside)
    ]
    return min(plans, key=lambda plan: plan.error)


def _candidates(
    reference: Reference, question: Question, kind: Kind, inside: bool
) -> Iterator[SealedNoise]:
    """Every set of answers that determines the query, by every rule, at every share of the degrees.

    Where two counts share epsilon, they do so as is best for their ratio.
    """
    delta = NOISE_DELTA if question.delta is None else question.delta

    def choose(
        answers: tuple[Answer, ...], share: float = 0.1, rule: Rule | None = None
    ) -> SealedNoise:
        def with_share(triangles: float) -> SealedNoise:
            return SealedNoise.choose(
                question.epsilon, reference.nodes, question.silos, question.collusion, answers,
                delta=delta, degree_share=share, triangle_share=triangles, kind=kind, rule=rule,
                inside=inside,
            )  # fmt: skip

        noise = with_share(0.5)
        two = "triangles" in answers and "two_stars" in answers
        return with_share(_best_share(reference, noise)) if two else noise

    counts: tuple[Answer, ...] = ()
    match question.query:
        case "edges" | "mixing":
            yield choose((cast("Answer", question.query),))
            return
        case "triangles":
            yield choose(("triangles",))
            counts = ("triangles",)
        case "clustering":
            yield choose(("two_stars", "triangles"))
            for share in _SHARES:
                yield choose(("degrees", "triangles"), share)
            counts = ("two_stars", "triangles")
        case "kstars" if question.k == 2:
            yield choose(("degrees",))
            yield choose(("two_stars",))
            counts = ("two_stars",)
        case _:
            yield choose(("degrees",))
            return
    if kind == "shares" or not delta > NOISE_DELTA:
        return
    rules = get_args(Rule) if "triangles" in counts else get_args(Rule)[:1]
    for rule, share in product(rules, _SHARES):
        yield choose(("degrees", *counts), share, rule)
        if question.query == "clustering":
            yield choose(("degrees", "triangles"), share, rule)


def _best_share(reference: Reference, noise: SealedNoise) -> float:
    """The triangles' share of two counts' epsilon that makes their ratio's error smallest.

    If a and b are what the counts add to it at equal shares, a²/x² + b²/(1−x)² is least where
    x/(1−x) = (a/b)^(2/3).
    """
    if not reference.wedges:
        return 0.5
    ratio = float(reference.triangles / reference.wedges)
    triangles = _count_error(reference, noise, "triangles")
    stars = ratio * _count_error(reference, noise, "two_stars")
    if not triangles:  # too little noise for a float
        return 0.5
    share = 1 / (1 + math.pow(stars / triangles, 2 / 3))
    return round(min(max(share, 0.01), 0.99), 3)


def expected_error(reference: Reference, question: Question, noise: SealedNoise) -> float:
    """The standard deviation of the answer to the question, from a run with this noise."""
    query = question.query
    if query == "clustering":
        triangles, stars = _count_error(reference, noise, "triangles"), _stars(reference, noise, 2)
        if not reference.wedges:
            return math.inf
        ratio = 3 * float(reference.triangles / reference.wedges)
        return math.hypot(3 * triangles, ratio * stars) / float(reference.wedges)
    if query == "kstars":
        return _stars(reference, noise, question.k or 1)
    if query == "triangles":
        return _count_error(reference, noise, "triangles")
    if query == "edges" and "edges" not in noise.answers:
        return noise.law("degrees").summed(noise.nodes).stderr / 2
    return noise.law(cast("Answer", query if query in ("edges", "mixing") else "degrees")).stderr


def _stars(reference: Reference, noise: SealedNoise, k: int) -> float:
    if k == 2 and "two_stars" in noise.answers:
        return _count_error(reference, noise, "two_stars")
    return square_root(kstars_variance(reference.degrees.tolist(), noise.law("degrees"), k))


def _count_error(reference: Reference, noise: SealedNoise, answer: Answer) -> float:
    return noise.law(answer, expected_bound(reference, noise, answer)).stderr


# --- A study by the sealed method -----------------------------------------------------------------


class SettledSealed(SettledStudy):
    """Exact counts of the hidden union by a committee, opened with noise.

    Options: ``answers`` (separated by commas), ``noise`` (committee or shares), ``degree_share``,
    ``triangle_share``, and ``rule`` (largest or second) if the noise of counts is bounded by the
    degrees; for ``mixing`` the public partition (``groups`` and ``group_names``). The planner
    chooses those that the proposer leaves out. On folded nodes only ``answers`` and
    ``degree_share``, the loads' share of epsilon, have a use.
    """

    protocol = COMMITTEE
    what = "sealed"
    view = "coordinator + t members"
    assumes = TRUST_NOTE
    takes_delta = True
    options = frozenset(
        {"answers", "noise", "degree_share", "triangle_share", "rule", LABELS, _NAMES}
    )

    def __init__(self, study: Study) -> None:
        super().__init__(study)
        self._layout = study.index.layout if study.index.folded else None
        self._groups = _groups(study)
        if self._layout is None:
            _check(study)
            self.noise = self._on_pairs(study)
        else:
            _check_folded(study, self._layout)
            self.noise = SealedNoise.choose_folded(
                study.epsilon, self._layout.groups, self._layout.hubs, self.silos, study.collusion,
                _folded_answers(study), inside=_inside(study),
                degree_share=_share(study, "degree_share", _LOAD_SHARE),
            )  # fmt: skip
        self.losses, self.delta, self.views = self.noise.losses, self.noise.delta, self.noise.views
        # What no run could be made of is refused here, before anyone is asked or pays.
        members = tuple(range(MEMBERS))
        sealed_parameters(self.noise, members, study.subject, self._layout, self._groups)

    def _on_pairs(self, study: Study) -> SealedNoise:
        inside = _inside(study)
        noise = SealedNoise.choose(
            study.epsilon, study.nodes, self.silos, study.collusion, _answers(study),
            delta=study.delta, kind=_kind(study), rule=_rule(study), inside=inside,
            degree_share=_share(study, "degree_share", 0.1),
            triangle_share=_share(study, "triangle_share", 0.5),
        )  # fmt: skip
        opened = set(noise.answers)
        if "degree_share" in study.options and not _shares(noise):
            raise StudyError("degree_share needs counts besides degrees or edges")
        if "triangle_share" in study.options and not {"triangles", "two_stars"} <= opened:
            raise StudyError("triangle_share needs both triangles and two_stars")
        if study.query == "degree_histogram" and noise.law("degrees").stderr > _WIDEST:
            raise StudyError(f"epsilon {study.epsilon:g} is too small for a histogram: all noise")
        return noise

    @property
    def cost(self) -> Cost:
        """Traffic, time and memory with all parties on this machine."""
        nodes = self.study.nodes if self._layout is None else self._layout.rows
        triangles = "triangles" in self.noise.answers
        return sealed_cost(nodes, self.silos, self.upload, triangles=triangles)

    @property
    def upload(self) -> int:
        """The traffic of a member of the committee."""
        layout = self._layout
        nodes = self.study.nodes if layout is None else layout.rows
        return member_cost(nodes, self.silos, tuple(self.noise.answers), layout).up

    @property
    def folds(self) -> bool:
        """Whether folded nodes can be counted: the committee shares bits, whatever they are."""
        return True

    @classmethod
    def settled(cls, study: Study, like: Reference | None, owned: float | None) -> Study:
        """The study with the planner's answers and shares, if they are not given."""
        if study.index.folded:
            return _settled_folded(study)
        if "answers" in study.options or study.query == RELEASE:
            return study
        _check(study)
        question = Question(
            study.query, study.epsilon, len(study.silos), study.collusion, study.k, study.delta
        )
        kind = _kind(study) if "noise" in study.options else None
        like = like or guess(study.nodes)
        noise = choose_noise(like, question, kind, inside=_inside(study)).noise
        given: dict[str, Option] = {
            **study.options, "answers": ",".join(noise.answers), "noise": noise.kind
        }  # fmt: skip
        budgets, whole = noise.budgets, sum(noise.budgets.values())
        if _shares(noise):
            given["degree_share"] = float(budgets[noise.answers[0]] / whole)
        if {"triangles", "two_stars"} <= set(noise.answers):
            counts = budgets["triangles"] + budgets["two_stars"]
            given["triangle_share"] = float(budgets["triangles"] / counts)
        if noise.rule is not None:
            given["rule"] = noise.rule
            return replace(study, options=given)
        # What is not needed for a bound is not asked for.
        return replace(study, options=given, delta=NOISE_DELTA * (noise.kind == "committee"))

    def silo(
        self, roster: Roster, place: int, identity: Identity, entropy: Entropy, silo: Silo
    ) -> SiloSession:
        """Make a silo's session."""
        given = self._parameters(roster)
        bits = input_bits(silo, self.study.index, given.chunk_pairs)
        return SealedParty(given, roster, self.study.id, place, identity, entropy, bits)

    def helper(
        self, roster: Roster, place: int, identity: Identity, entropy: Entropy
    ) -> SiloSession:
        """Make the session of a helper, a member of the committee that has no edges."""
        given = self._parameters(roster)
        return SealedParty(given, roster, self.study.id, place, identity, entropy, None)

    def coordinator(
        self, roster: Roster, identity: Identity, entropy: Entropy
    ) -> CoordinatorSession[SealedResult]:
        """Make the coordinator's session."""
        given = self._parameters(roster)
        return SealedCoordinator(given, roster, self.study.id, identity, entropy)

    def _parameters(self, roster: Roster) -> SealedParameters:
        members = places_of(self.study.members, roster)
        subject = self.study.subject
        return sealed_parameters(self.noise, members, subject, self._layout, self._groups)

    def outcome(self, result: SealedResult, universe: NodeUniverse) -> Outcome:
        """The opened numbers, and their answer to the query."""
        release: SealedRelease | SealedFoldedRelease
        if self._layout is None:
            run, groups = self.study.run, self._groups
            release = sealed_release(self.noise, result, universe, run, groups)
        else:
            release = self._folded_release(self._layout, result, universe)
        found = answered(release, self.study)
        return Outcome(release, found.answer and with_trust_note(found.answer))

    def _folded_release(
        self, layout: Layout, result: SealedResult, universe: NodeUniverse
    ) -> SealedFoldedRelease:
        counts = {name: int(x[0]) for name, x in result.values.items() if name != "degrees"}
        return SealedFoldedRelease(
            self.noise, layout, self.study.nodes, universe.digest, self._provenance(),
            result.degrees, counts["edges"], counts.get("triangles"),
        )  # fmt: skip


def _check(study: Study) -> None:
    if study.protocol != COMMITTEE:
        raise StudyError(f"sealed counts in a committee; there is no protocol {study.protocol!r}")
    if study.query not in (*SEALED_QUERIES, RELEASE):
        raise StudyError(f"sealed answers {', '.join(SEALED_QUERIES)}, not {study.query}")
    # Check this first, before anything is planned for a graph with that many nodes.
    if study.query in ("triangles", "clustering"):
        check_matrix(study.nodes, len(study.silos), ("degrees", "triangles"))
    if study.nodes > MOST_NODES:
        raise StudyError(f"{study.nodes:,} nodes are too many to seal; the limit is {MOST_NODES:,}")


#: The loads' share of epsilon on folded nodes. Weights change slowly with them, but how uneven
#: loads are tells how large the error of folding may be.
_LOAD_SHARE = 0.1


def _check_folded(study: Study, layout: Layout) -> None:
    if study.protocol != COMMITTEE:
        raise StudyError(f"sealed counts in a committee; there is no protocol {study.protocol!r}")
    if study.query not in (*FOLDED_ANSWERS, RELEASE):
        raise StudyError(
            f"sealed answers {' and '.join(FOLDED_ANSWERS)} on folded nodes, not {study.query}"
        )
    if layout.sub != 1:
        raise StudyError("sealed counts on folded nodes with one sub-bucket for each sign")
    unused = set(study.options) - {"answers", "degree_share", "noise"}
    if unused:
        raise StudyError(f"sealed on folded nodes has no use for option {min(unused)!r}")
    if study.delta < NOISE_DELTA or _kind(study) != "committee":
        raise StudyError("sealed on folded nodes takes committee noise, which needs a small delta")
    most = MOST_MATRIX_NODES if "triangles" in _folded_answers(study) else MOST_NODES
    if layout.rows > most:
        raise StudyError(f"{layout.rows:,} rows are too many to seal; the limit is {most:,}")


def _folded_answers(study: Study) -> "list[Answer]":
    """What is opened on folded nodes: what the query needs, or what a release names."""
    fitting = ",".join(FOLDED_ANSWERS.get(study.query, FOLDED_ANSWERS["triangles"]))
    answers = str(study.options.get("answers", fitting))
    if study.query != RELEASE and answers != fitting:
        raise StudyError(f"{study.query} is answered by {fitting}, not by {answers}")
    names = answers.split(",")
    if not set(names) <= set(get_args(Answer)):
        raise StudyError(f"option answers must be of {', '.join(get_args(Answer))}")
    return cast("list[Answer]", names)


def _settled_folded(study: Study) -> Study:
    """The study with what would otherwise be the default written down."""
    given: dict[str, Option] = {
        "degree_share": _LOAD_SHARE, **study.options, "answers": ",".join(_folded_answers(study))
    }  # fmt: skip
    # No bound can fail, so more than the noise needs is not asked for.
    return replace(study, options=given, delta=NOISE_DELTA)


def _inside(study: Study) -> bool:
    """Whether the coordinator is one of the four members."""
    return any(member.kind == "coordinator" for member in study.members)


#: What may be opened to answer each query; the first is opened if the study does not say.
_OPENED: dict[str, tuple[str, ...]] = {
    "edges": ("edges", "degrees"),
    "mixing": ("mixing",),
    "degrees": ("degrees",),
    "degree_histogram": ("degrees",),
    "kstars": ("degrees",),
    "triangles": ("degrees,triangles", "triangles"),
    "clustering": ("degrees,triangles", "two_stars,triangles", "degrees,two_stars,triangles"),
}
_TWO_STARS = ("two_stars", "degrees,two_stars")


def _answers(study: Study) -> "list[Answer]":
    """What is opened: nothing but what the query needs, which is what a policy looks at."""
    fitting = _OPENED.get(study.query, ())
    if study.query == "kstars" and study.k == 2:
        fitting += _TWO_STARS
    answers = str(study.options.get("answers", fitting[0] if fitting else "degrees,triangles"))
    names = answers.split(",")
    if not set(names) <= set(get_args(Answer)):
        raise StudyError(f"option answers must be of {', '.join(get_args(Answer))}")
    if "mixing" in names and study.query != "mixing":
        raise StudyError("edges by groups are opened by query mixing alone")
    if fitting and answers not in fitting:
        raise StudyError(f"{study.query} is answered by {' or '.join(fitting)}, not by {answers}")
    return cast("list[Answer]", names)


def _share(study: Study, name: str, default: float) -> float:
    share = study.options.get(name, default)
    # A smaller share would be all noise, and long to compute.
    if not isinstance(share, float) or not _LEAST_SHARE <= share <= 1 - _LEAST_SHARE:
        raise StudyError(f"option {name} must be from {_LEAST_SHARE} to {1 - _LEAST_SHARE}")
    return share


def _shares(noise: SealedNoise) -> bool:
    """Whether degrees or edges take a share of epsilon besides counts."""
    first, *rest = noise.answers
    return bool(rest) and first in ("edges", "degrees")


def _kind(study: Study) -> Kind:
    kind = study.options.get("noise", kind_of(study.delta))
    if kind not in get_args(Kind):
        raise StudyError(f"option noise must be {' or '.join(get_args(Kind))}")
    return cast("Kind", kind)


def _rule(study: Study) -> Rule | None:
    rule = study.options.get("rule")
    if rule is not None and rule not in get_args(Rule):
        raise StudyError(f"option rule must be {' or '.join(get_args(Rule))}")
    return cast("Rule | None", rule)
