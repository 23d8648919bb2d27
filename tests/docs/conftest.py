"""The command that pages run, started once."""

from collections.abc import Iterator

import pytest

from tests.docs.shell import Server


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """What stands behind ``silograph`` on every page."""
    made = Server(tmp_path_factory.mktemp("bin"))
    yield made
    made.close()
