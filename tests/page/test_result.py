"""The page of a result: whole, the same every time, and never more than text."""

import base64
import csv
import html
import io
import json
import math
import os
import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import silograph as sg
from silograph.dp.loss import shown_loss
from silograph.errors import LedgerWarning, MissingExtraError, ReportError
from silograph.page import ready
from silograph.page.answer import facts_of
from silograph.page.result import lay_out
from tests.page.answers import KINDS, NASTY, answer, facts, federation

#: Laid out just as others are.
ALIKE = ("open", "drawn", "printed", "two stars", "sealed", "sealed shares", "feat+ gradient")


def words(made: str) -> str:
    """What a reader sees, without scripts and styles."""
    made = re.sub(r"<(script|style)\b.*?</\1>", " ", made, flags=re.S)
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", made)).split())


def saved(made: str, kind: str) -> str:
    """What a download link of the page saves."""
    (found,) = re.findall(rf'href="data:{kind};base64,([^"]+)"', made)
    return base64.b64decode(found).decode()


@pytest.mark.slow
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ALIKE])
def test_every_kind_has_a_page_that_stands_alone(kind: str) -> None:
    said = facts(kind)
    made = lay_out(said)
    assert not re.search(r"""(src|href|action)=["']?(https?:)?//""", made)
    for anchor in ("answer", "spent", "observers", "degrees", "errors", "method", "limits", "run"):
        assert made.count(f'<section id="{anchor}"') == 1
    ids = re.findall(r'\bid="([^"]+)"', re.sub(r"<script\b.*?</script>", "", made, flags=re.S))
    assert len(set(ids)) == len(ids)
    shown = words(made)
    assert said.lead in shown
    for each in said.observers:
        assert f"{each.who} {each.learns} ε = {shown_loss(each.epsilon)}" in shown
    for line in (*said.assumptions, *said.limits):
        assert line in shown
    assert "nan" not in shown.lower().split()
    assert "inf" not in shown.split()
    json.loads(saved(made, "application/json"))


def test_the_same_answer_gives_the_same_page() -> None:
    one = answer("degrees")
    assert sg.result_page(one) == sg.result_page(replace(one))


def test_the_answers_are_on_the_page() -> None:
    shown = words(lay_out(facts("release")))
    for count in facts("release").answers:
        low, high = (f"{x:,.0f}" if abs(x) >= 1000 else f"{x:.4g}" for x in (count.low, count.high))
        assert f"95 % interval {low} … {high}".replace("-", "−") in shown
    assert "From the same run, at no further cost" not in shown
    assert "From the same run, at no further cost" in words(lay_out(facts("triangles")))


@pytest.mark.parametrize(
    ("value", "stderr", "epsilon", "said"),
    [
        (1000.0, 10.0, 0.5, ("sharp ± 1 %", "62.2 %", "strongly hidden")),
        (1000.0, 150.0, 2.0, ("fair ± 15 %", "88.1 %", "fairly well hidden")),
        (1000.0, 400.0, 4.0, ("rough ± 40 %", "98.2 %", "weakly hidden")),
        (1000.0, 900.0, 8.0, ("no use ± 90 %", "100 %", "hardly hidden")),
    ],
)
def test_what_a_glance_tells(
    value: float, stderr: float, epsilon: float, said: tuple[str, ...]
) -> None:
    made = facts("triangles")
    count = replace(made.answers[0], value=value, stderr=stderr)
    views = tuple(replace(o, epsilon=epsilon) for o in made.observers if o.claimed)
    shown = words(lay_out(replace(made, answers=(count,), observers=views)))
    for part in said:
        assert part in shown


def test_a_count_below_zero_is_no_answer() -> None:
    for value, stderr, usable in ((5.0, 4.0, True), (5.0, 6.0, False), (-5.0, 1.0, False)):
        made = replace(answer("triangles"), value=value, stderr=stderr)
        assert made.usable is usable
        assert ("no usable answer" in str(made)) is not usable


def test_a_number_that_can_be_anywhere_is_no_answer() -> None:
    made = facts("triangles")
    ends = {"stderr": math.inf, "low": -math.inf, "high": math.inf}
    count = replace(made.answers[0], value=2_079.0, usable=False, **ends)
    shown = words(lay_out(replace(made, answers=(count,))))
    assert "Triangles no usable answer The number that came out, 2,079, can be anywhere." in shown


def test_what_is_saved_is_what_is_shown() -> None:
    made = lay_out(facts("release"))
    whole = json.loads(saved(made, "application/json"))
    rows = list(csv.DictReader(io.StringIO(saved(made, "text/csv"))))
    assert [row["answer"] for row in rows] == [c.name for c in facts("release").answers]
    assert [float(row["value"]) for row in rows] == [c.value for c in facts("release").answers]
    assert [row["value"] for row in whole["answers"]] == [float(row["value"]) for row in rows]
    assert whole["observers"][0]["epsilon"] == facts("release").observers[0].epsilon
    assert whole["ledger"] is None
    sealed = json.loads(saved(lay_out(facts("sealed")), "application/json"))
    assert "unbounded" in [seen["epsilon"] for seen in sealed["observers"]]
    raw = json.loads(saved(lay_out(facts("raw")), "application/json"))
    assert raw["answers"][0]["standard error"] is None
    nodes = list(csv.DictReader(io.StringIO(saved(lay_out(facts("degrees")), "text/csv"))))
    assert [float(row["value"]) for row in nodes[-60:]] == answer("degrees").value.tolist()
    assert [row["place"] for row in nodes[-60:]] == [str(i) for i in range(60)]


