"""split, collect, count and bench, as one uses them on own files."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
import typer

from silograph import Ledger, NodeUniverse, Release, Silo, clustered_power_law, union
from silograph.cli import bench, main
from silograph.cli.app import app
from silograph.graph.bits import BitRows
from silograph.page import save_page


class Said:
    """What a command printed."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err

    @property
    def json(self) -> Any:
        assert self.out.count("\n") == 1
        return json.loads(self.out)

    @property
    def notes(self) -> list[str]:
        lines = self.err.splitlines()
        assert all(line.startswith("note: ") for line in lines), self.err
        return lines


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SILOGRAPH_LEDGER", raising=False)

    def call(line: str) -> Said:
        code = main(line.split())
        return Said(code, *capsys.readouterr())

    return call


@pytest.fixture
def trial(run: Any) -> str:
    assert run("split --generate 60 -o trial --silos 3 --seed 4").code == 0
    return "trial/silo-1.csv trial/silo-2.csv trial/silo-3.csv"


NODES = "--nodes trial/nodes.txt"


def silos_of(files: str) -> list[Silo]:
    universe = NodeUniverse.from_file("trial/nodes.txt")
    return [Silo.from_file(universe, file) for file in files.split()]


class TestSplit:
    def test_files_hold_what_was_dealt(self, run: Any, trial: str) -> None:
        said = run("split --generate 60 -o again --silos 3 --seed 4 --json")
        names = {path.name for path in Path("trial").iterdir()}
        assert names == {"nodes.txt", "silo-1.csv", "silo-2.csv", "silo-3.csv"}
        for name in names:
            assert Path("again", name).read_bytes() == Path("trial", name).read_bytes()
        silos = silos_of(trial)
        assert [entry["edges"] for entry in said.json["silos"]] == [len(silo) for silo in silos]
        assert said.json["union"] == len(union(silos))
        assert said.json["digest"] == silos[0].universe.digest
        assert said.err == ""

    def test_ids_that_need_quotes(self, run: Any) -> None:
        Path("odd.csv").write_text('"a,1","b ""x"""\n"b ""x""",source\nsource,target\n')
        assert run("split odd.csv -o out --silos 2 --rate 1 --overlap 1 --no-header").code == 0
        universe = NodeUniverse.from_file("out/nodes.txt")
        whole = Silo.from_file(universe, "odd.csv", header=False)
        assert len(whole) == 3
        assert Silo.from_file(universe, "out/silo-1.csv") == whole

    def test_columns_of_a_wide_table(self, run: Any) -> None:
        Path("wide.csv").write_text("when,payer,payee\n1,a,b\n2,b,c\n3,c,d\n4,d,a\n")
        assert run("split wide.csv --columns payer,payee -o out --silos 2 --rate 1").code == 0
        assert NodeUniverse.from_file("out/nodes.txt").ids == ("a", "b", "c", "d")

    def test_a_time_window(self, run: Any) -> None:
        Path("wide.csv").write_text("payer,payee,day\na,b,2026-01-01\nb,c,2026-01-02\nc,d,x\n")
        window = "--time-column day --until 2026-01-02"
        line = f"split wide.csv {window} -o out --silos 2 --rate 1 --overlap 1"
        assert "wide.csv:4: the time 'x'" in run(line).err
        Path("wide.csv").write_text("payer,payee,day\na,b,2026-01-01\nb,c,2026-01-02\n")
        said = run(line)
        assert said.notes == ["note: rows outside the time window left out: wide.csv 1"]
        assert NodeUniverse.from_file("out/nodes.txt").ids == ("a", "b")
        assert run(f"universe make wide.csv {window} -o n.txt").code == 0
        assert NodeUniverse.from_file("n.txt").ids == ("a", "b")

    def test_an_empty_folder_is_taken(self, run: Any) -> None:
        Path("out").mkdir()
        assert run("split --generate 60 -o out").code == 0
        assert len(list(Path("out").iterdir())) == 5
        assert [path.name for path in Path().iterdir()] == ["out"]

    def test_a_split_that_fails_is_gone(self, run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        def full(_: int) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr("silograph.whole_files.os.fsync", full)
        said = run("split --generate 60 -o out")
        assert said.code == 75
        assert said.err.startswith("silograph: No space left on device")
        assert list(Path().iterdir()) == []

    def test_a_rate_out_of_reach_is_noted(self, run: Any) -> None:
        said = run("split --generate 60 -o out --silos 4 --rate .9 --overlap .1")
        assert said.code == 0
        assert ["cannot be reached" in line for line in said.notes] == [True]


class TestCollect:
    def test_release_and_ledger(self, run: Any, trial: str) -> None:
        Ledger("own.ledger").set_limit("banks", 5.0)
        ask = (
            f"collect {trial} {NODES} --epsilon 3 -o g.release --ledger own.ledger --lineage banks"
        )
        said = run(ask)
        assert (said.code, said.err) == (0, "")
        assert "g.release: release\n  nodes     60, list" in said.out
        assert "own.ledger: banks has spent ε = 3; ε = 2 is left" in said.out
        assert max(map(len, said.out.splitlines())) <= 80
        release = Release.load("g.release", NodeUniverse.from_file("trial/nodes.txt"))
        assert (release.provenance.silos, release.provenance.protocol) == (3, "masked")
        assert release.epsilon <= 3.0
        again = run(f"{ask} --force")
        assert again.code == 3  # only 2 are left
        assert Release.load("g.release").provenance.run == release.provenance.run

    def test_json(self, run: Any, trial: str) -> None:
        said = run(f"collect {trial} {NODES} --epsilon 1 -o g.release --collusion 2 --json")
        found = said.json
        assert found["release"] == "g.release"
        assert (found["silos"], found["collusion"], found["nodes"]) == (3, 2, 60)
        assert [view["name"] for view in found["views"]][1] == "coordinator + 2 silos"
        assert found["ledger"] is None
        assert any("recorded nowhere" in line for line in said.notes)

    def test_what_json_does_not_know(self, run: Any, trial: str) -> None:
        ask = f"collect {trial} {NODES} --epsilon 1 -o g.release --protocol elgamal/replace"
        found = run(f"{ask} --collusion 0 --json").json
        assert [view["epsilon"] for view in found["views"] if not view["claimed"]] == [None]

    def test_only_with_force_over_another(self, run: Any, trial: str) -> None:
        ask = f"collect {trial} {NODES} --epsilon 1 -o g.release"
        assert [run(ask).code, run(ask).code, run(f"{ask} --force").code] == [0, 2, 0]


class TestCount:
    @pytest.mark.parametrize(
        "query", ["edges", "degrees", "degree_histogram", "triangles", "node_triangles",
                  "four_cycles", "clustering", "kstars --k 2"],
    )  # fmt: skip
    def test_every_query(self, run: Any, trial: str, query: str) -> None:
        said = run(f"count {query} {trial} {NODES} --epsilon 3")
        assert said.code == 0, said.err
        assert said.out.startswith(query.split(maxsplit=1)[0])
        assert max(map(len, said.err.splitlines())) < 200

    @pytest.mark.parametrize("method", ["feat", "feat+", "sealed", "baseline", "auto"])
    def test_every_method(self, run: Any, trial: str, method: str) -> None:
        said = run(f"count triangles {trial} {NODES} --epsilon 3 --method {method} --json --yes")
        found = said.json
        assert (found["query"], found["silos"], found["nodes"]) == ("triangles", 3, 60)
        assert method in ("auto", found["method"])
        assert found["interval"][0] < found["value"] < found["interval"][1]

    def test_auto_chooses_to_count_in_a_committee(self, run: Any, trial: str) -> None:
        ask = f"count triangles {trial} {NODES} --epsilon 1 --json --yes"
        assert run(ask).json["method"] != "sealed"
        assert run(f"{ask} --trust helpers").json["method"] == "sealed"

    def test_notes(self, run: Any, trial: str) -> None:
        said = run(f"count edges {trial} --epsilon 3")
        assert len(said.notes) == 2
        assert "the node list is the 60 ids in the files" in said.notes[0]
        assert "a public list on which all parties agree (--nodes)" in said.notes[0]
        assert "recorded nowhere" in said.notes[1]
        Path("loop.csv").write_text("0,1\n1,1\n1,0\n")
        said = run(f"count edges loop.csv loop.csv {NODES} --epsilon 3")
        assert "loop.csv is given more than once" in said.notes[0]
        assert "self-loops dropped: loop.csv 1, loop.csv 1" in said.notes[1]
        assert "repeated rows merged: loop.csv 1, loop.csv 1" in said.notes[2]

    def test_nothing_is_spent_on_nonsense_in_silence(self, run: Any, trial: str) -> None:
        """Without a terminal: what is expected, what would help, and exit code 2."""
        ask = f"count triangles {trial} {NODES} --method feat --epsilon 0.1 --ledger own.ledger"
        said = run(ask)
        assert (said.code, said.out) == (2, "")
        assert "no usable answer is expected: the error of triangles is about" in said.err
        assert "What would help: ε = " in said.err
        assert "nothing was spent; to run it anyway, give --yes" in said.err
        assert Ledger("own.ledger").rows() == []
        said = run(f"{ask} --yes --new-lineage")
        assert said.code == 0
        assert said.out.startswith(("triangles: no usable answer\n", "triangles = "))
        assert len(Ledger("own.ledger").rows()) == 1

    def test_who_has_a_terminal_is_asked(
        self, run: Any, trial: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        asked: list[str] = []
        monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)

        def refused(text: str, **_: object) -> bool:
            asked.append(text)
            raise typer.Abort

        monkeypatch.setattr("typer.confirm", refused)
        said = run(f"count triangles {trial} {NODES} --method feat --epsilon 0.1 --ledger a.ledger")
        assert (said.code, asked) == (1, ["Run it anyway?"])
        assert Ledger("a.ledger").rows() == []

    def test_a_long_run_is_asked_about(
        self, run: Any, trial: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("silograph.cli.local_run._LONG", 0.0)
        said = run(f"collect {trial} {NODES} --epsilon 3 -o long.release")
        assert said.code == 2
        assert "it takes about a second: nothing was spent" in said.err
        assert "note: expected: about a second, 1.0 kB sent by a silo" in said.err
        assert not Path("long.release").exists()
        assert run(f"collect {trial} {NODES} --epsilon 3 -o long.release --yes").code == 0

    def test_stopped_before_the_first_upload(
        self, run: Any, trial: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Ctrl-C while the parties are still agreeing costs nothing."""

        def stopped(*_: object, **__: object) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr("silograph.local.federation.drive_study", stopped)
        said = run(f"count edges {trial} {NODES} --epsilon 3 --ledger own.ledger")
        assert said.code == 5
        assert "nothing was spent" in said.err

    def test_columns_of_one_file(self, run: Any) -> None:
        Path("a.csv").write_text("debtor_iban,creditor_iban\nDE12,FR34\nDE12,NL99\nDE55,FR34\n")
        Path("b.csv").write_text("x,from,to\n1,DE12,NL99\n2,DE55,NL99\n")
        # Masked loses an edge in 65,536 at any ε; sealed counts exactly.
        said = run("count edges a.csv b.csv:from,to --epsilon 30 --method sealed --json")
        assert (said.json["nodes"], round(said.json["value"])) == (4, 4)
        assert "a.csv: the first row is taken for a header (debtor_iban, creditor_iban)" in said.err

    def test_the_environment_names_a_ledger(
        self, run: Any, trial: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("SILOGRAPH_LEDGER", "mine.ledger")
        said = run(f"count edges {trial} {NODES} --epsilon 3 --json")
        assert said.err == ""
        assert said.json["ledger"]["spent"]["epsilon"] == 3.0
        assert "simulation" in run("ledger show").out

    def test_a_column_of_the_node_list(self, run: Any, trial: str) -> None:
        ids = NodeUniverse.from_file("trial/nodes.txt").ids
        rows = "\n".join(f"{place},{id_}" for place, id_ in enumerate(ids))
        Path("table.csv").write_text(f"place,account\n{rows}\n")
        for column in ("account", "1"):
            ask = f"count edges {trial} --nodes table.csv --node-column {column} --epsilon 3 --json"
            assert run(ask).json["nodes"] == 60

    def test_same_names_in_different_folders(self, run: Any, trial: str) -> None:
        for place in ("north", "south"):
            Path(place).mkdir()
            Path(place, "edges.csv").write_bytes(Path("trial/silo-1.csv").read_bytes())
        said = run(f"count edges north/edges.csv south/edges.csv {NODES} --epsilon 3")
        assert said.code == 0, said.err

    def test_page(self, run: Any, trial: str, monkeypatch: pytest.MonkeyPatch) -> None:
        asked: list[tuple[Any, Any, Any]] = []

        def page(answer: Any, path: Path, *, ledger: Any, lineage: str) -> None:
            asked.append((answer.query, ledger.rows(lineage)[0].method, lineage))
            save_page(answer, path, ledger=ledger, lineage=lineage)

        monkeypatch.setattr("silograph.cli.count.save_page", page)
        ask = f"count edges {trial} {NODES} --epsilon 3 --html p.html --ledger own.ledger"
        said = run(ask)
        assert said.code == 0, said.err
        assert Path("p.html").read_text().startswith("<!doctype html>")
        assert asked == [("edges", "feat masked", "simulation")]
        assert run(ask).code == 2  # it is there
        assert len(Ledger("own.ledger").rows()) == 1

    @pytest.mark.parametrize(
        ("error", "code"),
        [(OSError(28, "No space left on device"), 75), (KeyboardInterrupt(), 5)],
        ids=["full", "interrupted"],
    )
    def test_a_page_that_fails_leaves_the_answer(
        self,
        error: BaseException,
        code: int,
        run: Any,
        trial: str,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        def page(*_: Any, **__: Any) -> None:
            raise error

        monkeypatch.setattr("silograph.cli.count.save_page", page)
        said = run(f"count edges {trial} {NODES} --epsilon 3 --html p.html --ledger own.ledger")
        assert said.code == code
        assert said.out.startswith("edges = ")
        assert "no answer" not in said.err
        assert "simulation has now spent ε = 3" in said.err
        assert not Path("p.html").exists()

    def test_pages_that_cannot_be_made_cost_nothing(
        self, run: Any, trial: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setitem(sys.modules, "altair", None)
        said = run(f"count edges {trial} {NODES} --epsilon 3 --html p.html --ledger own.ledger")
        assert (said.code, said.out) == (2, "")
        assert "silograph[report]" in said.err
        assert not Path("own.ledger").exists()


class TestBench:
    def test_screen_and_json(self, run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        for name, small in (("_TRIANGLE_NODES", 128), ("_ELGAMAL_NODES", 32)):
            monkeypatch.setattr(bench, name, small)
        monkeypatch.setattr(bench, "_UNION_WORK", 50_000)
        monkeypatch.setenv("COLUMNS", "80")
        said = run("bench --nodes 5000 --silos 3")
        assert (said.code, said.err) == (0, "")
        assert max(map(len, said.out.splitlines())) <= 80
        assert "…" not in said.out
        found = run("bench --nodes 5000 --silos 3 --json").json
        assert found["pairs"] == 5000 * 4999 // 2
        triangles, masked, elgamal = found["measured"]
        assert triangles["ratio"] == triangles["peer_seconds"] / triangles["seconds"]
        each = masked["seconds"] / masked["pieces"]
        assert found["estimates"]["masked"] == pytest.approx(3 * each * found["pairs"])
        assert elgamal["ratio"] is None

    def test_numpy_stands_in_for_igraph(self) -> None:
        graph = BitRows.from_pairs(64, clustered_power_law(64, seed=2).pairs)
        _, ours = bench._igraph(graph)
        _, theirs = bench._numpy(graph)
        assert ours() == theirs() == graph.triangles


#: These serve until they are stopped, or print JSON anyway.
WITHOUT_JSON = {"silo run", "ledger export"}


def test_every_command_has_json() -> None:
    def leaves(command: Any, words: list[str]) -> list[tuple[str, Any]]:
        below = getattr(command, "commands", None)
        if below is None:
            return [(" ".join(words), command)]
        return [leaf for name, c in below.items() for leaf in leaves(c, [*words, name])]

    found = dict(leaves(typer.main.get_command(app), []))
    without = {
        name
        for name, command in found.items()
        if not any("--json" in parameter.opts for parameter in command.params)
    }
    assert without == WITHOUT_JSON
