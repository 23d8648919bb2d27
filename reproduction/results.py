"""The results of an experiment: one JSON file that is there whole or not at all.

``DIR/<experiment>/results.json`` says what was asked (parameters), by what it was made (software,
machine), on which graphs, and what came out: flat rows, and the combinations that were left out,
each with its reason. Rows of *utility* experiments are a function of parameters and software; those
of *timing* experiments were measured, and differ from run to run.
"""

import json
import reprlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from silograph import whole_files
from silograph.errors import ExperimentError

__all__ = [
    "EXPERIMENTS",
    "FILE",
    "FORMAT",
    "KINDS",
    "UTILITY_KEYS",
    "Results",
    "Row",
    "load",
    "load_all",
    "rows_key",
    "save",
]

FORMAT = "silograph-experiment 1"
FILE = "results.json"
KINDS = ("utility", "timing")
#: Every experiment, in the order of the paper and then of what goes beyond it.
EXPERIMENTS = (
    "epsilon",
    "rho",
    "sigma",
    "time",
    "curves",
    "silos",
    "collusion",
    "communities",
    "graphs",
    "small-epsilon",
)
#: What says which combination a utility row, or one that was left out, is about.
UTILITY_KEYS: tuple[str, ...] = (
    "experiment",
    "graph",
    "query",
    "method",
    "form",
    "variant",
    "epsilon",
    "delta",
    "rho",
    "sigma",
    "silos",
    "collusion",
)
_MEASURED = ("truth", "mse", "mre", "mse_spread", "mre_spread")
_TIME_KEYS: tuple[str, ...] = (
    "experiment", "graph", "rho", "method", "form", "union", "query", "seconds", "measured_pairs",
    "pairs", "scaled", "repetitions", "spread",
)  # fmt: skip
_CURVE_KEYS: tuple[str, ...] = (
    "experiment", "library", "version", "elements", "seconds", "per_element", "scaled", "operation",
    "curve",
)  # fmt: skip
_MOST_BYTES = 64 << 20
#: The largest number: figures take some multiples of it, which must be floats too.
_LARGEST = 1e300
#: What can be named: pages have an order, a colour and a line for each.
_NAMED = {
    "method": ("baseline", "feat", "feat+", "sealed", "curator", "central"),
    "form": ("printed", "meant", "mended", "limit"),
}
_TEXTS = frozenset(
    ("experiment", "graph", "query", "variant", "union", "library", "version",
     "operation", "curve", "reason", "note")
)  # fmt: skip
_WHOLE = frozenset(
    ("silos", "collusion", "elements", "pairs", "measured_pairs", "measured", "repetitions")
)

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Results:
    """All that one experiment gave."""

    experiment: str
    kind: str
    quick: bool
    parameters: Mapping[str, Any]
    software: Mapping[str, str]
    machine: Mapping[str, Any]
    #: name: {"nodes", "edges", "source"}
    graphs: Mapping[str, Mapping[str, Any]]
    rows: Sequence[Row]
    left_out: Sequence[Row]

    def to_bytes(self) -> bytes:
        """The file's content; the same results give the same bytes. A row is a line."""
        head = {
            "format": FORMAT,
            "experiment": self.experiment,
            "kind": self.kind,
            "quick": self.quick,
            "parameters": self.parameters,
            "software": self.software,
            "machine": self.machine,
            "graphs": self.graphs,
        }
        lines = [f'"{key}": {_text(value)}' for key, value in head.items()]
        for key, rows in (("rows", self.rows), ("left_out", self.left_out)):
            body = ",\n".join(f"  {_text(row)}" for row in rows)
            lines.append(f'"{key}": [\n{body}\n]' if rows else f'"{key}": []')
        return ("{\n" + ",\n".join(lines) + "\n}\n").encode()


