"""Fixtures that several folders share."""

import os
from pathlib import Path

import pytest

from silograph.graph.bitrows import BitRows
from silograph.graph.datasets import dataset


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The folder with the SNAP graphs: SILOGRAPH_DATA, or ../shared/data beside the repository."""
    beside = Path(__file__).parents[2] / "shared" / "data"
    folder = Path(os.environ.get("SILOGRAPH_DATA", beside))
    if not folder.is_dir():
        pytest.skip(f"the SNAP graphs are not here: set SILOGRAPH_DATA (looked in {folder})")
    return folder


@pytest.fixture(scope="session")
def facebook(data_folder: Path) -> BitRows:
    silo = dataset("facebook", folder=data_folder)
    return BitRows.from_pairs(len(silo.universe), silo.pairs)
