"""Journals: only what is listed is written, and what was written cannot be taken back unseen."""

import json
import math
import multiprocessing
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from silograph.errors import JournalError, PayloadError
from silograph.party.journal import (
    LONGEST_LINE,
    NOTHING,
    Journal,
    Mark,
    Trail,
    Verdict,
    entries,
    files_of,
    verify,
)

RUN = bytes(range(16))
SMALLEST = 2 * LONGEST_LINE


def clock() -> datetime:
    return datetime(2031, 5, 6, 7, 8, 9, 123456, tzinfo=UTC)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "silo.journal"


@pytest.fixture
def journal(path: Path) -> Journal:
    return Journal(path, clock=clock)


def fill(journal: Journal, lines: int) -> Mark:
    for i in range(lines):
        mark = journal.event("run.phase", run=RUN, phase="keys", sequence=i)
    return mark


class TestLines:
    def test_golden(self, journal: Journal, path: Path) -> None:
        journal.event("message.refused", level="warning", run=RUN, sender="north", code="order")
        first, second = path.read_text().splitlines()
        assert first == (
            '{"number":1,"time":"2031-05-06T07:08:09.123+00:00","level":"info",'
            f'"event":"journal.begins","format":1,"previous":"{NOTHING}",'
            '"chain":"64a34b07c49626cfe14553af8da17aa2a3c90bc018311bf9795530e443633785"}'
        )
        assert second == (
            '{"number":2,"time":"2031-05-06T07:08:09.123+00:00","level":"warning",'
            '"event":"message.refused","run":"000102030405060708090a0b0c0d0e0f",'
            '"sender":"north","code":"order",'
            '"chain":"01eb16b38df57b9b2a6facb63e7ef4d1ba81bddfee0a88871032533a4a004070"}'
        )

    def test_comes_back(self, journal: Journal, path: Path) -> None:
        mark = journal.event(
            "run.ended", run=RUN.hex(), study=bytes(32), epsilon=math.inf, delta=1e-9,
            lineage="Fälle 2031", deadline=clock(), seconds=1, phase=None,
        )  # fmt: skip
        *_, entry = entries(path)
        assert entry == {
            "number": 2,
            "time": "2031-05-06T07:08:09.123+00:00",
            "level": "info",
            "event": "run.ended",
            "run": RUN.hex(),
            "study": "00" * 32,
            "epsilon": "unbounded",
            "delta": 1e-9,
            "lineage": "Fälle 2031",
            "deadline": "2031-05-06T07:08:09.123+00:00",
            "seconds": 1.0,
            "chain": mark.chain,
        }

    def test_mode_0600_whatever_the_umask(self, journal: Journal, path: Path) -> None:
        before = os.umask(0)
        try:
            journal.event("x")
        finally:
            os.umask(before)
        assert {stat.S_IMODE(p.stat().st_mode) for p in path.parent.iterdir()} == {0o600}


