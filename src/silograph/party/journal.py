"""A party's own log, and its audit trail: JSON lines, chained by hash.

What: :class:`Journal` adds lines to a file of mode 0600; :class:`Trail` is the journal that an
operator is answerable for: who proposed, who decided, what was spent, what left the house. Both
have the same form::

    {"number":7,"time":"…","level":"info","event":"run.phase","run":"…","phase":"keys","chain":"…"}

Guarantee: a line says only what :mod:`~silograph.party.journal` allows. Its ``chain`` is
the SHA-256 of the line before it and of itself, so a line that was changed, moved or removed shows
(:mod:`~silograph.party.journal`); lines that are cut off at the end show to anyone who
noted the last ``chain``. Who can write the file can write a whole new chain: note the head where
the operator of the machine cannot reach it. Several processes may write one journal.

A file that has grown to ``largest`` is put aside under the number of its first line, and the next
begins with the chain of the last. A journal keeps some of these; a trail keeps all, and is on the
disk before a call returns.
"""

import fcntl
import hashlib
import json
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from silograph import whole_files
from silograph.errors import JournalError
from silograph.messages.identity import pack
from silograph.party.log import plain_fields
from silograph.whole_files import sync_path

__all__ = [
    "BEGINS",
    "LEVELS",
    "NOTHING",
    "Journal",
    "Mark",
    "Trail",
    "Verdict",
    "chained",
    "entries",
    "files_of",
    "verify",
]


LEVELS = ("debug", "info", "warning", "error")


# --- Writing --------------------------------------------------------------------------------------

#: The event of a file's first line, which holds the version and what came before.
BEGINS = "journal.begins"
#: The chain before the first line of all.
NOTHING = "0" * 64
LONGEST_LINE = 8192

_SUFFIX = re.compile(r"\.[0-9]{12}")
_TAIL = re.compile(rb'\{"number":([0-9]{1,12}),.*,"chain":"([0-9a-f]{64})"\}')


@dataclass(frozen=True)
class Mark:
    """A place in a journal: a line's number, and the chain up to it."""

    number: int
    chain: str


def utc_now() -> datetime:
    """The clock of a real journal."""
    return datetime.now(UTC)


def chained(before: str, body: bytes) -> str:
    """The chain after a line whose text, without the chain, is ``body``."""
    return hashlib.sha256(pack(b"silograph/journal/v1", before.encode(), body)).hexdigest()


def files_of(path: Path) -> list[Path]:
    """The files of a journal that are there, oldest first."""
    aside = [
        found
        for found in path.parent.glob(f"{_escaped(path.name)}.*")
        if _SUFFIX.fullmatch(found.name.removeprefix(path.name))
    ]
    return [*sorted(aside), *([path] if path.exists() else [])]


def _escaped(name: str) -> str:
    return re.sub(r"([\[\]*?])", r"[\1]", name)


