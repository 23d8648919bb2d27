"""What is done at once: one method at one point of an experiment, or one measurement of a time.

A task is a function of the parameters: its seeds follow from the written one, the experiment, the
point and the method, so that tasks can be run in any order, on any number of cores, once or again.
An outcome is plain data, so that it can be journalled.
"""

import hashlib
import json
import math
import statistics
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from reproduction import elliptic_curves, times
from reproduction.definitions import Definition
from reproduction.draws import LABELS, Asked, Series, draw, series_of, unable
from reproduction.federations import Dealt, Graph, federation
from reproduction.results import Row
from silograph.errors import ExperimentError, SplitWarning

__all__ = ["Outcome", "Task", "rows_of", "run_task", "tasks_of"]

#: What a task gave: JSON, and nothing that depends on when or where it was run (but for times).
Outcome = dict[str, Any]


@dataclass(frozen=True)
class Task:
    """One piece of work. ``key`` tells it from all others of its experiment."""

    experiment: str
    key: str
    kind: str
    #: Roughly how many seconds it takes; the longest are begun first.
    cost: float
    #: Of a utility task: method, point and queries; of a timing task: the arguments of its case.
    label: str
    asked: Asked | None
    queries: tuple[str, ...]
    seeds: tuple[int, ...]
    case: Mapping[str, Any]


def tasks_of(definition: Definition, nodes: Mapping[str, int]) -> list[Task]:
    """All tasks of an experiment, whose graphs have so many nodes."""
    if definition.kind == "timing":
        return _timing_tasks(definition, nodes)
    return [
        task
        for graph in definition.graphs
        for point in definition.points()
        for label in definition.parameters["methods"]
        if (task := _utility_task(definition, graph, point, label, nodes[graph.name])) is not None
    ]


def _utility_task(
    definition: Definition, graph: Graph, point: Mapping[str, Any], label: str, nodes: int
) -> Task | None:
    queries = tuple(
        query
        for query in definition.parameters["queries"]
        if not _reason(definition, graph.name, point, label, query, nodes)
    )
    if not queries:
        return None
    key = _key(graph.name, point, label)
    seeds = _seeds(definition, graph.name, point, label)
    cost = 8e-9 * nodes**2 * (4 if label.startswith("feat+") else 1)
    if label == "baseline mended":
        cost += 1.3e-11 * nodes**3
    return Task(
        definition.name, key, "utility", len(seeds) * cost, label,
        _asked(definition, graph, point), queries, seeds, {},
    )  # fmt: skip


def _asked(definition: Definition, graph: Graph, point: Mapping[str, Any]) -> Asked:
    given = definition.parameters
    dealt = Dealt(
        graph, given.get("split", "random"), point["silos"], point["rho"], point["sigma"],
        definition.seed,
    )  # fmt: skip
    return Asked(
        dealt, point["epsilon"], float(given["delta"]), point["collusion"], given.get("owned")
    )


def _key(graph: str, point: Mapping[str, Any], label: str) -> str:
    return json.dumps([graph, *point.values(), label])


def _seeds(
    definition: Definition, graph: str, point: Mapping[str, Any], label: str
) -> tuple[int, ...]:
    """A seed for each repetition: of 48 bits, so that it is exact wherever JSON is read."""
    key = _key(graph, point, LABELS[label].seeds or label)
    begin = f"silograph/experiment/{definition.name}/{definition.seed}/{key}"
    texts = (f"{begin}/{number}" for number in range(int(definition.parameters["repetitions"])))
    return tuple(
        int.from_bytes(hashlib.sha256(text.encode()).digest()[:6], "big") for text in texts
    )


def _reason(
    definition: Definition,
    graph: str,
    point: Mapping[str, Any],
    label: str,
    query: str,
    nodes: int,
) -> str:
    written = definition.reason(graph, label, query)
    return written or unable(label, query, nodes, point["silos"], point["collusion"])


#: How each timing experiment lists its cases.
_CASES: dict[str, Callable[[Mapping[str, Any]], list[dict[str, Any]]]] = {
    "time": times.cases,
    "curves": elliptic_curves.cases,
}


def _timing_tasks(definition: Definition, nodes: Mapping[str, int]) -> list[Task]:
    if definition.name not in _CASES:
        raise ExperimentError(f"{definition.name}: no timing experiment has this name")
    try:
        cases = _CASES[definition.name](definition.parameters)
        asked = [_timed_silos(definition, case) for case in cases]
    except (KeyError, TypeError, ValueError) as problem:
        raise ExperimentError(
            f"{definition.name}: its parameters are wrong or incomplete: {problem}"
        ) from None
    return [
        Task(
            definition.name,
            json.dumps(case),
            "timing",
            _timing_cost(case, nodes),
            "",
            silos,
            (),
            (),
            case,
        )
        for case, silos in zip(cases, asked, strict=True)
    ]


