"""The files of an enrolment: they come back as they were, or are refused."""

import contextlib
import tomllib
from datetime import date, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from silograph import whole_files
from silograph.errors import EnrolmentError, SilographError
from silograph.messages.identity import Identity
from silograph.party.enrolment import (
    Answer,
    Invitation,
    RosterSignature,
    Suggested,
    Welcome,
    _signed,
    kind_of,
)
from silograph.party.roster import new_member, new_roster

HUB, NORTH, OTHER = (Identity(bytes([number]) * 32) for number in (1, 2, 3))
TODAY = date(2031, 5, 6)
INVITATION = Invitation(
    "payments",
    new_member("hub", HUB.public, "Institute of Statistics"),
    ("broker.example.org:4222", "other.example.org:4222"),
    b"-----BEGIN CERTIFICATE-----\n",
    "ab" * 32,
    "silo",
    TODAY,
    Suggested(3.0, 12.5, ("feat masked", "sealed"), 4),
)
ANSWER = Answer(new_member("north", NORTH.public, "North Bank"), b"request", INVITATION.encode(HUB))
ROSTER = new_roster("hub", HUB.public).add("north", NORTH.public).sign(NORTH)
WELCOME = Welcome("payments", HUB.public, ROSTER, "north", b"certificate")
SIGNATURE = RosterSignature("payments", "north", ROSTER.digest, ROSTER.signatures["north"])

FILES = {
    "invitation": (INVITATION, HUB),
    "answer": (ANSWER, NORTH),
    "welcome": (WELCOME, HUB),
    "signature": (SIGNATURE, NORTH),
}


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "file"


@pytest.mark.parametrize("kind", FILES)
class TestFiles:
    def test_they_come_back(self, kind: str, place: Path) -> None:
        made, identity = FILES[kind]
        place.write_bytes(made.encode(identity))
        assert kind_of(place) == kind
        assert type(made).read(place) == made

    def test_any_change_of_a_field_is_refused(self, kind: str, place: Path) -> None:
        """Every line that is not a comment; the values are moved on by one character."""
        made, identity = FILES[kind]
        lines = made.encode(identity).decode().splitlines()
        changed = 0
        for number, line in enumerate(lines):
            if line.startswith("#"):
                continue
            name, value = line.split(" = ", 1)
            last = max(i for i, letter in enumerate(value) if letter.isalnum())
            other = "1" if value[last] != "1" else "2"
            wrong = f"{name} = {value[:last]}{other}{value[last + 1 :]}"
            place.write_text("\n".join([*lines[:number], wrong, *lines[number + 1 :]]))
            with pytest.raises(EnrolmentError):
                type(made).read(place)
            changed += 1
        assert changed >= 8

    def test_another_partys_signature_is_refused(self, kind: str, place: Path) -> None:
        made, identity = FILES[kind]
        right, wrong = made.encode(identity).decode(), made.encode(OTHER).decode()
        mixed = right[: right.index("\nsignature = ")] + wrong[wrong.index("\nsignature = ") :]
        place.write_text(mixed)
        with pytest.raises(EnrolmentError, match="changed after it was signed"):
            type(made).read(place)

    def test_missing_and_additional_fields(self, kind: str, place: Path) -> None:
        made, identity = FILES[kind]
        text = made.encode(identity).decode()
        for wrong in (f"{text}more = 1\n", "\n".join(text.splitlines()[:-1])):
            place.write_text(wrong)
            with pytest.raises(EnrolmentError, match="other fields"):
                type(made).read(place)

    def test_another_version(self, kind: str, place: Path) -> None:
        made, identity = FILES[kind]
        text = made.encode(identity).decode().replace("version = 1", "version = 2")
        place.write_text(text)
        with pytest.raises(EnrolmentError, match="newer one"):
            type(made).read(place)

    def test_another_kind(self, kind: str, place: Path) -> None:
        made, _ = FILES[kind]
        other, identity = FILES["answer" if kind != "answer" else "welcome"]
        place.write_bytes(other.encode(identity))
        with pytest.raises(EnrolmentError, match=f"not of kind {kind}"):
            type(made).read(place)


@pytest.mark.parametrize("kind", FILES)
def test_cut_and_garbled_files_are_one_error(kind: str, tmp_path: Path) -> None:
    made, identity = FILES[kind]
    content = made.encode(identity)
    path = tmp_path / "x"
    for end in range(0, len(content) - 1, 37):
        path.write_bytes(content[:end])
        with pytest.raises(EnrolmentError):
            type(made).read(path)


def _hostile(kind: str, **changes: str) -> bytes:
    """A file whose sender has signed other values, written as they are, than Silograph writes."""
    made, identity = FILES[kind]
    table = tomllib.loads(made.encode(identity).decode())
    form = getattr(whole_files, kind.upper())
    values = {name: repr(value) for name, value in table.items()} | changes
    fields = tomllib.loads("\n".join(f"{name} = {value}" for name, value in values.items()))
    for name in ("kind", "version", "signature"):
        del fields[name]
    with contextlib.suppress(TypeError):  # dates cannot be signed
        values["signature"] = f'"{identity.sign(_signed(form, fields)).hex()}"'
    return "\n".join(f"{name} = {value}" for name, value in values.items()).encode()


@pytest.mark.parametrize(
    ("kind", "changes"),
    [
        ("invitation", {"methods": '["\\u001B[2Jfeat masked"]'}),
        ("invitation", {"brokers": '["\\u001B:4222"]'}),
        ("invitation", {"brokers": "[1979-05-27]"}),
        ("invitation", {"methods": "[1]"}),
        ("invitation", {"universe": '"\\u202E"'}),
        ("invitation", {"version": "0x" + "f" * 5000}),
        ("welcome", {"consortium": '"../payments"'}),
        ("welcome", {"name": '"/north"'}),
        ("signature", {"consortium": '"/srv/payments"'}),
        ("signature", {"name": '"\\u001B[31mnorth"'}),
        ("signature", {"name": '""'}),
    ],
)
def test_what_a_hostile_sender_signs(kind: str, changes: dict[str, str], place: Path) -> None:
    """Nothing in it reaches a terminal or a path, and every file gets an answer."""
    made, _ = FILES[kind]
    place.write_bytes(_hostile(kind))
    assert type(made).read(place) == made
    place.write_bytes(_hostile(kind, **changes))
    with pytest.raises(EnrolmentError):
        type(made).read(place)


@given(st.binary(max_size=300))
def test_any_bytes_are_an_error(content: bytes) -> None:
    with pytest.raises(EnrolmentError):
        Invitation.decode(Path("x"), content)


def test_an_invitation_expires() -> None:
    INVITATION.check_date(Path("x"), TODAY)
    with pytest.raises(EnrolmentError, match="expired on 2031-05-06"):
        INVITATION.check_date(Path("x"), TODAY + timedelta(days=1))


def test_an_answer_to_somebody_else() -> None:
    assert ANSWER.check_invitation(Path("x"), HUB, "payments") == INVITATION
    for identity, name in ((OTHER, "payments"), (HUB, "claims")):
        with pytest.raises(EnrolmentError, match="another consortium"):
            ANSWER.check_invitation(Path("x"), identity, name)


@pytest.mark.parametrize("broker", ["user:pass@host:1", "host:99999", "host:x"])
def test_brokers_that_are_none(broker: str) -> None:
    with pytest.raises(SilographError):
        Invitation("p", INVITATION.coordinator, (broker,), b"", "", "silo", TODAY)
