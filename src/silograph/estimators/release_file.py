"""Files of releases: versioned, with a checksum, written completely or not at all.

Layout; all integers are little-endian::

    16 bytes   the magic: b"silograph.releas" (pairs of nodes) or b"silograph.folded" (buckets)
     4 bytes   format version
     4 bytes   length of the header
               header: JSON, UTF-8 (what the bits stand for, channel as fractions, universe
               digest, provenance, views, losses)
               payload: one bit per pair or bucket, padded to 64-bit words
    32 bytes   SHA-256 of everything before it

The checksum detects damage, not manipulation: anyone who can write the file can write the checksum.
So every field is checked, and views and losses are compared with the noise: a release that claims
to cost less than its own channel is refused. What colluding silos see beyond the channel depends on
the protocol and does not follow from the channel, so the losses in the file are used for it.

JSON has no infinity: an unbounded loss is written as the text "unbounded".
"""

import hashlib
import json
import math
import os
import re
import reprlib
import struct
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, TypeVar

from silograph.dp.channel import Channel
from silograph.dp.loss import View, shown_loss
from silograph.errors import ChannelError, ReleaseError
from silograph.estimators.estimate import Provenance
from silograph.whole_files import written_whole

__all__ = ["FOLDED", "PAIRS", "Fields", "Statement", "kind_of", "plain", "read", "write"]

#: The magic of each kind of release.
PAIRS = b"silograph.releas"
FOLDED = b"silograph.folded"
_NAMES = {PAIRS: "a release", FOLDED: "a folded release"}
_VERSION = 2
_PREFIX = struct.Struct("<16sII")
_CHECKSUM_BYTES = 32
_LARGEST_HEADER = 1 << 21
_LONGEST_TEXT = 200
_MOST_SILOS = 64
_UNBOUNDED = "unbounded"
# Exponents are not accepted: a few characters could stand for a number of any size.
_FRACTION = re.compile(r"[0-9]+(/[0-9]+)?")
_DIGEST = re.compile(r"[0-9a-f]{64}")
_RUN = re.compile(r"([0-9a-f]{32})?")

T = TypeVar("T")


@dataclass(frozen=True)
class Statement:
    """What every release states about itself, whatever its bits stand for."""

    channel: Channel
    universe_digest: str
    provenance: Provenance
    views: tuple[View, ...]
    losses: Mapping[int, float]


def write(
    path: str | os.PathLike[str],
    kind: bytes,
    own: Mapping[str, Any],
    stated: Statement,
    payload: bytes,
) -> None:
    """Write a file, completely or not at all; ``own`` are the kind's own fields of the header."""
    target = Path(path)
    try:
        p11, p01 = str(stated.channel.p11), str(stated.channel.p01)
    except ValueError:  # more digits than Python converts
        raise ReleaseError(f"{target}: p11 or p01 is too long to be written") from None
    header = {
        **own,
        "p11": p11,
        "p01": p01,
        "universe": stated.universe_digest,
        "provenance": asdict(stated.provenance),
        "views": [asdict(view) | {"epsilon": plain(view.epsilon)} for view in stated.views],
        "losses": {str(t): plain(loss) for t, loss in stated.losses.items()},
    }
    text = json.dumps(header, sort_keys=True, separators=(",", ":"), allow_nan=False)
    encoded = text.encode()
    content = _PREFIX.pack(kind, _VERSION, len(encoded)) + encoded + payload
    try:
        with written_whole(target) as partial, partial.open("wb") as file:
            file.write(content)
            file.write(hashlib.sha256(content).digest())
    except OSError as error:
        raise ReleaseError(f"{target}: cannot write the release: {error.strerror}") from None


def read(
    path: str | os.PathLike[str], kind: bytes, own: "Callable[[Fields], tuple[T, int]]"
) -> tuple[T, Statement, bytes]:
    """Read a file; raise :class:`ReleaseError` for anything that is not exactly a file of its kind.

    ``own`` takes the kind's own fields from the header, and says how long the payload must be.
    """
    source = Path(path)
    try:
        content = source.read_bytes()
    except OSError as error:
        raise ReleaseError(f"{source}: cannot read the release: {error.strerror}") from None
    try:
        return _read(content, kind, own)
    except ReleaseError as error:
        raise ReleaseError(f"{source}: {error}") from None
    except ChannelError as error:
        raise ReleaseError(f"{source}: the release is refused: {error}") from None


def kind_of(path: str | os.PathLike[str]) -> bytes:
    """The magic at the beginning of a file, whether it is one of ours or not."""
    try:
        with Path(path).open("rb") as file:
            return file.read(len(PAIRS))
    except OSError as error:
        raise ReleaseError(f"{path}: cannot read the release: {error.strerror}") from None


