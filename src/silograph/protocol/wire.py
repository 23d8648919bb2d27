"""Fields to bytes and back: each field is preceded by its length, so no two lists look alike."""

import struct
from collections.abc import Sequence

from silograph.errors import EnvelopeError

__all__ = ["pack", "unpack"]

_LENGTH = struct.Struct("<Q")


def pack(*fields: bytes) -> bytes:
    """The fields, each after its length.

    >>> unpack(pack(b"ab", b""), 2)
    [b'ab', b'']
    """
    return b"".join(part for field in fields for part in (_LENGTH.pack(len(field)), field))


def unpack(content: bytes, count: int, limits: Sequence[int] | None = None) -> list[bytes]:
    """Exactly ``count`` fields and nothing after them; a field may be limited in length."""
    fields, position = [], 0
    for i in range(count):
        if position + _LENGTH.size > len(content):
            raise EnvelopeError("the message is truncated")
        (length,) = _LENGTH.unpack_from(content, position)
        position += _LENGTH.size
        if limits is not None and length > limits[i]:
            raise EnvelopeError(f"field {i} of the message is too long")
        if length > len(content) - position:
            raise EnvelopeError("the message is truncated")
        fields.append(content[position : position + length])
        position += length
    if position != len(content):
        raise EnvelopeError("there are bytes after the end of the message")
    return fields
