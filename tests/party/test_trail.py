"""The audit trail: on the disk at once, only added to, and a change of the past shows."""

import json
import multiprocessing
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from silograph.errors import PayloadError, StoreError, TrailError
from silograph.party.store import Store
from silograph.party.trail import NOTHING, Mark, Trail

RUN = bytes(range(16))
MOMENT = datetime(2031, 5, 6, 7, 8, 9, 123456, tzinfo=UTC)
COLUMNS = ("number", "time", "event", "content", "chain")
Row = tuple[Any, ...]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    made = Store(tmp_path / "store.db", "north")
    yield made
    made.close()


@pytest.fixture
def trail(store: Store) -> Trail:
    return Trail(store, MOMENT.timestamp)


def fill(trail: Trail, entries: int) -> Mark:
    for i in range(entries):
        mark = trail.left(RUN, "upload", i, i)
    return mark


def rows(store: Store) -> list[Row]:
    with closing(sqlite3.connect(store.path)) as raw:
        return raw.execute("SELECT * FROM trail ORDER BY number").fetchall()


def put(store: Store, found: list[Row]) -> None:
    """Another table in the trail's place, without triggers and checks."""
    with closing(sqlite3.connect(store.path)) as raw:
        raw.execute("DROP TABLE trail")
        raw.execute("CREATE TABLE trail (number INTEGER PRIMARY KEY, time, event, content, chain)")
        raw.executemany("INSERT INTO trail VALUES (?, ?, ?, ?, ?)", found)
        raw.commit()


class TestEntries:
    def test_golden(self, trail: Trail, store: Store) -> None:
        trail.decided(RUN, "policy", "accepted")
        mark = trail.ended(RUN, "done")
        assert rows(store) == [
            (1, "2031-05-06T07:08:09.123+00:00", "study.decided",
             '{"run":"000102030405060708090a0b0c0d0e0f","by":"policy","code":"accepted"}',
             "e96c8bef374f9052b1a62b258c779be402465cc797b00bbdb0f1f6c233699f85"),
            (2, "2031-05-06T07:08:09.123+00:00", "run.ended",
             '{"run":"000102030405060708090a0b0c0d0e0f","state":"done"}',
             "81335e53f8c1353b5c37dca8d0279e86f2fe8c625b4a97d3cef1d76b33c96f11"),
        ]  # fmt: skip
        assert str(mark) == f"2:{rows(store)[1][4]}"

    def test_a_runs_story(self, trail: Trail) -> None:
        trail.proposed(
            RUN, "hub", bytes(32), method="feat", protocol="masked", epsilon=1.0, deadline=MOMENT
        )
        trail.decided(RUN, "policy", "accepted")
        trail.spent(RUN, "claims", 1.25, 0.0, 1, 7, bytes(32))
        trail.left(RUN, "upload", 12, 25_165_824)
        mark = trail.ended(RUN, "aborted", PayloadError("a chunk is short"))
        found = list(trail.entries())
        assert [(e["number"], e["event"]) for e in found] == list(
            enumerate(
                ["study.proposed", "study.decided", "budget.spent", "house.left", "run.ended"], 1
            )
        )
        assert {e["run"] for e in found} == {RUN.hex()}
        assert found[-1] == {
            "number": 5,
            "time": "2031-05-06T07:08:09.123+00:00",
            "event": "run.ended",
            "run": RUN.hex(),
            "state": "aborted",
            "error": "PayloadError",
            "reason": "a chunk is short",
            "chain": mark.chain,
        }

    def test_only_listed_values(self, trail: Trail) -> None:
        with pytest.raises(TrailError, match="may not stand in field 'by'") as caught:
            trail.decided(RUN, "two\nlines", "accepted")
        assert "lines" not in str(caught.value)
        assert list(trail.entries()) == []

    def test_an_error_is_told_by_its_name(self, trail: Trail, store: Store) -> None:
        trail.ended(RUN, "aborted", ValueError("alice knows bob"))
        assert "alice" not in str(rows(store))