class Journal:
    """A log that is only added to. ``keep`` files are kept beside the one that is written."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        largest: int = 16 << 20,
        keep: int | None = 8,
        durable: bool = False,
        clock: Callable[[], datetime] = utc_now,
    ) -> None:
        if largest < 2 * LONGEST_LINE or (keep is not None and keep < 0):
            raise JournalError(f"a journal's file holds at least {2 * LONGEST_LINE} bytes")
        self.path = Path(path)
        self._largest = largest
        self._keep = keep
        self._durable = durable
        self._clock = clock
        self._seen: tuple[tuple[int, int, int], Mark] | None = None

    def event(self, event: str, /, *, level: str = "info", **fields: object) -> Mark:
        """Add a line. Fields that are None are left out; one that is not listed is refused."""
        return self._add(event, level, plain_fields(fields))

    def head(self) -> Mark | None:
        """The last line, or None; note it elsewhere to see later that nothing was cut off."""
        with self._locked():
            return self._last()

    def _add(self, event: str, level: str, fields: dict[str, str | int | float]) -> Mark:
        with self._locked():
            last = self._last()
            if last is None or not self.path.exists():
                last = self._begin(last)
            size = self.path.stat().st_size
            mark, line = self._line(last, event, level, fields)
            if size + len(line) > self._largest:
                self._put_aside()
                mark, line = self._line(self._begin(last), event, level, fields)
            self._write(line)
            self._seen = self._stamp(), mark
            return mark

    def _line(
        self, last: Mark | None, event: str, level: str, fields: dict[str, str | int | float]
    ) -> tuple[Mark, bytes]:
        number, before = (last.number + 1, last.chain) if last else (1, NOTHING)
        time = self._clock().astimezone(UTC).isoformat(timespec="milliseconds")
        head: dict[str, str | int | float] = {"number": number, "time": time}
        content = head | {"level": level, "event": event} | fields
        body = json.dumps(content, separators=(",", ":"), allow_nan=False).encode()
        chain = chained(before, body)
        line = body[:-1] + f',"chain":"{chain}"}}\n'.encode()
        if len(line) > LONGEST_LINE:
            raise JournalError("this line is too long for a journal")
        return Mark(number, chain), line

    def _begin(self, last: Mark | None) -> Mark:
        """Start a file with a line that holds the version and names what came before."""
        before = last.chain if last else NOTHING
        fields: dict[str, str | int | float] = {
            "format": whole_files.JOURNAL.current,
            "previous": before,
        }
        mark, line = self._line(last, BEGINS, "info", fields)
        self._write(line, new=True)
        return mark

    def _put_aside(self) -> None:
        with self.path.open("rb") as file:
            first = _TAIL.fullmatch(file.readline(LONGEST_LINE).rstrip(b"\n"))
        number = int(first[1]) if first else 0
        self.path.rename(f"{self.path}.{number:012d}")
        if self._keep is not None:
            aside = files_of(self.path)
            for old in aside[: max(len(aside) - self._keep, 0)]:
                old.unlink()

    def _write(self, line: bytes, *, new: bool = False) -> None:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC | (os.O_CREAT | os.O_EXCL if new else 0)
        descriptor = os.open(self.path, flags, 0o600)
        try:
            if new:
                os.fchmod(descriptor, 0o600)
            if os.write(descriptor, line) != len(line):
                raise JournalError(f"{self.path}: the disk took half a line; it is full")
            if self._durable:
                os.fsync(descriptor)
        finally:
            os.close(descriptor)
        if self._durable and new:
            sync_path(self.path.parent)

    def _last(self) -> Mark | None:
        """The last whole line; half a line, which a power cut leaves, is cut off."""
        if self._seen is not None and self.path.exists() and self._stamp() == self._seen[0]:
            return self._seen[1]
        files = files_of(self.path)
        if not files:
            return None
        with files[-1].open("r+b") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(size - 2 * LONGEST_LINE, 0))
            tail = file.read()
            whole, _, torn = tail.rpartition(b"\n")
            if torn:
                file.truncate(size - len(torn))
        if size == len(torn):  # nothing, or half of a first line
            files[-1].unlink()
            return self._last()
        found = _TAIL.fullmatch(whole.rpartition(b"\n")[2])
        if found is None:
            raise JournalError(f"{files[-1]}: its last line is not a journal's; move it away")
        return Mark(int(found[1]), found[2].decode())

    def _stamp(self) -> tuple[int, int, int]:
        found = self.path.stat()
        return found.st_dev, found.st_ino, found.st_size

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """One writer at a time, of all processes and threads."""
        try:
            flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
            descriptor = os.open(f"{self.path}.lock", flags, 0o600)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX)
                yield
            finally:
                os.close(descriptor)
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise JournalError(f"{self.path}: cannot be read or written: {reason}") from None


class Trail(Journal):
    """What an operator answers for. Nothing of it is ever removed, and each line is on the disk.

    Write a line before what it tells of happens, except for what left the house: that is told
    after, in sums by kind, and its cost is in :meth:`spent` before.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        largest: int = 16 << 20,
        clock: Callable[[], datetime] = utc_now,
    ) -> None:
        super().__init__(path, largest=largest, keep=None, durable=True, clock=clock)

    def proposed(
        self,
        run: bytes,
        coordinator: str,
        study: bytes,
        *,
        query: str | None = None,
        method: str | None = None,
        protocol: str | None = None,
        epsilon: float | None = None,
        delta: float | None = None,
        collusion: int | None = None,
        deadline: datetime | None = None,
    ) -> Mark:
        """A study came in, with the terms that a policy looks at."""
        return self.event(
            "study.proposed", run=run, coordinator=coordinator, study=study, query=query,
            method=method, protocol=protocol, epsilon=epsilon, delta=delta, collusion=collusion,
            deadline=deadline,
        )  # fmt: skip

    def decided(self, run: bytes, by: str, code: str, error: BaseException | None = None) -> Mark:
        """It was accepted or refused: by ``policy``, or by an operator's name."""
        return self.event("study.decided", run=run, by=by, code=code, error=error)

    def spent(
        self,
        run: bytes,
        lineage: str,
        epsilon: float,
        delta: float,
        collusion: int,
        serial: int,
        head: bytes,
    ) -> Mark:
        """What the run costs, and where the ledger stood after it was recorded there."""
        return self.event(
            "budget.spent", run=run, lineage=lineage, epsilon=epsilon, delta=delta,
            collusion=collusion, serial=serial, head=head,
        )  # fmt: skip

    def left(self, run: bytes, kind: str, messages: int, size: int) -> Mark:
        """What has left the house in a run: messages of one kind, and their bytes."""
        return self.event("house.left", run=run, kind=kind, messages=messages, bytes=size)

    def ended(self, run: bytes, state: str, error: BaseException | None = None) -> Mark:
        """How the run ended here."""
        return self.event("run.ended", run=run, state=state, error=error)


