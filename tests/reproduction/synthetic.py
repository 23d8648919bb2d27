"""Results of every experiment, drawn from a seed: shaped like real ones, and not measured.

Sizes of errors follow rough formulas, so that pages look as they will and rules have something to
judge. Single rows can be bent by tests.
"""

import math
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from reproduction.results import EXPERIMENTS, Results, save

TRUTHS = {
    ("facebook", "2-stars"): 9_314_849,
    ("facebook", "triangles"): 1_612_010,
    ("wiki-vote", "2-stars"): 12_720_413,
    ("wiki-vote", "triangles"): 608_389,
    ("ca-hepph", "2-stars"): 15_278_011,
    ("ca-hepph", "triangles"): 3_358_499,
    ("email-enron", "2-stars"): 51_000_000,
    ("email-enron", "triangles"): 727_044,
    ("generated", "2-stars"): 60_000,
    ("generated", "triangles"): 4_000,
}
NODES = {
    "facebook": (4_039, 88_234),
    "wiki-vote": (7_115, 100_762),
    "ca-hepph": (12_008, 118_489),
    "email-enron": (36_692, 183_831),
    "generated": (600, 3_000),
}
#: (method, form, variant, delta)
METHODS = (
    ("baseline", "printed", "", 0.0),
    ("baseline", "mended", "", 0.0),
    ("feat", "printed", "", 0.0),
    ("feat", "meant", "", 0.0),
    ("feat", "mended", "", 0.0),
    ("feat+", "printed", "", 0.0),
    ("feat+", "meant", "", 0.0),
    ("feat+", "mended", "paper", 0.0),
    ("feat+", "mended", "auto", 0.0),
    ("sealed", "mended", "", 1e-9),
    ("curator", "limit", "", 1e-9),
    ("central", "limit", "noisy bound", 1e-9),
    ("central", "limit", "ladder", 0.0),
)


def deviation(method: str, form: str, variant: str, truth: float, epsilon: float) -> float:
    """How large an error is, roughly."""
    share = {
        "baseline": 40.0 if form == "printed" else 6.0,
        "feat": {"printed": 0.2, "meant": 0.08, "mended": 0.06}.get(form, 0.0),
        "feat+": {"": 3.0, "per-node": 0.5, "paper": 0.9, "auto": 0.058}.get(variant, 0.0),
        "sealed": 0.0016,
        "curator": 0.0014,
        "central": 0.0007 if variant == "noisy bound" else 0.002,
    }[method]
    fall = 0.1 if method == "baseline" and form == "printed" else 0.9
    return truth * share * math.exp(-fall * (epsilon - 1)) * (1 if method != "sealed" else 1.2)


def utility(
    draw: np.random.Generator,
    experiment: str,
    graph: str,
    query: str,
    *,
    epsilon: float = 3.0,
    rho: float = 0.3,
    sigma: float = 0.2,
    silos: int = 4,
    collusion: int = 0,
    repetitions: int = 10,
) -> list[dict[str, Any]]:
    """A row of every method in one case."""
    union = min(1.0, silos * rho / (1 + sigma))
    truth = round(TRUTHS[graph, query] * union**2)
    rows = []
    for method, form, variant, delta in (
        *METHODS,
        *([("feat+", "meant", "per-node", 0.0)] if query == "2-stars" else []),
    ):
        size = deviation(method, form, variant, truth, epsilon) * (1 + 0.3 * collusion)
        values = [float(value) for value in truth + size * draw.normal(size=repetitions)]
        squares = np.array([(value - truth) ** 2 for value in values])
        relative = np.abs(np.array(values) - truth) / truth
        rows.append(
            {
                "experiment": experiment, "graph": graph, "query": query, "method": method,
                "form": form, "variant": variant, "epsilon": epsilon, "delta": delta, "rho": rho,
                "sigma": sigma, "silos": silos, "collusion": collusion, "truth": truth,
                "seeds": list(range(100, 100 + repetitions)), "values": values,
                "mse": float(squares.mean()), "mre": float(relative.mean()),
                "mse_spread": float(squares.std(ddof=1)),
                "mre_spread": float(relative.std(ddof=1)),
            }
        )  # fmt: skip
    return rows


def _time_rows(draw: np.random.Generator) -> list[dict[str, Any]]:
    kinds = (
        ("baseline", "printed", "reports", 20e-9),
        ("baseline", "mended", "reports", 25e-9),
        ("feat", "meant", "elgamal/replace", 900e-6),
        ("feat", "mended", "masked", 22e-9),
        ("feat+", "meant", "elgamal/replace", 900e-6),
        ("feat+", "mended", "masked", 40e-9),
        ("sealed", "mended", "sealed", 300e-9),
    )
    rows = []
    for graph in ("facebook", "wiki-vote"):
        pairs = math.comb(NODES[graph][0], 2)
        for rho in (0.1, 0.2, 0.3, 0.4, 0.5):
            for method, form, union, each in kinds:
                scaled = union.startswith("elgamal")
                seconds = pairs * each * (1 + 0.01 * float(draw.normal()))
                rows.append(
                    {
                        "experiment": "time", "graph": graph, "rho": rho, "method": method,
                        "form": form, "union": union, "query": "triangles", "seconds": seconds,
                        "measured_pairs": 131_072 if scaled else pairs, "pairs": pairs,
                        "scaled": scaled, "repetitions": 3, "spread": 0.02 * seconds,
                    }
                )  # fmt: skip
    return rows


