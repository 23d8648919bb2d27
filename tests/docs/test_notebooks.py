"""The notebooks run, print what is stored in them, and are pages of the manual."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.docs.notebooks import NOTEBOOKS, cells, run
from tests.docs.printed import near_noise, same
from tests.docs.readers import ROOT


def told(outputs: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """The kinds of outputs and their texts."""
    found = []
    for output in outputs:
        texts = output.get("data", {"stream": output.get("text")})
        found += [(kind, "".join(lines)) for kind, lines in texts.items()]
    return found


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_prints_what_is_stored(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for cell, outputs in run(path):
        stored, printed = told(cell["outputs"]), told(outputs)
        where = f"{path.name}: {''.join(cell['source'])}"
        assert [kind for kind, _ in stored] == [kind for kind, _ in printed], where
        for (_, one), (_, other) in zip(stored, printed, strict=True):
            # Noise is new in every run; the words and the shape of an answer are not.
            assert same(one, other, numbers_vary=True), f"{where}\n{one}\n{other}"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_is_whole_and_in_the_manual(path: Path) -> None:
    """Every cell has run, once and in order; a page of the manual shows the notebook."""
    whole = json.loads(path.read_text())
    assert (whole["nbformat"], whole["nbformat_minor"]) == (4, 5)
    assert len({cell["id"] for cell in cells(path)}) == len(cells(path))
    counts = [c["execution_count"] for c in cells(path) if c["cell_type"] == "code"]
    assert counts == list(range(1, len(counts) + 1))
    texts = [text for cell in cells(path) for _, text in told(cell.get("outputs", []))]
    assert not [found for text in texts for found in near_noise(text)]
    page = ROOT / "docs" / "examples" / f"{path.stem}.md"
    assert f"../../examples/{path.name}" in page.read_text()
    assert f"examples/{path.stem}" in (ROOT / "docs" / "index.md").read_text()


def test_a_changed_output_is_found(tmp_path: Path) -> None:
    cell = {"cell_type": "code", "id": "a", "source": ["print('one')\n", "2"], "outputs": []}
    path = tmp_path / "n.ipynb"
    source = ["print('one')"]
    path.write_text(json.dumps({"cells": [{**cell, "source": source}]}))
    ((_, outputs),) = run(path)
    assert told(outputs) == [("stream", "one\n")]
    assert not same("two\n", told(outputs)[0][1], numbers_vary=True)