@pytest.mark.slow
def test_a_ledger_tells_what_remains(tmp_path: Path) -> None:
    with sg.Ledger(tmp_path / "silo.ledger") as ledger:
        ledger.set_limit("claims", epsilon=7.0)
        release = federation(20, ledger).collect(3.0, "masked")
        shown = words(sg.result_page(release, ledger=ledger))
        assert "ε of this run 3 spent on claims 3 limit 7 left 4" in shown
        assert "What is left pays for the same run once more." in shown
        assert "1 spend on lineage claims, counted against 1 silo together" in shown
        with pytest.warns(LedgerWarning):
            ledger.set_limit("claims", epsilon=2.0)
        less = words(sg.result_page(release, ledger=ledger, lineage="claims"))
        assert "limit 2 left 0" in less
        assert "does not pay for the same run again" in less
        other = words(sg.result_page(answer("drawn"), ledger=ledger, lineage="claims"))
        assert "This run is not among them." in other
    assert "No ledger was given" in words(lay_out(facts("release")))


def test_delta_is_told_wherever_it_counts(tmp_path: Path) -> None:
    with sg.Ledger(tmp_path / "silo.ledger") as ledger:
        ledger.set_limit("claims", epsilon=9.0, delta=3e-9)
        sealed = federation(20, ledger).seal(2.0, delta=1e-9)
        shown = words(sg.result_page(sealed, ledger=ledger))
    assert "δ of this run 1e-9" in shown
    assert "Of δ 1e-9 is spent and 1.99999e-9 left." in shown
    assert "a chance of 1e-9 that this bound fails" in shown
    assert "at most one is dishonest" in shown


def test_nothing_on_a_page_is_more_than_text(tmp_path: Path) -> None:
    names = [f"{NASTY}{i}" for i in range(6)]
    silo = sg.Silo.from_edges(sg.NodeUniverse(names), np.array([names[:2], names[2:4]]))
    release = sg.Release.draw(silo, sg.Channel.symmetric(2.0), seed=1)
    hostile = replace(
        release,
        provenance=sg.Provenance(NASTY, NASTY, 2, 1, NASTY),
        views=(sg.View(NASTY, 1.0), sg.View("coordinator", 1.0)),
        universe_digest=NASTY,
    )
    nodes = hostile.degrees()
    assert nodes.origin is not None
    nodes = replace(nodes, note=NASTY, origin=replace(nodes.origin, release=hostile))
    with sg.Ledger(tmp_path / "silo.ledger") as ledger:
        ledger.spend(NASTY, NASTY, "release", {1: 1.0}, view=NASTY, method=NASTY)
        for shown in (hostile, nodes, replace(answer("bare"), query=NASTY, method=NASTY)):
            made = sg.result_page(shown, ledger=ledger, title=NASTY)
            assert "<img" not in re.sub(r"<script>.*?</script>", "", made, flags=re.S)
            assert NASTY in words(made)
            # Of all scripts none is ended early: what opens is what closes.
            assert made.count("<script") == made.lower().count("</script")
    table = list(csv.DictReader(io.StringIO(saved(sg.result_page(nodes), "text/csv"))))
    assert {row["place"] for row in table} >= set(names)


def test_a_title_is_the_callers() -> None:
    made = lay_out(facts_of(answer("bare"), title="Quarterly figures"))
    assert "<title>Quarterly figures</title>" in made
    assert "<h1>Quarterly figures</h1>" in made


def test_what_lies_below_zero_is_explained() -> None:
    low = words(lay_out(facts_of(replace(answer("bare"), value=-2.0))))
    assert "reaches below zero" in low
    assert "−2 ± 1" in low
    assert "reaches below zero" not in words(lay_out(facts("bare")))


def test_what_is_not_defined_says_so() -> None:
    nothing = replace(answer("bare"), query="clustering", value=math.nan, stderr=math.inf)
    assert "not defined" in words(lay_out(facts_of(nothing)))
    lost = replace(facts("reports"), answers=facts("reports").answers[1:3])
    assert all(2 * count.stderr > abs(count.value) for count in lost.answers)
    assert "No answer stands out from its own noise" in words(lay_out(lost))


def test_a_page_is_written_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "out.html"
    sg.save_page(answer("bare"), target)
    first = target.read_text()
    assert first == sg.result_page(answer("bare"))
    assert target.stat().st_mode & 0o777 == 0o644
    sg.save_page(answer("bare"), target, title="second \ud800")
    assert "second ?" in target.read_text()

    def broken(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", broken)
    with pytest.raises(ReportError, match="No space left"):
        sg.save_page(answer("bare"), target)
    assert "second ?" in target.read_text()
    assert [path.name for path in tmp_path.iterdir()] == ["out.html"]
    with pytest.raises(ReportError, match="cannot be written"):
        sg.save_page(answer("bare"), tmp_path / "absent" / "out.html")


def test_pages_need_their_library_and_imports_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    ready()
    monkeypatch.setitem(sys.modules, "altair", None)
    with pytest.raises(MissingExtraError, match="pip install"):
        ready()
    with pytest.raises(AttributeError, match="no attribute 'raport'"):
        sg.raport  # noqa: B018
