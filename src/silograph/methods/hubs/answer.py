"""What a hub search finds: one noisy degree sum per node, and the nodes with the largest."""

import csv
import os
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from silograph.dp.loss import View, check_number, shown_loss
from silograph.errors import ArgumentError, ReleaseError
from silograph.estimators.estimate import Provenance, definitions, views_table
from silograph.graph.universe import NodeUniverse
from silograph.methods.hubs.noise import HubNoise
from silograph.whole_files import written_whole

__all__ = ["HubSearch"]


@dataclass(frozen=True, eq=False)
class HubSearch:
    """The noisy degree sums of all nodes, and the nodes with the largest.

    The sum of a node is its degree in every silo, added up: an edge counts once for each silo that
    holds it. The sums are unbiased, and their noise has one law for all nodes. What is read from
    them, such as a list of hubs, is paid for and may be published.

    Examples
    --------
    >>> from silograph.estimators.estimate import Provenance
    >>> made = Provenance("hubs", "masked", 3, 1)
    >>> noise, nodes = HubNoise.choose(1.0, silos=3, collusion=1), NodeUniverse(["a", "b", "c"])
    >>> found = HubSearch(noise, nodes, made, np.array([4, -2, 31]))
    >>> found.top(2), found.top(2, least=10), found.scale
    (('c', 'a'), ('c',), 6.0)
    """

    noise: HubNoise
    universe: NodeUniverse = field(repr=False)
    provenance: Provenance
    #: The noisy sums, in the order of the universe.
    degrees: NDArray[np.int64] = field(repr=False)

    def __post_init__(self) -> None:
        if self.degrees.shape != (self.n,) or self.degrees.dtype != np.int64:
            raise ArgumentError(f"there must be one 64-bit number for each of {self.n} nodes")

    @property
    def n(self) -> int:
        """The number of nodes."""
        return len(self.universe)

    @property
    def scale(self) -> float:
        """The scale of the noise: any sum is off by e-fold larger amounts e times less often."""
        return float(self.noise.scale)

    @property
    def stderr(self) -> float:
        """The standard error of every sum."""
        return self.noise.law.stderr

    @property
    def views(self) -> tuple[View, ...]:
        """The privacy loss against each view of the run."""
        return self.noise.views

    @property
    def losses(self) -> dict[int, float]:
        """The certified epsilon against the coordinator with t silos, for t = 0 … m−1."""
        return self.noise.losses

    @property
    def epsilon(self) -> float:
        """The certified epsilon against the worst of the claimed views."""
        return max(view.epsilon for view in self.views if view.claimed)

    @cached_property
    def _order(self) -> NDArray[np.intp]:
        """The nodes by their sums, the largest first; equal sums by position."""
        return np.argsort(-self.degrees, kind="stable")

    def top(self, count: int, least: float | None = None) -> tuple[str, ...]:
        """The nodes with the largest noisy sums. Asking again costs nothing.

        Parameters
        ----------
        count
            How many nodes, at most.
        least
            Leave out nodes whose noisy sum is below this; a few times :attr:`stderr` leaves out
            most nodes that are there by noise alone.

        Returns
        -------
        tuple
            Their identifiers, the largest sum first; of equal sums the first in the universe.

        Raises
        ------
        ArgumentError
            If the count is not a whole number of at least 0, or the threshold no number.

        Examples
        --------
        >>> made, nodes = Provenance("hubs", "masked", 2, 1), NodeUniverse(["a", "b", "c"])
        >>> found = HubSearch(HubNoise.choose(1.0, 2, 1), nodes, made, np.array([3, 9, 9]))
        >>> found.top(2)
        ('b', 'c')
        """
        if not isinstance(count, int) or isinstance(count, bool) or count < 0:
            raise ArgumentError(f"count must be a whole number of at least 0, not {count!r}")
        found = self._order[:count]
        if least is not None:
            found = found[self.degrees[found] >= check_number("least", least)]
        return tuple(self.universe.id(int(position)) for position in found)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a table of nodes and noisy sums, the largest first, as CSV.

        Parameters
        ----------
        path
            The file to write; an existing file is replaced completely or not at all.

        Raises
        ------
        ReleaseError
            If the file cannot be written.

        Examples
        --------
        >>> import tempfile
        >>> made, nodes = Provenance("hubs", "masked", 2, 1), NodeUniverse(["a", "b"])
        >>> path = Path(tempfile.mkdtemp()) / "hubs.csv"
        >>> HubSearch(HubNoise.choose(1.0, 2, 1), nodes, made, np.array([3, 9])).save(path)
        >>> path.read_text().split()
        ['node,noisy_degree_sum', 'b,9', 'a,3']
        """
        target, ids = Path(path), self.universe.ids
        try:
            with written_whole(target) as partial, partial.open("w", newline="") as file:
                rows = csv.writer(file, lineterminator="\n")
                rows.writerow(("node", "noisy_degree_sum"))
                order = self._order
                rows.writerows(zip((ids[i] for i in order), self.degrees[order], strict=True))
        except OSError as error:
            raise ReleaseError(f"{target}: cannot write the sums: {error.strerror}") from None

    def _repr_html_(self) -> str:
        """Show the search in notebooks."""
        made = self.provenance
        rows = {
            "nodes": f"{self.n:,}, list {self.universe.digest[:16]}…",
            "silos": f"{made.silos}, of which {made.collusion} may pool with the coordinator",
            "noise": f"standard error {self.stderr:.4g} of every sum",
            "cost": f"ε = {shown_loss(self.epsilon)}, paid; every list of hubs from it is free",
        }
        return definitions(f"hub search on {self.n:,} nodes", rows, views_table(self.views))

    def __str__(self) -> str:
        lines = [
            f"hub search on {self.n:,} nodes, universe {self.universe.digest[:16]}…",
            f"  {self.provenance.silos} silos, standard error {self.stderr:.4g} of every sum",
            *(f"  {view}" for view in self.views),
        ]
        return "\n".join(lines)
