"""How a party is: a status file for people and commands, metrics for machines.

No number here depends on edges: messages and bytes follow from the node list and the parameters.
"""

import contextlib
import json
import os
from collections import Counter
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from silograph.errors import CertificateError, StoreError
from silograph.methods.study import read_proposal
from silograph.runtime import certs, whole_files
from silograph.runtime.ledger import Ledger
from silograph.runtime.metrics import Metrics
from silograph.runtime.nats.link import Link
from silograph.runtime.party import Party

__all__ = ["Health"]

#: Events of a journal that tell of a message that was refused.
_REFUSED = ("message.dropped", "study.dropped")


@dataclass(frozen=True)
class Health:
    """What is known of a party at one moment."""

    party: Party
    #: The connection; None while there is none yet.
    link: Link | None
    started: float

    @property
    def connected(self) -> bool:
        """Whether the broker is reached just now."""
        return self.link is not None and self.link.connected

    @property
    def verdict(self) -> tuple[bool, str]:
        """Whether the party is well, and a word about it."""
        return (True, "ok") if self.connected else (False, "the broker is not reached")

    def status(self) -> dict[str, object]:
        """Alive, connected, and where each open run of a silo is."""
        runs = self.party.store.runs(ended=False)
        return {
            "silo": self.party.name,
            "pid": os.getpid(),
            "connected": self.connected,
            "runs": [{"run": run.run, "decision": run.decision or "asked", "phase": run.phase}
                     for run in runs],
        }  # fmt: skip

    def metrics(self) -> Metrics:
        """The numbers of every party.

        Studies and what went out are as the store has them, and do not start anew with the
        process; the rest is counted since it started.
        """
        metrics, store = Metrics(), self.party.store
        runs = store.runs()
        metrics.set("silograph_build_info", 1, version=version("silograph"))
        metrics.set("silograph_start_time_seconds", self.started)
        metrics.set("silograph_broker_connected", int(self.connected))
        metrics.set("silograph_runs_active", sum(run.open and run.decision != "" for run in runs))
        ended = Counter(
            (study.method if (study := read_proposal(run.proposal)) else "unreadable", run.state)
            for run in runs
            if not run.open
        )
        for (method, outcome), count in ended.items():
            metrics.count("silograph_studies_total", count, method=method, outcome=outcome)
        sizes = [row for run in runs for row in store.left(run.run)]
        metrics.count("silograph_messages_total", sum(row[1] for row in sizes), direction="out")
        metrics.count("silograph_bytes_total", sum(row[2] for row in sizes), direction="out")
        if self.link is not None:
            self._line(metrics, self.link)
        for (event, error), count in self.party.journal.errors.copy().items():
            if event in _REFUSED:
                metrics.count("silograph_refused_messages_total", count, error=error)
        tls = self.party.config.broker.tls
        if tls is not None:
            with contextlib.suppress(CertificateError):  # being replaced just now
                expires = certs.show_certificate(tls.cert).expires.timestamp()
                metrics.set("silograph_certificate_expiry_seconds", expires)
        return metrics

    @staticmethod
    def _line(metrics: Metrics, link: Link) -> None:
        traffic = link.traffic
        metrics.count("silograph_broker_reconnects_total", link.reconnects)
        metrics.count("silograph_messages_total", traffic.messages, direction="in")
        metrics.count("silograph_bytes_total", traffic.bytes, direction="in")
        if traffic.last is not None:
            metrics.set("silograph_last_progress_seconds", traffic.last)

    def silo_metrics(self, ledger: Ledger, lineage: str) -> Metrics:
        """A silo's numbers: its budget as well."""
        metrics, limit = self.metrics(), ledger.limit(lineage)
        metrics.set("silograph_epsilon_spent", ledger.spent(lineage).epsilon, lineage=lineage)
        if limit is not None:
            metrics.set("silograph_epsilon_limit", limit.epsilon, lineage=lineage)
        return metrics

    def write_status(self, path: Path) -> None:
        """Write the status file, whole or not at all."""
        content = {"time": int(self.party.clock()), **self.status()}
        whole_files.replace(path, json.dumps(content, indent=1).encode(), StoreError)
