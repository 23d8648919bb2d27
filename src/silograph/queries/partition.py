"""The owners of nodes: each node belongs to the silo with the largest noisy degree there.

The paper's Algorithm 4, PartitionNode, after the noise. What is owned is decided by public numbers
alone; a node that nobody has edges at is owned all the same, by whom the noise says.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from silograph.errors import ArgumentError
from silograph.methods.featplus_rounds import Owners

__all__ = ["node_owners", "owned_nodes", "owned_pairs"]


def node_owners(degrees: Sequence[Sequence[int]] | NDArray[Any]) -> Owners:
    """For each node the place of the silo whose noisy degree is the largest; of equals the first.

    >>> node_owners([[3, -1, 5], [2, -1, 9]]).tolist()
    [0, 0, 1]
    """
    # As objects: a silo may send any number, and no number of one may spoil those of others.
    table: NDArray[Any] = (
        degrees if isinstance(degrees, np.ndarray) else np.array(degrees, dtype=object)
    )
    if table.ndim != 2 or not 1 <= len(table) <= 64:
        raise ArgumentError("there must be one noisy degree of every node for each silo")
    owners: Owners = table.argmax(axis=0).astype(np.uint8)
    return owners


def owned_nodes(owners: Owners, place: int) -> NDArray[np.uint32]:
    """The nodes of one silo."""
    return np.flatnonzero(owners == place).astype(np.uint32)


def owned_pairs(owners: Owners, place: int, pairs: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Those of the pairs u < v whose smaller node is the silo's."""
    return np.ascontiguousarray(pairs[owners[pairs[:, 0]] == place])
