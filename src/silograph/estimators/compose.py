"""Arithmetic of estimates: sums, differences, multiples and ratios, with their errors.

Model
    A sum keeps the estimates that it is made of, with their weights. Two of them are independent if
    they come from different runs: the noise of every run is drawn anew, whatever the graphs have to
    do with each other. The same answer of the same run is one and the same error. Two different
    answers of one release have the covariance of :mod:`silograph.estimators.covariance`, if it is
    known; otherwise the sum is refused.
Bias
    Sums of unbiased estimates are unbiased; ratios are consistent.
Interval
    Of a multiple: that of the estimate. Of a sum: normal if all parts are; otherwise the distances
    to the parts' own limits are added as errors are, with their correlation. Of a ratio: Fieller's.
Reference
    G. Y. Zou, A. Donner, Construction of confidence limits about effect measures, Statistics in
    Medicine 27 (2008); E. C. Fieller, Some problems in interval estimation, JRSS B 16 (1954).
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from numbers import Real
from statistics import NormalDist
from typing import Any, Self

import numpy as np

from silograph.errors import ArgumentError, SilographError
from silograph.estimators.display import NO_ANSWER
from silograph.estimators.ratio import fieller
from silograph.estimators.tables import Table, entry_of, places_of, table_of

__all__ = ["Composing", "covariance", "sources"]

_Terms = tuple[tuple[float, Any], ...]


# --- Where estimates come from --------------------------------------------------------------------


def sources(answer: Any) -> frozenset[str]:
    """What names the runs behind an answer; none if one of them is not known."""
    parts = [each for _, each in answer.terms] or list(answer.made_of)
    if parts:
        found = [sources(each) for each in parts]
        return frozenset().union(*found) if all(found) else frozenset()
    origin = answer.origin
    if origin is None:
        return frozenset()
    if origin.provenance.run:
        return frozenset({f"run {origin.provenance.run}"})
    if origin.release is None:
        return frozenset()
    # A draw has no run. The same noisy graph is the same draw.
    whole = getattr(origin.release, "whole", origin.release)
    return frozenset({f"draw {getattr(whole, 'fingerprint', id(whole))}"})


def _same(one: Any, other: Any) -> bool:
    """Whether two estimates are the same answer of the same run."""
    if one is other:
        return True
    if _about(one) != _about(other) or not sources(one) or sources(one) != sources(other):
        return False
    numbers = ((one.value, other.value), (one.stderr, other.stderr))
    return all(np.array_equal(a, b, equal_nan=True) for a, b in numbers)


def _about(answer: Any) -> tuple[object, ...]:
    """What an answer is about. Equal numbers of two subsets, or of two partitions with groups of
    the same names, are not the same answer.
    """
    form = answer.form
    if callable(form):
        form = form(0) if np.size(answer.value) else None
    digest = None if answer.origin is None else answer.origin.universe_digest
    form = getattr(form, "identity", form)
    parts = [*(each for _, each in answer.terms), *answer.made_of]
    made = tuple(map(_about, parts))
    return answer.query, answer.method, repr(answer.parameters), digest, form, made


def covariance(one: Any, other: Any) -> Any:
    """The covariance of the errors of two estimates.

    Parameters
    ----------
    one, other
        The estimates.

    Returns
    -------
    float or numpy.ndarray
        The covariance; for arrays, of each entry with the entry in the same place.

    Raises
    ------
    SilographError
        If it is not known.
    """
    return sum(
        a * b * _covariance(mine, theirs) for a, mine in _terms(one) for b, theirs in _terms(other)
    )


def _covariance(one: Any, other: Any) -> Any:
    if _same(one, other):
        return one.stderr**2
    mine, theirs = sources(one), sources(other)
    for each, found in ((one, mine), (other, theirs)):
        if not found:
            raise SilographError(
                f"{each.name}: this answer does not say which run it comes from, so it is not known"
                " how its error goes with that of another"
            )
    if not mine & theirs:
        return 0.0
    if one.form is not None and other.form is not None and not np.ndim(one.value + other.value):
        return one.origin.release.covariance(one, other)
    raise SilographError(
        f"{one.name} and {other.name} rest on one run, and how their errors go together is not "
        "known; take them from two runs"
    )


# --- Sums and multiples ---------------------------------------------------------------------------


def added(one: Any, other: object, sign: float) -> Any:
    """The sum or the difference of an estimate and another, or a number."""
    if isinstance(other, Real):
        word = "+" if sign > 0 else "−"
        moved = replace(one, value=one.value + sign * float(other))
        ends = None if one.ends is None else tuple(end + sign * float(other) for end in one.ends)
        return _made(
            moved, f"{one.name} {word} {other:g}", _terms(one), ends, sign * float(other), 1.0
        )
    if not isinstance(other, Composing):
        raise _not_a_number(other)
    _check_shapes(one, other)
    terms = _merged((*_terms(one), *((sign * c, each) for c, each in _terms(other))))
    name = f"{one.name} {'+' if sign > 0 else '−'} {_bracketed(other)}"
    variance = _variance(terms)
    value = one.value + sign * other.value
    found = _new(name, value, np.sqrt(variance), (one, other), terms=terms)
    shift = value - sum(c * each.value for c, each in terms)
    if all(each.ends is None and each.margin is None and each.limits is None for _, each in terms):
        return found
    limits = _Limits(terms, shift, found.stderr)
    return replace(found, ends=limits(0.95), limits=limits)


def scaled(one: Any, factor: object) -> Any:
    """So many times an estimate."""
    if isinstance(factor, Composing):
        raise ArgumentError("estimates are multiplied by numbers; the product of two has no law")
    if not isinstance(factor, Real):
        raise _not_a_number(factor)
    times = float(factor)
    if not math.isfinite(times):
        raise ArgumentError(f"an estimate cannot be multiplied by {times}")
    ends = None if one.ends is None else tuple(sorted_ends(one.ends, times))
    changed = replace(
        one,
        value=times * one.value,
        stderr=abs(times) * one.stderr,
        margin=None if one.margin is None else abs(times) * one.margin,
    )
    name = f"−{_bracketed(one)}" if times == -1 else f"{times:g}·{_bracketed(one)}"
    return _made(changed, name, tuple((times * c, e) for c, e in _terms(one)), ends, 0.0, times)


def sorted_ends(ends: tuple[Any, Any], times: float) -> tuple[Any, Any]:
    """The ends of an interval, multiplied; a negative number swaps them."""
    low, high = times * ends[0], times * ends[1]
    return (low, high) if times >= 0 else (high, low)


def _made(
    changed: Any,
    name: str,
    terms: _Terms,
    ends: Any,
    shift: float,
    times: float,
) -> Any:
    """A multiple of an estimate, or one that is moved by a number."""
    limits = changed.limits

    def moved(level: float) -> tuple[Any, Any]:
        assert limits is not None  # noqa: S101
        low, high = sorted_ends(limits(level), times)
        return low + shift, high + shift

    return replace(
        changed,
        query=name,
        parameters={},
        ends=ends,
        terms=terms,
        form=None,
        limits=None if limits is None else moved,
    )


class _Limits:
    """The interval of a sum from the intervals of its parts, at any level."""

    def __init__(self, terms: _Terms, shift: Any, stderr: Any) -> None:
        self.terms, self.shift, self.stderr = _kept(terms), shift, stderr

    def __call__(self, level: float) -> tuple[Any, Any]:
        z = NormalDist().inv_cdf((1 + level) / 2)
        value, below, above = self.shift, [], []
        for weight, each in self.terms:
            low, high = each.interval if level == 0.95 else each.interval_at(level)
            # Limits that are cut to what is possible count as at least the normal ones.
            down, up = (
                np.maximum(d, z * each.stderr) for d in (each.value - low, high - each.value)
            )
            value = value + weight * each.value
            below.append(weight * (down if weight >= 0 else up))
            above.append(weight * (up if weight >= 0 else down))
        # Estimates of covariances have errors of their own, which must not make it narrower.
        first, second = (
            np.maximum(self._distance(each), z * self.stderr) for each in (below, above)
        )
        return _plain(value - first), _plain(value + second)

    def _distance(self, distances: Sequence[Any]) -> Any:
        total: Any = 0.0
        for i, (_, one) in enumerate(self.terms):
            total = total + distances[i] ** 2
            for j, (_, other) in enumerate(self.terms[:i]):
                product = np.asarray(one.stderr * other.stderr)
                with np.errstate(divide="ignore", invalid="ignore"):
                    share = _covariance(one, other) / product
                correlation = np.where(product > 0, np.clip(share, -1, 1), 0.0)
                total = total + 2 * correlation * distances[i] * distances[j]
        return np.sqrt(np.maximum(total, 0.0))


# --- Ratios ---------------------------------------------------------------------------------------


def divided(top: object, bottom: object) -> Any:
    """The ratio of two estimates, or of an estimate and a number."""
    if isinstance(bottom, Real) and isinstance(top, Composing):
        if not bottom:
            raise ArgumentError("an estimate cannot be divided by 0")
        found = scaled(top, 1 / float(bottom))
        return replace(found, query=f"{_bracketed(top)}/{bottom:g}")
    if not isinstance(bottom, Composing) or not isinstance(top, Composing | Real):
        raise _not_a_number(top if isinstance(bottom, Composing) else bottom)
    over = float(top) if not isinstance(top, Composing) else top
    if any(isinstance(e.value, np.ndarray) for e in (over, bottom) if isinstance(e, Composing)):
        raise ArgumentError("only single answers are divided by each other; choose them with at()")
    above = _bracketed(over) if isinstance(over, Composing) else f"{over:g}"
    parts = (over, bottom) if isinstance(over, Composing) else (bottom,)
    value = float(over.value) if isinstance(over, Composing) else over
    both = covariance(over, bottom) if isinstance(over, Composing) else 0.0
    below = float(bottom.value)
    ratio = value / below if below else math.nan
    spread = over.stderr**2 if isinstance(over, Composing) else 0.0
    variance = spread + ratio**2 * bottom.stderr**2 - 2 * ratio * both
    stderr = math.sqrt(max(variance, 0.0)) / abs(below) if below else math.inf

    def limits(level: float) -> tuple[float, float]:
        wide = [_wide_variance(e, level) for e in parts]
        shared = both
        few = [e.wrong.stretch(level) for e in parts if e.wrong is not None and e.wrong.few]
        if few and all(e.stderr for e in parts):
            # Where few bits are wrong, each moves both parts: their errors are stretched alike.
            by = max(max(few) ** 2, *(w / e.stderr**2 for w, e in zip(wide, parts, strict=True)))
            wide, shared = [by * e.stderr**2 for e in parts], by * both
        found = fieller(value, wide[0] if len(wide) > 1 else 0.0, below, wide[-1], shared, level)
        return (-math.inf, math.inf) if found is None else found

    ends = limits(0.95)
    note = "a ratio of two estimates: consistent, not unbiased"
    if math.isinf(ends[0]):
        note = f"{NO_ANSWER}: what it is divided by cannot be told from zero"
    made = _new(f"{above}/{_bracketed(bottom)}", ratio, stderr, parts, made_of=parts)
    return replace(made, ends=ends, limits=limits, note=note)


def _wide_variance(answer: Any, level: float) -> float:
    """The variance of a normal law whose interval is at least as wide as the answer's own."""
    z = NormalDist().inv_cdf((1 + level) / 2)
    low, high = answer.interval_at(level)
    reach = max(answer.value - low, high - answer.value, z * answer.stderr)
    return float(reach / z) ** 2


