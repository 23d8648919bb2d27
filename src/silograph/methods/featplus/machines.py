"""The sessions of feat+: a union, noisy degrees, a shared view, and noisy local answers.

The messages of each part are bound to the parameters of that part, and those of the last part to
the shared view. The whole cost is charged before the first message. If all of epsilon goes to the
release, there are no further parts, and the sessions of the union are used instead.
"""

from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass

from silograph import _core
from silograph.errors import OrderError
from silograph.graph.bits import BitRows, PairBits
from silograph.graph.silo import Silo
from silograph.messages.entropy import Entropy
from silograph.messages.envelope import Binding, Envelope, Outgoing, open_envelope, peek
from silograph.messages.identity import COORDINATOR, Identity, Roster
from silograph.messages.machine import CoordinatorSession, SiloSession
from silograph.methods.featplus import noisy_vectors, shared_view
from silograph.methods.featplus.noisy_vectors import NUMBER_BYTES, VectorCoordinator, VectorSilo
from silograph.methods.featplus.rounds import FeatPlusTerms, Shared
from silograph.methods.featplus.shared_view import SharedViewCoordinator, SharedViewSilo

__all__ = ["FeatPlusCoordinator", "FeatPlusResult", "FeatPlusSilo"]


def _is_report(message: Envelope) -> bool:
    """Whether a message of noisy numbers is a report: a report has one number, not one per node."""
    return message.round == "numbers" and len(message.payload) == NUMBER_BYTES


#: Computes a silo's exact report in units, from the plan, the shared view, its edges and place.
LocalAnswer = Callable[[FeatPlusTerms, Shared, Silo, int], int]
#: Computes the shared view, from the plan, the release and all silos' noisy degrees.
Share = Callable[[FeatPlusTerms, BitRows, Sequence[Sequence[int]]], Shared]


class FeatPlusSilo(SiloSession):
    """A silo in feat+. ``union`` is its session in the union; ``answer`` computes its report."""

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
        # Count now: later, the time between the last chunk and the degrees would depend on edges.
        self._counted: list[int] = PairBits.of(silo).degrees.tolist()
        self._report: VectorSilo | None = None
        own = tuple(Binding(run, part.digest, roster) for part in (degrees, shown))
        self.bindings = (*union.bindings, *own)

    def start(self) -> list[Outgoing]:
        """Start the union."""
        return self._union.start()

    def receive(self, raw: bytes) -> list[Outgoing]:
        """Take a message of the union, a part of the shared view, or all silos' signatures."""
        # After a restart, parts of the shared view may arrive before our degrees are sent again.
        # This is safe: local answers are protected for every content, and wait for the degrees.
        shown = peek(raw).round in ("shown", "seens")
        return self._shown.receive(raw) if shown else self._union.receive(raw)

    @property
    def sources(self) -> tuple[int, ...]:
        """The parties that the union hears; the later parts hear the coordinator alone."""
        return self._union.sources

    def wants(self, place: int) -> bool:
        """Whether the union wants more from this party."""
        return self._union.wants(place)

    @property
    def ready(self) -> bool:
        """Whether the union waits for the ledger; one charge pays for all parts."""
        return self._union.ready

    def authorise(self) -> list[Outgoing]:
        """Record that the run's whole cost is in the ledger."""
        sent = self._union.authorise()
        self._degrees.authorise()
        return sent

    def make(self, sent: Container[tuple[str, int]] = ()) -> list[Outgoing]:
        """Make the silo's messages in the union, then its degrees, then its local answer."""
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
        """Whether the union's chunks are being made; nothing else is received meanwhile."""
        return self._union.room and self._union.ahead

    @property
    def phase(self) -> str:
        """The union's phase, then what the silo waits for."""
        if self.done:
            return "done"
        return str(self._shown.state.value) if self._union.done else self._union.phase

    @property
    def done(self) -> bool:
        """Whether the local answer was made."""
        return self._report is not None

    def slot(self, message: Envelope) -> int:
        """The slot of a message: that of the union, or which noisy vector it is."""
        return int(_is_report(message)) if message.round == "numbers" else self._union.slot(message)


