"""Fixtures that several folders share."""

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from silograph.graph.bits import BitRows
from silograph.graph.samples import dataset

# An example that takes long on a busy machine is no fault. Examples are the same in every run, so
# that a change is judged by what it changes; `--whole` looks for new ones.
settings.register_profile("whole", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("silograph", settings.get_profile("whole"), derandomize=True)


#: Folders whose tests start processes, brokers or a shell.
_DEPLOY = {"nats", "docs", "reproduction"}


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--whole``."""
    parser.addoption("--whole", action="store_true", help="run what make exact runs, too")


def pytest_configure(config: pytest.Config) -> None:
    """Choose the examples of properties, before any test is read."""
    settings.load_profile("whole" if config.getoption("--whole") else "silograph")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Give every test one mark: by its folder, or ``slow`` where it says so, or else ``unit``.

    Those marked ``whole`` take minutes, and are left out unless they are asked for.
    """
    if not config.getoption("--whole"):
        long = [item for item in items if item.get_closest_marker("whole")]
        config.hook.pytest_deselected(items=long)
        items[:] = [item for item in items if item not in long]
    for item in items:
        folder = item.path.relative_to(Path(__file__).parent).parts[0]
        if folder == "browser":
            item.add_marker(pytest.mark.browser)
        elif folder in _DEPLOY:
            item.add_marker(pytest.mark.deploy)
        elif not any(item.get_closest_marker(mark) for mark in ("slow", "deploy", "whole")):
            item.add_marker(pytest.mark.unit)


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The folder with the four SNAP files, or a skip that says why."""
    beside = Path(__file__).parents[2] / "shared" / "data"
    for place in (os.environ.get("SILOGRAPH_DATA"), beside):
        if place is not None and (Path(place) / "facebook_combined.txt.gz").is_file():
            return Path(place)
    pytest.skip("the SNAP files are absent: set SILOGRAPH_DATA to a folder that has them")


@pytest.fixture(scope="session")
def facebook(data_folder: Path) -> BitRows:
    silo = dataset("facebook", folder=data_folder)
    return BitRows.from_pairs(len(silo.universe), silo.pairs)


@pytest.fixture
def hardly_any_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets a test ask for an epsilon that protects nobody, so that an answer is the bare truth."""
    monkeypatch.setattr("silograph.dp.loss.LARGEST_EPSILON", 1e7)
