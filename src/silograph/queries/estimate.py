"""An answer with its error bar."""

from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from silograph.privacy.loss import shown_loss
from silograph.queries.display import definitions, number
from silograph.queries.origin import Origin

__all__ = ["Z95", "Estimate", "FloatArray"]

FloatArray = NDArray[np.float64]
V = TypeVar("V", float, FloatArray)

#: The 97.5 % point of the normal law.
Z95 = 1.959963984540054
#: What a query with many answers has one answer for.
_PLACES = {"degrees": "node", "node_triangles": "node", "degree_histogram": "bin"}


@dataclass(frozen=True, eq=False)
class Estimate(Generic[V]):
    """A value, its standard error, and what it cost.

    ``value`` and ``stderr`` are floats, or arrays for queries with one answer per node or bin.
    ``epsilon`` and ``delta`` are what the release behind the answer cost its silos: asking again,
    or asking something else of the same release, costs nothing more.

    >>> print(Estimate("triangles", 1612010.4, 6100.0, epsilon=3.0))
    triangles = 1,612,010 ± 6,100
      95 % interval  1,600,055 … 1,623,966
      method feat, ε = 3
    """

    query: str
    value: V
    stderr: V
    epsilon: float
    delta: float = 0.0
    method: str = "feat"
    #: What a reader must know to use the answer well; empty where there is nothing to say.
    note: str = ""
    #: The query's own parameters, such as k or the edges of bins.
    parameters: dict[str, Any] = field(default_factory=dict)
    #: Half the 95 % interval, where the noise is known not to be normal.
    margin: V | None = None
    #: Where it comes from, and who learns how much from that; None where nobody said.
    origin: Origin | None = field(default=None, repr=False)

    @property
    def interval(self) -> tuple[V, V]:
        """The 95 % interval, value ± 1.96 standard errors or ± ``margin`` where there is one (not
        cut at zero, so never biased)."""
        margin = Z95 * self.stderr if self.margin is None else self.margin
        return self.value - margin, self.value + margin

    @property
    def name(self) -> str:
        """The query with its parameters, as it is shown."""
        shown = {k: v for k, v in self.parameters.items() if isinstance(v, int | float | str)}
        inner = ", ".join(f"{k}={v}" for k, v in shown.items())
        return f"{self.query}({inner})" if inner else self.query

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and lists, ready for JSON."""
        low, high = self.interval
        return {
            "query": self.query,
            "parameters": {k: _plain(v) for k, v in self.parameters.items()},
            "value": _plain(self.value),
            "stderr": _plain(self.stderr),
            "interval": [_plain(low), _plain(high)],
            "epsilon": self.epsilon,
            "delta": self.delta,
            "method": self.method,
            "note": self.note,
        }

    def __str__(self) -> str:
        cost = f"  method {self.method}, ε = {shown_loss(self.epsilon)}"
        if self.delta:
            cost += f", δ = {shown_loss(self.delta)}"
        lines: list[str]
        if isinstance(self.value, np.ndarray):
            lines = _array_lines(self.name, self.value, np.asarray(self.stderr))
        else:
            low, high = (float(end) for end in self.interval)
            lines = [
                f"{self.name} = {number(float(self.value))} ± {number(float(self.stderr))}",
                f"  95 % interval  {number(low)} … {number(high)}",
            ]
        return "\n".join([*lines, cost, *([f"  note: {self.note}"] if self.note else [])])

    def _repr_html_(self) -> str:
        """For notebooks."""
        rows: dict[str, str] = {}
        if isinstance(self.value, np.ndarray):
            rows["answers"] = f"{self.value.size:,}, one a {_PLACES.get(self.query, 'place')}"
            rows["the first"] = _shown(self.value, np.asarray(self.stderr))
        else:
            low, high = (number(float(end)) for end in self.interval)
            rows["answer"] = f"{number(float(self.value))} ± {number(float(self.stderr))}"
            rows["95 % interval"] = f"{low} … {high}"
        delta = f", δ = {shown_loss(self.delta)}" if self.delta else ""
        rows["cost"] = f"ε = {shown_loss(self.epsilon)}{delta}, once for every question on this run"
        rows["method"] = self.method
        if self.note:
            rows["note"] = self.note
        return definitions(self.name, rows)


def _array_lines(name: str, value: FloatArray, stderr: FloatArray) -> list[str]:
    more = f", … ({value.size:,} values)" if value.size > 4 else ""
    return [f"{name} = [{_shown(value, stderr)}{more}]"]


def _shown(value: FloatArray, stderr: FloatArray) -> str:
    pairs = zip(value[:4], stderr, strict=False)
    return ", ".join(f"{number(v)} ± {number(s)}" for v, s in pairs)


def _plain(x: Any) -> Any:
    return x.tolist() if isinstance(x, np.ndarray | np.generic) else x
