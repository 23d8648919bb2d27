"""Edge files: every format against a simple reader, and every fault by its message."""

import csv
import gzip
import io
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from silograph._core import LineError
from silograph.errors import ArgumentError, EdgeError
from silograph.graph import NodeUniverse, Silo, read_graph, reading
from silograph.graph.identifiers import line_fault, open_text

DELIMITERS = {"csv": ",", "tsv": "\t"}


@dataclass
class Written:
    """A file, and what a reader must find in it."""

    format: str
    content: bytes
    rows: list[tuple[str, str]]


def simple_reader(format: str, content: bytes) -> list[tuple[str, str]]:  # noqa: A002
    """A second reader, with Python's own means."""
    text = content.decode("utf-8-sig")
    if format == "whitespace":
        lines = [re.split(r"[ \t]+", line.strip(" \t\r")) for line in text.split("\n")]
        return [(line[0], line[1]) for line in lines if line[0] and line[0][0] not in "#%"]
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=DELIMITERS[format], strict=True)
    return [(row[0], row[1]) for row in rows if row]


words = st.text(st.sampled_from("abcXYZé漢_-.:'7"), min_size=1, max_size=5)
odd = st.text(st.sampled_from("ab,\"' é;\t"), min_size=1, max_size=5).map(lambda id_: f"x{id_}x")
numbers = st.integers(0, 40).map(str)
wide = st.sampled_from(["0", "7", "70", "4294967295", "4294967296", "99999999999999999999", "-4"])


@st.composite
def written(draw: st.DrawFn) -> Written:
    """Rows in some format, with line ends, comments, blanks, quotes and a BOM here and there."""
    format = draw(st.sampled_from(["whitespace", "csv", "tsv"]))  # noqa: A001
    ids = draw(st.sampled_from([words, numbers, wide] + [odd] * (format != "whitespace")))
    rows = draw(st.lists(st.tuples(ids, ids), min_size=1, max_size=40))
    lines = []
    for a, b in rows:
        if format == "whitespace":
            gap = draw(st.sampled_from([" ", "\t", "  \t"]))
            around = draw(st.sampled_from(["", " ", "\t"]))
            lines.append(f"{around}{a}{gap}{b}{around}")
            lines += draw(st.sampled_from([[], [], ["# x y z"], ["  % z"], [""], [" \t"]]))
        else:
            fields = [
                f'"{field.replace(chr(34), 2 * chr(34))}"'
                if draw(st.booleans()) or any(c in field for c in ',"\t;')
                else field
                for field in (a, b)
            ]
            lines.append(DELIMITERS[format].join(fields))
            lines += draw(st.sampled_from([[], [], [""]]))
    end = draw(st.sampled_from(["\n", "\r\n"]))
    text = (
        draw(st.sampled_from(["", "\ufeff"])) + end.join(lines) + draw(st.sampled_from(["", end]))
    )
    return Written(format, text.encode(), rows)


def edge_set(graph: Silo) -> set[frozenset[str]]:
    ids = graph.universe.ids
    return {frozenset((ids[u], ids[v])) for u, v in graph.pairs.tolist()}


