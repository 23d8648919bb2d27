"""The console of a coordinator: ask a question with the planner at hand, and see answers arrive.

A study that is proposed here is carried by a process of its own, as by ``silograph study watch``.
It does not end with the console.
"""

import math
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from silograph.console.access import FORGERY, Person
from silograph.console.desk import MOST_PAST, Desk, asked, folded_words, moment, phases, shown_vote
from silograph.console.silo import observed
from silograph.dp.loss import shown_loss
from silograph.errors import ArgumentError, SilographError, StudyError
from silograph.estimators.estimate import number
from silograph.graph.fold import Fold
from silograph.graph.universe import NodeUniverse
from silograph.methods.catalogue import METHODS, QUERIES, TRUST, plan_study
from silograph.methods.committee.rounds import MEMBERS
from silograph.methods.cost import size_text
from silograph.methods.planner import PLANNED, plan
from silograph.methods.planner import Option as Way
from silograph.methods.study import PROTOCOLS, RELEASE, Option, Study, option_value
from silograph.nats.coordinator import CoordinatorService, Question
from silograph.nats.health import UNANSWERED, StudyProgress
from silograph.page import result_page
from silograph.party.config import CoordinatorConfig
from silograph.party.store import Run

__all__ = ["CoordinatorDesk", "Draft"]

#: How phases of a party look that are not those of a study that goes well.
_KINDS = {"asked": "", "undecided": "half", "refused": "bad", "aborted": "bad"}
#: With more nodes than this, a plan takes longer than somebody waits for a page.
_MOST_NODES = 1_000_000
_MOST_MINUTES = 7 * 24 * 60
_HUB_NOTE = "noisy sums of degrees: the form of a study with folded nodes takes its hubs from them"
#: Fields of the form that are no part of a draft.
_NOT_KEPT = frozenset({FORGERY, "passphrase", "take"})
#: Fields that an option of the plan fills, in the order of its button's value.
_TAKEN = ("method", "protocol", "fold", "options")


@dataclass(frozen=True)
class Draft:
    """A proposal as it stands in the form, and what is wrong with it."""

    fields: Mapping[str, str]
    problems: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, form: Mapping[str, str]) -> "Draft":
        """The draft of a form; a button of the plan that was pressed sets how it is answered."""
        fields = {name: value for name, value in form.items() if name not in _NOT_KEPT}
        if "take" in form:
            fields |= zip(_TAKEN, form["take"].split("|"), strict=False)
        return cls(fields)

    def text(self, name: str, default: str = "") -> str:
        """A field without space around it."""
        return self.fields.get(name, default).strip()

    def number(self, name: str, default: float | None = None) -> float | None:
        """A field that holds a number; a text that is none is a problem."""
        text = self.text(name).replace(",", ".")
        if not text:
            return default
        try:
            found = float(text)
        except ValueError:
            found = math.nan
        if math.isfinite(found):
            return found
        self.problems.append(f"{name} is not a number")
        return default

    def whole(self, name: str, default: int | None = None) -> int | None:
        """A field that holds a whole number."""
        found = self.number(name)
        if found is None:
            return default
        if found != int(found):
            self.problems.append(f"{name} is not a whole number")
            return default
        return int(found)

    def silos(self, known: Sequence[str]) -> tuple[str, ...]:
        """The silos that take part: those that are ticked, or all."""
        asked = {name for name in self.text("silos").split(",") if name}
        return tuple(name for name in known if not asked or name in asked)

    def fold(self, hubs: Sequence[str] | None) -> Fold | None:
        """How nodes are folded, as ``--fold`` says it, with a list of hubs if there is one."""
        text = self.text("fold")
        if not text and hubs is not None:
            raise ArgumentError("hubs are for folded nodes: say into how many groups")
        return Fold.parse(text, hubs) if text else None

    def question(self, hubs: Sequence[str] | None = None) -> Question:
        """What is asked for, in the coordinator's terms."""
        epsilon = self.number("epsilon")
        if epsilon is None:
            self.problems.append("epsilon is missing")
        options: dict[str, Option] = {}
        for word in self.text("options").split():
            name, equals, value = word.partition("=")
            if not equals or name in options:
                self.problems.append(f"{word}: an option is name=value, with each name once")
            options[name] = option_value(value)
        asked, members = (
            tuple(name.strip() for name in self.text(field).split(",") if name.strip())
            for field in ("silos", "members")
        )
        purpose = self.text("purpose").replace("\r\n", "\n")  # as browsers send it
        made = Question(
            self.text("query"), epsilon or 0.0, self.text("method", "feat") or "feat",
            self.text("protocol") or None, self.whole("k"), self.number("delta"),
            self.whole("collusion", 1) or 0, asked, options, purpose, members, self.fold(hubs),
        )  # fmt: skip
        if self.problems:
            raise ArgumentError("; ".join(self.problems))
        return made


