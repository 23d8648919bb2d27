"""The notebooks in ``examples/``, run as Jupyter would run them, without Jupyter.

Their cells are plain Python. What a cell prints is its output, and the value of its last line is
shown as text and as HTML. A kernel would add thirty packages to the lock, and no more than this.

``python -m tests.docs.notebooks`` runs them and writes what came out into the files.
"""

import ast
import contextlib
import io
import json
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.docs.readers import ROOT

__all__ = ["NOTEBOOKS", "cells", "run"]

NOTEBOOKS = sorted((ROOT / "examples").glob("*.ipynb"))


def cells(path: Path) -> list[dict[str, Any]]:
    """The cells of a notebook, in order."""
    found: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return found


def run(path: Path) -> Iterator[tuple[dict[str, Any], list[dict[str, Any]]]]:
    """Every cell of code, and the outputs that it has now; in the current folder."""
    names: dict[str, Any] = {"__name__": "__main__"}
    for cell in cells(path):
        if cell["cell_type"] == "code":
            yield cell, _outputs("".join(cell["source"]), str(path), names)


def _outputs(source: str, name: str, names: dict[str, Any]) -> list[dict[str, Any]]:
    tree = ast.parse(source, name)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    value = None
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(tree, name, "exec"), names)  # noqa: S102 - our own notebooks
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), name, "eval"), names)  # noqa: S307
    found: list[dict[str, Any]] = []
    if printed.getvalue():
        found.append({"name": "stdout", "output_type": "stream", "text": _lines(printed)})
    if value is not None:
        shown = {"text/plain": str(value), "text/html": value._repr_html_()}
        found.append(
            {
                "data": {kind: _lines(io.StringIO(text)) for kind, text in shown.items()},
                "execution_count": None,
                "metadata": {},
                "output_type": "execute_result",
            }
        )
    return found


def _lines(text: io.StringIO) -> list[str]:
    return text.getvalue().splitlines(keepends=True)


def main() -> None:
    """Write the outputs of all notebooks anew."""
    for path in NOTEBOOKS:
        whole = json.loads(path.read_text(encoding="utf-8"))
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            made = {cell["id"]: outputs for cell, outputs in run(path)}
        for number, cell in enumerate(c for c in whole["cells"] if c["cell_type"] == "code"):
            cell["outputs"] = made[cell["id"]]
            cell["execution_count"] = number + 1
            for output in cell["outputs"]:
                if "execution_count" in output:
                    output["execution_count"] = number + 1
        text = json.dumps(whole, indent=1, ensure_ascii=False)
        path.write_text(f"{text}\n", encoding="utf-8")
        sys.stdout.write(f"{os.fspath(path.relative_to(ROOT))}\n")


if __name__ == "__main__":
    main()
