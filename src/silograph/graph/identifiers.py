"""Identifiers as text: the one place where a value of any kind becomes an identifier."""

from collections.abc import Iterable
from numbers import Integral
from typing import Literal

import numpy as np
import numpy.typing as npt

from silograph.errors import ArgumentError
from silograph.graph.faults import shown


class NotAnIdError(Exception):
    """A value that is neither text nor an integer; the callers turn it into their own error."""


def id_text(value: object) -> str:
    """Text as it is, integers in decimal; anything else is refused.

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
    """Every value as text; :class:`NotAnIdError` carries the position as its second argument."""
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
    """An integer array without negative values, fit for the fast road; otherwise nothing."""
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
