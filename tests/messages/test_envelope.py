"""Envelopes and rosters: a signature holds for one run, with one set of parameters and parties."""

from dataclasses import replace
from itertools import product

import pytest

from silograph.errors import ArgumentError, BindingError, SignatureError
from silograph.messages.envelope import EVERYONE, Binding, Envelope, open_envelope, seal
from silograph.messages.identity import COORDINATOR, Identity, Member, Roster, pack, unpack

KEYS = [Identity(bytes([i + 1] * 32)) for i in range(6)]
ROSTER = Roster(
    Member("coordinator", KEYS[3].public, "Hub"),
    (Member("a", KEYS[0].public, "A & Co."), Member("b", KEYS[1].public, "B")),
    (Member("h", KEYS[4].public, "Notary"),),
)
A, B = ROSTER.silos
HELPER = ROSTER.helpers[0]
BINDING = Binding(b"r" * 16, b"p" * 32, ROSTER)

OTHER_ROSTERS = {
    "a name": replace(ROSTER, silos=(A, replace(B, name="c"))),
    "a key": replace(ROSTER, silos=(A, replace(B, public=KEYS[2].public))),
    "an organisation": replace(ROSTER, silos=(A, replace(B, organisation="A & Co."))),
    "no organisation": replace(ROSTER, silos=(A, replace(B, organisation=""))),
    "the coordinator's name": replace(ROSTER, coordinator=Member("d", KEYS[3].public, "Hub")),
    "the coordinator's key": replace(
        ROSTER, coordinator=Member("coordinator", KEYS[2].public, "Hub")
    ),
    "the coordinator's organisation": replace(
        ROSTER, coordinator=Member("coordinator", KEYS[3].public, "B")
    ),
    "one more silo": replace(ROSTER, silos=(A, B, Member("c", KEYS[2].public))),
    "a silo's role": replace(ROSTER, silos=(A,), helpers=(B, HELPER)),
    "a helper's role": replace(ROSTER, silos=(A, B, HELPER), helpers=()),
    "a helper's name": replace(ROSTER, helpers=(replace(HELPER, name="i"),)),
    "a helper's key": replace(ROSTER, helpers=(replace(HELPER, public=KEYS[2].public),)),
    "a helper's organisation": replace(ROSTER, helpers=(replace(HELPER, organisation="Bank"),)),
    "no helper": replace(ROSTER, helpers=()),
    "one more helper": replace(ROSTER, helpers=(HELPER, Member("i", KEYS[2].public))),
    "the order of helpers": replace(ROSTER, helpers=(Member("i", KEYS[2].public), HELPER)),
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


def test_a_signature_covers_the_payload_by_its_digest() -> None:
    """BLAKE3 of the payload alone, wherever it begins: the authors' vectors of 0 and 1025 bytes."""
    payload = bytes(i % 251 for i in range(1025))
    empty = Envelope("round", 0, COORDINATOR, 0, b"")
    whole = Envelope("round", 0, COORDINATOR, 0, payload)
    assert empty.digest.hex().startswith("af1349b9f5f9a1a6a0404dea36dcc949")
    assert whole.digest.hex().startswith("d00278ae47eb27b34faecf67b4fe263f")
    assert replace(whole, content=b"head" + payload, start=4).digest == whole.digest
    assert replace(whole, content=b"head", start=9).digest == empty.digest


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


def test_a_text_does_not_slide_into_the_next() -> None:
    """Where a name ends and an organisation begins is part of the digest."""
    names = [replace(A, name=name, organisation=of) for name, of in (("a", "bc"), ("ab", "c"))]
    digests = {replace(ROSTER, silos=(member,)).digest for member in names}
    assert len(digests) == 2


class TestHelpers:
    """A helper has a place and a key, and is no silo."""

    def test_places(self) -> None:
        assert [ROSTER.member(place).name for place in (0, 1, 2, COORDINATOR)] == [
            "a", "b", "h", "coordinator",
        ]  # fmt: skip
        assert ROSTER.members == (ROSTER.coordinator, A, B, HELPER)
        assert len(ROSTER.silos) == 2
        assert [ROSTER.has_silo(place) for place in (-1, 0, 1, 2, 3, COORDINATOR)] == [
            False, True, True, False, False, False,
        ]  # fmt: skip

    @pytest.mark.parametrize("place", [-1, 3, EVERYONE, COORDINATOR + 1])
    def test_no_such_place(self, place: int) -> None:
        with pytest.raises(ArgumentError, match=f"no party {place}"):
            ROSTER.member(place)

    def test_its_messages_open(self) -> None:
        raw = seal(BINDING, KEYS[4], Envelope("key", 2, EVERYONE, 0, b"payload"))
        assert open_envelope(BINDING, raw, receiver=0).sender == 2

    def test_it_does_not_speak_for_a_silo_nor_a_silo_for_it(self) -> None:
        for key, place in ((KEYS[4], 0), (KEYS[0], 2), (KEYS[4], COORDINATOR)):
            raw = seal(BINDING, key, Envelope("key", place, EVERYONE, 0, b"payload"))
            with pytest.raises(SignatureError):
                open_envelope(BINDING, raw, receiver=1)

    @pytest.mark.parametrize("place", [3, 4, EVERYONE])
    def test_unknown_senders(self, place: int) -> None:
        raw = seal(BINDING, KEYS[4], Envelope("key", place, EVERYONE, 0, b"payload"))
        with pytest.raises(BindingError, match=f"the roster has no party {place}"):
            open_envelope(BINDING, raw, receiver=0)

    def test_it_is_unknown_where_it_takes_no_part(self) -> None:
        raw = seal(BINDING, KEYS[4], Envelope("key", 2, EVERYONE, 0, b"payload"))
        without = replace(BINDING, roster=replace(ROSTER, helpers=()))
        with pytest.raises(BindingError, match="the roster has no party 2"):
            open_envelope(without, raw, receiver=0)


@pytest.mark.parametrize(
    ("one", "other"), list(product(("coordinator", "silo", "helper"), repeat=2)), ids="-".join
)
def test_names_and_keys_are_one_partys_alone(one: str, other: str) -> None:
    """Whatever the roles of the two are."""
    for what, twin in (
        ("name", Member("x", KEYS[1].public)),
        ("key", Member("y", KEYS[0].public)),
    ):
        parties = [("silo", Member("z", KEYS[2].public)), (one, Member("x", KEYS[0].public))]
        parties.append((other, twin))
        hubs = [member for role, member in parties if role == "coordinator"]
        if len(hubs) > 1:
            continue
        hub = hubs[0] if hubs else Member("hub", KEYS[3].public)
        groups = [tuple(m for r, m in parties if r == role) for role in ("silo", "helper")]
        with pytest.raises(ArgumentError, match=f"the same {what}"):
            Roster(hub, *groups)


@pytest.mark.parametrize("organisation", ["o" * 201, "two\nlines", "a\tb", "\x00", "\u202eevil"])
def test_organisations_that_are_none(organisation: str) -> None:
    with pytest.raises(ArgumentError, match="is not an organisation"):
        Member("a", KEYS[0].public, organisation)
