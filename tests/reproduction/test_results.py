"""Results files: whole, read back as they were, refused where they make no sense."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from reproduction.results import FILE, Results, load, load_all, save
from silograph.errors import ExperimentError

ROW: dict[str, Any] = {
    "experiment": "epsilon", "graph": "generated", "query": "triangles", "method": "feat",
    "form": "mended", "variant": "", "epsilon": 1.0, "delta": 0.0, "rho": 0.3, "sigma": 0.2,
    "silos": 4, "collusion": 1, "truth": 10, "seeds": [1, 2], "values": [9.5, 11.0], "mse": 0.625,
    "mre": 0.075, "mse_spread": 0.1, "mre_spread": 0.0,
}  # fmt: skip
KEYS = ("truth", "seeds", "values", "mse", "mre", "mse_spread", "mre_spread")
LEFT = {key: value for key, value in ROW.items() if key not in KEYS}
FOUND = Results(
    "epsilon", "utility", True, {"title": "ε"}, {"silograph": "1"}, {"cores": 2},
    {"generated": {"nodes": 4, "edges": 3, "source": "generated"}}, (ROW,),
    ({**LEFT, "method": "feat+", "reason": "too slow"},),
)  # fmt: skip


def test_what_is_saved_is_loaded(tmp_path: Path) -> None:
    (tmp_path / "epsilon").mkdir()
    path = save(FOUND, tmp_path / "epsilon")
    first = path.read_bytes()
    assert load(tmp_path / "epsilon") == FOUND
    assert load_all(tmp_path) == {"epsilon": FOUND}
    save(load(tmp_path / "epsilon"), tmp_path / "epsilon")
    assert path.read_bytes() == first
    assert len(first.splitlines()) == 16  # a row is a line


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "another format": ({"format": "silograph-experiment 9"}, "this Silograph reads"),
    "foreign": ({"format": "something"}, "not the results"),
    "another kind": ({"kind": "nonsense"}, "is not one of"),
    "another folder": ({"experiment": "rho"}, "folder of another name"),
    "no rows": ({"rows": None}, "'rows' is missing"),
    "row lacks a key": ({"rows": [{**LEFT, "truth": 1}]}, "row 1 lacks mse"),
    "row of another": ({"rows": [{**ROW, "experiment": "rho"}]}, "of experiment 'rho'"),
    "not flat": ({"rows": [{**ROW, "note": {}}]}, "note must be a text, not {}"),
    "a list for a name": ({"rows": [{**ROW, "graph": [1]}]}, "graph must be a text"),
    "a text for a number": ({"rows": [{**ROW, "epsilon": "3"}]}, "epsilon must be a finite number"),
    "no method": ({"rows": [{**ROW, "method": "magic"}]}, "method must be one of baseline, feat"),
    "no form": (
        {"rows": [{**ROW, "form": []}]},
        "form must be one of printed, meant, mended, limit",
    ),
    "half a silo": ({"rows": [{**ROW, "silos": 3.5}]}, "silos must be an integer from 0 up"),
    "true for a number": ({"rows": [{**ROW, "silos": True}]}, "silos must be an integer"),
    "beyond a figure": ({"rows": [{**ROW, "mse": 1e308}]}, "mse must be a finite number"),
    "left out, a list": ({"left_out": [{**LEFT, "reason": []}]}, "reason must be a text"),
    "a graph of text": ({"graphs": {"toy": "nodes"}}, "graph 'toy' is not an object"),
    "a seed too few": ({"rows": [{**ROW, "seeds": [1]}]}, "one seed for every value"),
    "no number": ({"rows": [{**ROW, "mse": "1"}]}, "mse must be a finite number"),
    "twice": ({"rows": [ROW, ROW]}, "occurs twice"),
    "row and reason": ({"left_out": [{**LEFT, "reason": "no"}]}, "occurs twice"),
    "no reason": ({"left_out": [LEFT]}, "lacks reason"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_makes_no_sense_is_refused(name: str, tmp_path: Path) -> None:
    change, message = BAD[name]
    content = {**json.loads(FOUND.to_bytes()), **change}
    folder = tmp_path / "epsilon"
    folder.mkdir()
    (folder / FILE).write_text(json.dumps(content))
    with pytest.raises(ExperimentError, match=message):
        load(folder)


def test_damaged_absent_or_infinite(tmp_path: Path) -> None:
    folder = tmp_path / "epsilon"
    with pytest.raises(ExperimentError, match="python -m reproduction run --out"):
        load(folder)
    with pytest.raises(ExperimentError, match="python -m reproduction run --out"):
        load_all(tmp_path)
    folder.mkdir()
    for content in (
        FOUND.to_bytes()[:-40],
        FOUND.to_bytes().replace(b"0.625", b"NaN"),
        b"[" * 9999,
    ):
        (folder / FILE).write_bytes(content)
        with pytest.raises(ExperimentError, match="not JSON"):
            load(folder)
    (folder / FILE).unlink()
    with pytest.raises(ExperimentError, match="cannot be written"):
        save(replace(FOUND, rows=({**ROW, "mse": float("inf")},)), folder)
    assert list(folder.iterdir()) == []
