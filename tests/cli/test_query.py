"""Questions to a release: groups, subsets, tables and pages, and comparisons in time."""

import csv
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from silograph import Channel, NodeUniverse, Provenance, Release, Silo, clustered_power_law
from tests.cli.test_local_runs import run

__all__ = ["run"]

IDS = [f"acct{i:02}" for i in range(40)]
UNIVERSE = NodeUniverse(IDS)
EDGES = [(IDS[u], IDS[v]) for u, v in clustered_power_law(40, 4, seed=1).pairs.tolist()]
RELEASE = Release.draw(Silo.from_edges(UNIVERSE, EDGES), Channel.symmetric(3.0), seed=1)
GROUPS = {id_: "north" if i < 15 else "south" for i, id_ in enumerate(IDS)}


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    RELEASE.save("g.release")
    UNIVERSE.save("nodes.txt")
    lines = [f"{id_},{group}\n" for id_, group in GROUPS.items()]
    Path("groups.csv").write_text("account,region\n" + "".join(lines))
    Path("bare.csv").write_text("".join(reversed(lines)))
    Path("some.csv").write_text("".join(lines[:10]))
    Path("some.txt").write_text("\n".join(IDS[:20]))


def rows(path: str) -> list[dict[str, str]]:
    with Path(path).open() as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize(
    "query", ["mixing", "degrees_by", "triangles_by", "assortativity", "modularity"]
)
def test_groups(run: Any, query: str) -> None:
    said = run(f"query g.release {query} --groups groups.csv --nodes nodes.txt --csv out.csv")
    assert (said.code, said.err) == (0, "")
    answer = getattr(RELEASE, query)(GROUPS)
    assert said.out == f"{answer}\n"
    assert max(map(len, said.out.splitlines())) <= 80
    assert Path("out.csv").read_text() == answer.table().to_csv()
    # A file that names every node is the node list, too: here sorted by id.
    again = run(f"query g.release {query} --groups bare.csv --json").json
    assert (
        again == run(f"query g.release {query} --groups groups.csv --nodes nodes.txt --json").json
    )


def test_a_rest_and_a_subset(run: Any) -> None:
    said = run("query g.release mixing --groups some.csv --rest other --nodes nodes.txt --json")
    some = {id_: GROUPS[id_] for id_ in IDS[:10]}
    assert said.json["value"] == RELEASE.mixing(some, rest="other").value.tolist()
    part = RELEASE.subset(IDS[:20])
    said = run("query g.release triangles --subset some.txt --nodes nodes.txt --json").json
    assert said["value"] == part.triangles().value
    said = run(
        "query g.release mixing --groups groups.csv --subset some.txt --nodes nodes.txt --json"
    )
    assert said.json["value"] == part.mixing({i: GROUPS[i] for i in IDS[:20]}).value.tolist()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("mixing", "mixing needs --groups"),
        ("edges --groups groups.csv", "--groups is for mixing"),
        ("edges --rest x", "needs --groups"),
        ("mixing --groups groups.csv --k 2", "--k is for kstars"),
        ("mixing --groups some.csv", "give the list with --nodes"),
        ("mixing --groups some.csv --nodes nodes.txt", "30 of 40 nodes have no group"),
        ("edges --subset some.txt", "--subset needs --nodes"),
        ("mixing --groups absent.csv", "cannot be read"),
        ("edges --csv g.release", "is an input of this command"),
        ("squares", "unknown query"),
    ],
)
def test_what_is_refused(run: Any, options: str, said: str) -> None:
    asked = run(f"query g.release {options}")
    assert asked.code != 0
    assert said in asked.err


@pytest.mark.parametrize(
    "query",
    ["edges", "degrees", "degree_histogram", "kstars --k 2", "node_triangles", "local_clustering"],
)
def test_every_answer_is_a_table(run: Any, query: str) -> None:
    assert run(f"query g.release {query} --nodes nodes.txt --csv out.csv").code == 0
    found = rows("out.csv")
    assert {"value", "stderr", "low", "high"} <= set(found[0])
    if "node" in found[0]:
        assert [row["node"] for row in found] == IDS
    assert "is there already" in run(f"query g.release {query} --csv out.csv").err
    assert run(f"query g.release {query} --csv out.csv --force").code == 0


def test_pages(run: Any) -> None:
    assert run("query g.release mixing --groups bare.csv --html p.html").code == 0
    page = Path("p.html").read_text()
    assert "Edges within and between groups" in page
    assert "north – south" in page
    assert run("query g.release degree_correlation --html p.html --force").code == 0
    assert "Degree correlation" in Path("p.html").read_text()


def test_the_bins_are_drawn(run: Any) -> None:
    said = run("query g.release degree_histogram")
    assert "█" in said.out
    assert max(map(len, said.out.splitlines())) <= 80


def test_compare(run: Any) -> None:
    fewer = Silo.from_edges(UNIVERSE, EDGES[::2])
    later = Release.draw(fewer, Channel.symmetric(3.0), seed=2)
    replace(later, provenance=Provenance("feat", "clear", 1, run="ab" * 16)).save("later.release")
    said = run("compare g.release later.release --csv out.csv")
    assert said.code == 0
    assert "edges        has fallen" in said.out
    assert max(map(len, said.out.splitlines())) <= 80
    assert rows("out.csv")[0]["verdict"] == "has fallen"
    same = run("compare g.release g.release --json").json
    assert {row["verdict"] for row in same["changes"]} == {"the same"}
    assert all(row["change"] == 0 for row in same["changes"])
