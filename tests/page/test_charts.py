"""Figures: their data, their script, and what is said where the library is missing."""

import json
import re
import sys
from typing import Any

import pytest

from silograph.errors import MissingExtraError
from silograph.page.charts import COLOURS, Figure, Key, Panel, altair, inline, specifications, vega
from silograph.page.html import environment, page

ROWS: list[dict[str, Any]] = [
    {"x": 1, "y": 2.5e9, "name": "</script>"},
    {"x": 2, "y": float("inf"), "name": "b"},
]


def figure() -> Figure:
    library = altair()
    chart = library.Chart(inline(ROWS)).mark_line(color=COLOURS["feat"]).encode(x="x:Q", y="y:Q")
    return Figure(
        "f",
        "A <title>",
        "A caption",
        [Panel("left", "Two points.", chart), Panel("right", "The same.", chart)],
        {"x": "ε", "y": "MSE", "name": "name"},
        ROWS,
        [Key("feat", COLOURS["feat"], "4 2"), Key("b", COLOURS["other"], mark="bar")],
    )


def test_a_figure_has_its_panels_tools_and_data() -> None:
    made = environment().get_template("parts.html").module.drawn(figure())
    assert re.findall(r'class="drawing" role="img" aria-label="([^"]+)"', made) == [
        "Two points.",
        "The same.",
    ]
    assert re.findall(r'<div id="([\w-]+)" aria-hidden="true">', made) == ["f-0", "f-1"]
    assert re.findall(r'data-save="(\w+)"', made) == ["svg", "png", "svg", "png", "csv", "json"]
    assert "Save A &lt;title&gt;, left, as SVG" in made
    assert "Data: 2 rows" in made
    assert "2.5\u00a0×\u00a010⁹" in made
    assert "<td>&lt;/script&gt;</td>" in made


@pytest.mark.slow
def test_the_scripts_are_embedded_once_and_the_same_every_time() -> None:
    made = page("page.html", [figure()], title="", contents={})
    assert page("page.html", [figure()], title="", contents={}) == made
    assert page("page.html", [], title="", contents={}).count("<script") == 1
    opened = re.findall(r"<script[^>]*>", made)
    assert opened == ["<script>", '<script type="application/json" id="figures">', *opened[:1] * 2]
    assert made.lower().count("</script") == len(opened)
    assert len(vega()) > 500_000
    start = made.index(opened[1]) + len(opened[1])
    everything = json.loads(made[start : made.index("</script>", start)])
    assert everything == specifications([figure()])
    found = everything["f"]
    assert found["rows"][1]["y"] is None
    assert found["columns"] == ["x", "y", "name"]
    assert [panel["title"] for panel in found["panels"]] == [
        "A <title>: left",
        "A <title>: right",
    ]
    assert found["panels"][0]["width"] == "container"
    assert "cdn" not in made[made.rindex("<script>") :]


@pytest.mark.parametrize("missing", ["altair", "vl_convert"])
def test_what_to_install_is_said(monkeypatch: pytest.MonkeyPatch, missing: str) -> None:
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(MissingExtraError, match=r"pip install 'silograph\[report\]'"):
        altair()
