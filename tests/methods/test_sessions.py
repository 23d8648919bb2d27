"""Sessions: a restarted party says what it said before, and names of messages are read safely."""

import contextlib
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from silograph import Silo, clustered_power_law, split
from silograph.errors import BindingError, OrderError, ProtocolError
from silograph.methods.plans import StudyPlan, plan_study
from silograph.methods.sessions import SiloSession
from silograph.methods.unions import MaskedCoordinatorSession, _Uploads
from silograph.protocol.envelope import EVERYONE, Envelope, peek
from silograph.protocol.handshake import Outgoing
from silograph.protocol.masked import MaskedParameters
from silograph.protocol.roster import COORDINATOR
from silograph.runtime.entropy import RunEntropy

from .test_study import KEYS, ROSTER, study

SILOS = split(clustered_power_law(40, edges_per_node=3, seed=1), 3, seed=1, rate=0.4)
METHODS: dict[str, dict[str, Any]] = {
    "masked": {},
    "elgamal/blinded": {"protocol": "elgamal/blinded"},
    "elgamal/replace": {"protocol": "elgamal/replace", "collusion": 0},
    "baseline": {"method": "baseline", "protocol": ""},
}


def plan(method: str) -> StudyPlan:
    nodes = len(SILOS[0].universe)
    return plan_study(study(nodes=nodes, universe=SILOS[0].universe.digest, **METHODS[method]))


def silo(made: StudyPlan, place: int, data: Silo | None = None) -> SiloSession:
    entropy = RunEntropy(bytes([place] * 32))
    return made.silo(ROSTER, place, KEYS[place], entropy, data or SILOS[place])


class Recorded:
    """A whole run by hand, with all that every silo was told and said."""

    def __init__(self, method: str) -> None:
        self.plan = plan(method)
        self.coordinator = self.plan.coordinator(ROSTER, KEYS[3])
        self.silos = [silo(self.plan, place) for place in range(3)]
        self.told: list[list[bytes]] = [[], [], []]
        self.said: list[list[Outgoing]] = [[], [], []]
        for place, session in enumerate(self.silos):
            self._say(place, session.start())
            self._pay(session)
        made = [session.produce() for session in self.silos]
        handed = self.coordinator.produce()
        while not self.coordinator.done:
            for place, session in enumerate(self.silos):
                if session.room:
                    self._say(place, [out for out in [next(made[place], None)] if out])
            if self.coordinator.room:
                self._tell(next(handed))

    def _say(self, place: int, outgoing: list[Outgoing]) -> None:
        for out in outgoing:
            self.said[place].append(out)
            for answer in self.coordinator.receive(out.raw):
                self._tell(answer)

    def _tell(self, out: Outgoing) -> None:
        for place in range(3) if out.to == EVERYONE else (out.to,):
            self.told[place].append(out.raw)
            answers = self.silos[place].receive(out.raw)
            self._pay(self.silos[place])
            self._say(place, answers)

    @staticmethod
    def _pay(session: SiloSession) -> None:
        if session.ready:
            session.authorise()


@pytest.mark.parametrize("method", METHODS)
class TestEveryMethod:
    def test_a_replay_says_the_same(self, method: str) -> None:
        run = Recorded(method)
        assert all(session.done for session in run.silos)
        again = silo(run.plan, 1)
        said = again.start()
        Recorded._pay(again)
        for raw in run.told[1]:
            said += again.receive(raw)
            Recorded._pay(again)
        said += again.produce()
        assert said == run.said[1]
        assert again.done
        assert again.phase == run.silos[1].phase == "done"

    def test_names_are_different(self, method: str) -> None:
        run = Recorded(method)
        for place, said in enumerate(run.said):
            heads = [peek(out.raw) for out in said]
            session = run.silos[place]
            names = [(out.to, h.round, session.slot(h)) for out, h in zip(said, heads, strict=True)]
            assert len(set(names)) == len(names)

    def test_nothing_is_made_before_the_ledger(self, method: str) -> None:
        session = silo(plan(method), 0)
        assert not session.room
        with pytest.raises((OrderError, StopIteration)):
            next(session.produce())


SESSIONS = [
    session
    for method in METHODS
    for session in (silo(plan(method), 0), plan(method).coordinator(ROSTER, KEYS[3]))
]
ROUNDS = ["work", "hop", "open", "share", "keys", "key", "confirm", "chunk", "report", "x"]


@given(st.binary(max_size=200), st.sampled_from(ROUNDS))
def test_the_name_of_any_message(payload: bytes, name: str) -> None:
    message = Envelope(name, COORDINATOR, EVERYONE, 7, payload)
    for session in SESSIONS:
        with contextlib.suppress(ProtocolError):
            assert session.slot(message) >= 0


def test_a_resumed_upload_leaves_out_what_was_sent() -> None:
    made = plan("baseline")
    session = silo(made, 0)
    session.authorise()
    assert list(session.produce({("report", 0)})) == []
    assert session.done


def test_a_fast_silo_waits_for_the_slowest() -> None:
    given = MaskedParameters(21, Fraction(1, 50), 3, 6400, b"n", chunk_pairs=64)
    uploads = _Uploads(given)
    for _ in range(4):
        assert uploads.wants(0)
        uploads.take(0)
    assert not uploads.wants(0)
    assert uploads.wants(1)
    for place in (1, 2):
        uploads.take(place)
    assert uploads.wants(0)
    assert uploads.progress == (64, 6400)
    assert MaskedCoordinatorSession(given, ROSTER, bytes(16), KEYS[3]).wants(2)


def test_a_silo_that_only_reports_takes_no_message() -> None:
    session = silo(plan("baseline"), 0)
    raw = Recorded("masked").told[0][0]
    with pytest.raises(BindingError):
        session.receive(raw)