# --- Reading a journal back, line by line along its chain -----------------------------------------

_CHAIN = re.compile(rb',"chain":"([0-9a-f]{64})"\}')
_CHAIN_BYTES = len(',"chain":""}') + 64


@dataclass(frozen=True)
class Verdict:
    """What :func:`verify` found: whole, from line ``first`` to ``head``.

    ``first`` is more than 1 where older files were removed by rotation.
    """

    files: int
    lines: int
    first: int
    head: Mark


def entries(path: str | os.PathLike[str]) -> Iterator[dict[str, Any]]:
    """Every line of a journal's files, oldest first, each checked against the one before it.

    Raises :class:`JournalError`, which names file and line, at the first that does not follow.
    """
    place = Path(path)
    try:
        files = files_of(place)
        if not files:
            raise JournalError(f"{place}: there is no journal")
        last: Mark | None = None
        for file in files:
            for entry, mark in _lines(file, last):
                last = mark
                yield entry
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise JournalError(f"{place}: cannot be read: {reason}") from None


def verify(path: str | os.PathLike[str], known: Mark | None = None) -> Verdict:
    """Read all of a journal; with ``known``, also see that this line of old is still in it."""
    place, first, lines, head = Path(path), 0, 0, Mark(0, NOTHING)
    seen = known is None
    for entry in entries(place):
        head = Mark(entry["number"], entry["chain"])
        first = first or head.number
        lines += 1
        seen = seen or head == known
    if known is not None and not seen:
        raise JournalError(
            f"{place}: line {known.number} with chain {known.chain[:16]}… is not in it: lines were "
            "cut off, or it is another journal"
        )
    return Verdict(len(files_of(place)), lines, first, head)


def _lines(file: Path, last: Mark | None) -> Iterator[tuple[dict[str, Any], Mark]]:
    with file.open("rb") as lines:
        place = 0
        while raw := lines.readline(LONGEST_LINE + 1):
            place += 1
            where = f"{file}:{place}"
            entry = _parse(raw, where)
            if place == 1:
                before = _begins(entry, where, last)
            elif entry.get("event") == BEGINS:
                raise JournalError(f"{where}: a file begins within a file")
            else:
                before = last  # type: ignore[assignment]  # the first line has set it
            last = _follow(raw, entry, before, where)
            yield entry, last
        if place == 0:
            raise JournalError(f"{file}: the file is empty")


def _begins(entry: dict[str, Any], where: str, last: Mark | None) -> Mark:
    if entry.get("event") != BEGINS:
        raise JournalError(f"{where}: the first line is missing, or this is not a journal")
    whole_files.JOURNAL.check(entry.get("format"), where, JournalError)
    previous = entry.get("previous")
    if not isinstance(previous, str) or not re.fullmatch(r"[0-9a-f]{64}", previous):
        raise JournalError(f"{where}: the first line names nothing before it")
    if last is None:  # what is before the oldest file that is there, one cannot know
        return Mark(entry["number"] - 1, previous)
    if previous != last.chain:
        raise JournalError(f"{where}: lines between this file and the one before are missing")
    return last


def _follow(raw: bytes, entry: dict[str, Any], before: Mark, where: str) -> Mark:
    number, chain = entry["number"], entry["chain"]
    if number != before.number + 1:
        raise JournalError(
            f"{where}: line {number} after line {before.number}: lines were removed or moved"
        )
    body = raw.rstrip(b"\n")[:-_CHAIN_BYTES] + b"}"
    if chained(before.chain, body) != chain:
        raise JournalError(f"{where}: the line, or one before it, was changed")
    return Mark(number, chain)


def _parse(raw: bytes, where: str) -> dict[str, Any]:
    if not raw.endswith(b"\n"):
        raise JournalError(f"{where}: the line is too long, or half a line")
    line = raw[:-1]
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError):
        entry = None
    if (
        not isinstance(entry, dict)
        or not _CHAIN.fullmatch(line[-_CHAIN_BYTES:])
        or not isinstance(entry.get("chain"), str)
        or type(entry.get("number")) is not int
        or not 0 < entry["number"] < 10**12
    ):
        raise JournalError(f"{where}: not a line of a journal")
    return entry
