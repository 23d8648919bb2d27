"""Four public graphs of the Stanford Network Analysis Project, by name.

Reference: J. Leskovec and A. Krevl, SNAP Datasets: Stanford Large Network Dataset Collection,
https://snap.stanford.edu/data, 2014.
"""

import os
from dataclasses import dataclass
from pathlib import Path

from silograph.errors import ArgumentError, DatasetError, EdgeError
from silograph.graph.files import read_graph
from silograph.graph.silo import Silo

BASE_URL = "https://snap.stanford.edu/data/"


@dataclass(frozen=True, slots=True)
class Entry:
    """A graph that the registry knows. Counts are of the undirected graph without loops."""

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
    """One of the graphs ``facebook``, ``wiki-vote``, ``ca-hepph`` and ``email-enron``.

    The file is looked for in ``folder`` or, where that is not given, in the folder that the
    environment variable ``SILOGRAPH_DATA`` names, then in the user's cache; if it is in none of
    these, it is downloaded into the cache from ``base_url`` (a mirror may be named). Nodes, edges
    and triangles are counted after reading.
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
            "published; it is another or a damaged file"
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
    from silograph.graph.download import fetch  # noqa: PLC0415 (few who read a graph fetch one)

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
    """Where downloads are kept: below XDG_CACHE_HOME, or else ~/.cache."""
    home = os.environ.get("XDG_CACHE_HOME")
    return (Path(home) if home else Path.home() / ".cache") / "silograph"


def _counts(counts: tuple[int, int, int]) -> str:
    return "{:,} nodes, {:,} edges and {:,} triangles".format(*counts)
