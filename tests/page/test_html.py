"""Nothing that is put into a page can be more than text."""

import json
import re

import pytest

from silograph.page.html import Markup, element, json_script, page, script, section, table

NASTY = "</script><script>alert(1)</script><!-- & \" ' \u2028"


def test_texts_and_attributes_are_escaped() -> None:
    made = element("p", NASTY, title=NASTY)
    assert "<script" not in made
    assert made.count('"') == 3  # two of the attribute, one that a text may have
    assert element("br") == "<br>"
    assert element("p", "ε = 3 or 5 × 10⁶ or a = b") == (
        "<p>ε\u00a0=\u00a03 or 5\u00a0×\u00a010⁶ or a = b</p>"
    )
    assert element("button", "x", disabled=True, hidden=False, id=None) == (
        "<button disabled>x</button>"
    )
    assert element("label", [Markup("<b>1</b>"), None, ["<"]], for_="a", data_x=1) == (
        '<label for="a" data-x="1"><b>1</b>&lt;</label>'
    )


def test_data_cannot_end_its_script() -> None:
    made = json_script("d", {NASTY: [NASTY]})
    inside = re.fullmatch(r'<script type="application/json" id="d">(.*)</script>', made)
    assert inside is not None
    assert not set(inside[1]) & set("<>&\u2028")
    assert json.loads(inside[1]) == {NASTY: [NASTY]}
    with pytest.raises(ValueError, match="JSON"):
        json_script("d", float("nan"))
    assert script('x = "</script><!--"') == '<script>x = "<\\/script><\\!--"</script>'


def test_a_page_is_whole_and_the_same_every_time() -> None:
    def make() -> str:
        return page(
            NASTY,
            section("a", NASTY, table(["x", "y"], [["1", NASTY]], caption=NASTY, numeric=[0])),
            subtitle=NASTY,
            contents={"a": NASTY},
            footer=NASTY,
        )

    made = make()
    assert made == make()
    assert made.startswith("<!doctype html>\n<html ")
    assert "alert(1)</script>" not in made
    assert "default-src 'none'" in made.replace("&#x27;", "'")
    assert not re.search(r"""(src|href)=["']?(https?:)?//""", made)
    assert made.count('id="a"') == 1
    assert '<td class="number">1</td>' in made
