"""What people see of figures: no text over other text or a curve, and nothing beside a phone."""

from pathlib import Path
from typing import Any

import pytest

from silograph.page.answer import facts_of
from silograph.page.result import lay_out
from tests.page.answers import answer, facts

#: Texts of figures that cover each other, or through which a line goes.
COVERED = """() => {
    const found = [];
    const shown = box => box.width > 0 && box.height > 0;
    for (const svg of document.querySelectorAll('.drawing svg')) {
        const texts = [...svg.querySelectorAll('text')]
            .filter(text => text.textContent.trim() && getComputedStyle(text).opacity > 0)
            .map(text => [text, text.getBoundingClientRect()]).filter(([, box]) => shown(box));
        texts.forEach(([one, a], place) => {
            for (const [other, b] of texts.slice(place + 1)) {
                const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left);
                const high = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
                if (wide > 1 && high > 2) found.push(`${one.textContent} | ${other.textContent}`);
            }
        });
        const labels = texts.filter(([text]) => text.closest('.mark-text.role-mark'));
        for (const line of svg.querySelectorAll('.mark-line.role-mark path')) {
            const ends = line.getScreenCTM(), length = line.getTotalLength();
            for (let at = 0; at <= length; at += 3) {
                const spot = line.getPointAtLength(at).matrixTransform(ends);
                for (const [text, box] of labels) {
                    if (spot.x > box.left && spot.x < box.right
                        && spot.y > box.top + 2 && spot.y < box.bottom - 2) {
                        found.push(`a line through ${text.textContent}`);
                    }
                }
            }
        }
    }
    return [...new Set(found)];
}"""
#: How far anything reaches beyond the window, apart from what scrolls by itself.
BESIDE = """() => {
    const wide = document.documentElement.clientWidth;
    return [...document.querySelectorAll('body *')]
        .filter(e => !e.closest('.scroll, pre, .unseen, .skip') && e.getClientRects().length)
        .filter(e => e.getBoundingClientRect().right > wide + 1)
        .map(e => `${e.tagName} ${e.textContent.trim().slice(0, 40)}`);
}"""


def mixing() -> str:
    release = answer("release")
    ids = release.universe.ids
    return lay_out(facts_of(release.mixing({name: f"group {int(name) % 4}" for name in ids})))


KINDS = ("release", "degrees", "histogram", "feat+", "sealed", "reports", "folded", "raw")
PAGES = {kind: lambda kind=kind: lay_out(facts(kind)) for kind in KINDS} | {"mixing": mixing}


def looked_at(browser: Any, path: Path) -> dict[int, list[str]]:
    """What is wrong with a page, by the width of the window."""
    page = browser.new_page(viewport={"width": 1100, "height": 800})
    page.goto(path.as_uri())
    if page.locator(".drawing").count():
        page.wait_for_function("document.documentElement.dataset.drawn")
    found = {1100: page.evaluate(COVERED) + page.evaluate(BESIDE)}
    page.set_viewport_size({"width": 375, "height": 700})
    for details in page.locator("details").all():
        details.evaluate("e => { e.open = true; }")
    if page.locator(".drawing").count() and page.locator("[data-drawn]").count():
        page.wait_for_function("""() => [...document.querySelectorAll('.drawing svg')]
            .every(svg => svg.getBoundingClientRect().right <= innerWidth)""")
    found[375] = page.evaluate(COVERED) + page.evaluate(BESIDE)
    page.close()
    return found


@pytest.mark.parametrize("kind", PAGES)
def test_nothing_is_covered_or_cut_off(browser: Any, tmp_path: Path, kind: str) -> None:
    path = tmp_path / "page.html"
    path.write_text(PAGES[kind](), encoding="utf-8")
    assert looked_at(browser, path) == {1100: [], 375: []}


def test_the_report_of_the_reproduction(browser: Any, report: Path) -> None:
    assert looked_at(browser, report) == {1100: [], 375: []}


def test_what_is_covered_is_found(browser: Any, tmp_path: Path) -> None:
    """The test of the test: two words in one place, a line through a third, a table too wide."""
    path = tmp_path / "page.html"
    path.write_text(
        """<!doctype html><html data-drawn="1"><body style="margin:0">
        <p style="width:2000px">wide</p>
        <div class="drawing"><svg width="300" height="100"><text x="5" y="50">one</text>
        <text x="15" y="52">two</text><g class="mark-text role-mark"><text x="200" y="50">three
        </text></g><g class="mark-line role-mark"><path d="M150 45L300 46"/></g></svg></div>"""
    )
    found = looked_at(browser, path)[1100]
    assert "one | two" in found
    assert any(each.startswith("a line through three") for each in found)
    assert any(each.startswith("P wide") for each in found)
