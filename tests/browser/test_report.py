"""The report in a real browser: drawn, quiet, offline, in light and dark, small, by keyboard."""

import csv
import json
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page

from tests.browser.conftest import Watched

#: Of the three experiments: two panels for each of four errors, the distances and two queries'
#: times, one for the libraries.
PANELS = 4 * 2 + 2 + 2 + 2


@pytest.fixture(scope="module")
def watched(browser: Browser, report: Path) -> Iterator[Watched]:
    """One page for tests that leave it as it is."""
    page = browser.new_page(viewport={"width": 1200, "height": 900}, color_scheme="light")
    yield Watched(page, report)
    page.close()


def channels(colour: str) -> list[float]:
    return [float(part) for part in colour[colour.index("(") + 1 : -1].split(",")[:3]]


def contrast(first: str, second: str) -> float:
    """The contrast of two colours, by the formula of WCAG 2."""

    def luminance(colour: str) -> float:
        linear = [
            c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4
            for c in (channel / 255 for channel in channels(colour))
        ]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    low, high = sorted((luminance(first), luminance(second)))
    return (high + 0.05) / (low + 0.05)


def background(page: Page) -> str:
    return str(page.evaluate("getComputedStyle(document.body).backgroundColor"))


def least_contrast(page: Page) -> float:
    """Of all text on the page and in its figures, against the page."""
    colours = page.evaluate(
        """() => [...new Set([...document.querySelectorAll(
            "p, td, th, a, button, summary, figcaption span, h1, h2, .drawing svg text")]
            .filter((e) => e.textContent.trim() && !e.getAttribute("stroke"))
            .map((e) => getComputedStyle(e)[e.closest("svg") ? "fill" : "color"]))]"""
    )
    assert len(colours) >= 3
    return min(contrast(colour, background(page)) for colour in colours)


def test_every_figure_is_drawn_without_a_word_or_a_request(watched: Watched) -> None:
    page = watched.page
    assert page.evaluate("document.documentElement.dataset.drawn") == str(PANELS)
    drawn = page.locator(".drawing svg")
    assert drawn.count() == PANELS
    for index in range(PANELS):
        assert drawn.nth(index).locator(".mark-line path").count() >= 4
        assert drawn.nth(index).locator(".mark-symbol path").count() >= 10
    assert watched.messages == []
    assert [url.partition(":")[0] for url in watched.requests] == ["file"]


def test_the_network_is_forbidden_even_to_scripts(watched: Watched) -> None:
    refused = watched.page.evaluate(
        "fetch('https://example.org/').then(() => 'fetched', () => 'refused')"
    )
    assert refused == "refused"
    assert len(watched.requests) == 1
    assert any("Content Security Policy" in message for message in watched.messages)
    watched.messages.clear()


def test_printed_numbers_and_zeros_are_marked(watched: Watched) -> None:
    assert watched.page.get_by_text("FEAT 5.09 × 10⁵").count() == 1
    # At the lower edge of the Facebook panel, in a triangle of its own.
    triangles = watched.page.locator("#epsilon-2-stars-mse-0 .mark-symbol path[fill='transparent']")
    assert triangles.count() == 1


def test_values_show_where_the_pointer_is(watched: Watched) -> None:
    page = watched.page
    page.locator("#curves-0 .mark-symbol path").first.hover()
    shown = page.locator("#vg-tooltip-element.visible")
    shown.wait_for()
    assert "libsodium, here" in shown.inner_text()
    assert "seconds" in shown.inner_text()


def test_figures_are_described_in_words(watched: Watched) -> None:
    described = watched.page.locator(".drawing[role=img]").evaluate_all(
        "found => found.map((e) => e.getAttribute('aria-label'))"
    )
    assert len(described) == PANELS
    assert all("At " in text and len(text) > 60 for text in described)