class TestChain:
    @pytest.fixture
    def lines(self, journal: Journal, path: Path) -> list[bytes]:
        fill(journal, 5)
        return path.read_bytes().splitlines(keepends=True)

    def test_whole(self, path: Path, lines: list[bytes]) -> None:
        found = verify(path)
        assert (found.files, found.lines, found.first, found.head.number) == (1, 6, 1, 6)
        assert verify(path, found.head) == found
        assert json.loads(lines[-1])["chain"] == found.head.chain

    def broken(self, path: Path, lines: list[bytes], where: int, said: str) -> None:
        path.write_bytes(b"".join(lines))
        with pytest.raises(JournalError, match=f"{path.name}:{where}: .*{said}"):
            verify(path)

    def test_removed(self, path: Path, lines: list[bytes]) -> None:
        for i in range(1, 5):
            self.broken(path, lines[:i] + lines[i + 1 :], i + 1, "removed or moved")
        self.broken(path, lines[1:], 1, "first line is missing")

    def test_moved(self, path: Path, lines: list[bytes]) -> None:
        lines[2], lines[3] = lines[3], lines[2]
        self.broken(path, lines, 3, "removed or moved")

    def test_changed(self, path: Path, lines: list[bytes]) -> None:
        lines[3] = lines[3].replace(b'"sequence":2', b'"sequence":3')
        self.broken(path, lines, 4, "was changed")

    def test_numbered_anew(self, path: Path, lines: list[bytes]) -> None:
        later = [
            line.replace(b'"number":%d,' % (i + 2), b'"number":%d,' % (i + 1))
            for i, line in enumerate(lines[3:], 2)
        ]
        self.broken(path, [*lines[:2], *later], 3, "was changed")

    def test_spliced(self, path: Path, lines: list[bytes], tmp_path: Path) -> None:
        """A line, or all from it on, of another journal in which it stood at the same place."""
        other = Journal(tmp_path / "other", clock=clock)
        for i in range(5):
            other.event("run.phase", run=bytes(16), sequence=i)
        theirs = (tmp_path / "other").read_bytes().splitlines(keepends=True)
        self.broken(path, [*lines[:3], theirs[3], *lines[4:]], 4, "was changed")
        self.broken(path, [*lines[:3], *theirs[3:]], 4, "was changed")

    def test_cut_off(self, path: Path, lines: list[bytes]) -> None:
        head = verify(path).head
        path.write_bytes(b"".join(lines[:-1]))
        assert verify(path).head.number == 5
        with pytest.raises(JournalError, match=r"line 6 with chain .* is not in it"):
            verify(path, head)

    def test_of_another_version(self, path: Path, lines: list[bytes]) -> None:
        lines[0] = lines[0].replace(b'"format":1', b'"format":2')
        self.broken(path, lines, 1, "journal of version 2; this Silograph reads version 1")

    def test_a_file_within_a_file(self, path: Path, lines: list[bytes]) -> None:
        self.broken(path, lines + lines, 7, "begins within")

    def test_absent_and_empty(self, path: Path) -> None:
        with pytest.raises(JournalError, match="there is no journal"):
            verify(path)
        path.touch()
        with pytest.raises(JournalError, match="empty"):
            verify(path)

    @settings(
        max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
    )
    @given(data=st.data())
    def test_any_damage_is_seen(self, path: Path, lines: list[bytes], data: st.DataObject) -> None:
        whole = b"".join(lines)
        content = bytearray(whole)
        place = data.draw(st.integers(0, len(content) - 1))
        content[place : place + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=3))
        path.write_bytes(content)
        if content == whole:
            return
        head = Mark(6, json.loads(lines[-1])["chain"])
        with pytest.raises(JournalError):
            verify(path, head)

    @settings(max_examples=200, deadline=None)
    @given(st.binary(max_size=200) | st.lists(st.sampled_from([b'{"number":1,', b"\n", b"[" * 99,
           b'"chain":"' + b"0" * 64 + b'"}', b'"event":"journal.begins"', b'"format":1'])
           ).map(b"".join))  # fmt: skip
    def test_any_bytes(self, content: bytes) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "x")
            path.write_bytes(content)
            with pytest.raises(JournalError):
                verify(path)


class TestRotation:
    def test_files_follow_each_other(self, path: Path) -> None:
        journal = Journal(path, largest=SMALLEST, keep=None, clock=clock)
        head = fill(journal, 300)
        files = files_of(path)
        assert len(files) >= 4
        assert files[-1] == path
        assert all(file.stat().st_size <= SMALLEST for file in files)
        found = verify(path, head)
        assert found == Verdict(len(files), 300 + len(files), 1, head)

    def test_some_are_kept(self, path: Path) -> None:
        journal = Journal(path, largest=SMALLEST, keep=2, clock=clock)
        head = fill(journal, 300)
        assert len(files_of(path)) == 3
        found = verify(path)
        assert found.first > 1
        assert found.head == head

    def test_a_missing_file_in_the_middle(self, path: Path) -> None:
        fill(Journal(path, largest=SMALLEST, keep=None, clock=clock), 300)
        files_of(path)[1].unlink()
        with pytest.raises(JournalError, match="between this file and the one before are missing"):
            verify(path)

    def test_a_crash_between_two_files(self, path: Path) -> None:
        """The old one was put aside, and the next was not begun, or only half."""
        head = fill(Journal(path, clock=clock), 5)
        path.rename(f"{path}.{1:012d}")
        for half in (None, b"", b'{"number":7,"ti'):
            if half is not None:
                path.write_bytes(half)
            assert Journal(path).head() == head
        fill(Journal(path, clock=clock), 5)
        assert verify(path, head).lines == 12

    def test_names_with_patterns_in_them(self, tmp_path: Path) -> None:
        path = tmp_path / "a[b]*?.log"
        (tmp_path / "ab.log.000000000001").write_text("not ours")
        fill(Journal(path, largest=SMALLEST, keep=0, clock=clock), 200)
        assert files_of(path) == [path]
        assert (tmp_path / "ab.log.000000000001").exists()

    @pytest.mark.parametrize("arguments", [{"largest": 100}, {"keep": -1}])
    def test_arguments(self, path: Path, arguments: dict[str, int]) -> None:
        with pytest.raises(JournalError):
            Journal(path, **arguments)  # type: ignore[arg-type]