# --- What all have in common ----------------------------------------------------------------------


def _new(name: str, value: Any, stderr: Any, parts: Sequence[Any], **more: Any) -> Any:
    """An estimate that is made of others. A run costs the same, however often it is asked."""
    known = [sources(each) for each in parts]
    shared = len(parts) > 1 and bool(known[0]) and known[0] == known[1]
    costs = [(each.epsilon, each.delta) for each in parts]
    epsilon, delta = (max(cost) if shared else sum(cost) for cost in zip(*costs, strict=True))
    first = parts[0]
    places = places_of(first) if isinstance(value, np.ndarray) and value.ndim else None
    methods = dict.fromkeys(each.method for each in parts)
    notes = dict.fromkeys(each.note for each in parts if each.note)
    return type(first)(
        name,
        _plain(value),
        _plain(stderr),
        epsilon=epsilon,
        delta=min(delta, 1.0),
        method=", ".join(methods),
        note="; ".join(notes),
        origin=first.origin if shared or len(parts) == 1 else None,
        places=places,
        **more,
    )


def _not_a_number(given: object) -> TypeError:
    return TypeError(
        f"an estimate goes with numbers and estimates, not with {type(given).__name__}"
    )


def _check_shapes(one: Any, other: Any) -> None:
    """Arrays are added only if their entries stand for the same."""
    if np.shape(one.value) != np.shape(other.value):
        raise ArgumentError(f"{one.name} and {other.name} do not have the same number of answers")
    if np.ndim(one.value):
        mine, theirs = places_of(one), places_of(other)
        if mine.each != theirs.each or any(
            list(a) != list(b)
            for a, b in zip(mine.columns.values(), theirs.columns.values(), strict=False)
        ):
            raise ArgumentError(f"{one.name} and {other.name} are about different {mine.each}s")


