"""The first hour, timed: from a fresh clone to README's demo, and to the tutorial's first answer.

    python -m benchmarks.first_hour

Clones this repository into a new folder, types what README says under "Try it", and then what the
tutorial says until its first answer, and prints a line for each command: minutes, words typed. The
build, with all of its downloads, is part of it. Reading and thinking are not.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.docs.blocks import blocks, commands
from tests.docs.readers import ROOT

__all__ = ["Step", "demo_steps", "tutorial_steps"]


@dataclass(frozen=True)
class Step:
    """One line that was typed."""

    line: str
    seconds: float
    first_words: str


def demo_steps() -> list[str]:
    """The lines of README until its first answer."""
    page = [
        c.text for b in blocks(ROOT / "README.md") if b.language == "console" for c in commands(b)
    ]
    demo = next(line for line in page if line.startswith("make demo"))
    return [demo.partition("#")[0].strip()]


def tutorial_steps() -> list[str]:
    """The lines of the tutorial until its first answer."""
    found: list[str] = []
    for block in blocks(ROOT / "docs" / "tutorial.md"):
        if block.language != "console":
            continue
        for command in commands(block):
            found.append(command.text)
            if command.text.startswith("silograph query"):
                return found
    raise ValueError("the tutorial asks no release")


def type_line(line: str, folder: Path, path: str) -> Step:
    """Run one line as a person would; it must succeed."""
    began = time.perf_counter()
    done = subprocess.run(
        ["bash", "-c", line], cwd=folder, capture_output=True, text=True, check=False,
        env=os.environ | {"PATH": path, "COLUMNS": "80"},
    )  # fmt: skip
    if done.returncode:
        raise SystemExit(f"{line}\n{done.stdout}{done.stderr}")
    said = [text for text in done.stdout.splitlines() if text.strip()]
    return Step(line, time.perf_counter() - began, said[0] if said else "")


def main() -> None:
    """Type everything, and print what it took."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, help="write the steps to this file, too")
    given = parser.parse_args()
    os.environ.pop("PYTHONPATH", None)  # the clone must stand on its own
    with tempfile.TemporaryDirectory(prefix="silograph-first-hour-") as place:
        clone, work = Path(place) / "silograph", Path(place) / "banks"
        work.mkdir()
        path = os.environ["PATH"]
        steps = [type_line(f"git clone --quiet {ROOT} {clone}", Path(place), path)]
        steps += [type_line(line, clone, path) for line in demo_steps()]
        answer = len(steps)
        saved = [b for b in blocks(ROOT / "docs" / "tutorial.md") if b.caption]
        for block in saved:
            (work / block.caption).write_text(block.text)
        path = f"{clone / '.venv' / 'bin'}:{path}"
        steps += [type_line(line, work, path) for line in tutorial_steps()]
    for step in steps:
        print(f"{step.seconds:7.1f} s  {step.line.splitlines()[0][:90]}")
    for what, part in (("README's demo", steps[:answer]), ("the tutorial's first answer", steps)):
        minutes = sum(step.seconds for step in part) / 60
        print(f"{what}: {len(part)} commands, {minutes:.1f} minutes of waiting")
    if given.json is not None:
        given.json.write_text(json.dumps([asdict(step) for step in steps], indent=1))


if __name__ == "__main__":
    sys.exit(main())
