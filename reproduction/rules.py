"""The rules by which claims are judged: the same words on the page, and here as code over rows.

Each rule is given the results and a form, one of the readings of the paper (``printed``, ``meant``
or ``mended``), and says whether the claim holds in it, with the numbers; or that it was not
measured. Every rule can fail. Ten repetitions leave an MSE uncertain by a factor of two or three,
so single cases are judged with three standard errors to spare, and the middle of all cases without.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from statistics import median
from typing import Any, NamedTuple

from reproduction.labels import AXES, METHODS, graph_name, ratio, setting, times
from reproduction.measured import (
    CLEAR,
    Case,
    Orders,
    Reading,
    cases,
    in_orders,
    pick,
    readings,
    trend,
)
from reproduction.results import Results, Row
from silograph.dp.loss import shown_loss

__all__ = [
    "NOT_MEASURED",
    "PAPER_METHODS",
    "TWICE",
    "All",
    "Outcome",
    "Rule",
    "beats",
    "beats_somewhere",
    "distances",
    "every",
    "fastest",
    "little_influence",
    "moves",
    "rows_of",
    "sealed_beats_feat",
    "time_grows",
    "time_ratio",
]


# --- Rules ----------------------------------------------------------------------------------------

All = Mapping[str, Results]
#: A factor of two, in orders.
TWICE = 0.301
PAPER_METHODS = ("baseline", "feat", "feat+")


@dataclass(frozen=True)
class Outcome:
    """Whether a rule is met (None where rows are missing), and the numbers.

    ``value`` is the one number that was compared, where there is one; ``why`` says in a few words
    how a rule was missed.
    """

    holds: bool | None
    says: str
    value: float | None = None
    why: str = ""


NOT_MEASURED = Outcome(None, "no rows")
Rule = Callable[[All, str], Outcome]


def every(*rules: Rule) -> Rule:
    """All of several rules; not measured where one of them is not, unless another fails."""

    def rule(found: All, form: str) -> Outcome:
        outcomes = [one(found, form) for one in rules]
        says = ". ".join(outcome.says for outcome in outcomes)
        if any(outcome.holds is False for outcome in outcomes):
            return Outcome(False, says)
        if any(outcome.holds is None for outcome in outcomes):
            return Outcome(None, says)
        return Outcome(True, says)

    return rule


@dataclass(frozen=True)
class _Compared:
    """Two methods in every case that both were run in."""

    reading: Reading
    orders: Mapping[Case, Orders]

    @property
    def middle(self) -> float:
        return median(orders.value for orders in self.orders.values())

    def failing(self, least: float) -> list[Case]:
        return [case for case, orders in self.orders.items() if orders.below(least)]

    def extreme(self, which: Callable[..., Case]) -> Case:
        return which(self.orders, key=lambda case: self.orders[case].value)


def rows_of(results: Results | None, method: str, form: str, **wanted: Any) -> list[Row]:
    """The rows of a method in one reading; Algorithm 1 has the same one as printed and as meant."""
    if (method, form) == ("baseline", "meant"):
        form = "printed"
    return pick(results, method=method, form=form, **wanted)


def _compare(
    results: Results | None, better: tuple[str, str], worse: tuple[str, str], measure: str
) -> list[_Compared]:
    """How many orders ``better`` is below ``worse``, for each reading of ``better``."""
    of_better = _whole(readings(rows_of(results, *better)))
    of_worse = readings(rows_of(results, *worse))
    found = []
    for reading, rows in of_better.items():
        for others in of_worse.values():
            both = cases(rows, others)
            if both:
                orders = {
                    case: in_orders(others[case], measure) - in_orders(rows[case], measure)
                    for case in both
                }
                found.append(_Compared(reading, orders))
    return found


def _whole(found: dict[Reading, dict[Case, Row]]) -> dict[Reading, dict[Case, Row]]:
    """Readings that are run in some cases alone are completed by the plain one.

    Otherwise a claim about all cases could be met by looking at a few.
    """
    plain = max(found.values(), key=len, default={})
    return {reading: plain | rows for reading, rows in found.items()}


def beats(
    experiment: str,
    better: str,
    worse: str,
    least: float,
    *,
    measure: str = "mse",
    middle: float | None = None,
) -> Rule:
    """In no case clearly less than so many orders, and in the middle of all at least as many.

    ``middle`` asks for more in the middle: of two methods that are the same, chance picks one.
    A method with several readings is taken by the one that serves the claim best.
    """

    def rule(found: All, form: str) -> Outcome:
        compared = _compare(found.get(experiment), (better, form), (worse, form), measure)
        if not compared:
            return NOT_MEASURED
        best = max(compared, key=lambda one: (-len(one.failing(least)), one.middle))
        failing = best.failing(least)
        lowest, highest = best.extreme(min), best.extreme(max)
        told = str(best.reading._replace(collusion=0))
        reading = f" ({told})" if told else ""
        along = f"Along {AXES[experiment]}, " if experiment in ("rho", "sigma") else ""
        says = (
            f"{along}{measure.upper()} of {METHODS[worse]} over {METHODS[better]}{reading}: "
            f"{ratio(best.middle)} in the middle of {len(best.orders)} cases; "
            f"least {ratio(best.orders[lowest].value)} ({setting(lowest)}), "
            f"most {ratio(best.orders[highest].value)} ({setting(highest)})"
        )
        if failing:
            says += f"; too little in {len(failing)} of {len(best.orders)}"
        enough = best.middle >= (least if middle is None else middle)
        return Outcome(not failing and enough, says)

    return rule


def beats_somewhere(experiment: str, better: str, worse: str, least: float) -> Rule:
    """In some case and in one of the two measures at least so many orders, beyond chance."""

    def rule(found: All, form: str) -> Outcome:
        best: list[tuple[str, Case, Orders]] = []
        for measure in ("mse", "mre"):
            compared = _compare(found.get(experiment), (better, form), (worse, form), measure)
            every = [(measure, case, o) for one in compared for case, o in one.orders.items()]
            if every:
                best.append(max(every, key=lambda one: one[2].value - CLEAR * one[2].error))
        if not best:
            return NOT_MEASURED
        says = "; ".join(
            f"most in {measure.upper()}: {ratio(orders.value)} ({setting(case)})"
            for measure, case, orders in best
        )
        return Outcome(any(orders.above(least) for _, _, orders in best), says)

    return rule


def distances(results: Results | None, form: str = "mended") -> list[dict[str, Any]]:
    """For every case: FEAT's MSE over sealed's, and sealed's over those of trusted hands.

    *Own* is sealed's mechanism in one hand, *central* the best of the mechanisms that a curator may
    use. Each is taken by its most accurate reading.
    """
    over_feat = _compare(results, ("sealed", form), ("feat", form), "mse")
    over_own = _compare(results, ("curator", "limit"), ("sealed", form), "mse")
    over_central = _compare(results, ("central", "limit"), ("sealed", form), "mse")
    if not over_feat:
        return []
    best = max(over_feat, key=lambda one: one.middle)
    rows = []
    for case, gained in best.orders.items():
        own = [one.orders[case].value for one in over_own if case in one.orders]
        central = [
            (one.orders[case].value, one.reading.variant)
            for one in over_central
            if case in one.orders
        ]
        rows.append(
            case._asdict()
            | {
                "delta": best.reading.delta,
                "collusion": best.reading.collusion,
                "feat_over_sealed": 10**gained.value,
                "sealed_over_own": 10 ** min(own) if own else None,
                "sealed_over_central": 10 ** max(central)[0] if central else None,
                "central": max(central)[1] if central else "",
            }
        )
    return rows


def sealed_beats_feat(experiment: str) -> Rule:
    """:func:`beats` by a factor of two; by how much at each ε; and how near to trusted hands."""
    at_all = beats(experiment, "sealed", "feat", 0.0, middle=TWICE)

    def rule(found: All, form: str) -> Outcome:
        outcome = at_all(found, form)
        rows = distances(found.get(experiment), form)
        if outcome.holds is None or not rows:
            return outcome
        parts = []
        for epsilon in sorted({row["epsilon"] for row in rows}):
            gained = [row["feat_over_sealed"] for row in rows if row["epsilon"] == epsilon]
            parts.append(f"ε = {shown_loss(epsilon)}: {times(median(gained))}")
        says = f"{outcome.says}. In the middle at each ε: " + ", ".join(parts)
        own = [row["sealed_over_own"] for row in rows if row["sealed_over_own"]]
        if own:
            says += (
                f". Its MSE is {times(median(own))} that of its own mechanism in one trusted hand"
            )
        central = [row["sealed_over_central"] for row in rows if row["sealed_over_central"]]
        if central:
            says += f", and {times(median(central))} the best central mechanism's, in the middle"
        return Outcome(outcome.holds, says)

    return rule


class _Line(NamedTuple):
    """How one method's error moves from end to end, on one graph and query, in one reading."""

    method: str
    graph: str
    query: str
    variant: str
    moved: Orders

    def __str__(self) -> str:
        name = f"{METHODS[self.method]} {self.variant}".strip()
        return f"{name}, {graph_name(self.graph)}, {self.query}"


