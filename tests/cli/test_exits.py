"""From errors to exit codes, the help that documents them, and completion in shells."""

import platform
import re
import sqlite3
from pathlib import Path

import pytest
import typer

from silograph import __version__, _core, cli, errors
from silograph.cli.app import app
from silograph.cli.exits import HELP, explain
from silograph.errors import StoreError
from silograph.graph.bits import simd_levels
from silograph.party.store import Store

CODES = {
    "BudgetError": 3,
    "FrozenError": 3,
    **dict.fromkeys(
        (
            "ProtocolError", "EnvelopeError", "SignatureError", "BindingError", "OrderError",
            "PayloadError", "ViewsDifferError", "ClonedError", "CryptoError", "EncodingError",
            "ProofError", "KeyRefusedError", "DecryptionError",
        ),
        4,
    ),
    **dict.fromkeys(("AbortedError", "DeadlineError", "SlowLineError", "TransportError"), 5),
}  # fmt: skip


def tree() -> list[type[errors.SilographError]]:
    found = (getattr(errors, name) for name in errors.__all__)
    return [kind for kind in found if issubclass(kind, errors.SilographError)]


@pytest.mark.parametrize("kind", tree(), ids=lambda kind: kind.__name__)
def test_every_error_has_its_code(kind: type[errors.SilographError]) -> None:
    more = {"code": "x"} if kind is errors.AbortedError else {}
    assert explain(kind("what is wrong", **more)) == (CODES.get(kind.__name__, 2), "what is wrong")


def test_errors_of_the_system() -> None:
    assert explain(IsADirectoryError(21, "Is a directory", "x")) == (2, "x: Is a directory")
    assert explain(PermissionError(13, "Permission denied", b"x")) == (2, "x: Permission denied")
    assert explain(OSError(28, "No space left on device"))[0] == 75


def test_a_full_disk_is_not_a_wrong_file(tmp_path: Path) -> None:
    """Whatever error says so: systemd starts a service again that ends with this code."""
    for error in (StoreError("x"), errors.LedgerError("x")):
        full = sqlite3.OperationalError("database or disk is full")
        full.sqlite_errorname = "SQLITE_FULL"
        error.__context__ = full
        assert explain(error) == (75, "x")
    store = Store(tmp_path / "store.db", "north")
    pages = store._connection.execute("PRAGMA page_count").fetchone()[0]
    store._connection.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(StoreError, match="SQLITE_FULL") as caught:
        store.add("00" * 16, bytes(100_000))
    assert explain(caught.value)[0] == 75
    store.close()
    for unit in (Path(__file__).parents[2] / "deploy" / "systemd").glob("*.service"):
        prevented = re.findall(r"RestartPreventExitStatus=(.*)", unit.read_text())
        assert not [codes for codes in prevented if "75" in codes.split()]
    assert explain(BrokenPipeError(32, "Broken pipe"))[0] == 5
    assert explain(KeyboardInterrupt()) == (5, "interrupted")
    code, text = explain(MemoryError())
    assert (code, "not enough memory" in text) == (2, True)
    assert explain(UnicodeDecodeError("utf-8", b"\xff", 0, 1, "bad"))[0] == 2
    assert explain(typer.Abort())[0] == 1


def test_a_missing_extra_is_named() -> None:
    assert explain(errors.MissingExtraError("pip install 'silograph[x]'"))[0] == 2
    assert explain(ModuleNotFoundError("x", name="silograph.gone"))[0] == 70


def test_one_line_that_no_terminal_obeys() -> None:
    text = explain(errors.UniverseError("two lists\n  only here: 1\n\x1b[31mred\x07"))[1]
    assert text == "two lists; only here: 1; �[31mred�"


