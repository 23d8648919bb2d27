"""What a page's reader has before they begin, and the few commands that no test runs."""

from collections.abc import Callable
from pathlib import Path

import silograph as sg
from silograph.errors import TransportError
from silograph.party.keys import new_identity
from silograph.party.log import Log
from silograph.party.roster import new_roster, write_roster
from silograph.party.store import Store
from silograph.party.trail import Trail
from tests.docs.blocks import blocks
from tests.support.local_deployment import LocalDeployment

__all__ = ["NOT_RUN", "PREPARED", "ROOT", "banks", "pages"]

ROOT = Path(__file__).parents[2]

#: Commands that stand on a page and are not run, each with the reason.
NOT_RUN = {
    ("README.md", "make demo"): "sets up and builds the whole tree; tests/cli runs the command",
    ("README.md", "make docs"): "make check runs it",
    (
        "README.md",
        "silograph up --silos a.csv b.csv c.csv --nodes nodes.txt --query edges --epsilon 3",
    ): "docs/howto/deploy.md runs it",
}


def pages() -> list[Path]:
    """Every page: the manual, the operators' pages, and what stands at the root."""
    folders = ((ROOT, "*.md"), (ROOT / "docs", "**/*.md"), (ROOT / "deploy", "**/*.md"))
    return sorted(page for folder, pattern in folders for page in folder.glob(pattern))


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
    log = Log(folder / "state" / "log.jsonl", "north")
    log.event("run.phase", run=run, phase="keys")
    log.event("broker.unreachable", level="warning", error=TransportError("no route to the broker"))
    log.close()
    digest = bytes.fromhex(witness.digest)
    store = Store(folder / "state" / "store.db", "north")
    Trail(store).spent(run, "claims", spend.losses[1], 0.0, 1, witness.serial, digest)
    store.close()


def banks(_: Path) -> None:
    """The files that the tutorial's own program makes, in the folder that we are in."""
    (program,) = (b for b in blocks(ROOT / "docs/tutorial.md") if b.caption == "make_banks.py")
    exec(compile(program.text, program.caption, "exec"), {})  # noqa: S102 - our own page


def _a_trial(folder: Path) -> None:
    """A deployment of three silos, ready to start."""
    parts = sg.split(sg.clustered_power_law(60, edges_per_node=4, seed=1), 3, rate=0.4)
    named = zip(("north", "south", "west"), parts, strict=True)
    silos = [sg.Silo.from_pairs(part.universe, part.pairs, name=name) for name, part in named]
    LocalDeployment(folder, silos)


def _two_studies(folder: Path) -> None:
    """A ledger with a limit and two spends."""
    with sg.Ledger(folder / "north.ledger") as ledger:
        ledger.set_limit("claims", 10.0)
        for number, losses in enumerate(({0: 0.782, 1: 1.0, 2: 1.51}, {0: 2.98, 1: 3.0, 2: 3.09})):
            ledger.spend(
                "claims", f"{number:032x}", "release", losses, view="any", method="feat masked"
            )


def _calls(folder: Path) -> None:
    """A file with more columns than two, and its nodes."""
    (folder / "nodes.txt").write_text("Ada\nBob\nEve\nMallory\n")
    (folder / "calls.csv").write_text(
        "date,caller,callee,seconds\n2031-05-01,Ada,Bob,62\n2031-05-01,Bob,Eve,15\n"
        "2031-05-02,Bob,Ada,7\n2031-05-03,Eve,Eve,1\n"
    )


#: Pages that begin with files of the reader's own.
PREPARED: dict[str, Callable[[Path], None]] = {
    "README.md": _three_files,
    "deploy/README.md": _a_roster,
    "deploy/nats-cluster/README.md": _a_roster,
    "deploy/ledger.md": _a_silo_that_served,
    "deploy/monitoring.md": _a_silo_that_served,
    "docs/howto/deploy-by-hand.md": banks,
    "docs/howto/deploy.md": banks,
    "docs/howto/ledger.md": _two_studies,
    "docs/howto/notebook.md": banks,
    "docs/howto/own-data.md": _calls,
    "docs/howto/questions.md": banks,
    "docs/howto/recover.md": _a_trial,
    "docs/howto/update.md": banks,
}
