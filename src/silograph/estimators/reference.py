"""The reference of a graph: what must be assumed about a graph to predict errors.

Every variance in this project is a sum over motifs of the graph. A reference holds those sums. They
are exact for a public reference graph, estimated from a past release, or guessed from little more
than the number of edges. What is not known exactly has a range (:mod:`silograph.estimators
.plausible`): the reference then holds others like it, at the ends of the ranges. A reference
describes a graph *like* the one that the silos hold; it is never taken from their edges.
"""

import math
from collections import Counter
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from silograph.dp.channel import Channel, Weights
from silograph.dp.loss import shown_loss
from silograph.errors import ArgumentError
from silograph.estimators.cycles import CycleSums, four_cycles_noise
from silograph.estimators.degrees import degree_values, edges_noise
from silograph.estimators.estimate import FloatArray
from silograph.estimators.fold_reference import FoldShape, shape_of, stand_ins
from silograph.estimators.gradient import four_cycles_gradient, triangles_gradient
from silograph.estimators.pair_sums import ExactSums, GraphSums, PairSums
from silograph.estimators.plausible import OPEN, Level, Plausible, levels
from silograph.estimators.release import Release
from silograph.estimators.stars import kstars_noise, square_root
from silograph.estimators.triangles import clustering_noise, triangles_noise
from silograph.graph.bits import BitRows
from silograph.graph.samples import clustered_power_law
from silograph.graph.silo import Silo

__all__ = [
    "EdgeSample",
    "Reference",
    "guess",
    "reference_like",
    "reference_of",
    "reference_of_release",
]


# --- The reference --------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class EdgeSample:
    """A sample of edges: the degrees of their ends, their common neighbours, the paths of length 3
    between their ends, and the number of edges that each represents."""

    first: FloatArray
    second: FloatArray
    common: FloatArray
    paths: FloatArray
    weights: FloatArray


@dataclass(frozen=True, eq=False)
class Reference:
    """Sums over a graph that is like the one to be measured.

    Examples
    --------
    >>> import numpy as np
    >>> from silograph.graph.bits import BitRows
    >>> k4 = np.array([[0, 1], [0, 2], [0, 3], [1, 2], [1, 3], [2, 3]], dtype=np.uint32)
    >>> reference = reference_of(BitRows.from_pairs(4, k4))
    >>> reference.count("triangles"), reference.count("kstars", 2), reference.count("clustering")
    (4.0, 12.0, 1.0)
    """

    nodes: int
    degrees: NDArray[np.int64]
    triangles: Fraction
    #: Sums over all pairs, and over the edges (see :mod:`silograph.estimators.pair_sums`).
    pairs: ExactSums
    joined: ExactSums
    sample: EdgeSample
    #: The sums for 4-cycles; None if they were left out.
    cycles: CycleSums | None
    #: Where the reference comes from, in words.
    source: str
    #: The graph itself, if the reference is one.
    graph: Silo | None = field(default=None, repr=False)
    #: What the graph may be like as well, if not all of it is known: the ends of the ranges.
    others: tuple["Reference", ...] = field(default=(), repr=False)

    @cached_property
    def shapes(self) -> tuple[FoldShape, ...]:
        """What the error of a folded release depends on; several shapes if it is a guess."""
        if self.graph is not None:
            return (shape_of(self.graph),)
        sums = float(self.triangles), float(self.joined.cc), float(self.pairs.cc)
        made = stand_ins(self.nodes, float(self.edges))
        return tuple(one.resembling(self.degrees, *sums) for one in made)

    @cached_property
    def edges(self) -> Fraction:
        """The number of edges."""
        return self.joined.one

    @cached_property
    def wedges(self) -> Fraction:
        """The number of 2-stars, which is the sum over pairs of their common neighbours."""
        return self.pairs.c

    @property
    def top_degree(self) -> int:
        """The largest degree."""
        return int(self.degrees.max(initial=0))

    def count(self, query: str, k: int | None = None) -> float:
        """The answer to a query on the reference graph; for degrees, their mean.

        Parameters
        ----------
        query
            The query, such as ``"triangles"``.
        k
            The number of leaves, for ``"kstars"`` only.

        Returns
        -------
        float
            The answer.

        Raises
        ------
        ArgumentError
            If no error can be predicted for the query.

        Examples
        --------
        >>> from silograph.graph.samples import clustered_power_law
        >>> reference_of(clustered_power_law(50, 3, seed=1)).count("edges")
        141.0
        """
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
        """The standard deviation of the unbiased answer on a release of the reference graph.

        Parameters
        ----------
        query
            The query, such as ``"triangles"``.
        w
            The weights of the release: its pairs have variance v1 on edges and v0 elsewhere.
        k
            The number of leaves, for ``"kstars"`` only.

        Returns
        -------
        float
            The standard deviation; for degrees, that of a typical node.
        """
        try:
            variance = self._variance(query, w, k)
            # Sums that were guessed may not fit each other on a few nodes: then one pair's noise.
            return square_root(variance if variance > 0 else w.v0)
        except OverflowError:  # many silos at a small epsilon: the answer would be all noise
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
        raise ArgumentError(f"this reference predicts no error for {query}")

    def gradients(self, query: str, k: int | None = None) -> FloatArray:
        """By how much one more edge would change the answer, at each edge of the sample."""
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
        # The pair provides one of the k leaves; the other k − 1 are at the same end.
        joined = math.prod(_stars_at(d, k) for d in ends)
        apart = math.prod(_stars_at(d + 1, k) for d in ends)
        weights = self.sample.weights
        # Over the edges the sum cannot be more than over all pairs; guessed ends may say otherwise.
        every = sum(n * math.comb(d, k - 1) for d, n in self._degree_counts.items())
        own = sum(n * math.comb(d, k - 1) ** 2 for d, n in self._degree_counts.items())
        most = float(Fraction(every**2 - own, 2))
        products = float(weights @ joined), min(float(weights @ apart), most)
        return kstars_noise(w, self.nodes, self._degree_counts, k, *products)


