"""The numbers that the paper's text gives, each against what is measured, and against a floor.

An error of ten repetitions is a random number. For normal errors its MSE is less than a tenth of
what is expected once in 5,000 times, and so is its MRE less than 1/√10 of it. A printed number is
*reachable* in a form where it is within that factor of the error measured there.

The floor is exact: the error of one randomised response at ε on a graph of that size **without any
edge**, the least that an unbiased estimate from a noisy graph can have. Edges only add to it.
"""

import math
from dataclasses import dataclass
from typing import Any

from reproduction.labels import AXES, METHODS, graph_name
from reproduction.measured import readings
from reproduction.results import Row
from reproduction.rules import NOT_MEASURED, All, Outcome, Rule, rows_of
from silograph.page.charts import number

__all__ = ["NUMBERS", "PrintedNumber", "empty_graph_mse", "reachable"]

#: The graphs of the paper.
PAPER_GRAPHS = ("facebook", "wiki-vote")
#: How far a printed number may be from a measured one, as a factor.
SLACK = {"mse": 10.0, "mre": math.sqrt(10)}


@dataclass(frozen=True)
class PrintedNumber:
    """One number of the text: what it is of, and where it stands.

    ``graph`` is None where the paper does not say which; then any will do.
    """

    value: float
    experiment: str
    measure: str
    graph: str | None
    query: str
    method: str
    along: str
    at: float
    quote: str
    place: str

    @property
    def figure(self) -> str:
        """The address of the figure that it is marked in."""
        if self.experiment == "epsilon":
            return f"epsilon-{self.query}-{self.measure}"
        return f"{self.experiment}-{self.measure}"

    @property
    def name(self) -> str:
        where = graph_name(self.graph) if self.graph else "a graph that is not named"
        return (
            f"{METHODS[self.method]}'s {self.measure.upper()} of {self.query} on {where} at "
            f"{AXES[self.along]} = {self.at:g}"
        )


_STARS = "when ε=6, FEAT owns an MSE of 5.09×10⁵ while Baseline gives an MSE of 1.45×10¹¹"
_TRIANGLES = (
    "FEAT gives an MRE of only 9.53×10⁻⁴ when ε=4. In contrast, Baseline has an MRE of 8.27×10⁻¹"
)
_PLUS_STARS = (
    "when ε = 6, FEAT+ only owns an MRE of 3.86×10⁻⁵, whereas FEAT has an MRE of 2.98×10⁻⁴"
)
_PLUS_TRIANGLES = "when ε = 3, the MSE of FEAT+ is 4.68×10² when FEAT owns a MSE of 6.25×10⁴"
_OVERLAP = "with the increase in σ, the MSE of Baseline increases from 1.014×10¹⁶ to 1.0442×10¹⁶"


def _at_epsilon(
    value: float, measure: str, graph: str, query: str, method: str, epsilon: float, quote: str
) -> PrintedNumber:
    place = "§V, Utility-Privacy Trade-off (Q1)"
    return PrintedNumber(
        value, "epsilon", measure, graph, query, method, "epsilon", epsilon, quote, place
    )


def _at_sigma(value: float, sigma: float) -> PrintedNumber:
    place = "§V, Parameter Effects (Q2)"
    return PrintedNumber(
        value, "sigma", "mse", None, "2-stars", "baseline", "sigma", sigma, _OVERLAP, place
    )


NUMBERS = (
    _at_epsilon(5.09e5, "mse", "wiki-vote", "2-stars", "feat", 6.0, _STARS),
    _at_epsilon(1.45e11, "mse", "wiki-vote", "2-stars", "baseline", 6.0, _STARS),
    _at_epsilon(2.98e-4, "mre", "wiki-vote", "2-stars", "feat", 6.0, _PLUS_STARS),
    _at_epsilon(3.86e-5, "mre", "wiki-vote", "2-stars", "feat+", 6.0, _PLUS_STARS),
    _at_epsilon(9.53e-4, "mre", "facebook", "triangles", "feat", 4.0, _TRIANGLES),
    _at_epsilon(8.27e-1, "mre", "facebook", "triangles", "baseline", 4.0, _TRIANGLES),
    _at_epsilon(6.25e4, "mse", "facebook", "triangles", "feat", 3.0, _PLUS_TRIANGLES),
    _at_epsilon(4.68e2, "mse", "facebook", "triangles", "feat+", 3.0, _PLUS_TRIANGLES),
    _at_sigma(1.014e16, 0.0),
    _at_sigma(1.0442e16, 0.4),
)


def empty_graph_mse(query: str, nodes: int, epsilon: float) -> float:
    """The variance of the unbiased count on an empty graph under one randomised response.

    Each weight a(y) has mean 0 and variance v = p(1−p)/(1−2p)²; copies of a motif that share fewer
    than all pairs are uncorrelated, so the variance is v to the number of pairs, times the copies.

    >>> [f"{empty_graph_mse(*of):.3g}" for of in (("triangles", 4039, 3.0), ("2-stars", 7115, 6.0))]
    ['1.84e+06', '1.12e+06']
    """
    p = 1 / (1 + math.exp(epsilon))
    v = p * (1 - p) / (1 - 2 * p) ** 2
    triples = math.comb(nodes, 3)
    return 3 * triples * v**2 if query == "2-stars" else triples * v**3


def reachable(printed: PrintedNumber) -> Rule:
    """Whether the number is within a factor of ten (MRE: √10) of what is measured in a form."""
    slack = SLACK[printed.measure]

    def rule(found: All, form: str) -> Outcome:
        results = found.get(printed.experiment)
        wanted: dict[str, Any] = {"query": printed.query, printed.along: printed.at}
        if printed.graph:
            wanted["graph"] = printed.graph
        rows = [
            row
            for reading in readings(rows_of(results, printed.method, form, **wanted)).values()
            for row in reading.values()
            if row[printed.measure] > 0 and row["graph"] in PAPER_GRAPHS
        ]
        if results is None or not rows:
            return NOT_MEASURED
        best = min(rows, key=lambda row: abs(math.log(printed.value / row[printed.measure])))
        factor = printed.value / best[printed.measure]
        measured = float(best[printed.measure])
        says, why = f"in the paper {number(printed.value)}, measured {number(measured)}", ""
        if not printed.graph:
            says += f" on {graph_name(best['graph'])}"
        if factor < 1 / slack:
            says += f", {number(float(f'{1 / factor:.2g}'))} times the printed number"
            why = "below what is measured" if printed.method == "baseline" else "below the noise"
        elif factor > slack:
            says += f", {number(float(f'{factor:.2g}'))} times less than printed"
            why = "above what is measured"
        nodes = results.graphs.get(best["graph"], {}).get("nodes")
        says += _floor(printed, best, nodes)
        return Outcome(1 / slack <= factor <= slack, says, measured, why)

    return rule


def _floor(printed: PrintedNumber, row: Row, nodes: int | None) -> str:
    """What an empty graph would give, where the claim is about one release at the whole ε."""
    if printed.method != "feat" or nodes is None:
        return ""
    mse = empty_graph_mse(printed.query, nodes, row["epsilon"])
    floor = mse
    if printed.measure == "mre":  # the mean size of a normal error is √(2/π) of its deviation
        floor = math.sqrt(2 / math.pi * mse) / row["truth"]
    return f"; a graph of {nodes:,} nodes without any edge gives {number(floor)}"
