"""The committed results are what the committed code and parameters give."""

from dataclasses import replace
from pathlib import Path

import pytest

from reproduction import results
from reproduction.definitions import EXPERIMENTS, read_definition
from reproduction.draws import LABELS, series_of
from reproduction.tasks import run_task, tasks_of

FOLDER = Path(__file__).parents[2] / "experiments"


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_parameters(name: str) -> None:
    found, definition = results.load(FOLDER / name), read_definition(name)
    assert not found.quick
    assert dict(found.parameters) == dict(definition.parameters)
    assert (FOLDER / name / "experiment.toml").read_bytes() == definition.to_toml()


@pytest.mark.parametrize("label", LABELS)
def test_first_draws(label: str, data_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Facebook at ε = 3, dealt at random: the first repetition of every method."""
    monkeypatch.setenv("SILOGRAPH_DATA", str(data_folder))
    rows = {
        (row["method"], row["form"], row["variant"], row["query"]): row
        for row in results.load(FOLDER / "epsilon").rows
        if (row["graph"], row["epsilon"]) == ("facebook", 3)
    }
    definition = read_definition("epsilon")
    nodes = {"facebook": 4039, "wiki-vote": 7115}
    (task,) = (
        task
        for task in tasks_of(definition, nodes)
        if task.label == label
        and task.asked is not None
        and task.asked.epsilon == 3
        and task.asked.dealt.graph.name == "facebook"
    )
    found = run_task(replace(task, seeds=task.seeds[:1]))["values"]
    for query in task.queries:
        for series in series_of(label, query):
            row = rows[series.method, series.form, series.variant, query]
            assert row["seeds"][0] == task.seeds[0]
            # Another machine's logarithm may differ in its last bit.
            assert found[query][series.variant] == pytest.approx(row["values"][:1], rel=1e-12)
