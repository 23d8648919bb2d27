"""The tests of the tests: a page that says something wrong is found out."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.blocks import blocks, commands
from tests.docs.printed import near_noise, same
from tests.docs.shell import Server, Shell
from tests.docs.test_pages import Reader

PAGE = """
```console
$ echo one \\
>   two
one two
```
1. in a list

   ```{code-block} python
   :caption: `x.py`

   print(1)
   ```
<!-- numbers vary -->
```output
1
```
"""


def test_blocks(tmp_path: Path) -> None:
    (tmp_path / "p.md").write_text(PAGE)
    console, file, output = blocks(tmp_path / "p.md")
    assert (console.language, file.language, output.language) == ("console", "python", "output")
    assert (file.caption, file.text, console.caption) == ("x.py", "print(1)\n", "")
    assert (output.numbers_vary, console.numbers_vary) == (True, False)
    (command,) = commands(console)
    assert (command.text, command.printed, command.line) == ("echo one \\\n  two", "one two\n", 3)


@pytest.mark.parametrize(
    ("stated", "printed", "vary", "holds"),
    [
        ("a 1\n", "a 1 \n\n", False, True),
        ("a 1", "a 2", False, False),
        ("a 1", "a 2", True, True),
        ("a 1", "b 2", True, False),
        ("a … c", "a b c", False, True),
        ("a … c", "a b d", False, False),
        ("a\n…\nd", "a\nb\nc\nd", False, True),
        ("a\n…\nd", "a\nb\nc", False, False),
        ("a", "a\nb", False, False),
        ("n = 1,203 ± 4.5e-6 (−3)", "n =    99 ± 1 (7)", True, True),
        ("digest deadbeef01", "digest 0123456789abcdef", True, True),
        ("digest none", "digest 0123456789abcdef", True, False),
        ("━━━ 1", "━━━━━ 22", True, True),
        ("a.c", "abc", False, False),
    ],
)
def test_same(stated: str, printed: str, vary: bool, holds: bool) -> None:
    assert same(stated, printed, numbers_vary=vary) is holds


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (
            "triangles = 945.4 ± 393.8\n  95 % interval  173.5 … 1,717",
            ["triangles = 945.4 ± 393.8"],
        ),
        ("note: …\nkstars(k=2) = 1,005 ± 201.1\n", ["kstars(k=2) = 1,005 ± 201.1"]),
        ("edges = 1,005 ± 201", []),
    ],
)
def test_near_noise(text: str, found: list[str]) -> None:
    assert near_noise(text) == found


@pytest.fixture
def shell(server: Server, tmp_path: Path) -> Iterator[Shell]:
    (tmp_path / "scratch").mkdir()
    with Shell(server, tmp_path, tmp_path / "scratch") as made:
        yield made


def test_a_shell_remembers(shell: Shell) -> None:
    assert shell.run("NAME=value; cd /") == (0, "")
    assert shell.run('echo "$NAME $PWD"') == (0, "value /\n")
    assert shell.run("false") == (1, "")
    assert shell.run("echo $?") == (0, "1\n")
    assert shell.run("sleep 60 &") == (0, "")
    assert shell.run("kill %1") == (0, "")


def test_silograph_is_silograph(shell: Shell, tmp_path: Path) -> None:
    """Arguments, folder, redirections and exit codes are the shell's."""
    (tmp_path / "my edges.csv").write_text("u,v\n1,2\n")
    code, printed = shell.run(
        "silograph universe make 'my edges.csv' -o nodes.txt > said; cat said"
    )
    assert code == 0
    assert "2 nodes" in printed
    code, printed = shell.run("silograph universe show absent.txt")
    assert code == 2
    assert printed.startswith("silograph: absent.txt")
    assert shell.run("silograph nonsense")[0] == 2


@pytest.mark.parametrize(
    "text",
    [
        "```console\n$ false\n```",
        "```console\n$ echo a\nb\n```",
        "```console\n$ true\n$ echo $?\n```",
        "```console\n$ echo Traceback\n```",
        "```python\nprint(1)\n```\n```output\n2\n```",
        "```python\n1 / 0\n```",
    ],
)
def test_a_wrong_page_is_found(
    text: str, shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tests.docs.test_pages.named", lambda page: page.name)
    page = tmp_path / "p.md"
    page.write_text(text)
    with pytest.raises((AssertionError, ZeroDivisionError)):
        Reader(page, shell).read()


def test_a_right_page_is_not(shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tests.docs.test_pages.named", lambda page: page.name)
    page = tmp_path / "p.md"
    page.write_text(
        "```console\n$ false\n$ echo $?\n1\n```\n```python\nprint(2)\n```\n```output\n2\n```"
    )
    Reader(page, shell).read()
