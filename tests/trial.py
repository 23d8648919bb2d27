"""`make trial`: every command, typed as a newcomer would in a terminal of 80 columns.

Prints the whole transcript, and then what is wrong in it: an exit code that was not expected, a
line that is too wide, a Python object or a traceback where words should be, or a command that was
not tried. The transcript is there to be read: no rule finds a sentence that is not clear.
"""

import fcntl
import os
import re
import struct
import subprocess
import sys
import tempfile
import termios
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from typer.main import get_command

from silograph.cli.app import app
from tests.docs.readers import banks
from tests.docs.shell import Server

__all__ = ["MISTAKES", "SCENES", "Heard", "Typed", "faults", "play", "untried"]

COLUMNS = 80
#: What Python says where a person should.
_NOT_WORDS = re.compile(
    r"Traceback|Channel\(|<silograph|dataclass|<[a-z_.]*\.[A-Z]\w+ |object at 0x|np\.\w+\("
    r"|\bNone\b|\bTrue\b|\bFalse\b|PosixPath|[A-Z]\w+Error\b|\bnan\b|\w+\(\w+='"
)
#: Longer than any command here takes; one that waits for an answer ends so.
_SECONDS = 60


@dataclass(frozen=True)
class Typed:
    """One line at the prompt, the exit code that it should end with, and answers to questions."""

    line: str
    code: int = 0
    answers: str = ""


@dataclass(frozen=True)
class Heard:
    """What came of it."""

    typed: Typed
    code: int
    text: str


FILES = "north.csv south.csv west.csv --nodes nodes.txt"
BOOK = "--ledger banks.ledger --lineage payments"
KEYS = "hub north south west"