def _read(
    content: bytes, kind: bytes, own: "Callable[[Fields], tuple[T, int]]"
) -> tuple[T, Statement, bytes]:
    found = content[: len(kind)]
    if found != kind and found in _NAMES:
        raise ReleaseError(f"this is {_NAMES[found]}, not {_NAMES[kind]}")
    if len(content) < _PREFIX.size or found != kind:
        raise ReleaseError("not a Silograph release")
    _, version, header_bytes = _PREFIX.unpack_from(content)
    if version != _VERSION:
        raise ReleaseError(
            f"release format {version}; this version of Silograph reads format {_VERSION}"
        )
    start = _PREFIX.size + header_bytes
    if header_bytes > _LARGEST_HEADER or len(content) < start:
        raise ReleaseError("the release is truncated")
    intact = hashlib.sha256(content[:-_CHECKSUM_BYTES]).digest() == content[-_CHECKSUM_BYTES:]
    try:
        header = Fields("", json.loads(content[_PREFIX.size : start]))
        kept, size = own(header)
    except (ReleaseError, ValueError, RecursionError) as error:
        known = intact and isinstance(error, ReleaseError)
        raise ReleaseError(str(error) if known else "the release is damaged") from None
    expected = start + size + _CHECKSUM_BYTES
    if not intact:
        cut = len(content) < expected
        raise ReleaseError(f"the release is {'truncated' if cut else 'damaged'}")
    if len(content) != expected:
        raise ReleaseError("the release is damaged: its length is wrong")
    channel = Channel(header.fraction("p11"), header.fraction("p01"))
    universe = header.text("universe", _DIGEST, "64 hexadecimal digits")
    provenance = _provenance(header.inner("provenance"))
    views = _views(header)
    losses = _losses(header.inner("losses"), provenance.silos)
    header.check_all_read()
    _check_views(channel, views, provenance.collusion, losses)
    _check_losses(channel, losses)
    stated = Statement(channel, universe, provenance, views, losses)
    return kept, stated, content[start:-_CHECKSUM_BYTES]


def _provenance(given: "Fields") -> Provenance:
    silos = given.whole("silos", 1, _MOST_SILOS)
    found = Provenance(
        method=given.text("method"),
        protocol=given.text("protocol"),
        silos=silos,
        collusion=given.whole("collusion", 0, silos - 1),
        run=given.text("run", _RUN, "32 hexadecimal digits, or empty"),
    )
    given.check_all_read()
    return found


def _views(header: "Fields") -> tuple[View, ...]:
    views: dict[str, View] = {}
    for given in header.listed("views"):
        name, epsilon, delta = given.text("name"), given.loss("epsilon"), given.share("delta")
        if name in views:
            raise ReleaseError(f"the release is refused: there are two views {name!r}")
        views[name] = View(name, epsilon, delta, given.truth("claimed"))
        given.check_all_read()
    if not any(view.claimed for view in views.values()):
        raise ReleaseError("the release is refused: no view is claimed, so it promises nothing")
    return tuple(views.values())


def _losses(given: "Fields", silos: int) -> dict[int, float]:
    """The loss for each number of colluding silos, from none to all but one."""
    losses = {t: given.loss(str(t)) for t in range(silos)}
    given.check_all_read()
    return losses


def _check_losses(channel: Channel, losses: Mapping[int, float]) -> None:
    """Refuse losses that no union can have.

    Every coalition in them sees the release, so no loss is below that of the channel; and one more
    silo never sees less of a union. Both sides are rounded up to a float. An honest loss is never
    below the smallest sufficient float, whichever version of Silograph computed it.
    """
    for t, loss in losses.items():
        if loss < channel.epsilon:
            raise ReleaseError(
                f"the release is refused: losses.{t} says ε = {shown_loss(loss)}, but anyone "
                f"who sees its noise has a loss of {shown_loss(channel.epsilon)}"
            )
        if t and loss < losses[t - 1]:
            raise ReleaseError(
                f"the release is refused: losses.{t} says ε = {shown_loss(loss)}, less than with "
                f"one silo fewer, {shown_loss(losses[t - 1])}"
            )


def _check_views(
    channel: Channel, views: tuple[View, ...], collusion: int, losses: Mapping[int, float]
) -> None:
    """Refuse views that state less than the noise costs.

    Every view, claimed or not, has at least the loss of the channel. The claimed views must cover
    the coalition that the release names.
    """
    for view in views:
        if view.epsilon < channel.epsilon:
            raise ReleaseError(
                f"the release is refused: view {view.name!r} says ε = {shown_loss(view.epsilon)}, "
                f"but anyone who sees its noise has a loss of {shown_loss(channel.epsilon)}"
            )
    worst = max(view.epsilon for view in views if view.claimed)
    loss = losses[collusion]
    if worst < loss:
        raise ReleaseError(
            f"the release is refused: its views say at most ε = {shown_loss(worst)}, but with "
            f"{collusion} silos that collude its noise costs {shown_loss(loss)}"
        )


