"""Dealing one graph to silos that overlap, for experiments."""

import math
import warnings
from fractions import Fraction
from operator import index

from silograph._core import split_masks
from silograph.errors import ArgumentError, SplitWarning
from silograph.graph.report import LoadReport
from silograph.graph.seeds import seed_bytes
from silograph.graph.silo import Silo


def split(
    graph: Silo, silos: int, rate: float = 0.3, overlap: float = 0.2, seed: int = 0
) -> tuple[Silo, ...]:
    """Deals the edges of a graph to 2 to 64 silos of equal size.

    With m silos, rate ρ and overlap σ, the union of the silos holds a share min(1, mρ/(1+σ)) of
    the edges. Of the union a share σ is held by two silos, or by more, spread evenly, where
    mρ > 1+σ asks for it; the rest by one. Each silo then holds about ρ of the edges. Which edges
    are left out or shared, and which silos share an edge, is uniformly random; single edges even
    out the sizes. Where even edges shared by all silos cannot reach the rate
    (mρ > 1+σ(m−1)), union and overlap are kept and a :class:`SplitWarning` names the rate that
    was reached.

    The same seed gives the same silos.

    >>> from silograph.graph import clustered_power_law
    >>> silos = split(clustered_power_law(200, 5), silos=4)
    >>> [len(silo) for silo in silos]
    [292, 293, 292, 293]
    """
    if not isinstance(graph, Silo):
        raise ArgumentError(f"graph is of type {type(graph).__name__}; a Silo is needed")
    count = _silos(silos)
    share, common = _share("rate", rate), _share("overlap", overlap)
    edges = len(graph)
    joint = round(min(Fraction(1), count * share / (1 + common)) * edges)
    shared = round(common * joint)
    # The holders of shared edges make up what single edges leave of the m·ρ·|E| that are asked.
    asked = round(count * share * edges) - (joint - shared)
    holders = min(max(asked, 2 * shared), count * shared)
    if count * share <= 1 + common:
        holders = 2 * shared
    # Short by rounding alone is not worth a warning.
    if asked > holders and count * share > 1 + common * (count - 1):
        reached = (joint - shared + holders) / (count * edges)
        warnings.warn(
            f"a rate of {rate:g} cannot be reached by {count} silos with an overlap of "
            f"{overlap:g}: each silo holds {reached:.4g} of the edges",
            SplitWarning,
            stacklevel=2,
        )
    masks = split_masks((edges, joint, shared, holders), count, seed_bytes("split", seed))
    parts = []
    for number in range(count):
        pairs = graph.pairs[(masks >> number) & 1 == 1]
        name = f"silo {number + 1}"
        report = LoadReport(source="split", format="split", rows=len(pairs), edges=len(pairs))
        parts.append(Silo._with(graph.universe, pairs, report, name))
    return tuple(parts)


def _silos(silos: int) -> int:
    try:
        count = index(silos)
    except TypeError:
        count = 0
    if isinstance(silos, bool) or not 2 <= count <= 64:
        raise ArgumentError(f"silos is {silos!r}; it must be an integer from 2 to 64")
    return count


def _share(name: str, value: float) -> Fraction:
    """The decimal that was written, exactly: 4 · 0.3 / 1.2 is then 1 and not nearly 1."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if isinstance(value, (bool, str)) or not 0 <= number <= 1:
        raise ArgumentError(f"{name} is {value!r}; it must be a number from 0 to 1")
    return Fraction(repr(number))
