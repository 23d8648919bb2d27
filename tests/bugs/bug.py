"""One planted bug: what it would break, where, and which tests must see it."""

from typing import NamedTuple

__all__ = ["Bug"]


class Bug(NamedTuple):
    """One exact replacement in one file.

    ``tests`` is ``cargo FILTER`` for the core's own tests, or ``pytest PATH … [-k EXPRESSION]``.
    """

    name: str
    what: str
    file: str
    old: str
    new: str
    tests: str
