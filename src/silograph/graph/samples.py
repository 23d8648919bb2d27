"""Whole graphs for local work: read from a file, joined from silos, generated from a seed, split
among silos, or public datasets by name.
"""

import hashlib
import math
import os
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from operator import index
from os import PathLike
from pathlib import Path

import numpy as np

from silograph._core import IdTable, split_masks
from silograph._core import clustered_power_law as grow
from silograph.errors import ArgumentError, DatasetError, EdgeError, SplitWarning, UniverseError
from silograph.graph.identifiers import Case
from silograph.graph.partitioned import whole
from silograph.graph.reading import Ask, Columns, LoadReport, read_alone, sorted_ids
from silograph.graph.silo import Silo
from silograph.graph.universe import NodeUniverse
from silograph.graph.window import Window

# --- Seeds: from a number to the 32 bytes that the Rust core takes --------------------------------
#
# For experiments only: anyone who knows the seed can repeat the draws.


def seed_bytes(purpose: str, seed: int) -> bytes:
    """32 bytes that are derived from the purpose and the seed.

    >>> seed_bytes("split", 1) == seed_bytes("generate", 1)
    False
    """
    try:
        value = index(seed)
    except TypeError:
        value = -1
    if isinstance(seed, bool) or value < 0:
        raise ArgumentError(f"seed is {seed!r}; it must be an integer from 0 up")
    return hashlib.sha256(f"silograph/seed/{purpose}/v1\0{value}".encode()).digest()


# --- Whole graphs, where one party may see all edges ----------------------------------------------


def read_graph(
    path: str | PathLike[str],
    *,
    columns: Columns = None,
    format: str | None = None,  # noqa: A002 (the usual word for it)
    header: bool | None = None,
    strip: bool = False,
    case: Case = None,
    window: Window | None = None,
    name: str = "",
) -> Silo:
    """Read an edge file over the universe of the ids that it contains.

    Ids are sorted by value if all are integers, otherwise by code point. This is for local work and
    experiments. Silos that answer queries together agree on a universe first, and then use
    :meth:`Silo.from_file`.

    Parameters
    ----------
    path
        The file.
    columns
        The two columns that hold the ends, by name or by position.
    format
        The format; see :meth:`Silo.from_file`.
    header
        Whether the first row is a header; see :meth:`Silo.from_file`.
    strip
        Whether white space at the ends of an id is removed.
    case
        ``"lower"`` or ``"upper"``, to convert ids to this case.
    window
        Read only the rows whose time is in this window.
    name
        The name of the graph.

    Returns
    -------
    Silo
        The graph.

    Raises
    ------
    EdgeError
        If the file cannot be loaded.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "edges.csv"
    >>> _ = path.write_text("source,target\\n10,9\\n9,10\\n9,9\\n")
    >>> graph = read_graph(path)
    >>> graph.universe.ids, len(graph), graph.report.self_loops
    (('9', '10'), 1, 1)
    """
    NodeUniverse((), strip=strip, case=case)  # check the options before the file is read
    ask = Ask(path, columns, format, header, window)
    table, words, report = read_alone(ask, strip=strip, case=case)
    return Silo._of(NodeUniverse._of(table, strip, case), words, report, name)


def union(silos: Iterable[Silo], name: str = "") -> Silo:
    """The graph of all edges that any of the silos holds.

    This is for experiments, in which one party may see all silos.

    Parameters
    ----------
    silos
        The silos, all over the same universe.
    name
        The name of the result.

    Returns
    -------
    Silo
        The union.

    Raises
    ------
    ArgumentError
        If there are no silos.
    UniverseError
        If the silos have different universes.

    Examples
    --------
    >>> nodes = NodeUniverse.range(3)
    >>> len(union([Silo.from_edges(nodes, [(0, 1)]), Silo.from_edges(nodes, [(1, 0), (1, 2)])]))
    2
    """
    every = list(whole(silos))
    if not every or not all(isinstance(silo, Silo) for silo in every):
        raise ArgumentError("a union needs at least one silo")
    universe = every[0].universe
    for number, silo in enumerate(every):
        if silo.universe != universe:
            raise UniverseError(
                f"silo {number} has another universe than silo 0: {universe.compare(silo.universe)}"
            )
    table, held = None, [silo.pairs for silo in every]
    if universe.is_open:
        ids = sorted_ids({id_ for silo in every for id_ in silo.nodes})
        table = IdTable.from_texts(ids, universe.strip, universe.case)
        held = [table.find_texts(list(silo.nodes))[silo.pairs] for silo in every]
    pairs = np.concatenate(held)
    first, second = (np.ascontiguousarray(pairs[:, end]) for end in (0, 1))
    return Silo._settled(universe, first, second, kind="union", name=name, table=table)


