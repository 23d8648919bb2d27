"""Nothing that is put into a page can be more than text."""

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from jinja2 import UndefinedError

from silograph.errors import MissingExtraError
from silograph.page.html import environment, page

NASTY = "</script><script>alert(1)</script><!-- & \" ' \u2028"
ROOT = Path(__file__).parents[2]
EXAMPLE = """
{% extends "page.html" %}
{% from "parts.html" import plain_table, section %}
{% set contents = {"a": text} %}
{% block lead %}{{ text }}{% endblock %}
{% block main %}
{% call section("a", text) %}
{{ plain_table(["x", text], [["1", text]], text, [0]) }}
{% endcall %}
{% endblock %}
{% block footer %}{{ text }}{% endblock %}
"""


def rendered(template: str, **values: Any) -> str:
    return str(environment().from_string(template).render(values))


def test_texts_and_attributes_are_escaped() -> None:
    made = rendered('<p title="{{ text }}">{{ text }}</p>', text=NASTY)
    assert "<script" not in made
    assert made.count('"') == 2  # those of the attribute
    assert rendered("{{ text }}", text="ε = 3 or 5 × 10⁶ or a = b") == (
        "ε\u00a0=\u00a03 or 5\u00a0×\u00a010⁶ or a = b"
    )
    assert rendered("{{ count }}{% if text %}{{ text }}{% endif %}", count=1, text="") == "1"


def test_a_name_that_is_not_given_is_an_error() -> None:
    for source in ("{{ absent }}", "{% if absent %}{% endif %}"):
        with pytest.raises(UndefinedError):
            rendered(source)


def test_data_cannot_end_their_script() -> None:
    made = rendered("{{ data|tojson }}", data={NASTY: [NASTY, "ε = 3"]})
    assert not set(made) & set("<>&'\u2028\u2029")
    assert json.loads(made) == {NASTY: [NASTY, "ε = 3"]}
    with pytest.raises(ValueError, match="JSON"):
        rendered("{{ data|tojson }}", data=float("nan"))
    script = rendered("{{ source|in_script|safe }}", source='x = "</script><!--"')
    assert script == 'x = "<\\/script><\\!--"'


def test_only_own_files_and_the_library_go_in_as_they_are() -> None:
    for folder in ("src/silograph/page/templates", "reproduction/templates"):
        for path in (ROOT / folder).iterdir():
            text = path.read_text()
            for before in re.findall(r"\{\{([^}]*)\|\s*safe\b", text):
                assert re.fullmatch(r' (asset\("\w+\.(css|js)"\)|vega)(\|in_script)?', before)
            assert not re.search(r"autoescape|Markup|\|\s*(forceescape|xmlattr)", text), path


def test_a_page_is_whole_and_the_same_every_time(tmp_path: Path) -> None:
    (tmp_path / "example.html").write_text(EXAMPLE.lstrip())

    def make() -> str:
        return page("example.html", [], tmp_path, title=NASTY, text=NASTY)

    made = make()
    assert made == make()
    assert made.startswith("<!doctype html>\n<html ")
    assert "alert(1)</script>" not in made
    assert "content=\"default-src 'none'; " in made
    assert not re.search(r"""(src|href)=["']?(https?:)?//""", made)
    assert made.count('id="a"') == 1
    assert '<td class="number">1</td>' in made
    assert made.count("<script") == made.count("</script>") == 1


def test_templates_need_their_library(monkeypatch: pytest.MonkeyPatch) -> None:
    environment.cache_clear()
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(MissingExtraError, match=r"pages need jinja2.*'silograph\[report\]'"):
        environment()