#: What goes wrong in a first hour; ``may.release`` is there.
MISTAKES: tuple[Typed, ...] = (
    Typed("silograph cuont", 2),
    Typed("silograph count", 2),
    Typed("silograph count triangels north.csv south.csv --epsilon 3", 2),
    Typed("silograph count edges north.csv --epsilon 3", 2),
    Typed("silograph count edges north.csv absent.csv --epsilon 3", 2),
    Typed(f"silograph count edges {FILES} --epsilon many", 2),
    Typed(f"silograph count edges {FILES} --epsilon -1", 2),
    Typed(f"silograph count edges {FILES} --epsilon 3 --method best", 2),
    Typed(f"silograph count kstars {FILES} --epsilon 3", 2),
    Typed(f"silograph count edges {FILES} --epsilon 3 --protocol committee", 2),
    Typed("silograph count edges short.csv south.csv --nodes nodes.txt --epsilon 3", 2),
    Typed("silograph query nodes.txt edges", 2),
    Typed("silograph query may.release mixing", 2),
    Typed("silograph query may.release mixing --groups short.csv --nodes nodes.txt", 2),
    Typed(f"silograph collect {FILES} --epsilon 3 -o may.release", 2),
    Typed("silograph plan --query triangles --epsilon 3 --silos 1 --nodes 300", 2),
    Typed("silograph ledger show nodes.txt", 2),
)
#: What is typed, in order, in one folder with the three files of the tutorial.
SCENES: tuple[Typed, ...] = (
    # Looking around.
    Typed("silograph --version"),
    Typed("silograph", 2),
    Typed("silograph demo"),
    Typed("silograph universe show nodes.txt"),
    Typed("silograph universe show customers.csv --node-column customer"),
    Typed("silograph universe make north.csv south.csv west.csv -o made.txt"),
    Typed("silograph universe compare nodes.txt centre.txt", 1),
    Typed("silograph split --generate 200 -o trial"),
    Typed("silograph bench --nodes 300 --silos 3"),
    # The first question.
    Typed("silograph plan --query triangles --epsilon 3 --silos 3 --nodes 300 --edges 1700"),
    Typed("silograph plan --query triangles --epsilon 1 --silos 4 --nodes 1000000 --delta 1e-9"),
    Typed(f"silograph collect {FILES} --epsilon 3 {BOOK} -o may.release"),
    Typed(f"silograph collect {FILES} --epsilon 3 {BOOK} -o june.release"),
    Typed(f"silograph collect {FILES} --epsilon 6 --fold 100,5 {BOOK} -o folded.release"),
    *(
        Typed(f"silograph query may.release {query}")
        for query in (
            "edges", "degrees", "degree_histogram", "kstars --k 2", "triangles", "node_triangles",
            "four_cycles", "clustering", "local_clustering", "degree_correlation",
        )
    ),
    *(
        Typed(f"silograph query may.release {query} --groups branches.csv --nodes nodes.txt")
        for query in ("mixing", "degrees_by", "triangles_by", "assortativity", "modularity")
    ),
    Typed("silograph query may.release triangles --subset centre.txt --nodes nodes.txt"),
    Typed("silograph query may.release degrees --nodes nodes.txt --csv d.csv --html d.html"),
    Typed("silograph query folded.release triangles"),
    Typed("silograph query folded.release degrees", 2),
    Typed("silograph compare may.release june.release"),
    # Other methods.
    Typed(f"silograph count triangles {FILES} --epsilon 3 {BOOK}"),
    Typed(f"silograph count edges {FILES} --epsilon 3 --method feat+ {BOOK}"),
    Typed(f"silograph count triangles {FILES} --epsilon 3 --method sealed --delta 1e-6 {BOOK}"),
    Typed(f"silograph count edges {FILES} --epsilon 3 --method baseline {BOOK}"),
    Typed(f"silograph count edges {FILES} --epsilon 3 --html edges.html {BOOK}"),
    Typed(f"silograph count triangles {FILES} --epsilon 0.3 {BOOK}", 1, "n\n"),
    Typed(f"silograph count triangles {FILES} --epsilon 0.3 --yes {BOOK}"),
    # The budget.
    Typed("silograph ledger show banks.ledger"),
    Typed("silograph ledger limit banks.ledger payments 35 --delta 1e-5"),
    Typed(f"silograph collect {FILES} --epsilon 9 {BOOK} -o more.release", 3),
    Typed("silograph ledger verify banks.ledger"),
    Typed("silograph ledger backup banks.ledger banks.backup"),
    Typed("silograph ledger restore banks.backup again.ledger --complete"),
    Typed("silograph ledger restore banks.backup closed.ledger --close --seen $WITNESS"),
    Typed("silograph ledger thaw banks.ledger", 2),
    Typed("silograph ledger export banks.ledger | head -c 60"),
    *MISTAKES,
    # A deployment on this machine, then its parts by hand.
    Typed(f"silograph up --silos {FILES} --query edges --epsilon 3 --folder up"),
    Typed("silograph study list --config up/hub/coordinator.toml"),
    Typed("silograph study result $RUN --config up/hub/coordinator.toml"),
    Typed("silograph study abort $RUN --config up/hub/coordinator.toml"),
    Typed("silograph study watch $RUN --config up/hub/coordinator.toml"),
    Typed("silograph study ping --config up/hub/coordinator.toml", 5),
    Typed("silograph silo studies --config up/north/silo.toml"),
    Typed("silograph silo status --config up/north/silo.toml", 1),
    Typed("silograph silo check --config up/north/silo.toml", 1),
    Typed("silograph silo approve $RUN --config up/north/silo.toml", 2),
    Typed("silograph silo refuse $RUN --config up/north/silo.toml", 2),
    Typed("silograph trail show --config up/north/silo.toml"),
    Typed("silograph trail verify --config up/north/silo.toml"),
    Typed("silograph console token anna --config up/north/silo.toml"),
    Typed("silograph invite payments --broker 127.0.0.1:14229 --nodes nodes.txt --epsilon 3 "
          "--folder hub"),
    Typed("silograph join hub/payments.invitation --name east --data north.csv --nodes nodes.txt "
          "--epsilon 3 --accept auto --folder east"),
    Typed("silograph admit east/east.answer --folder hub"),
    *(Typed(f"silograph keys new {name}.key | tee {name}.pub") for name in KEYS.split()),
    Typed("silograph keys show north.key"),
    Typed("silograph roster new roster.toml hub $(cat hub.pub)"),
    *(
        Typed(f"silograph roster add roster.toml {n} $(cat {n}.pub)")
        for n in KEYS.split()[1:]
    ),
    Typed("silograph roster digest roster.toml"),
    Typed("silograph roster words roster.toml"),
    Typed("silograph roster sign roster.toml --identity hub.key", 0, "y\n"),
    Typed("silograph roster show roster.toml"),
    Typed("silograph roster change roster.toml west --organisation 'West Bank'"),
    Typed("silograph roster rotate roster.toml west $(silograph keys new w2.key | tail -n 1)"),
    Typed("silograph roster revoke roster.toml west --reason gone"),
    Typed("silograph roster merge roster.toml roster.toml"),
    Typed("silograph certs new --roster roster.toml --host localhost --out certs"),
    Typed("silograph certs issue east --out certs"),
    Typed("silograph certs show certs/*.pem"),
    Typed("silograph broker config --roster roster.toml --tls certs --listen 127.0.0.1:14230 "
          "--out broker"),
    Typed("silograph silo run --config absent.toml", 2),
    Typed("silograph study propose edges --epsilon 3 --config absent.toml", 2),
    Typed("silograph console --config absent.toml", 2),
)  # fmt: skip
#: Commands of which the help alone is tried, each with the reason.
HELP_ONLY = {"audit": "takes a minute; make audit"}


def every_command() -> list[str]:
    """The words of every command that does something."""
    found = []

    def walk(command: object, words: str) -> None:
        inner = getattr(command, "commands", None)
        if inner is None:
            found.append(words)
            return
        for name in inner:
            walk(inner[name], f"{words} {name}".strip())

    walk(get_command(app), "")
    return found


