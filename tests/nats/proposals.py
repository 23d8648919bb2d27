"""Proposals that nobody should send, signed by a coordinator that is in the roster.

Every field of a study gets values at and beyond its edge, in all combinations that a seed brings
about. Whatever comes, the service must go on, and judging must be cheap.
"""

import contextlib
import gc
import hashlib
import json
import math
import random
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from silograph.messages.envelope import EVERYONE, Binding, Envelope, seal
from silograph.messages.identity import COORDINATOR, Identity, Roster, pack
from silograph.methods.study import COMMITTEE, PROPOSE, RELEASE, VERSION, Study, StudyMember
from silograph.nats.link import Link
from silograph.nats.silo import SiloService
from silograph.party.keys import load_identity
from silograph.party.roster import read_roster
from tests.nats.world import trial
from tests.support.local_deployment import HUB, LocalDeployment, Terms

#: The terms of a careful silo.
STRICT = Terms(
    epsilon=10.0, study=3.0, methods=("sealed", "feat masked"), delta=1e-6,
    committee=("silo-1", "silo-2", "silo-3", "notary"),
)  # fmt: skip
#: The most CPU seconds that judging one proposal may take.
LONGEST_JUDGING = 0.1
_NUMBERS: tuple[Any, ...] = (
    0, -1, 1, 2, 63, 64, 10**6, 2**31, 2**53, 2**63, 10**400, 0.0, -0.0, -1.0, 5e-324, 1e-300,
    1e-9, 1e-6, 1e-3, 0.01, 0.1, 1.0, 3.0, 50.0, 50.1, 1e6, 1e8, 1e20, 1e300, math.inf, -math.inf,
    math.nan, True, False, None, "", "3", "nan", "x" * 201, "a\nb", [], {}, [1], {"a": 1},
)  # fmt: skip
_TEXTS: tuple[Any, ...] = (
    "edges", "degrees", "degree_histogram", "kstars", "triangles", "node_triangles", "four_cycles",
    "clustering", "feat", "feat+", "sealed", "baseline", "hubs", "masked", "elgamal",
    "elgamal/printed", "elgamal/blinded", "clear", "reports", "", "ab" * 16, "ab" * 32, "\u202e",
    "hub", *_NUMBERS,
)  # fmt: skip
_OPTIONS: dict[str, tuple[Any, ...]] = {
    "answers": ("degrees", "triangles", "degrees,triangles", "two_stars,triangles", ",", *_NUMBERS),
    "degree_share": _NUMBERS,
    "triangle_share": _NUMBERS,
    "rule": ("largest", "second", "sum", *_NUMBERS),
    "noise": ("committee", "shares", *_NUMBERS),
    "local": ("gradient", "paper", *_NUMBERS),
    "split": (
        "paper",
        "auto",
        "1,0,0",
        ".3,.3,.4",
        "1e-300,.5,.5",
        "nan,nan,nan",
        "1e400,1,1",
        *_NUMBERS,
    ),
    "bound": _NUMBERS,
    "raw": _NUMBERS,
    "channel": ("1/2,1/4", "1e10000000,0", "1e9999999999,0", *_NUMBERS),
    "": _NUMBERS,
}

#: Fields of a folded index, at and beyond their edges.
_INDEX: dict[str, tuple[Any, ...]] = {
    "groups": (2, 5000, 180_000, 1 << 20, *_NUMBERS),
    "hubs": ([], ["0", "1"], [" 0"], ["x"], ["0", "0"], [3], *_NUMBERS),
    "sub": (2, 64, *_NUMBERS),
    "form": ("strip=1;case=none", "x" * 200, *_NUMBERS),
}


@dataclass
class Attacked:
    """What became of proposals, and the most CPU seconds that one of them took to be judged."""

    states: Counter[str] = field(default_factory=Counter)
    slowest: float = 0.0


def strict_trial(folder: Path) -> LocalDeployment:
    """Three careful silos, and a helper."""
    return trial(folder, STRICT, tls=False, helpers=("notary",))


def roster_and_key(made: LocalDeployment) -> tuple[Roster, Identity]:
    """The roster, and the coordinator's own key."""
    return read_roster(made.folder / "roster.toml").roster, load_identity(
        Path(made.folder / f"{HUB}.key")
    )