class TestCrashes:
    def test_half_a_line_is_cut_off(self, journal: Journal, path: Path) -> None:
        head = fill(journal, 3)
        with path.open("ab") as file:
            file.write(b'{"number":5,"time"')
        again = Journal(path, clock=clock)
        assert again.head() == head
        again.event("x")
        assert verify(path, head).lines == 5

    def test_half_of_the_first_line(self, journal: Journal, path: Path) -> None:
        path.write_bytes(b'{"number":1')
        assert journal.head() is None
        journal.event("x")
        assert verify(path).lines == 2

    def test_a_foreign_file_is_left_alone(self, journal: Journal, path: Path) -> None:
        path.write_text("my diary\n")
        with pytest.raises(JournalError, match="not a journal's"):
            journal.event("x")
        assert path.read_text() == "my diary\n"

    def test_no_folder(self, tmp_path: Path) -> None:
        with pytest.raises(JournalError, match="No such file"):
            Journal(tmp_path / "absent" / "x").event("x")

    def test_two_writers_in_turn(self, path: Path) -> None:
        first, second = Journal(path), Journal(path)
        for _ in range(3):
            first.event("one")
            second.event("two")
        assert [entry["event"] for entry in entries(path)][1:] == ["one", "two"] * 3

    def test_replaced_under_the_writer(self, journal: Journal, path: Path, tmp_path: Path) -> None:
        fill(journal, 3)
        shutil.copy(path, tmp_path / "old")
        fill(journal, 3)
        (tmp_path / "old").replace(path)
        journal.event("x")
        assert verify(path).lines == 5


def _write(path: Path, own: int) -> None:
    journal = Journal(path, largest=SMALLEST, keep=None)
    for i in range(60):
        journal.event("x", pid=own, sequence=i)


def test_many_processes(path: Path) -> None:
    context = multiprocessing.get_context("forkserver")
    children = [context.Process(target=_write, args=(path, own)) for own in range(6)]
    for child in children:
        child.start()
    for child in children:
        child.join()
    found = [entry for entry in entries(path) if entry["event"] == "x"]
    assert len(found) == 360
    for own in range(6):
        assert [e["sequence"] for e in found if e["pid"] == own] == list(range(60))


class TestTrail:
    @pytest.fixture
    def trail(self, path: Path) -> Iterator[Trail]:
        yield Trail(path, largest=SMALLEST, clock=clock)
        verify(path)

    def test_a_runs_story(self, trail: Trail, path: Path) -> None:
        trail.proposed(RUN, "hub", bytes(32), method="feat", protocol="masked", epsilon=1.0)
        trail.decided(RUN, "policy", "accepted")
        trail.spent(RUN, "claims", 1.25, 0.0, 1, 7, bytes(32))
        trail.left(RUN, "upload", 12, 25_165_824)
        trail.ended(RUN, "aborted", PayloadError("a chunk is short"))
        found = [(e["event"], e.get("run")) for e in entries(path)][1:]
        assert found == [
            (event, RUN.hex())
            for event in (
                "study.proposed", "study.decided", "budget.spent", "house.left", "run.ended",
            )
        ]  # fmt: skip

    def test_nothing_is_ever_removed(self, trail: Trail, path: Path) -> None:
        for i in range(300):
            trail.left(RUN, "upload", i, i)
        assert verify(path).first == 1
        assert len(files_of(path)) > 3

    def test_each_line_is_on_the_disk(self, trail: Trail, monkeypatch: pytest.MonkeyPatch) -> None:
        synced: list[int] = []
        real = os.fsync

        def recording(descriptor: int) -> None:
            synced.append(descriptor)
            real(descriptor)

        monkeypatch.setattr(os, "fsync", recording)
        trail.decided(RUN, "alice", "refused")
        assert len(synced) == 3, "the first line, its folder, and the line"
        trail.decided(RUN, "alice", "refused")
        assert len(synced) == 4
