"""The outline of a graph: as much as one must believe of it to predict how large errors will be.

Every variance in this project is a sum over motifs of the graph. An outline holds those sums,
exact for a public reference graph, estimated from a past release, or guessed from little more than
the number of edges; :mod:`silograph.queries.outline_sources` makes them. It is about a graph *like*
the one that the silos hold, never taken from their edges.
"""

import math
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from silograph.errors import ArgumentError
from silograph.privacy.channel import Weights
from silograph.queries.cycles import CycleSums, four_cycles_noise
from silograph.queries.degrees import edges_noise
from silograph.queries.estimate import FloatArray
from silograph.queries.stars import kstars_noise, square_root
from silograph.queries.tally import ExactSums
from silograph.queries.triangles import clustering_noise, triangles_noise

__all__ = ["EdgeSample", "Outline"]


@dataclass(frozen=True, eq=False)
class EdgeSample:
    """Some edges: the degrees of their ends, their common neighbours, the paths of length 3
    between their ends, and for how many edges each stands."""

    first: FloatArray
    second: FloatArray
    common: FloatArray
    paths: FloatArray
    weights: FloatArray


@dataclass(frozen=True, eq=False)
class Outline:
    """Sums over a graph that nobody has to hold.

    >>> import numpy as np
    >>> from silograph.graph.bitrows import BitRows
    >>> from silograph.queries.outline_sources import outline_of
    >>> k4 = np.array([[0, 1], [0, 2], [0, 3], [1, 2], [1, 3], [2, 3]], dtype=np.uint32)
    >>> outline = outline_of(BitRows.from_pairs(4, k4))
    >>> outline.count("triangles"), outline.count("kstars", 2), outline.count("clustering")
    (4.0, 12.0, 1.0)
    """

    nodes: int
    degrees: NDArray[np.int64]
    triangles: Fraction
    #: Sums over all pairs, and over the edges (see :mod:`silograph.queries.tally`).
    pairs: ExactSums
    joined: ExactSums
    sample: EdgeSample
    #: None where nobody asked for 4-cycles.
    cycles: CycleSums | None
    #: Where all this comes from, in words.
    source: str

    @cached_property
    def edges(self) -> Fraction:
        """The number of edges."""
        return self.joined.one

    @cached_property
    def wedges(self) -> Fraction:
        """The number of 2-stars, which is the sum of common neighbours over pairs."""
        return self.pairs.c

    @property
    def top_degree(self) -> int:
        """The largest degree."""
        return int(self.degrees.max(initial=0))

    def count(self, query: str, k: int | None = None) -> float:
        """What the answer to a query would be. Of degrees it is their mean."""
        match query:
            case "edges":
                return float(self.edges)
            case "degrees":
                return float(2 * self.edges / self.nodes)
            case "kstars":
                return float(sum(n * math.comb(d, k or 1) for d, n in self._degree_counts.items()))
            case "triangles":
                return float(self.triangles)
            case "four_cycles":
                return float((self.pairs.cc - self.pairs.c) / 4)
            case "clustering":
                return float(3 * self.triangles / self.wedges) if self.wedges else math.nan
        raise ArgumentError(f"no error can be predicted for {query}")

    def noise(self, query: str, w: Weights, k: int | None = None) -> float:
        """The standard deviation of the unbiased answer on a release whose pairs have variance
        v1 on edges and v0 elsewhere. Of degrees it is that of a typical node."""
        try:
            return square_root(self._variance(query, w, k))
        except OverflowError:  # of many silos at a small epsilon: nothing would be known
            return math.inf

    def _variance(self, query: str, w: Weights, k: int | None) -> Fraction:
        sums = self.pairs, self.joined, self.edges, self.wedges
        match query:
            case "edges":
                return edges_noise(w, self.nodes, self.edges)
            case "degrees":
                return w.v0 * (self.nodes - 1) + w.delta * 2 * self.edges / self.nodes
            case "kstars":
                return self._kstars_variance(w, k or 1)
            case "triangles":
                return triangles_noise(w, self.nodes, *sums, self.triangles)
            case "clustering" if self.wedges:
                return clustering_noise(w, self.nodes, *sums, self.triangles)
            case "four_cycles" if self.cycles is not None:
                return four_cycles_noise(w, self.nodes, *sums, self.cycles)
        raise ArgumentError(f"this outline predicts no error for {query}")

    def gradients(self, query: str, k: int | None = None) -> FloatArray:
        """How much one more edge would change the answer, at each edge of the sample."""
        match query:
            case "edges":
                return np.ones_like(self.sample.weights)
            case "kstars":
                return _stars_at(self.sample.first, k or 1) + _stars_at(self.sample.second, k or 1)
            case "triangles":
                return self.sample.common
            case "four_cycles":
                return self.sample.paths
        raise ArgumentError(f"there are no local answers for {query}")

    @cached_property
    def _degree_counts(self) -> Counter[int]:
        return Counter(self.degrees.tolist())

    def _kstars_variance(self, w: Weights, k: int) -> Fraction:
        ends = self.sample.first, self.sample.second
        # Of a star with k leaves the pair gives one: k − 1 of the others at each end.
        joined = math.prod(_stars_at(d, k) for d in ends)
        apart = math.prod(_stars_at(d + 1, k) for d in ends)
        weights = self.sample.weights
        products = float(weights @ joined), float(weights @ apart)
        return kstars_noise(w, self.nodes, self._degree_counts, k, *products)


def _stars_at(degrees: FloatArray, k: int) -> FloatArray:
    """C(d − 1, k − 1): the k-stars at a node of degree d that need a given edge of it."""
    factors = (np.maximum(degrees - 1 - i, 0) / (i + 1) for i in range(k - 1))
    stars: FloatArray = math.prod(factors, start=np.ones_like(degrees))
    return stars
