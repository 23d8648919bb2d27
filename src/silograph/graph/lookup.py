"""From the ids in an object to positions in a universe."""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from silograph.errors import EdgeError
from silograph.graph.faults import unknown_id
from silograph.graph.identifiers import NotAnIdError, id_texts, plain_integers

if TYPE_CHECKING:
    from silograph.graph.universe import NodeUniverse

Positions = npt.NDArray[np.uint32]
_NONE = 2**32 - 1


def find(
    universe: "NodeUniverse", values: Iterable[object], place: Callable[[int], str]
) -> Positions:
    """Positions of all values; an :class:`EdgeError` that names the first one without.

    ``place`` says in words where the value of a given number stands.
    """
    integers = plain_integers(values)
    if integers is not None:
        found = universe._table.find_ints(integers)
    else:
        values = values.tolist() if isinstance(values, np.ndarray) else list(values)
        try:
            found = universe._table.find_texts(id_texts(values))
        except NotAnIdError as error:
            what, position = error.args
            raise EdgeError(f"{place(position)}: {what}") from None
    missing = found == _NONE
    if missing.any():
        position = int(missing.argmax())
        id_ = integers[position] if integers is not None else list(values)[position]
        raise EdgeError(f"{place(position)}: {unknown_id(str(id_), universe)}")
    return found
