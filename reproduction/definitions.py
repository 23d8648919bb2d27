"""Experiments as data: one TOML file each, checked before anything is run.

The files are part of the package (``parameters/<name>.toml``); a folder of one's own may take their
place. A table ``[quick]`` overrides what a run of seconds, without any data file, needs otherwise.
"""

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from importlib import resources
from itertools import product
from pathlib import Path
from typing import Any

from reproduction.draws import LABELS, QUERIES
from reproduction.federations import GENERATED, GRAPHS, SPLITS, Graph
from reproduction.results import EXPERIMENTS, KINDS
from silograph import whole_files
from silograph.errors import ExperimentError

__all__ = ["ALIASES", "Definition", "named", "read_definition"]

#: The paper's own names of its figures and tables, and what they are called here.
ALIASES = {
    "2star mse": "epsilon",
    "2star mre": "epsilon",
    "triangle mse": "epsilon",
    "triangle mre": "epsilon",
    "sample mse": "rho",
    "sample mre": "rho",
    "overlap mse": "sigma",
    "overlap mre": "sigma",
    "ecc": "curves",
    "table 2": "curves",
}
#: What a point of a utility experiment consists of, beside its graph.
AXES = ("epsilon", "rho", "sigma", "silos", "collusion")
#: The rate at which the union of the silos is the whole graph, each edge as few times as may be.
WHOLE = "whole"
_TEXTS = ("title", "paper", "kind")
_UTILITY = {
    *_TEXTS, *AXES, "varies", "graphs", "queries", "methods", "values", "delta", "repetitions",
    "seed",
}  # fmt: skip
_OPTIONAL = {"split", "owned", "generated_nodes", "generated_edges_per_node", "left_out"}
_LEFT_OUT = {"graphs", "methods", "queries", "reason"}
_MOST_BYTES = 1 << 20


@dataclass(frozen=True)
class Definition:
    """One experiment as it is to be run."""

    name: str
    quick: bool
    #: What the file says, with the overrides of a quick run taken in.
    parameters: Mapping[str, Any]

    @property
    def kind(self) -> str:
        """``utility`` or ``timing``."""
        return str(self.parameters["kind"])

    @property
    def title(self) -> str:
        """A line for people."""
        return str(self.parameters["title"])

    @property
    def seed(self) -> int:
        """The written seed that all others follow from; 0 where nothing is drawn from seeds."""
        return int(self.parameters.get("seed", 0))

    def graph(self, name: str) -> Graph:
        """A graph of the experiment by name."""
        if name != GENERATED:
            return Graph(name)
        nodes = int(self.parameters.get("generated_nodes", 400))
        return Graph(name, nodes, int(self.parameters.get("generated_edges_per_node", 8)), 1)

    @property
    def graphs(self) -> tuple[Graph, ...]:
        """All its graphs."""
        return tuple(self.graph(name) for name in self.parameters["graphs"])

    def points(self) -> list[dict[str, Any]]:
        """Every combination of the axes; numbers as they stand in rows."""
        varies = self.parameters["varies"]
        given = {axis: _several(self.parameters[axis]) for axis in AXES if axis != varies}
        # The axis that varies moves fastest, so that rows of one curve follow each other.
        given[varies] = list(self.parameters["values"])
        found = (dict(zip(given, values, strict=True)) for values in product(*given.values()))
        return [_numbers(point) for point in found]

    def reason(self, graph: str, method: str, query: str) -> str:
        """Why the parameters leave a combination out; empty where they do not."""
        for entry in self.parameters.get("left_out", ()):
            sides = (("graphs", graph), ("methods", method), ("queries", query))
            if all(value in entry[side] for side, value in sides):
                return str(entry["reason"])
        return ""

    def to_toml(self) -> bytes:
        """The parameters as a file."""
        lines = [f"# {self.name}, as it was run" + (" (quick)" if self.quick else "")]
        tables = []
        for key, value in self.parameters.items():
            if key == "left_out":
                for entry in value:
                    tables += ["", "[[left_out]]"]
                    tables += [f"{name} = {_toml(entry[name])}" for name in entry]
            else:
                lines.append(f"{key} = {_toml(value)}")
        return ("\n".join([*lines, *tables]) + "\n").encode()


def named(name: str) -> str:
    """The experiment that a name or an alias stands for.

    >>> named("Triangle MSE"), named("small-epsilon")
    ('epsilon', 'small-epsilon')
    """
    plain = name.strip().lower().removeprefix("fig:")
    found = ALIASES.get(plain.replace("-", " "), plain)
    if found not in EXPERIMENTS:
        known = ", ".join((*EXPERIMENTS, *ALIASES))
        raise ExperimentError(f"no experiment or figure {name!r}; there are {known}")
    return found


