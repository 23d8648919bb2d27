"""Two releases in time: changes that are real are named, noise is not."""

import pytest

from silograph import Channel, NodeUniverse, Release, SealedRelease, Silo, clustered_power_law
from silograph.errors import ArgumentError
from silograph.estimators.comparison import compare
from silograph.methods.sealed.noise import SealedNoise

GRAPH = clustered_power_law(80, 4, seed=1)
CHANNEL = Channel.symmetric(3.0)


def draw(graph: Silo, seed: int) -> Release:
    return Release.draw(graph, CHANNEL, seed)


def test_a_release_and_itself() -> None:
    release = draw(GRAPH, 1)
    found = release.compare(release)
    assert {change.verdict for change in found.changes} == {"the same"}
    assert all(float(change.difference) == 0 for change in found.changes)
    assert "one and the same run" in found.note


def test_a_real_change() -> None:
    fewer = Silo.from_edges(GRAPH.universe, GRAPH.pairs[::2])
    found = draw(GRAPH, 1).compare(draw(fewer, 2))
    verdicts = {change.before.name: change.verdict for change in found.changes}
    assert verdicts["edges"] == "has fallen"
    assert verdicts["triangles"] == "has fallen"
    assert list(verdicts) == [
        "edges", "kstars(k=2)", "kstars(k=3)", "triangles", "four_cycles", "clustering"
    ]  # fmt: skip
    back = draw(fewer, 2).compare(draw(GRAPH, 1))
    assert back[0].verdict == "has risen"
    assert float(back[0].difference) == -float(found[0].difference)
    assert "edges" in str(found)
    assert "has fallen" in found._repr_html_()
    assert found.to_dict()["changes"][0]["verdict"] == "has fallen"
    assert found.table().to_csv().startswith("count,before,after,change,stderr,low,high,verdict\n")


@pytest.mark.whole
def test_noise_is_rarely_a_change() -> None:
    """Of 60 comparisons of a graph with itself at most 5 % should say “has”; 12 are too many."""
    draws = [draw(GRAPH, seed) for seed in range(120)]
    wrong = 0
    for before, after in zip(draws[::2], draws[1::2], strict=True):
        words = [change.verdict for change in before.compare(after).changes]
        wrong += any(word in ("has risen", "has fallen") for word in words)
    assert wrong < 12


def test_other_node_lists() -> None:
    other = Silo.from_edges(NodeUniverse.range(81), GRAPH.pairs)
    assert "node lists differ" in draw(GRAPH, 1).compare(draw(other, 2)).note


def test_only_releases_are_compared() -> None:
    with pytest.raises(ArgumentError, match="two releases are compared, not Estimate"):
        compare(draw(GRAPH, 1), draw(GRAPH, 2).edges())


def test_sealed_answers() -> None:
    noise = SealedNoise.choose(3.0, 80, 4, 1, ["edges", "triangles"])
    before = SealedRelease.draw(GRAPH, noise, seed=1)
    fewer = Silo.from_edges(GRAPH.universe, GRAPH.pairs[::3])
    found = before.compare(SealedRelease.draw(fewer, noise, seed=2))
    assert [change.before.query for change in found.changes] == ["edges", "triangles"]
    assert found[0].verdict == "has fallen"
    # A release and sealed answers are independent runs, and can be compared as well.
    assert before.compare(draw(fewer, 3))[0].verdict == "has fallen"
