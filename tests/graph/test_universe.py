"""The node universe: ids, order, digest, files, comparison."""

import copy
import gzip
import hashlib
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from silograph.errors import ArgumentError, UniverseError
from silograph.graph import NodeUniverse

ids = st.text(
    st.characters(exclude_characters="\n\r\0", exclude_categories=["Cs"]), min_size=1, max_size=8
) | st.integers(-5, 10**20).map(str)
lists = st.lists(ids, unique=True, max_size=30)


def reference_digest(ids: list[str], strip: bool = False, case: str | None = None) -> str:
    """The digest by its definition, written down a second time."""
    normal = f"strip={int(strip)};case={case or 'none'}".encode()
    parts = [b"silograph/node-universe/v1\0", len(ids).to_bytes(8, "little")]
    for text in [normal, *(id_.encode() for id_ in ids)]:
        parts += [len(text).to_bytes(4, "little"), text]
    return hashlib.sha256(b"".join(parts)).hexdigest()


def test_golden_digest() -> None:
    universe = NodeUniverse(["ada", "bob", 7])
    assert universe.digest == "1651497983b8fa3661fd7cc6156fd39acc66b82a85dc49ef1bd775ca3ef0e255"
    assert (
        NodeUniverse.range(1000).digest
        == "5692c75a5ac4b730bbfac4f0be28d1ccd4c044c01a88316389fd691aef7cf65f"
    )


@given(lists)
def test_digest_follows_its_definition(ids: list[str]) -> None:
    universe = NodeUniverse(ids)
    assert universe.digest == reference_digest(ids)
    assert universe.ids == tuple(universe) == tuple(ids)
    assert [universe.index(id_) for id_ in ids] == list(range(len(ids)))
    assert [universe.id(position) for position in range(len(ids))] == ids


def test_digest_covers_order_boundaries_and_normalisation() -> None:
    lists: list[dict[str, Any]] = [
        {"ids": ["a", "b"]},
        {"ids": ["b", "a"]},
        {"ids": ["ab"]},
        {"ids": ["a", "b", "c"]},
        {"ids": ["a", "b"], "strip": True},
        {"ids": ["a", "b"], "case": "lower"},
        {"ids": []},
    ]
    universes = [NodeUniverse(**options) for options in lists]
    assert len({universe.digest for universe in universes}) == len(lists)
    assert len(set(universes)) == len(lists)


@pytest.mark.slow
@pytest.mark.parametrize("n", [0, 1, 2, 10, 65_536, 65_537, 200_000])
def test_range_is_the_list(n: int) -> None:
    universe = NodeUniverse.range(n)
    assert len(universe) == n
    assert universe.digest == reference_digest([str(id_) for id_ in range(n)])
    assert universe == NodeUniverse(range(n)) == NodeUniverse(np.arange(n))
    assert hash(universe) == hash(NodeUniverse(range(n)))
    assert n not in universe
    assert -1 not in universe
    assert "00" not in universe
    if n:
        assert universe.index(n - 1) == universe.index(str(n - 1)) == n - 1
        assert universe.id(n - 1) == str(n - 1)


def test_ids_are_text() -> None:
    universe = NodeUniverse([7, "007", np.int64(8), -3, "é", 10**30, np.str_("x")])
    assert universe.ids == ("7", "007", "8", "-3", "é", str(10**30), "x")
    assert universe.index("7") == universe.index(7) == universe.index(np.uint8(7)) == 0
    assert universe.index(-3) == 3
    assert 7.0 not in universe
    assert True not in NodeUniverse([1])
    assert None not in universe
    assert "\ud800" not in universe


def test_normalisation_is_owned_by_the_universe() -> None:
    universe = NodeUniverse([" Ada", "BOB\t"], strip=True, case="lower")
    assert universe.ids == ("ada", "bob")
    assert universe.index("ADA ") == 0
    assert (universe.strip, universe.case) == (True, "lower")
    assert NodeUniverse(["straße"], case="upper").ids == ("STRASSE",)


