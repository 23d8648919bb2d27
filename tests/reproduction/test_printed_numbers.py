"""Numbers of the text: what is reachable, and floors that nothing unbiased gets below."""

import itertools
import math
from pathlib import Path

import numpy as np
import pytest

from reproduction.figures import SIZES, TABLE
from reproduction.printed_numbers import NUMBERS, SLACK, empty_graph_mse, reachable
from reproduction.results import Results
from silograph.dp.channel import Channel
from tests import limits
from tests.reproduction.synthetic import bend


@pytest.mark.parametrize("query", ["2-stars", "triangles"])
def test_the_floor_is_the_exact_variance_on_an_empty_graph(query: str) -> None:
    """Every noisy graph on four nodes, with its probability."""
    n, epsilon = 4, 1.5
    channel = Channel.symmetric(epsilon)
    pairs = list(itertools.combinations(range(n), 2))
    alpha, beta = float(channel.alpha), float(channel.beta)
    p = 1 / (1 + math.exp(epsilon))
    mean = square = 0.0
    for bits in itertools.product((0, 1), repeat=len(pairs)):
        weight = dict(zip(pairs, (alpha if bit else beta for bit in bits), strict=True))
        chance = math.prod(p if bit else 1 - p for bit in bits)
        value = 0.0
        for triple in itertools.combinations(range(n), 3):
            a, b, c = (weight[pair] for pair in itertools.combinations(triple, 2))
            value += a * b * c if query == "triangles" else a * b + a * c + b * c
        mean += chance * value
        square += chance * value**2
    assert mean == pytest.approx(0, abs=1e-12)
    assert square == pytest.approx(empty_graph_mse(query, n, epsilon))


def test_erratum_15_even_an_empty_graph_is_noisier_than_printed() -> None:
    nodes = {"facebook": 4_039, "wiki-vote": 7_115}
    below = [
        number.value < empty_graph_mse(number.query, nodes[number.graph or ""], number.at)
        for number in NUMBERS
        if (number.method, number.measure) == ("feat", "mse")
    ]
    assert below == [True, True]


def test_erratum_14_the_times_fit_ten_to_a_million() -> None:
    for times in TABLE.values():
        each = [seconds / size for seconds, size in zip(times, SIZES, strict=True)]
        assert max(each[1:]) < 1.2 * min(each[1:])
    assert TABLE["libsodium"][-1] / SIZES[-1] == pytest.approx(528e-6, rel=1e-3)


@pytest.mark.parametrize(("position", "measure", "slack"), [(0, "mse", 10), (2, "mre", 10**0.5)])
def test_reachable_and_not(
    found: dict[str, Results], position: int, measure: str, slack: float
) -> None:
    number = NUMBERS[position]
    wanted = {"graph": "wiki-vote", "query": "2-stars", "method": "feat", "epsilon": 6.0}
    for factor, holds, why in (
        (1, True, ""),
        (0.95 * slack, True, ""),
        (1.05 * slack, False, "below the noise"),
        (1 / (0.95 * slack), True, ""),
        (1 / (1.05 * slack), False, "above what is measured"),
    ):
        bent = bend(found["epsilon"], {measure: number.value * factor}, **wanted, form="mended")
        outcome = reachable(number)({"epsilon": bent}, "mended")
        assert (outcome.holds, outcome.why) == (holds, why)
        assert outcome.value == pytest.approx(number.value * factor)
        assert "7,115 nodes without any edge gives" in outcome.says


def test_chance_passes_the_slack_as_rarely_as_the_page_says() -> None:
    errors = np.abs(np.random.default_rng(1).normal(size=(300_000, 10)))
    squares = (errors**2).mean(axis=1)
    sizes = errors.mean(axis=1) / math.sqrt(2 / math.pi)
    for relative, slack in ((squares, SLACK["mse"]), (sizes, SLACK["mre"])):
        passed = int(((relative < 1 / slack) | (relative > slack)).sum())
        low, high = limits.binomial(300_000, 1 / 5_000, variables=2)
        assert low <= passed <= high


def test_numbers_are_those_of_the_paper() -> None:
    paper = Path(__file__).parents[3] / "shared" / "paper"
    if not paper.is_dir():
        pytest.skip("the paper's text is absent: it lies in ../shared/paper beside the repository")
    text = "".join(path.read_text() for path in paper.glob("*.txt")).replace("$", "")
    text = text.replace(" ", "").replace("\\times", "×")
    for number in NUMBERS:
        digits, _, power = f"{number.value:.4e}".partition("e")
        digits = digits.rstrip("0")
        assert any(f"{digits}{zeros}×10^{{{int(power)}}}" in text for zeros in ("", "0", "00")), (
            number.name
        )
    for times in TABLE.values():
        assert all(f"{seconds}" in text for seconds in times)
