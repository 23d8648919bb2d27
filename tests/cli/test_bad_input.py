"""Bad input through the command line: the exit code, one line that names the cause, nothing left.

Every case runs in a fresh folder with the files of :func:`_fill`. Cases run in this process,
through the same door as the installed command; those that need a signal, a full disk or a stream
that is gone run as processes.
"""

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from silograph import (
    Channel,
    Ledger,
    NodeUniverse,
    Release,
    Silo,
    clustered_power_law,
    split,
)
from silograph.cli import main

WRONG, REFUSED, MISBEHAVED, ABORTED, FAULT, FULL = 2, 3, 4, 5, 70, 75


@dataclass(frozen=True)
class Case:
    """A command line, its exit code, and words that the message must hold."""

    line: str
    words: str
    code: int = WRONG

    def __str__(self) -> str:
        return self.line[:60]


def bad(line: str, words: str, code: int = WRONG) -> Case:
    return Case(line, words, code)


GOOD = "a.csv b.csv --nodes nodes.txt"
COUNT = f"count edges {GOOD} --epsilon"
PLAN = "plan --query edges --epsilon 1 --silos 3"
COLLECT = f"collect {GOOD} --epsilon 3 -o g.release"

CASES = [
    # --- wrong use of the command itself
    bad("nonsense", "no such command 'nonsense'; see silograph --help"),
    bad("count", "count: missing argument 'query'"),
    bad("count edges", "count: missing argument 'files"),
    bad(f"count edges {GOOD}", "count: missing option '--epsilon'"),
    bad(f"collect {GOOD} --epsilon 3", "collect: missing option"),
    bad(f"count edges {GOOD} --epsilon", "--epsilon"),
    bad(f"count edges {GOOD} --epsilon much", "invalid value for '--epsilon'"),
    bad(f"count edges {GOOD} --epsilon 3 --fast", "no such option: --fast"),
    bad(f"{COUNT} 3 --collusion one", "invalid value for '--collusion'"),
    bad("universe nonsense", "universe: no such command 'nonsense'"),
    bad("audit --effort 0", "--effort"),
    bad(f"{COUNT} 3 --protocol telepathy", "auto has no use for protocol"),
    bad(f"{COUNT} 3 --method feat --protocol telepathy", "unknown protocol 'telepathy'"),
    bad(f"{COUNT} 3 --method baseline --trust helpers", "baseline has no use for trust"),
    bad(f"{COUNT} 3 --ledger own.ledger", "lineage 'simulation' is not in this ledger"),
    bad(f"{COUNT} 3 --ledger own.ledger --lineage typo", "--new-lineage"),
    bad(f"{COLLECT} --ledger own.ledger --lineage typo", "--new-lineage"),
    # --- epsilon and delta
    bad("count triangles a.csv b.csv --method sealed --epsilon 1e8", "protects nobody"),
    bad(f"{COUNT} 1e-9", "all noise"),
    bad(f"{COUNT} 0", "epsilon must be a positive, finite number, not 0.0"),
    bad(f"{COUNT} -1", "epsilon must be a positive, finite number, not -1.0"),
    bad(f"{COUNT} nan", "epsilon must be a positive, finite number, not nan"),
    bad(f"{COUNT} inf", "epsilon must be a positive, finite number, not inf"),
    bad(f"{COUNT} 1e9", "epsilon 1e+09 protects nobody"),
    bad(f"{COUNT} 1e-300", "too small"),
    bad("demo --epsilon 0", "epsilon must be a positive"),
    bad("demo --epsilon 51", "protects nobody"),
    bad("plan --query edges --epsilon nan --silos 4 --nodes 9", "epsilon must be a positive"),
    bad(f"{COUNT} 3 --delta -1", "delta must be at least 0 and less than 1"),
    bad(f"{COUNT} 3 --delta nan", "delta must be at least 0 and less than 1"),
    bad(f"{COUNT} 3 --delta 1", "delta must be at least 0 and less than 1"),
    bad(f"{COUNT} 3 --method feat --delta 1e-9", "feat has no use for delta"),
    # --- silos and collusion
    bad("count edges a.csv --nodes nodes.txt --epsilon 3", "a run takes 2 to 64 silos"),
    bad(f"count edges {'a.csv ' * 65} --epsilon 3", "65 edge files"),
    bad(f"{COUNT} 3 --collusion 2", "collusion must be from 0 to 1 for 2 silos"),
    bad(f"{COUNT} 3 --collusion -1", "collusion must be from 0 to 1"),
    bad(f"{COLLECT} --collusion 7", "collusion must be from 0 to 1"),
    bad("plan --query edges --epsilon 1 --silos 1 --nodes 9", "2 to 64 silos"),
    # --- queries, methods, protocols, trust
    bad(f"count squares {GOOD} --epsilon 3", "unknown query 'squares'; choose from edges"),
    bad("count squares absent.csv absent.csv --epsilon 3", "unknown query 'squares'"),
    bad(f"{COUNT} 3 --method magic", "unknown method 'magic'; choose from feat"),
    bad(f"{COLLECT} --protocol telepathy", "unknown protocol 'telepathy'; choose from masked"),
    bad(f"{COUNT} 3 --method feat --protocol x", "unknown protocol 'x'"),
    bad(f"{COUNT} 3 --trust everyone", "unknown trust everyone; choose from coordinator"),
    bad(f"count kstars {GOOD} --epsilon 3", "kstars needs --k, the number of leaves"),
    bad(f"{COUNT} 3 --k 2", "--k is for kstars, not for edges"),
    bad(f"count kstars --k 0 {GOOD} --epsilon 3", "k must be an integer of at least 1, not 0"),
    bad(f"count kstars --k -3 {GOOD} --epsilon 3", "k must be an integer of at least 1, not -3"),
    bad(f"count kstars --k 40 {GOOD} --epsilon 3", "a star with 40 leaves needs more than 40"),
    bad(f"count kstars --k 99999999999 {GOOD} --epsilon 3", "needs more than 40 nodes"),
    bad(f"count four_cycles {GOOD} --epsilon 3 --method sealed", "sealed answers edges"),
    bad(f"{COUNT} 3 --like-graph a.csv --like-release old.release", "not both"),
    bad(f"{COUNT} 3 --like-release a.csv", "a.csv: not a Silograph release"),
    # --- edge files
    bad("count edges a.csv absent.csv --epsilon 3", "absent.csv: there is no such file"),
    bad("count edges a.csv folder --epsilon 3", "folder: is a folder, not a file"),
    bad("count edges a.csv empty.csv --epsilon 3", "empty.csv: there are no edges in it"),
    bad("count edges a.csv header.csv --epsilon 3", "(source, target); pass --no-header"),
    bad("count edges a.csv latin.csv --epsilon 3", "latin.csv:2: bytes that are not UTF-8"),
    bad("count edges a.csv utf16.csv --epsilon 3", "UTF-16"),
    bad("count edges a.csv binary.csv --epsilon 3", "binary.csv:1: "),
    bad("count edges a.csv short.csv --epsilon 3", "short.csv:3: 1 field"),
    bad("count edges a.csv one.csv --epsilon 3", "one.csv: the first row"),
    bad("count edges a.csv cut.csv.gz --epsilon 3", "cut.csv.gz: the gzip data are damaged"),
    bad("count edges a.csv fake.parquet --epsilon 3", "fake.parquet: is not a Parquet file"),
    bad("count edges a.csv spaced.csv --epsilon 3", "white space; pass --strip"),
    bad(f"{COUNT} 3 --columns payer,payee", "are names, and no header has them"),
    bad("count edges wide.csv wide.csv --epsilon 3", "pass --columns to say which two"),
    bad("count edges wide.csv a.csv --columns payer,payed --epsilon 3", "wide.csv"),
    bad(f"{COUNT} 3 --columns 0,7", "no column 7; the columns are 0 … 1"),
    bad(f"{COUNT} 3 --columns 0", "--columns '0': two different columns are needed"),
    bad(f"{COUNT} 3 --columns 1,1", "two different columns are needed"),
    bad(f"{COUNT} 3 --since 2026-01-01", "--since and --until need --time-column"),
    bad(f"{COUNT} 3 --time-column 2", "give --since, --until or both"),
    bad(f"{COUNT} 3 --time-column 2 --since soon", "'soon', which is neither an ISO date"),
    bad(f"{COUNT} 3 --time-column 2 --until 9", "no column 2; the columns are 0 … 1"),
    bad(f"{COUNT} 3 --groups nodes.txt", "--groups is for mixing"),
    bad(f"count mixing {GOOD} --epsilon 3", "--groups is for mixing, which needs it"),
    bad(f"count mixing {GOOD} --epsilon 3 --groups nodes.txt", "--method sealed; or make a"),
    bad(f"count mixing {GOOD} --epsilon 3 --groups nodes.txt --method sealed", "nodes.txt"),
    bad(f"{COUNT} 3 --format xml", "format is 'xml'"),
    bad(f"{COUNT} 3 --case sideways", "'sideways'"),
    # --- node lists
    bad("count edges a.csv b.csv --nodes absent.txt --epsilon 3", "absent.txt"),
    bad("count edges a.csv b.csv --nodes folder --epsilon 3", "folder"),
    bad("count edges a.csv b.csv --nodes twice.txt --epsilon 3", "twice.txt: id '7' is at"),
    bad("count edges a.csv b.csv --nodes few.txt --epsilon 3", "is not in the universe of 2 nodes"),
    bad("count edges a.csv b.csv --nodes empty.csv --epsilon 3", "empty.csv"),
    bad("count edges a.csv b.csv --nodes damaged.txt --epsilon 3", "damaged.txt: damaged"),
    bad("count edges a.csv b.csv --nodes latin.csv --epsilon 3", "UTF-8"),
    bad("count edges loop.csv loop.csv --epsilon 3", "one node has no pairs"),
    bad("count edges a.csv b.csv --nodes table.csv --epsilon 3", "pass --node-column to"),
    bad("count edges a.csv b.csv --nodes table.csv --node-column x --epsilon 3", "no column 'x'"),
    bad("count edges a.csv b.csv --nodes table.csv --node-column 9 --epsilon 3", "0 … 1"),
    bad("universe show absent.txt", "absent.txt"),
    bad("universe compare nodes.txt absent.txt", "absent.txt"),
    bad("universe make absent.csv -o new.txt", "absent.csv: there is no such file"),
    bad("universe make a.csv -o a.csv", "a.csv: is an input of this command"),
    bad("universe make a.csv -o nodes.txt", "nodes.txt: is there already"),
    # --- outputs
    bad(f"collect {GOOD} --epsilon 3 -o folder", "folder: is a folder; a file name is needed"),
    bad(f"collect {GOOD} --epsilon 3 -o a.csv", "a.csv: is an input of this command"),
    bad(f"collect {GOOD} --epsilon 3 -o ./folder/../b.csv", "is an input of this command"),
    bad(f"collect {GOOD} --epsilon 3 -o old.release", "old.release: is there already"),
    bad(f"collect {GOOD} --epsilon 3 -o none/g.release", "there is no folder none"),
    bad(f"collect {GOOD} --epsilon 3 -o a.csv/g.release", "there is no folder a.csv"),
    bad(f"collect {GOOD} --epsilon 3 -o /sys/g.release", "/sys/g.release: cannot be written"),
    bad(f"collect {GOOD} --epsilon 3 -o /dev/full", "/dev/full: is not a regular file"),
    bad(f"collect {GOOD} --epsilon 3 -o {'x' * 300}", "File name too long"),
    bad(f"{COUNT} 3 --html folder", "folder: is a folder"),
    bad(f"{COUNT} 3 --html none/page.html", "there is no folder none"),
    bad(f"{COUNT} 3 --html nodes.txt", "nodes.txt: is an input of this command"),
    bad("split a.csv -o b.csv", "b.csv: is a file; a folder is needed"),
    bad("split a.csv -o full", "full: the folder is not empty"),
    bad("split a.csv -o none/trial", "there is no folder none"),
    bad("split a.csv -o /sys/trial", "/sys"),
    # --- split
    bad("split -o trial", "give an edge file, or --generate"),
    bad("split a.csv --generate 9 -o trial", "but not both"),
    bad("split absent.csv -o trial", "absent.csv: there is no such file"),
    bad("split a.csv -o trial --silos 1", "silos is 1; it must be an integer from 2 to 64"),
    bad("split a.csv -o trial --silos 65", "from 2 to 64"),
    bad("split a.csv -o trial --rate 1.5", "rate is 1.5; it must be a number from 0 to 1"),
    bad("split a.csv -o trial --overlap nan", "overlap is nan"),
    bad("split a.csv -o trial --rate 0", "silo 1 would hold no edge"),
    bad("split --generate 3 -o trial", "edges_per_node"),
    bad("split --generate 99 -o trial --seed -1", "seed"),
    # --- releases
    bad("query absent.release edges", "absent.release: cannot read the release"),
    bad("query folder edges", "folder: cannot read the release"),
    bad("query a.csv edges", "a.csv: not a Silograph release"),
    bad("query empty.csv edges", "empty.csv: not a Silograph release"),
    bad("query cut.release edges", "cut.release: the release is truncated"),
    bad("query flipped.release edges", "flipped.release: the release is damaged"),
    bad("query later.release edges", "release format 9; this version of Silograph reads"),
    bad("query old.release squares", "unknown query 'squares'"),
    bad("query old.release kstars", "kstars needs --k"),
    bad("query old.release kstars --k 0", "k must be an integer of at least 1"),
    bad("query old.release kstars --k 40", "needs more than 40 nodes"),
    bad("query old.release edges --k 2", "--k is for kstars, not for edges"),
    bad("query deep.release edges", "deep.release: the release is damaged"),
    bad("query lie.release edges", "view 'published' says ε = 1, but anyone who sees"),
    bad("query unclaimed.release edges", "no view is claimed, so it promises nothing"),
    bad("query near.release triangles", "nothing but noise would come through"),
    bad("query names.release edges", "views[0].name must be a text of 1 to 200 characters, not 7"),
    bad("query views.release edges", "views must be a list, not None"),
    bad("query silos.release edges", "provenance.silos must be an integer from 1 to 64"),
    bad("query nodes.release edges", "n must be an integer from 1 up, not True"),
    bad(f"{PLAN} --like-release lie.release", "view 'published' says ε = 1"),
    bad(f"{PLAN} --like-release unclaimed.release", "no view is claimed"),
    bad(f"{PLAN} --like-release near.release", "nothing but noise would come through"),
    bad(f"{PLAN} --like-release names.release", "views[0].name must be a text"),
    bad(f"{PLAN} --like-release pair.release", "2 nodes is too small to plan with"),
    bad(f"{COUNT} 3 --like-release lie.release", "view 'published' says ε = 1"),
    bad(f"{COUNT} 3 --like-release views.release", "views must be a list, not None"),
    # --- ledgers and budgets
    bad(f"{COUNT} 3 --ledger a.csv", "a.csv"),
    bad(f"{COUNT} 3 --ledger folder", "folder"),
    bad(f"{COUNT} 3 --ledger none/own.ledger", "none"),
    bad(f"{COUNT} 3 --ledger torn.ledger", "torn.ledger"),
    bad(f"{COUNT} 3 --ledger own.ledger --lineage claims", "claims", REFUSED),
    bad(f"{COLLECT} --ledger own.ledger --lineage claims", "ε = 1 is left", REFUSED),
    bad("ledger show absent.ledger", "absent.ledger"),
    bad("ledger show a.csv", "a.csv"),
    bad("ledger limit own.ledger claims nan", "epsilon"),
    bad("ledger limit absent.ledger claims 3", "absent.ledger"),
    bad("ledger restore own.ledger new.ledger", "exactly one of --complete, --lost, --close"),
    bad("ledger export own.ledger -o a.csv", "never overwritten"),
    bad("ledger verify own.ledger --seen nonsense", "witness"),
    bad("ledger restore own.ledger new.ledger --close --config absent.toml", "absent.toml"),
    bad("ledger restore own.ledger new.ledger --close --config silo.toml", "no state store"),
    bad("ledger thaw own.ledger --reason none", "is not frozen"),
    bad("ledger thaw frozen.ledger --reason none --lost clams=1", "no lineage 'clams'"),
    bad("ledger backup own.ledger own.backup --keep 0", "keep"),
    bad(f"{COUNT} 1 --ledger frozen.ledger --lineage claims", "is frozen since", REFUSED),
    # --- planning and measuring
    bad("plan --query edges --epsilon 1 --silos 4", "give the number of nodes"),
    bad("plan --query squares --epsilon 1 --silos 4 --nodes 9", "squares"),
    bad("plan --query edges --epsilon 1 --silos 4 --nodes 9 --owned 2", "owned must be"),
    bad("plan --query edges --epsilon 1 --silos 4 --nodes -5", "-5"),
    bad("bench --nodes 3", "nodes must be from 32"),
    bad("bench --silos 1", "2 to 64 silos"),
    # --- a deployment's files
    bad("keys new a.csv", "a.csv: something is there already"),
    bad("keys show a.csv", "a.csv"),
    bad("roster show absent.toml", "absent.toml"),
    bad("roster show a.csv", "a.csv: not TOML"),
    bad("certs show a.csv", "a.csv"),
    bad("trail show absent.db", "absent.db: there is no state store"),
    bad("trail show a.csv", "a.csv"),
    bad("trail verify", "say whose trail"),
    bad("trail verify --config absent.toml", "absent.toml"),
    bad("silo check --config absent.toml", "absent.toml"),
    bad("silo status --config latin.csv", "latin.csv: not a text in UTF-8"),
    bad("silo status --config silo.toml", "status.json: no service has written its status here"),
    bad("study list --config folder", "folder"),
    # --- enrolment
    bad("invite payments", "a consortium needs a broker"),
    bad("invite payments --broker nowhere", "'nowhere' is not an address"),
    bad("invite Payments! --broker b.example:4222", "not a party's name"),
    bad("invite payments --broker b.example:4222 --epsilon 0", "positive and finite"),
    bad("invite payments --broker b.example:4222 --nodes absent.txt", "absent.txt"),
    bad("invite payments --broker b.example:4222 --role cook", "'cook' is not a role"),
    bad("join", "give an invitation, or --welcome"),
    bad("join a.csv --welcome b.csv", "give an invitation, or --welcome"),
    bad("join a.csv --data a.csv", "give this party's name with --name"),
    bad("join absent.invitation --name north --data a.csv", "absent.invitation: cannot be read"),
    bad("join a.csv --name north --data a.csv", "a.csv: not TOML"),
    bad("join silo.toml --name north --data a.csv", "silo.toml: not a file of an enrolment"),
    bad("join --welcome silo.toml", "silo.toml: not a file of an enrolment"),
    bad("admit", "admit: missing argument"),
    bad("admit absent.answer", "absent.answer: cannot be read"),
    bad("admit silo.toml", "silo.toml: not a file of an enrolment"),
    bad("up a.csv b.csv", "2 edge files; a trial takes 3 to 32 silos"),
    bad("up --silos a.csv b.csv absent.csv", "absent.csv: there is no such file"),
    bad("up --silos a.csv b.csv a.csv --query squares", "unknown query 'squares'"),
    bad("up --silos a.csv b.csv a.csv --epsilon 0", "epsilon must be a positive"),
    bad("up --silos a.csv b.csv a.csv --nodes nodes.txt --folder full", "full: something is"),
    # --- results of experiments
]  # fmt: skip


