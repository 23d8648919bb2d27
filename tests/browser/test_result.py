"""The result page and the notebook displays in a real browser: light, dark, small, by keyboard."""

import json
from pathlib import Path
from typing import Any

import pytest

import silograph as sg
from silograph.page.result import lay_out
from tests.page.answers import NASTY, answer, facts


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Pages of several kinds, as files."""
    folder = tmp_path_factory.mktemp("pages")
    for kind in ("release", "degrees", "raw"):
        (folder / f"{kind}.html").write_text(lay_out(facts(kind)), encoding="utf-8")
    return folder


class Seen:
    """An open page, and all that it asked for or complained about."""

    def __init__(self, browser: Any, path: Path, **options: Any) -> None:
        self.page = browser.new_page(**options)
        self.page.set_default_timeout(10_000)
        self.asked: list[str] = []
        self.said: list[str] = []
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.goto(path.as_uri())

    def drawn(self, figures: int) -> None:
        self.page.wait_for_function(f"document.documentElement.dataset.drawn === '{figures}'")

    def quiet(self, path: Path) -> None:
        """Nothing was fetched but the file itself, and nothing was complained about."""
        assert [url for url in self.asked if not url.startswith(("data:", "blob:"))] == [
            path.as_uri()
        ]
        assert self.said == []


def contrast(page: Any, selector: str) -> float:
    """The contrast of a text with what is behind it, by the rule of WCAG."""
    found = page.evaluate(
        """selector => {
            const element = document.querySelector(selector);
            let back = element;
            const paint = e => getComputedStyle(e).backgroundColor;
            const clear = 'rgba(0, 0, 0, 0)';
            while (paint(back) === clear && back.parentElement) back = back.parentElement;
            const light = text => {
                const [r, g, b] = text.match(/[\\d.]+/g).map(Number).map(x => x / 255)
                    .map(x => x <= 0.03928 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4);
                return 0.2126 * r + 0.7152 * g + 0.0722 * b;
            };
            const pair = [light(getComputedStyle(element).color), light(paint(back))].sort();
            return (Math.max(...pair) + 0.05) / (Math.min(...pair) + 0.05);
        }""",
        selector,
    )
    return float(found)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_release_in_both_themes(browser: Any, folder: Path, scheme: str) -> None:
    path = folder / "release.html"
    seen = Seen(browser, path, color_scheme=scheme, viewport={"width": 1100, "height": 800})
    seen.drawn(2)
    page = seen.page
    for selector in (".card .value", ".card .small", ".observers p", ".badge.good", ".badge.half"):
        assert contrast(page, selector) >= 4.5, selector
    assert page.locator("svg .mark-rect path").count() >= len(facts("release").degrees)
    bar = page.locator("#degree-distribution-0 .mark-rect path").nth(3)
    bar.scroll_into_view_if_needed()
    bar.hover(position={"x": 6, "y": 6})
    tip = page.locator("#vg-tooltip-element.visible")
    tip.wait_for()
    assert "95 % from" in tip.inner_text()
    with page.expect_download() as download:
        page.get_by_role("link", name="Everything (JSON)").click()
    with open(download.value.path(), encoding="utf-8") as file:
        assert json.load(file)["epsilon"] == 3.0
    page.locator("#error-by-epsilon-data summary").click()
    with page.expect_download() as download:
        page.locator("#error-by-epsilon-data button", has_text="CSV").click()
    with open(download.value.path(), encoding="utf-8") as file:
        assert file.readline() == "answer,epsilon,standard,kind\n"
    seen.quiet(path)
    page.close()


@pytest.mark.parametrize(("kind", "figures"), [("degrees", 3), ("raw", 0)])
def test_a_phone_shows_all_of_it(browser: Any, folder: Path, kind: str, figures: int) -> None:
    path = folder / f"{kind}.html"
    seen = Seen(browser, path, viewport={"width": 375, "height": 700})
    if figures:
        seen.drawn(figures)
    assert seen.page.evaluate("document.documentElement.scrollWidth") == 375
    seen.quiet(path)
    seen.page.close()


def test_the_keyboard_reaches_everything(browser: Any, folder: Path) -> None:
    seen = Seen(browser, folder / "release.html")
    page = seen.page
    seen.drawn(2)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    met = []
    for _ in range(60):
        page.keyboard.press("Tab")
        name = "document.activeElement.ariaLabel || document.activeElement.textContent"
        met.append(page.evaluate(name))
        if met[-1] == "Answers (CSV)":
            break
    for due in ("Change to dark colours", "Who could learn what", "Everything (JSON)"):
        assert due in met
    assert met[-1] == "Answers (CSV)"
    page.locator("#theme").focus()
    page.keyboard.press("Enter")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    page.close()


def test_hostile_names_stay_text(browser: Any, tmp_path: Path) -> None:
    names = sg.NodeUniverse([f"{NASTY}{i}" for i in range(60)])
    source = sg.clustered_power_law(60, seed=1)
    silo = sg.Silo.from_edges(names, [(names.id(u), names.id(v)) for u, v in source.pairs])
    release = sg.Release.draw(silo, sg.Channel.symmetric(3.0), seed=1)
    degrees = release.degrees()
    assert degrees.origin is not None
    with_names = sg.Estimate(
        "degrees", degrees.value, degrees.stderr, 3.0,
        origin=type(degrees.origin)(**{**vars(degrees.origin), "release": release}),
    )  # fmt: skip
    path = tmp_path / "page.html"
    sg.save_page(with_names, path, title=NASTY)
    seen = Seen(browser, path)
    seen.page.on("dialog", lambda dialog: seen.said.append("a dialog"))
    seen.drawn(3)
    assert seen.page.locator("h1").inner_text() == NASTY
    assert seen.page.locator("main img").count() == 0
    first = seen.page.locator("#largest svg text", has_text="<img").first
    assert (first.text_content() or "").startswith("</script>")
    seen.quiet(path)
    seen.page.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_displays_take_the_notebook_s_colours(browser: Any, tmp_path: Path, scheme: str) -> None:
    plan = sg.plan("triangles", epsilon=3.0, silos=4, nodes=500)
    shown = [answer("release"), answer("triangles"), answer("sealed delta"), plan]
    colours = "#fff;color:#111" if scheme == "light" else "#111;color:#eee"
    path = tmp_path / "notebook.html"
    path.write_text(
        f'<!doctype html><meta charset="utf-8"><body style="background:{colours}">'
        + "".join(one._repr_html_() for one in shown),
        encoding="utf-8",
    )
    seen = Seen(browser, path, color_scheme=scheme, viewport={"width": 900, "height": 800})
    for selector in ("td", "th", "caption"):
        assert contrast(seen.page, selector) >= 4.5
    assert seen.page.evaluate("document.documentElement.scrollWidth") <= 900
    assert seen.page.get_by_role("table").count() >= len(shown)
    seen.quiet(path)
    seen.page.close()
