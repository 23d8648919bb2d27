"""The demonstration of a deployment: broker, coordinator and four silos as processes.

Everything runs on the loopback of this machine with mutual TLS, and every process that is started
is ended. One study of each method; ElGamal, which costs milliseconds a pair, on a smaller graph.
"""

import asyncio
import json
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from silograph.errors import SilographError
from silograph.graph.samples import clustered_power_law, split, union
from silograph.graph.silo import Silo
from silograph.ledger.book import Ledger
from silograph.nats.coordinator import CoordinatorService, Question
from silograph.nats.trial import end
from tests.support.local_deployment import LocalDeployment, Terms

_SILOS = 4
_LARGE, _SMALL = 1000, 200
_SECONDS = 100.0


@dataclass(frozen=True)
class DemoStudy:
    """A question, and the size of the graph that it is asked of."""

    question: Question
    nodes: int


#: One study of each method.
DEMO_STUDIES = (
    DemoStudy(Question("triangles", 3.0), _LARGE),
    DemoStudy(Question("triangles", 3.0, protocol="masked"), _LARGE),
    DemoStudy(Question("triangles", 3.0, method="feat+", options={"split": "paper"}), _LARGE),
    DemoStudy(Question("triangles", 3.0, method="sealed", delta=1e-9), _LARGE),
    DemoStudy(Question("triangles", 3.0, method="baseline", protocol="", collusion=0), _LARGE),
    DemoStudy(Question("edges", 3.0, protocol="elgamal/blinded"), _SMALL),
    DemoStudy(Question("edges", 3.0, protocol="elgamal/replace", collusion=0), _SMALL),
)


@dataclass(frozen=True)
class StudyLine:
    """What came of one study."""

    method: str
    protocol: str
    query: str
    nodes: int
    status: str
    value: float | None
    stderr: float | None
    truth: float
    seconds: float
    bytes: int
    epsilon: float
    #: What each silo's ledger says afterwards, ε at the level of its limit.
    spent: dict[str, float]


def run_demo() -> Iterator[StudyLine]:
    """Set up both deployments, ask everything, and clean up; a line for every study."""
    for nodes in sorted({study.nodes for study in DEMO_STUDIES}, reverse=True):
        studies = [study for study in DEMO_STUDIES if study.nodes == nodes]
        parts = split(clustered_power_law(nodes, seed=1), _SILOS, seed=1)
        silos = [
            Silo.from_pairs(part.universe, part.pairs, name=f"silo-{number}")
            for number, part in enumerate(parts, 1)
        ]
        terms = Terms(collusion=0, committee=tuple(silo.name for silo in silos))
        with tempfile.TemporaryDirectory(prefix="silograph-demo-") as folder:
            trial = LocalDeployment(Path(folder) / "trial", silos, terms)
            with _running(trial):
                for study in studies:
                    yield _ask(trial, study, silos)


@contextmanager
def _running(trial: LocalDeployment) -> Iterator[None]:
    trial.broker.start()
    processes = trial.processes()
    try:
        yield
    finally:
        end(processes)
        trial.broker.stop()


def _ask(trial: LocalDeployment, study: DemoStudy, silos: list[Silo]) -> StudyLine:
    question, whole = study.question, union(silos)
    truth = float(whole.triangles() if question.query == "triangles" else len(whole))
    began = time.perf_counter()
    status, value, stderr, size, epsilon, protocol = "done", None, None, 0, 0.0, question.protocol
    service = CoordinatorService(trial.coordinator())
    try:
        plan = service.propose(question, _SECONDS)
        found = asyncio.run(service.carry(plan.study.run))
        value, stderr = found["answer"]["value"], found["answer"]["stderr"]
        epsilon, protocol = found["answer"]["epsilon"], found["protocol"]
        size = found["bytes"]["received"] + found["bytes"]["sent"]
    except SilographError as error:
        status = f"{type(error).__name__}: {error}"
    finally:
        service.close()
    spent = {}
    for name in trial.names:
        with Ledger(trial.silo(name).ledger.path) as ledger:
            spent[name] = ledger.spent("trial").epsilon
    return StudyLine(
        question.method, protocol, question.query, study.nodes, status, value, stderr, truth,
        round(time.perf_counter() - began, 2), size, epsilon, spent,
    )  # fmt: skip


def write_lines(path: Path, lines: Iterable[StudyLine]) -> None:
    """The lines as JSON."""
    path.parent.mkdir(parents=True, exist_ok=True)
    content = {"python": sys.version.split()[0], "studies": [asdict(line) for line in lines]}
    path.write_text(json.dumps(content, indent=1) + "\n")


OUTPUT = Path(__file__).parents[1] / "build" / "deploy-demo.json"
console = Console(width=100)


def table(lines: list[StudyLine]) -> Table:
    made = Table(title="four silos, one coordinator, a broker: six processes, mutual TLS")
    for name in ("study", "nodes", "status", "answer", "truth", "s", "MB", "ε", "spent so far"):
        made.add_column(name, justify="left" if name in ("study", "status") else "right")
    for line in lines:
        answer = "" if line.value is None else f"{line.value:,.0f} ± {line.stderr:,.0f}"
        made.add_row(
            f"{line.query}, {line.method} {line.protocol}", f"{line.nodes:,}", line.status, answer,
            f"{line.truth:,.0f}", f"{line.seconds:.1f}", f"{line.bytes / 1e6:.2f}",
            f"{line.epsilon:.3g}", f"{max(line.spent.values()):.4g}",
        )  # fmt: skip
    return made


def main() -> int:
    began = time.perf_counter()
    lines = []
    for line in run_demo():
        console.print(f"{line.method} {line.protocol}: {line.status} in {line.seconds:.1f} s")
        lines.append(line)
    write_lines(OUTPUT, lines)
    console.print(table(lines))
    took = time.perf_counter() - began
    console.print(f"{took:.0f} s in all; every process is ended; {OUTPUT.name} has the numbers")
    return 0 if all(line.status == "done" for line in lines) else 1


if __name__ == "__main__":
    sys.exit(main())
