"""What a state store holds: its tables, and rows of them as values."""

from dataclasses import dataclass, field

__all__ = ["COLUMNS", "TABLES", "Frozen", "Name", "Run", "Taken", "read_run"]

TABLES = """
CREATE TABLE store (version INTEGER NOT NULL, identity TEXT NOT NULL, party TEXT NOT NULL,
    roster_serial INTEGER NOT NULL DEFAULT 0, roster_digest BLOB,
    witness TEXT NOT NULL DEFAULT '');
CREATE TABLE runs (
    number INTEGER PRIMARY KEY,
    run TEXT NOT NULL UNIQUE,
    proposal BLOB NOT NULL,
    decision TEXT NOT NULL CHECK (decision IN ('', 'accepted', 'refused', 'abort')),
    decided_by TEXT NOT NULL DEFAULT '',
    secret BLOB,
    spent INTEGER NOT NULL DEFAULT 0,
    phase TEXT NOT NULL DEFAULT '',
    state TEXT NOT NULL DEFAULT 'open'
        CHECK (state IN ('open', 'done', 'aborted', 'refused')),
    code TEXT NOT NULL DEFAULT ''
);
CREATE INDEX open_runs ON runs (number) WHERE state = 'open';
CREATE TABLE outgoing (
    number INTEGER PRIMARY KEY,
    run TEXT NOT NULL,
    receiver INTEGER NOT NULL,
    round TEXT NOT NULL,
    slot TEXT NOT NULL,
    digest BLOB NOT NULL,
    size INTEGER NOT NULL,
    raw BLOB,
    UNIQUE (run, receiver, round, slot)
);
CREATE TABLE incoming (
    number INTEGER PRIMARY KEY,
    run TEXT NOT NULL,
    sender INTEGER NOT NULL,
    round TEXT NOT NULL,
    slot TEXT NOT NULL,
    digest BLOB NOT NULL,
    UNIQUE (run, sender, round, slot)
);
"""


@dataclass(frozen=True)
class Name:
    """What names a message of a run: the other party's place, the round, the slot."""

    party: int
    round: str
    slot: int


@dataclass(frozen=True)
class Frozen:
    """A message on its way out; ``raw`` is None where the broker has it already."""

    name: Name
    raw: bytes | None = field(repr=False)


@dataclass(frozen=True)
class Taken:
    """A message that came in, by its digest."""

    name: Name
    digest: bytes


@dataclass(frozen=True)
class Run:
    """A run as the store knows it. The secret is not shown."""

    run: str
    proposal: bytes = field(repr=False)
    decision: str
    decided_by: str
    secret: bytes | None = field(repr=False)
    spent: bool
    phase: str
    state: str
    code: str

    @property
    def open(self) -> bool:
        """Whether it has not ended."""
        return self.state == "open"


#: The columns of a run, in the order of :func:`read_run`.
COLUMNS = "run, proposal, decision, decided_by, secret, spent, phase, state, code"


def read_run(row: tuple[object, ...]) -> Run:
    """A run from its row."""
    run, proposal, decision, by, secret, spent, phase, state, code = row
    return Run(run, proposal, decision, by, secret, bool(spent), phase, state, code)  # type: ignore[arg-type]
