"""Sessions: a restarted party says what it said before, and names of messages are read safely."""

import contextlib
from collections import deque
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from silograph import Silo, clustered_power_law, split
from silograph.errors import BindingError, OrderError, ProtocolError
from silograph.messages.entropy import RunEntropy
from silograph.messages.envelope import EVERYONE, Envelope, Outgoing, peek
from silograph.messages.identity import COORDINATOR, Identity, Member, Roster
from silograph.messages.machine import SiloSession
from silograph.messages.rounds import Uploads
from silograph.methods.catalogue import plan_study
from silograph.methods.masked.machines import MaskedCoordinator, MaskedParameters
from silograph.methods.method import SettledStudy
from tests.methods.test_study import FOUR, KEYS, ROSTER, study

SILOS = split(clustered_power_law(40, edges_per_node=3, seed=1), 3, seed=1, rate=0.4)
METHODS: dict[str, dict[str, Any]] = {
    "masked": {},
    "elgamal/blinded": {"protocol": "elgamal/blinded"},
    "elgamal/replace": {"protocol": "elgamal/replace", "collusion": 0},
    "baseline": {"method": "baseline", "protocol": ""},
    "hubs": {"method": "hubs", "query": "release"},
    "feat+": {"method": "feat+", "options": {"split": "paper"}},
    "sealed": {"method": "sealed", "protocol": "committee", "members": FOUR},
    "sealed with a bound": {
        "method": "sealed", "protocol": "committee", "members": FOUR, "delta": 1e-6,
        "query": "clustering",
        "options": {"answers": "degrees,two_stars,triangles", "rule": "second"},
    },
    "sealed in shares": {
        "method": "sealed", "protocol": "committee", "members": FOUR,
        "options": {"answers": "triangles", "noise": "shares"},
    },
    "committee": {"protocol": "committee", "members": FOUR},
    "feat+ committee": {
        "method": "feat+", "protocol": "committee", "members": FOUR,
        "options": {"split": "paper"},
    },
}  # fmt: skip
HELPER = Identity(b"h" * 32)
WITH_HELPER = Roster(ROSTER.coordinator, ROSTER.silos, (Member("notary", HELPER.public),))


def plan(method: str) -> SettledStudy:
    nodes = len(SILOS[0].universe)
    return plan_study(study(nodes=nodes, universe=SILOS[0].universe.digest, **METHODS[method]))


def roster_for(made: SettledStudy) -> Roster:
    return WITH_HELPER if made.study.members else ROSTER


def silo(made: SettledStudy, place: int, data: Silo | None = None) -> SiloSession:
    """The session of a silo, or of the helper, whose place is 3."""
    entropy, roster = RunEntropy(bytes([place] * 32)), roster_for(made)
    if place == 3:
        return made.helper(roster, place, HELPER, entropy)
    return made.silo(roster, place, KEYS[place], entropy, data or SILOS[place])


class Recorded:
    """A whole run by hand, with all that every silo was told and said."""

    def __init__(self, method: str) -> None:
        self.plan = plan(method)
        roster = roster_for(self.plan)
        self.coordinator = self.plan.coordinator(roster, KEYS[3], RunEntropy(b"hub"))
        self.silos = [silo(self.plan, place) for place in roster.places]
        self.told: list[list[bytes]] = [[] for _ in self.silos]
        self.said: list[list[Outgoing]] = [[] for _ in self.silos]
        self._waiting: deque[tuple[int, Outgoing]] = deque()
        for place, session in enumerate(self.silos):
            self._say(place, session.start() + pay(session))
        while not self.coordinator.done:
            self._deliver()
            for place, session in enumerate(self.silos):
                if session.room:
                    self._say(place, session.make())
            if self.coordinator.room:
                self._waiting += [(COORDINATOR, out) for out in self.coordinator.make()]
        self._deliver()

    def _say(self, place: int, outgoing: list[Outgoing]) -> None:
        self.said[place] += outgoing
        self._waiting += [(place, out) for out in outgoing]

    def _deliver(self) -> None:
        while self._waiting:
            _, out = self._waiting.popleft()
            if out.to == COORDINATOR:
                answers = self.coordinator.receive(out.raw)
                self._waiting += [(COORDINATOR, answer) for answer in answers]
                continue
            for place in range(len(self.silos)) if out.to == EVERYONE else (out.to,):
                self.told[place].append(out.raw)
                session = self.silos[place]
                self._say(place, session.receive(out.raw) + pay(session))


