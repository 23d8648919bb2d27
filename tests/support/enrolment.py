"""A coordinator and silos that enrol, each in a folder of its own below one."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from silograph.messages.identity import Role
from silograph.nats import consortium
from silograph.nats.consortium import Admitted, Founding
from silograph.party.enrolment import Suggested
from silograph.party.joining import Choices, Joined, join, open_welcome

__all__ = ["NOW", "Enrolment", "tree"]

NOW = datetime.now(UTC)
NODES = "a\nb\nc\nd\n"
EDGES = "from,to\na,b\nb,c\n"


def tree(folder: Path) -> dict[str, bytes]:
    """Every file below a folder and its content, to see that nothing was written."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


class Enrolment:
    """The steps, each as one call."""

    def __init__(self, folder: Path, name: str = "payments") -> None:
        self.folder = folder
        self.hub = folder / "hub"
        self.nodes, self.edges = folder / "nodes.txt", folder / "edges.csv"
        folder.mkdir(exist_ok=True)
        self.nodes.write_text(NODES)
        self.edges.write_text(EDGES)
        founding = Founding(name, ("127.0.0.1:4222",), nodes=self.nodes)
        consortium.found(founding, NOW, self.hub)
        self.invitation = self.invite()

    def invite(self, role: Role = "silo", terms: Suggested | None = None, days: int = 30) -> Path:
        return consortium.invite(self.hub, role, terms or Suggested(), NOW.date(), days)[0]

    def choices(self, name: str) -> Choices:
        return Choices(name, edges=self.edges, nodes=self.nodes)

    def join(self, name: str, invitation: Path | None = None, **changes: object) -> Joined:
        choices = replace(self.choices(name), **changes)  # type: ignore[arg-type]
        return join(invitation or self.invitation, choices, NOW.date(), self.folder / name)

    def answer(self, name: str) -> Path:
        return self.folder / name / f"{name}.answer"

    def signature(self, name: str) -> Path:
        return self.folder / name / f"{name}.signature"

    def welcome(self, name: str) -> Path:
        return self.hub / f"{name}.welcome"

    def admit(self, *names: str) -> Admitted:
        return consortium.admit(self.hub, [self.answer(name) for name in names], NOW)

    def arrive(self, name: str, welcome: str | None = None) -> None:
        open_welcome(self.welcome(welcome or name), self.folder / name).settle()

    def collect(self, *names: str) -> Admitted:
        return consortium.collect(self.hub, [self.signature(name) for name in names])

    def whole(self, names: Sequence[str]) -> None:
        """All steps for all silos."""
        for name in names:
            self.join(name)
        self.admit(*names)
        for name in names:
            self.arrive(name)
        self.collect(*names)
        for name in names:
            self.arrive(name, "payments")
