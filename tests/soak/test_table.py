"""The table of a soak: what is wrong shows, and parts make one table."""

from pathlib import Path

import pytest

from tests.soak.__main__ import main
from tests.soak.table import Found, Trial, WrongError, merged, saved, table


def _found(found: Found) -> Trial:
    return Trial("a fault", "a-case", "the answer", lambda _: found)


def test_what_is_wrong_shows(tmp_path: Path) -> None:
    well = _found(Found("answer", named=9.0)).tried(tmp_path)
    assert (well.happened, well.wrong, well.named) == ("answer", (), 9.0)
    late = _found(Found("answer", named=10.2)).tried(tmp_path)
    assert (late.happened, late.wrong) == ("wrong", ("the cause was named after 10 s",))
    bad = _found(Found("answer", ("paid twice",))).tried(tmp_path)
    assert (bad.happened, bad.wrong) == ("wrong", ("paid twice",))

    def fails(_: Path) -> Found:
        raise WrongError("no answer")

    broken = Trial("a fault", "a-case", "the answer", fails).tried(tmp_path)
    assert (broken.happened, broken.wrong) == ("wrong", ("WrongError: no answer",))
    rows = table([well, late, bad, broken]).splitlines()
    cells = [cell.strip() for cell in rows[2].strip("|").split("|")]
    assert cells == ["a fault", "4", "the answer", "3 × wrong, 1 × answer", "10.2 s"]


def test_parts_make_one_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The exit code is that of all parts; a case that was tried again counts as it ended last."""
    first, again = tmp_path / "first.json", tmp_path / "again.json"
    saved([_found(Found("answer", ("paid twice",))).tried(tmp_path)], first)
    saved([_found(Found("answer")).tried(tmp_path)], again)
    assert [outcome.wrong for outcome in merged([first, again])] == [()]
    for words, code in (([first], 1), ([first, again], 0)):
        page = tmp_path / "table.md"
        monkeypatch.setattr(
            "sys.argv", ["soak", "--merge", *map(str, words), "--markdown", str(page)]
        )
        assert main() == code
        assert page.read_text() in capsys.readouterr().out