def _trends(results: Results | None, form: str, measure: str, along: str) -> list[_Line]:
    """How every method's error moves along one parameter, on every graph and query."""
    found = []
    for method in PAPER_METHODS:
        for reading, rows in readings(rows_of(results, method, form)).items():
            lines: dict[tuple[str, str], list[tuple[float, Orders]]] = {}
            for case, row in rows.items():
                x = getattr(case, along)
                if x is not None:
                    lines.setdefault((case.graph, case.query), []).append(
                        (x, in_orders(row, measure))
                    )
            for (graph, query), points in lines.items():
                moved = trend(sorted(points, key=lambda point: point[0]))
                if moved is not None:
                    found.append(_Line(method, graph, query, reading.variant, moved))
    return found


def moves(experiment: str, along: str, measure: str, direction: int) -> Rule:
    """The error moves one way over all cases together, and the other way in none.

    It *moves* where straight lines through its logarithms rise (or fall) from end to end by more
    than three standard errors. One case has too few repetitions to show a factor of two; all of
    them together have enough. A method with several readings is taken by the one that serves the
    claim best.
    """

    def rule(found: All, form: str) -> Outcome:
        best: dict[tuple[str, str, str], _Line] = {}
        for line in _trends(found.get(experiment), form, measure, along):
            known = best.setdefault(line[:3], line)
            if direction * line.moved.value > direction * known.moved.value:
                best[line[:3]] = line
        if not best:
            return NOT_MEASURED
        lines = list(best.values())
        turned = [Orders(direction * line.moved.value, line.moved.error) for line in lines]
        together = Orders(
            sum(orders.value for orders in turned) / len(turned),
            math.hypot(*(orders.error for orders in turned)) / len(turned),
        )
        against = [str(line) for line, one in zip(lines, turned, strict=True) if one.below(0)]
        grows, falls = ("grows", "falls")[::direction]
        clearly = sum(one.above(0) for one in turned)
        says = (
            f"{measure.upper()} from end to end: {ratio(direction * together.value)} over all "
            f"{len(lines)} cases (one standard error: {100 * (10**together.error - 1):.2g} %); "
            f"beyond three it {grows} in {clearly} and {falls} in {len(against)}"
        )
        if against:
            says += f": {_some(against)}"
        return Outcome(together.above(0) and not against, says)

    return rule


