"""A peer of the sealed method: SecretFlow SPU counts the triangles of a secret matrix.

SPU (Ma et al., SecretFlow-SPU: A Performant and User-Friendly Framework for Privacy-Preserving
Machine Learning, USENIX ATC 2023) turns a JAX function into a protocol of several parties. Here
ABY3 (Mohassel and Rindal, CCS 2018): three parties, at most one of them curious, none malicious.
They are threads of one process, so that no network is paid for. The matrix comes in as one secret:
no union is formed, and the count comes out without noise.

SPU is not installed with Silograph's tools. ``PLACE`` is a Python that has it, or a folder in which
an environment with it is made; ``SILOGRAPH_SPU`` may name it, too:

    python -m benchmarks.spu_peer --spu PLACE

That environment runs this file by its path, so that nothing of Silograph is imported before
``compare``. It then prints one line of JSON: ``seconds`` of the fastest run and of all ``runs``
(sharing the input included, and in the first run compiling), the ``triangles`` found and whether
that is ``right``, memory and versions; or, in ``unable``, why there is no result.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

PARTIES, RING = 3, "FM64"
REQUIREMENT = "spu==0.9.5"
VARIABLE = "SILOGRAPH_SPU"
#: Seconds for an installation, and for the count on a busy machine.
LONGEST = 1800

Told = dict[str, Any]


# --- In SPU's environment -------------------------------------------------------------------------


def count(pairs: NDArray[np.integer[Any]], nodes: int, runs: int) -> Told:
    """Count in secret, some times over, and once in the clear.

    tr(A³) = Σ (A²)∘A: a product of matrices, a product entry by entry, and a sum.
    """
    import jax
    import jax.numpy as jnp
    import spu
    from spu.utils import simulation

    jax.config.update("jax_enable_x64", True)
    matrix = np.zeros((nodes, nodes), dtype=np.int64)
    matrix[pairs[:, 0], pairs[:, 1]] = matrix[pairs[:, 1], pairs[:, 0]] = 1

    def six_triangles(secret: jax.Array) -> jax.Array:
        return jnp.sum(jnp.matmul(secret, secret) * secret)

    ring = getattr(spu.FieldType, RING)
    simulator = simulation.Simulator.simple(PARTIES, spu.ProtocolKind.ABY3, ring)
    secretly = simulation.sim_jax(simulator, six_triangles)
    found, times = 0, []
    for _ in range(runs):
        start = time.perf_counter()
        found = int(np.asarray(secretly(matrix)))
        times.append(round(time.perf_counter() - start, 2))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    clear = matrix.astype(np.float64)  # exact: sums stay far below 2^53
    return {
        "seconds": min(times),
        "runs": times,
        "triangles": found // 6,
        "right": found == round(float(((clear @ clear) * clear).sum())),
        "nodes": nodes,
        "protocol": f"ABY3, {RING}",
        "cores": len(os.sched_getaffinity(0)),
        "peak_mib": peak,
        "versions": {name: version(name) for name in ("spu", "jax", "numpy")},
    }


# --- In Silograph's -------------------------------------------------------------------------------


def peer(pairs: NDArray[np.integer[Any]], nodes: int, place: str | None, runs: int = 2) -> Told:
    """What SPU needs for a graph, or why that is not known; it never raises an error."""
    place = place or os.environ.get(VARIABLE)
    if not place:
        return {"unable": f"SPU was not asked for: give --spu PLACE or set {VARIABLE}"}
    python = Path(place)
    if not python.is_file():
        python /= "bin/python"
        if wrong := _install(Path(place), python):
            return {"unable": wrong}
    with tempfile.TemporaryDirectory() as folder:
        np.save(f"{folder}/pairs.npy", pairs)
        given = [f"{folder}/pairs.npy", "--nodes", str(nodes), "--runs", str(runs)]
        done = _run([str(python), __file__, "--count", *given])
    try:
        found: Told = json.loads(done.stdout.splitlines()[-1])
    except (IndexError, ValueError):
        return {"unable": f"SPU failed: {_last(done)}"}
    return found


def _install(folder: Path, python: Path) -> str:
    """Make an environment with SPU, if it is not there; what went wrong, or nothing."""
    if python.exists() and not _run([str(python), "-c", "import spu"]).returncode:
        return ""
    for command in (
        [sys.executable, "-m", "venv", str(folder)],
        [str(python), "-m", "pip", "install", "--quiet", REQUIREMENT],
    ):
        done = _run(command)
        if done.returncode:
            return f"{REQUIREMENT} cannot be installed for this Python: {_last(done)}"
    return ""


def _run(command: list[str]) -> subprocess.CompletedProcess[str]:
    # The environment of SPU must not see the modules of this one.
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    try:
        return subprocess.run(
            command, capture_output=True, text=True, env=clean, timeout=LONGEST, check=False
        )
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(command, 1, "", f"no end after {LONGEST} seconds")
    except OSError as wrong:
        return subprocess.CompletedProcess(command, 1, "", str(wrong))


def _last(done: subprocess.CompletedProcess[str]) -> str:
    """The error's last line that says something."""
    lines = [line for line in (done.stderr or done.stdout).splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("ERROR")]
    return (errors or lines or [f"exit code {done.returncode}"])[-1]


def compare(name: str, place: str | None, runs: int) -> Told:
    """Count the triangles of one of Silograph's graphs."""
    from benchmarks.made import public_graph

    graph = public_graph(name)
    return {"graph": name, **peer(graph.pairs, len(graph.universe), place, runs)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--spu", metavar="PLACE", help="a Python with SPU, or a folder for one")
    parser.add_argument("--graph", default="facebook")
    parser.add_argument("--runs", type=int, default=2)
    parser.add_argument("--count", metavar="PAIRS", help=argparse.SUPPRESS)
    parser.add_argument("--nodes", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.count is None:
        told = compare(given.graph, given.spu, given.runs)
    else:
        try:
            told = count(np.load(given.count), given.nodes, given.runs)
        except ImportError as wrong:
            told = {"unable": f"{sys.executable} has no SPU: {wrong}"}
    print(json.dumps(told))
    return 0 if told.get("right") else 1


if __name__ == "__main__":
    sys.exit(main())
