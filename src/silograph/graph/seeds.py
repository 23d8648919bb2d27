"""From a seed that a person writes to the 32 bytes that the Rust core takes.

For experiments only: what is drawn from such a seed can be drawn again by anyone who knows it.
"""

import hashlib
from operator import index

from silograph.errors import ArgumentError


def seed_bytes(purpose: str, seed: int) -> bytes:
    """32 bytes that depend on the purpose and on the seed.

    >>> seed_bytes("split", 1) == seed_bytes("generate", 1)
    False
    """
    try:
        value = index(seed)
    except TypeError:
        value = -1
    if isinstance(seed, bool) or value < 0:
        raise ArgumentError(f"seed is {seed!r}; it must be an integer from 0 up")
    return hashlib.sha256(f"silograph/seed/{purpose}/v1\0{value}".encode()).digest()