def _terms(answer: Any) -> _Terms:
    return answer.terms or ((1.0, answer),)


def _merged(terms: _Terms) -> _Terms:
    """The same answers together, each once; answers that cancel are left in with weight 0."""
    found: list[tuple[float, Any]] = []
    for weight, each in terms:
        place = next((i for i, (_, known) in enumerate(found) if _same(known, each)), None)
        if place is None:
            found.append((weight, each))
        else:
            found[place] = (found[place][0] + weight, found[place][1])
    return tuple(found)


def _kept(terms: _Terms) -> _Terms:
    """The terms that have a weight left; the others need no covariance."""
    return tuple(term for term in terms if term[0])


def _variance(terms: _Terms) -> Any:
    """The variance of a sum. Sums over pairs of one release are taken together: the difference of
    two that are nearly the same would be lost in the errors of their estimated variances.
    """
    total: Any = np.zeros(np.shape(terms[0][1].stderr))
    kept = _kept(terms)
    joint: dict[frozenset[str], list[tuple[float, Any]]] = {}
    for weight, each in kept:
        if hasattr(each.form, "lifted"):
            joint.setdefault(sources(each), []).append((weight, each))
    for same in joint.values():
        if len(same) > 1:
            total = total + same[0][1].origin.release.variance(same)
    for i, (weight, each) in enumerate(kept):
        mine = joint.get(sources(each), []) if hasattr(each.form, "lifted") else []
        if len(mine) < 2:
            total = total + weight**2 * each.stderr**2
        for other_weight, other in kept[:i]:
            if not (len(mine) > 1 and any(other is one for _, one in mine)):
                total = total + 2 * weight * other_weight * _covariance(each, other)
    return np.maximum(total, 0.0)


