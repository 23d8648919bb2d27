"""Sessions of feat+: a union, noisy degrees, what all silos are shown, noisy local answers.

The messages of each part are bound to parameters of its own, and those of the last to what was
shown; the whole cost is paid before the first. A plan that gives all of epsilon to the release has
no such parts, and the union's own sessions carry it.
"""

from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass

from silograph.errors import OrderError
from silograph.graph.bits import BitRows, PairBits
from silograph.graph.silo import Silo
from silograph.messages.entropy import Entropy
from silograph.messages.envelope import Binding, Envelope, Outgoing, peek
from silograph.messages.identity import Identity, Roster
from silograph.messages.machine import CoordinatorSession, SiloSession
from silograph.methods.featplus import noisy_vectors, shared_view
from silograph.methods.featplus.noisy_vectors import NUMBER_BYTES, VectorCoordinator, VectorSilo
from silograph.methods.featplus.rounds import FeatPlusTerms, Shared
from silograph.methods.featplus.shared_view import SharedViewCoordinator, SharedViewSilo

__all__ = ["FeatPlusCoordinator", "FeatPlusResult", "FeatPlusSilo"]


def _is_report(message: Envelope) -> bool:
    """Of numbers: degrees are one a node, a report is one alone."""
    return message.round == "numbers" and len(message.payload) == NUMBER_BYTES


#: A silo's exact report in units, from the plan, what it was shown, its edges and its place.
LocalAnswer = Callable[[FeatPlusTerms, Shared, Silo, int], int]
#: What all silos are shown, from the plan, the release and all silos' noisy degrees.
Share = Callable[[FeatPlusTerms, BitRows, Sequence[Sequence[int]]], Shared]


class FeatPlusSilo(SiloSession):
    """A silo in feat+; ``union`` is its session in the union, ``answer`` counts its report."""

    def __init__(
        self,
        plan: FeatPlusTerms,
        subject: bytes,
        union: SiloSession,
        roster: Roster,
        run: bytes,
        place: int,
        identity: Identity,
        entropy: Entropy,
        silo: Silo,
        answer: LocalAnswer,
    ) -> None:
        self._plan, self._union, self._silo, self._place = plan, union, silo, place
        self._answer = answer
        self._party = (roster, run, place, identity)
        degrees, shown = plan.degrees(subject), plan.shown(subject)
        self._degrees = VectorSilo(degrees, *self._party, entropy)
        self._shown = SharedViewSilo(shown, *self._party)
        self._entropy = entropy
        # Counted now: between the last chunk and its degrees the time would show a silo's edges.
        self._counted: list[int] = PairBits.of(silo).degrees.tolist()
        self._report: VectorSilo | None = None
        own = tuple(Binding(run, part.digest, roster) for part in (degrees, shown))
        self.bindings = (*union.bindings, *own)

    def start(self) -> list[Outgoing]:
        """The union's first message."""
        return self._union.start()

    def receive(self, raw: bytes) -> list[Outgoing]:
        """A message of the union, a piece of what is shown, or all silos' signatures on it."""
        # What is shown may come before our degrees are sent (again, after a restart): local answers
        # are protected for every content, and wait for the degrees.
        shown = peek(raw).round in ("shown", "seens")
        return self._shown.receive(raw) if shown else self._union.receive(raw)

    @property
    def ready(self) -> bool:
        """Whether the union waits for the ledger: one spend pays for all parts."""
        return self._union.ready

    def authorise(self) -> list[Outgoing]:
        """Say that the run's whole cost is in the ledger."""
        sent = self._union.authorise()
        self._degrees.authorise()
        return sent

    def make(self, sent: Container[tuple[str, int]] = ()) -> list[Outgoing]:
        """The silo's part in the union, then its degrees, then its local answer."""
        if self._union.room:
            return self._union.make(sent)
        if self._degrees.state is not noisy_vectors.State.SENT:
            return [self._degrees.numbers(self._counted)]
        view, digest = Shared.read(self._plan, self._shown.content()), self._shown.view()
        given = self._plan.reports(digest, view.bound)
        report = VectorSilo(given, *self._party, self._entropy)
        report.authorise()
        made = [report.numbers([self._answer(self._plan, view, self._silo, self._place)])]
        self._report = report
        return made

    @property
    def room(self) -> bool:
        """Whether chunks, degrees or the local answer can be made now."""
        if self._union.room:
            return True
        if not self._union.done:
            return False
        if self._degrees.state is noisy_vectors.State.READY:
            return True
        return self._shown.state is shared_view.State.AGREED and self._report is None

    @property
    def ahead(self) -> bool:
        """While the union's chunks are made nothing else comes in."""
        return self._union.room and self._union.ahead

    @property
    def phase(self) -> str:
        """The union's, then what is waited for."""
        if self.done:
            return "done"
        return str(self._shown.state.value) if self._union.done else self._union.phase

    @property
    def done(self) -> bool:
        """Whether the local answer was made."""
        return self._report is not None

    def slot(self, message: Envelope) -> int:
        """The union's; of noisy_vectors, which they are."""
        return int(_is_report(message)) if message.round == "numbers" else self._union.slot(message)


