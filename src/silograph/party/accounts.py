"""What a silo's state store knows of its ledger, and whether a ledger accounts for all of it.

What
    The store keeps a witness: the ledger's last entry when it was last seen. The audit trail, a
    table of the same file, has every spend of the silo's studies, and when the ledger was frozen.
    Together they show whether a ledger is an old copy, and what a restored one must count.
Guarantee
    A ledger passes :func:`check_ledger` only if it contains the witness's entry, or a restoration
    that accounts for it, and if every spend of the trail is in it or is covered by what a
    restoration counts as lost.
"""

import math
from collections.abc import Iterable
from pathlib import Path

from silograph.errors import RollbackError, SilographError, StoreError
from silograph.ledger.backup import LOST, Records
from silograph.ledger.book import Ledger
from silograph.ledger.chain import Witness
from silograph.ledger.entries import Amount, Spend, loss_at
from silograph.ledger.file import Total, level_in_force
from silograph.methods.catalogue import plan_study
from silograph.methods.study import Study, read_proposal
from silograph.party.store import Store
from silograph.party.trail import Trail

__all__ = ["check_ledger", "no_ledger", "phase_of", "records_of", "unnoted", "witness_of"]


def phase_of(store: Store) -> str:
    """The phase under which a ledger records the spends of the store's studies.

    It contains the store's identity, so that several silos can share a ledger.
    """
    return f"study {store.identity}"


# --- What is known ------------------------------------------------------------------------------


def witness_of(store: Store) -> Witness | None:
    """The ledger's witness when it was last seen; None if it never was."""
    seen = store.witness()
    return Witness.parse(seen) if seen else None


def records_of(store: Store) -> Records:
    """Every spend that the audit trail has, as the ledger recorded it, and the last freeze."""
    spends, frozen = [], 0
    for entry in Trail(store).entries():
        if entry["event"] == "budget.spent":
            spends.append(_spend(store, entry))
        elif entry["event"] == "ledger.frozen":
            frozen = entry["serial"]
    return Records(tuple(spends), frozen)


def _spend(store: Store, entry: dict[str, object]) -> Spend:
    """The spend of a trail entry.

    The trail has the loss at one collusion level. The losses at all levels follow from the study.
    If this version cannot settle that study, or settles it differently, the loss at the trail's
    level counts for all lower levels, and for higher ones there is no bound.
    """
    run, level, told = str(entry["run"]), int(str(entry["collusion"])), entry["epsilon"]
    epsilon = math.inf if told == "unbounded" else float(str(told))
    delta = float(str(entry["delta"]))
    losses, view, method = {level: epsilon}, "as the audit trail shows", "unknown"
    row = store.run(run)
    study = None if row is None else read_proposal(row.proposal)
    if study is not None:
        method = study.how
        try:
            plan = plan_study(study)
        except SilographError:
            pass
        else:
            if (loss_at(plan.losses, level)[1], plan.delta) == (epsilon, delta):
                losses, view, method = dict(plan.losses), plan.view, plan.what
    return Spend(
        0, str(entry["lineage"]), run, phase_of(store), losses, delta, view, method,
        str(entry["time"]),
    )  # fmt: skip


# --- Whether a ledger accounts for it -----------------------------------------------------------


def no_ledger(path: Path) -> RollbackError:
    """What to say where a ledger is missing that the store has seen."""
    return RollbackError(
        f"{path}: there is no ledger, and this silo has served with one: put it back (silograph "
        "ledger restore --config FILE)"
    )


def check_ledger(ledger: Ledger, store: Store) -> None:
    """Refuse a store or a ledger that was put back to an earlier state."""
    seen = witness_of(store)
    if seen is not None:
        ledger.check_not_older_than(seen)
    paid = {row.run for row in ledger.rows() if row.phase == phase_of(store)}
    runs = store.runs()
    if paid - {run.run for run in runs}:
        raise StoreError(
            f"{store.path}: older than the ledger, which has runs that it does not know"
        )
    missing = {run.run for run in runs if run.spent} - paid
    if missing:
        lost = [spend for spend in records_of(store).spends if spend.run in missing]
        _check_counted(ledger, store, lost)


def _check_counted(ledger: Ledger, store: Store, lost: list[Spend]) -> None:
    """Refuse a ledger whose restorations count less as lost than the spends that are missing."""
    for lineage in sorted({spend.lineage for spend in lost}):
        level = level_in_force(ledger.limit(lineage))
        restored = (
            row for row in ledger.rows(lineage) if (row.method, row.phase) == ("restore", LOST)
        )
        counted = _total(restored, level)
        shown = _total((spend for spend in lost if spend.lineage == lineage), level)
        if counted.epsilon < shown.epsilon or counted.delta < shown.delta:
            raise RollbackError(
                f"{ledger.path}: spends that the state store {store.path} saw are not in this "
                f"ledger: the audit trail shows {shown} of lineage {lineage!r}, and {counted} is "
                "counted as lost. Restore the ledger from a backup with 'silograph ledger restore "
                "--config FILE', which takes them from the audit trail"
            )


def _total(spends: Iterable[Spend], level: int) -> Amount:
    total = Total(0, 0, level)
    for spend in spends:
        total = total.plus(loss_at(spend.losses, level)[1], spend.delta)
    return total.amount()


def unnoted(ledger: Ledger, store: Store) -> list[tuple[Study, Spend]]:
    """The spends of the ledger that the store does not have, because the service was killed."""
    paid = {row.run: row for row in ledger.rows() if row.phase == phase_of(store)}
    found = []
    for run in store.runs():
        study = read_proposal(run.proposal) if run.run in paid and not run.spent else None
        if study is not None:
            found.append((study, paid[run.run]))
    return found
