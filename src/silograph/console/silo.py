"""The console of a silo or a helper: studies to decide, what they cost, and what they could show.

Nothing here reads edges. What a page says of a study follows from its proposal, from the policy and
from the ledger. Decisions go the way of ``silograph silo approve`` and ``refuse``.
"""

import asyncio
import math
import time
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any

from silograph.console.access import Person
from silograph.console.desk import MOST_PAST, Desk, asked, folded_words, moment, phases, shown_vote
from silograph.console.figures import Lineage, bar_of, lineages
from silograph.dp.loss import shown_loss
from silograph.errors import SilographError, StudyError
from silograph.ledger.book import Ledger
from silograph.ledger.entries import loss_at
from silograph.methods.catalogue import plan_study
from silograph.methods.forecast import USELESS, outlook
from silograph.methods.method import SettledStudy
from silograph.methods.study import Option, Study
from silograph.nats.preflight import Check, Preflight
from silograph.page.answer import observers
from silograph.page.result import shown_observer
from silograph.page.texts import method_told
from silograph.party.approval import ACCEPTED, Decided, Vote, decide, find_study
from silograph.party.config import HelperConfig, SiloConfig
from silograph.party.store import Run

__all__ = ["SiloDesk", "observed", "predicted"]

#: With more nodes than this, predicting an error takes longer than somebody waits for a page.
_MOST_NODES = 200_000


