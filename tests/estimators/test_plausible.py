"""What little is known leaves open: ranges that hold known graphs, and what noise does to them."""

import math

import pytest

from silograph import Channel, NodeUniverse, Release, Silo
from silograph.estimators.plausible import OPEN, Plausible, Range, levels
from silograph.estimators.reference import reference_of_release

#: Nodes, edges, 2-stars, triangles and 4-cycles of three public graphs.
GRAPHS = {
    "facebook": (4039, 88234, 9314849, 1612010, 144023053),
    "wiki-vote": (7115, 100762, 14545580, 608389, 57654491),
    "ca-hepph": (12008, 118489, 15278011, 3358499, 486866960),
}


@pytest.mark.parametrize("name", GRAPHS)
def test_the_ranges_hold_what_known_graphs_have(name: str) -> None:
    nodes, edges, *numbers = GRAPHS[name]
    found = Plausible(nodes, {"edges": float(edges)})
    tried = [found.numbers(level) for level in levels(found.open)]
    for key, value in zip(OPEN[1:], numbers, strict=True):
        every = [getattr(one, key) for one in tried]
        assert min(every) < value < max(every), (key, min(every), max(every))
    # Given the 2-stars and triangles, 4-cycles are known within a factor of two.
    known = dict(zip(OPEN, map(float, (edges, *numbers[:2])), strict=False))
    assert 0.5 < Plausible(nodes, known).numbers({}).four_cycles / numbers[2] < 2


def test_noise_leaves_the_range_and_certainty_leaves_nothing() -> None:
    prior = Range.between(100.0, 10_000.0)
    noise = prior.given(-3e6, 1e7, 1e9)
    assert noise.low == pytest.approx(prior.low, rel=0.05)
    assert noise.high == pytest.approx(prior.high, rel=0.05)
    sure = prior.given(700.0, 1.0, 1e9)
    assert (sure.low, sure.likely, sure.high) == pytest.approx((698, 700, 702), abs=0.1)
    # An estimate far outside of what is usual is believed if its error says so.
    assert prior.given(1e6, 1e3, 1e9).likely == pytest.approx(1e6, rel=0.01)
    # An estimate below zero moves the range down, never below nothing.
    low = prior.given(-2000.0, 1500.0, 1e9)
    assert 0 < low.low < low.likely < prior.likely
    assert prior.given(5e9, 1.0, 1e4).high <= 1e4 * (1 + 1e-9)


def test_the_law_is_that_of_bayes() -> None:
    """Against a sum over many values of the logarithm."""
    prior, estimate, stderr = Range.between(10.0, 1000.0), 300.0, 200.0
    middle, spread = math.log(100.0), math.log(100.0) / (2 * 1.959963984540054)
    logs = [middle + spread * (x / 2000) for x in range(-12_000, 12_001)]
    mass = [
        math.exp(-(((x - middle) / spread) ** 2) / 2 - ((math.exp(x) - estimate) / stderr) ** 2 / 2)
        for x in logs
    ]
    total, so_far, found = sum(mass), 0.0, []
    for x, each in zip(logs, mass, strict=True):
        before, so_far = so_far, so_far + each
        found += [math.exp(x) for q in (0.025, 0.5, 0.975) if before < q * total <= so_far]
    ours = prior.given(estimate, stderr, 1e9)
    assert (ours.low, ours.likely, ours.high) == pytest.approx(tuple(found), rel=0.01)


def test_an_empty_graph_still_gives_a_reference() -> None:
    empty = Silo.from_edges(NodeUniverse.range(50), [])
    for seed in range(3):
        reference = reference_of_release(Release.draw(empty, Channel.symmetric(1.0), seed))
        assert len(reference.others) == 16
        for one in (reference, *reference.others):
            assert one.count("triangles") > 0
            assert math.isfinite(one.noise("triangles", Channel.symmetric(1.0).weights))