def test_downloads(watched: Watched, tmp_path: Path) -> None:
    page = watched.page

    def saved(button: Locator, name: str) -> bytes:
        with page.expect_download() as download:
            button.click()
        assert download.value.suggested_filename == name
        download.value.save_as(tmp_path / name)
        return (tmp_path / name).read_bytes()

    figure = page.locator("#epsilon-triangles-mse")
    picture = saved(figure.locator("[data-save=svg]").last, "epsilon-triangles-mse-2.svg").decode()
    assert picture.startswith("<svg")
    assert "var(" not in picture  # stands alone
    assert "Triangles: MSE against ε: Wiki-Vote" in picture  # has its title
    assert "FEAT+, as mended (auto)" in picture  # and its legend
    image = saved(figure.locator("[data-save=png]").first, "epsilon-triangles-mse-1.png")
    assert image[:8] == b"\x89PNG\r\n\x1a\n"
    assert struct.unpack(">I", image[16:20])[0] > 1000
    figure.locator("summary").click()
    rows = list(
        csv.DictReader(
            saved(figure.locator("[data-save=csv]"), "epsilon-triangles-mse.csv")
            .decode()
            .splitlines()
        )
    )
    same = json.loads(saved(figure.locator("[data-save=json]"), "epsilon-triangles-mse.json"))
    assert len(rows) == len(same) == 2 * 6 * 13
    assert [float(row["mse"]) for row in rows] == [row["mse"] for row in same]
    assert figure.locator("tbody tr").count() == len(rows)
    figure.locator("summary").click()


def test_light_and_dark(browser: Browser, report: Path) -> None:
    page = browser.new_page(color_scheme="dark")
    watched = Watched(page, report)
    dark = background(page)
    assert max(channels(dark)) < 60
    assert least_contrast(page) >= 4.5
    button = page.get_by_role("button", name="Change to light colours")
    button.click()
    light = background(page)
    assert min(channels(light)) > 200
    assert least_contrast(page) >= 4.5
    page.emulate_media(color_scheme="light")
    page.get_by_role("button", name="Change to dark colours").click()
    assert background(page) == dark
    # Paper is white, whatever the screen is; nothing to press is printed.
    page.emulate_media(media="print")
    assert background(page) == light
    assert least_contrast(page) >= 4.5
    assert not page.locator("#theme").is_visible()
    assert not page.locator(".tools").first.is_visible()
    assert page.locator(".drawing svg").first.is_visible()
    assert watched.messages == []
    page.close()


def test_a_small_screen_scrolls_one_way_only(browser: Browser, report: Path) -> None:
    page = browser.new_page(viewport={"width": 375, "height": 700})
    Watched(page, report)
    page.evaluate("document.querySelectorAll('details').forEach((e) => { e.open = true; })")
    assert page.evaluate("document.documentElement.scrollWidth") == 375
    widths = page.locator(".drawing svg").evaluate_all(
        "found => found.map((e) => e.getBoundingClientRect().right)"
    )
    assert max(widths) <= 375
    tables = page.locator(".scroll")
    assert tables.evaluate_all("found => found.some((e) => e.scrollWidth > e.clientWidth)")
    page.close()


def test_everything_is_reached_by_keyboard(browser: Browser, report: Path) -> None:
    page = browser.new_page()
    Watched(page, report)
    wanted = set(
        page.locator("a[href], button, summary").evaluate_all(
            """found => found.filter((e) => e.checkVisibility())
                .map((e, index) => { e.dataset.stop = index; return String(index); })"""
        )
    )
    reached, seen_focus = set(), 0
    for _ in range(2 * len(wanted) + 40):
        page.keyboard.press("Tab")
        stop, reference = page.evaluate(
            """[document.activeElement.dataset.stop ?? null,
                getComputedStyle(document.activeElement).outlineStyle]"""
        )
        seen_focus += reference == "solid"
        if stop is not None:
            reached.add(stop)
        if reached == wanted:
            break
    assert reached == wanted
    assert seen_focus >= len(wanted)
    page.locator("#theme").focus()
    before = background(page)
    page.keyboard.press("Enter")
    assert background(page) != before
    page.locator("#claim-libsodium summary").focus()
    page.keyboard.press("Enter")
    assert page.locator("#claim-libsodium dl").is_visible()
    page.close()


def test_a_link_to_data_opens_them(browser: Browser, report: Path) -> None:
    page = browser.new_page()
    Watched(page, report)
    assert not page.locator("#curves-data table").is_visible()
    page.locator("td > a[href='#curves-data']").click()
    page.locator("#curves-data table").wait_for(state="visible")
    page.close()