def signed(values: dict[str, Any], roster: Roster, key: Identity) -> bytes:
    """Any content as a proposal, in the form of a study, with the coordinator's signature."""
    payload = json.dumps(values, sort_keys=True, separators=(",", ":")).encode()
    run = values.get("run")
    id_ = bytes.fromhex(run) if isinstance(run, str) and len(run) == 32 else bytes(16)
    digest = hashlib.sha256(pack(b"silograph/study/v2", payload)).digest()
    named = str(values.get("members"))
    helpers = tuple(member for member in roster.helpers if f"'{member.name}'" in named)
    binding = Binding(id_, digest, Roster(roster.coordinator, roster.silos, helpers))
    return seal(binding, key, Envelope(PROPOSE, COORDINATOR, EVERYONE, 0, payload))


def fair(made: LocalDeployment, service: SiloService, number: int) -> dict[str, Any]:
    """A study that could be allowed, as plain values."""
    universe, roster = service._party.universe, service._party.roster
    four = [*made.names, *made.helpers][:4]
    kinds = ["silo" if name in made.names else "helper" for name in four]
    study = Study(
        run=f"{number:032x}", query="triangles", method="sealed", protocol=COMMITTEE, epsilon=1.0,
        delta=1e-9, collusion=1, universe=universe.digest, nodes=len(universe),
        roster=roster.digest.hex(), coordinator=HUB, silos=tuple(made.names),
        deadline=int(service._party.clock()) + 3600,
        members=tuple(map(StudyMember, four, kinds)),
    )  # fmt: skip
    values: dict[str, Any] = json.loads(study.encode())
    assert values["version"] == VERSION
    return values


def mutated(values: dict[str, Any], rng: random.Random) -> dict[str, Any]:
    """The same with a few fields at or beyond their edges."""
    name = rng.choice(("feat", "feat+", "sealed", "baseline", "hubs"))
    protocol = rng.choice(("masked", COMMITTEE)) if name.startswith("feat") else ""
    if name == "hubs":
        protocol, values["query"] = "masked", RELEASE
    values |= {"method": name, "protocol": COMMITTEE if name == "sealed" else protocol}
    if values["protocol"] != COMMITTEE:
        values["members"] = []
    for _ in range(rng.choice((0, 1, 1, 2, 3))):
        part = rng.choice(sorted(set(values) - {"run"} | {"options", "epsilon"}))
        if part == "options":
            names = rng.sample(sorted(_OPTIONS), rng.randint(1, 3))
            values["options"] = {one: rng.choice(_OPTIONS[one]) for one in names}
        elif isinstance(values.get(part), int | float):
            values[part] = rng.choice(_NUMBERS)
        elif part == "silos":
            names = ["silo-1", "silo-2", "silo-3"]
            values[part] = rng.choice((names[:2], names[::-1], [], ["x"] * 65, *_NUMBERS))
        else:
            values[part] = rng.choice(_TEXTS)
    if rng.random() < 0.1:
        index = {
            "kind": "fold",
            "groups": 100,
            "hubs": ["0"],
            "sub": 1,
            "form": "strip=0;case=none",
        }
        edge = rng.choice(list(_INDEX))
        values["index"] = index | {edge: rng.choice(_INDEX[edge])}
    if rng.random() < 0.5:  # most of what is above is no study at all; this mostly is one
        values |= {"epsilon": 10 ** rng.uniform(-6.2, 1.8), "delta": 10 ** rng.uniform(-30, -1)}
    return values


def clocked(act: Callable[[], None]) -> float:
    """The CPU seconds that this thread needs for something."""
    began = time.thread_time()
    act()
    return time.thread_time() - began


def attack(made: LocalDeployment, service: SiloService, count: int, seed: int = 1) -> Attacked:
    """So many proposals to a service, as if they had come from the broker."""
    rng, found = random.Random(seed), Attacked()  # noqa: S311 - reproducible on purpose
    roster, key = roster_and_key(made)
    service._link = cast(Link, object())  # nothing is sent before its turn
    judge = service._judge

    def timed(study: Study) -> None:
        gc.disable()  # the garbage of the whole process is not this study's
        took = clocked(lambda: judge(study))
        if took > LONGEST_JUDGING:  # the study, or a machine that was elsewhere: the best of three
            took = min(took, *(clocked(lambda: again(study)) for _ in range(3)))
        found.slowest = max(found.slowest, took)
        gc.enable()

    def again(study: Study) -> None:
        service._plans.pop(study.run, None)
        with contextlib.suppress(Exception):
            service._check(study)

    service._judge = timed  # type: ignore[method-assign]
    for _ in range(count):
        values = mutated(fair(made, service, rng.getrandbits(128)), rng)
        try:
            service._consider(signed(values, roster, key))
        except Exception as error:
            found.states[type(error).__name__] += 1
            continue
        run = service._store.run(str(values["run"]))
        found.states["unknown" if run is None else f"{run.state} {run.code}".strip()] += 1
    return found
