"""A party's log: one JSON object a line, of listed fields, in a private file that is rotated."""

import json
import logging
import math
import multiprocessing
import os
import re
import stat
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from silograph.errors import (
    ArgumentError,
    BudgetError,
    EdgeError,
    PayloadError,
    SilographError,
    TrailError,
)
from silograph.messages.identity import Identity
from silograph.party.log import FIELDS, Log

RUN = bytes(range(16))
MOMENT = datetime(2031, 5, 6, 7, 8, 9, 123456, tzinfo=UTC)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "log.jsonl"


@pytest.fixture
def log(path: Path) -> Iterator[Log]:
    made = Log(path, "north")
    yield made
    made.close()


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


class TestLines:
    def test_golden(self, log: Log, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("time.time", MOMENT.timestamp)
        monkeypatch.setattr("time.time_ns", lambda: int(MOMENT.timestamp() * 1e9))
        log.event("message.refused", level="warning", run=RUN, sender="north", code="order")
        assert path.read_text() == (
            '{"time":"2031-05-06T07:08:09.123+00:00","level":"warning","event":"message.refused",'
            '"run":"000102030405060708090a0b0c0d0e0f","sender":"north","code":"order"}\n'
        )

    def test_comes_back(self, log: Log, path: Path) -> None:
        log.event(
            "run.ended", run=RUN.hex(), study=bytes(32), epsilon=math.inf, delta=1e-9,
            lineage="Fälle 2031", deadline=MOMENT, seconds=1, phase=None,
        )  # fmt: skip
        (entry,) = lines(path)
        assert re.fullmatch(r"20\d\d-.*\+00:00", entry.pop("time"))
        assert entry == {
            "level": "info",
            "event": "run.ended",
            "run": RUN.hex(),
            "study": "00" * 32,
            "epsilon": "unbounded",
            "delta": 1e-9,
            "lineage": "Fälle 2031",
            "deadline": "2031-05-06T07:08:09.123+00:00",
            "seconds": 1.0,
        }

    def test_every_level(self, log: Log, path: Path) -> None:
        for level in ("debug", "info", "warning", "error"):
            log.event("x", level=level)
        assert [line["level"] for line in lines(path)] == ["debug", "info", "warning", "error"]

    def test_errors_are_counted_by_event(self, log: Log) -> None:
        for event in ("message.dropped", "study.dropped", "message.dropped"):
            log.event(event, error=PayloadError("x"))
        log.event("message.dropped")
        assert log.errors == {
            ("message.dropped", "PayloadError"): 2, ("study.dropped", "PayloadError"): 1,
        }  # fmt: skip

    def test_who_listens_to_the_package(self, log: Log, caplog: pytest.LogCaptureFixture) -> None:
        with caplog.at_level(logging.DEBUG, "silograph"):
            log.event("run.phase", run=RUN, phase="keys", error=KeyError("alice"))
        (record,) = caplog.records
        assert record.name == "silograph.north"
        assert record.getMessage() == f"run.phase run={RUN.hex()} phase=keys error=KeyError"

    def test_parties_of_one_process(self, tmp_path: Path) -> None:
        """With the same name in two deployments, or with names that are joined by a dot."""
        made = [Log(tmp_path / f"{i}", name) for i, name in enumerate(["a", "a", "a.b"])]
        for i, log in enumerate(made):
            log.event("x", sequence=i)
            log.close()
        assert [line["sequence"] for i in range(3) for line in lines(tmp_path / f"{i}")] == [
            0,
            1,
            2,
        ]


class TestFile:
    def test_mode_0600_whatever_the_umask(self, path: Path) -> None:
        path.touch(mode=0o644)
        before = os.umask(0)
        log = Log(path, "north")
        try:
            log.event("x")
        finally:
            os.umask(before)
            log.close()
        assert stat.S_IMODE(path.stat().st_mode) == 0o600

    def test_some_files_are_kept(
        self, log: Log, path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        assert (log._file.maxBytes, log._file.backupCount) == (16 << 20, 8)
        monkeypatch.setattr(log._file, "maxBytes", 1000)
        for i in range(300):
            log.event("run.phase", run=RUN, phase="keys", sequence=i)
        files = sorted(path.parent.iterdir())
        assert [file.name for file in files] == [
            "log.jsonl", *(f"log.jsonl.{i}" for i in range(1, 9)),
        ]  # fmt: skip
        assert all(file.stat().st_size <= 1000 for file in files)
        assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
        found = [line["sequence"] for file in (*files[:0:-1], path) for line in lines(file)]
        assert found == list(range(300 - len(found), 300))

    def test_a_full_disk_is_told_once(
        self, log: Log, path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        log.event("service.started")
        stream = log._file.stream
        flush, full = stream.flush, OSError(28, "No space left on device")

        def fails() -> None:
            raise full

        stream.flush = fails  # type: ignore[method-assign]
        log.event("run.phase", phase="keys")
        log.event("run.phase", phase="chunks")
        assert capsys.readouterr().err == f"{path}: cannot be written: No space left on device\n"
        stream.flush = flush  # type: ignore[method-assign]
        log.event("service.stopped")
        assert [line["event"] for line in lines(path)] == ["service.started", "service.stopped"]

    def test_it_is_added_to(self, log: Log, path: Path) -> None:
        log.event("one")
        again = Log(path, "north")
        again.event("two")
        again.close()
        log.event("three")
        assert [line["event"] for line in lines(path)] == ["one", "two", "three"]

    def test_many_processes(self, path: Path) -> None:
        context = multiprocessing.get_context("forkserver")
        children = [context.Process(target=_write, args=(path, own)) for own in range(4)]
        for child in children:
            child.start()
        for child in children:
            child.join()
        found = lines(path)
        for own in range(4):
            assert [e["sequence"] for e in found if e["pid"] == own] == list(range(60))


def _write(path: Path, own: int) -> None:
    log = Log(path, "north")
    for i in range(60):
        log.event("x", pid=own, sequence=i)
    log.close()


class TestWhatMayBeWritten:
    @pytest.mark.parametrize(
        "name",
        ["secret", "edges", "degree", "node", "text", "message", "value", "detail", "url", "key",
         "passphrase", "exception", "args", "data", "payload", "time", "fields", "reason"],
    )  # fmt: skip
    def test_no_other_fields(self, log: Log, path: Path, name: str) -> None:
        with pytest.raises(TrailError, match="no field") as caught:
            log.event("x", **{name: "hunter2"})
        assert "hunter2" not in str(caught.value)
        assert not path.exists()

    @pytest.mark.parametrize("name", sorted(FIELDS))
    @pytest.mark.parametrize(
        "value",
        [
            b"raw bytes",
            bytes(33),
            ["a", "b"],
            {"a": 1},
            (3, 4),
            {1, 2},
            True,
            math.nan,
            -1,
            "",
            "two\nlines",
            "\x1b[31m",
            "x" * 300,
            object(),
            Identity(bytes(32)),
            1 << 70,
        ],
        ids=lambda value: type(value).__name__,
    )
    def test_no_values_of_other_kinds(self, log: Log, name: str, value: object) -> None:
        if name in ("epsilon", "delta", "seconds") and value == 1 << 70:
            return  # a number is a number
        with pytest.raises(TrailError, match=f"may not stand in field '{name}'"):
            log.event("x", **{name: value})

    @pytest.mark.parametrize("event", ["", "Run", "run phase", "run..phase", "x" * 65, "é", "a.1"])
    def test_events(self, log: Log, event: str) -> None:
        with pytest.raises(TrailError, match="an event is"):
            log.event(event)
        with pytest.raises(TrailError, match="a level is"):
            log.event("x", level="fatal")

    @pytest.mark.parametrize(
        ("error", "told"),
        [
            (PayloadError("a chunk is short", silo="north", round="keys"), True),
            (BudgetError("nothing is left"), True),
            (TrailError("x"), True),
            (EdgeError("edges.csv:7: alice–bob"), False),
            (ArgumentError("not 'alice'"), False),
            (SilographError("alice"), False),
            (KeyError("alice"), False),
            (ValueError("alice"), False),
        ],
        ids=lambda value: type(value).__name__,
    )
    def test_errors(self, log: Log, path: Path, error: Exception, told: bool) -> None:
        """Texts of errors that may hold data are not written."""
        log.event("x", error=error)
        entry = lines(path)[-1]
        assert entry["error"] == type(error).__name__
        assert entry.get("reason") == (str(error) if told else None)
        assert told or "alice" not in path.read_text()

    def test_a_reason_is_short_and_printable(self, log: Log, path: Path) -> None:
        log.event("x", error=PayloadError("\x1b[2J\n" + "é" * 5000))
        entry = lines(path)[-1]
        assert len(entry["reason"]) == 400
        assert entry["reason"].isprintable()

    def test_the_error_field_takes_errors_alone(self, log: Log) -> None:
        with pytest.raises(TrailError, match="no field 'error'"):
            log.event("x", error="alice knows bob")
