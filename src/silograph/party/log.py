"""A party's log: one JSON object per line, written with :mod:`logging`.

::

    {"time":"…","level":"info","event":"run.phase","run":"…","phase":"keys"}

A line has only the fields that :data:`FIELDS` lists. The file has mode 0600. When it reaches 16 MiB
it is renamed to ``log.jsonl.1``; eight such files are kept. Several processes may write to one log.
If one process renames the file while another has it open, the other keeps writing to the renamed
file.
"""

import contextlib
import json
import logging
import math
import os
import re
import sys
import weakref
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from io import TextIOWrapper
from logging.handlers import RotatingFileHandler
from pathlib import Path

from silograph.errors import (
    CryptoError,
    DeploymentError,
    LedgerError,
    ProtocolError,
    StudyError,
    TrailError,
)

__all__ = ["FIELDS", "LONGEST_WHY", "Log", "plain_fields"]


# --- What a line may say: a list of fields, each of one kind, and nothing else --------------------
#
# Logs are copied, shipped and read by people who may not see the data. So a field that is not
# listed is refused when it is written, not filtered when it is read. No field takes a list or a
# nested value, and none free text but the reason that a person gives and signs. An error is logged
# by its name; its text is added only for the kinds of error whose texts contain nothing of a silo's
# data.

_LONGEST_REASON = 400
#: The most characters of a reason that a person gives.
LONGEST_WHY = 280
#: Errors whose texts are logged: they name only files, parties, protocol numbers, settings and
#: terms of a study.
_TOLD = (ProtocolError, LedgerError, DeploymentError, CryptoError, StudyError)

Value = str | int | float
_Check = Callable[[object], Value]


def _matching(pattern: str) -> _Check:
    compiled = re.compile(pattern)

    def check(value: object) -> Value:
        if isinstance(value, str) and compiled.fullmatch(value):
            return value
        raise ValueError

    return check


def _text(value: object) -> Value:
    if isinstance(value, str) and 0 < len(value) <= 200 and value.isprintable():
        return value
    raise ValueError


def _reason(value: object) -> Value:
    if isinstance(value, str) and 0 < len(value) <= LONGEST_WHY and value.isprintable():
        return value
    raise ValueError


def _count(value: object) -> Value:
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 63:
        return value
    raise ValueError


def _amount(value: object) -> Value:
    if isinstance(value, int | float) and not isinstance(value, bool) and value >= 0:
        return "unbounded" if math.isinf(value) else float(value)
    raise ValueError


def _moment(value: object) -> Value:
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone(UTC).isoformat(timespec="milliseconds")
    raise ValueError


def _digest(value: object) -> Value:
    if isinstance(value, bytes) and len(value) == 32:
        return value.hex()
    return _matching(r"[0-9a-f]{64}")(value)


def _run(value: object) -> Value:
    if isinstance(value, bytes) and len(value) == 16:
        return value.hex()
    return _matching(r"[0-9a-f]{32}")(value)


