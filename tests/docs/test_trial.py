"""A newcomer's lines in a terminal of 80 columns: exit codes, widths and words."""

from pathlib import Path

import pytest

from tests.docs.shell import Server
from tests.trial import MISTAKES, SCENES, Heard, Typed, faults, play, untried

COLLECT = next(typed for typed in SCENES if typed.line.endswith("may.release"))


def test_mistakes_are_answered_in_words(server: Server, tmp_path: Path) -> None:
    found = {
        heard.typed.line: heard.text + "\n".join(wrong)
        for heard in play(server, tmp_path, (COLLECT, *MISTAKES))
        if (wrong := faults(heard))
    }
    assert not found


@pytest.mark.whole
def test_every_line_is_well(server: Server, tmp_path: Path) -> None:
    found = {
        heard.typed.line: wrong for heard in play(server, tmp_path) if (wrong := faults(heard))
    }
    assert not found


def test_every_command_is_tried() -> None:
    assert not untried()


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("x " * 41, 0),
        ("noise Channel(p11=0.9, p01=0.1)", 0),
        ("Traceback (most recent call last):", 0),
        ("fine", 1),
    ],
)
def test_what_is_ugly_is_found(text: str, code: int) -> None:
    assert faults(Heard(Typed("x"), code, f"{text}\n"))
    assert not faults(Heard(Typed("x"), 0, "an edge shows with p = 0.9524\n"))
