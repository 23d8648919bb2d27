"""Tables of answers: ids, CSV, data frames, and what a terminal shows."""

import csv
import io
import itertools

import numpy as np
import pytest

from silograph import Channel, Estimate, NodeUniverse, Release, Silo, clustered_power_law
from silograph.errors import ArgumentError
from silograph.estimators.tables import Table

UNIVERSE = NodeUniverse([f"acct-{i}" for i in range(40)])
GRAPH = Silo.from_edges(UNIVERSE, np.array(UNIVERSE.ids)[clustered_power_law(40, seed=1).pairs])
RELEASE = Release.draw(GRAPH, Channel.symmetric(3.0), seed=1)
GROUPS = {id_: "north" if place < 15 else "south" for place, id_ in enumerate(UNIVERSE.ids)}


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_vectors_have_ids() -> None:
    answer = RELEASE.degrees()
    found = rows(answer.table().to_csv())
    assert [row["node"] for row in found] == list(UNIVERSE.ids)
    assert [float(row["value"]) for row in found] == answer.value.tolist()
    low, high = answer.interval
    assert [float(row["low"]) for row in found] == low.tolist()
    assert [float(row["high"]) for row in found] == high.tolist()
    assert "acct-0" in str(answer)
    assert "acct-0" in answer._repr_html_()


def test_without_a_node_list_positions_stand_for_ids() -> None:
    plain = Release(*(getattr(RELEASE, name) for name in (
        "graph", "channel", "universe_digest", "provenance", "views", "losses"
    )))  # fmt: skip
    assert rows(plain.degrees().table().to_csv())[3]["node"] == "3"


def test_one_answer_is_a_table_of_one_row() -> None:
    found = rows(RELEASE.kstars(2).table().to_csv())
    assert [row["answer"] for row in found] == ["kstars(k=2)"]
    assert float(found[0]["stderr"]) == RELEASE.kstars(2).stderr


def test_a_matrix_is_a_list_of_pairs() -> None:
    found = rows(RELEASE.mixing(GROUPS).table().to_csv())
    names = [(row["group"], row["with"]) for row in found]
    assert names == list(itertools.combinations_with_replacement(("north", "south"), 2))
    assert sum(float(row["value"]) for row in found) == pytest.approx(RELEASE.edges().value)
    assert sum(int(row["pairs"]) for row in found) == 40 * 39 // 2


def test_data_frames() -> None:
    answer = RELEASE.degrees()
    for frame in (answer.to_pandas(), answer.to_polars()):
        assert list(frame.columns) == ["node", "value", "stderr", "low", "high"]
        assert frame["value"].to_numpy() == pytest.approx(answer.value)
        assert list(frame["node"]) == list(UNIVERSE.ids)
    assert len(RELEASE.edges().to_pandas()) == 1


def test_a_histogram_is_drawn() -> None:
    text = str(RELEASE.degree_histogram([0, 2, 4, 8, 40]).table())
    lines = text.splitlines()
    assert [line.split()[0] for line in lines[1:]] == ["0–1", "2–3", "4–7", "8–39"]
    assert "█" in text
    values = RELEASE.degree_histogram([0, 2, 4, 8, 40]).value
    longest = max(lines, key=lambda line: line.count("█"))
    assert lines.index(longest) == 1 + int(np.argmax(values))
    assert max(map(len, lines)) < 80


def test_long_tables_are_cut_in_the_terminal_alone() -> None:
    lines = str(RELEASE.degrees().table()).splitlines()
    assert len(lines) == 22
    assert lines[-1] == "  … and 20 more"
    assert len(rows(RELEASE.degrees().table().to_csv())) == 40


def test_what_is_no_number() -> None:
    made = Table("x", "node", {"node": ["a"], "value": [float("nan")], "high": [float("inf")]})
    assert made.to_csv() == "node,value,high\na,,inf\n"
    assert "–" in str(made)
    assert "∞" in str(made)


def test_one_entry() -> None:
    answer = RELEASE.degrees()
    one = answer.at("acct-7")
    assert one.value == answer.value[7]
    assert one.interval == tuple(float(end[7]) for end in answer.interval)
    assert one.name == "degrees(node=acct-7)"
    matrix = RELEASE.mixing(GROUPS)
    assert matrix.at("south", "north").value == matrix.value[0, 1]
    assert RELEASE.triangles_by(GROUPS).at("between groups").value > 0
    with pytest.raises(ArgumentError, match="there is no node x"):
        answer.at("x")
    with pytest.raises(ArgumentError, match="by group and with"):
        matrix.at("south")
    with pytest.raises(ArgumentError, match="nothing to choose"):
        RELEASE.edges().at(1)


def test_numbers_of_a_column_have_the_same_digits() -> None:
    made = Estimate("x", np.array([1234.5, 0.001, -3.0]), np.zeros(3), epsilon=1.0)
    lines = str(made.table()).splitlines()
    assert [line.split()[1] for line in lines[1:]] == ["1,234", "0", "−3"]
