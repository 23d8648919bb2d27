"""Words about a run: signed, bound to the study, one byte."""

import json
import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from silograph.errors import (
    BudgetError,
    BusyError,
    DeadlineError,
    LedgerError,
    PayloadError,
    PolicyError,
    ProtocolError,
    SignatureError,
    SlowLineError,
    StudyError,
    ViewsDifferError,
)
from silograph.messages.envelope import EVERYONE, Envelope, seal
from silograph.messages.identity import COORDINATOR, pack
from silograph.party.control import ABORT, ACCEPT, ROUNDS, Code, Control, Notice, code_of
from tests.methods.test_study import KEYS, ROSTER, study

BINDING = study().binding(ROSTER)


@pytest.mark.parametrize("round_name", sorted(ROUNDS))
@pytest.mark.parametrize("code", Code)
def test_there_and_back(round_name: str, code: Code) -> None:
    word = Control(round_name, 1, code)
    raw = word.seal(BINDING, KEYS[1])
    assert Control.open(BINDING, raw, receiver=COORDINATOR) == word


def test_every_word_has_the_same_length() -> None:
    lengths = {len(Control(ABORT, 1, code).seal(BINDING, KEYS[1])) for code in Code}
    assert len(lengths) == 1


def test_signed_by_another_or_for_another_study() -> None:
    with pytest.raises(SignatureError):
        Control.open(BINDING, Control(ACCEPT, 1, Code.NONE).seal(BINDING, KEYS[0]), receiver=2)
    other = study(epsilon=4.0).binding(ROSTER)
    with pytest.raises(ProtocolError, match="other parameters"):
        Control.open(BINDING, Control(ACCEPT, 1, Code.NONE).seal(other, KEYS[1]), receiver=2)


@pytest.mark.parametrize("payload", [b"", b"\x00\x00", b"\xff"])
def test_other_payloads(payload: bytes) -> None:
    raw = seal(BINDING, KEYS[1], Envelope(ABORT, 1, EVERYONE, 0, payload))
    with pytest.raises(PayloadError, match="one code"):
        Control.open(BINDING, raw, receiver=COORDINATOR)


def test_messages_of_the_run_are_not_words() -> None:
    raw = seal(BINDING, KEYS[1], Envelope("chunk", 1, COORDINATOR, 0, b""))
    assert Control.open(BINDING, raw, receiver=COORDINATOR) is None


@given(st.binary(max_size=400))
def test_any_bytes(raw: bytes) -> None:
    with pytest.raises(ProtocolError):
        Control.open(BINDING, raw, receiver=COORDINATOR)


@given(st.data())
def test_a_changed_byte(data: st.DataObject) -> None:
    raw = bytearray(Control(ABORT, 1, Code.BUDGET).seal(BINDING, KEYS[1]))
    place = data.draw(st.integers(0, len(raw) - 1))
    raw[place] ^= data.draw(st.integers(1, 255))
    try:
        found = Control.open(BINDING, bytes(raw), receiver=COORDINATOR)
    except ProtocolError:
        return
    assert found is None  # the name of another round, which is checked as a message of the run


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (PolicyError("x"), Code.POLICY),
        (DeadlineError("x"), Code.DEADLINE),
        (SlowLineError("x"), Code.SLOW),
        (StudyError("x"), Code.STUDY),
        (BudgetError("x"), Code.BUDGET),
        (BusyError("x"), Code.BUSY),
        (ViewsDifferError("x"), Code.PROTOCOL),
        (LedgerError("x"), Code.INTERNAL),
        (RuntimeError("x"), Code.INTERNAL),
    ],
)
def test_codes(error: Exception, code: Code) -> None:
    assert code_of(error) is code


class TestNotice:
    """A party's word about itself, bound to no roster."""

    NOTICE = Notice(
        bytes(16), "north", Code.CLOCK, 1e9, "1.0", "ab" * 32, "cd" * 32, -3.5, ("disk", "clock")
    )

    def test_there_and_back(self) -> None:
        raw = self.NOTICE.seal(KEYS[1])
        assert Notice.begins(raw)
        assert Notice.open(raw, KEYS[1].public, "north") == self.NOTICE
        assert not Notice.begins(Control(ABORT, 1, Code.NONE).seal(BINDING, KEYS[1]))

    def test_of_another(self) -> None:
        raw = self.NOTICE.seal(KEYS[1])
        with pytest.raises(SignatureError):
            Notice.open(raw, KEYS[0].public, "north")
        with pytest.raises(PayloadError, match="a notice was due"):
            Notice.open(raw, KEYS[1].public, "south")

    @pytest.mark.parametrize(
        "change",
        [
            {"version": "\x1b[2J"}, {"version": 7}, {"time": math.nan}, {"time": True},
            {"failed": ("x" * 65,)}, {"failed": ("x",) * 33}, {"offset": "1"}, {"roster": None},
            {"time": 10**400}, {"offset": -(10**400)},
        ],
        ids=str,
    )  # fmt: skip
    def test_what_cannot_be_shown(self, change: dict[str, Any]) -> None:
        raw = replace(self.NOTICE, **change).seal(KEYS[1])
        with pytest.raises(PayloadError):
            Notice.open(raw, KEYS[1].public, "north")

    @given(st.data())
    def test_a_changed_byte(self, data: st.DataObject) -> None:
        raw = bytearray(self.NOTICE.seal(KEYS[1]))
        raw[data.draw(st.integers(0, len(raw) - 1))] ^= data.draw(st.integers(1, 255))
        with pytest.raises(ProtocolError):
            Notice.open(bytes(raw), KEYS[1].public, "north")

    @given(st.binary(max_size=400))
    def test_any_bytes(self, raw: bytes) -> None:
        with pytest.raises(ProtocolError):
            Notice.open(raw, KEYS[1].public, "north")

    @given(st.recursive(st.none() | st.integers() | st.text(), st.lists, max_leaves=5))
    def test_any_content(self, value: object) -> None:
        for content in (value, {"code": value, "failed": value}):
            body = json.dumps(content).encode()
            magic = b"silograph/notice/v1"
            raw = pack(magic, bytes(16), body, KEYS[1].sign(pack(magic, bytes(16), body)))
            with pytest.raises(ProtocolError):
                Notice.open(raw, KEYS[1].public, "north")