@pytest.mark.slow
@settings(max_examples=100, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(written(), st.booleans(), st.randoms(use_true_random=False))
def test_like_a_simple_reader(
    tmp_path_factory: pytest.TempPathFactory, file: Written, packed: bool, shuffler: Any
) -> None:
    assert simple_reader(file.format, file.content) == file.rows
    path = tmp_path_factory.mktemp("files") / "edges"
    path.write_bytes(gzip.compress(file.content, mtime=0) if packed else file.content)
    expected = {frozenset(row) for row in file.rows if row[0] != row[1]}
    loops = sum(a == b for a, b in file.rows)

    graph = read_graph(path, format=file.format, header=False)
    ids = {id_ for row in file.rows for id_ in row}
    assert set(graph.universe.ids) == ids
    integers = all(re.fullmatch(r"0|-?[1-9][0-9]*", id_) for id_ in ids)
    assert list(graph.universe.ids) == (sorted(ids, key=int) if integers else sorted(ids))

    order = [*ids, "another"]
    shuffler.shuffle(order)
    silo = Silo.from_file(NodeUniverse(order), path, format=file.format, header=False)
    for result in (graph, silo):
        assert edge_set(result) == expected
        pairs = result.pairs.tolist()
        assert pairs == sorted(pairs)
        assert all(u < v for u, v in pairs)
        report = result.report
        assert (report.rows, report.edges, report.self_loops) == (
            len(file.rows),
            len(expected),
            loops,
        )
        assert report.rows == report.edges + report.repeats + report.self_loops


def write(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


HEADERS: list[tuple[str, str, dict[str, Any], tuple[str, ...] | None, int]] = [
    ("a.csv", "source,target\na,b\n", {}, ("source", "target"), 1),
    ("a.csv", "Src , DST\na,b\n", {}, ("Src ", " DST"), 1),
    ("a.csv", "x,y\n1,2\n3,4\n", {}, ("x", "y"), 2),
    ("a.csv", "x,y\na,b\n", {}, None, 2),
    ("a.csv", "x,y\na,b\n", {"header": True}, ("x", "y"), 1),
    ("a.csv", "source,target\na,b\n", {"header": False}, None, 2),
    ("a.txt", "FromNodeId ToNodeId\n1 2\n", {}, ("FromNodeId", "ToNodeId"), 1),
    ("a.txt", "u v\n1 2\n", {}, ("u", "v"), 1),
    ("a.txt", "u v\nv w\n", {}, None, 2),
    ("a.txt", "u v\nw x\n", {}, ("u", "v"), 1),
    ("a.txt", "a 7\n1 2\n", {}, None, 2),
    ("a.txt", "1 2\n3 4\n", {}, None, 2),
    ("a.txt", "# c\na b 0.5\nc d 1.5\n", {}, None, 2),
    ("a.txt", "a,b\nb,c\n", {}, None, 2),
    ("a.txt", "a, b\nb, c\n", {"strip": True}, None, 2),
    ("a.csv", "a;b\nb;c\n", {}, None, 2),
    ("a.csv", "t,sender,receiver\n1,a,b\n2,b,c\n", {}, ("t", "sender", "receiver"), 2),
    ("a.csv", "p,q,r\n1,2,3\n", {"columns": ("r", "p")}, ("p", "q", "r"), 1),
    ("a.csv", "p,q,r\n1,2,3\n", {"columns": (2, 0)}, ("p", "q", "r"), 1),
    ("a.csv", "1,2,3\n", {"columns": (2, 0)}, None, 1),
    ("a.tsv", "from\tto\na b\tc d\n", {}, ("from", "to"), 1),
    ("A.CSV", "source,target\na,b\n", {}, ("source", "target"), 1),
]


@pytest.mark.parametrize("case", HEADERS, ids=lambda case: repr(case[1]))
def test_headers(
    tmp_path: Path, case: tuple[str, str, dict[str, Any], tuple[str, ...] | None, int]
) -> None:
    name, content, options, header, rows = case
    report = read_graph(write(tmp_path, name, content), **options).report
    assert report.header == header
    assert report.rows == rows
    packed = write(tmp_path, name + ".gz", gzip.compress(content.encode(), mtime=0))
    assert read_graph(packed, **options).report.header == header


def test_columns_are_reported(tmp_path: Path) -> None:
    path = write(tmp_path, "a.csv", "t,sender,note,receiver\n1,a,x,b\n2,b,x,a\n3,a,x,a\n")
    graph = read_graph(path)
    assert graph.universe.ids == ("a", "b")
    assert graph.report.columns == ("sender", "receiver")
    assert graph.report.ignored == ("t", "note")
    assert str(graph.report) == (
        f"{path} (csv): 1 edge from 3 rows\n"
        "  1 repeat merged (both directions count as one edge)\n"
        "  1 self-loop dropped\n"
        "  header: t, sender, note, receiver\n"
        "  columns read: sender, receiver\n"
        "  columns ignored: t, note"
    )
    plain = read_graph(write(tmp_path, "a.txt", "# c\n1 2 9\n2 3 8\n")).report
    assert (plain.columns, plain.ignored, plain.comments) == ((0, 1), (2,), 1)
    assert "  columns ignored: 2" in str(plain)
    assert read_graph(path, columns=(0, 2)).universe.ids == ("1", "2", "3", "x")


@pytest.mark.parametrize(
    ("ids", "content", "header"),
    [
        (["u", "v", "w"], "u,v\nv,w\n", None),
        (["source", "target"], "source,target\n", None),
        (["a", "b"], "payer_account,payee_account\na,b\n", ("payer_account", "payee_account")),
        (["1", "2"], "p,q\n1,2\n", ("p", "q")),
    ],
)
def test_headers_over_a_universe(
    tmp_path: Path, ids: list[str], content: str, header: tuple[str, ...] | None
) -> None:
    silo = Silo.from_file(NodeUniverse(ids), write(tmp_path, "a.csv", content))
    assert silo.report.header == header


def test_an_unknown_first_row_is_no_header(tmp_path: Path) -> None:
    """Two unknown ids are a fault, not a header, unless they read like column names."""
    path = write(tmp_path, "a.csv", "zed,yan\na,b\n")
    with pytest.raises(EdgeError, match=r"a.csv:1: id 'zed' .*pass header=True"):
        Silo.from_file(NodeUniverse(["a", "b"]), path)
    path = write(tmp_path, "b.csv", "a,yan\n1,2\n")
    with pytest.raises(EdgeError, match=r"b.csv:1: id 'yan'"):
        Silo.from_file(NodeUniverse(["a", "1", "2"]), path)


GZIP = gzip.compress(b"1 2\n" * 1000, mtime=0)
FAULTS: list[tuple[str, str | bytes, dict[str, Any], str]] = [
    ("a.txt", "", {}, "a.txt: there are no edges in it.*from_edges"),
    ("a.txt", "# only\n\n% comments\n", {}, "a.txt: there are no edges"),
    ("a.csv", "source,target\n", {}, r"only a header \(source, target\).*header=False"),
    ("a.txt", "1 2\n3\n", {}, "a.txt:2: 1 field, where the first row has 2"),
    ("a.txt", "1 2\n\n# c\n1 2 3\n", {}, "a.txt:4: 3 fields, where the first row has 2"),
    ("a.csv", "a,b\nc,d,e\n", {}, "a.csv:2: 3 fields, where the first row has 2"),
    ("a.csv", "a,b\n,d\n", {}, "a.csv:2: an empty id"),
    ("a.tsv", "a\tb\n\t\n", {}, "a.tsv:2: an empty id"),
    ("a.csv", 'a,b\n"c,d\ne",f\n', {}, "a.csv:2: a quoted field does not end on its line"),
    ("a.csv", 'a,b\n"c"d,e\n', {}, "a.csv:2: there is text between a closing quote"),
    ("a.csv", "a,b\nc, d\n", {}, "a.csv:2: id ' d' begins or ends with white space.*strip=True"),
    ("a.csv", "a,b\nc,d\re\n", {}, r"a.csv:2: id 'd\\re' has a line break inside"),
    ("a.csv", "x\ny\n", {}, r"the first row \('x'\) has one field"),
    ("a.csv", "# note\na,b\n", {}, r"the first row \('# note'\) has one field.*are comments"),
    ("a.csv", "p,q,r\n1,2,3\n", {}, r"3 columns \('p', 'q', 'r'\); pass columns="),
    ("a.txt", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", {}, "a.txt:1: bytes that are not UTF-8"),
    ("a.txt", b"1 2\n3 \0 4\n", {}, "a.txt:2: a NUL byte; this is a binary file"),
    ("a.txt", b"1 2\n" * 200 + b"3 \xff\n", {}, "a.txt:201: bytes that are not UTF-8"),
    ("a.txt", "1 2\n".encode("utf-16"), {}, "a.txt:1: the file is UTF-16"),
    ("a.txt.gz", GZIP[:-9], {}, "a.txt.gz: the gzip data are damaged or end too early"),
    ("a.txt.gz", GZIP[:20] + b"xxxx" + GZIP[24:], {}, "a.txt.gz: the gzip data are damaged"),
    ("a.txt.gz", GZIP + b"trailing", {}, "a.txt.gz: the gzip data are damaged"),
    ("a.txt.gz", gzip.compress(b"", mtime=0), {}, "a.txt.gz: there are no edges"),
    ("a.parquet", "1 2\n", {}, "a.parquet: is not a Parquet file"),
    ("a.parquet", b"PAR1" + bytes(100) + b"PAR1", {}, "a.parquet: damaged or not readable"),
    ("a.txt", "1 " + "x" * 10_000 + "\n3\n", {}, "a.txt:2: 1 field"),
]


@pytest.mark.parametrize(("name", "content", "options", "message"), FAULTS)
def test_faults(
    tmp_path: Path, name: str, content: str | bytes, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(EdgeError, match=message) as caught:
        read_graph(write(tmp_path, name, content), **options)
    assert str(caught.value).startswith(str(tmp_path / name))
    assert caught.value.__cause__ is None


@pytest.mark.parametrize(
    ("ids", "options", "content", "message"),
    [
        (range(5), {}, "0 1\n1 5\n", "a.txt:2: id '5' is not in the universe of 5 nodes$"),
        (range(5), {}, "0 1\n1 04\n", "a.txt:2: id '04' .*; '4' is, and ids are compared as text"),
        (range(5), {}, "0 1\n1 4.0\n", "a.txt:2: id '4.0' .*; '4' is, and ids are compared as"),
        (["ada", "bob"], {}, "ada Bob\n", "id 'Bob' .*but 'bob' is: .*case='lower'"),
        (["ADA", "BOB"], {}, "ADA Bob\n", "id 'Bob' .*but 'BOB' is: .*case='upper'"),
        (["a", "b"], {}, "a b\nb " + "x" * 500 + "\n", r"'xxxxxxxxxxxxxxxxxxxx…' \(500 char"),
        (["a", "b"], {}, "a b\nb \x07\x1b[0m\n", r"a.txt:2: id '\\x07\\x1b\[0m' is not in"),
        (["a", "b"], {"strip": True}, "a b\nb \xa0\n", "a.txt:2: an empty id"),
    ],
)
def test_ids_outside_the_universe(
    tmp_path: Path, ids: Any, options: dict[str, Any], content: str, message: str
) -> None:
    universe = NodeUniverse(ids, **options)
    with pytest.raises(EdgeError, match=message):
        Silo.from_file(universe, write(tmp_path, "a.txt", content))


def test_white_space_hint(tmp_path: Path) -> None:
    path = write(tmp_path, "a.csv", "ada,bob\nada, bob\n")
    with pytest.raises(EdgeError, match=r"a.csv:2: id ' bob' .*strip=True"):
        Silo.from_file(NodeUniverse(["ada", "bob"]), path)
    assert len(Silo.from_file(NodeUniverse(["ada", "bob"], strip=True), path)) == 1


def test_the_universe_normalises_what_is_read(tmp_path: Path) -> None:
    universe = NodeUniverse(["Ada", "Bob", "7"], strip=True, case="upper")
    path = write(tmp_path, "a.csv", "ada , BOB\nbob,7\n")
    assert Silo.from_file(universe, path).pairs.tolist() == [[0, 1], [1, 2]]
    graph = read_graph(write(tmp_path, "b.csv", "Ada,bob\nADA ,BOB\n"), strip=True, case="lower")
    assert graph.universe == NodeUniverse(["ada", "bob"], strip=True, case="lower")
    assert graph.report.repeats == 1


def test_missing_files_folders_and_arguments(tmp_path: Path) -> None:
    with pytest.raises(EdgeError, match=r"none.txt: there is no such file"):
        read_graph(tmp_path / "none.txt")
    with pytest.raises(EdgeError, match="is a folder, not a file"):
        read_graph(tmp_path)
    with pytest.raises(EdgeError, match=r"none.parquet: cannot be read"):
        read_graph(tmp_path / "none.parquet")
    path = write(tmp_path, "a.csv", "p,q\n1,2\n")
    bad: list[dict[str, Any]] = [
        {"format": "excel"},
        {"columns": ("p",)},
        {"columns": ("p", "p")},
        {"columns": ("p", "z")},
        {"columns": (0, 2)},
        {"columns": (0, -1)},
        {"columns": (False, True)},
        {"columns": "pq"},
        {"columns": ("p", "q"), "header": False},
        {"header": "yes"},
        {"strip": "yes"},
        {"case": "title"},
        {"name": 3},
    ]
    for options in bad:
        with pytest.raises(ArgumentError):
            read_graph(path, **options)
    with pytest.raises(ArgumentError):
        read_graph(3)  # type: ignore[arg-type]


def test_a_gzip_bomb_of_a_name_is_no_matter(tmp_path: Path) -> None:
    """Compression is known by content: a plain file called .gz, a gzip file called .txt."""
    assert len(read_graph(write(tmp_path, "a.txt.gz", "1 2\n"))) == 1
    assert len(read_graph(write(tmp_path, "a.txt", gzip.compress(b"1 2\n", mtime=0)))) == 1
    two = gzip.compress(b"1 2\n", mtime=0) + gzip.compress(b"2 3\n", mtime=0)
    assert len(read_graph(write(tmp_path, "b.txt.gz", two))) == 2


@pytest.mark.parametrize("reader", ["pyarrow", "polars"])
def test_parquet(tmp_path: Path, reader: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if reader == "polars":
        monkeypatch.setattr(reading, "find_spec", lambda name: None)
    frame = pl.DataFrame({"t": [1, 2, 3], "source": [10, 9, 9], "target": [9, 10, 8]})
    frame.write_parquet(tmp_path / "a.parquet")
    graph = read_graph(tmp_path / "a.parquet")
    assert graph.universe.ids == ("8", "9", "10")
    assert graph.pairs.tolist() == [[0, 1], [1, 2]]
    assert graph.report.format == "parquet"
    assert graph.report.ignored == ("t",)
    frame.cast({"source": pl.String, "target": pl.String}).write_parquet(tmp_path / "b.pq")
    assert read_graph(tmp_path / "b.pq").pairs.tolist() == graph.pairs.tolist()
    (tmp_path / "no-suffix").write_bytes((tmp_path / "b.pq").read_bytes())
    assert read_graph(tmp_path / "no-suffix").universe == graph.universe
    with pytest.raises(EdgeError, match="row 1: id '10' is not in the universe of 10 nodes"):
        Silo.from_file(NodeUniverse.range(10), tmp_path / "a.parquet")
    assert Silo.from_file(NodeUniverse.range(11), tmp_path / "a.parquet").pairs.tolist() == [
        [8, 9],
        [9, 10],
    ]
    bad: list[tuple[dict[str, list[Any]], str]] = [
        ({"u": ["a", None], "v": ["b", "c"]}, "row 2: the id is missing"),
        ({"u": [1.0], "v": [2.0]}, "row 1: 1.0 is a float"),
        ({"u": ["a"], "v": [""]}, "row 1: an empty id"),
        ({"u": ["a"], "v": [" b"]}, "row 1: id ' b' begins or ends with white space"),
        ({"x": [1], "y": [2], "z": [3]}, "3 columns .*pass columns="),
        ({"u": [], "v": []}, "only a header"),
    ]
    for columns, message in bad:
        pl.DataFrame(columns).write_parquet(tmp_path / "bad.parquet")
        with pytest.raises(EdgeError, match=message):
            read_graph(tmp_path / "bad.parquet")
    damaged = (tmp_path / "a.parquet").read_bytes()[:-20]
    (tmp_path / "bad.parquet").write_bytes(damaged)
    with pytest.raises(EdgeError, match="damaged or not readable as Parquet"):
        read_graph(tmp_path / "bad.parquet")


@pytest.mark.parametrize(
    ("text", "header"),
    [
        ("debtor_iban,creditor_iban\nDE12,FR34\nDE12,NL99\n", ("debtor_iban", "creditor_iban")),
        ("buyer,seller\nx-1,x-2\nx-2,x-3\nx-7,x-9\n", ("buyer", "seller")),
        ("von,nach\nBERN01,ROMA02\nROMA02,OSLO03\nOSLO03,BERN01\n", ("von", "nach")),
        ("ada,bob\nbob,cleo\ncleo,ada\ndora,bob\n", None),
        ("n1,n2\nn3,n4\nn5,n6\nn7,n8\n", None),
    ],
)
def test_names_that_no_list_has(tmp_path: Path, text: str, header: object) -> None:
    """Names of columns are of another kind than all ids below them."""
    (tmp_path / "a.csv").write_text(text)
    assert read_graph(tmp_path / "a.csv").report.header == header


def test_a_first_row_in_doubt(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("alice,bob\ncarol,dave\nerin,frank\ngrace,heidi\n")
    with pytest.raises(EdgeError, match=r"may be a header or an edge.*header=True or header=False"):
        read_graph(path)
    assert len(read_graph(path, header=False)) == 4
    assert len(read_graph(path, header=True)) == 3


@pytest.mark.parametrize("top", [1000, 1 << 20, 10**9, 1 << 32])
def test_many_rows_in_many_pieces(tmp_path: Path, top: int) -> None:
    rows = np.random.default_rng(top).integers(0, top, size=(50_000, 2))
    rows[40_000:40_100] = rows[:100, ::-1]  # the other direction, in a later piece
    rows[-1] = top - 1  # a loop, the only row of a node
    ends = ["\n", "\r\n", "\n# a comment\n", "\n\n", " \n"]
    lines = [f"{u}\t{v}{ends[place % 5]}" for place, (u, v) in enumerate(rows.tolist())]
    path = tmp_path / "edges.txt"
    path.write_text("".join(lines))
    graph = read_graph(path)
    ids, places = np.unique(rows, return_inverse=True)
    pairs = np.sort(places.reshape(-1, 2), axis=1)
    kept = pairs[pairs[:, 0] != pairs[:, 1]]
    distinct = np.array(sorted(set(map(tuple, kept.tolist()))))
    assert graph.universe.ids == tuple(map(str, ids.tolist()))
    assert np.array_equal(graph.pairs, distinct)
    assert graph.report.self_loops == len(pairs) - len(kept)
    assert graph.report.repeats == len(kept) - len(distinct) >= 100
    assert graph.report.comments == 10_000
    assert np.array_equal(Silo.from_file(graph.universe, path).pairs, distinct)
    path.write_text("".join(lines) + "1\n" + "".join(lines))
    with pytest.raises(EdgeError, match=rf"edges.txt:{50_000 + 20_000 + 1}: 1 field"):
        read_graph(path)


def test_a_file_that_is_cut_while_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "edges.txt"
    path.write_text("1 2\n" * 100)
    text = open_text(path)
    path.write_text("1 2\n")
    with pytest.raises(LineError) as caught:
        text.graph(False, None, (None, 2, 0, 1, False, None))
    assert str(line_fault("edges.txt", caught.value)).startswith("edges.txt: cannot be read: ")
