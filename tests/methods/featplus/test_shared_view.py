"""Showing all silos the same: a coordinator that shows two things is found out."""

import hashlib

import pytest

from silograph.errors import (
    ArgumentError,
    BindingError,
    OrderError,
    PayloadError,
    ProtocolError,
    SignatureError,
    ViewsDifferError,
)
from silograph.messages.envelope import EVERYONE, Binding, Envelope, seal
from silograph.messages.identity import COORDINATOR, pack
from silograph.methods.featplus.shared_view import (
    COORDINATOR_STEPS,
    SILO_STEPS,
    SharedViewCoordinator,
    SharedViewParameters,
    SharedViewSilo,
    State,
)
from tests.support.parties import identities, roster_of

RUN = bytes(16)
CONTENT = bytes(range(250))


class Showing:
    def __init__(self, silos: int = 3, **changes: object) -> None:
        base: dict[str, object] = {"silos": silos, "length": 250, "subject": b"s"}
        base |= {"chunk_bytes": 100}
        self.parameters = SharedViewParameters(**(base | changes))  # type: ignore[arg-type]
        self.keys = identities(silos)
        self.roster = roster_of(self.keys)
        self.binding = Binding(RUN, self.parameters.digest, self.roster)
        self.coordinator = self.another()
        self.silos = [
            SharedViewSilo(self.parameters, self.roster, RUN, i, self.keys[i]) for i in range(silos)
        ]

    def another(self) -> SharedViewCoordinator:
        """The same coordinator, in another mind."""
        return SharedViewCoordinator(self.parameters, self.roster, RUN, self.keys[-1])

    def forged(self, place: int, envelope: Envelope) -> bytes:
        return seal(self.binding, self.keys[-1 if place == COORDINATOR else place], envelope)

    def show(self, content: bytes = CONTENT) -> list[bytes]:
        return [out.raw for out in self.coordinator.show(content)]

    def seen(self, chunks: list[bytes]) -> list[bytes]:
        """All silos see these chunks; what they sign."""
        signed = []
        for silo in self.silos:
            answers = [out for raw in chunks for out in silo.receive(raw)]
            assert [out.to for out in answers] == [COORDINATOR]
            signed.append(answers[0].raw)
        return signed

    def relay(self, signed: list[bytes]) -> bytes:
        (bundle,) = [out for raw in signed for out in self.coordinator.receive(raw)]
        assert bundle.to == EVERYONE
        return bundle.raw


def test_all_see_the_same_and_go_on() -> None:
    run = Showing()
    bundle = run.relay(run.seen(run.show()))
    for silo in run.silos:
        with pytest.raises(OrderError, match="waiting for signatures"):
            silo.content()
        with pytest.raises(OrderError, match="waiting for signatures"):
            silo.view()
        assert silo.receive(bundle) == []
        assert silo.content() == CONTENT
        assert silo.view() == run.coordinator.view()


def test_golden_transcript() -> None:
    run = Showing()
    chunks = run.show()
    signed = run.seen(chunks)
    raws = b"".join([*chunks, *signed, run.relay(signed)])
    assert (
        hashlib.sha256(raws).hexdigest()
        == "98606d4375cdd87ec895a3848aa7192deb82bdc7afc6d8464a2a4b39fb117b89"
    )


@pytest.mark.parametrize("place", [0, 1, 2])
@pytest.mark.parametrize("byte", [0, 99, 100, 249])
def test_a_coordinator_that_shows_two_things_is_found_out(place: int, byte: int) -> None:
    """One silo is shown an owner map with one other byte: nobody goes on."""
    run = Showing()
    other = bytearray(CONTENT)
    other[byte] ^= 1
    two = run.another()
    chunks, changed = run.show(), [out.raw for out in two.show(bytes(other))]
    signed = []
    for i, silo in enumerate(run.silos):
        shown = changed if i == place else chunks
        signed.append(next(out.raw for raw in shown for out in silo.receive(raw)))
    with pytest.raises(ViewsDifferError, match="saw something other than was shown"):
        run.coordinator.receive(signed[place])
    # A coordinator that lies relays the signatures all the same.
    bundle = Envelope("seens", COORDINATOR, EVERYONE, 0, pack(*signed))
    raw = run.forged(COORDINATOR, bundle)
    for i, silo in enumerate(run.silos):
        with pytest.raises(ViewsDifferError, match="was shown something else"):
            silo.receive(raw)
        assert silo.state is State.SEENS, i
        with pytest.raises(OrderError):
            silo.content()


