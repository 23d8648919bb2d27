"""The numbers that a sealed run opened, and everything that follows from them.

The union itself is never opened: there is no noisy graph, only noisy numbers. Queries on these
numbers are post-processing and cost no further privacy. Confidence intervals are quantiles of the
known law of the noise, which has longer tails than the normal law.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from operator import mul
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from silograph import _core
from silograph.dp.laplace import NoiseLaw
from silograph.dp.loss import View, shown_loss
from silograph.errors import ArgumentError, SilographError
from silograph.estimators.comparison import Comparison, compare
from silograph.estimators.estimate import (
    Z95,
    Estimate,
    FloatArray,
    Origin,
    Provenance,
    definitions,
    views_table,
)
from silograph.estimators.groups import Groups
from silograph.estimators.histogram import OwnBlur, histogram
from silograph.estimators.ratio import fieller, said_share, share
from silograph.estimators.release import PaidFor, Release
from silograph.estimators.stars import square_root
from silograph.graph.samples import seed_bytes
from silograph.graph.silo import Silo
from silograph.graph.universe import NodeUniverse
from silograph.methods.sealed.noise import PARTS, Answer, Parts, SealedNoise
from silograph.methods.sealed.stars import (
    effective_nodes,
    kstars_above,
    kstars_floor,
    kstars_value,
    kstars_variance_estimate,
)

__all__ = ["SealedRelease", "drawn_noise"]


class TypeWeights(NamedTuple):
    """How often each type of pairs, the groups of their ends, counts in an answer."""

    weights: tuple[int, ...]


# The sum of this many equal noises is normal for every practical purpose.
_MANY = 1000


@dataclass(frozen=True, eq=False)
class SealedRelease:
    """The numbers that a sealed run opened, their noise, and queries on them.

    Examples
    --------
    >>> graph = Silo.from_edges(NodeUniverse.range(4), np.array([[0, 1], [1, 2], [0, 2]]))
    >>> noise = SealedNoise.choose(50.0, 4, 2, 1, ["degrees", "triangles"])
    >>> release = SealedRelease.draw(graph, noise, seed=1)
    >>> release.triangles().value, release.edges().value
    (1.0, 3.0)
    """

    noise: SealedNoise
    universe_digest: str
    provenance: Provenance
    #: Degrees in the order of the universe, and counts; None if the run did not open them.
    noisy_degrees: NDArray[np.int64] | None = field(default=None, repr=False)
    noisy_edges: int | None = None
    noisy_two_stars: int | None = None
    noisy_triangles: int | None = None
    #: How many edges each type of pair has, type by type, and the public partition.
    noisy_mixing: NDArray[np.int64] | None = field(default=None, repr=False)
    groups: Groups | None = field(default=None, repr=False)
    #: The node list, if it is available.
    universe: NodeUniverse | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        opened: dict[Answer, Any] = {
            "edges": self.noisy_edges,
            "degrees": self.noisy_degrees,
            "mixing": self.noisy_mixing,
            "two_stars": self.noisy_two_stars,
            "triangles": self.noisy_triangles,
        }
        found = {answer for answer, value in opened.items() if value is not None}
        if found != set(self.noise.answers):
            raise ArgumentError(
                f"the noise is for {', '.join(self.noise.answers)}, "
                f"but {', '.join(sorted(found)) or 'nothing'} was opened"
            )
        if self.noisy_degrees is not None and len(self.noisy_degrees) != self.n:
            raise ArgumentError(f"there are {self.n} nodes, but {len(self.noisy_degrees)} degrees")
        types = 0 if self.noisy_mixing is None else len(self.noisy_mixing)
        if types != (0 if self.groups is None else len(self.groups.pairs)):
            raise ArgumentError("edges by groups need groups, and one number for each two of them")

    @classmethod
    def draw(
        cls, graph: Silo, noise: SealedNoise, seed: int, groups: Groups | None = None
    ) -> "SealedRelease":
        """Add noise to the statistics of a known graph. **For experiments only.**

        This needs the true graph in one place and is as predictable as its seed, so it protects
        nobody's edges. The noise has the distribution of a run: exactly, if it comes in shares;
        committee noise is drawn from its ideal law, which no number of runs tells from its coins.

        Parameters
        ----------
        graph
            The true graph.
        noise
            The noise, and the answers that are opened.
        seed
            The seed of all draws.
        groups
            The public partition, if edges by groups are opened.

        Returns
        -------
        SealedRelease
            The simulated release.

        Examples
        --------
        >>> graph = Silo.from_edges(NodeUniverse.range(4), [[0, 1], [1, 2], [0, 2]])
        >>> noise = SealedNoise.choose(50.0, 4, 2, 1, ["degrees", "triangles"])
        >>> release = SealedRelease.draw(graph, noise, seed=1)
        >>> release.n
        4
        """
        truth = graph.degrees()
        opened: dict[str, Any] = {}
        for answer in noise.answers:
            bound = None
            if answer in noise.margins:
                bound = noise.bound(answer, opened["noisy_degrees"])
            match answer:
                case "edges":
                    exact = np.array([len(graph)])
                case "degrees":
                    exact = truth
                case "mixing":
                    exact = _mixing(graph, groups)
                case "two_stars":
                    exact = np.array([int((truth * (truth - 1) // 2).sum())])
                case "triangles":
                    exact = np.array([graph.triangles()])
            drawn = exact + drawn_noise(noise, answer, bound, len(exact), seed)
            array = answer in ("degrees", "mixing")
            opened[f"noisy_{answer}"] = drawn if array else int(drawn[0])
        provenance = Provenance("sealed", "clear", noise.silos, noise.collusion)
        universe = graph.universe
        return cls(noise, universe.digest, provenance, universe=universe, groups=groups, **opened)

    @property
    def n(self) -> int:
        """The number of nodes."""
        return self.noise.nodes

    @property
    def views(self) -> tuple[View, ...]:
        """The privacy loss against each view of the run."""
        return self.noise.views

    @property
    def epsilon(self) -> float:
        """The certified epsilon against the worst of the claimed views."""
        return max(view.epsilon for view in self.views if view.claimed)

    @property
    def delta(self) -> float:
        """The delta against the worst of the claimed views."""
        return max(view.delta for view in self.views if view.claimed)

    @property
    def origin(self) -> Origin:
        """What every answer states about its origin."""
        stated = (self.provenance, self.views, self.noise.losses, self.n, self.universe_digest)
        return Origin(*stated, release=self, universe=self.universe)

    # -- queries ---------------------------------------------------------------------------

    def edges(self) -> Estimate[float]:
        """The number of edges.

        Returns
        -------
        Estimate
            The unbiased count.

        Raises
        ------
        ArgumentError
            If the run opened neither edges nor degrees.

        Examples
        --------
        >>> graph = Silo.from_edges(NodeUniverse.range(4), [[0, 1], [1, 2], [0, 2]])
        >>> noise = SealedNoise.choose(50.0, 4, 2, 1, ["degrees", "triangles"])
        >>> release = SealedRelease.draw(graph, noise, seed=1)
        >>> release.edges().value
        3.0
        """
        if self.noisy_edges is not None:
            return self._count("edges", self.noisy_edges, self.noise.law("edges"))
        if self.noisy_mixing is not None:
            # Every edge is of one type.
            types = len(self.noisy_mixing)
            law, form = self.noise.law("mixing").summed(types), TypeWeights((1,) * types)
            return self._count("edges", int(self.noisy_mixing.sum()), law, form=form)
        noisy, law = self._degrees("edges")
        total = law.summed(self.n)
        return self._estimate(
            "edges",
            value := int(noisy.sum()) / 2,
            total.stderr / 2,
            margin=total.margin() / 2,
            limits=lambda level: around(value, total.margin(level) / 2),
        )

    def mixing(self) -> "Estimate[FloatArray]":
        """The number of edges within each group of the study's partition and between each two.

        Returns
        -------
        Estimate
            The unbiased numbers, as a symmetric matrix; ``at("a", "b")`` gives one of them.

        Raises
        ------
        ArgumentError
            If the run did not open edges by groups.

        Examples
        --------
        >>> graph = Silo.from_edges(NodeUniverse.range(4), [[0, 1], [1, 2], [0, 2]])
        >>> noise = SealedNoise.choose(50.0, 4, 2, 1, ["mixing"])
        >>> groups = Groups(("x", "y"), np.array([0, 0, 1, 1], dtype=np.uint32))
        >>> SealedRelease.draw(graph, noise, seed=1, groups=groups).mixing().value.tolist()
        [[1.0, 2.0], [2.0, 0.0]]
        """
        if self.noisy_mixing is None or self.groups is None:
            self._not_opened("mixing")
        law = self.noise.law("mixing")
        value = self.groups.matrix(self.noisy_mixing.astype(np.float64))
        return Estimate(
            "mixing",
            value,
            np.full(value.shape, law.stderr),
            **self._cost(),
            margin=np.full(value.shape, float(law.margin())),
            limits=lambda level: around(value, law.margin(level)),
            places=self.groups.places,
            form=self._one_type,
        )

    def _one_type(self, entry: int) -> TypeWeights:
        types = 0 if self.noisy_mixing is None else len(self.noisy_mixing)
        return TypeWeights(tuple(int(i == entry) for i in range(types)))

    def covariance(self, one: Estimate[Any], other: Estimate[Any]) -> float:
        """How the errors of two answers of this run go together.

        Parameters
        ----------
        one, other
            Numbers of edges of groups, or of all edges.

        Returns
        -------
        float
            Their covariance: the noises of all types are independent.

        Raises
        ------
        SilographError
            If it is not known.
        """
        if not isinstance(one.form, TypeWeights) or not isinstance(other.form, TypeWeights):
            raise SilographError(
                f"{one.name} and {other.name} rest on one run, and how their errors go together is "
                "not known; take them from two runs"
            )
        shared = sum(map(mul, one.form.weights, other.form.weights))
        return float(shared * self.noise.law("mixing").variance)

    def degrees(self) -> "Estimate[FloatArray]":
        """The degree of every node, in the order of the universe.

        Returns
        -------
        Estimate
            The unbiased degrees.

        Raises
        ------
        ArgumentError
            If the run did not open the degrees.

        Examples
        --------
        >>> graph = Silo.from_edges(NodeUniverse.range(4), [[0, 1], [1, 2], [0, 2]])
        >>> noise = SealedNoise.choose(50.0, 4, 2, 1, ["degrees", "triangles"])
        >>> release = SealedRelease.draw(graph, noise, seed=1)
        >>> release.degrees().value.shape
        (4,)
        """
        noisy, law = self._degrees("degrees")
        stderr, margin = np.full(self.n, law.stderr), np.full(self.n, float(law.margin()))
        value = noisy.astype(np.float64)
        return Estimate(
            "degrees",
            value,
            stderr,
            **self._cost(),
            margin=margin,
            limits=lambda level: around(value, law.margin(level)),
        )

    def degree_histogram(self, bins: Sequence[int] | None = None) -> "Estimate[FloatArray]":
        """How many nodes have a degree in each bin [b0, b1), [b1, b2), …

        Parameters
        ----------
        bins
            The edges of the bins. By default 0, 1, 2, 4, 8, … up to n, joined until the noise can
            tell them apart.

        Returns
        -------
        Estimate
            The most likely histogram, with intervals of whole nodes. The interval of a bin that is
            narrow beside the noise is wide.

        Raises
        ------
        ArgumentError
            If the run did not open the degrees.

        Examples
        --------
        >>> graph = Silo.from_edges(NodeUniverse.range(4), [[0, 1], [1, 2], [0, 2]])
        >>> noise = SealedNoise.choose(50.0, 4, 2, 1, ["degrees", "triangles"])
        >>> release = SealedRelease.draw(graph, noise, seed=1)
        >>> release.degree_histogram([0, 1, 4]).value.shape
        (2,)
        """
        noisy, law = self._degrees("degree_histogram")
        found = histogram(noisy, OwnBlur(self.n, law), bins)
        return Estimate("degree_histogram", found.value, found.stderr, **self._cost(), **found.said)

    def kstars(self, k: int) -> Estimate[float]:
        """The number of k-stars, Σ C(d, k).

        2-stars are taken as they were opened, if they were; all others follow from the noisy
        degrees.

        Parameters
        ----------
        k
            The number of leaves, at least 1.

        Returns
        -------
        Estimate
            The unbiased count. If it follows from degrees, the interval reaches further up than
            down, since the noise does.

        Raises
        ------
        ArgumentError
            If k is out of range, or if the run did not open what is needed.

        Examples
        --------
        >>> graph = Silo.from_edges(NodeUniverse.range(4), [[0, 1], [1, 2], [0, 2]])
        >>> noise = SealedNoise.choose(50.0, 4, 2, 1, ["degrees", "triangles"])
        >>> release = SealedRelease.draw(graph, noise, seed=1)
        >>> release.kstars(2).name
        'kstars(k=2)'
        """
        Release.check_k(k, self.n)
        k, more = int(k), {"parameters": {"k": int(k)}}
        if k == 2 and self.noisy_two_stars is not None:
            return self._count("kstars", self.noisy_two_stars, self._law("two_stars"), **more)
        noisy, law = self._degrees(f"{k}-stars")
        values = noisy.tolist()
        try:
            value = float(kstars_value(values, law, k))
            variance = kstars_variance_estimate(values, law, k)
            stderr = square_root(max(variance, kstars_floor(self.n, law, k)))
            margin = _factor(law, effective_nodes(values, k)) * stderr
            if k == 1:
                return self._estimate("kstars", value, stderr, margin=margin, **more)
            above = max(margin, kstars_above(values, law, k, self.n))
            most = float(self.n * math.comb(self.n - 1, k))
        except OverflowError:
            raise ArgumentError(f"k = {k}: the number of stars exceeds a float's range") from None
        low, high = (min(max(end, 0.0), most) for end in (value - margin, value + above))
        return self._estimate("kstars", value, stderr, ends=(low, high), **more)

    def triangles(self) -> Estimate[float]:
        """The number of triangles.

        Returns
        -------
        Estimate
            The unbiased count.

        Raises
        ------
        ArgumentError
            If the run did not open triangles.

        Examples
        --------
        >>> graph = Silo.from_edges(NodeUniverse.range(4), [[0, 1], [1, 2], [0, 2]])
        >>> noise = SealedNoise.choose(50.0, 4, 2, 1, ["degrees", "triangles"])
        >>> release = SealedRelease.draw(graph, noise, seed=1)
        >>> release.triangles().value
        1.0
        """
        if self.noisy_triangles is None:
            self._not_opened("triangles")
        return self._count("triangles", self.noisy_triangles, self._law("triangles"))

    def clustering(self) -> Estimate[float]:
        """The global clustering coefficient, 3·triangles/2-stars.

        The noise of the triangles depends on that of the 2-stars only through its scale, so the two
        are not correlated.

        Returns
        -------
        Estimate
            The coefficient, cut to [0, 1]; consistent but not unbiased. Its interval is [0, 1] if
            the noise leaves everything possible.

        Raises
        ------
        ArgumentError
            If the run did not open what is needed.

        Examples
        --------
        >>> graph = Silo.from_edges(NodeUniverse.range(4), [[0, 1], [1, 2], [0, 2]])
        >>> noise = SealedNoise.choose(50.0, 4, 2, 1, ["degrees", "triangles"])
        >>> release = SealedRelease.draw(graph, noise, seed=1)
        >>> release.clustering().query
        'clustering'
        """
        triangles, stars = self.triangles(), self.kstars(2)
        if stars.value <= 0:
            value, said = said_share(math.nan, None)
            return self._estimate("clustering", value, math.inf, **said)
        ratio = 3 * triangles.value / stars.value
        stderr = math.hypot(3 * triangles.stderr, ratio * stars.stderr) / stars.value
        # Normal errors whose intervals are as wide as those of the two counts.
        above, below = (max(map(abs, _distances(each))) / Z95 for each in (triangles, stars))
        ends = fieller(3 * triangles.value, (3 * above) ** 2, stars.value, below**2)
        value, said = said_share(ratio, share(ends))
        return self._estimate("clustering", value, stderr, **said)

    def compare(self, other: "PaidFor | SealedRelease") -> Comparison:
        """Whether the graph behind these answers and that behind others differ.

        Parameters
        ----------
        other
            Later answers, of the same silos or of others.

        Returns
        -------
        Comparison
            The change of every count that both answer, with its interval and a verdict.
        """
        return compare(self, other)

    def _law(self, answer: Answer) -> NoiseLaw:
        bound = None
        if self.noisy_degrees is not None:
            bound = self.noise.bound(answer, self.noisy_degrees)
        return self.noise.law(answer, bound)

    def _degrees(self, query: str) -> tuple[NDArray[np.int64], NoiseLaw]:
        if self.noisy_degrees is None:
            self._not_opened(query)
        return self.noisy_degrees, self.noise.law("degrees")

    def _not_opened(self, query: str) -> NoReturn:
        raise ArgumentError(
            f"this run does not answer {query}: it opened only {', '.join(self.noise.answers)}"
        )

    def _count(self, query: str, value: int, law: NoiseLaw, **more: Any) -> Estimate[float]:
        return self._estimate(
            query,
            value,
            law.stderr,
            margin=float(law.margin()),
            limits=lambda level: around(float(value), law.margin(level)),
            **more,
        )

    def _estimate(self, query: str, value: float, stderr: float, **more: Any) -> Estimate[float]:
        return Estimate(query, float(value), stderr, **self._cost(), **more)

    def _cost(self) -> dict[str, Any]:
        return {
            "epsilon": self.epsilon,
            "delta": self.delta,
            "method": self.provenance.method,
            "origin": self.origin,
        }

    @property
    def _kind(self) -> str:
        return "committee noise" if self.noise.kind == "committee" else "noise in shares"

    def _repr_html_(self) -> str:
        """Show the release in notebooks."""
        made = self.provenance
        delta = f", δ = {shown_loss(self.delta)}" if self.delta else ""
        rows = {
            "nodes": f"{self.n:,}, list {self.universe_digest[:16]}…",
            "opened": ", ".join(self.noise.answers).replace("_", "-"),
            "silos": f"{made.silos}, of which {made.collusion} may pool with the coordinator",
            "noise": self._kind,
            "cost": f"ε = {shown_loss(self.epsilon)}{delta}, paid; every question on it is free",
        }
        caption = f"sealed answers on {self.n:,} nodes"
        return definitions(caption, rows, views_table(self.views))

    def __str__(self) -> str:
        lines = [
            f"sealed answers on {self.n:,} nodes, universe {self.universe_digest[:16]}…",
            f"  {', '.join(self.noise.answers)}; {self._kind}, {self.noise.silos} silos",
            *(f"  {view}" for view in self.views),
        ]
        return "\n".join(lines)


def _mixing(graph: Silo, groups: Groups | None) -> NDArray[np.int64]:
    """The exact number of edges of each type."""
    if groups is None:
        raise ArgumentError("edges by groups need groups")
    count = len(groups.names)
    ends = np.sort(groups.labels[graph.pairs].astype(np.int64), axis=1)
    whole = np.bincount(ends @ [count, 1], minlength=count * count).reshape(count, count)
    return whole[groups.types]


def around(value: Any, margin: float) -> tuple[Any, Any]:
    """The interval that reaches so far to both sides."""
    return value - margin, value + margin


def _distances(found: Estimate[float]) -> tuple[float, float]:
    """How far the ends of an interval are from the value."""
    low, high = found.interval
    return low - found.value, high - found.value


def _factor(law: NoiseLaw, nodes: float) -> float:
    """Half the width of a 95 % interval of the noises of so many nodes, in standard errors; at
    least 1.96.

    Where the noise is of a few whole numbers, and the nodes' weights are not equal, some sums reach
    further than those of equal ones: half a unit more leaves room for them, as continuity
    corrections do.
    """
    found, many = Z95, min(nodes, float(_MANY))
    for count in {math.floor(many), math.ceil(many)} if law.stderr > 0 else ():
        margin = law.summed(count).margin()
        half = 0.5 if margin and nodes % 1 else 0.0
        found = max(found, (margin + half) / (law.stderr * math.sqrt(many)))
    return found


def drawn_noise(
    noise: SealedNoise, answer: Answer, bound: int | None, count: int, seed: int
) -> NDArray[np.int64]:
    """The total noise of an answer, from a seed. **For experiments only.**"""
    scale = noise.scale(answer, bound)
    ratio = scale.numerator, scale.denominator
    if noise.kind == "committee":
        return _core.discrete_laplace(count, *ratio, seed_bytes(f"sealed/{answer}", seed))
    parts = Parts(*ratio)
    total = np.zeros(count, dtype=np.int64)
    for member in range(PARTS):
        total += parts.draw(count, seed_bytes(f"sealed/{answer}/{member}", seed))
    return total
