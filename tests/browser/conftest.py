"""A real browser: Debian's Chromium, driven by Playwright.

Where there is none the tests skip and say so; on continuous integration (``CI=true``) they fail,
because there nobody reads what was skipped.
"""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from reproduction.page import reproduction_page
from tests.reproduction.synthetic import bend, synthetic


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One for a module: Playwright can be entered once at a time."""
    chromium = shutil.which("chromium")
    if chromium is None:
        why = "there is no chromium: `make browser` installs it"
        if os.environ.get("CI") == "true":
            pytest.fail(why)
        pytest.skip(why)
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=chromium, args=arguments)
        yield started
        started.close()


@pytest.fixture(scope="session")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report of some experiments, one with a value of zero, and others missing."""
    found = synthetic(names=["epsilon", "time", "curves"])
    nothing = {"mse": 0.0, "mse_spread": 0.0}
    found["epsilon"] = bend(
        found["epsilon"], nothing, method="sealed", graph="facebook", epsilon=6.0
    )
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(reproduction_page(found), encoding="utf-8")
    return path


class Watched:
    """A page of which every message, error and request is kept."""

    def __init__(self, page: Page, path: Path) -> None:
        self.page = page
        self.messages: list[str] = []
        self.requests: list[str] = []
        page.on("console", lambda message: self.messages.append(message.text))
        page.on("pageerror", lambda error: self.messages.append(str(error)))
        page.on("request", lambda request: self.requests.append(request.url))
        page.goto(path.as_uri())
        page.wait_for_function("document.documentElement.dataset.drawn", timeout=60_000)
