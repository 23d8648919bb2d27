"""Tier 2: 30 releases of Facebook at ε = 3; errors and intervals agree with the formulas.

``make bench-floor`` draws 1,000.
"""

from pathlib import Path

import pytest

from reproduction.redraw import redraw
from silograph import Channel, dataset
from tests import limits

DRAWS = 30
QUERIES = ("edges", "2-stars", "3-stars", "triangles", "4-cycles")


@pytest.mark.whole
def test_errors_and_intervals_are_what_the_formulas_say(data_folder: Path) -> None:
    """One test, so that workers who share the tests do not draw the same releases again."""
    graph = dataset("facebook", folder=data_folder)
    redraws = redraw(graph, Channel.symmetric(3.0), range(DRAWS), QUERIES)
    squares, covered = limits.chi_square(DRAWS), limits.binomial(DRAWS, 0.95)
    for query, found in redraws.items():
        assert squares[0] <= DRAWS * found.ratio <= squares[1], query
        assert covered[0] <= found.covered <= covered[1], query
        # Not only on average: each interval is near the one that the truth would give.
        ratios = found.stderrs**2 / found.variance
        assert ratios.mean() == pytest.approx(1, abs=0.05), query
        assert ratios.min() > 0.6, query
        assert ratios.max() < 1.6, query
    # Standard deviations 5682, 1041 and 1356: pairs, wedges and triples.
    floor = 5682**2 + 1041**2 + 1356**2
    assert redraws["triangles"].variance == pytest.approx(floor, rel=1e-3)