class CoordinatorDesk(Desk):
    """A coordinator's files."""

    pages = {  # noqa: RUF012
        "/": "Studies",
        "/propose": "Propose",
        "/trail": "Trail",
        "/roster": "Roster",
        "/health": "Health",
    }

    def __init__(self, config: CoordinatorConfig, clock: Callable[[], float] = time.time) -> None:
        super().__init__(config, clock)
        self._own = config
        self._service = CoordinatorService(config, clock=clock)
        self._carriers: dict[str, subprocess.Popen[bytes]] = {}
        #: Answers of studies that are done, which do not change, by run.
        self._answers: dict[str, dict[str, str] | None] = {}

    def close(self) -> None:
        """Close the files. Studies go on in their own processes."""
        self._service.close()
        super().close()

    def alive(self) -> str:
        """A coordinator has no service that must always run."""
        return ""

    def _version(self) -> str:
        self._carriers = {run: c for run, c in self._carriers.items() if c.poll() is None}
        runs = [run.run for run in self.store.runs(ended=False)]
        rows = [(self._carried(run), self._service.progress(run)) for run in runs]
        # Without the clocks of a progress: those are others every time.
        return repr([(c, p and (p.phase, p.done, p.total, p.silos)) for c, p in rows])

    # -- asking ------------------------------------------------------------------------------

    def form(self, draft: Draft) -> dict[str, Any]:
        """What the form can be filled with, and the planner's view of what it asks."""
        roster, universe = self._service.party.roster, self._service.party.universe
        names = [silo.name for silo in roster.silos]
        return {
            "fields": draft.fields,
            "queries": [*QUERIES, RELEASE],
            "methods": list(METHODS),
            "protocols": [p for p in PROTOCOLS if p != "clear"],
            "silos": names,
            "chosen": draft.silos(names),
            "nodes": f"{universe.size:,}" if universe.size else "",
            "searches": [
                (study.run, f"{study.run[:12]}, {moment(study.deadline)[:10]}")
                for study, row in self.studies()
                if study.method == "hubs" and row.state == "done"
            ],
            "plan": self._plan(draft, names),
        }

    def _plan(self, draft: Draft, names: Sequence[str]) -> dict[str, Any] | None:
        """All ways to answer, by error; with a reason where there are none."""
        query, epsilon = draft.text("query"), draft.number("epsilon")
        nodes = self._service.party.universe.size or draft.whole("nodes")
        if not query or epsilon is None or not nodes:
            return None
        if nodes > _MOST_NODES:
            return {
                "refusal": f"More than {_MOST_NODES:,} nodes are for silograph plan: it is slow."
            }
        if query not in PLANNED:
            return {"refusal": "For this question there is no formula that predicts the error."}
        silos = len(draft.silos(names))
        helped = 0 < MEMBERS - silos <= len(self._service.party.roster.helpers)
        try:
            found = plan(
                query, epsilon=epsilon, silos=silos, nodes=nodes, edges=draft.number("edges"),
                k=draft.whole("k"), delta=draft.number("delta"),
                collusion=draft.whole("collusion", 1) or 0, trust=("helpers",) if helped else (),
            )  # fmt: skip
        except SilographError as error:
            return {"refusal": str(error)}
        best = found.best
        return {
            "refusal": "",
            "warning": found.warning,
            "remarks": found.remarks,
            "count": f"{found.count:,.4g}",
            "source": found.source,
            "options": [
                {
                    "label": option.label,
                    "method": option.method,
                    "protocol": option.protocol,
                    "error": f"{option.error:,.4g}",
                    "percent": option.percent,
                    "width": round(100 * min(option.relative, 1.0), 2),
                    "kind": "good" if option.relative < 0.1
                    else "half" if option.relative < 0.5 else "bad",
                    "needs": [TRUST[need] for need in sorted(option.needs)],
                    "assumes": option.assumes,
                    "cost": "" if option.cost is None else str(option.cost),
                    "note": option.note,
                    "best": option is best,
                    "take": _take(option),
                }
                for option in found.options
            ],
        }  # fmt: skip

    def propose(self, person: Person, draft: Draft, passphrase: str) -> str:
        """Propose a study in a person's name, and begin to carry it; returns its run."""
        refusal = self.may_sign(person)
        if refusal:
            raise StudyError(refusal)
        question = draft.question(self._hubs(draft))
        minutes = draft.number("minutes", 60.0) or 0.0
        if not 0 < minutes <= _MOST_MINUTES or draft.problems:
            raise ArgumentError("; ".join(draft.problems) or "minutes: at most a week")
        with self._acting() as service:
            settled = service.propose(question, 60 * minutes, person.identity(passphrase))
        self.carry(settled.study.run)
        return settled.study.run

    def _hubs(self, draft: Draft) -> tuple[str, ...] | None:
        """The hubs of a draft: those that a study found, or a public list; None without."""
        search = draft.text("search")
        if not search:
            lines = draft.text("hubs").splitlines()
            return tuple(line.strip() for line in lines if line.strip()) or None
        table = str(self._service.result(search)["release"])
        if not table.endswith("hubs.csv"):
            raise ArgumentError(f"study {search[:12]} is no hub search")
        return NodeUniverse.from_file(table, column=0).ids

    def abort(self, person: Person, run: str, reason: str, passphrase: str) -> None:
        """End a study for all parties, in a person's name."""
        refusal = self.may_sign(person)
        if refusal:
            raise StudyError(refusal)
        with self._acting() as service:
            service.request_abort(run, person.identity(passphrase), reason)
        self.carry(run)

    def carry(self, run: str) -> None:
        """Carry a study in a process of its own, unless one does."""
        run = self._service.find(run)[0].run
        if self._carried(run):
            return
        command = [sys.executable, "-m", "silograph", "study", "watch", run, "--json"]
        self._carriers[run] = subprocess.Popen(  # noqa: S603 - our own program and arguments
            [*command, "--config", str(self.config.file)], stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip

    def _carried(self, run: str) -> bool:
        """Whether a process carries a study, or is about to."""
        started = self._carriers.get(run)
        return self._service.carried(run) or (started is not None and started.poll() is None)

    @contextmanager
    def _acting(self) -> Iterator[CoordinatorService]:
        """The service as a command would open it: with the roster as it is now."""
        service = CoordinatorService(self._own, clock=self.clock)
        try:
            yield service
        finally:
            service.close()

    # -- looking -----------------------------------------------------------------------------

    def overview(self) -> dict[str, Any]:
        """All studies, those that are under way first."""
        found = self.studies()
        past = [pair for pair in found if not pair[1].open]
        return {
            "running": [self._line(*pair) for pair in found if pair[1].open],
            "past": [self._line(*pair) for pair in past[:MOST_PAST]],
            "older": max(len(past) - MOST_PAST, 0),
        }

    def _line(self, study: Study, row: Run) -> dict[str, Any]:
        progress = self._service.progress(study.run) if row.open else None
        return {
            "run": study.run,
            "query": asked(study),
            "method": study.how,
            "purpose": study.purpose,
            "epsilon": shown_loss(study.epsilon),
            "deadline": moment(study.deadline),
            "state": row.state,
            "code": row.code,
            "open": row.open,
            "answer": self._answer(study, row),
            "progress": None if progress is None else _progress(progress, row.state),
        }

    def _answer(self, study: Study, row: Run) -> dict[str, str] | None:
        """The answer in one line; None if there is none."""
        if row.state != "done":
            return None
        if row.run not in self._answers:
            self._answers[row.run] = self._read_answer(study, row)
        return self._answers[row.run]

    def _read_answer(self, study: Study, row: Run) -> dict[str, str] | None:
        try:
            answer = self._service.result(row.run)["answer"]
        except (SilographError, ValueError, KeyError):
            return None
        if answer is None:
            what = ("a table of nodes", _HUB_NOTE) if study.method == "hubs" else ("a release", "")
            return {"value": what[0], "error": "", "interval": "", "note": what[1]}
        if isinstance(answer["value"], list):
            many = f"{len(answer['value']):,} values"
            return {"value": many, "error": "", "interval": "", "note": answer["note"]}
        low, high = (_shown(end) for end in answer["interval"])
        return {
            "value": _shown(answer["value"]),
            "error": _shown(answer["stderr"]),
            "interval": f"{low} … {high}",
            "note": answer["note"],
        }

    def study(self, run: str) -> dict[str, Any]:
        """Everything about one study."""
        study, row = self._service.find(run)
        progress = self._service.progress(study.run)
        found = {
            **self._line(study, row),
            "silos": study.silos,
            "members": [(member.name, member.kind) for member in study.members],
            "delta": shown_loss(study.delta) if study.delta else "",
            "collusion": study.collusion,
            "folded": folded_words(study),
            "digest": study.digest.hex(),
            "ending": row.open and row.decision == "abort",
            "carried": self._carried(study.run),
            "progress": None if progress is None else _progress(progress, row.state),
            "votes": [shown_vote(vote) for vote in self.votes() if vote.run == study.run],
            "trail": self.entries(study.run),
            "phases": phases(
                [] if progress is None else progress.history, self.milestones(study.run)[1]
            ),
            "page": self._has_page(row),
            "took": self._took(row),
            "observers": [],
        }  # fmt: skip
        try:
            return found | {"observers": observed(plan_study(study))}
        except StudyError:
            return found

    def _took(self, row: Run) -> str:
        if row.state != "done":
            return ""
        try:
            kept = self._service.result(row.run)
            size = kept["bytes"]["received"] + kept["bytes"]["sent"]
            return f"{kept['seconds']:.1f} s, {size_text(size)}"
        except (SilographError, ValueError, KeyError):
            return ""

    def _has_page(self, row: Run) -> bool:
        """Whether a study has left an answer or a release to make a page of."""
        try:
            kept = self._service.result(row.run) if row.state == "done" else {"answer": None}
            return kept["answer"] is not None or str(kept.get("release")).endswith(".release")
        except (SilographError, ValueError, KeyError):
            return False

    def page(self, run: str) -> str:
        """The page of a study's answer, as ``silograph study result --html`` writes it."""
        return result_page(self._service.answer(run))


def _take(option: Way) -> str:
    """What the button of an option fills into the form."""
    protocol = "" if option.protocol == "reports" else option.protocol
    fold, chosen = option.arguments.get("fold"), ""
    if fold is not None:
        chosen = f"{fold.layout.groups},{fold.layout.hubs},{fold.sub}"
    paper = "local=paper split=paper" if option.arguments.get("local") == "paper" else ""
    return "|".join((option.method, protocol, chosen, paper))


def _shown(value: object) -> str:
    """A number as the page of an answer shows it; what is none is a dash."""
    return number(float(value)).replace("-", "−") if isinstance(value, int | float) else "–"


def _progress(progress: StudyProgress, state: str) -> dict[str, Any]:
    """How far each party is; in a study that is done, all are."""
    share = progress.done / progress.total if progress.total else 0.0
    if state == "done":
        share = 1.0
        for silo in progress.silos:
            silo.phase = "done"
    answered = sum(silo.phase not in UNANSWERED for silo in progress.silos)
    return {
        "phase": progress.phase,
        "percent": round(100 * share, 1),
        "answered": answered,
        "of": len(progress.silos),
        "silos": [
            {
                "name": silo.name,
                "phase": silo.phase,
                "kind": _KINDS.get(silo.phase, "good"),
                "messages": f"{silo.messages:,}",
                "size": size_text(silo.bytes),
            }
            for silo in progress.silos
        ],
    }