def test_one_signature_cannot_stand_for_two() -> None:
    run = Showing()
    signed = run.seen(run.show())
    twice = Envelope("seens", COORDINATOR, EVERYONE, 0, pack(signed[0], signed[0], signed[2]))
    with pytest.raises(OrderError, match="seen of silo 1 was due"):
        run.silos[0].receive(run.forged(COORDINATOR, twice))
    with pytest.raises(ProtocolError):
        run.silos[0].receive(
            run.forged(COORDINATOR, Envelope("seens", COORDINATOR, EVERYONE, 0, pack(*signed[:2])))
        )
    forged = run.forged(0, Envelope("seen", 1, EVERYONE, 0, bytes(32)))
    bundle = Envelope("seens", COORDINATOR, EVERYONE, 0, pack(signed[0], forged, signed[2]))
    with pytest.raises(SignatureError):
        run.silos[0].receive(run.forged(COORDINATOR, bundle))
    assert run.silos[0].state is State.SEENS


class TestRefusals:
    def test_chunks_in_order_and_of_their_size(self) -> None:
        run = Showing()
        chunks, silo = run.show(), run.silos[0]
        with pytest.raises(OrderError, match="chunk 0 was due, not 1"):
            silo.receive(chunks[1])
        silo.receive(chunks[0])
        with pytest.raises(OrderError, match="chunk 1 was due, not 0"):
            silo.receive(chunks[0])
        for size in (0, 99, 101):
            wrong = Envelope("shown", COORDINATOR, EVERYONE, 1, bytes(size))
            with pytest.raises(PayloadError, match="chunk 1 has a wrong length"):
                silo.receive(run.forged(COORDINATOR, wrong))
        silo.receive(chunks[1])
        silo.receive(chunks[2])
        with pytest.raises(OrderError, match="waiting for signatures"):
            silo.receive(chunks[2])

    def test_what_no_silo_takes(self) -> None:
        run = Showing()
        silo = run.silos[0]
        for name in ("all shown", "show", "seens", "seen", "keys"):
            due = "not while in state" if name == "seens" else "no such message"
            with pytest.raises(OrderError, match=due):
                silo.receive(
                    run.forged(COORDINATOR, Envelope(name, COORDINATOR, EVERYONE, 0, bytes(100)))
                )
        with pytest.raises(OrderError, match="through the coordinator"):
            silo.receive(run.forged(1, Envelope("shown", 1, EVERYONE, 0, bytes(100))))
        assert silo.state is State.SHOWN

    def test_what_the_coordinator_does_not_take(self) -> None:
        run = Showing()
        early = run.forged(0, Envelope("seen", 0, EVERYONE, 0, b""))
        for name in ("show", "all seens"):
            with pytest.raises(OrderError, match="no such message"):
                run.coordinator.receive(run.forged(0, Envelope(name, 0, EVERYONE, 0, b"")))
        with pytest.raises(OrderError, match="not while in state 'new'"):
            run.coordinator.receive(early)
        with pytest.raises(PayloadError, match="250 bytes were due"):
            run.coordinator.show(CONTENT[1:])
        with pytest.raises(OrderError):
            run.coordinator.view()
        signed = run.seen(run.show())
        with pytest.raises(OrderError, match="waiting for signatures"):
            run.coordinator.show(CONTENT)
        run.coordinator.receive(signed[1])
        with pytest.raises(OrderError, match="came twice"):
            run.coordinator.receive(signed[1])
        own = run.forged(COORDINATOR, Envelope("seen", COORDINATOR, EVERYONE, 0, bytes(32)))
        with pytest.raises(BindingError, match="does not write to itself"):
            run.coordinator.receive(own)
        run.relay([signed[0], signed[2]])

    def test_parameters(self) -> None:
        run = Showing()
        for change in ({"length": 251}, {"subject": b"t"}, {"chunk_bytes": 99}):
            other = Showing(**change)  # type: ignore[arg-type]
            shown = other.coordinator.show(bytes(other.parameters.length))[0].raw
            with pytest.raises(BindingError, match="other parameters"):
                run.silos[0].receive(shown)
        for change in ({"length": 0}, {"chunk_bytes": 0}):
            with pytest.raises(ArgumentError):
                Showing(**change)  # type: ignore[arg-type]
        assert repr(run.silos[0]) == "SharedViewSilo(place=0, state='waiting for content')"
        assert repr(run.coordinator) == "SharedViewCoordinator(state='new')"

    def test_tables_reach_every_state(self) -> None:
        reached = {State.SHOWN, *SILO_STEPS.values()} | {State.NEW, *COORDINATOR_STEPS.values()}
        assert reached == set(State)
