"""Envelopes and rosters: a signature holds for one run, with one set of parameters and parties."""

from dataclasses import replace

import pytest

from silograph.crypto.identity import Identity
from silograph.errors import SignatureError
from silograph.protocol.envelope import EVERYONE, Binding, Envelope, open_envelope, seal
from silograph.protocol.roster import COORDINATOR, Member, Roster
from silograph.protocol.wire import pack, unpack

KEYS = [Identity(bytes([i + 1] * 32)) for i in range(4)]
ROSTER = Roster(
    Member("coordinator", KEYS[3].public),
    (Member("a", KEYS[0].public), Member("b", KEYS[1].public)),
)
BINDING = Binding(b"r" * 16, b"p" * 32, ROSTER)

OTHER_ROSTERS = {
    "a name": replace(ROSTER, silos=(ROSTER.silos[0], Member("c", KEYS[1].public))),
    "a key": replace(ROSTER, silos=(ROSTER.silos[0], Member("b", KEYS[2].public))),
    "the coordinator's name": replace(ROSTER, coordinator=Member("d", KEYS[3].public)),
    "the coordinator's key": replace(ROSTER, coordinator=Member("coordinator", KEYS[2].public)),
    "one more silo": replace(ROSTER, silos=(*ROSTER.silos, Member("c", KEYS[2].public))),
    "the order": replace(ROSTER, silos=ROSTER.silos[::-1]),
}


def sealed() -> bytes:
    return seal(BINDING, KEYS[0], Envelope("key", 0, EVERYONE, 0, b"payload"))


def relabelled(binding: Binding) -> bytes:
    """The same signature under the labels of another run."""
    magic, _, _, *rest = unpack(sealed(), 7)
    return pack(magic, binding.run, binding.parameters, *rest)


def test_it_opens_where_it_belongs() -> None:
    assert relabelled(BINDING) == sealed()
    assert open_envelope(BINDING, sealed(), receiver=COORDINATOR).payload == b"payload"


@pytest.mark.parametrize(
    "other",
    [replace(BINDING, run=b"s" * 16), replace(BINDING, parameters=b"q" * 32)],
    ids=["run", "parameters"],
)
def test_it_cannot_be_relabelled(other: Binding) -> None:
    with pytest.raises(SignatureError, match="not that of a"):
        open_envelope(other, relabelled(other), receiver=COORDINATOR)


@pytest.mark.parametrize("change", [name for name in OTHER_ROSTERS if name != "the order"])
def test_it_does_not_hold_among_other_parties(change: str) -> None:
    other = replace(BINDING, roster=OTHER_ROSTERS[change])
    with pytest.raises(SignatureError, match="not that of a"):
        open_envelope(other, sealed(), receiver=COORDINATOR)


def test_a_rosters_digest_covers_everything() -> None:
    digests = {roster.digest for roster in (ROSTER, *OTHER_ROSTERS.values())}
    assert len(digests) == 1 + len(OTHER_ROSTERS)
