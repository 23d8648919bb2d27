"""What a page's reader has before they begin, and the few commands that no test runs."""

from collections.abc import Callable
from pathlib import Path

import silograph as sg
from silograph.runtime.journal import Journal, Trail
from silograph.runtime.keys import new_identity
from silograph.runtime.roster_file import new_roster, write_roster

__all__ = ["NOT_RUN", "PREPARED", "ROOT", "pages"]

ROOT = Path(__file__).parents[2]

#: Commands that stand on a page and are not run, each with the reason.
NOT_RUN = {
    ("README.md", "make demo"): "sets up and builds the whole tree; tests/cli runs the command",
    ("README.md", "make test"): "is what is running now",
    ("README.md", "make audit"): "takes a minute; tests/audit runs it with less effort",
}


def pages() -> list[Path]:
    """Every page: the manual, the operators' pages, and what stands at the root."""
    docs = [page for page in (ROOT / "docs").rglob("*.md") if not _linked(page)]
    return sorted([*ROOT.glob("*.md"), *docs, *(ROOT / "deploy").rglob("*.md")])


def _linked(page: Path) -> bool:
    """``docs/deploy`` is ``deploy``: those pages are read where they are."""
    return page.resolve() != page.absolute()


def _three_files(folder: Path) -> None:
    """A node list and three edge files."""
    graph = sg.clustered_power_law(60, edges_per_node=4, seed=1)
    graph.universe.save(folder / "nodes.txt")
    for name, silo in zip("abc", sg.split(graph, 3, rate=0.4), strict=True):
        rows = "\n".join(f"{u},{v}" for u, v in silo.pairs)
        (folder / f"{name}.csv").write_text(f"source,target\n{rows}\n")


def _a_roster(folder: Path) -> None:
    """Identities of three silos and a hub, and the roster that all of them signed."""
    made = {
        name: new_identity(folder / f"{name}.key") for name in ("hub", "north", "south", "west")
    }
    roster = new_roster("hub", made["hub"].public)
    for name in ("north", "south", "west"):
        roster = roster.add(name, made[name].public)
    for identity in made.values():
        roster = roster.sign(identity)
    write_roster(folder / "roster.toml", roster)


def _a_silo_that_served(folder: Path) -> None:
    """A ledger with a spend, a log and an audit trail."""
    run = bytes(range(16))
    with sg.Ledger(folder / "north.ledger") as ledger:
        spend = ledger.spend(
            "claims", run.hex(), "release", {0: 0.9, 1: 1.0}, view="any", method="feat masked"
        )
        witness = ledger.witness()
    (folder / "backups").mkdir()
    (folder / "state").mkdir()
    Journal(folder / "state" / "journal.jsonl").event("run.phase", run=run, phase="keys")
    digest = bytes.fromhex(witness.digest)
    trail = Trail(folder / "state" / "trail.jsonl")
    trail.spent(run, "claims", spend.losses[1], 0.0, 1, witness.serial, digest)


#: Pages that begin with files of the reader's own.
PREPARED: dict[str, Callable[[Path], None]] = {
    "README.md": _three_files,
    "deploy/README.md": _a_roster,
    "deploy/nats-cluster/README.md": _a_roster,
    "deploy/ledger.md": _a_silo_that_served,
    "deploy/monitoring.md": _a_silo_that_served,
}