# --- Splitting one graph among overlapping silos, for experiments ---------------------------------


def split(
    graph: Silo, silos: int, rate: float = 0.3, overlap: float = 0.2, seed: int = 0
) -> tuple[Silo, ...]:
    """Split the edges of a graph among silos of equal size.

    With m silos, rate ρ and overlap σ, the union of the silos holds a share min(1, mρ/(1+σ)) of
    the edges. A share σ of the union is held by two silos, or evenly by more if mρ > 1+σ requires
    it; all other edges are held by one silo. So each silo holds about a share ρ of the edges. Which
    edges are omitted or shared, and which silos share an edge, is uniformly random; unshared edges
    make the sizes equal. If even edges shared by all silos cannot reach the rate
    (mρ > 1+σ(m−1)), union and overlap are kept, and a :class:`SplitWarning` states the rate that
    was reached.

    Parameters
    ----------
    graph
        The graph to split.
    silos
        The number of silos, from 2 to 64.
    rate
        The share ρ of all edges that each silo holds.
    overlap
        The share σ of the union's edges that more than one silo holds.
    seed
        The seed; the same seed gives the same silos.

    Returns
    -------
    tuple of Silo
        The silos, over the universe of the graph.

    Raises
    ------
    ArgumentError
        If an argument is out of range.

    Examples
    --------
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
    # The holders of shared edges provide what unshared edges leave of the requested m·ρ·|E|.
    asked = round(count * share * edges) - (joint - shared)
    holders = min(max(asked, 2 * shared), count * shared)
    if count * share <= 1 + common:
        holders = 2 * shared
    # A shortfall that is due to rounding only needs no warning.
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
        parts.append(graph._only(pairs, report, name))
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
    """The exact decimal that was written: 4 · 0.3 / 1.2 is then exactly 1."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if isinstance(value, (bool, str)) or not 0 <= number <= 1:
        raise ArgumentError(f"{name} is {value!r}; it must be a number from 0 to 1")
    return Fraction(repr(number))


# --- Generated graphs for examples and experiments ------------------------------------------------

_MOST_EDGES = 2**31


def clustered_power_law(
    n: int = 1000, edges_per_node: int = 8, closure: float = 0.6, seed: int = 0
) -> Silo:
    """Generate a graph with a power-law degree distribution and many triangles.

    The graph grows by preferential attachment and triad formation. It begins with
    ``edges_per_node`` nodes and no edges. Every later node brings ``edges_per_node`` edges, so
    there are (n − edges_per_node) · edges_per_node edges in total. Each edge of a node except the
    first closes a triangle with probability ``closure``, if there is one left to close.

    Reference: P. Holme and B. J. Kim, Growing scale-free networks with tunable clustering,
    Physical Review E 65, 026107 (2002).

    Parameters
    ----------
    n
        The number of nodes.
    edges_per_node
        The number of edges that each later node brings.
    closure
        The probability that an edge closes a triangle.
    seed
        The seed; the same seed gives the same graph.

    Returns
    -------
    Silo
        The graph, over the nodes 0, 1, … n−1.

    Raises
    ------
    ArgumentError
        If an argument is out of range.

    Examples
    --------
    >>> graph = clustered_power_law(n=100, edges_per_node=4)
    >>> graph
    <Silo 'clustered power law': 384 edges over 100 nodes>
    """
    nodes, each = _count("n", n), _count("edges_per_node", edges_per_node)
    if nodes <= each:
        raise ArgumentError(f"edges_per_node is {each}; it must be less than n, which is {nodes}")
    if nodes * each > _MOST_EDGES:
        raise ArgumentError(f"{nodes:,} · {each:,} edges are too many; at most 2^31 are made")
    try:
        share = float(closure)
    except (TypeError, ValueError):
        share = math.nan
    if isinstance(closure, (bool, str)) or not 0 <= share <= 1:
        raise ArgumentError(f"closure is {closure!r}; it must be a number from 0 to 1")
    words = grow(nodes, each, share, seed_bytes("clustered power law", seed))
    report = LoadReport(source="generated", format="holme-kim", rows=len(words), edges=len(words))
    return Silo._of(NodeUniverse.range(nodes), words, report, "clustered power law")


