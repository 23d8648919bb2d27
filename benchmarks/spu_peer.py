"""A peer of the sealed method: SecretFlow SPU counts the triangles of a secret matrix.

SPU (Ma et al., "SecretFlow-SPU: A Performant and User-Friendly Framework for Privacy-Preserving
Machine Learning", USENIX ATC 2023) compiles a JAX function to a protocol of several parties. Here
ABY3 (Mohassel and Rindal, CCS 2018): three parties, an honest majority, semi-honest. The parties
are threads of one process, so that no network is paid for. The matrix comes in as one secret: no
union is formed, and the count comes out without noise.

This file runs by its path, with the interpreter of an environment that has SPU and not Silograph:

    python -m venv FOLDER
    FOLDER/bin/python -m pip install spu==0.9.5
    FOLDER/bin/python benchmarks/spu_peer.py PAIRS.npy --nodes 4039

``PAIRS.npy`` holds one row u, v for each edge. It prints one line of JSON: ``seconds`` of the count
(compiling included, sharing of the input included), ``first`` and ``second`` run, the ``triangles``
found, whether that is ``right``, and versions; or ``unable``, and why.
"""

import argparse
import json
import os
import resource
import sys
import time
from importlib.metadata import version

import numpy as np
from numpy.typing import NDArray

PARTIES = 3


def matrix(path: str, nodes: int) -> NDArray[np.int64]:
    """The symmetric matrix of the edges."""
    pairs = np.load(path)
    made = np.zeros((nodes, nodes), dtype=np.int64)
    made[pairs[:, 0], pairs[:, 1]] = made[pairs[:, 1], pairs[:, 0]] = 1
    np.fill_diagonal(made, 0)
    return made


def truth_of(graph: NDArray[np.int64]) -> int:
    """The triangles, counted in the clear; float64 is exact here."""
    clear = graph.astype(np.float64)
    return round(float(((clear @ clear) * clear).sum()) / 6)


def count(graph: NDArray[np.int64], field: str, runs: int) -> dict[str, object]:
    """Count under ABY3: tr(A³) = Σ (A²)∘A, a product of matrices, one of entries, and a sum."""
    import jax
    import jax.numpy as jnp
    import spu
    from spu.utils import simulation

    jax.config.update("jax_enable_x64", True)

    def six_triangles(secret: jax.Array) -> jax.Array:
        return jnp.sum(jnp.matmul(secret, secret) * secret)

    kind = getattr(spu.FieldType, field)
    simulator = simulation.Simulator.simple(PARTIES, spu.ProtocolKind.ABY3, kind)
    secretly = simulation.sim_jax(simulator, six_triangles)
    found, times = 0, []
    for _ in range(runs):
        start = time.perf_counter()
        found = int(np.asarray(secretly(graph)))
        times.append(round(time.perf_counter() - start, 2))
    return {"seconds": min(times), "runs": times, "triangles": found // 6, "exact": found % 6 == 0}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pairs", help="edges, as a NumPy file of rows u, v")
    parser.add_argument("--nodes", type=int, required=True)
    parser.add_argument("--field", choices=("FM64", "FM128"), default="FM64")
    parser.add_argument("--runs", type=int, default=1)
    given = parser.parse_args()
    graph = matrix(given.pairs, given.nodes)
    told: dict[str, object] = {"nodes": given.nodes, "protocol": "ABY3", "field": given.field}
    try:
        told |= count(graph, given.field, given.runs)
    except ImportError as wrong:
        print(json.dumps({"unable": f"this Python has no SPU: {wrong}"}))
        return 1
    told["right"] = told.pop("exact") and told["triangles"] == truth_of(graph)
    told["versions"] = {name: version(name) for name in ("spu", "jax", "numpy")}
    told["cores"] = len(os.sched_getaffinity(0))
    told["peak_mib"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(json.dumps(told))
    return 0 if told["right"] else 1


if __name__ == "__main__":
    sys.exit(main())