def little_influence(experiment: str, along: str, most: float) -> Rule:
    """From end to end no error moves by more than so many orders, beyond three standard errors."""

    def rule(found: All, form: str) -> Outcome:
        lines = _trends(found.get(experiment), form, "mse", along)
        if not lines:
            return NOT_MEASURED
        strong = [
            str(line)
            for line in lines
            if abs(line.moved.value) > max(most, CLEAR * line.moved.error)
        ]
        widest = max(lines, key=lambda line: abs(line.moved.value))
        says = (
            f"MSE from end to end: {ratio(median(line.moved.value for line in lines))} in the "
            f"middle of {len(lines)} cases, at most {ratio(widest.moved.value)} ({widest})"
        )
        if strong:
            says += f"; too much in {len(strong)}: {_some(strong)}"
        return Outcome(not strong, says)

    return rule


def _some(names: list[str]) -> str:
    return "; ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


# --- The rules for claims about time: of whole methods, and of libraries of elliptic curves -------


def _times(found: All, method: str, form: str) -> dict[str, dict[tuple[object, ...], Row]]:
    """Times of a method by the union that it was run on."""
    times: dict[str, dict[tuple[object, ...], Row]] = {}
    for row in rows_of(found.get("time"), method, form):
        times.setdefault(row["union"], {})[row["graph"], row["query"], row["rho"]] = row
    return times


