"""One file for one release: versioned, checksummed, written whole or not at all.

Layout, all integers little-endian::

    16 bytes   the magic, b"silograph.releas"
     4 bytes   format version
     4 bytes   length of the header
               header: JSON, UTF-8 (n, channel as fractions, universe digest, provenance, views)
               payload: one bit a pair in pair order, padded to 64-bit words
    32 bytes   SHA-256 of everything before it

The checksum finds damage, not malice: who can write the file can write the checksum.
"""

import hashlib
import json
import os
import re
import struct
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from silograph.errors import ChannelError, ReleaseError, SilographError
from silograph.graph.bitrows import BitRows, triangle_bytes
from silograph.graph.whole_file import written_whole
from silograph.privacy.channel import Channel
from silograph.privacy.views import View

__all__ = ["ReleaseContent", "read", "write"]

_MAGIC = b"silograph.releas"
_VERSION = 1
_PREFIX = struct.Struct("<16sII")
_CHECKSUM_BYTES = 32
_LARGEST_HEADER = 1 << 20
# No exponent: a few characters of it would ask for a number of any size.
_FRACTION = re.compile(r"[0-9]+(/[0-9]+)?")


@dataclass(frozen=True)
class ReleaseContent:
    """What a release file holds."""

    graph: BitRows
    channel: Channel
    universe_digest: str
    provenance: dict[str, Any]
    views: tuple[View, ...]


def write(
    path: str | os.PathLike[str],
    graph: BitRows,
    channel: Channel,
    universe_digest: str,
    provenance: Any,
    views: Iterable[View],
) -> None:
    """Write a release file, whole or not at all."""
    header = {
        "n": graph.n,
        "p11": str(channel.p11),
        "p01": str(channel.p01),
        "universe": universe_digest,
        "provenance": asdict(provenance),
        "views": [asdict(view) for view in views],
    }
    encoded = json.dumps(header, sort_keys=True, separators=(",", ":")).encode()
    content = _PREFIX.pack(_MAGIC, _VERSION, len(encoded)) + encoded + graph.to_triangle()
    target = Path(path)
    try:
        with written_whole(target) as partial, partial.open("wb") as file:
            file.write(content)
            file.write(hashlib.sha256(content).digest())
    except OSError as error:
        raise ReleaseError(f"{target}: cannot write the release: {error.strerror}") from None


def read(path: str | os.PathLike[str]) -> ReleaseContent:
    """Read a release file; anything that is not exactly one raises :class:`ReleaseError`."""
    source = Path(path)
    try:
        content = source.read_bytes()
    except OSError as error:
        raise ReleaseError(f"{source}: cannot read the release: {error.strerror}") from None
    if len(content) < _PREFIX.size or not content.startswith(_MAGIC):
        raise ReleaseError(f"{source}: not a Silograph release")
    _, version, header_bytes = _PREFIX.unpack_from(content)
    if version != _VERSION:
        raise ReleaseError(
            f"{source}: release format {version}; this version of Silograph reads format {_VERSION}"
        )
    if header_bytes > _LARGEST_HEADER or len(content) < _PREFIX.size + header_bytes:
        raise ReleaseError(f"{source}: the release is truncated")
    body, checksum = content[:-_CHECKSUM_BYTES], content[-_CHECKSUM_BYTES:]
    intact = hashlib.sha256(body).digest() == checksum
    try:
        header = json.loads(content[_PREFIX.size : _PREFIX.size + header_bytes])
        expected = _PREFIX.size + header_bytes + triangle_bytes(header["n"]) + _CHECKSUM_BYTES
        if not intact:
            shorter = len(content) < expected
            raise ReleaseError(f"{source}: the release is {'truncated' if shorter else 'damaged'}")
        if len(content) != expected:
            raise ReleaseError(f"{source}: the release is damaged: its length is wrong")
        triangle = content[_PREFIX.size + header_bytes : -_CHECKSUM_BYTES]
        return ReleaseContent(
            BitRows.from_triangle(header["n"], triangle),
            Channel(_fraction(header["p11"]), _fraction(header["p01"])),
            str(header["universe"]),
            dict(header["provenance"]),
            tuple(View(**view) for view in header["views"]),
        )
    except ReleaseError:
        raise
    except (
        SilographError, ValueError, KeyError, TypeError, AttributeError, ArithmeticError,
        RecursionError,
    ):  # fmt: skip
        raise ReleaseError(f"{source}: the release is damaged: its header makes no sense") from None


def _fraction(text: str) -> Fraction:
    """A fraction as :func:`write` writes it."""
    if not _FRACTION.fullmatch(text):
        raise ChannelError("a probability is written as a fraction")
    return Fraction(text)
