"""From nothing to the first deployed answer: commands, files written by hand, and seconds.

Runs the commands of the manual's pages, word for word, on one machine with three silos: by hand
(``docs/howto/deploy-by-hand.md``), by invitation and with ``silograph up`` (both
``docs/howto/deploy.md``). The seconds are those of the machine, without typing, mail and telephone.
"""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tests.docs.blocks import blocks, commands
from tests.docs.readers import ROOT, banks

HOWTO = ROOT / "docs" / "howto"
OUTPUT = ROOT / "build" / "first-answer.json"
SILOS = ("north", "south", "west")
_SECONDS = 300
_LAST = re.compile(r"silograph (study propose|up) ")
console = Console(width=100)


@dataclass(frozen=True)
class Way:
    """A way to the first answer: the commands, and the files that a reader writes."""

    name: str
    commands: tuple[str, ...]
    files: dict[str, str]

    @property
    def parties(self) -> Counter[str]:
        """How many commands each party types; those that belong to no party are left out."""
        found = (re.search(r"--folder (\w+)|--config (\w+)/|-c (\w+)/", c) for c in self.commands)
        return Counter(next(filter(None, place.groups())) for place in found if place)


def _way(name: str, page: str, after: str = "") -> Way:
    """What a page says, from a heading on, to its first answer."""
    path = HOWTO / page
    start = path.read_text().splitlines().index(after) if after else 0
    typed: list[str] = []
    files: dict[str, str] = {}
    for block in blocks(path):
        if block.line < start:
            continue
        if block.caption:
            files[block.caption] = block.text
        for command in commands(block) if block.language == "console" else ():
            typed.append(command.text)
            if _LAST.match(command.text):
                return Way(name, tuple(typed), files)
    raise AssertionError(f"{page}: no answer")


def ways() -> list[Way]:
    """All ways that the manual shows."""
    return [
        _way("by hand", "deploy-by-hand.md"),
        _way("by invitation", "deploy.md", "## Each party on its own machine"),
        _way("silograph up", "deploy.md"),
    ]


def seconds(way: Way) -> float:
    """How long the commands take, one after the other, with nothing installed but the programs."""
    with tempfile.TemporaryDirectory(prefix="silograph-first-") as folder:
        place, bin_ = Path(folder) / "reader", Path(folder) / "bin"
        place.mkdir()
        bin_.mkdir()
        program = bin_ / "silograph"
        program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m silograph "$@"\n')
        program.chmod(0o755)
        before = Path.cwd()
        os.chdir(place)
        banks(place)
        os.chdir(before)
        for name, text in way.files.items():
            (place / name).write_text(text)
        path = f"{bin_}:{Path(sys.executable).parent}:{os.environ['PATH']}"
        began = time.perf_counter()
        with subprocess.Popen(
            ["bash", "-ec", "\n".join(way.commands)], cwd=place, env={**os.environ, "PATH": path},
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True,
        ) as process:  # fmt: skip
            try:
                code = process.wait(_SECONDS)
                took = time.perf_counter() - began
            finally:
                with contextlib.suppress(ProcessLookupError):  # nothing runs on
                    os.killpg(process.pid, signal.SIGTERM)
            said = process.stdout.read() if process.stdout else ""
    if code != 0:
        raise SystemExit(f"{way.name}: exit code {code}\n{said}")
    return took


def main() -> None:
    table = Table("way", "commands", "a silo", "coordinator", "files by hand", "seconds")
    lines = []
    for way in ways():
        took, parties = seconds(way), way.parties
        silo = max((parties[name] for name in SILOS), default=0)
        line = {"commands": len(way.commands), "silo": silo, "coordinator": parties["hub"],
                "files": len(way.files), "seconds": round(took, 1)}  # fmt: skip
        lines.append({**asdict(way), **line})
        shown = [str(value or "") for value in line.values()]
        table.add_row(way.name, *shown)
    console.print(table)
    OUTPUT.parent.mkdir(exist_ok=True)
    OUTPUT.write_text(json.dumps(lines, indent=1) + "\n")


if __name__ == "__main__":
    main()
