"""Tier 2: 200 releases of Facebook at ε = 3; errors and intervals agree with the formulas."""

from pathlib import Path

import pytest

from silograph import Channel, dataset
from silograph.experiments.redraw import Redraws, redraw

from .. import limits

DRAWS = 200
QUERIES = ("edges", "2-stars", "3-stars", "triangles", "4-cycles")


@pytest.fixture(scope="module")
def redraws(data_folder: Path) -> dict[str, Redraws]:
    graph = dataset("facebook", folder=data_folder)
    return redraw(graph, Channel.symmetric(3.0), range(DRAWS), QUERIES)


@pytest.mark.parametrize("query", QUERIES)
def test_the_error_is_what_the_formula_says(redraws: dict[str, Redraws], query: str) -> None:
    found = redraws[query]
    low, high = limits.chi_square(DRAWS)
    assert low <= DRAWS * found.ratio <= high


@pytest.mark.parametrize("query", QUERIES)
def test_intervals_cover_the_truth(redraws: dict[str, Redraws], query: str) -> None:
    low, high = limits.binomial(DRAWS, 0.95)
    assert low <= redraws[query].covered <= high


@pytest.mark.parametrize("query", QUERIES)
def test_standard_errors_are_of_the_right_size(redraws: dict[str, Redraws], query: str) -> None:
    """Not only on average: each interval is near the one that the truth would give."""
    found = redraws[query]
    ratios = found.stderrs**2 / found.variance
    assert ratios.mean() == pytest.approx(1, abs=0.05)
    assert ratios.min() > 0.6
    assert ratios.max() < 1.6


def test_the_triangle_floor_has_three_known_parts(redraws: dict[str, Redraws]) -> None:
    """Standard deviations 5682, 1041 and 1356: pairs, wedges and triples."""
    expected = 5682**2 + 1041**2 + 1356**2
    assert redraws["triangles"].variance == pytest.approx(expected, rel=1e-3)