def _count(name: str, value: int) -> int:
    try:
        count = index(value)
    except TypeError:
        count = 0
    if isinstance(value, bool) or count < 1:
        raise ArgumentError(f"{name} is {value!r}; it must be an integer from 1 up")
    return count


# --- Four public graphs of the Stanford Network Analysis Project, by name -------------------------
#
# Reference: J. Leskovec and A. Krevl, SNAP Datasets: Stanford Large Network Dataset Collection,
# https://snap.stanford.edu/data, 2014.

BASE_URL = "https://snap.stanford.edu/data/"


@dataclass(frozen=True, slots=True)
class Entry:
    """A known dataset. Its counts are of the undirected graph without self-loops."""

    file: str
    nodes: int
    edges: int
    triangles: int


REGISTRY = {
    "facebook": Entry("facebook_combined.txt.gz", 4_039, 88_234, 1_612_010),
    "wiki-vote": Entry("wiki-Vote.txt.gz", 7_115, 100_762, 608_389),
    "ca-hepph": Entry("ca-HepPh.txt.gz", 12_008, 118_489, 3_358_499),
    "email-enron": Entry("email-Enron.txt.gz", 36_692, 183_831, 727_044),
}


def dataset(
    name: str, *, folder: str | os.PathLike[str] | None = None, base_url: str = BASE_URL
) -> Silo:
    """Load one of the graphs ``facebook``, ``wiki-vote``, ``ca-hepph`` and ``email-enron``.

    The file is looked for in ``folder``. If ``folder`` is not given, it is looked for in the folder
    named by the environment variable ``SILOGRAPH_DATA``, then in the user's cache; if it is in
    neither, it is downloaded into the cache. Nodes, edges and triangles are counted after reading
    and compared with the published numbers.

    Parameters
    ----------
    name
        The name of the dataset.
    folder
        The folder that holds the file.
    base_url
        The address to download from, such as a mirror.

    Returns
    -------
    Silo
        The graph.

    Raises
    ------
    ArgumentError
        If there is no dataset of this name.
    DatasetError
        If the file cannot be found or downloaded, or is not the published one.

    Examples
    --------
    >>> dataset("facebook")  # doctest: +SKIP
    <Silo 'facebook': 88,234 edges over 4,039 nodes>
    """
    key = str(name).lower()
    if key not in REGISTRY:
        raise ArgumentError(f"no dataset {name!r}; there are {', '.join(REGISTRY)}")
    entry = REGISTRY[key]
    path = _find(key, entry, folder, base_url)
    try:
        graph = read_graph(path, format="whitespace", name=key)
    except EdgeError as error:
        raise DatasetError(f"dataset {key}: {error}; delete the file to fetch it again") from None
    found = (len(graph.universe), len(graph), graph.triangles())
    expected = (entry.nodes, entry.edges, entry.triangles)
    if found != expected:
        raise DatasetError(
            f"dataset {key}: {path} has {_counts(found)}, where {_counts(expected)} are "
            "published; it is another file, or damaged"
        )
    return graph


def _find(key: str, entry: Entry, folder: str | os.PathLike[str] | None, base_url: str) -> Path:
    if folder is not None:
        path = Path(folder) / entry.file
        if not path.is_file():
            raise DatasetError(f"dataset {key}: there is no file {entry.file} in {folder}")
        return path
    given = os.environ.get("SILOGRAPH_DATA")
    places = ([Path(given)] if given else []) + [cache_folder()]
    for place in places:
        if (place / entry.file).is_file():
            return place / entry.file

    from silograph.graph.download import fetch  # noqa: PLC0415 (rarely needed)

    target = places[-1] / entry.file
    try:
        fetch(base_url + entry.file, target)
    except DatasetError as error:
        raise DatasetError(
            f"dataset {key}: {entry.file} is not in {' or '.join(map(str, places))}, and "
            f"{error}; set SILOGRAPH_DATA to a folder that has the file"
        ) from None
    return target


def cache_folder() -> Path:
    """The folder for downloads: below XDG_CACHE_HOME, or else ~/.cache."""
    home = os.environ.get("XDG_CACHE_HOME")
    return (Path(home) if home else Path.home() / ".cache") / "silograph"


def _counts(counts: tuple[int, int, int]) -> str:
    return "{:,} nodes, {:,} edges and {:,} triangles".format(*counts)
