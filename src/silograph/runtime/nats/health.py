"""How a silo's service is: a status file for people and commands, metrics for machines.

No number here depends on edges: messages and bytes follow from the node list and the parameters.
"""

import json
import os
from collections import Counter
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from silograph.errors import StoreError
from silograph.methods.study import read_proposal
from silograph.runtime import whole_files
from silograph.runtime.ledger import Ledger
from silograph.runtime.metrics import Metrics
from silograph.runtime.store import Store

__all__ = ["Health"]


@dataclass(frozen=True)
class Health:
    """What is known of a service at one moment."""

    silo: str
    started: float
    now: float
    connected: bool

    def status(self, store: Store) -> dict[str, object]:
        """Alive, connected, and where each open run is."""
        runs = store.runs(ended=False)
        return {
            "silo": self.silo,
            "pid": os.getpid(),
            "connected": self.connected,
            "runs": [{"run": run.run, "decision": run.decision or "asked", "phase": run.phase}
                     for run in runs],
        }  # fmt: skip

    def metrics(self, store: Store, ledger: Ledger, lineage: str) -> Metrics:
        """The numbers, as store and ledger have them: counts do not start anew with the service."""
        metrics, runs = Metrics(), store.runs()
        metrics.set("silograph_build_info", 1, version=version("silograph"))
        metrics.set("silograph_start_time_seconds", self.started)
        metrics.set("silograph_broker_connected", int(self.connected))
        metrics.set("silograph_runs_active", sum(run.open and run.decision != "" for run in runs))
        ended = Counter(
            (read_proposal(run.proposal).method, run.state) for run in runs if not run.open
        )
        for (method, outcome), count in ended.items():
            metrics.count("silograph_studies_total", count, method=method, outcome=outcome)
        sizes = [row for run in runs for row in store.left(run.run)]
        metrics.count("silograph_messages_total", sum(row[1] for row in sizes), direction="out")
        metrics.count("silograph_bytes_total", sum(row[2] for row in sizes), direction="out")
        limit = ledger.limit(lineage)
        metrics.set("silograph_epsilon_spent", ledger.spent(lineage).epsilon, lineage=lineage)
        if limit is not None:
            metrics.set("silograph_epsilon_limit", limit.epsilon, lineage=lineage)
        return metrics

    def write_status(self, path: Path, store: Store) -> None:
        """Write the status file, whole or not at all."""
        content = {"time": int(self.now), **self.status(store)}
        whole_files.replace(path, json.dumps(content, indent=1).encode(), StoreError)
