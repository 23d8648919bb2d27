"""`make deploy-demo`: run the demonstration of a deployment, show a table, keep it as JSON."""

import sys
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.deployment import StudyLine, run_demo, write_lines

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
