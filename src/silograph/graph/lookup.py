"""From the ids in an object to positions in a universe."""

from collections.abc import Callable, Iterable

import numpy as np
import numpy.typing as npt

from silograph._core import IdTable
from silograph.errors import EdgeError
from silograph.graph.faults import Lookup, unknown_id
from silograph.graph.identifiers import NotAnIdError, id_texts, plain_integers

Positions = npt.NDArray[np.uint32]
_NONE = 2**32 - 1


def find(
    table: IdTable,
    values: Iterable[object],
    place: Callable[[int], str],
    universe: Lookup | None = None,
) -> Positions:
    """Positions of all values; an :class:`EdgeError` that names the first one without.

    ``place`` says in words where the value of a given number stands; ``universe`` is what the
    table is of, for a hint at what is wrong with an id.
    """
    integers = plain_integers(values)
    if integers is not None:
        found = table.find_ints(integers)
    else:
        values = values.tolist() if isinstance(values, np.ndarray) else list(values)
        try:
            found = table.find_texts(id_texts(values))
        except NotAnIdError as error:
            what, position = error.args
            raise EdgeError(f"{place(position)}: {what}") from None
    missing = found == _NONE
    if missing.any():
        position = int(missing.argmax())
        id_ = integers[position] if integers is not None else list(values)[position]
        what = unknown_id(str(id_), universe) if universe is not None else f"{id_!r} is unknown"
        raise EdgeError(f"{place(position)}: {what}")
    return found