def _timing_cost(case: Mapping[str, Any], nodes: Mapping[str, int]) -> float:
    if "graph" not in case:
        return float(case["budget_seconds"])
    n = nodes[case["graph"]]
    return 2e-10 * n**3 if case["method"] == "sealed" else 2e-7 * n**2


def _timed_silos(definition: Definition, case: Mapping[str, Any]) -> Asked | None:
    """The silos that a case is about, where it is about some."""
    if "graph" not in case:
        return None
    given = definition.parameters
    point = {
        "epsilon": float(given["epsilon"]),
        "rho": float(case["rho"]),
        "sigma": float(given["sigma"]),
        "silos": int(given["silos"]),
        "collusion": int(given["collusion"]),
    }
    return _asked(definition, definition.graph(case["graph"]), point)


def run_task(task: Task) -> Outcome:
    """Do one task."""
    with warnings.catch_warnings():
        # A rate that cannot be reached is in the rows, as the one that was.
        warnings.simplefilter("ignore", SplitWarning)
        if task.asked is not None:
            federation(task.asked.dealt)
    if task.kind == "timing":
        return _measured(task)
    return _drawn(task)


def _measured(task: Task) -> Outcome:
    if task.experiment == "curves":
        return elliptic_curves.measure(**task.case)
    if task.asked is None:
        raise ExperimentError(f"{task.experiment}: a case without silos")
    return times.measure(task.asked.federation.silos, **task.case)


def _drawn(task: Task) -> Outcome:
    if task.asked is None:
        raise ExperimentError(f"{task.experiment}: a draw without silos")
    made = task.asked.federation
    values: dict[str, dict[str, list[float]]] = {query: {} for query in task.queries}
    for seed in task.seeds:
        for (series, query), value in draw(task.label, task.asked, task.queries, seed).items():
            values[query].setdefault(series.variant, []).append(value)
    held = statistics.fmean(len(silo) for silo in made.silos)
    return {
        "truths": {query: made.truth(query) for query in task.queries},
        "rho_reached": held / task.asked.dealt.graph.edges(),
        "values": values,
    }


def rows_of(
    definition: Definition, nodes: Mapping[str, int], outcomes: Mapping[str, Outcome]
) -> tuple[list[Row], list[Row]]:
    """The rows of a finished experiment, and what was left out, in the order of its parameters."""
    if definition.kind == "timing":
        found = [outcomes[task.key] for task in _timing_tasks(definition, nodes)]
        return [row for row in found if "reason" not in row], [
            row for row in found if "reason" in row
        ]
    rows: list[Row] = []
    left_out: list[Row] = []
    for graph in definition.graphs:
        for point in definition.points():
            for query in definition.parameters["queries"]:
                for label in definition.parameters["methods"]:
                    reason = _reason(definition, graph.name, point, label, query, nodes[graph.name])
                    outcome = outcomes.get(_key(graph.name, point, label), {})
                    for series in series_of(label, query):
                        names = _names(definition, graph.name, point, query, label, series)
                        if not reason and not outcome["truths"][query]:
                            reason = f"the silos hold no {query}: there is no relative error"
                        if reason:
                            left_out.append({**names, "reason": reason})
                        else:
                            seeds = _seeds(definition, graph.name, point, label)
                            rows.append(_row(names, series, query, outcome, seeds))
    return rows, left_out


def _names(
    definition: Definition,
    graph: str,
    point: Mapping[str, Any],
    query: str,
    label: str,
    series: Series,
) -> dict[str, Any]:
    delta = float(definition.parameters["delta"]) if series.uses_delta else 0.0
    return {
        "experiment": definition.name,
        "graph": graph,
        "query": query,
        "method": series.method,
        "form": series.form,
        "variant": series.variant,
        "epsilon": point["epsilon"],
        "delta": delta,
        "rho": point["rho"],
        "sigma": point["sigma"],
        "silos": point["silos"],
        "collusion": point["collusion"],
    }


def _row(
    names: Mapping[str, Any], series: Series, query: str, outcome: Outcome, seeds: Sequence[int]
) -> Row:
    truth, values = outcome["truths"][query], outcome["values"][query][series.variant]
    squares = [(value - truth) ** 2 for value in values]
    relative = [abs(value - truth) / truth for value in values]
    return {
        **names,
        "rho_reached": outcome["rho_reached"],
        "truth": truth,
        "seeds": list(seeds),
        "values": values,
        "mse": math.fsum(squares) / len(squares),
        "mre": math.fsum(relative) / len(relative),
        "mse_spread": _spread(squares),
        "mre_spread": _spread(relative),
    }


def _spread(errors: Sequence[float]) -> float:
    """The standard deviation over the repetitions; 0 where there is one.

    Scaled, for squares of squared errors can pass what a float holds.
    """
    largest = max(errors)
    if len(errors) < 2 or largest == 0:
        return 0.0
    return largest * statistics.stdev(error / largest for error in errors)