def test_our_own_faults(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken() -> None:
        raise KeyError("surprise")

    monkeypatch.setattr("silograph.cli.demo.demo_silos", broken)
    assert cli.main(["demo"]) == 70
    said = capsys.readouterr().err
    assert said.startswith("silograph: this is a bug in Silograph: KeyError: 'surprise'")
    assert said.count("\n") == 1
    for words in (["--debug", "demo"], ["demo", "--debug"]):
        with pytest.raises(KeyError):
            cli.main(words)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.BudgetError("spent"), 3),
        (errors.ViewsDifferError("silos saw different things"), 4),
        (errors.AbortedError("ended", code="x"), 5),
        (KeyboardInterrupt(), 5),
        (MemoryError(), 2),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else "",
)
def test_through_the_door(
    error: BaseException,
    code: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def fails() -> None:
        raise error

    monkeypatch.setattr("silograph.cli.demo.demo_silos", fails)
    assert cli.main(["demo", "--json"]) == code
    said = capsys.readouterr()
    assert (said.out, said.err.count("\n")) == ("", 1)


def test_codes_are_documented(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--help"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    for words in (
        "0 success",
        "2 wrong arguments",
        "3 refused: the privacy budget",
        "4 another party broke the protocol",
        "5 a run",
    ):
        assert words in HELP
        assert words in said


def test_the_version_says_how_it_was_built(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["--version"]) == 0
    first, core, extras = capsys.readouterr().out.splitlines()
    assert first.startswith(f"silograph {__version__} (CPython 3.")
    assert core.startswith(f"core: Rust, release profile, {simd_levels()[-1]}; commit ")
    assert extras == "extras: interop, deploy, websocket, dask, report, console"
    # The curve's AVX-512 code, which .cargo/config.toml asks for.
    assert _core.build()[2] == (platform.machine() == "x86_64")
    monkeypatch.setattr(_core, "build", lambda: ("debug", "0123abc", False))
    monkeypatch.setattr("silograph.cli.app.find_spec", lambda _: None)
    assert cli.main(["--version"]) == 0
    said = capsys.readouterr().out
    assert "debug profile" in said
    assert "commit 0123abc" in said
    assert "extras: none" in said


def test_without_arguments_there_is_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([]) == 2
    said = capsys.readouterr()
    assert "Usage: silograph" in said.out
    assert said.err == ""


def test_every_page_of_help_fits_80_columns(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    pages = _pages(typer.main.get_command(app), [])
    assert len(pages) > 40
    for words in pages:
        assert cli.main([*words, "--help"]) == 0
        said = capsys.readouterr().out
        assert max(map(len, said.splitlines())) <= 80, words
        assert "…" not in said.replace("0 …", ""), words  # nothing is cut off


def _pages(command: object, words: list[str]) -> list[list[str]]:
    below: dict[str, object] = getattr(command, "commands", {})
    return [words, *(p for name, c in below.items() for p in _pages(c, [*words, name]))]


@pytest.mark.parametrize("sh", ["bash", "zsh", "fish"])
@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("silograph coll", "collect"),
        ("silograph count tri", "triangles"),
        ("silograph count edges --method sea", "sealed"),
        ("silograph query g.release four", "four_cycles"),
        ("silograph collect a.csv --protocol elgamal/b", "elgamal/blinded"),
    ],
)
def test_shells_complete(
    sh: str,
    typed: str,
    expected: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name, value in {
        "_SILOGRAPH_COMPLETE": f"complete_{sh}",
        "_TYPER_COMPLETE_ARGS": typed,
        "_TYPER_COMPLETE_FISH_ACTION": "get-args",
        "COMP_WORDS": typed,
        "COMP_CWORD": str(len(typed.split()) - 1),
    }.items():
        monkeypatch.setenv(name, value)
    cli.main([])
    assert expected in capsys.readouterr().out


@pytest.mark.parametrize("sh", ["bash", "zsh", "fish"])
def test_shells_have_a_script(
    sh: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("_SILOGRAPH_COMPLETE", f"source_{sh}")
    cli.main([])
    assert "_SILOGRAPH_COMPLETE" in capsys.readouterr().out
