"""The page and its summary: whole, the same every time, and honest about what is missing."""

import json
import re
from dataclasses import replace
from html import unescape
from html.parser import HTMLParser
from pathlib import Path

import pytest

from reproduction.figures import all_figures
from reproduction.labels import METHODS
from reproduction.page import errata, reproduction_page
from reproduction.results import EXPERIMENTS, Results, load_all
from reproduction.summary import markdown
from reproduction.verdicts import counted, judge
from silograph.page.charts import specifications
from tests.reproduction.synthetic import bend, synthetic

ROOT = Path(__file__).parents[2]
Found = dict[str, Results]


class Anchors(HTMLParser):
    """Addresses in a page, links to them, and elements that are not closed in order."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.links: set[str] = set()
        self.open: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = dict(attrs)
        if named.get("id"):
            self.ids.append(str(named["id"]))
        if str(named.get("href", "")).startswith("#"):
            self.links.add(str(named["href"])[1:])
        if tag not in {"meta", "br", "wbr"}:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.fixture(scope="module")
def page(found: Found) -> str:
    return reproduction_page(found).replace("\u00a0", " ")


def test_every_link_leads_somewhere(page: str) -> None:
    anchors = Anchors(page)
    assert anchors.open == []
    assert len(set(anchors.ids)) == len(anchors.ids)
    assert anchors.links <= set(anchors.ids)
    others = EXPERIMENTS[3:]
    for figure in ("epsilon-2-stars-mse", "rho-mre", "sigma-mse", "sealed-distance", *others):
        assert {figure, f"{figure}-data"} <= set(anchors.ids)


def test_every_claim_is_on_the_page_with_its_rule(page: str, found: Found) -> None:
    page = unescape(page)
    for verdict in judge(found):
        assert f'id="claim-{verdict.claim.anchor}"' in page
        assert verdict.claim.words in page
        for outcome in verdict.outcomes.values():
            assert outcome.says in page
    assert counted(judge(found)) in page
    assert "quick run" not in page


def test_the_paper_s_figures_and_ours(found: Found) -> None:
    figures = all_figures({name: found[name] for name in ("epsilon", "communities")})
    assert [one.anchor for one in figures["epsilon"]] == [
        "epsilon-2-stars-mse",
        "epsilon-2-stars-mre",
        "epsilon-triangles-mse",
        "epsilon-triangles-mre",
        "sealed-distance",
    ]
    first = figures["epsilon"][0]
    assert [panel.title for panel in first.panels] == [
        "Facebook",
        "Wiki-Vote (◆ FEAT 5.09 × 10⁵, Baseline 1.45 × 10¹¹)",
    ]
    marks = [panel.data.get("marks", []) for panel in first.panels]
    assert [[mark["label"] for mark in own] for own in marks] == [
        [],
        ["FEAT 5.09 × 10⁵", "Baseline 1.45 × 10¹¹"],
    ]
    assert figures["communities"][0].panels[1].title == "2-stars, Facebook, 4 silos"


def test_zeros_on_logarithmic_axes_and_spreads_that_reach_zero(found: Found) -> None:
    nothing = {"mse": 0.0, "mse_spread": 0.0}
    bent = bend(found["epsilon"], nothing, method="sealed", epsilon=6.0)
    wide = {"mse": 1e9, "mse_spread": 1e11}
    bent = bend(bent, wide, method="feat", form="mended", epsilon=1.0)
    panel = all_figures({"epsilon": bent})["epsilon"][0].panels[0]
    points = panel.data["points"]
    assert all(point["y"] > 0 for point in points)
    zeros = [point for point in points if point["zero"]]
    assert [(point["series"], point["shown"]) for point in zeros] == [("sealed, as mended", "0")]
    wide_ones = [point for point in points if point["shown"] == "1 × 10⁹"]
    assert [point["low"] for point in wide_ones] == [pytest.approx(1e8)]
    everything = bend(found["sigma"], {"mse": 0.0, "mse_spread": 0.0}, graph="facebook")
    made = specifications(all_figures({"sigma": everything})["sigma"])
    json.dumps(made, allow_nan=False)


def test_missing_experiments_are_said_to_be_missing() -> None:
    page = reproduction_page(synthetic(names=["sigma"]))
    anchors = Anchors(page)
    assert anchors.links <= set(anchors.ids)
    for name in set(EXPERIMENTS) - {"sigma"}:
        assert f"missing-{name}" in anchors.ids
    assert "Not run: epsilon, rho, time" in page
    assert page.count("not measured") > 10
    text = markdown(synthetic(names=["sigma"]))
    assert "Not measured." in text


def test_an_experiment_without_rows(found: Found) -> None:
    empty = {name: replace(results, rows=()) for name, results in found.items()}
    assert "were not measured" in reproduction_page(empty)
    assert "Not measured." in markdown(empty)


def test_quick_results_are_marked_loudly() -> None:
    page = reproduction_page(synthetic(quick=True, names=["curves", "sigma"]))
    assert "A quick run: this is not the reproduction." in page
    assert 'role="alert"' in page
    assert "**A quick run" in markdown(synthetic(quick=True, names=["curves"]))


def test_what_was_left_out_and_how_it_was_made(page: str) -> None:
    assert "Left out of collusion: 1 combinations" in page
    assert "a silo is left with nobody to hide among" in page
    assert "derived from 1" in page
    assert "processor a synthetic processor" in page
    assert "100,762" in page


def test_nasty_names_stay_text(found: Found) -> None:
    nasty = "</script><img src=x onerror=alert(1)>"
    bent = replace(
        bend(found["curves"], {"version": nasty, "operation": nasty}, library="mcl"),
        machine={"processor": nasty},
    )
    assert nasty not in reproduction_page({"curves": bent})


def test_the_same_results_give_the_same_bytes() -> None:
    few = synthetic(names=["time", "curves"])
    assert reproduction_page(few) == reproduction_page(few)
    assert markdown(few) == markdown(few)


def test_the_summary_has_verdicts_and_tables(found: Found) -> None:
    text = markdown(found)
    for verdict in judge(found):
        assert f"| {verdict.claim.title} | **{verdict.text}** |" in text
    assert "| method | ε = 1 | ε = 2 |" in text
    assert "| libsodium, in the paper | 0.0056 |" in text
    assert "python -m reproduction run --out experiments" in text
    for block in text.split("\n\n"):
        if block.startswith("| "):  # every line of a table has as many cells as its head
            assert len({len(re.findall(r"(?<!\\)\|", line)) for line in block.splitlines()}) == 1


def test_the_errata_say_what_each_reading_gave() -> None:
    """The table of readings has the committed numbers, to two digits."""
    text = (ROOT / "docs" / "errata.md").read_text()
    table = {line.split("|")[1].strip(): line for line in text.splitlines() if "| FEAT" in line}
    seen = 0
    for row in load_all(ROOT / "experiments")["epsilon"].rows:
        name = f"{METHODS.get(row['method'])}, {row['query']}"
        if (row["graph"], row["epsilon"]) != ("facebook", 3) or name not in table:
            continue
        short = float(f"{row['mre']:.2g}")
        shown = f"{short:,.0f} ×" if short > 1 else f"{100 * short:.2g} %"
        assert shown in table[name], (name, row["form"], row["variant"], shown)
        seen += 1
    assert seen == 15  # three readings of two methods and queries, and three variants


def test_the_committed_summary_is_what_the_committed_results_give() -> None:
    folder, summary = ROOT / "experiments", ROOT / "docs" / "reproduction.md"
    if not folder.is_dir():
        pytest.skip("there are no committed results in experiments/ yet")
    assert summary.read_text() == markdown(load_all(folder)), (
        "run: python -m reproduction report experiments --markdown docs/reproduction.md"
    )


def test_errata_are_those_of_the_documentation() -> None:
    text = (ROOT / "docs" / "errata.md").read_text()
    assert [one.number for one in errata()] == list(range(1, 17))
    for one in errata():
        assert f"| {one.where} | {one.printed} | {one.wrong} | {one.instead} |" in text
        for path in one.tests:
            assert (ROOT / path).is_file(), path


def test_errata_link_to_data_on_the_page(page: str) -> None:
    ids = set(Anchors(page).ids)
    assert all(one.figure in ids for one in errata() if one.figure)
