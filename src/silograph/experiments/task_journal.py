"""The journal of an unfinished experiment: outcomes, line by line, each on disk before the next.

The first line says what is being run, by the digest of parameters and software; each other line is
the outcome of a task, with a checksum. A process that dies leaves at most one line that has no end;
it is dropped, and its task is done again. Anything else that does not fit is refused: a line that
was changed, or a journal of another run.
"""

import fcntl
import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from silograph.errors import ExperimentError
from silograph.experiments.tasks import Outcome
from silograph.runtime import whole_files

__all__ = ["FILE", "Journal", "digest_of", "held"]

FILE = "journal.jsonl"
_FORMAT = "silograph-experiment-journal 1"
_MOST_BYTES = 256 << 20
_AGAIN = "begin again with --fresh, or write elsewhere with --out"


def digest_of(*parts: Any) -> str:
    """What tells one run from another."""
    text = json.dumps(parts, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """Keep other runs out of a folder; the system lets go of it when the process ends."""
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as problem:
        raise ExperimentError(f"{folder}: cannot be opened: {problem.strerror}") from None
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise ExperimentError(
                f"{folder}: another run writes here; wait for it, or use another --out"
            ) from None
        yield
    finally:
        os.close(descriptor)


class Journal:
    """What is done of one experiment. It is a context manager; lines go to disk one by one."""

    def __init__(self, folder: Path, experiment: str, digest: str) -> None:
        """Open the journal of a run, or begin one."""
        self._path = folder / FILE
        self._head = {"format": _FORMAT, "experiment": experiment, "digest": digest}
        self.outcomes: dict[str, Outcome] = {}
        whole = self._read() if self._path.exists() else 0
        try:
            self._file = self._path.open("r+b" if whole else "wb")
            self._file.truncate(whole)
            self._file.seek(whole)
        except OSError as problem:
            raise self._error(f"cannot be written: {problem.strerror}") from None
        if not whole:
            self._append(self._head)

    def __enter__(self) -> "Journal":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file; what is in it stays."""
        # A line that did not fit was an error when it was added; here it would hide that error.
        with suppress(OSError):
            self._file.close()

    def add(self, key: str, outcome: Outcome) -> None:
        """Keep an outcome for good."""
        self._append({"key": key, "outcome": outcome, "check": _check(key, outcome)})
        self.outcomes[key] = outcome

    def _append(self, entry: Mapping[str, Any]) -> None:
        try:
            line = json.dumps(entry, ensure_ascii=False, allow_nan=False).encode() + b"\n"
        except ValueError:
            raise self._error(f"{entry.get('key')}: an answer is no finite number") from None
        try:
            self._file.write(line)
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError as problem:
            raise self._error(f"cannot be written: {problem.strerror}") from None

    def _read(self) -> int:
        """Take in what is there; how many bytes of it are whole lines."""
        content = whole_files.read(self._path, _MOST_BYTES, ExperimentError)
        whole = content.rfind(b"\n") + 1
        lines = content[:whole].splitlines()
        if not lines:
            # A process that died while it wrote the first line has left nothing of worth; other
            # bytes are somebody else's.
            first = json.dumps(self._head, ensure_ascii=False).encode()
            if first.startswith(content):
                return 0
            raise self._error("not a journal of this program")
        head = self._parsed(lines[0], 1)
        if head.get("format") != _FORMAT:
            raise self._error("not a journal of this program")
        if head != self._head:
            raise self._error(
                f"begun with other parameters, another version or on another machine; {_AGAIN}"
            )
        for number, line in enumerate(lines[1:], 2):
            entry = self._parsed(line, number)
            key, outcome = entry.get("key"), entry.get("outcome")
            if (
                not isinstance(key, str)
                or not isinstance(outcome, dict)
                or entry.get("check") != _check(key, outcome)
                or key in self.outcomes
            ):
                raise self._error(f"line {number} is damaged; {_AGAIN}")
            self.outcomes[key] = outcome
        return whole

    def _parsed(self, line: bytes, number: int) -> dict[str, Any]:
        try:
            found = json.loads(line)
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict):
            raise self._error(f"line {number} is damaged; {_AGAIN}")
        return found

    def _error(self, what: str) -> ExperimentError:
        return ExperimentError(f"{self._path}: {what}")


def _check(key: str, outcome: Outcome) -> str:
    return digest_of(key, outcome)[:16]