class FeatPlusHelper(SiloSession):
    """A helper in feat+: it takes part in the union, and passes over what is shown to the silos."""

    def __init__(
        self, plan: FeatPlusTerms, subject: bytes, union: SiloSession, roster: Roster, run: bytes,
        place: int,
    ) -> None:  # fmt: skip
        shown = plan.shown(subject)
        self._union, self._place, self._chunks = union, place, shown.chunks
        self._shown = Binding(run, shown.digest, roster)
        self.bindings = (*union.bindings, self._shown)

    def start(self) -> list[Outgoing]:
        """Start the union."""
        return self._union.start()

    def receive(self, raw: bytes) -> list[Outgoing]:
        """Take a message of the union, or pass over what the coordinator shows."""
        if peek(raw).round not in ("shown", "seens"):
            return self._union.receive(raw)
        message = open_envelope(self._shown, raw, receiver=self._place)
        if message.sender != COORDINATOR or message.sequence >= self._chunks:
            raise OrderError("there is no such message", round=message.round)
        return []

    @property
    def sources(self) -> tuple[int, ...]:
        """The parties that the union hears."""
        return self._union.sources

    def wants(self, place: int) -> bool:
        """Whether the union wants more from this party."""
        return self._union.wants(place)

    @property
    def ready(self) -> bool:
        """Whether everything is agreed."""
        return self._union.ready

    def authorise(self) -> list[Outgoing]:
        """Go on; a helper pays for nothing."""
        return self._union.authorise()

    @property
    def phase(self) -> str:
        """The union's phase."""
        return self._union.phase

    @property
    def done(self) -> bool:
        """Whether the union is done."""
        return self._union.done

    def slot(self, message: Envelope) -> int:
        """The slot of a message of the union."""
        return self._union.slot(message)


@dataclass(frozen=True)
class FeatPlusResult:
    """The coordinator's result. ``shared`` is None if there were no local answers."""

    graph: BitRows
    shared: Shared | None
    reports: tuple[int, ...]


class FeatPlusCoordinator(CoordinatorSession[FeatPlusResult]):
    """The coordinator of feat+. ``union`` is its session in the union; ``share`` computes the
    shared view."""

    def __init__(
        self,
        plan: FeatPlusTerms,
        subject: bytes,
        union: CoordinatorSession[_core.OpenBits],
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
        self._graph: BitRows | None = None
        self._shared: Shared | None = None
        self._reports: VectorCoordinator | None = None
        own = tuple(Binding(run, part.digest, roster) for part in (degrees, shown))
        self.bindings = (*union.bindings, *own)

    def receive(self, raw: bytes) -> list[Outgoing]:
        """Take a silo's message of any part."""
        message = peek(raw)
        if message.round == "seen":
            return self._shown.receive(raw)
        if message.round != "numbers":
            return self._union.receive(raw)
        return (self._reported() if _is_report(message) else self._degrees).receive(raw)

    def early(self, message: Envelope) -> bool:
        """Whether a report came before all silos signed the view that it must be bound to."""
        return _is_report(message) and self._shown.state is not shared_view.State.AGREED

    def _reported(self) -> VectorCoordinator:
        """The machine that takes local answers, bound to the view that all silos signed."""
        if self._reports is None:
            if self._shared is None:
                raise OrderError("nothing was shown yet", round="numbers")
            roster, run, _ = self._party
            given = self._plan.reports(self._shown.view(), self._shared.bound)
            self._reports = VectorCoordinator(given, *self._party)
            self.bindings = (*self.bindings, Binding(run, given.digest, roster))
        return self._reports

    def make(self, sent: Container[tuple[str, int]] = ()) -> list[Outgoing]:
        """Make the union's messages, then show the release, the owners and the bound to all."""
        if self._union.room:
            return self._union.make(sent)
        graph = BitRows(self._union.result().rows(self._plan.n))
        shared = self._share(self._plan, graph, self._degrees.result())
        shown = self._shown.show(shared.content)
        self._graph, self._shared = graph, shared
        return shown

    @property
    def room(self) -> bool:
        """Whether the union has room, or everything that is to be shown has arrived."""
        whole = self._union.done and self._degrees.state is noisy_vectors.State.DONE
        return self._union.room or (whole and self._shared is None)

    def wants(self, place: int) -> bool:
        """Whether the union wants more from this silo."""
        return self._union.wants(place)

    @property
    def phase(self) -> str:
        """The union's phase, then that of the local answers."""
        if self.done:
            return "done"
        return "local answers" if self._union.done else self._union.phase

    @property
    def done(self) -> bool:
        """Whether every silo's answer has arrived."""
        return self._reports is not None and self._reports.state is noisy_vectors.State.DONE

    @property
    def progress(self) -> tuple[int, int]:
        """The progress of the union, in pairs."""
        return self._union.progress

    def result(self) -> FeatPlusResult:
        """The release, the shared view, and all answers."""
        reports = tuple(report for (report,) in self._reported().result())
        assert self._graph is not None  # noqa: S101 - the reports came after it
        return FeatPlusResult(self._graph, self._shared, reports)

    def slot(self, message: Envelope) -> int:
        """The slot of a message: that of the union, or which noisy vector it is."""
        return int(_is_report(message)) if message.round == "numbers" else self._union.slot(message)