def _curve_rows(draw: np.random.Generator) -> list[dict[str, Any]]:
    each = {"libsodium": 7e-4, "openssl": 9e-4, "mcl": 4e-4, "silograph": 2.5e-4}
    return [
        {
            "experiment": "curves", "library": library, "version": "1.0", "elements": n,
            "seconds": n * seconds * (1 + 0.02 * float(draw.normal())),
            "per_element": seconds, "scaled": n > 10_000, "operation": "encrypt, pass on, decrypt",
            "curve": "ristretto255",
        }
        for library, seconds in each.items()
        for n in (10, 100, 1_000, 10_000, 100_000, 1_000_000)
    ]  # fmt: skip


def _rows(name: str, draw: np.random.Generator) -> list[dict[str, Any]]:
    both = [(g, q) for g in ("facebook", "wiki-vote") for q in ("2-stars", "triangles")]
    cases: Iterable[list[dict[str, Any]]]
    match name:
        case "time":
            return _time_rows(draw)
        case "curves":
            return _curve_rows(draw)
        case "epsilon":
            cases = (
                utility(draw, name, g, q, epsilon=float(e)) for g, q in both for e in range(1, 7)
            )
        case "rho":
            cases = (utility(draw, name, g, q, rho=r / 10) for g, q in both for r in range(1, 6))
        case "sigma":
            cases = (utility(draw, name, g, q, sigma=s / 10) for g, q in both for s in range(5))
        case "silos":
            cases = (utility(draw, name, g, q, silos=m) for g, q in both for m in (2, 4, 8, 16, 32))
        case "collusion":
            cases = (utility(draw, name, g, q, collusion=t) for g, q in both for t in range(4))
        case "communities":
            cases = (
                utility(draw, name, "facebook", q, epsilon=float(e), silos=m, rho=1 / m, sigma=0.0)
                for q in ("2-stars", "triangles")
                for m in (2, 4)
                for e in (1, 3, 6)
            )
        case "graphs":
            cases = (
                utility(draw, name, g, q, epsilon=float(e))
                for g in ("ca-hepph", "email-enron")
                for q in ("2-stars", "triangles")
                for e in (1, 3, 6)
            )
        case _:
            cases = (
                utility(draw, name, g, q, epsilon=e) for g, q in both for e in (0.1, 0.2, 0.5, 1.0)
            )
    return [row for case in cases for row in case]


def synthetic(*, quick: bool = False, names: Iterable[str] = EXPERIMENTS) -> dict[str, Results]:
    """Results of these experiments, always the same."""
    found = {}
    for position, name in enumerate(EXPERIMENTS):
        if name not in set(names):
            continue
        rows = _rows(name, np.random.default_rng([7, position]))
        graphs = sorted({row["graph"] for row in rows if "graph" in row})
        left_out = [
            {key: rows[0][key] for key in ("experiment", "graph", "query", "method", "form",
             "variant", "epsilon", "delta", "rho", "sigma", "silos")}
            | {"collusion": 9, "reason": "a silo is left with nobody to hide among"}
        ] if name == "collusion" else []  # fmt: skip
        found[name] = Results(
            name,
            "timing" if name in ("time", "curves") else "utility",
            quick,
            {"title": name, "seed": 1},
            {"silograph": "0.1.0", "python": "3.11.7", "numpy": "2.3.0"},
            {"processor": "a synthetic processor", "cores": 2, "simd": "avx2"},
            {
                graph: {"nodes": NODES[graph][0], "edges": NODES[graph][1], "source": "synthetic"}
                for graph in graphs
            },
            tuple(rows),
            tuple(left_out),
        )
    return found


def bend(results: Results, change: dict[str, Any], **wanted: Any) -> Results:
    """The same results with some rows changed: those that have the wanted values."""
    rows = tuple(
        row | change if all(row[key] == value for key, value in wanted.items()) else row
        for row in map(dict, results.rows)
    )
    assert rows != tuple(results.rows), "no row was bent"
    return replace(results, rows=rows)


def write(folder: Path, found: dict[str, Results]) -> Path:
    """A folder as ``python -m reproduction run`` would leave it."""
    for name, results in found.items():
        (folder / name).mkdir(parents=True)
        save(results, folder / name)
    return folder