def _bracketed(answer: Any) -> str:
    name = answer.name
    return f"({name})" if any(sign in name for sign in (" + ", " − ", "/")) else name


def _plain(value: Any) -> Any:
    return value if isinstance(value, np.ndarray) and value.ndim else float(value)


# --- The operators of estimates, and their tables -------------------------------------------------


class Composing(ABC):
    """What an estimate can do together with others, and as a table.

    It is the base of :class:`~silograph.estimators.estimate.Estimate` and uses its fields.
    """

    value: Any
    stderr: Any
    wrong: Any

    @property
    @abstractmethod
    def name(self) -> str:
        """The query with its parameters, as it is shown."""

    #: Numbers of NumPy leave arithmetic to this class.
    __array_ufunc__ = None

    def __float__(self) -> float:
        if isinstance(self.value, np.ndarray):
            raise TypeError(f"{self.name} has {self.value.size:,} answers; choose one with at()")
        return float(self.value)

    def __add__(self, other: object) -> Self:
        found: Self = added(self, other, 1.0)
        return found

    __radd__ = __add__

    def __sub__(self, other: object) -> Self:
        found: Self = added(self, other, -1.0)
        return found

    def __rsub__(self, other: object) -> Self:
        return (-self) + other

    def __neg__(self) -> Self:
        return self * -1

    def __mul__(self, factor: object) -> Self:
        found: Self = scaled(self, factor)
        return found

    __rmul__ = __mul__

    def __truediv__(self, other: object) -> Self:
        found: Self = divided(self, other)
        return found

    def __rtruediv__(self, other: object) -> Self:
        found: Self = divided(other, self)
        return found

    # -- tables ------------------------------------------------------------------------------

    def table(self) -> Table:
        """The answers as a table: what each stands for, value, standard error and interval.

        Returns
        -------
        Table
            The table. It can be printed, and written as CSV.

        Examples
        --------
        >>> from silograph import Estimate
        >>> Estimate("edges", 100.0, 10.0, epsilon=1.0).table().columns["value"]
        [100.0]
        """
        return table_of(self)

    def at(self, *place: object) -> Any:
        """One of the answers of an array.

        Parameters
        ----------
        *place
            What it stands for: the id of a node, a group, or two groups.

        Returns
        -------
        Estimate
            The answer.

        Raises
        ------
        ArgumentError
            If there is no such answer.
        """
        return entry_of(self, place)

    def to_pandas(self) -> Any:
        """The table of the answers as a pandas data frame.

        Returns
        -------
        pandas.DataFrame
            One row an answer.
        """
        return self.table().to_pandas()

    def to_polars(self) -> Any:
        """The table of the answers as a polars data frame.

        Returns
        -------
        polars.DataFrame
            One row an answer.
        """
        return self.table().to_polars()
