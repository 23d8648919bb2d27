"""What the graph tests share."""

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The folder with the four SNAP files, or a skip that says why."""
    for place in (os.environ.get("SILOGRAPH_DATA"), ROOT.parent / "shared" / "data"):
        if place is not None and (Path(place) / "facebook_combined.txt.gz").is_file():
            return Path(place)
    pytest.skip("the SNAP files are absent: set SILOGRAPH_DATA to a folder that has them")