def _text(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def save(results: Results, folder: Path) -> Path:
    """Write ``results.json`` into the folder, in place of one that may be there."""
    path = folder / FILE
    try:
        content = results.to_bytes()
    except (TypeError, ValueError) as problem:
        raise ExperimentError(f"{path}: cannot be written: {problem}") from None
    _check(path, json.loads(content))
    whole_files.replace(path, content, ExperimentError, mode=0o644)
    return path


def load(folder: Path) -> Results:
    """The results in a folder of one experiment, if they are whole and make sense."""
    path = folder / FILE
    if not path.is_file():
        raise ExperimentError(
            f"{path}: no results; make them with: python -m reproduction run --out {folder.parent}"
        )
    content = whole_files.read(path, _MOST_BYTES, ExperimentError)
    try:
        found = json.loads(content, parse_constant=_refuse)
    except (ValueError, RecursionError):
        raise ExperimentError(f"{path}: not JSON; it is damaged, delete it") from None
    _check(path, found)
    return Results(
        found["experiment"],
        found["kind"],
        found["quick"],
        found["parameters"],
        found["software"],
        found["machine"],
        found["graphs"],
        tuple(found["rows"]),
        tuple(found["left_out"]),
    )


def load_all(folder: Path) -> dict[str, Results]:
    """The results of every experiment below a folder, in the order of :data:`EXPERIMENTS`."""
    if not folder.is_dir():
        raise ExperimentError(f"{folder}: no such folder")
    found = {name: load(folder / name) for name in EXPERIMENTS if (folder / name / FILE).is_file()}
    if not found:
        raise ExperimentError(
            f"{folder}: no results; make them with: python -m reproduction run --out {folder}"
        )
    return found


def rows_key(row: Row) -> tuple[Any, ...]:
    """What tells one utility row from all others."""
    return tuple(row[key] for key in UTILITY_KEYS)


def _refuse(constant: str) -> float:
    raise ValueError(constant)


def _check(path: Path, found: object) -> None:
    """Refuse what is not results: the one place that knows how a file must look."""
    if not isinstance(found, dict) or not str(found.get("format")).startswith("silograph-exp"):
        raise ExperimentError(f"{path}: not the results of an experiment")
    if found["format"] != FORMAT:
        raise ExperimentError(f"{path}: format {found['format']!r}; this Silograph reads {FORMAT}")
    shapes = {
        "experiment": str, "kind": str, "quick": bool, "parameters": dict, "software": dict,
        "machine": dict, "graphs": dict, "rows": list, "left_out": list,
    }  # fmt: skip
    for key, shape in shapes.items():
        if not isinstance(found.get(key), shape):
            raise ExperimentError(f"{path}: {key!r} is missing or not a {shape.__name__}")
    if found["kind"] not in KINDS:
        raise ExperimentError(f"{path}: kind {found['kind']!r} is not one of {', '.join(KINDS)}")
    if found["experiment"] != path.parent.name:
        raise ExperimentError(
            f"{path}: these are results of {found['experiment']!r}, in a folder of another name"
        )
    for name, graph in found["graphs"].items():
        if not isinstance(graph, dict) or not _natural(graph.get("nodes", 0)):
            raise ExperimentError(f"{path}: graph {name!r} is not an object with its nodes")
    _check_rows(path, found)


def _check_rows(path: Path, found: Mapping[str, Any]) -> None:
    utility = found["kind"] == "utility"
    timed = _CURVE_KEYS if found["experiment"] == "curves" else _TIME_KEYS
    for number, row in enumerate(found["rows"], 1):
        keys = (*UTILITY_KEYS, *_MEASURED, "seeds", "values") if utility else timed
        _check_keys(f"{path}: row {number}", row, keys, found["experiment"])
        if utility:
            _check_measured(f"{path}: row {number}", row)
    for number, row in enumerate(found["left_out"], 1):
        keys = (*UTILITY_KEYS, "reason") if utility else ("experiment", "reason")
        _check_keys(f"{path}: left out, entry {number}", row, keys, found["experiment"])
    if utility:
        seen = [rows_key(row) for row in (*found["rows"], *found["left_out"])]
        if len(set(seen)) != len(seen):
            raise ExperimentError(f"{path}: a combination occurs twice")


def _check_keys(where: str, row: object, keys: Sequence[str], experiment: str) -> None:
    if not isinstance(row, dict):
        raise ExperimentError(f"{where} is not an object")
    missing = [key for key in keys if key not in row]
    if missing:
        raise ExperimentError(f"{where} lacks {', '.join(missing)}")
    if row["experiment"] != experiment:
        raise ExperimentError(f"{where} is of experiment {row['experiment']!r}")
    for key, value in row.items():
        if key in _NAMED:
            right, due = value in _NAMED[key], f"one of {', '.join(_NAMED[key])}"
        elif key in _TEXTS:
            right, due = isinstance(value, str), "a text"
        elif key in _WHOLE:
            right, due = _natural(value), "an integer from 0 up"
        elif key == "scaled":
            right, due = isinstance(value, bool), "true or false"
        elif key in ("seeds", "values"):
            right, due = isinstance(value, list), "a list"
        else:
            right, due = _finite(value), "a finite number"
        if not right:
            raise ExperimentError(f"{where}: {key} must be {due}, not {reprlib.repr(value)}")


def _check_measured(where: str, row: Mapping[str, Any]) -> None:
    values, seeds = row["values"], row["seeds"]
    if not isinstance(values, list) or not isinstance(seeds, list) or len(values) != len(seeds):
        raise ExperimentError(f"{where}: there must be one seed for every value")
    numbers = [*values, *(row[key] for key in _MEASURED)]
    if not values or not all(_finite(number) for number in numbers):
        raise ExperimentError(f"{where}: a value or an error of it is no finite number")


def _finite(number: object) -> bool:
    if isinstance(number, bool) or not isinstance(number, int | float):
        return False
    return -_LARGEST <= number <= _LARGEST


def _natural(number: object) -> bool:
    return type(number) is int and 0 <= number <= _LARGEST
