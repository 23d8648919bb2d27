"""Parameters as data: what is shipped is sound, and what is not is refused by name."""

import tomllib
from pathlib import Path
from typing import Any

import pytest

from reproduction.definitions import ALIASES, named, read_definition
from reproduction.results import EXPERIMENTS
from silograph.errors import ExperimentError

PLAIN = """
title = "A title"
paper = "Figure 0"
kind = "utility"
varies = "epsilon"
graphs = ["generated"]
queries = ["triangles"]
methods = ["feat mended"]
values = [1, 2]
epsilon = 3
rho = 0.3
sigma = 0.2
silos = 4
collusion = 1
delta = 0
repetitions = 2
seed = 5

[quick]
values = [1]
"""


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_what_is_shipped(name: str) -> None:
    full, quick = read_definition(name), read_definition(name, quick=True)
    assert {graph.name for graph in quick.graphs} <= {"generated"}
    for one in (full, quick):
        assert tomllib.loads(one.to_toml().decode()) == dict(one.parameters)
        assert "quick" not in one.parameters
    if full.kind == "utility":
        assert full.parameters["repetitions"] == 10
        assert len(quick.points()) <= len(full.points())


def test_the_paper_is_covered() -> None:
    epsilon = read_definition("epsilon")
    assert [point["epsilon"] for point in epsilon.points()] == [1, 2, 3, 4, 5, 6]
    assert epsilon.parameters["graphs"] == ["facebook", "wiki-vote"]
    assert [point["rho"] for point in read_definition("rho").points()] == [0.1, 0.2, 0.3, 0.4, 0.5]
    assert [p["sigma"] for p in read_definition("sigma").points()] == [0, 0.1, 0.2, 0.3, 0.4]
    seeds = [read_definition(name).seed for name in EXPERIMENTS if name not in ("time", "curves")]
    assert len(set(seeds)) == len(seeds)


def test_points() -> None:
    silos = read_definition("silos").points()
    assert [(point["silos"], point["rho"]) for point in silos] == [
        (2, 0.6), (4, 0.3), (8, 0.15), (16, 0.075), (32, 0.0375),
    ]  # fmt: skip
    communities = read_definition("communities").points()
    assert [(point["silos"], point["epsilon"]) for point in communities] == [
        (m, epsilon) for m in (2, 4) for epsilon in (1, 2, 3, 4, 5, 6)
    ]


def test_names() -> None:
    assert [named(name) for name in EXPERIMENTS] == list(EXPERIMENTS)
    assert {named(alias.upper()) for alias in ALIASES} == {"epsilon", "rho", "sigma", "curves"}
    assert named("fig:sample-mse") == "rho"
    with pytest.raises(ExperimentError, match="no experiment or figure 'fig 7'"):
        named("fig 7")


BAD: dict[str, tuple[str, str, str]] = {
    "key missing": ("seed = 5", "", "seed missing"),
    "key unknown": ("seed = 5", "seed = 5\nsead = 6", "unknown sead"),
    "kind": ('"utility"', '"useful"', "kind must be one of"),
    "graph": ('["generated"]', '["karate"]', "karate"),
    "no graph": ('["generated"]', "[]", "graphs must be a list of names"),
    "method": ('["feat mended"]', '["feat"]', "are none of"),
    "method twice": ('["feat mended"]', '["feat mended", "feat mended"]', "occurs twice"),
    "query": ('["triangles"]', '["squares"]', "squares"),
    "axis": ('varies = "epsilon"', 'varies = "delta"', "varies must be one of"),
    "no values": ("values = [1, 2]", "values = []", "values must be a list"),
    "value": ("values = [1, 2]", "values = [1, -2]", "epsilon cannot be -2"),
    "bool": ("values = [1, 2]", "values = [true]", "epsilon cannot be True"),
    "rho": ("rho = 0.3", 'rho = "some"', "rho cannot be 'some'"),
    "silos": ("silos = 4", "silos = [4, 1]", "silos cannot be 1"),
    "collusion": ("collusion = 1", "collusion = 0.5", "collusion cannot be 0.5"),
    "repetitions": ("repetitions = 2", "repetitions = 0", "repetitions must be"),
    "seed": ("seed = 5", "seed = -1", "seed must be"),
    "delta": ("delta = 0", "delta = 1", "delta must be"),
    "split": ("seed = 5", 'seed = 5\nsplit = "halves"', "split must be one of"),
    "left out": (
        "[quick]", '[[left_out]]\ngraphs = ["generated"]\nreason = "x"\n[quick]', "left_out 1 needs"
    ),
    "override": ("values = [1]", "vallues = [1]", "overrides vallues"),
    "not TOML": ("seed = 5", "seed = ", "not TOML"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_refusals(name: str, tmp_path: Path) -> None:
    old, new, message = BAD[name]
    assert old in PLAIN
    read = lambda: read_definition("epsilon", folder=tmp_path)  # noqa: E731
    with pytest.raises(ExperimentError, match="no such file"):
        read()
    (tmp_path / "epsilon.toml").write_text(PLAIN)
    assert read().parameters["values"] == [1, 2]
    (tmp_path / "epsilon.toml").write_text(PLAIN.replace(old, new))
    with pytest.raises(ExperimentError, match=message) as caught:
        read()
    assert "epsilon.toml" in str(caught.value)


def test_reasons() -> None:
    graphs = read_definition("graphs")
    asked: list[tuple[tuple[str, str, str], Any]] = [
        (("email-enron", "baseline mended", "2-stars"), "4 GB"),
        (("email-enron", "feat+ mended", "triangles"), "minute a draw"),
    ]
    for combination, part in asked:
        assert part in graphs.reason(*combination)
    assert graphs.reason("ca-hepph", "feat+ mended", "triangles") == ""
    assert graphs.reason("email-enron", "feat+ mended", "2-stars") == ""
