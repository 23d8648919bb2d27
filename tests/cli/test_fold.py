"""``--fold`` and ``--hubs``: folded releases and counts of own files, and what is said."""

import os
from pathlib import Path
from typing import Any

import pytest

from silograph import FoldedRelease, Ledger, NodeUniverse
from silograph.cli import main
from tests.cli.test_local_runs import NODES, run, silos_of, trial
from tests.nats.world import trial as deployment

__all__ = ["run", "trial"]


@pytest.fixture
def hubs(trial: str) -> str:
    Path("hubs.txt").write_text("3\n0\n1\n")
    Path("hubs.csv").write_text("node,noisy_degree_sum\n7,90\n3,44\n5,-2\n")
    return trial


def test_a_release_and_its_answers(run: Any, trial: str) -> None:
    said = run(f"collect {trial} {NODES} --epsilon 20 --fold 200 -o g.release")
    assert said.code == 0
    release = FoldedRelease.load("g.release")
    assert said.out == f"g.release: {release}\n"
    assert "into 200 groups and 0 hubs; 39,800 buckets" in said.out
    assert max(map(len, said.out.splitlines())) <= 80
    for query in ("edges", "triangles", "kstars --k 2", "four_cycles", "clustering"):
        asked = run(f"query g.release {query}")
        assert (asked.code, asked.err) == (0, "")
        assert "not exactly unbiased, as edges can share a bucket" in asked.out
        assert max(map(len, asked.out.splitlines())) <= 80
    found = run("query g.release edges --json").json
    assert found["value"] == release.edges().value
    truth = len(set().union(*(map(tuple, silo.pairs.tolist()) for silo in silos_of(trial))))
    assert abs(found["value"] - truth) < 0.2 * truth
    for query, words in (
        ("degrees", "folded nodes do not answer degrees; they answer edges"),
        ("kstars --k 3", "k-stars for k = 1 and 2, not 3"),
    ):
        asked = run(f"query g.release {query}")
        assert (asked.code, asked.out) == (2, "")
        assert words in asked.err


def test_json(run: Any, trial: str) -> None:
    said = run(f"collect {trial} {NODES} --epsilon 3 --fold 20,4,2 -o g.release --json").json
    assert said["fold"] == {"groups": 20, "hubs": 4, "sub": 2}
    assert said["nodes"] == 60
    counted = run(f"count edges {trial} {NODES} --epsilon 3 --fold 20 --json").json
    assert (counted["query"], counted["nodes"]) == ("edges", 60)


def test_hubs_from_files(run: Any, hubs: str) -> None:
    for options, due in (
        ("--fold 20 --hubs hubs.txt", ("3", "0", "1")),
        ("--fold 20,2 --hubs hubs.txt", ("3", "0")),
        ("--fold 20,0,2 --hubs hubs.txt", ()),
        ("--fold 20,2 --hubs hubs.csv", ("7", "3")),
    ):
        said = run(f"collect {hubs} {NODES} --epsilon 3 {options} -o g.release --force")
        assert said.code == 0, said.err
        assert FoldedRelease.load("g.release").hubs == due


def test_hubs_that_are_found_are_paid_for(run: Any, trial: str) -> None:
    said = run(f"count triangles {trial} {NODES} --epsilon 3 --fold 40,5 --ledger own.ledger")
    assert said.code == 0
    assert "3 silos, 60 nodes, t = 1" in said.out
    assert "simulation has spent ε = " in said.out
    with Ledger("own.ledger") as ledger:
        assert [row.method for row in ledger.rows()] == ["hubs masked", "feat masked"]
        assert ledger.spent("simulation").epsilon <= 3.0


