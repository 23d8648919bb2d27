"""How settings, methods, ratios and runs are written, in one way on the page and in the summary."""

import math
from collections.abc import Mapping

from reproduction.measured import Case
from reproduction.results import Results, Row
from silograph.dp.loss import shown_loss
from silograph.page.charts import number

__all__ = [
    "AXES",
    "GRAPHS",
    "METHODS",
    "READINGS",
    "graph_name",
    "listed",
    "method_name",
    "ratio",
    "seconds",
    "seeds_of",
    "setting",
    "times",
]

GRAPHS = {
    "facebook": "Facebook",
    "wiki-vote": "Wiki-Vote",
    "ca-hepph": "ca-HepPh",
    "email-enron": "email-Enron",
    "generated": "a generated graph",
}
#: Parameters that errors are drawn against.
AXES = {
    "epsilon": "ε",
    "rho": "ρ",
    "sigma": "σ",
    "silos": "silos",
    "collusion": "colluding silos t",
}
#: The readings of the paper, in the order of what is mended in them.
READINGS = {"printed": "As printed", "meant": "As meant", "mended": "As mended"}
METHODS = {
    "baseline": "Baseline",
    "feat": "FEAT",
    "feat+": "FEAT+",
    "sealed": "sealed",
    "curator": "sealed's mechanism in one trusted hand",
    "central": "trusted curator",
}


def graph_name(graph: str) -> str:
    return GRAPHS.get(graph, graph)


def method_name(method: str, form: str) -> str:
    """
    >>> method_name("feat", "printed"), method_name("central", "limit")
    ('FEAT, as printed', 'trusted curator')
    """
    name = METHODS.get(method, method)
    return name if form == "limit" else f"{name}, {READINGS[form].lower()}"


def setting(case: Case) -> str:
    """What tells a case from others in a sentence; the paper's defaults of ρ and σ go unsaid."""
    parts = [graph_name(case.graph), case.query, f"ε = {shown_loss(case.epsilon)}"]
    if case.rho not in (None, 0.3):
        parts.append(f"ρ = {case.rho:g}")
    if case.sigma not in (None, 0.2):
        parts.append(f"σ = {case.sigma:g}")
    return ", ".join(parts)


def ratio(orders: float) -> str:
    """A ratio that is given in orders of magnitude.

    >>> ratio(0.3), ratio(-1), ratio(7.2), ratio(float("inf"))
    ('× 2', '× 0.1', '× 1.6 × 10⁷', '× ∞')
    """
    if math.isinf(orders):
        return "× ∞" if orders > 0 else "× 0"
    return times(10.0**orders)


def times(value: float) -> str:
    """A ratio, with two digits.

    >>> times(1234.5), times(1.04)
    ('× 1,200', '× 1')
    """
    return f"× {number(float(f'{value:.2g}'))}"


def seconds(row: Row | None) -> str:
    """A time; in brackets where it is scaled up, a dash where there is none.

    >>> seconds({"seconds": 528.1, "scaled": True}), seconds(None)
    ('(528.1)', '–')
    """
    if row is None:
        return "–"
    text = number(float(row["seconds"]))
    return f"({text})" if row["scaled"] else text


def seeds_of(results: Results) -> str:
    """The seeds of an experiment, in a few words; every row has its own in the results."""
    seeds = {seed for row in results.rows for seed in row.get("seeds", ())}
    if not seeds:
        return "measured, no seeds"
    first = results.parameters.get("seed")
    return f"{len(seeds):,}" + ("" if first is None else f", derived from {first}")


def listed(named: Mapping[str, object]) -> str:
    """
    >>> listed({"python": "3.13", "cores": 2})
    'python 3.13, cores 2'
    """
    return ", ".join(f"{key} {value}" for key, value in named.items())