_SILO = """
version = 1
name = "north"
identity = "north.key"
roster = "roster.toml"
universe = "nodes.txt"
state = "state"
broker = {urls = ["tls://broker.example:4222"], ca = "ca", cert = "cert", key = "key"}
data = {edges = "a.csv", lineage = "claims"}
ledger = {path = "own.ledger", epsilon = 10}
policy = {coordinators = ["hub"], epsilon = 2}
"""
_RESULTS = {
    "format": "silograph-experiment 1", "experiment": "curves", "kind": "timing", "quick": True,
    "parameters": {}, "software": {}, "machine": {}, "graphs": {}, "left_out": [],
    "rows": [{
        "experiment": "curves", "library": [1], "version": "1", "elements": 1, "seconds": 1.0,
        "per_element": 1.0, "scaled": False, "operation": "union", "curve": "ristretto255",
    }],
}  # fmt: skip


def _fill(folder: Path) -> None:
    """What the cases name."""
    graph = clustered_power_law(40, edges_per_node=4, seed=1)
    graph.universe.save(folder / "nodes.txt")
    for name, silo in zip(("a.csv", "b.csv"), split(graph, 2, rate=0.6), strict=True):
        rows = "\n".join(f"{u},{v}" for u, v in silo.pairs.tolist())
        (folder / name).write_text(f"{rows}\n")
    (folder / "folder").mkdir()
    (folder / "full").mkdir()
    (folder / "full" / "own.txt").write_text("mine\n")
    for name, content in {
        "empty.csv": b"",
        "header.csv": b"source,target\n",
        "latin.csv": "source,target\nZürich,Bern\n".encode("latin-1"),
        "utf16.csv": "1,2\n2,3\n".encode("utf-16"),
        "binary.csv": bytes(range(256)),
        "short.csv": b"1,2\n2,3\n4\n",
        "one.csv": b"1\n2\n",
        "cut.csv.gz": bytes.fromhex("1f8b0800000000000003") + b"nothing",
        "fake.parquet": b"1,2\n",
        "spaced.csv": b"a ,b\nb,c\n",
        "wide.csv": b"when,payer,payed_to,sum\nmonday,a,b,3\ntuesday,b,c,4\n",
        "loop.csv": b"1,1\n",
        "table.csv": b"first,last\nann,lee\nbob,ray\n",
        "twice.txt": b"7\n8\n7\n",
        "few.txt": b"0\n1\n",
        "torn.ledger": b"SQLite format 3\0" + bytes(200),
    }.items():
        (folder / name).write_bytes(content)
    damaged = (folder / "nodes.txt").read_text().replace("\n7\n", "\n777\n")
    (folder / "damaged.txt").write_text(damaged)
    Release.draw(graph, Channel.symmetric(3.0), seed=1).save(folder / "old.release")
    whole = (folder / "old.release").read_bytes()
    (folder / "cut.release").write_bytes(whole[:-40])
    (folder / "flipped.release").write_bytes(whole[:-60] + b"\1" + whole[-59:])
    (folder / "later.release").write_bytes(whole[:16] + b"\x09\0\0\0" + whole[20:])
    _lie(folder, whole)
    tiny = Silo.from_pairs(NodeUniverse.range(2), np.array([[0, 1]]))
    Release.draw(tiny, Channel.symmetric(3.0), seed=1).save(folder / "pair.release")
    (folder / "silo.toml").write_text(_SILO)
    (folder / "state").mkdir()
    (folder / "state" / "status.json").write_text('{"time": 0}')
    (folder / "results" / "curves").mkdir(parents=True)
    (folder / "results" / "curves" / "results.json").write_text(json.dumps(_RESULTS))
    with Ledger(folder / "own.ledger") as ledger:
        ledger.set_limit("claims", 1.0)
    with Ledger(folder / "frozen.ledger") as ledger:
        ledger.set_limit("claims", 10.0)
        ledger.freeze("two machines")