@pytest.mark.parametrize(
    ("ids", "options", "message"),
    [
        (["a", "b", "a"], {}, "id 'a' is at position 0 and again at position 2"),
        ([7, "7"], {}, "id '7' is at position 0 and again at position 1"),
        (np.array([3, 4, 3]), {}, "id '3' is at position 0 and again at position 2"),
        (
            ["x", "Ada ", "ada"],
            {"strip": True, "case": "lower"},
            r"ids 'Ada ' \(position 1\) and 'ada' \(position 2\) become the same by "
            "strip=True and case='lower'",
        ),
        (["a", ""], {}, "position 1: id '' is empty"),
        (["  "], {"strip": True}, "position 0: id '  ' is empty after strip"),
        (["a", "b\nc"], {}, r"position 1: id 'b\\nc' has a line break or a NUL"),
        (["a\0"], {}, r"position 0: id 'a\\x00' has a line break or a NUL"),
        (["a", 1.0], {}, "position 1: 1.0 is a float"),
        (["a", np.float32(1)], {}, "position 1: .* is a float"),
        (np.array([1.0]), {}, "position 0: .* is a float"),
        ([True], {}, "position 0: 'True' is of type bool"),
        ([None], {}, "position 0: the id is missing"),
        ([float("nan")], {}, "position 0: the id is missing"),
        ([b"a"], {}, "position 0: .* is of type bytes"),
        (["\ud800"], {}, "position 0: .* is not valid Unicode"),
        (np.array([[1, 2]]), {}, "array of 2 dimensions"),
    ],
)
def test_bad_ids(ids: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(UniverseError, match=message):
        NodeUniverse(ids, **options)


@pytest.mark.parametrize(
    ("ids", "options"),
    [("abc", {}), (5, {}), (None, {}), (["a"], {"strip": 1}), (["a"], {"case": "Lower"})],
)
def test_bad_arguments(ids: Any, options: dict[str, Any]) -> None:
    with pytest.raises(ArgumentError):
        NodeUniverse(ids, **options)


def test_limits() -> None:
    assert len(NodeUniverse.range(2**32 - 1)) == 2**32 - 1
    with pytest.raises(UniverseError, match=r"at most 2\^32 − 1"):
        NodeUniverse.range(2**32)
    for n in (-1, 1.5, True, "3"):
        with pytest.raises(ArgumentError):
            NodeUniverse.range(n)  # type: ignore[arg-type]
    with pytest.raises(UniverseError, match="'z' is not in the universe of 2 nodes"):
        NodeUniverse(["a", "b"]).index("z")
    with pytest.raises(ArgumentError, match="position 2"):
        NodeUniverse(["a", "b"]).id(2)


def test_immutable_and_portable() -> None:
    universe = NodeUniverse(["b", "a"], strip=True)
    with pytest.raises(AttributeError):
        universe._strip = False
    with pytest.raises(AttributeError):
        del universe._table
    assert copy.deepcopy(universe) is copy.copy(universe) is universe
    again = pickle.loads(pickle.dumps(universe))  # noqa: S301
    assert again == universe
    assert again.strip
    assert universe != "ab"
    assert repr(universe) == "<NodeUniverse of 2 nodes: 'b', 'a', strip=True>"
    assert repr(NodeUniverse.range(10**6)) == (
        "<NodeUniverse of 1,000,000 nodes: '0', '1', …, '999999'>"
    )


@settings(max_examples=50)
@given(lists, st.booleans())
def test_files_round_trip(
    tmp_path_factory: pytest.TempPathFactory, ids: list[str], strip: bool
) -> None:
    path = tmp_path_factory.mktemp("universe") / "nodes.txt"
    try:
        universe = NodeUniverse(ids, strip=strip)
    except UniverseError:
        return  # two ids became the same
    universe.save(path)
    again = NodeUniverse.from_file(path)
    assert again == universe
    assert again.ids == universe.ids


def test_saved_files_are_readable_and_whole(tmp_path: Path) -> None:
    path = tmp_path / "nodes.txt"
    universe = NodeUniverse(["ada", " bob "], case="lower")
    universe.save(path)
    first, *rest = path.read_text().splitlines()
    assert first == (f"# silograph-universe v1 n=2 strip=false case=lower sha256={universe.digest}")
    assert rest == ["ada", " bob "]
    NodeUniverse.range(3).save(path)
    assert NodeUniverse.from_file(path) == NodeUniverse.range(3)
    assert [file.name for file in tmp_path.iterdir()] == ["nodes.txt"]
    packed = tmp_path / "nodes.txt.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert NodeUniverse.from_file(packed) == NodeUniverse.range(3)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: text.replace("bob", "eve"), "damaged: the 2 ids"),
        (lambda text: text + "eve\n", "damaged: the 3 ids"),
        (lambda text: text.replace("bob\n", ""), "damaged: the 1 ids"),
        (lambda text: text.replace("bob", "ada"), "damaged: id 'ada'"),
        (lambda text: text.replace(" v1 ", " v2 "), ":1: a universe file of another version"),
        (lambda text: text.replace("n=2", "n=3"), "damaged"),
        (lambda text: text.replace("case=none", "case=lower"), "damaged"),
        (lambda text: text.replace("n=2", f"n={10**30}"), ":1: a universe file of another"),
        (lambda text: text.replace("bob", "b\0b"), ":3: a NUL byte"),
    ],
)
def test_damaged_files(tmp_path: Path, change: Any, message: str) -> None:
    path = tmp_path / "nodes.txt"
    NodeUniverse(["ada", "bob"]).save(path)
    path.write_text(change(path.read_text()))
    with pytest.raises(UniverseError, match=message):
        NodeUniverse.from_file(path)


