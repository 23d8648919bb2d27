"""Identifiers: values become text, text becomes positions, and errors explain what is wrong."""

import os
from collections.abc import Callable, Iterable
from numbers import Integral
from os import PathLike, fspath, strerror
from pathlib import Path
from typing import Literal, Protocol

import numpy as np
import numpy.typing as npt

from silograph._core import EdgeText, GzipError, IdTable, LineError
from silograph.errors import ArgumentError, EdgeError

# --- Messages about files, lines and identifiers --------------------------------------------------


class Lookup(Protocol):
    """The part of a universe that is needed to explain an unknown identifier."""

    @property
    def _table(self) -> IdTable:
        """The positions of all ids."""

    @property
    def strip(self) -> bool:
        """Whether white space at the ends is removed."""

    @property
    def case(self) -> str | None:
        """The letter case that identifiers are converted to."""

    def __len__(self) -> int: ...

    def __contains__(self, id_: object) -> bool: ...


def shown(text: object, most: int = 40) -> str:
    """A short, quoted and escaped form of any text.

    >>> print(shown("a" * 100))
    'aaaaaaaaaaaaaaaaaaaa…' (100 characters)
    >>> print(shown("tab\\tbell\\x07"))
    'tab\\tbell\\x07'
    """
    text = str(text)
    if len(text) <= most:
        return repr(text)
    start = repr(text[: most // 2])
    return f"{start[:-1]}…{start[-1]} ({len(text)} characters)"


def unknown_id(id_: str, universe: Lookup) -> str:
    """A message about an identifier that is not in the universe, with a hint if there is one."""
    message = f"id {shown(id_)} is not in the universe of {len(universe):,} nodes"
    stripped = id_.strip()
    if not stripped:
        return message
    if not universe.strip and stripped != id_ and stripped in universe:
        return f"{message}; without the white space it is: make the universe with strip=True"
    if universe.case is None:
        for case, changed in (("lower", id_.lower()), ("upper", id_.upper())):
            if changed in universe:
                return f"{message}, but {shown(changed)} is: make the universe with case={case!r}"
    usual = stripped.removesuffix(".0").lstrip("0") or "0"
    if usual != id_ and usual in universe:
        return f"{message}; {shown(usual)} is, and ids are compared as text"
    return message


#: Where Linux says how much memory a container may use.
_CONTAINER = Path("/sys/fs/cgroup/memory.max")


def open_text(path: str | PathLike[str]) -> EdgeText:
    """Open a text file, unzipped; raise :class:`EdgeError` if that fails.

    A text may take half of the memory: a bomb of zeros or a pipe without an end is an error.
    """
    limit = memory_here() // 2
    try:
        return EdgeText.open(path, limit)
    except FileNotFoundError:
        raise EdgeError(f"{fspath(path)}: there is no such file") from None
    except IsADirectoryError:
        raise EdgeError(f"{fspath(path)}: is a folder, not a file") from None
    except OSError as error:
        reason = strerror(error.errno) if error.errno else str(error)
        raise EdgeError(f"{fspath(path)}: cannot be read: {reason}") from None
    except MemoryError:
        raise EdgeError(
            f"{fspath(path)}: has more than {limit / 1e9:,.1f} GB of text, half of this "
            "machine's memory, or does not end; split it, or read Parquet in parts "
            "(Silo.from_dataset)"
        ) from None
    except GzipError as error:
        raise EdgeError(
            f"{fspath(path)}: the gzip data are damaged or end too early ({error}); "
            "fetch or copy the file again"
        ) from None


def memory_here() -> int:
    """The memory of this machine, or of the container that this process is in, in bytes."""
    there = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    try:
        limit = _CONTAINER.read_text().strip()
    except OSError:
        return there
    return min(there, int(limit)) if limit.isdecimal() else there


#: What is wrong with a time; a small number beside dates is not taken for seconds.
NO_TIME = "neither an ISO date (2026-01-31, 2026-01-31T12:00:00Z) nor seconds since 1970"


#: What is wrong with a line, where that is all there is to say.
_FAULTS = {
    "empty": "an empty id",
    "unclosed": (
        "a quoted field does not end on its line; line breaks inside quotes are not "
        "read, and format='whitespace' takes quotes as they stand"
    ),
    "after-quote": "there is text between a closing quote and the next field",
    "not-utf8": "bytes that are not UTF-8; a binary file, or text to be saved as UTF-8",
    "binary": "a NUL byte; this is a binary file, not a text edge list",
}


def line_fault(
    source: str, error: LineError, universe: Lookup | None = None, magic: bytes = b""
) -> EdgeError:
    """The error for one line: the file, the line, what is wrong, and how to fix it."""
    code, line, text, expected, found = error.args
    if code == "unread":
        return EdgeError(f"{source}: cannot be read: {text}")
    match code:
        case "fields":
            what = (
                f"{found} field{'s' * (found != 1)}, where the first row has {expected}; "
                "every row must have as many as the first"
            )
        case "unknown" if universe is not None:
            what = unknown_id(text, universe)
            if line == 1:
                what += " (if the first line is a header, pass header=True)"
        case "spaced":
            what = f"id {shown(text)} begins or ends with white space; pass strip=True to remove it"
        case "control":
            what = f"id {shown(text)} has a line break inside"
        case "time":
            what = f"the time {shown(text)} is {NO_TIME}"
        case "not-utf8" if magic[:2] in (b"\xff\xfe", b"\xfe\xff"):
            what = "the file is UTF-16; save it as UTF-8"
        case _:
            what = _FAULTS[code]
    return EdgeError(f"{source}:{line}: {what}")


# --- Identifiers as text: the only place where values become identifiers --------------------------


class NotAnIdError(Exception):
    """A value that is neither text nor an integer; callers turn it into their own error."""


def id_text(value: object) -> str:
    """The identifier as text: text is unchanged, integers become decimal, others are refused.

    >>> id_text(7), id_text("007")
    ('7', '007')
    """
    if isinstance(value, str):
        return str(value)
    if isinstance(value, Integral) and not isinstance(value, bool):
        return str(int(value))
    if value is None or value != value or type(value).__name__ == "NAType":  # noqa: PLR0124
        raise NotAnIdError("the id is missing")  # None, NaN, or the missing value of pandas
    if isinstance(value, (float, np.floating)):
        raise NotAnIdError(f"{value!r} is a float; ids are text or integers, so convert it first")
    kind = type(value).__name__
    raise NotAnIdError(f"{shown(value)} is of type {kind}; ids are text or integers")


def id_texts(values: Iterable[object]) -> list[str]:
    """All values as text; :class:`NotAnIdError` has the position as its second argument."""
    texts: list[str] = []
    for position, value in enumerate(values):
        try:
            text = id_text(value)
            text.encode()
        except NotAnIdError as error:
            raise NotAnIdError(error.args[0], position) from None
        except UnicodeEncodeError:
            raise NotAnIdError(f"{shown(value)} is not valid Unicode", position) from None
        texts.append(text)
    return texts


def plain_integers(values: object) -> npt.NDArray[np.uint64] | None:
    """The values as an array if they are nonnegative integers, for fast lookup; otherwise None."""
    if not isinstance(values, np.ndarray) or values.dtype.kind not in "iu":
        return None
    if values.dtype.kind == "i" and values.size and values.min() < 0:
        return None
    return np.ascontiguousarray(values, dtype=np.uint64)


Case = Literal["lower", "upper"] | None


def check_normalisation(strip: object, case: object) -> None:
    if not isinstance(strip, bool):
        raise ArgumentError(f"strip is {strip!r}; it must be True or False")
    if case not in (None, "lower", "upper"):
        raise ArgumentError(f"case is {case!r}; it must be 'lower', 'upper' or None")


# --- From the ids in an object to positions in a universe -----------------------------------------

Positions = npt.NDArray[np.uint32]
_NONE = 2**32 - 1


def placed_texts(values: Iterable[object], place: Callable[[int], str]) -> list[str]:
    """All values as text; :class:`EdgeError` says where the first value is that is no id."""
    try:
        return id_texts(values.tolist() if isinstance(values, np.ndarray) else values)
    except NotAnIdError as error:
        what, position = error.args
        raise EdgeError(f"{place(position)}: {what}") from None


def find(
    table: IdTable,
    values: Iterable[object],
    place: Callable[[int], str],
    universe: Lookup | None = None,
) -> Positions:
    """The positions of all values; :class:`EdgeError` names the first value that has none.

    ``place`` describes in words where the value with a given number stands. ``universe`` is the
    universe of the table, from which a hint about an unknown id is made.
    """
    integers = plain_integers(values)
    if integers is not None:
        found = table.find_ints(integers)
    else:
        values = values if isinstance(values, np.ndarray) else list(values)
        found = table.find_texts(placed_texts(values, place))
    missing = found == _NONE
    if missing.any():
        position = int(missing.argmax())
        id_ = integers[position] if integers is not None else list(values)[position]
        what = unknown_id(str(id_), universe) if universe is not None else f"{id_!r} is unknown"
        raise EdgeError(f"{place(position)}: {what}")
    return found