def read_definition(name: str, *, quick: bool = False, folder: Path | None = None) -> Definition:
    """An experiment from the package, or from a folder of one's own."""
    file = f"{name}.toml"
    if folder is None:
        content = (resources.files("reproduction") / "parameters" / file).read_bytes()
        where = Path(file)
    else:
        where = folder / file
        if not where.is_file():
            raise ExperimentError(f"{where}: no such file; it has the parameters of {name}")
        content = whole_files.read(where, _MOST_BYTES, ExperimentError)
    found = whole_files.parse_toml(where, content, ExperimentError)
    overrides = found.pop("quick", {})
    if not isinstance(overrides, dict):
        raise ExperimentError(f"{where}: quick must be a table of overrides")
    _check_overrides(where, found, overrides)
    made = Definition(name, quick, {**found, **overrides} if quick else found)
    _check(where, made.parameters)
    return made


def _check_overrides(where: Path, found: Mapping[str, Any], overrides: Mapping[str, Any]) -> None:
    if strange := set(overrides) - set(found) - _OPTIONAL:
        raise ExperimentError(f"{where}: [quick] overrides {_list(strange)}, which is not there")


def _check(where: Path, given: Mapping[str, Any]) -> None:
    for key in (*_TEXTS, "graphs"):
        if key not in given:
            raise ExperimentError(f"{where}: {key} is missing")
    for key in _TEXTS:
        _need(where, isinstance(given[key], str), f"{key} must be a text")
    kind = given["kind"]
    _need(where, kind in KINDS, f"kind must be one of {', '.join(KINDS)}, not {kind!r}")
    _names(where, given, "graphs", GRAPHS, empty=kind == "timing")
    if kind == "timing":
        return
    if missing := _UTILITY - set(given):
        raise ExperimentError(f"{where}: {_list(missing)} missing")
    if strange := set(given) - _UTILITY - _OPTIONAL:
        raise ExperimentError(f"{where}: unknown {_list(strange)}")
    _names(where, given, "queries", QUERIES)
    _names(where, given, "methods", LABELS)
    _need(where, given["varies"] in AXES, f"varies must be one of {', '.join(AXES)}")
    _need(where, isinstance(given["values"], list) and given["values"], "values must be a list")
    _check_numbers(where, given)
    split = given.get("split", "random")
    _need(where, split in SPLITS, f"split must be one of {', '.join(SPLITS)}, not {split!r}")
    for number, entry in enumerate(given.get("left_out", ()), 1):
        _need(where, set(entry) == _LEFT_OUT, f"left_out {number} needs {_list(_LEFT_OUT)}")
        reason = entry["reason"]
        _need(where, isinstance(reason, str) and reason, f"left_out {number} needs a reason")


def _check_numbers(where: Path, given: Mapping[str, Any]) -> None:
    for axis in AXES:
        values = [*_several(given[axis]), *(given["values"] if given["varies"] == axis else ())]
        for value in values:
            _need(where, _fits(axis, value), f"{axis} cannot be {value!r}")
    for key in ("repetitions", "generated_nodes", "generated_edges_per_node"):
        value = given.get(key, 1)
        _need(where, _whole(value) and value >= 1, f"{key} must be an integer from 1 up")
    _need(where, _whole(given["seed"]) and given["seed"] >= 0, "seed must be an integer from 0 up")
    _need(where, _number(given["delta"]) and 0 <= given["delta"] < 1, "delta must be in [0, 1)")
    owned = given.get("owned", 0.5)
    _need(where, _number(owned) and 0 < owned <= 1, "owned must be above 0 and at most 1")


def _fits(axis: str, value: object) -> bool:
    match axis:
        case "epsilon":
            return _number(value) and 0 < value <= 64  # type: ignore[operator]
        case "rho" if value == WHOLE:
            return True
        case "rho" | "sigma":
            return _number(value) and 0 <= value <= 1  # type: ignore[operator]
        case "silos":
            return _whole(value) and 2 <= value <= 64  # type: ignore[operator]
    return _whole(value) and 0 <= value < 64  # type: ignore[operator]


def _number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _names(
    where: Path, given: Mapping[str, Any], key: str, known: Iterable[str], *, empty: bool = False
) -> None:
    values, every = given[key], list(known)
    _need(where, isinstance(values, list) and (values or empty), f"{key} must be a list of names")
    strange = [value for value in values if value not in every]
    _need(where, not strange, f"{key}: {strange} are none of {', '.join(every)}")
    _need(where, len(set(values)) == len(values), f"{key}: a name occurs twice")


def _need(where: Path, condition: object, what: str) -> None:
    if not condition:
        raise ExperimentError(f"{where}: {what}")


def _list(names: Iterable[str]) -> str:
    return ", ".join(sorted(names))


def _several(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list) else [value]


def _numbers(point: dict[str, Any]) -> dict[str, Any]:
    """The point with its rate as a number, and numbers of one type whatever was written."""
    sigma = Fraction(repr(float(point["sigma"])))
    rho = (1 + sigma) / point["silos"] if point["rho"] == WHOLE else point["rho"]
    return {
        "epsilon": float(point["epsilon"]),
        "rho": float(rho),
        "sigma": float(sigma),
        "silos": int(point["silos"]),
        "collusion": int(point["collusion"]),
    }


def _toml(value: Any) -> str:
    if isinstance(value, str):
        return whole_files.quoted(value)
    if isinstance(value, list):
        return "[" + ", ".join(_toml(entry) for entry in value) + "]"
    return json.dumps(value)
