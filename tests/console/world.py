"""Parties with consoles: a deployment's files without a broker, and people with keys."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from starlette.testclient import TestClient

from silograph import NodeUniverse, Silo
from silograph.console.app import Console
from silograph.local.drive import Parties, drive_study
from silograph.messages.entropy import OsEntropy
from silograph.messages.identity import Identity
from silograph.methods.study import Study
from silograph.nats.coordinator import CoordinatorService, Question
from silograph.party.config import CoordinatorConfig, SiloConfig
from silograph.party.keys import key_text, load_identity, new_identity
from silograph.party.opened import open_store
from silograph.party.roster import read_roster
from silograph.party.trail import Trail
from tests.nats.world import silos
from tests.support.local_deployment import HUB, LocalDeployment, Terms

#: How the name of every node begins.
NODE = "qnodeq-"
ORIGIN = "http://127.0.0.1:8470"
#: A purpose that a careless page would obey.
NASTY = '<script>document.title = "taken"</script><img src=x onerror=alert(1)> " \' & {{ 7 * 7 }}'


def named() -> list[Silo]:
    """The silos of other tests, with nodes whose names stand out in any text."""
    parts = silos()
    universe = NodeUniverse([f"{NODE}{place:03}" for place in range(len(parts[0].universe))])
    return [Silo.from_pairs(universe, part.pairs, name=part.name) for part in parts]


def deployment(folder: Path, people: tuple[str, ...] = ("anna", "ben"), wanted: int = 2,
               passphrase: str | None = None) -> LocalDeployment:  # fmt: skip
    """Three silos that ask people, who are enrolled at the first silo and at the coordinator."""
    made = LocalDeployment(folder / "trial", named(), Terms(accept="ask", epsilon=10.0), tls=False)
    text = ""
    for name in people:
        key = new_identity(made.folder / f"{name}.person.key", passphrase)
        text += f'\n[[approvers]]\nname = "{name}"\nkey = "{key_text(key.public)}"\n'
    for file in (made.silo_file("silo-1"), made.folder / f"{HUB}.toml"):
        known = file.read_text()
        known = known.replace('accept = "ask"', f'accept = "ask"\napprovals = {wanted}')
        file.write_text(known + text)
    return made


def propose(made: LocalDeployment, number: int = 1, **changes: Any) -> Study:
    """A study in the first silo's store, as its service puts it there."""
    roster, config = read_roster(made.folder / "roster.toml").roster, made.silo("silo-1")
    hub: Identity = load_identity(made.folder / f"{HUB}.key")
    universe = config.nodes()
    assert universe is not None
    values: dict[str, Any] = {
        "run": f"{number:032x}", "query": "triangles", "method": "feat", "protocol": "masked",
        "epsilon": 1.5, "delta": 0.0, "collusion": 1, "universe": universe.digest,
        "nodes": len(universe), "roster": roster.digest.hex(), "coordinator": HUB,
        "silos": tuple(made.names), "deadline": 4_000_000_000, "purpose": "Rings of fraud in 2030",
    }  # fmt: skip
    study = Study(**values | changes)
    store = open_store(config)
    try:
        with store.together():
            store.add(study.run, study.propose(roster, hub))
            Trail(store).proposed(study.id, HUB, study.digest, query=study.query)
    finally:
        store.close()
    return study


def answered(made: LocalDeployment, question: Question) -> str:
    """A study that was carried out, in this process, and is kept as the service keeps it."""
    service = CoordinatorService(made.coordinator())
    try:
        plan = service.propose(question, 60.0, load_identity(made.folder / "anna.person.key"))
        roster, entropy = plan.study.parties(service.party.roster), OsEntropy()
        keys = [load_identity(made.folder / f"{name}.key") for name in (HUB, *made.names)]
        hub, *others = ((key, entropy) for key in keys)
        result = drive_study(plan, Parties(roster, hub, tuple(others)), named(), lambda: None)
        seen = {"seconds": 1.0, "bytes": {"received": 10, "sent": 10}}
        service.save(plan, plan.outcome(result, service.party.universe), seen)
        service.party.end(plan.study.run, "done")
        return plan.study.run
    finally:
        service.close()


class Visitor:
    """A browser without a window, signed in as somebody or not."""

    def __init__(self, console: Console, name: str = "", key: Path | None = None) -> None:
        self.console = console
        self.client = TestClient(console.app, base_url=ORIGIN, follow_redirects=False)
        self.token = ""
        if name:
            self.token = console.people.invite(name, key)
            assert self.post("/enter", token=self.token).status_code == 303

    def get(self, path: str, **headers: str) -> Any:
        return self.client.get(path, headers=headers)

    def post(self, path: str, *, origin: str = ORIGIN, **fields: str) -> Any:
        return self.client.post(path, data=fields, headers={"origin": origin})

    @property
    def check(self) -> str:
        """The token against forgery, as the pages of this session have it."""
        found = re.search(r'name="check" value="([0-9a-f]{64})"', self.get("/health").text)
        assert found
        return found[1]

    def act(self, path: str, **fields: str) -> Any:
        """Send a form of our own pages."""
        return self.post(path, check=self.check, **fields)


@contextmanager
def console_of(config: SiloConfig | CoordinatorConfig) -> Iterator[Console]:
    made = Console(config)
    try:
        yield made
    finally:
        made.close()
