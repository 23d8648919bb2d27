"""Every command and every Python block of every page runs as it is printed."""

import contextlib
import fcntl
import io
import re
import tempfile
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.docs.blocks import Block, Command, blocks, commands
from tests.docs.printed import near_noise, same
from tests.docs.readers import NOT_RUN, PREPARED, ROOT, pages
from tests.docs.shell import Server, Shell

#: What blocks may be. A language that looks like ``console`` or ``python`` and is not run would
#: be a way round these tests.
LANGUAGES = {"console", "python", "output", "text", "toml", "ini", "csv", "json"}
RUN = {"console", "python"}


def named(page: Path) -> str:
    return str(page.relative_to(ROOT))


def runs(page: Path) -> bool:
    return any(block.language in RUN for block in blocks(page))


@pytest.mark.parametrize("page", [page for page in pages() if runs(page)], ids=named)
def test_the_page_runs(
    page: Path, server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, scratch = tmp_path / "reader", tmp_path / "scratch"
    folder.mkdir()
    scratch.mkdir()
    monkeypatch.chdir(folder)
    PREPARED.get(named(page), lambda _: None)(folder)
    with ports_of(page), Shell(server, folder, scratch) as shell:
        Reader(page, shell).read()


@contextlib.contextmanager
def ports_of(page: Path) -> Iterator[None]:
    """Keeps other tests of this page, in whatever checkout, off the ports that it names."""
    with contextlib.ExitStack() as held:
        for port in sorted(set(re.findall(r"127\.0\.0\.1:(\d+)", page.read_text()))):
            place = Path(tempfile.gettempdir()) / f"silograph-page-{port}.lock"
            fcntl.flock(held.enter_context(place.open("w")), fcntl.LOCK_EX)
        yield


class Reader:
    """Does what the page says, in order."""

    def __init__(self, page: Path, shell: Shell) -> None:
        self.page = page
        self.shell = shell
        self.names: dict[str, Any] = {"__name__": "__main__"}

    def read(self) -> None:
        found = blocks(self.page)
        every = [command for b in found if b.language == "console" for command in commands(b)]
        # A command may fail where the page shows its exit code next.
        failing = {c.line for c, then in pairwise(every) if then.text == "echo $?"}
        for block, following in zip(found, [*found[1:], None], strict=True):
            if block.caption:
                Path(block.caption).write_text(block.text)
            elif block.language == "console":
                for command in commands(block):
                    self.type(block, command, failing=command.line in failing)
            elif block.language == "python":
                output = following if following and following.language == "output" else None
                self.execute(block, output)

    def type(self, block: Block, command: Command, *, failing: bool) -> None:
        where = f"{self.page.name}:{command.line}: {command.text}"
        if (named(self.page), plain(command.text)) in NOT_RUN:
            return
        code, printed = self.shell.run(command.text)
        assert (code != 0) == failing, f"{where}\nexit code {code}\n{printed}"
        stated = command.printed
        if stated:
            assert same(stated, printed, numbers_vary=block.numbers_vary), (
                f"{where}\nstated:\n{stated}\nprinted:\n{printed}"
            )
        assert "Traceback" not in printed, f"{where}\n{printed}"

    def execute(self, block: Block, output: Block | None) -> None:
        code = compile("\n" * block.line + block.text, str(self.page), "exec")
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(code, self.names)  # noqa: S102 - our own pages
        if output is not None:
            assert same(output.text, printed.getvalue(), numbers_vary=output.numbers_vary), (
                f"{output.where}\nstated:\n{output.text}\nprinted:\n{printed.getvalue()}"
            )


@pytest.mark.parametrize("page", pages(), ids=named)
def test_readers_see_the_same_words(page: Path) -> None:
    assert not [c for block in blocks(page) for c in near_noise(block.text)]


def plain(command: str) -> str:
    """A command without its comment."""
    return re.sub(r"\s+#.*", "", command)


@pytest.mark.parametrize("page", pages(), ids=named)
def test_nothing_is_left_out(page: Path) -> None:
    """Every block is of a known kind; output follows what prints it; saved programs are run."""
    found = blocks(page)
    console = "\n".join(block.text for block in found if block.language == "console")
    for before, block in zip([None, *found], found, strict=False):
        if block.language.startswith("{"):
            continue  # a directive of Sphinx, which knows its own
        assert block.language in LANGUAGES, f"{block.where}: {block.language!r}"
        if block.language == "output":
            assert before is not None, block.where
            assert before.language == "python", block.where
        if block.language == "console":
            assert commands(block), f"{block.where}: no command"
            assert not block.caption, block.where
        if block.language == "python" and block.caption:
            assert f"python {block.caption}" in console, f"{block.where}: nothing runs it"


def test_what_is_not_run_is_there() -> None:
    """A reason whose command has gone is no reason."""
    typed = {
        (named(page), plain(command.text))
        for page in pages()
        for block in blocks(page)
        if block.language == "console"
        for command in commands(block)
    }
    assert set(NOT_RUN) <= typed
    assert set(PREPARED) <= {named(page) for page in pages()}
