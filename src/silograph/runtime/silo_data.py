"""A silo's edges over the agreed node list.

The list is fixed by the people and never taken from edges, so a silo's file may name nodes that
are not in it. Edges to such nodes are left out and counted; the count depends on the edges, and
goes to the silo's own log and screen only. A file in which no edge has both ends in the list is
refused: its ids are written in another way.
"""

from dataclasses import dataclass

import numpy as np

from silograph.errors import ConfigError, EdgeError
from silograph.graph.files import read_graph
from silograph.graph.silo import Silo
from silograph.graph.universe import NodeUniverse
from silograph.runtime.config import SiloConfig

__all__ = ["SiloData", "load_silo"]


@dataclass(frozen=True)
class SiloData:
    """The edges that a silo serves, and how many it leaves out."""

    silo: Silo
    outside: int


def load_silo(config: SiloConfig, universe: NodeUniverse) -> SiloData:
    """Read the file that the configuration names."""
    data = config.data
    if data.columns is not None and len(data.columns) != 2:
        raise ConfigError(f"{config.file}: data.columns must name two columns")
    columns = (data.columns[0], data.columns[1]) if data.columns else None
    try:
        silo = Silo.from_file(
            universe, data.edges, columns=columns, format=data.format, header=data.header,
            name=config.name,
        )  # fmt: skip
        return SiloData(silo, 0)
    except EdgeError:
        # Whatever else is wrong with the file is found here again.
        whole = read_graph(
            data.edges, columns=columns, format=data.format, header=data.header,
            strip=universe.strip, case=universe.case,
        )  # fmt: skip
    places = {name: place for place, name in enumerate(universe)}
    found = np.array([places.get(name, -1) for name in whole.universe], dtype=np.int64)
    ends = found[whole.pairs]
    inside = (ends >= 0).all(axis=1)
    if not inside.any():
        raise EdgeError(f"{data.edges}: no edge has both ends in the node list {config.universe}")
    silo = Silo.from_pairs(universe, ends[inside], name=config.name)
    return SiloData(silo, int((~inside).sum()))