def _lie(folder: Path, whole: bytes) -> None:
    """Releases with headers that nobody meant, and checksums that fit."""
    end = 24 + int.from_bytes(whole[20:24], "little")
    view = {"name": "published", "epsilon": 1.0, "delta": 0.0, "claimed": True}
    half, more = 2**7_000, 2**6_999 + 1
    changes: dict[str, dict[str, Any]] = {
        "lie": {"p11": "1", "p01": "0", "views": [view]},
        "unclaimed": {"views": [view | {"epsilon": 9.0, "claimed": False}]},
        "near": {"p11": f"{more}/{half}", "p01": "1/2"},
        "names": {"views": [view | {"name": 7}]},
        "views": {"views": None},
        "silos": {"provenance": {"silos": [4]}},
        "nodes": {"n": True},
    }
    raws = {"deep": b"[" * 99_999}
    for name, change in changes.items():
        raws[name] = json.dumps(json.loads(whole[24:end]) | change).encode()
    for name, raw in raws.items():
        body = whole[:20] + len(raw).to_bytes(4, "little") + raw + whole[end:-32]
        (folder / f"{name}.release").write_bytes(body + hashlib.sha256(body).digest())


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("filled")
    _fill(made)
    return made


@pytest.fixture
def folder(filled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    place = tmp_path / "work"
    shutil.copytree(filled, place)
    monkeypatch.chdir(place)
    monkeypatch.delenv("SILOGRAPH_LEDGER", raising=False)
    return place


def contents(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else b""
        for path in sorted(folder.rglob("*"))
    }


def complaint(err: str) -> str:
    """The one line beside notes."""
    lines = [line for line in err.splitlines() if not line.startswith("note: ")]
    assert len(lines) == 1, err
    assert lines[0].startswith("silograph: ")
    assert "Traceback" not in err
    return lines[0]


def test_there_are_enough() -> None:
    assert len(CASES) >= 80
    assert len({case.line for case in CASES}) == len(CASES)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_case(case: Case, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = contents(folder)
    code = main(case.line.split())
    said = capsys.readouterr()
    line = complaint(said.err)
    assert (code, said.out) == (case.code, ""), line
    assert case.words in line
    assert contents(folder) == before


# --- as processes: signals, full disks, streams that are gone


def shell(script: str) -> "subprocess.CompletedProcess[str]":
    """A script of bash in which ``silograph`` is the command."""
    head = f'silograph() {{ "{sys.executable}" -m silograph "$@"; }}; '
    return subprocess.run(
        ["bash", "-c", head + script], capture_output=True, text=True, timeout=60, check=False
    )


def test_a_full_disk_is_seen_before_anything_is_spent(folder: Path) -> None:
    """No file may grow beyond a kilobyte, as on a disk that is full; the release is larger."""
    clustered_power_law(400, seed=1).universe.save("many.txt")
    before = contents(folder)
    command = "collect a.csv b.csv --nodes many.txt --epsilon 1 -o g.release --ledger own.ledger"
    done = shell(f"ulimit -f 1; silograph {command} --lineage claims")
    assert done.returncode == WRONG
    assert "g.release: cannot be written: File too large; nothing was spent" in complaint(
        done.stderr
    )
    assert contents(folder) == before


def test_a_disk_that_fills_up_afterwards(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The release is lost, nothing half of it stays, and it is said what is spent."""

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("silograph.estimators.release.os.fsync", full)
    before = contents(folder)
    ask = "collect a.csv b.csv --nodes nodes.txt --epsilon 1 -o g.release --lineage claims --ledger"
    assert main([*ask.split(), "own.ledger"]) == FULL
    line = complaint(capsys.readouterr().err)
    assert "g.release: cannot write the release: No space left on device" in line
    assert "claims has now spent ε = 1" in line
    assert contents(folder).keys() == before.keys()


def test_a_machine_that_is_too_small(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A run that would die for want of memory is refused before it has cost anything."""
    monkeypatch.setattr("silograph.cli.local_run.memory_here", lambda: 100)
    before = contents(folder)
    ask = f"count edges {GOOD} --epsilon 1 --lineage claims --ledger own.ledger"
    assert main(ask.split()) == WRONG
    assert "40 nodes: one bit for every pair of them, for 2 silos" in complaint(
        capsys.readouterr().err
    )
    assert contents(folder) == before


def test_standard_output_is_full(folder: Path) -> None:
    done = shell("silograph query old.release edges > /dev/full")
    assert done.returncode == FULL
    assert "No space left on device" in complaint(done.stderr)


def test_nobody_reads(folder: Path) -> None:
    """A reader that has gone is no reason for a traceback, or for any words."""
    done = shell("silograph query old.release degrees --json | true; exit ${PIPESTATUS[0]}")
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr
    assert done.returncode in (0, ABORTED)  # the reader may go late


@pytest.mark.slow
def test_interrupted(folder: Path) -> None:
    """A real Ctrl-C while the union is made: what is spent stays spent, and is said."""
    clustered_power_law(300, seed=1).universe.save("many.txt")
    before = contents(folder)
    with Ledger("own.ledger") as ledger:
        ledger.set_limit("claims", 5.0)
    words = ["collect", "a.csv", "b.csv", "--nodes", "many.txt", "--epsilon", "3", "--protocol"]
    more = ["elgamal/blinded", "-o", "g.release", "--ledger", "own.ledger", "--lineage", "claims"]
    process = subprocess.Popen(
        [sys.executable, "-m", "silograph", *words, *more],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONUNBUFFERED": "1"},
    )
    try:
        with Ledger("own.ledger", create=False) as ledger:
            end = time.monotonic() + 40
            while not ledger.rows("claims"):
                assert process.poll() is None, process.communicate()
                assert time.monotonic() < end
                time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=40)
    finally:
        process.kill()
        process.wait()
    assert (process.returncode, out) == (ABORTED, "")
    line = complaint(err)
    assert "interrupted: no answer was given and nothing was written" in line
    assert "claims has now spent ε = 3" in line
    assert contents(folder).keys() == before.keys()
    with Ledger("own.ledger", create=False) as ledger:
        assert len(ledger.rows("claims")) == 1