@dataclass(frozen=True)
class FeatPlusResult:
    """What the coordinator is left with; where it is feat alone, ``shared`` is None."""

    triangle: bytes
    shared: Shared | None
    reports: tuple[int, ...]


class FeatPlusCoordinator(CoordinatorSession[FeatPlusResult]):
    """The coordinator of feat+; ``union`` is its session in the union, ``share`` makes what all
    silos are shown."""

    def __init__(
        self,
        plan: FeatPlusTerms,
        subject: bytes,
        union: CoordinatorSession[bytes],
        roster: Roster,
        run: bytes,
        identity: Identity,
        share: Share,
    ) -> None:
        self._plan, self._union, self._share = plan, union, share
        self._party = (roster, run, identity)
        degrees, shown = plan.degrees(subject), plan.shown(subject)
        self._degrees = VectorCoordinator(degrees, *self._party)
        self._shown = SharedViewCoordinator(shown, *self._party)
        self._shared: Shared | None = None
        self._reports: VectorCoordinator | None = None
        own = tuple(Binding(run, part.digest, roster) for part in (degrees, shown))
        self.bindings = (*union.bindings, *own)

    def receive(self, raw: bytes) -> list[Outgoing]:
        """A silo's message of any part."""
        message = peek(raw)
        if message.round == "seen":
            return self._shown.receive(raw)
        if message.round != "numbers":
            return self._union.receive(raw)
        return (self._reported() if _is_report(message) else self._degrees).receive(raw)

    def early(self, message: Envelope) -> bool:
        """A report is bound to what all silos have signed for."""
        return _is_report(message) and self._shown.state is not shared_view.State.AGREED

    def _reported(self) -> VectorCoordinator:
        """What takes local answers: bound to what all silos signed for."""
        if self._reports is None:
            if self._shared is None:
                raise OrderError("nothing was shown yet", round="numbers")
            roster, run, _ = self._party
            given = self._plan.reports(self._shown.view(), self._shared.bound)
            self._reports = VectorCoordinator(given, *self._party)
            self.bindings = (*self.bindings, Binding(run, given.digest, roster))
        return self._reports

    def make(self, sent: Container[tuple[str, int]] = ()) -> list[Outgoing]:
        """What the union hands round; then the release, its owners and the bound, for all."""
        if self._union.room:
            return self._union.make(sent)
        graph = BitRows.from_triangle(self._plan.n, self._union.result())
        shared = self._share(self._plan, graph, self._degrees.result())
        shown = self._shown.show(shared.content)
        self._shared = shared
        return shown

    @property
    def room(self) -> bool:
        """Whether the union has room, or all is there that is to be shown."""
        whole = self._union.done and self._degrees.state is noisy_vectors.State.DONE
        return self._union.room or (whole and self._shared is None)

    def wants(self, place: int) -> bool:
        """As the union does."""
        return self._union.wants(place)

    @property
    def phase(self) -> str:
        """The union's, then that of the local answers."""
        if self.done:
            return "done"
        return "local answers" if self._union.done else self._union.phase

    @property
    def done(self) -> bool:
        """Whether every silo's answer is there."""
        return self._reports is not None and self._reports.state is noisy_vectors.State.DONE

    @property
    def progress(self) -> tuple[int, int]:
        """Pairs of the union."""
        return self._union.progress

    def result(self) -> FeatPlusResult:
        """The release, what was shown, and all answers."""
        reports = tuple(report for (report,) in self._reported().result())
        return FeatPlusResult(self._union.result(), self._shared, reports)

    def slot(self, message: Envelope) -> int:
        """The union's; of noisy_vectors, which they are."""
        return int(_is_report(message)) if message.round == "numbers" else self._union.slot(message)