class TestWriting:
    def test_it_is_on_the_disk_before_the_call_returns(self, trail: Trail, store: Store) -> None:
        """Another connection sees it, and the commit was one that waits for the disk."""
        assert store.settings()["synchronous"] == 2
        for number in range(1, 4):
            trail.ended(RUN, "done")
            assert len(rows(store)) == number

    def test_together_with_what_it_tells_of(self, trail: Trail, store: Store) -> None:
        store.add(RUN.hex(), b"proposal")

        def fail() -> None:
            with store.together():
                trail.decided(RUN, "policy", "accepted")
                store.mark_phase("ab" * 16, "keys")

        with pytest.raises(StoreError, match="not known"):
            fail()
        assert rows(store) == []
        with store.together():
            trail.decided(RUN, "policy", "accepted")
            store.accept(RUN.hex(), "policy", bytes(32))
            assert rows(store) == []
        assert len(rows(store)) == 1

    @pytest.mark.parametrize(
        "change",
        [
            "UPDATE trail SET content = '{}'",
            "DELETE FROM trail WHERE number = 3",
            "INSERT INTO trail SELECT 9, time, event, content, chain FROM trail WHERE number = 3",
            "INSERT INTO trail SELECT -1, time, event, content, chain FROM trail WHERE number = 3",
            "INSERT INTO trail (time, event, content, chain) VALUES ('', '', '', '')",
            "REPLACE INTO trail SELECT 2, time, event, content, chain FROM trail WHERE number = 3",
        ],
    )
    def test_it_is_only_added_to(self, trail: Trail, store: Store, change: str) -> None:
        fill(trail, 3)
        before = rows(store)
        with (
            closing(sqlite3.connect(store.path)) as raw,
            pytest.raises(sqlite3.IntegrityError, match="a trail is"),
        ):
            raw.execute(change)
        assert rows(store) == before

    def test_a_command_beside_a_service(self, trail: Trail, store: Store) -> None:
        with closing(Store(store.path, None)) as beside:
            other = Trail(beside)
            for _ in range(3):
                trail.decided(RUN, "one", "accepted")
                other.decided(RUN, "two", "accepted")
            assert [entry["by"] for entry in other.entries()] == ["one", "two"] * 3

    @pytest.mark.slow
    def test_many_processes(self, trail: Trail, store: Store) -> None:
        context = multiprocessing.get_context("forkserver")
        children = [context.Process(target=_write, args=(store.path, own)) for own in range(4)]
        for child in children:
            child.start()
        for child in children:
            child.join()
        assert trail.verify().number == 120
        found = list(trail.entries())
        for own in range(4):
            assert [e["messages"] for e in found if e["bytes"] == own] == list(range(30))


def _write(path: Path, own: int) -> None:
    with closing(Store(path, "north")) as store:
        trail = Trail(store)
        for i in range(30):
            trail.left(RUN, "upload", i, own)


