"""Everything that a page says is right, before any of it is laid out."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import silograph as sg
from silograph.errors import ArgumentError
from silograph.estimators.reference import reference_of_release
from silograph.methods.committee.noise import CommitteeNoise
from silograph.methods.masked.noise import MaskedNoise
from silograph.methods.prediction import Question, feat_error
from silograph.page.answer import facts_of
from silograph.page.texts import assumptions, certainty, limits, observer, what_is_learnt
from tests.page.answers import answer, facts


def told(kind: str) -> list[tuple[str, float, bool]]:
    return [(o.who, o.epsilon, o.claimed) for o in facts(kind).observers]


def test_a_release_answers_every_standard_question() -> None:
    release, said = answer("release"), facts("release")
    asked = {
        "Edges": release.edges(),
        "2-stars": release.kstars(2),
        "3-stars": release.kstars(3),
        "Triangles": release.triangles(),
        "4-cycles": release.four_cycles(),
        "Clustering coefficient": release.clustering(),
    }
    assert [count.name for count in said.answers] == list(asked)
    for count, due in zip(said.answers, asked.values(), strict=True):
        assert (count.value, count.stderr) == (due.value, due.stderr)
        assert (count.low, count.high) == due.interval
        assert count.note == due.note
        assert count.meaning.endswith(".")
    assert (said.epsilon, said.delta, said.more, said.vector) == (3.0, 0.0, (), None)
    assert said.title == "A release of 60 nodes"
    assert said.run["digest of the node list"] == release.universe_digest
    assert said.run["run"] == release.provenance.run
    assert said.run["silos"] == "4"
    assert said.run["protocol"] == "masked"


def test_an_estimate_shows_what_else_its_run_answers() -> None:
    one = answer("triangles")
    said = facts_of(one)
    assert [(c.name, c.value) for c in said.answers] == [("Triangles", one.value)]
    release = one.origin.release
    assert isinstance(release, sg.Release)
    assert release.triangles().value == one.value
    free = {"Edges", "2-stars", "3-stars", "4-cycles", "Clustering coefficient"}
    assert {count.name for count in said.more} == free
    assert said.more[0].value == release.edges().value
    assert said.title == "Triangles across 4 silos"
    stars = facts("two stars")
    assert [c.name for c in stars.answers] == ["2-stars"]
    assert "2-stars" not in {count.name for count in stars.more}
    plus = facts("feat+")
    assert "Triangles" not in {count.name for count in plus.more}


def test_who_learns_what_of_a_masked_union() -> None:
    noise = MaskedNoise.choose(3.0, 4, 1)
    alone, with_one, with_two, with_three = (noise.epsilon(4 - t) for t in range(4))
    assert told("release") == [
        ("Anyone who reads the answers", alone, True),
        ("The coordinator alone", alone, True),
        ("The coordinator together with any silo", with_one, True),
        ("Any silo that also sees the release", with_one, True),
        ("The coordinator together with any 2 silos", with_two, False),
        ("The coordinator together with any 3 silos (all but one)", with_three, False),
    ]
    assert alone < with_one <= 3.0 < with_two < with_three
    opened = told("open")
    assert opened[2][0] == "Any silo that also sees the release"
    assert opened[2][1] == MaskedNoise.choose(3.0, 4, 0).epsilon(3) > 3.0
    assert not opened[2][2]


def test_who_learns_what_of_a_committee() -> None:
    loss = CommitteeNoise.choose(3.0, 4, 1).epsilon(1)
    assert told("committee") == [
        ("Anyone who reads the answers", loss, True),
        ("The coordinator alone", loss, True),
        ("The coordinator together with any member of the committee", loss, True),
        ("Any member of the committee that also sees the release", loss, True),
        ("Any 2 members of the committee that pool what they hold", math.inf, False),
    ]
    assert any("at most one is dishonest" in text for text in facts("committee").assumptions)
    assert not any("weaken" in text for text in facts("committee").limits)


@pytest.mark.slow
def test_who_learns_what_of_the_other_methods() -> None:
    assert [line[::2] for line in told("sealed delta")] == [
        ("Anyone who reads the answers", True),
        ("The coordinator alone", True),
        ("The coordinator together with any member of the committee", True),
        ("Any member of the committee that also sees the answers", True),
        ("Any 2 members of the committee that pool what they hold", False),
    ]
    assert told("sealed delta")[-1][1] == math.inf
    sealed = facts("sealed delta")
    assert {o.delta for o in sealed.observers if math.isfinite(o.epsilon)} == {1e-9}
    assert [told.name for told in sealed.method] == ["sealed", "committee that counts"]
    assert any("at most one is dishonest" in text for text in sealed.assumptions)
    assert any("number of its own" in text for text in sealed.limits)
    # Reports protect each silo by its own noise: colluders only take theirs away.
    assert [line[1:] for line in told("reports")] == [
        (3.0, True), (3.0, True), (2.25, True), (2.25, True),
    ]  # fmt: skip
    assert told("clear")[-1] == ("Whoever drew it, with all edges in one place", math.inf, False)
    assert [e for _, e, _ in told("replace")[2:]] == [math.inf] * 4
    assert facts("bare").observers == ()


def test_a_sealed_run_says_how_its_noise_was_drawn() -> None:
    run = facts("sealed delta").run
    margin = answer("sealed delta").noise.margins["triangles"]
    assert run["noise"] == "drawn by the committee, with coins that nobody knows"
    assert run["bounds"] == f"triangles largest noisy degree + {margin}"
    assert [part.split()[0] for part in run["parts of δ"].split(", ")] == [
        "bounds", "degrees", "counts",
    ]  # fmt: skip
    plain = facts("sealed").run
    assert plain["protocol"] == "committee"
    assert not {"bounds", "parts of δ"} & plain.keys()
    shares = facts("sealed shares")
    assert shares.delta == 0
    assert "parts that the four members drew" in shares.run["noise"]


def test_a_coordinator_inside_the_committee_is_one_of_the_four() -> None:
    apart, within = (assumptions("sealed", "committee", 4, t, inside=t == 0)[0] for t in (1, 0))
    assert "together with the coordinator" in apart
    assert "of whom the coordinator is one" in within
    assert "together with the coordinator" not in within
    found = answer("sealed triangles").origin
    noise = replace(answer("sealed triangles").noise, collusion=0, inside=True)
    assert (
        within
        in facts_of(
            replace(
                sg.Estimate("triangles", 5.0, 1.0, 1.0), origin=replace(found, views=noise.views)
            )
        ).assumptions
    )


def test_feat_plus_counts_all_of_its_parts() -> None:
    one = answer("feat+")
    views = {view.name: view.epsilon for view in one.origin.views}
    assert views["coordinator + 1 silo"] == one.epsilon
    # The release alone, at ε1, costs much less than the run.
    # Whoever had a part in the run saw degrees and reports as well: so does its release say.
    assert one.origin.release.epsilon == one.epsilon
    assert one.origin.release.channel.epsilon < 0.5 * one.epsilon
    assert one.origin.losses[1] == one.epsilon
    assert one.origin.release.losses[1] == one.origin.release.epsilon
    said = facts_of(one)
    assert said.epsilon == one.epsilon
    assert max(o.epsilon for o in said.observers if o.claimed) == one.epsilon
    assert said.run["parts of ε"].startswith("release 1.35, partition 0.3")
    assert said.run["method"] == "feat+"


def test_of_many_silos_only_the_ends_are_told() -> None:
    noise = MaskedNoise.choose(2.0, 16, 1)
    release = sg.Release.draw(sg.clustered_power_law(20, seed=1), noise.channel, seed=1)
    made = sg.Provenance("feat", "masked", 16, 1)
    losses = {t: noise.epsilon(16 - t) for t in range(16)}
    said = facts_of(replace(release, provenance=made, views=noise.views, losses=losses))
    beyond = [o.who for o in said.observers if not o.claimed]
    assert beyond == [
        "The coordinator together with any 2 silos",
        "The coordinator together with any 15 silos (all but one)",
    ]


def test_the_degree_distribution_or_why_there_is_none() -> None:
    release = answer("release")
    due = release.degree_histogram()
    shown = facts("release").degrees
    assert [each.value for each in shown] == due.value[: len(shown)].tolist()
    assert [each.low for each in shown] == due.interval[0][: len(shown)].tolist()
    assert [each.label for each in shown][:4] == ["0", "1", "2–3", "4–31"]
    left_out = due.value[len(shown) :]
    assert left_out.size == 0 or float(left_out.max()) < 0.5
    assert facts("sealed").degrees
    for kind, why in (
        ("sealed triangles", "did not open degrees"),
        ("reports", "no degree distribution"),
        ("bare", "not at hand"),
    ):
        said = facts(kind)
        assert said.degrees == ()
        assert why in said.no_degrees


def test_vectors_have_a_place_for_each_value() -> None:
    said = facts("degrees")
    assert said.vector is not None
    assert said.vector.places == tuple(str(i) for i in range(60))
    assert np.array_equal(said.vector.values, answer("degrees").value)
    assert said.answers == ()
    bins = facts("histogram").vector
    assert bins is not None
    assert bins.places[:4] == ("0", "1", "2–3", "4–7")
    alone = replace(answer("degrees"), origin=None)
    unknown = facts_of(alone).vector
    assert unknown is not None
    assert unknown.places[:2] == ("node 0", "node 1")


@pytest.mark.parametrize("kind", ["release", "triangles", "sealed", "sealed delta", "reports"])
def test_errors_fall_as_epsilon_grows_and_meet_the_run(kind: str) -> None:
    for count in facts(kind).answers:
        assert count.curve is not None, count.name
        epsilons, errors = zip(*count.curve.points, strict=True)
        assert list(epsilons) == sorted(epsilons)
        assert list(errors) == sorted(errors, reverse=True), count.name
        assert count.curve.own == (answer(kind).epsilon, count.stderr)


def test_predictions_are_the_planner_s() -> None:
    release = answer("release")
    triangles = facts("release").answers[3]
    reference = reference_of_release(release)
    assert triangles.curve is not None
    for epsilon, error in triangles.curve.points:
        assert error == feat_error(reference, Question("triangles", epsilon, 4, 1), "masked")
    # Without a bound from degrees, a sealed run's noise does not depend on the graph at all.
    for count in facts("sealed").answers:
        if count.query in ("triangles", "edges"):
            assert count.curve is not None
            spent = answer("sealed").epsilon
            assert dict(count.curve.points)[spent] == pytest.approx(count.stderr, rel=1e-5)
    # As printed, m silos pay for each other: at a loss of m·ε the coins are those of ε.
    printed = facts("printed").answers[0].curve
    assert printed is not None
    assert dict(printed.points)[answer("printed").epsilon] == pytest.approx(printed.own[1], rel=0.1)
    drawn = facts("drawn").answers[0].curve
    assert drawn is not None
    assert dict(drawn.points)[answer("drawn").epsilon] == pytest.approx(drawn.own[1], rel=0.01)


@pytest.mark.parametrize("kind", ["bare", "raw", "histogram"])
def test_without_a_formula_there_is_no_curve(kind: str) -> None:
    said = facts(kind)
    assert all(count.curve is None for count in said.answers)
    assert said.reference == ""
    assert said.vector is None or said.vector.curve is None


def test_a_raw_count_has_no_interval() -> None:
    (count,) = facts("raw").answers
    assert math.isnan(count.low)
    assert math.isnan(count.relative)
    assert "without an error bar" in count.note


def test_below_zero_is_seen() -> None:
    low = replace(answer("bare"), value=-1.0)
    assert facts_of(low).below_zero
    assert not facts("bare").below_zero


@pytest.mark.parametrize("wrong", [None, 3, "release", [], sg.clustered_power_law(9, seed=1)])
def test_other_things_are_refused(wrong: Any) -> None:
    with pytest.raises(ArgumentError, match="a page is made of an Estimate, a Release"):
        facts_of(wrong)


@pytest.mark.parametrize("n", [2, 3, 4])
def test_tiny_graphs_have_pages_too(n: int) -> None:
    silo = sg.Silo.from_edges(sg.NodeUniverse.range(n), np.array([[0, 1]]))
    said = facts_of(sg.Release.draw(silo, sg.Channel.symmetric(1.0), seed=1))
    assert said.answers[0].name == "Edges"
    assert sum(each.value for each in said.degrees) == pytest.approx(n, abs=0.5)


def test_words_of_a_loss() -> None:
    assert what_is_learnt(3.0) == (
        "Nothing beyond ε = 3: a 50 % guess about one edge becomes 95.3 % sure at most."
    )
    assert "a chance of 1e-9 that this bound fails" in what_is_learnt(1.0, 1e-9)
    for epsilon in (0.01, 0.5, 1.0, 4.6, 5.0, 9.3, 15.0):
        shown = float(certainty(epsilon).removesuffix(" %"))
        exact = 100 / (1 + math.exp(-epsilon))
        assert exact - 1e-9 <= shown < exact + 0.11
        assert shown < 100
    assert observer("who <knows>") == "who <knows>"
    assert "ε = 30" in limits("feat", 3.0)[1]
    assert "larger still" in limits("sealed", 1.0, 1e-9)[1]


def test_large_graphs_are_not_counted_to_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    assert facts("release").left_out == facts("sealed").left_out == facts("bare").left_out == ""
    monkeypatch.setattr("silograph.page.answer.LARGE", 59)
    monkeypatch.setattr("silograph.page.answer.LARGE", 59)

    def never(*_: Any, **__: Any) -> None:
        raise AssertionError("nobody asked for 4-cycles")

    monkeypatch.setattr(sg.Release, "four_cycles", never)
    said = facts_of(answer("release"))
    assert [count.query for count in said.answers].count("four_cycles") == 0
    assert "among 60 nodes they take long" in said.left_out
    assert said.reference.startswith("what is known of the graph now (edges, wedges, triangles")


def test_a_folded_release_and_its_answers() -> None:
    release, said = answer("folded"), facts("folded")
    assert [count.query for count in said.answers] == [
        "edges", "kstars", "triangles", "four_cycles", "clustering",
    ]  # fmt: skip
    assert [count.value for count in said.answers][:1] == [release.edges().value]
    notes = ("edges can share a bucket", "no usable answer")
    assert all(any(words in count.note for words in notes) for count in said.answers)
    assert all(count.curve is None for count in said.answers)  # the formulas are those of pairs
    assert said.degrees == ()
    assert said.no_degrees
    assert said.epsilon == release.epsilon <= 8.0
    assert any("group" in each.text for each in said.method)
    text = " ".join(said.run.values())
    assert "3 hubs with a group of their own" in text
    asked = facts("folded count")
    assert [count.query for count in asked.answers] == ["triangles"]
    assert {"edges", "kstars"} <= {count.query for count in asked.more}
    opened = facts("folded open")
    assert "0 nodes" not in f"{opened.lead} {opened.run}"