class Terminal:
    """A terminal of 80 columns in a folder, and the shell that runs in it."""

    def __init__(self, server: Server, folder: Path) -> None:
        self.folder = folder
        own = Path(sys.executable).parent
        self.environment = {
            "PATH": f"{server.bin}:{own}:{os.environ['PATH']}",
            "HOME": str(folder), "LANG": "C.UTF-8", "TERM": "dumb", "TZ": "UTC",
            "PYTHONPATH": os.environ.get("PYTHONPATH", ""),
        }  # fmt: skip

    def type(self, typed: Typed) -> Heard:
        """Run one line, with answers to what it asks, and read the screen."""
        main, side = os.openpty()
        fcntl.ioctl(side, termios.TIOCSWINSZ, struct.pack("HHHH", 40, COLUMNS, 0, 0))
        process = subprocess.Popen(
            ["bash", "--norc", "--noprofile", "-c", typed.line],
            stdin=side, stdout=side, stderr=side, cwd=self.folder, env=self.environment,
            start_new_session=True,
        )  # fmt: skip
        os.close(side)
        os.write(main, typed.answers.encode())
        text = b"".join(_read(main)).decode("utf-8", "replace")
        os.close(main)
        return Heard(
            typed, process.wait(_SECONDS), text.replace("\r\n", "\n").replace("[y/N]: ", "[y/N]:\n")
        )


def _read(terminal: int) -> Iterator[bytes]:
    while True:
        try:
            found = os.read(terminal, 1 << 16)
        except OSError:  # the last process has closed it
            return
        if not found:
            return
        yield found


def _prepare(folder: Path) -> None:
    """The files that a newcomer has: the tutorial's, and some more."""
    before = Path.cwd()
    os.chdir(folder)
    try:
        banks(folder)
    finally:
        os.chdir(before)
    names = (folder / "nodes.txt").read_text().split()
    (folder / "centre.txt").write_text("".join(f"{name}\n" for name in names[:100]))
    rows = [f"{name},{'centre' if place < 100 else 'suburb'}\n" for place, name in enumerate(names)]
    (folder / "branches.csv").write_text("customer,branch\n" + "".join(rows))
    (folder / "customers.csv").write_text("customer,branch\n" + "".join(rows))
    (folder / "short.csv").write_text("customer,branch\nc000\n")


def play(server: Server, folder: Path, scenes: tuple[Typed, ...] = SCENES) -> Iterator[Heard]:
    """Type everything in order."""
    _prepare(folder)
    terminal = Terminal(server, folder)
    for typed in scenes:
        heard = terminal.type(typed)
        _remember(terminal, heard)
        yield heard


def _remember(terminal: Terminal, heard: Heard) -> None:
    """What a person would copy from the screen into the next line."""
    for name, pattern in (("RUN", r"^│ ([0-9a-f]{12}) │"), ("WITNESS", r"^witness (\S.*)$")):
        found = re.search(pattern, heard.text, flags=re.M)
        if found:
            terminal.environment[name] = found[found.lastindex or 0]


def faults(heard: Heard) -> list[str]:
    """What is wrong in what one line printed."""
    found = []
    if heard.code != heard.typed.code:
        found.append(f"exit code {heard.code}, not {heard.typed.code}")
    for line in heard.text.splitlines():
        if len(line.rstrip()) > COLUMNS and not re.search(r"\S{70}", line):
            found.append(f"{len(line.rstrip())} columns: {line.strip()}")
        bare = _NOT_WORDS.search(line)
        if bare:
            found.append(f"not words, {bare[0]!r}: {line.strip()}")
    return found


def untried() -> list[str]:
    """The commands that no scene types."""
    typed = [line for scene in SCENES for line in scene.line.split("silograph ")[1:]]
    return [
        words
        for words in every_command()
        if words not in HELP_ONLY and not any(line.startswith(words) for line in typed)
    ]


def main() -> int:
    """Print the transcript, and then its faults."""
    wrong = [f"not tried: silograph {words}" for words in untried()]
    helps = tuple(Typed(f"silograph {words} --help") for words in every_command())
    with tempfile.TemporaryDirectory() as folder:
        binary, place = Path(folder) / "bin", Path(folder) / "trial"
        binary.mkdir()
        place.mkdir()
        server = Server(binary)
        try:
            for heard in play(server, place, SCENES + helps):
                print(f"$ {heard.typed.line}\n{heard.text}", flush=True)
                wrong += [f"{heard.typed.line}: {fault}" for fault in faults(heard)]
        finally:
            server.close()
    print("\n".join(f"!!! {fault}" for fault in wrong))
    print(f"{len(SCENES)} lines typed, {len(helps)} helps, {len(wrong)} faults")
    return len(wrong) > 0


if __name__ == "__main__":
    sys.exit(main())