def pay(session: SiloSession) -> list[Outgoing]:
    """What a ledger's entry gives rise to, where it is waited for."""
    return session.authorise() if session.ready else []


@pytest.mark.parametrize("method", METHODS)
class TestEveryMethod:
    def test_a_replay_says_the_same(self, method: str) -> None:
        run = Recorded(method)
        assert all(session.done for session in run.silos)
        for place in range(1, len(run.silos)):
            again = silo(run.plan, place)
            said = again.start() + pay(again)
            for raw in run.told[place]:
                while again.room and not again.ahead:
                    said += again.make()
                said += again.receive(raw) + pay(again)
            while again.room:
                said += again.make()
            assert sorted(out.raw for out in said) == sorted(out.raw for out in run.said[place])
            assert again.done
            assert again.phase == run.silos[place].phase == "done"

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
        with contextlib.suppress(OrderError):
            assert session.make() == []


def sizes(thing: Any) -> Any:
    """How large all is that an object holds, as far as its sizes can tell of a silo's edges."""
    if isinstance(thing, Silo):
        return len(thing)
    if isinstance(thing, bytes | np.ndarray):
        return len(thing)
    if isinstance(thing, dict):
        return {key: sizes(value) for key, value in thing.items()}
    if isinstance(thing, list | tuple | set):
        return [sizes(each) for each in thing]
    if type(thing).__module__.startswith("silograph."):
        return {name: sizes(value) for name, value in getattr(thing, "__dict__", {}).items()}
    return type(thing).__name__


class TestTiming:
    """Who sees when a message leaves must not see how many edges are behind it."""

    @pytest.mark.parametrize("method", [name for name in METHODS if "feat+" not in name])
    def test_a_session_holds_as_much_for_any_edges(self, method: str) -> None:
        universe = SILOS[0].universe
        full = np.stack(np.triu_indices(len(universe), 1), axis=1)
        held = [Silo.from_pairs(universe, edges) for edges in (full[:0], full[::10], full)]
        empty, some, all_ = (sizes(silo(plan(method), 0, data)) for data in held)
        assert empty == some == all_
        assert empty != sizes({**vars(silo(plan(method), 0)), "edges": held[0]})

    def test_degrees_are_counted_before_the_first_message(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        made = Recorded("feat+")
        again = silo(made.plan, 1)
        monkeypatch.setattr(Silo, "degrees", lambda _: pytest.fail("edges were counted"))
        said = again.start() + pay(again)
        for raw in made.told[1]:
            said += again.receive(raw) + pay(again)
            while again.room and not again.done:
                said += again.make()
        assert again.done


SESSIONS = [
    session
    for method in METHODS
    for session in (
        silo(plan(method), 0),
        plan(method).coordinator(roster_for(plan(method)), KEYS[3], RunEntropy(b"hub")),
    )
]
ROUNDS = ["work", "hop", "open", "share", "keys", "key", "confirm", "chunk", "report",
          "numbers", "shown", "seen", "tell", "seed", "joint", "sum", "x"]  # fmt: skip


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
    assert session.make({("report", 0)}) == []
    assert session.done


def test_a_fast_silo_waits_for_the_slowest() -> None:
    given = MaskedParameters(21, Fraction(1, 50), 3, 6400, b"n", chunk_pairs=64)
    uploads = Uploads(given)
    for _ in range(4):
        assert uploads.wants(0)
        uploads.take(0)
    assert not uploads.wants(0)
    assert uploads.wants(1)
    for place in (1, 2):
        uploads.take(place)
    assert uploads.wants(0)
    assert uploads.progress == (64, 6400)
    assert MaskedCoordinator(given, ROSTER, bytes(16), KEYS[3]).wants(2)


def test_a_silo_that_only_reports_takes_no_message() -> None:
    session = silo(plan("baseline"), 0)
    raw = Recorded("masked").told[0][0]
    with pytest.raises(BindingError):
        session.receive(raw)
