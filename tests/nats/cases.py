"""Every fault case of ``make soak``: which parties are struck, at which moments, by what."""

import random

from silograph.nats import faultpoints
from tests.nats.faults import COMMITTEES, HELPER, METHODS, VICTIM, Case, setting
from tests.support.local_deployment import HUB

__all__ = ["ABSENT", "every_case"]

#: Who is killed in these settings in a soak.
WHO = {
    "sealed shares": ("silo-1", HELPER, HUB),
    "sealed four": ("silo-4",),
    "sealed five": (VICTIM, "silo-5"),
    "sealed inside": ("silo-3", HUB),
}
#: Moments that a method does not pass.
ABSENT = {
    "masked": {"coordinator.made"},
    "blinded": {"silo.made", "silo.uploaded"},
    "replace": {"silo.made", "silo.uploaded"},
    "baseline": {
        "silo.received", "silo.taken", "coordinator.made", "coordinator.frozen",
    },
    "hubs": {"coordinator.made"},
    "folded": {"coordinator.made"},
    "feat+": set(),
    "sealed": {"coordinator.made"},
    "sealed shares": {"coordinator.made"},
    "sealed four": {"coordinator.made"},
    "sealed five": {"coordinator.made"},
    "sealed inside": {"coordinator.made"},
    "committee": {"silo.made", "silo.uploaded", "coordinator.made"},
}  # fmt: skip
#: Moments that are passed once.
ONCE = {
    "silo.proposed", "silo.accepted", "silo.spent", "silo.authorised", "silo.uploaded",
    "silo.ended", "coordinator.drafted", "coordinator.proposed", "coordinator.result",
    "coordinator.saved", "coordinator.ended",
}  # fmt: skip
#: Moments that some methods pass only twice, or once.
TWICE = {("folded", "coordinator.frozen")}
SELDOM = {("baseline", "coordinator.sent"), ("feat+", "coordinator.made"), ("hubs", "silo.made")}


def phases(method: str) -> list[Case]:
    """Each party of a sealed run killed in every phase, and everyone else who is there."""
    count, terms, helpers = setting(method)
    members = terms.committee
    chunks = -(-40 * 39 // 2 // 256)
    noise = -(-40 // 16)
    plain = chunks + (noise if method != "sealed shares" else 1)
    conversion = 16 * (chunks - 1) + (2 if count <= 4 else 3)
    frozen = [
        "key", "confirm", "seed", "match", "input", "check", "joint", f"joint {conversion}",
        f"check {chunks}", f"joint {16 * chunks}", f"joint {16 * chunks + 3}", "open", "tell",
        f"done {chunks}", f"done {chunks + 2}", f"check {plain}", f"joint {16 * plain}", "sum",
    ]  # fmt: skip
    taken = [
        "keys", "confirms", "seed", "match", "input", "check", f"joint {conversion}",
        f"check {chunks}", f"joint {16 * chunks + 1}", "tell", f"joint {16 * plain + 1}",
    ]  # fmt: skip
    if method == "sealed shares":
        parts = ("input", "check")
        frozen = ["key", "confirm", "seed", "match", "joint", "done", "sum",
                  *(f"{name} {chunks}" for name in parts), f"done {chunks + 1}"]  # fmt: skip
        taken = ["keys", "confirms", "seed", "joint", *(f"{name} {chunks}" for name in parts)]
    found = []
    everyone = (*(f"silo-{number}" for number in range(1, count + 1)), *helpers)
    for victim in everyone:
        if victim in members:
            made = [name for name in frozen if name != "input" or victim not in helpers]
            moments = [f"frozen {name}" for name in made] + [f"taken {name}" for name in taken]
        else:
            moments = [f"frozen {name}" for name in ("key", "confirm", "seed", "input", "input 2")]
            moments += ["taken keys", "taken confirms"]
        found += [Case(method, "kill", at, 1, victim) for at in moments]
    inside = HUB in members
    moments = [f"frozen {name}" for name in ("keys", "confirms")]
    heard = ["key", "confirm", "done", f"done {chunks}", "sum"]
    heard += ["open"] if method != "sealed shares" else []
    moments += [f"taken {name}" for name in heard]
    if inside:  # it has no edges, and what a member opens to itself is not sent
        absent = ("key", "confirm", "input", "open", "done", "sum")
        own = [name for name in frozen if name.split()[0] not in absent]
        moments += [f"frozen {name}" for name in own]
        moments += [f"taken {name}" for name in taken if name not in ("keys", "confirms")]
    return found + [Case(method, "kill", at, 1, HUB) for at in moments]


def every_case(seed: int = 1) -> list[Case]:
    """All cases of the soak, in an order that the seed gives."""
    draw = random.Random(seed)  # noqa: S311
    found = []
    for method in METHODS:
        if method in COMMITTEES[2:]:
            # Members of the same kind are alike; all of them are killed in the first setting.
            found += [case for case in phases(method) if case.victim in WHO[method]]
            continue
        points = [
            p for p in (*faultpoints.SILO, *faultpoints.COORDINATOR) if p not in ABSENT[method]
        ]
        for at in points:
            if (method, at) in SELDOM:
                found.append(Case(method, "kill", at))
                continue
            few = method == "hubs" or (method == "masked" and at in ("silo.received", "silo.taken"))
            few |= at in ("coordinator.made", "silo.made")
            few |= method in COMMITTEES and at in ("coordinator.frozen", "coordinator.sent")
            most = 2 if (method, at) in TWICE else 4
            counts = {1} if at in ONCE else {1, 2 if few else min(draw.randint(2, 4), most)}
            found += [Case(method, "kill", at, count) for count in sorted(counts)]
        for at in points:
            found.append(Case(method, "broker", at))
        late = {"coordinator.drafted", "coordinator.ended"}  # nobody waits for it, or any more
        found += [Case(method, "stall", at) for at in points if at not in late]
        found += [Case(method, "cut", f"{draw.uniform(0.1, 0.7):.3f}") for _ in range(4)]
    # Every member of a committee, in every phase from its first messages to its last ones.
    found += phases("sealed")
    for victim in (*(f"silo-{number}" for number in (1, 2, 3)), HELPER):
        for at in ("silo.received", "silo.taken", "silo.frozen", "silo.sent"):
            most = 60 if at == "silo.frozen" else 120
            for count in (2, 5, 9, 14, 25, 40, most):
                found.append(Case("committee", "kill", at, count, victim))
        found.append(Case("committee", "stall", "silo.taken", 30, victim))
    found += [Case(method, "slow", "256") for method in METHODS]
    # Somebody is not there for longer than a moment: who waits says for what.
    found += [Case(method, "away", "silo.authorised") for method in METHODS]
    for method in ("masked", "committee", "sealed"):
        found.append(Case(method, "full", "3000"))
        found.append(Case(method, "away", "coordinator.proposed"))
        found += [Case(method, what, "silo.authorised") for what in ("down", "hang")]
    found += [Case(method, "away", "silo.authorised", 1, HELPER) for method in COMMITTEES[:2]]
    found = list(dict.fromkeys(found))
    draw.shuffle(found)
    return found