def test_an_open_universe(run: Any, trial: str) -> None:
    NodeUniverse.open().save("open.txt")
    asked = f"{trial} --nodes open.txt --epsilon 20 --ledger own.ledger"
    said = run(f"count edges {asked} --fold 100")
    assert said.code == 0, said.err
    assert "3 silos, any node, t = 1" in said.out
    made = run(f"collect {asked} --fold 100 -o g.release --json")
    assert (made.code, made.json["nodes"]) == (0, None)
    assert "any, by the normal form" in run(f"collect {asked} --fold 9 -o h.release").out
    for line, words in (
        (f"count edges {asked}", "fold them into groups (--fold)"),
        (f"collect {asked} -o x.release", "fold them into groups (--fold)"),
        (f"count edges {asked} --fold 100,5", "an open universe has none; name them"),
    ):
        refused = run(line)
        assert refused.code == 2
        assert words in refused.err
    with Ledger("own.ledger") as ledger:
        assert len(ledger.rows()) == 3


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("--fold nonsense", "'nonsense' is not a fold; it is GROUPS[,HUBS[,SUB]], as in 1000,300"),
        ("--fold 1,2,3,4", "is not a fold"),
        ("--fold 100,", "is not a fold"),
        ("--fold -5", "is not a fold"),
        ("--fold " + "9" * 5000, "is not a fold"),
        ("--fold 1", "groups must be from 3 to"),
        ("--fold 100,0,65", "sub must be from 1 to 64"),
        ("--fold 999999", "buckets; at most"),
        ("--hubs hubs.txt", "--hubs is for folded nodes; say how with --fold"),
        ("--fold 20,9 --hubs hubs.txt", "9 hubs, and the list has 3"),
        ("--fold 20 --hubs absent.txt", "absent.txt"),
        ("--fold 20 --hubs nobody.txt", "a hub: id 'nobody' is not in the universe"),
        ("--fold 20 --protocol elgamal", "counts on pairs, not on folded nodes"),
        ("--fold 20,3 --protocol elgamal", "counts on pairs, not on folded nodes"),
    ],
)
def test_what_is_refused_costs_nothing(options: str, words: str, run: Any, hubs: str) -> None:
    Path("nobody.txt").write_text("nobody\n")
    said = run(f"collect {hubs} {NODES} --epsilon 3 {options} -o g.release --ledger own.ledger")
    assert (said.code, said.out) == (2, "")
    assert words in said.err
    assert len(said.err.splitlines()) == 1
    assert not Path("g.release").exists()
    if Path("own.ledger").exists():
        with Ledger("own.ledger") as ledger:
            assert ledger.rows() == []


def test_other_methods_do_not_fold(run: Any, trial: str) -> None:
    said = run(f"count edges {trial} {NODES} --epsilon 3 --method baseline --fold 20")
    words = "baseline has no use for fold; it takes raw; fold is for the method feat or sealed"
    assert (said.code, said.err) == (2, f"silograph: {words}\n")
    said = run(f"count kstars --k 3 {trial} {NODES} --epsilon 3 --fold 20")
    assert said.code == 2
    assert "for k = 1 and 2" in said.err


def test_too_little_memory_names_folding(
    run: Any, trial: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("silograph.cli.local_run.memory_here", lambda: 100)
    said = run(f"count edges {trial} {NODES} --epsilon 3")
    assert said.code == 2
    assert "fold the nodes into groups (--fold)" in said.err
    assert run(f"count edges {trial} {NODES} --epsilon 3 --fold 20").code == 0


def test_a_page(run: Any, trial: str) -> None:
    said = run(f"count triangles {trial} {NODES} --epsilon 8 --fold 100 --html page.html")
    assert said.code == 0
    assert "folded" in Path("page.html").read_text()


def test_a_folded_release_is_no_reference(run: Any, trial: str) -> None:
    assert run(f"collect {trial} {NODES} --epsilon 3 --fold 20 -o g.release").code == 0
    said = run(f"count edges {trial} {NODES} --epsilon 3 --like-release g.release")
    assert said.code == 2
    assert "this is a folded release, not a release" in said.err


def test_proposing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = deployment(tmp_path, tls=False)
    hubs = tmp_path / "hubs.txt"
    hubs.write_text("3\n5\n")
    propose = ["study", "propose", "edges", "--epsilon", "1", "--detach", "-c",
               str(made.folder / "hub.toml")]  # fmt: skip
    assert main([*propose, "--fold", "50"]) == 0
    assert main([*propose, "--fold", "50", "--hubs", str(hubs)]) == 0
    capsys.readouterr()
    assert main([*propose, "--fold", "50,7"]) == 2
    assert "find them with a study of method hubs" in capsys.readouterr().err
    assert main([*propose, "--hubs", str(hubs)]) == 2
    assert "say how with --fold" in capsys.readouterr().err
    assert main(["study", "list", "-c", str(made.folder / "hub.toml")]) == 0
    shown = capsys.readouterr().out
    assert shown.count("folded") == 2
    assert os.environ.get("COLUMNS") or max(map(len, shown.splitlines())) <= 80