def test_conflicting_normalisation_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "nodes.txt"
    NodeUniverse(["ada"], case="lower").save(path)
    assert NodeUniverse.from_file(path, case="lower").case == "lower"
    with pytest.raises(UniverseError, match="saved with strip=False, case='lower'"):
        NodeUniverse.from_file(path, strip=True)


@pytest.mark.parametrize(
    ("name", "content", "options", "expected"),
    [
        ("a.txt", "b\r\na b\n\n7\n", {}, ("b", "a b", "7")),
        ("a.txt", "\ufeffb\na", {}, ("b", "a")),
        ("a.txt", "node\nb\n", {}, ("node", "b")),
        ("a.txt", "node\nb\n", {"header": True}, ("b",)),
        ("a.txt", " B \nc\n", {"strip": True, "case": "lower"}, ("b", "c")),
        ("a.csv", "id\n3\n1\n", {}, ("3", "1")),
        ("a.csv", "x\n3\n1\n", {}, ("3", "1")),
        ("a.csv", "x\n3\n1\n", {"header": False}, ("x", "3", "1")),
        ("a.csv", 'name,id\n"Ada, L.",3\nBob,1\n', {"column": "name"}, ("Ada, L.", "Bob")),
        ("a.csv", "city,id\nBonn,3\nUlm,1\n", {}, ("3", "1")),
        ("a.csv", "Ada,3\nBob,1\n", {"column": 0}, ("Ada", "Bob")),
        ("a.tsv", "Ada L\t3\nBob\t1\n", {"column": 0}, ("Ada L", "Bob")),
        ("a.txt", "x y\n1 2\n3 4\n", {"column": "y"}, ("2", "4")),
    ],
)
def test_lists_and_tables(
    tmp_path: Path, name: str, content: str, options: dict[str, Any], expected: tuple[str, ...]
) -> None:
    (tmp_path / name).write_bytes(content.encode())
    assert NodeUniverse.from_file(tmp_path / name, **options).ids == expected
    packed = tmp_path / f"{name}.gz"
    packed.write_bytes(gzip.compress(content.encode()))
    assert NodeUniverse.from_file(packed, **options).ids == expected


@pytest.mark.parametrize(
    ("name", "content", "options", "message"),
    [
        ("a.txt", b"", {}, "there are no ids in it"),
        ("a.txt", b"a\na\n", {}, "a.txt: id 'a' is at position 0 and again at position 1"),
        ("a.txt", b"a\n\xff\n", {}, "a.txt:2: bytes that are not UTF-8"),
        ("a.csv", b"a,b\n1,2\n", {}, "2 columns .*pass column="),
        ("a.csv", b"id,b\n1\n", {}, "a.csv:2: 1 field, where the first row has 2"),
    ],
)
def test_bad_lists(
    tmp_path: Path, name: str, content: bytes, options: dict[str, Any], message: str
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UniverseError, match=message):
        NodeUniverse.from_file(tmp_path / name, **options)