_word = _matching(r"[a-z0-9][a-z0-9_./+-]{0,63}")
_name = _matching(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}")
_names = _matching(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}(,[A-Za-z0-9][A-Za-z0-9._@-]{0,63}){0,15}")
_time = _matching(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+00:00")
_version = _matching(r"[A-Za-z0-9][A-Za-z0-9.+-]{0,63}")

#: Every field that a line may have, with the check of its value.
FIELDS: dict[str, _Check] = {
    # the run and its study
    "run": _run, "study": _digest, "roster": _digest, "universe": _digest, "phase": _word,
    "round": _word, "sequence": _count, "kind": _word, "method": _word, "protocol": _word,
    "query": _word, "k": _count, "silos": _count, "deadline": _moment,
    # parties
    "party": _name, "sender": _name, "receiver": _name, "coordinator": _name, "by": _names,
    # what a person said: a reason in the person's own words, when, with which key
    "why": _reason, "moment": _time, "signer": _digest, "signature": _matching(r"[0-9a-f]{128}"),
    # amounts that others may know
    "messages": _count, "bytes": _count, "chunks": _count, "streams": _count,
    "seconds": _amount, "attempt": _count,
    # budget
    "lineage": _text, "epsilon": _amount, "delta": _amount, "collusion": _count,
    "serial": _count, "head": _digest,
    # outcome and process
    "code": _word, "state": _word, "direction": _word, "signal": _word, "pid": _count,
    "version": _version,
    # the only number that depends on edges: how many of them name a node outside the universe
    "edges_outside": _count,
    "rows_outside": _count,
}  # fmt: skip


def plain_fields(fields: dict[str, object]) -> dict[str, Value]:
    """The fields as JSON values, in the given order.

    Errors name the field but never its value, since the value may be what must not be written.
    """
    made: dict[str, Value] = {}
    for name, value in fields.items():
        if value is None:
            continue
        if name == "error" and isinstance(value, BaseException):
            made |= _told(value)
            continue
        check = FIELDS.get(name)
        if check is None:
            raise TrailError(f"a log has no field {name[:64]!r}; see silograph.party.log.FIELDS")
        try:
            made[name] = check(value)
        except ValueError:
            raise TrailError(f"this value may not stand in field {name!r} of a log") from None
    return made


def _told(error: BaseException) -> dict[str, Value]:
    name = type(error).__name__
    if not isinstance(error, _TOLD):
        return {"error": name}
    text = "".join(c if c.isprintable() else " " for c in str(error))
    return {"error": name, "reason": text[:_LONGEST_REASON]}


# --- Writing --------------------------------------------------------------------------------------

_LARGEST = 16 << 20
_KEPT = 8
_EVENT = re.compile(r"[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)*")
_LEVELS = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
}


class Log:
    """The log of one party. Its lines also go to the handlers of the logger ``silograph``."""

    def __init__(self, path: Path, party: str) -> None:
        self._file = _PrivateFile(
            path, maxBytes=_LARGEST, backupCount=_KEPT, encoding="utf-8", delay=True
        )
        self._file.setFormatter(_JsonLines())
        # Not from logging.getLogger: two parties in one process whose names are equal, or extend
        # each other by a dot, would write to each other's files.
        self._logger = logging.Logger(f"silograph.{party}", logging.DEBUG)
        self._logger.parent = logging.getLogger("silograph")
        self._logger.addHandler(self._file)
        weakref.finalize(self, self._file.close)
        #: The number of lines with an error, by event and error name.
        self.errors: Counter[tuple[str, str]] = Counter()

    def event(self, event: str, /, *, level: str = "info", **fields: object) -> None:
        """Add a line. Fields that are None are left out; fields that are not listed are refused."""
        if not isinstance(event, str) or len(event) > 64 or not _EVENT.fullmatch(event):
            raise TrailError("an event is words of a-z, 0-9 and _, joined by dots")
        if level not in _LEVELS:
            raise TrailError(f"a level is one of {', '.join(_LEVELS)}")
        plain = plain_fields(fields)
        if "error" in plain:
            self.errors[event, str(plain["error"])] += 1
        text = " ".join([event, *(f"{name}={value}" for name, value in plain.items())])
        self._logger.log(_LEVELS[level], text, extra={"event": event, "fields": plain})

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class _PrivateFile(RotatingFileHandler):
    """The file. On a full disk lines are lost, and standard error says so once."""

    _told = False

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802
        error = sys.exc_info()[1]
        if not isinstance(error, OSError):
            super().handleError(record)
        elif not self._told:
            self._told = True
            sys.stderr.write(f"{self.baseFilename}: cannot be written: {error.strerror}\n")

    def close(self) -> None:
        with contextlib.suppress(OSError):
            super().close()

    def _open(self) -> TextIOWrapper:
        def private(path: str, flags: int) -> int:
            descriptor = os.open(path, flags | os.O_CLOEXEC, 0o600)
            os.fchmod(descriptor, 0o600)
            return descriptor

        return open(self.baseFilename, "a", encoding="utf-8", opener=private)


class _JsonLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        given = record.__dict__
        head = {"time": time, "level": record.levelname.lower(), "event": given["event"]}
        return json.dumps(head | given["fields"], separators=(",", ":"), allow_nan=False)
