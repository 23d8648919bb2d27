"""Synthetic results, made once."""

import pytest

from reproduction.results import Results
from tests.reproduction.synthetic import synthetic


@pytest.fixture(scope="session")
def found() -> dict[str, Results]:
    return synthetic()