def _stars_at(degrees: FloatArray, k: int) -> FloatArray:
    """C(d − 1, k − 1): the k-stars at a node of degree d that use a given edge of the node."""
    factors = (np.maximum(degrees - 1 - i, 0) / (i + 1) for i in range(k - 1))
    stars: FloatArray = math.prod(factors, start=np.ones_like(degrees))
    return stars


# --- Where references come from: a public graph, a past release, or a few numbers -----------------
#: The number of edges whose neighbourhood a reference keeps.
_SAMPLED_EDGES = 4096
#: The number of nodes of the generated graph that is used if only numbers are known.
_STAND_IN = 2048
#: How many of the largest degrees are looked at one by one.
_LARGEST = 4096
#: With more nodes than this, a reference has no rows of bits.
_MOST_ROWS = 30_000
#: A channel without noise: gradients on its release are what an edge adds.
_CERTAIN = Channel(1, 0)


def reference_of(graph: Silo | BitRows, *, cycles: bool = True) -> Reference:
    """The exact reference of a public graph. ``cycles=False`` skips the n³ steps for 4-cycles.

    The graph must be **public**: a reference of the silos' own edges would be a release without
    noise.
    """
    if isinstance(graph, Silo) and len(graph.nodes) > _MOST_ROWS:
        return _large(graph, cycles=cycles)
    rows = graph if isinstance(graph, BitRows) else _rows(graph)
    sums = GraphSums(rows)
    pairs, joined = sums.exact
    return Reference(
        rows.n,
        rows.degrees,
        Fraction(rows.triangles),
        pairs,
        joined,
        _sample(rows, with_paths=cycles),
        CycleSums.of(rows) if cycles else None,
        f"a public graph of {rows.n:,} nodes and {rows.edges:,} edges",
        graph if isinstance(graph, Silo) else None,
    )