class TestChain:
    @pytest.fixture
    def lines(self, trail: Trail, store: Store) -> list[Row]:
        fill(trail, 5)
        return rows(store)

    def broken(self, trail: Trail, store: Store, lines: list[Row], entry: int, said: str) -> None:
        put(store, lines)
        with pytest.raises(TrailError, match=rf"store\.db: entry {entry}\b.*{said}"):
            trail.verify()

    def test_whole(self, trail: Trail, lines: list[Row]) -> None:
        head = trail.verify()
        assert head == Mark(5, lines[-1][4])
        for number, *_, chain in lines:
            assert trail.verify(Mark(number, chain)) == head

    def test_empty(self, trail: Trail) -> None:
        nothing = Mark(0, NOTHING)
        assert trail.verify() == trail.verify(nothing) == nothing
        with pytest.raises(TrailError, match=r"entry 1 with chain .* is not in it"):
            trail.verify(Mark(1, NOTHING))

    def test_removed(self, trail: Trail, store: Store, lines: list[Row]) -> None:
        for i in range(4):
            self.broken(trail, store, lines[:i] + lines[i + 1 :], i + 2, "removed or moved")

    def test_slipped_in(self, trail: Trail, store: Store, lines: list[Row]) -> None:
        self.broken(trail, store, [(0, *lines[0][1:]), *lines], 0, "removed or moved")
        self.broken(trail, store, [*lines, (6, *lines[4][1:])], 6, "was changed")

    def test_changed(self, trail: Trail, store: Store, lines: list[Row]) -> None:
        for column in range(1, 5):
            for other in ("", "{}", None, 7, b"\xff", lines[2][column] + " "):
                row = tuple(other if i == column else v for i, v in enumerate(lines[2]))
                self.broken(trail, store, [*lines[:2], row, *lines[3:]], 3, "was changed")

    def test_moved_and_numbered_anew(self, trail: Trail, store: Store, lines: list[Row]) -> None:
        swapped = [*lines[:2], (3, *lines[3][1:]), (4, *lines[2][1:]), lines[4]]
        self.broken(trail, store, swapped, 3, "was changed")
        closed = [*lines[:2], *((row[0] - 1, *row[1:]) for row in lines[3:])]
        self.broken(trail, store, closed, 3, "was changed")

    def test_moved_between_columns(self, trail: Trail, store: Store, lines: list[Row]) -> None:
        """What is chained is where each part ends, too."""
        number, time, event, content, chain = lines[4]
        row = (number, time + event[:3], event[3:], content, chain)
        self.broken(trail, store, [*lines[:4], row], 5, "was changed")

    def test_spliced(self, trail: Trail, store: Store, lines: list[Row], tmp_path: Path) -> None:
        """An entry, or all from it on, of another trail in which it stood at the same place."""
        with closing(Store(tmp_path / "other.db", "north")) as other:
            for i in range(5):
                Trail(other, MOMENT.timestamp).left(bytes(16), "upload", i, i)
            theirs = rows(other)
        self.broken(trail, store, [*lines[:3], theirs[3], lines[4]], 4, "was changed")
        self.broken(trail, store, [*lines[:3], *theirs[3:]], 4, "was changed")

    def test_cut_off(self, trail: Trail, store: Store, lines: list[Row]) -> None:
        head = trail.verify()
        put(store, lines[:-1])
        assert trail.verify().number == 4
        with pytest.raises(TrailError, match=r"entry 5 with chain .* is not in it"):
            trail.verify(head)

    def test_a_whole_chain_of_something_else(self, trail: Trail, store: Store) -> None:
        """Who can write the file can chain anything; a reader is still given one error."""
        for content in ("", "[1]", "nothing", "[" * 100_000):
            put(store, [])
            with store.together() as connection:
                mark = _chain(b"t", b"e", content.encode())
                row = (1, "t", "e", content, mark)
                connection.execute("INSERT INTO trail VALUES (?, ?, ?, ?, ?)", row)
            with pytest.raises(TrailError, match="entry 1: not an entry of a trail"):
                trail.verify()

    @settings(
        max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
    )
    @given(data=st.data())
    def test_any_change_is_seen(
        self, trail: Trail, store: Store, lines: list[Row], data: st.DataObject
    ) -> None:
        place, column = data.draw(st.integers(0, 4)), data.draw(st.integers(1, 4))
        text = lines[place][column]
        at = data.draw(st.integers(0, len(text)))
        other = (
            text[:at] + data.draw(st.text(max_size=3)) + text[at + data.draw(st.integers(0, 3)) :]
        )
        row = (*lines[place][:column], other, *lines[place][column + 1 :])
        put(store, [*lines[:place], row, *lines[place + 1 :]])
        if other == text:
            assert trail.verify().number == 5
        else:
            with pytest.raises(TrailError, match=f"entry {place + 1}"):
                trail.verify()


def _chain(*parts: bytes) -> str:
    from silograph.party.trail import _chained

    return _chained(Mark(0, NOTHING), *parts).chain


def test_content_is_json(trail: Trail, store: Store) -> None:
    trail.spent(RUN, "Fälle", float("inf"), 1e-9, 1, 7, bytes(32))
    (row,) = rows(store)
    assert json.loads(row[3]) == {
        "run": RUN.hex(), "lineage": "Fälle", "epsilon": "unbounded", "delta": 1e-9,
        "collusion": 1, "serial": 7, "head": "00" * 32,
    }  # fmt: skip
