"""What notebooks show: small tables, escaped, without scripts, colours or secrets."""

import html
import math
import re
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest

import silograph as sg
from silograph.dp.loss import shown_loss
from silograph.estimators.estimate import definitions, number, table
from silograph.methods.sealed.noise import SealedNoise

NASTY = "<script>alert(1)</script>\"'&"
GRAPH = sg.clustered_power_law(60, seed=1)
RELEASE = sg.Release.draw(GRAPH, sg.Channel.symmetric(3.0), seed=1)
NOISE = SealedNoise.choose(1.0, 60, 3, 1, ["triangles"], delta=1e-9, rule="largest")
SEALED = sg.SealedRelease.draw(GRAPH, NOISE, seed=1)
REPORTS = sg.Reports.draw([GRAPH, GRAPH], sg.Channel.symmetric(1.5), seed=1)
PLAN = sg.plan("triangles", epsilon=3.0, silos=4, nodes=500, edges=4000, delta=1e-9)


class Balanced(HTMLParser):
    """Every element is closed where it should be."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open.append(tag)
        self.seen.add(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def words(made: str) -> str:
    return html.unescape(re.sub(r"<[^>]*>", " ", made))


@pytest.mark.parametrize(
    "shown",
    [RELEASE, SEALED, REPORTS, PLAN, RELEASE.triangles(), RELEASE.degrees(), SEALED.clustering()],
    ids=lambda shown: type(shown).__name__,
)
def test_displays_are_tables_without_script_or_colour(shown: Any) -> None:
    made = shown._repr_html_()
    parser = Balanced()
    parser.feed(made)
    assert not parser.open
    assert parser.seen <= {"div", "table", "caption", "tbody", "tr", "th", "td"}
    # Whatever the page's colours are, a display takes them over.
    assert set(re.findall(r"(?<![\w-])(?:color|background):(\w+)", made)) <= {
        "inherit",
        "transparent",
    }
    assert "http" not in made
    assert made == shown._repr_html_()


def test_an_estimate_shows_what_its_text_shows() -> None:
    answer = RELEASE.triangles()
    shown = words(answer._repr_html_())
    for part in (number(answer.value), number(answer.stderr), *map(number, answer.interval)):
        assert part in shown
    assert "ε = 3" in shown
    many = words(RELEASE.degrees()._repr_html_())
    assert "60, one per node" in many
    bins = words(RELEASE.degree_histogram()._repr_html_())
    assert f"{len(RELEASE.degree_histogram().value)}, one per bin" in bins


def test_a_sealed_display_says_delta_and_what_is_not_claimed() -> None:
    shown = words(SEALED._repr_html_())
    assert "δ = 1e-9" in shown
    assert re.search(r"2 members\s+ε = ∞\s+not claimed", shown)
    assert "degrees, triangles" in shown


def test_a_plan_marks_the_best_and_what_needs_more_trust() -> None:
    shown = words(PLAN._repr_html_())
    assert re.search(r"→\s+sealed\s+committee", shown)
    assert "needs coordinator" in shown
    assert PLAN.best.assumes in shown
    trusting = sg.plan("triangles", epsilon=3.0, silos=4, nodes=500, trust=["coordinator"])
    assert "needs coordinator" not in words(trusting._repr_html_())


def test_texts_are_escaped() -> None:
    answer = replace(RELEASE.triangles(), query=NASTY, note=NASTY, method=NASTY)
    hostile = replace(
        RELEASE, provenance=sg.Provenance(NASTY, NASTY, 2), views=(sg.View(NASTY, 1),)
    )
    plan = replace(PLAN, source=NASTY, options=(replace(PLAN.best, note=NASTY, method=NASTY),))
    for shown in (answer, hostile, plan):
        made = shown._repr_html_()
        assert "<script" not in made
        assert NASTY in words(made)
    for made in (definitions(NASTY, {NASTY: NASTY}), table(NASTY, [NASTY], [[NASTY]])):
        assert "<script" not in made


def test_a_silo_shows_no_edge() -> None:
    universe = sg.NodeUniverse(["secret-a", "secret-b", "c"])
    silo = sg.Silo.from_edges(universe, np.array([["secret-a", "secret-b"]]))
    assert not hasattr(silo, "_repr_html_")
    assert "secret" not in repr(silo)


@pytest.mark.parametrize(
    ("value", "up", "down"),
    [
        (3.0, "3", "3"),
        (0.1, "0.1", "0.1"),
        (1.23456712, "1.23457", "1.23456"),
        (math.nextafter(3.0, 4.0), "3.00001", "3"),
        (math.nextafter(3.0, 2.0), "3", "2.99999"),
        (1e-9, "1e-9", "1e-9"),
        (1234567.0, "1.23457e+6", "1.23456e+6"),
        (math.inf, "∞", "∞"),
        (0.0, "0", "0"),
    ],
)
def test_losses_are_rounded_away_from_comfort(value: float, up: str, down: str) -> None:
    assert (shown_loss(value), shown_loss(value, left=True)) == (up, down)