def _large(graph: Silo, *, cycles: bool) -> Reference:
    """The reference of a graph with too many nodes for rows of bits; 4-cycles have a range."""
    n, degrees = len(graph.nodes), graph.degrees()
    known = {
        "edges": float(len(graph)),
        "wedges": float((degrees * (degrees - 1) // 2).sum()),
        "triangles": float(graph.triangles()),
    }
    source = f"a public graph of {n:,} nodes and {len(graph):,} edges"
    found = _family(Plausible(n, known), source, shape=degrees.astype(np.float64), cycles=cycles)
    others = tuple(replace(other, graph=graph) for other in found.others)
    return replace(found, graph=graph, others=others)


def reference_of_release(release: Release, *, cycles: bool = True) -> Reference:
    """The reference estimated from a past release, which costs no further privacy.

    What is noise in the estimates is shrunk towards what graphs of this size are like, and the
    error bars that are left make a range.
    """
    n = release.n
    if n < 3:
        raise ArgumentError(f"a release of {n} nodes is too small to plan with; it needs 3")
    estimates = {
        "edges": release.edges(),
        "wedges": release.kstars(2),
        "triangles": release.triangles(),
        "four_cycles": release.four_cycles(),
    }
    known = {
        name: (float(one.value), float(one.stderr))
        for name, one in estimates.items()
        if math.isfinite(one.value) and math.isfinite(one.stderr)
    }
    plausible = Plausible(n, known)
    source = f"a past release at ε = {shown_loss(release.epsilon)}, less its noise"
    return _family(plausible, source, shape=_shrunk_degrees(release, plausible), cycles=cycles)


def _shrunk_degrees(release: Release, plausible: Plausible) -> FloatArray | None:
    """The degrees of a release, drawn together by as much as their noise drew them apart.

    None if there is more noise than difference in them: then a power law says more.
    """
    n, numbers = release.n, plausible.numbers({})
    noisy = np.asarray(degree_values(release.graph, release.channel), dtype=np.float64)
    mean = 2 * numbers.edges / n
    true = 2 * (numbers.wedges + numbers.edges) / n - mean**2
    noise = float(release.channel.weights.v0) * (n - 1)
    if true <= noise:
        return None
    shrunk: FloatArray = mean + (noisy - noisy.mean()) * math.sqrt(true / (true + noise))
    return np.clip(shrunk, 0, n - 1)


def reference_like(like: Reference | Release | Silo, *, cycles: bool = True) -> Reference:
    """The reference of a public graph or a past release; a reference is returned unchanged."""
    if isinstance(like, Reference):
        return like
    if isinstance(like, Release):
        return reference_of_release(like, cycles=cycles)
    if isinstance(like, Silo):
        return reference_of(like, cycles=cycles)
    raise ArgumentError("like must be a public graph, a past release or a reference")


def guess(
    nodes: int,
    edges: float | None = None,
    *,
    wedges: float | None = None,
    triangles: float | None = None,
    common_squares: float | None = None,
    top_degree: int | None = None,
    cycles: bool = True,
) -> Reference:
    """A reference from a few numbers; the rest has a range.

    ``common_squares`` is Σ over pairs of the squared number of common neighbours. If only the
    number of nodes is given, about 8 edges per node are assumed, and from 2 to 32.
    """
    if isinstance(nodes, bool) or not isinstance(nodes, int) or nodes < 3:
        raise ArgumentError(f"nodes must be an integer from 3 up, not {nodes!r}")
    most = math.comb(nodes, 2)
    given = {
        "edges": (edges, most),
        "wedges": (wedges, nodes * math.comb(nodes - 1, 2)),
        "triangles": (triangles, math.comb(nodes, 3)),
        "common_squares": (common_squares, most * (nodes - 2) ** 2),
        "top_degree": (top_degree, nodes - 1),
    }
    for name, (value, limit) in given.items():
        if value is not None and not 0 < value <= limit:
            raise ArgumentError(f"{name} = {value!r}; it must be from 1 to {limit:,} here")
    known = {
        name: float(value)
        for name, (value, _) in given.items()
        if value is not None and name in OPEN
    }
    if top_degree is not None and wedges is None:
        m = Plausible(nodes, known).numbers({}).edges
        degrees = _degrees(_small(nodes, m, cycles=False).degrees, nodes, m, None, top_degree)
        known["wedges"] = max(float((degrees * (degrees - 1) // 2).sum()), 1.0)
    if common_squares is not None:
        likely = Plausible(nodes, known).numbers({})
        known["four_cycles"] = max((common_squares - likely.wedges) / 4, 1.0)
    told = [name for name, (value, _) in given.items() if value is not None]
    words = f"{', '.join(told)} as given" if told else "about 8 edges per node"
    plausible = Plausible(nodes, known)
    rest = [_WORDS[name] for name in plausible.open if told or name != "edges"]
    if rest:
        listed = " and ".join([", ".join(rest[:-1])] * (len(rest) > 1) + rest[-1:])
        words += f"; {listed} as in most graphs of this size"
    return _family(plausible, words, top_degree=top_degree, cycles=cycles)


#: What is open, in words.
_WORDS = {
    "edges": "edges",
    "wedges": "2-stars",
    "triangles": "triangles",
    "four_cycles": "4-cycles",
}


def _rows(graph: Silo) -> BitRows:
    return BitRows.from_pairs(len(graph.nodes), graph.pairs)


def _sample(rows: BitRows, *, with_paths: bool) -> EdgeSample:
    pairs = rows.pairs()
    picked = np.arange(len(pairs))
    if len(pairs) > _SAMPLED_EDGES:
        # A systematic sample of the edges, sorted by their ends' degrees, is stratified.
        products = rows.degrees[pairs[:, 0]] * rows.degrees[pairs[:, 1]]
        order = np.argsort(products, kind="stable")
        middles = (np.arange(_SAMPLED_EDGES) + 0.5) * len(pairs) / _SAMPLED_EDGES
        picked = order[middles.astype(np.int64)]
    chosen = pairs[picked]
    common = triangles_gradient(rows, _CERTAIN, chosen, 0)
    paths = four_cycles_gradient(rows, _CERTAIN, chosen, 0) if with_paths else np.zeros(len(chosen))
    ends = rows.degrees[chosen].astype(np.float64).reshape(-1, 2)
    weights = np.full(len(chosen), len(pairs) / max(len(chosen), 1))
    return EdgeSample(ends[:, 0], ends[:, 1], common, paths, weights)


def _family(
    plausible: Plausible,
    source: str,
    *,
    shape: FloatArray | None = None,
    top_degree: int | None = None,
    cycles: bool,
) -> Reference:
    """The reference at the likely values of all that is open, with others at the ends."""

    def made(level: Level) -> Reference:
        return _stand_in(plausible, level, source, shape, top_degree, cycles=cycles)

    return replace(made({}), others=tuple(made(level) for level in levels(plausible.open)))


def _small(nodes: int, edges: float, *, cycles: bool) -> Reference:
    """A generated graph of this density, and at most as large."""
    small = min(nodes, _STAND_IN)
    return _generated(small, min(max(1, round(edges / nodes)), max((small - 1) // 2, 1)), cycles)


@lru_cache(maxsize=16)
def _generated(nodes: int, each: int, cycles: bool) -> Reference:
    return reference_of(clustered_power_law(nodes, each, 0.6), cycles=cycles)


def _stand_in(
    plausible: Plausible,
    level: Level,
    source: str,
    shape: FloatArray | None,
    top_degree: int | None,
    *,
    cycles: bool,
) -> Reference:
    """A generated graph of this density, with its sums scaled to the requested size.

    Sums over degrees follow from the degrees. Sums over neighbourhoods grow in proportion, and are
    as correlated with the degrees as in the generated graph. This is only a rough approximation.
    """
    nodes, numbers = plausible.nodes, plausible.numbers(level)
    edges, t = numbers.edges, numbers.triangles
    like = _small(nodes, edges, cycles=cycles)
    asked = like.degrees if shape is None else shape
    degrees = _degrees(asked, nodes, edges, numbers.wedges, top_degree)
    d2, d3 = (float((degrees.astype(float) ** j).sum()) for j in (2, 3))
    m = max(edges, 1.0)
    paths2 = max(d2 / 2 - m, 1.0)
    per_edge, per_path = m / float(like.edges), paths2 / max(float(like.wedges), 1.0)
    closer = t / max(float(like.triangles), 1.0)
    closed = max(float(like.joined.cc) * closer**2 / per_edge, 9 * t * t / m)
    cc = 4 * numbers.four_cycles + paths2
    closed = min(closed, cc)
    pairs_ss = (nodes - 6) * d2 + 4 * m * m + 4 * m
    joined_ss = d3 + d2 * d2 / (2 * m) - 4 * d2 + 4 * m
    pairs = _sums(
        math.comb(nodes, 2), paths2, 2 * m * (nodes - 2), cc, pairs_ss, _correlation(like.pairs)
    )
    joined = _sums(m, 3 * t, d2 - 2 * m, closed, joined_ss, _correlation(like.joined))
    deeper = cc / float(like.pairs.cc) * per_path / per_edge
    sample = EdgeSample(
        *_ends(like.sample, degrees),
        like.sample.common * closer / per_edge,
        like.sample.paths * math.sqrt(deeper / per_edge),
        like.sample.weights * per_edge,
    )
    grown = None
    if like.cycles is not None:
        old = like.cycles
        grown = CycleSums(
            on_edges=old.on_edges * Fraction(deeper),
            elsewhere=old.elsewhere * Fraction(deeper),
            c2s=old.c2s * Fraction(deeper),
            c3=old.c3 * Fraction(deeper),
            paths=old.paths * Fraction(per_path * per_path / per_edge),
            cliques=old.cliques * Fraction(closer),
        )
    return Reference(nodes, degrees, Fraction(t), pairs, joined, sample, grown, source)


def _degrees(
    shape: NDArray[np.int64] | FloatArray,
    nodes: int,
    edges: float,
    wedges: float | None,
    top: int | None,
) -> NDArray[np.int64]:
    """Degrees like these, but with the given numbers of nodes, edges and 2-stars and top degree.

    Raising all degrees to one power makes them more or less unequal. The power is found by
    bisection.
    """
    places = (np.arange(nodes) + 0.5) * len(shape) / nodes
    base = np.maximum(np.sort(shape.astype(float))[places.astype(np.int64)], 1e-3)
    # The largest degrees matter most; of the others every so many are looked at.
    rest = max(nodes - _LARGEST, 0)
    step = max(rest // _LARGEST, 1)
    looked = np.concatenate([np.arange(0, rest, step), np.arange(rest, nodes)])
    many = np.where(looked < rest, rest / max(len(range(0, rest, step)), 1), 1.0)

    def bent(power: float, at: NDArray[np.int64] | None = None) -> FloatArray:
        raised = np.exp(power * (np.log(base[looked]) - np.log(base[-1])))
        scale = 2 * edges / float(many @ raised)
        if at is not None:
            raised = np.exp(power * (np.log(base[at]) - np.log(base[-1])))
        d: FloatArray = np.minimum(raised * scale, nodes - 1)
        return d

    def too_even(power: float) -> bool:
        d = bent(power)
        if wedges is not None:
            return float(many @ (d * (d - 1))) / 2 < wedges
        return top is not None and float(d[-1]) < top

    power = 1.0
    if wedges is not None or top is not None:
        low, power = 0.0, 8.0
        for _ in range(50):
            middle = (low + power) / 2
            low, power = (middle, power) if too_even(middle) else (low, middle)
    found = bent(power, np.arange(nodes))
    if top is not None:
        found[-1] = top
    return np.rint(found).astype(np.int64)


def _ends(sample: EdgeSample, degrees: NDArray[np.int64]) -> tuple[FloatArray, FloatArray]:
    """The degrees at the ends of the sampled edges, taken at the same rank among the new degrees
    (an edge meets a node in proportion to its degree)."""
    ordered = np.sort(degrees)
    share = np.cumsum(ordered) / max(int(ordered.sum()), 1)

    def moved(ends: FloatArray) -> FloatArray:
        ranks = (np.argsort(np.argsort(ends, kind="stable"), kind="stable") + 0.5) / len(ends)
        places = np.searchsorted(share, ranks)
        return ordered[np.minimum(places, len(ordered) - 1)].astype(float)

    both = moved(np.concatenate([sample.first, sample.second]))
    return both[: len(sample.first)], both[len(sample.first) :]


def _correlation(sums: ExactSums) -> float:
    return float(sums.cs) / math.sqrt(max(float(sums.cc * sums.ss), 1.0))


def _sums(one: float, c: float, s: float, cc: float, ss: float, correlation: float) -> ExactSums:
    cs = correlation * math.sqrt(max(cc * ss, 0.0))
    return PairSums(*(Fraction(x) for x in (one, c, s, cc, cs, ss)))
