"""Snapshots: the same edges again, or an error; nothing that nobody needs."""

import stat
from pathlib import Path

import numpy as np
import pytest

from silograph.errors import StoreError
from silograph.graph.silo import Silo
from silograph.graph.universe import NodeUniverse
from silograph.party.snapshots import Snapshots

NODES = NodeUniverse.range(6)
OLD = Silo.from_pairs(NODES, [[0, 1], [4, 5], [1, 2]], name="north")
NEW = Silo.from_pairs(NODES, [[0, 1]], name="north")


def test_the_edges_of_an_earlier_start(tmp_path: Path) -> None:
    folder = tmp_path / "snapshots"
    old = Snapshots(folder, OLD)
    assert old.silo(old.digest) is OLD
    new = Snapshots(folder, NEW)
    assert new.silo(new.digest) is NEW
    again = new.silo(old.digest)
    assert again == OLD
    assert np.array_equal(again.pairs, OLD.pairs)
    assert again.name == "north"
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_no_edges(tmp_path: Path) -> None:
    none = Silo.from_pairs(NODES, np.empty((0, 2), dtype=np.int64))
    digest = Snapshots(tmp_path / "s", none).digest
    assert len(Snapshots(tmp_path / "s", OLD).silo(digest)) == 0


def test_the_digest_is_of_edges_and_nodes(tmp_path: Path) -> None:
    other = Silo.from_pairs(NodeUniverse.range(7), OLD.pairs)
    same = Silo.from_pairs(NODES, OLD.pairs[::-1], name="another name")
    found = [Snapshots(tmp_path / "s", silo).digest for silo in (OLD, NEW, other, same)]
    assert len(set(found)) == 3
    assert found[0] == found[3]


def test_what_no_run_needs_is_removed(tmp_path: Path) -> None:
    folder = tmp_path / "s"
    old, new = Snapshots(folder, OLD).digest, Snapshots(folder, NEW)
    new.drop_except({old})
    assert [path.name for path in folder.iterdir()] == [f"{old}.npy"]
    new.drop_except(())
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("content", [None, b"", b"garbage", "cut", "other"])
def test_missing_or_damaged(tmp_path: Path, content: bytes | str | None) -> None:
    folder = tmp_path / "s"
    old, new = Snapshots(folder, OLD).digest, Snapshots(folder, NEW)
    path = folder / f"{old}.npy"
    match content:
        case None:
            path.unlink()
        case "cut":
            path.write_bytes(path.read_bytes()[:-4])
        case "other":
            path.write_bytes((folder / f"{new.digest}.npy").read_bytes())
        case bytes():
            path.write_bytes(content)
    with pytest.raises(StoreError, match="the edges that the run began with") as caught:
        new.silo(old)
    assert old not in str(caught.value)  # whoever knows it can check a guess
    assert Snapshots(folder, OLD).digest == old  # written anew
    assert new.silo(old) == OLD


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "s").write_text("a file")
    with pytest.raises(StoreError, match=r"cannot be made|cannot be written"):
        Snapshots(tmp_path / "s", OLD)


OPEN = NodeUniverse.open(case="lower")


def test_an_open_universe(tmp_path: Path) -> None:
    """The ids are kept with the pairs; any id, even with a line separator of Unicode in it."""
    old = Silo.from_edges(
        OPEN, [("Ada", "bob"), ("x\u2028y", "a\x85b"), ("7", "bob")], name="north"
    )
    edges = [("Ada", "bob"), ("x\u2028y", "a\x85c"), ("7", "bob")]
    other = Silo.from_edges(OPEN, edges, name="north")
    assert np.array_equal(old.pairs, other.pairs)
    folder = tmp_path / "s"
    first = Snapshots(folder, old).digest
    new = Snapshots(folder, other)
    assert new.digest != first
    again = new.silo(first)
    assert again == old
    assert (again.name, again.universe.is_open) == ("north", True)
    none = Snapshots(folder, Silo.from_edges(OPEN, [])).digest
    assert len(new.silo(none)) == 0


def test_ids_of_an_open_universe_that_were_changed(tmp_path: Path) -> None:
    old = Silo.from_edges(OPEN, [("ada", "bob")])
    first = Snapshots(tmp_path / "s", old).digest
    new = Snapshots(tmp_path / "s", Silo.from_edges(OPEN, []))
    path = tmp_path / "s" / f"{first}.npy"
    content = path.read_bytes()
    for damaged in (
        content.replace(b"bob", b"bo\xff"),
        content.replace(b"bob", b"eve"),
        content[:-4],
    ):
        path.write_bytes(damaged)
        with pytest.raises(StoreError, match="are damaged"):
            new.silo(first)
