"""Files of groups."""

import gzip
from pathlib import Path

import pytest

from silograph import NodeUniverse
from silograph.errors import UniverseError
from silograph.graph.attributes import read_groups, universe_with


def written(tmp_path: Path, text: str, name: str = "g.csv") -> Path:
    path = tmp_path / name
    path.write_text(text)
    return path


def test_headers(tmp_path: Path) -> None:
    body = "a,x\nb,y\n"
    assert read_groups(written(tmp_path, body)) == {"a": "x", "b": "y"}
    assert read_groups(written(tmp_path, "Node,Branch,more\n" + body)) == {"a": "x", "b": "y"}
    known = NodeUniverse(["a", "b", "node"])
    assert read_groups(written(tmp_path, "iban,Branch\n" + body), known) == {"a": "x", "b": "y"}
    # An id that is called like a header is one, if the list says so.
    assert read_groups(written(tmp_path, "node,z\n" + body), known)["node"] == "z"


def test_formats(tmp_path: Path) -> None:
    assert read_groups(written(tmp_path, "a\tx y\n", "g.tsv")) == {"a": "x y"}
    packed = tmp_path / "g.csv.gz"
    packed.write_bytes(gzip.compress(b'\xef\xbb\xbf"a,1",x\n\n'))
    assert read_groups(packed) == {"a,1": "x"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a,x\nb\n", "g.csv:2: one column"),
        ("a,x\na,y\n", "g.csv:2: id 'a' is in group 'x' and in 'y'"),
        ("", "no groups"),
    ],
)
def test_what_is_refused(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(UniverseError, match=said):
        read_groups(written(tmp_path, text))
    with pytest.raises(UniverseError, match="cannot be read"):
        read_groups(tmp_path / "absent.csv")


def test_the_node_list_of_a_file() -> None:
    made = NodeUniverse(["9", "10", "2"])
    assert universe_with(["9", "10", "2"], made.digest) == made
    ordered = NodeUniverse(["2", "9", "10"])
    assert universe_with(["10", "9", "2"], ordered.digest) == ordered
    assert universe_with(["9", "2"], made.digest) is None
