"""Reading a journal back, line by line along its chain."""

import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from silograph.errors import JournalError
from silograph.runtime import versions
from silograph.runtime.journal import BEGINS, LONGEST_LINE, NOTHING, Mark, chained, files_of

__all__ = ["Verdict", "entries", "verify"]

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
    versions.JOURNAL.check(entry.get("format"), where, JournalError)
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
