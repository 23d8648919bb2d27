"""The README's Python runs as it stands."""

import re
from pathlib import Path

import pytest

import silograph as sg

README = Path(__file__).parents[1] / "README.md"


def test_the_example(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    graph = sg.clustered_power_law(60, edges_per_node=4, seed=1)
    graph.universe.save("nodes.txt")
    for name, silo in zip("abc", sg.split(graph, 3, rate=0.4), strict=True):
        rows = "\n".join(f"{u},{v}" for u, v in silo.pairs)
        Path(f"{name}.csv").write_text(f"source,target\n{rows}\n")
    (code,) = re.findall(r"```python\n(.*?)```", README.read_text(), flags=re.S)
    exec(code, {})  # noqa: S102 - our own README
    printed = capsys.readouterr().out
    assert "triangles = " in printed
    assert "kstars(k=3) = " in printed
    assert sg.Release.load("graph.release").n == 60