def test_bad_columns_and_missing_files(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("id,b\n1,2\n")
    for column in ("c", 2, -1, True):
        with pytest.raises(ArgumentError):
            NodeUniverse.from_file(path, column=column)
    with pytest.raises(UniverseError, match="there is no such file"):
        NodeUniverse.from_file(tmp_path / "none.txt")
    with pytest.raises(UniverseError, match="is a folder"):
        NodeUniverse.from_file(tmp_path)


def test_from_edge_files(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("10 9\n9 100\n")
    (tmp_path / "b.csv").write_text("source,target\n9,8\n11,11\n")
    both = NodeUniverse.from_edge_files(tmp_path / "a.txt", tmp_path / "b.csv")
    assert both.ids == ("8", "9", "10", "11", "100")
    assert NodeUniverse.from_edge_files(tmp_path / "a.txt").ids == ("9", "10", "100")
    (tmp_path / "c.csv").write_text("source,target\nB, a\n")
    mixed = NodeUniverse.from_edge_files(
        tmp_path / "a.txt", tmp_path / "c.csv", strip=True, case="lower"
    )
    assert mixed.ids == ("10", "100", "9", "a", "b")
    assert mixed.case == "lower"
    with pytest.raises(ArgumentError):
        NodeUniverse.from_edge_files()


def test_compare() -> None:
    here = NodeUniverse(["a", "b", "c", "d", "e", "f"])
    same = here.compare(NodeUniverse(list("abcdef")))
    assert same
    assert str(same) == "the same universe of 6 nodes"
    other = here.compare(NodeUniverse(["f", "x", "e"], strip=True))
    assert not other
    assert (other.only_here, other.only_there) == (4, 1)
    assert other.examples_here == ("a", "b", "c")
    assert other.order_differs
    assert other.normalisation_differs
    assert str(other) == (
        "different universes: 6 nodes here, 3 there\n"
        "  only here: 4 ('a', 'b', 'c', …)\n"
        "  only there: 1 ('x')\n"
        "  the common ids are in another order\n"
        "  the normalisation (strip, case) is different"
    )
    assert not here.compare(NodeUniverse(["a", "c", "e"])).order_differs


# --- Open universes -------------------------------------------------------------------------------

FORMS: list[dict[str, Any]] = [
    {"strip": strip, "case": case} for strip in (False, True) for case in (None, "lower", "upper")
]


@pytest.mark.parametrize("form", FORMS)
def test_an_open_universe_everywhere(tmp_path: Path, form: dict[str, Any]) -> None:
    universe = NodeUniverse.open(**form)
    listed = NodeUniverse(["a", "b"] if form["case"] != "upper" else ["A", "B"], **form)
    assert universe.is_open
    assert not listed.is_open
    assert (universe.strip, universe.case) == (form["strip"], form["case"])
    assert universe.form == listed.form
    assert NodeUniverse._open_with(universe.form) == universe
    assert pickle.loads(pickle.dumps(universe)) == universe  # noqa: S301
    assert copy.copy(universe) is copy.deepcopy(universe) is universe
    assert (universe.size, universe.size_text) == (None, "open")
    assert (listed.size, listed.size_text) == (2, "2 nodes")
    universe.save(tmp_path / "open.txt")
    assert NodeUniverse.from_file(tmp_path / "open.txt") == universe
    assert len((tmp_path / "open.txt").read_text().splitlines()) == 1
    normal = universe.form.encode()
    content = b"silograph/open-universe/v1\0" + len(normal).to_bytes(4, "little") + normal
    assert universe.digest == hashlib.sha256(content).hexdigest()


def test_open_universes_differ_by_their_form() -> None:
    universes = [NodeUniverse.open(**form) for form in FORMS]
    universes += [NodeUniverse([], **form) for form in FORMS]
    assert len(set(universes)) == len({universe.digest for universe in universes}) == 12
    assert repr(universes[0]) == "<open NodeUniverse>"
    assert repr(NodeUniverse.open(strip=True, case="lower")) == (
        "<open NodeUniverse: strip=True, case='lower'>"
    )


def test_an_open_universe_has_no_list() -> None:
    universe = NodeUniverse.open()
    assert universe  # although it has no length
    needs: list[Any] = [
        len,
        list,
        lambda it: it.ids,
        lambda it: it.id(0),
        lambda it: it.index("a"),
    ]
    for need in needs:
        with pytest.raises(UniverseError, match="an open universe has no list of nodes"):
            need(universe)


def test_ids_of_an_open_universe() -> None:
    universe = NodeUniverse.open()
    assert all(id_ in universe for id_ in ["a", 7, "007", "a b", "é"])
    assert not any(id_ in universe for id_ in ["", " a", "a\n", "\0", None, 1.5, "\ud800"])
    assert " a" in NodeUniverse.open(strip=True)
    assert "  " not in NodeUniverse.open(strip=True)


def test_compare_open_universes() -> None:
    universe, listed = NodeUniverse.open(), NodeUniverse(["a"])
    assert universe.compare(NodeUniverse.open())
    assert str(universe.compare(universe)) == "both are open"
    found = universe.compare(listed)
    assert not found
    assert found.sizes == (None, 1)
    assert not found.normalisation_differs
    assert str(found) == "different universes: open here, 1 there"
    assert str(listed.compare(NodeUniverse.open(strip=True))) == (
        "different universes: 1 nodes here, open there\n"
        "  the normalisation (strip, case) is different"
    )


@pytest.mark.parametrize(
    "form",
    ["", "strip=1", "strip=2;case=none", "strip=1;case=Lower", "strip=1;case=none\n", None, b""],
)
def test_a_form_in_another_spelling(form: Any) -> None:
    with pytest.raises(UniverseError, match="is not a form of identifiers"):
        NodeUniverse._open_with(form)


@pytest.mark.parametrize(
    ("old", "new"),
    [("strip=false", "strip=true"), ("\n", "\na\n"), ("open", "n=0"), ("sha256=", "sha256=f")],
)
def test_damaged_file_of_an_open_universe(tmp_path: Path, old: str, new: str) -> None:
    path = tmp_path / "open.txt"
    NodeUniverse.open().save(path)
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(UniverseError, match="damaged"):
        NodeUniverse.from_file(path)


def test_options_of_an_open_universe(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError):
        NodeUniverse.open(strip=1)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError):
        NodeUniverse.open(case="title")  # type: ignore[arg-type]
    NodeUniverse.open(case="lower").save(tmp_path / "open.txt")
    with pytest.raises(UniverseError, match="leave both out"):
        NodeUniverse.from_file(tmp_path / "open.txt", strip=True)
