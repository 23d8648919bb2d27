"""The rules for claims about time: of whole methods, and of libraries of elliptic curves."""

from collections.abc import Iterable
from statistics import median

from silograph.experiments.results import Row
from silograph.report.measured import pick
from silograph.report.rules import NOT_MEASURED, PAPER_METHODS, All, Outcome, Rule
from silograph.report.words import METHODS, graph_name, times

__all__ = ["fastest", "time_grows", "time_ratio"]


def _times(found: All, method: str, form: str) -> dict[str, dict[tuple[object, ...], Row]]:
    """Times of a method by the union that it was run on."""
    times: dict[str, dict[tuple[object, ...], Row]] = {}
    for row in pick(found.get("time"), method=method, form=form):
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