def time_ratio(slower: str, quicker: str, low: float, high: float) -> Rule:
    """The middle of all ratios of running times lies between two numbers, on some union.

    Two methods that were run on the same union are compared on it.
    """

    def rule(found: All, form: str) -> Outcome:
        first, second = _times(found, slower, form), _times(found, quicker, form)
        said, holds = [], False
        for union, rows in first.items():
            for other in [union] if union in second else list(second):
                both = rows.keys() & second[other].keys()
                if not both:
                    continue
                pairs = [(rows[key], second[other][key]) for key in both]
                quotients = [slow["seconds"] / quick["seconds"] for slow, quick in pairs]
                holds = holds or low <= median(quotients) <= high
                text = (
                    f"time of {METHODS[slower]} ({union}) over {METHODS[quicker]} ({other}): "
                    f"{times(median(quotients))} in the middle of {len(both)} cases, from "
                    f"{times(min(quotients))} to {times(max(quotients))}"
                )
                scaled = any(row["scaled"] for pair in pairs for row in pair)
                said.append(text + (", scaled up from measured pairs" if scaled else ""))
        return Outcome(holds, "; ".join(said)) if said else NOT_MEASURED

    return rule


def time_grows(least: float) -> Rule:
    """Every method takes at least so many times as long at the largest ρ as at the smallest."""

    def rule(found: All, form: str) -> Outcome:
        growth = {}
        for method in PAPER_METHODS:
            for union, rows in _times(found, method, form).items():
                for graph, query in sorted({key[:2] for key in rows}, key=str):
                    line = sorted(
                        (row for key, row in rows.items() if key[:2] == (graph, query)),
                        key=lambda row: float(row["rho"]),
                    )
                    if len(line) > 1:
                        name = f"{METHODS[method]} ({union}), {graph_name(str(graph))}, {query}"
                        growth[name] = line[-1]["seconds"] / line[0]["seconds"]
        if not growth:
            return NOT_MEASURED
        lowest, highest = min(growth, key=growth.__getitem__), max(growth, key=growth.__getitem__)
        says = (
            f"from the smallest ρ to the largest: {times(median(growth.values()))} in the middle, "
            f"{times(growth[lowest])} ({lowest}) to {times(growth[highest])} ({highest})"
        )
        return Outcome(all(value >= least for value in growth.values()), says)

    return rule


def fastest(library: str, others: Iterable[str], slack: float) -> Rule:
    """At the largest size that all were measured at, none is quicker by more than the slack."""
    others = tuple(others)

    def rule(found: All, form: str) -> Outcome:
        rows = {(row["library"], row["elements"]): row for row in pick(found.get("curves"))}
        sizes = [{size for name, size in rows if name == one} for one in (library, *others)]
        common = set.intersection(*sizes)
        if not common:
            missing = [one for one, has in zip((library, *others), sizes, strict=True) if not has]
            return Outcome(None, f"no rows of {', '.join(missing)}" if missing else "no rows")
        every = (library, *others)
        # Measured in all before scaled in some, then the larger.
        size = max(common, key=lambda n: (not any(rows[one, n]["scaled"] for one in every), n))
        per = {one: rows[one, size]["per_element"] for one in every}
        says = f"at {size:,} elements: " + ", ".join(
            f"{one} {1e6 * value:,.3g} µs an element" for one, value in per.items()
        )
        return Outcome(per[library] <= (1 + slack) * min(per.values()), says)

    return rule
