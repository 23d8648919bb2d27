"""Estimates: answers with standard errors, how they are shown, and where they come from."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from silograph.dp.loss import View, shown_loss
from silograph.errors import ArgumentError
from silograph.estimators.compose import Composing
from silograph.estimators.display import (
    NO_ANSWER,
    Places,
    definitions,
    number,
    table,
    views_table,
)
from silograph.graph.universe import NodeUniverse

__all__ = [
    "NO_ANSWER",
    "Z95",
    "Estimate",
    "FloatArray",
    "Origin",
    "Places",
    "Provenance",
    "check_level",
    "definitions",
    "number",
    "table",
    "uneven",
    "views_table",
]


# --- Where an answer comes from -------------------------------------------------------------------


@dataclass(frozen=True)
class Provenance:
    """The method, protocol, parties and run that a release comes from.

    Examples
    --------
    >>> made = Provenance("feat", "masked", silos=4, collusion=1)
    >>> made.method, made.silos
    ('feat', 4)
    """

    method: str
    protocol: str
    #: The number of silos, and how many of them may collude with the coordinator.
    silos: int
    collusion: int = 0
    #: The id of the run that made it; empty for a simulated draw.
    run: str = ""


@dataclass(frozen=True, eq=False)
class Origin:
    """The run behind an answer, as far as it is known."""

    provenance: Provenance
    #: The privacy loss of the whole run, not of this answer alone, against each view.
    views: tuple[View, ...]
    #: The certified epsilon against t silos together with the coordinator (in a sealed run:
    #: without it), for t = 0 … m−1.
    losses: Mapping[int, float]
    nodes: int
    universe_digest: str
    #: The release that was paid for, if available; it answers further queries at no cost.
    release: object = field(default=None, repr=False)
    #: The node list, if it is available.
    universe: NodeUniverse | None = field(default=None, repr=False)


# --- Estimates ------------------------------------------------------------------------------------

FloatArray = NDArray[np.float64]
V = TypeVar("V", float, FloatArray)

#: The 97.5 % quantile of the normal law.
Z95 = 1.959963984540054


def check_level(level: float) -> float:
    """Refuse a level of confidence that is not between 0 and 1."""
    if not 0 < level < 1:
        raise ArgumentError(f"a level of confidence is between 0 and 1, as in 0.95; not {level!r}")
    return float(level)


#: Parameters that go without saying.
_USUAL = {"local": "gradient"}
#: Counts: an error as large as the number says nothing of them. (A difference may well be zero.)
_COUNTS = ("edges", "kstars", "triangles", "four_cycles")


def uneven(value: float, stderr: float, down: float, up: float) -> dict[str, Any]:
    """The ends of an interval by errors downwards and upwards, if one is above the standard error.

    >>> uneven(10.0, 1.0, 1.0, 1.0), uneven(10.0, 1.0, 1.0, 2.0)["ends"][0] < 9
    ({}, True)
    """

    def limits(level: float) -> tuple[float, float]:
        z = NormalDist().inv_cdf((1 + level) / 2)
        return value - z * down, value + z * up

    return {"ends": limits(0.95), "limits": limits} if max(down, up) > stderr else {}


@dataclass(frozen=True, eq=False)
class Estimate(Composing, Generic[V]):
    """A value, its standard error, and its privacy cost.

    ``value`` and ``stderr`` are floats, or arrays for queries with one answer per node or bin.
    ``epsilon`` and ``delta`` are the privacy loss of the release behind the answer. Further queries
    to the same release cost nothing more.

    Estimates can be added, subtracted, multiplied by numbers and divided by each other. The errors
    of the results are right if the runs behind them are independent, or if it is known how the
    errors of two answers of one release go together; otherwise a
    :class:`~silograph.errors.SilographError` says so.

    Examples
    --------
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
    #: What a reader must know to use the answer well; empty if there is nothing to say.
    note: str = ""
    #: The query's own parameters, such as k or the edges of bins.
    parameters: dict[str, Any] = field(default_factory=dict)
    #: Half the width of the 95 % interval, if the noise is known not to be normal.
    margin: V | None = None
    #: The ends of the 95 % interval, if it is not symmetric about the value.
    ends: tuple[V, V] | None = None
    #: The run that the answer comes from; None if unknown.
    origin: Origin | None = field(default=None, repr=False)
    #: What the entries of an array stand for; None if the query or the node list says so.
    places: Places | None = field(default=None, repr=False)
    #: The interval at any level, if it is not normal and is known.
    limits: Callable[[float], tuple[V, V]] | None = field(default=None, repr=False)
    #: How many bits of its release are wrong, where they may be few.
    wrong: Any = field(default=None, repr=False)
    #: How the answer weighs pairs, if it is a sum over them; of an array, by place of an entry.
    form: Any = field(default=None, repr=False)
    #: The estimates that this one is a sum of, with their weights; empty if it is no sum.
    terms: "tuple[tuple[float, Estimate[Any]], ...]" = field(default=(), repr=False)
    #: The estimates that this one was made of in any other way.
    made_of: "tuple[Estimate[Any], ...]" = field(default=(), repr=False)

    @property
    def interval(self) -> tuple[V, V]:
        """The 95 % confidence interval.

        It is ``ends`` if they are given, value ± ``margin`` if there is a margin, and value ± 1.96
        standard errors otherwise. The last two are not truncated at zero. The ends of degrees, of
        the edges of small graphs and of k-stars (k ≥ 3) are within the possible range, so the
        unbiased value can be outside of them.

        Returns
        -------
        tuple
            The lower and the upper end.

        Examples
        --------
        >>> Estimate("edges", 100.0, 10.0, epsilon=1.0, margin=25.0).interval
        (75.0, 125.0)
        """
        if self.ends is not None:
            return self.ends
        margin = Z95 * self.stderr if self.margin is None else self.margin
        return self.value - margin, self.value + margin

    def interval_at(self, level: float) -> tuple[V, V]:
        """The confidence interval at another level than 95 %.

        Parameters
        ----------
        level
            The share of intervals that hold the true value, such as 0.99.

        Returns
        -------
        tuple
            The lower and the upper end.

        Raises
        ------
        ArgumentError
            If the noise is not normal and only its 95 % interval is known.

        Examples
        --------
        >>> low, high = Estimate("edges", 100.0, 10.0, epsilon=1.0).interval_at(0.99)
        >>> round(low, 2), round(high, 2)
        (74.24, 125.76)
        """
        level = check_level(level)
        if self.limits is not None:
            return self.limits(level)
        if self.ends is not None or self.margin is not None:
            if level == 0.95:
                return self.interval
            raise ArgumentError(f"{self.name}: only its 95 % interval is known")
        margin = NormalDist().inv_cdf((1 + level) / 2) * self.stderr
        return self.value - margin, self.value + margin

    @property
    def usable(self) -> bool:
        """Whether a count stands out from its noise; of others only their notes say so.

        A count that is far below zero is noise, too.
        """
        if self.note.startswith(NO_ANSWER):
            return False
        if isinstance(self.value, np.ndarray) or self.query not in _COUNTS:
            return True
        return math.isfinite(self.value) and (self.stderr < self.value or self.stderr == 0)

    @property
    def name(self) -> str:
        """The query with its parameters, as it is shown."""
        shown = {
            k: v
            for k, v in self.parameters.items()
            if isinstance(v, int | float | str) and _USUAL.get(k) != v
        }
        inner = ", ".join(f"{k}={v}" for k, v in shown.items())
        return f"{self.query}({inner})" if inner else self.query

    def to_dict(self) -> dict[str, Any]:
        """The estimate as plain numbers and lists, ready for JSON.

        Returns
        -------
        dict
            The value, its standard error, its interval and its cost.

        Examples
        --------
        >>> found = Estimate("edges", 100.0, 10.0, epsilon=1.0).to_dict()
        >>> found["value"], found["stderr"]
        (100.0, 10.0)
        """
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

    @classmethod
    def from_dict(cls, found: Mapping[str, Any], origin: Origin | None = None) -> "Estimate[Any]":
        """The estimate that :meth:`to_dict` has written.

        Parameters
        ----------
        found
            What :meth:`to_dict` returned, also after a way through JSON.
        origin
            The run that the answer comes from, if it is known.

        Returns
        -------
        Estimate
            The estimate. Of its interval, only that at 95 % is known.

        Examples
        --------
        >>> answer = Estimate("edges", 100.0, 10.0, epsilon=1.0, margin=25.0)
        >>> Estimate.from_dict(answer.to_dict()).interval
        (75.0, 125.0)
        """
        low, high = (_array(end) for end in found["interval"])
        value, stderr = _array(found["value"]), _array(found["stderr"])
        names = ("epsilon", "delta", "method", "note", "parameters")
        rest = {name: found[name] for name in names}
        return cls(found["query"], value, stderr, **rest, ends=(low, high), origin=origin)

    def __str__(self) -> str:
        cost = f"  method {self.method}, ε = {shown_loss(self.epsilon)}"
        if self.delta:
            cost += f", δ = {shown_loss(self.delta)}"
        lines: list[str]
        if isinstance(self.value, np.ndarray):
            lines = [f"{self.name}: {self._size}", str(self.table())]
        else:
            low, high = (float(end) for end in self.interval)
            shown = f"{number(float(self.value))} ± {number(float(self.stderr))}"
            lines = [f"{self.name} = {shown}"]
            if not self.usable:
                lines = [f"{self.name}: {NO_ANSWER}", f"  estimate       {shown}"]
            lines.append(f"  95 % interval  {number(low)} … {number(high)}")
        return "\n".join([*lines, cost, *([f"  note: {self.note}"] if self.note else [])])

    def _repr_html_(self) -> str:
        """Show the estimate in notebooks."""
        rows: dict[str, str] = {}
        more = ""
        if isinstance(self.value, np.ndarray):
            rows["answers"], more = self._size, self.table()._repr_html_()
        else:
            low, high = (number(float(end)) for end in self.interval)
            if not self.usable:
                rows["answer"] = f"{NO_ANSWER}: the noise is as large as the number"
            name = "answer" if self.usable else "estimate"
            rows[name] = f"{number(float(self.value))} ± {number(float(self.stderr))}"
            rows["95 % interval"] = f"{low} … {high}"
        delta = f", δ = {shown_loss(self.delta)}" if self.delta else ""
        rows["cost"] = f"ε = {shown_loss(self.epsilon)}{delta}, once for every question on this run"
        rows["method"] = self.method
        if self.note:
            rows["note"] = self.note
        return definitions(self.name, rows, more)

    @property
    def _size(self) -> str:
        found = self.table()
        return f"{len(found):,}, one per {found.each}"


def _plain(x: Any) -> Any:
    return x.tolist() if isinstance(x, np.ndarray | np.generic) else x


def _array(x: Any) -> Any:
    return np.array(x, float) if isinstance(x, list) else x