def plain(loss: float) -> float | str:
    """A loss as JSON has it."""
    return _UNBOUNDED if loss == math.inf else loss


class Fields:
    """One object of the header; every field is checked, and unknown fields are refused."""

    def __init__(self, where: str, given: object) -> None:
        self._where = where
        if not isinstance(given, dict):
            what = where.rstrip(".") or "the header"
            raise ReleaseError(
                f"the release is refused: {what} must be an object, not {_shown(given)}"
            )
        self._left = dict(given)

    def _take(self, name: str) -> Any:
        try:
            return self._left.pop(name)
        except KeyError:
            raise ReleaseError(f"the release is refused: {self._where}{name} is missing") from None

    def _refuse(self, name: str, due: str, value: object) -> ReleaseError:
        what = f"{self._where}{name} must be {due}, not {_shown(value)}"
        return ReleaseError(f"the release is refused: {what}")

    def whole(self, name: str, least: int, most: int | None = None) -> int:
        """An integer in the given range."""
        value = self._take(name)
        fits = isinstance(value, int) and not isinstance(value, bool) and value >= least
        if not fits or (most is not None and value > most):
            end = "up" if most is None else f"to {most}"
            raise self._refuse(name, f"an integer from {least} {end}", value)
        return int(value)

    def loss(self, name: str) -> float:
        """A finite number of at least 0, or the word for infinity."""
        value = self._take(name)
        number = math.inf if value == _UNBOUNDED else _finite(value)
        if number is None or number < 0:
            raise self._refuse(name, f"a number from 0 up, or {_UNBOUNDED!r}", value)
        return number

    def share(self, name: str) -> float:
        """A number from 0 to 1."""
        value = self._take(name)
        number = _finite(value)
        if number is None or not 0 <= number <= 1:
            raise self._refuse(name, "a number from 0 to 1", value)
        return number

    def fraction(self, name: str) -> Fraction:
        """A fraction as :func:`write` writes it."""
        value = self._take(name)
        try:
            if isinstance(value, str) and _FRACTION.fullmatch(value):
                return Fraction(value)
        except (ValueError, ZeroDivisionError):  # more digits than Python converts
            pass
        raise self._refuse(name, "a fraction such as '20/21'", value)

    def text(self, name: str, form: re.Pattern[str] | None = None, due: str = "") -> str:
        """A text of the given form, or any short printable text."""
        value = self._take(name)
        if isinstance(value, str):
            if form is not None and form.fullmatch(value):
                return value
            if form is None and _short(value):
                return value
        due = due or f"a text of 1 to {_LONGEST_TEXT} characters"
        raise self._refuse(name, due, value)

    def texts(self, name: str) -> tuple[str, ...]:
        """A list of different short printable texts."""
        value = self._take(name)
        fits = isinstance(value, list) and all(_short(each) for each in value)
        if not fits or len(set(value)) != len(value):
            raise self._refuse(name, "a list of different short texts", value)
        return tuple(value)

    def truth(self, name: str) -> bool:
        """True or false."""
        value = self._take(name)
        if not isinstance(value, bool):
            raise self._refuse(name, "true or false", value)
        return value

    def inner(self, name: str) -> "Fields":
        """An object inside this one."""
        return Fields(f"{self._where}{name}.", self._take(name))

    def listed(self, name: str) -> list["Fields"]:
        """A list of objects."""
        value = self._take(name)
        if not isinstance(value, list):
            raise self._refuse(name, "a list", value)
        return [Fields(f"{self._where}{name}[{i}].", each) for i, each in enumerate(value)]

    def check_all_read(self) -> None:
        """Refuse unknown fields: they may be meant to change the meaning of the others."""
        for name in self._left:
            known = f"{self._where}{_shown(name)} is not a field of this format"
            raise ReleaseError(f"the release is refused: {known}")


def _short(value: object) -> bool:
    return isinstance(value, str) and 0 < len(value) <= _LONGEST_TEXT and value.isprintable()


def _shown(value: object) -> str:
    return reprlib.repr(value)


def _finite(value: object) -> float | None:
    """The value if it is a finite number; None for anything else, such as NaN."""
    try:
        number = float(value) if isinstance(value, int | float) else math.nan
    except OverflowError:
        return None
    return number if math.isfinite(number) and not isinstance(value, bool) else None
