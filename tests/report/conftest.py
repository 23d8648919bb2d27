"""Synthetic results, made once."""

import pytest

from silograph.experiments.results import Results

from .synthetic import synthetic


@pytest.fixture(scope="session")
def found() -> dict[str, Results]:
    return synthetic()
