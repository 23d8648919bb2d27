"""An answer with its error bar."""

import math
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

__all__ = ["Z95", "Estimate", "FloatArray"]

FloatArray = NDArray[np.float64]
V = TypeVar("V", float, FloatArray)

#: The 97.5 % point of the normal law.
Z95 = 1.959963984540054


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
        cost = f"  method {self.method}, ε = {self.epsilon:.6g}"
        if self.delta:
            cost += f", δ = {self.delta:.3g}"
        lines: list[str]
        if isinstance(self.value, np.ndarray):
            lines = _array_lines(self.name, self.value, np.asarray(self.stderr))
        else:
            low, high = (float(end) for end in self.interval)
            lines = [
                f"{self.name} = {_number(float(self.value))} ± {_number(float(self.stderr))}",
                f"  95 % interval  {_number(low)} … {_number(high)}",
            ]
        return "\n".join([*lines, cost, *([f"  note: {self.note}"] if self.note else [])])


def _number(x: float) -> str:
    """Counts get separators, ratios and tiny errors keep digits."""
    if not math.isfinite(x):
        return str(x)
    if abs(x) >= 1e15:
        return f"{x:.6e}"
    return f"{x:,.0f}" if abs(x) >= 1000 else f"{x:.4g}"


def _array_lines(name: str, value: FloatArray, stderr: FloatArray) -> list[str]:
    shown = ", ".join(
        f"{_number(v)} ± {_number(s)}" for v, s in zip(value[:4], stderr, strict=False)
    )
    more = f", … ({value.size:,} values)" if value.size > 4 else ""
    return [f"{name} = [{shown}{more}]"]


def _plain(x: Any) -> Any:
    return x.tolist() if isinstance(x, np.ndarray | np.generic) else x