class SiloDesk(Desk):
    """A silo's or a helper's files."""

    pages = {  # noqa: RUF012
        "/": "Studies",
        "/budget": "Budget",
        "/trail": "Trail",
        "/roster": "Roster",
        "/health": "Health",
    }

    def __init__(
        self, config: SiloConfig | HelperConfig, clock: Callable[[], float] = time.time
    ) -> None:
        super().__init__(config, clock)
        self._own = config
        self._predicted: dict[str, dict[str, str] | None] = {}

    def _version(self) -> str:
        return ""

    def alive(self) -> str:
        """Whether the service is at work, in words; empty if it is."""
        return self._status()

    # -- studies -----------------------------------------------------------------------------

    def overview(self) -> dict[str, Any]:
        """All studies: those that wait for people first."""
        found, said = self.studies(), self.votes()
        waiting = [p for p in found if p[1].open and not p[1].decision]
        running = [p for p in found if p[1].open and p[1].decision]
        past = [p for p in found if not p[1].open]
        return {
            "waiting": [self._line(*pair, said) for pair in waiting],
            "running": [self._line(*pair, said) for pair in running],
            "past": [self._line(*pair, said) for pair in past[:MOST_PAST]],
            "older": max(len(past) - MOST_PAST, 0),
            "lineages": self.budget(),
        }

    def _line(self, study: Study, row: Run, said: list[Vote]) -> dict[str, Any]:
        return {
            "run": study.run,
            "query": asked(study),
            "method": study.how,
            "coordinator": study.coordinator,
            "purpose": study.purpose,
            "epsilon": shown_loss(study.epsilon),
            "deadline": moment(study.deadline),
            "late": study.deadline <= self.clock(),
            "decision": row.decision,
            "by": row.decided_by.replace(",", ", "),
            "phase": row.phase,
            "state": row.state,
            "code": row.code,
            "spent": row.spent,
            "votes": [shown_vote(vote) for vote in said if vote.run == study.run],
        }

    def study(self, run: str) -> dict[str, Any]:
        """Everything about one study that somebody who decides should know."""
        study, row = find_study(self.store, run)
        found = {
            **self._line(study, row, self.votes()),
            "wanted": self._own.policy.approvals if self._own.approvers else 0,
            "silos": study.silos,
            "members": [(member.name, member.kind) for member in study.members],
            "delta": shown_loss(study.delta) if study.delta else "",
            "collusion": study.collusion,
            "nodes": f"{study.nodes:,}" if study.nodes else "any, in the agreed form",
            "options": {name: _cut(value) for name, value in study.options.items()},
            "folded": folded_words(study),
            "digest": study.digest.hex(),
            "open": row.open,
            "waits": row.open and not row.decision,
            "trail": self.entries(study.run),
            "phases": phases(*self.milestones(study.run)),
            "sent": [(kind, count, size) for kind, count, size in self.store.left(study.run)],
            "refusal": "", "observers": [], "price": None, "predicted": None, "told": [],
        }  # fmt: skip
        try:
            settled = plan_study(study)
        except StudyError as error:
            return found | {"refusal": str(error)}
        folded = study.index.folded
        return found | {
            "observers": observed(settled),
            "price": self._price(settled, row),
            "predicted": self._error(settled),
            "told": method_told(study.method, settled.protocol, folded=folded),
        }

    def _price(self, settled: SettledStudy, row: Run) -> dict[str, Any] | None:
        """What a study costs, against what is left; None for a helper, who pays nothing."""
        if self.ledger is None or not isinstance(self._own, SiloConfig):
            return None
        lineage = self._own.data.lineage
        limit, spent = self.ledger.limit(lineage), self.ledger.spent(lineage)
        level = self._own.ledger.collusion if limit is None else limit.collusion
        _, epsilon = loss_at(settled.losses, level)
        before = spent.epsilon - (epsilon if row.spent else 0.0)
        most = self._own.ledger.epsilon if limit is None else limit.epsilon
        over = row.open and not row.spent and before + epsilon > most
        return {
            "lineage": lineage,
            "epsilon": shown_loss(epsilon),
            "delta": shown_loss(settled.delta) if settled.delta else "",
            "left": shown_loss(max(most - before, 0.0), left=True),
            "paid": row.spent,
            "bar": bar_of(max(before, 0.0), epsilon, most),
            "over": over,
            "level": level,
        }

    def _error(self, settled: SettledStudy) -> dict[str, str] | None:
        run = settled.study.run
        if run not in self._predicted:
            self._predicted[run] = predicted(settled)
        return self._predicted[run]

    def decide(
        self, person: Person, run: str, decision: str, reason: str, passphrase: str
    ) -> Decided:
        """Approve or refuse a study in a person's name."""
        refusal = self.may_sign(person)
        if refusal:
            raise StudyError(refusal)
        return decide(
            self.store, self.config.name, self._own.policy, self._own.approvers, run, decision,
            reason=reason, key=person.identity(passphrase), clock=self.clock,
        )  # fmt: skip

    def has_approved(self, person: Person, run: str) -> bool:
        """Whether a person's approval of a study is in the trail."""
        own = (run, person.public_or_empty)
        said = [vote for vote in self.votes() if (vote.run, vote.key) == own]
        return bool(said) and said[-1].decision == ACCEPTED

    # -- budget ------------------------------------------------------------------------------

    @property
    def ledger_path(self) -> Path | None:
        """The ledger's file; None for a helper."""
        return self._own.ledger.path if isinstance(self._own, SiloConfig) else None

    @cached_property
    def _ledger(self) -> Ledger | None:
        path = self.ledger_path
        return Ledger(path, create=False) if path is not None else None

    @property
    def ledger(self) -> Ledger | None:
        """The open ledger; None for a helper, and before the service has made it."""
        path = self.ledger_path
        return self._ledger if path is not None and path.exists() else None

    def budget(self) -> list[Lineage]:
        """The lineages of the ledger, in figures."""
        return [] if self.ledger is None else lineages(self.ledger, self.clock())

    def preflight(self) -> list[Check]:
        """The checks of ``silograph silo check``, except that nothing here reads edges."""
        made = Preflight(self._own, self.clock, data=False)
        asyncio.run(made.run())
        return [self.service_check(), *made.checks, self.verify()]

    def close(self) -> None:
        """Close the store and the ledger."""
        if "_ledger" in self.__dict__ and self._ledger is not None:
            self._ledger.close()
        super().close()


#: Of a longer option, such as the group of every node, a page shows the beginning.
_SHOWN = 200


def _cut(value: Option) -> Option:
    if not isinstance(value, str) or len(value) <= _SHOWN:
        return value
    return f"{value[:_SHOWN]}… ({len(value):,} characters)"


def observed(settled: SettledStudy) -> list[dict[str, Any]]:
    """Who could learn what from a study, as the page of its answer will say it."""
    return [shown_observer(each) for each in observers(settled.origin())]


def predicted(settled: SettledStudy) -> dict[str, str] | None:
    """The error that a study's answer will have on a graph of that size; None if nobody can tell.

    The graph is guessed from the number of nodes alone: no edge of this party has a part in it.
    """
    if settled.study.nodes > _MOST_NODES:
        return None
    try:
        found = outlook(settled)
    except SilographError:
        return None
    if found is None or not math.isfinite(found[0].error):
        return None
    option, reference = found
    return {
        "error": f"{option.error:,.4g}",
        "percent": option.percent,
        "count": f"{reference.count(settled.study.query, settled.study.k):,.4g}",
        "source": reference.source,
        "useless": "yes" if option.relative > USELESS else "",
    }
