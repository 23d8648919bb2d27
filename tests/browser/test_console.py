"""The console in a real browser, by keyboard: propose, approve, refuse, see an answer arrive."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Error, expect

from silograph.nats.coordinator import Question
from tests.browser.consoles import SECURE, Consoles, consoles, wait
from tests.browser.test_result import contrast
from tests.console.world import NASTY, NODE
from tests.support.local_deployment import HUB

SILO = SECURE
#: A machine may be busy; nothing here waits longer than it must.
expect.set_options(timeout=30_000)


@pytest.fixture(scope="module")
def world(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Consoles]:
    with consoles(tmp_path_factory.mktemp("console")) as made:
        yield made


class Desk:
    """One person at one console, in a browser of their own; everything is done by keyboard."""

    def __init__(self, browser: Any, world: Consoles, party: str, person: str) -> None:
        self.world, self.party = world, party
        # The certificate is the test's own, and no authority of the browser's has signed it.
        self.context = browser.new_context(
            viewport={"width": 1100, "height": 800}, ignore_https_errors=True
        )
        self.page = self.context.new_page()
        self.page.set_default_timeout(30_000)
        self.said: list[str] = []
        self.asked: list[str] = []
        self.texts: list[str] = []
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("request", lambda request: self.asked.append(request.url))
        world.enter(self.page, party, person)

    def tab_to(self, selector: str) -> None:
        """Press Tab until the element has the focus."""
        for _ in range(80):
            if self.page.evaluate("s => document.activeElement.matches(s)", selector):
                return
            self.page.keyboard.press("Tab")
        raise AssertionError(f"the keyboard does not reach {selector}")

    def type(self, selector: str, text: str) -> None:
        self.tab_to(selector)
        self.page.keyboard.type(text)

    def press(self, selector: str) -> None:
        self.tab_to(selector)
        self.page.keyboard.press("Enter")

    def decide(self, run: str, decision: str, reason: str) -> None:
        self.press(f'a.primary[href="/studies/{run}"]')
        self.page.wait_for_url(f"**/studies/{run}")
        self.type("#reason", reason)
        self.press(f'button[value="{decision}"]')
        expect(self.page.locator(".done")).to_be_visible()

    def quiet(self) -> None:
        """Nothing was fetched from elsewhere, and the browser complained about nothing."""
        own = self.world.address(self.party, "")
        assert [url for url in self.asked if not url.startswith(own)] == []
        # While a console is down its pages try to reach it again.
        assert [text for text in self.said if "ERR_CONNECTION" not in text
                and "ERR_INCOMPLETE" not in text] == []  # fmt: skip


def test_from_a_question_to_its_answer(browser: Any, world: Consoles) -> None:
    """Two people approve; the answer arrives by itself, though the console was killed meanwhile."""
    ben, anna = Desk(browser, world, SILO, "ben"), Desk(browser, world, SILO, "anna")
    hub = Desk(browser, world, HUB, "anna")
    expect(ben.page.locator("#waiting")).to_contain_text("Nothing waits")
    _over_tls(world, ben, hub)

    hub.press('a[href="/propose"]')
    hub.page.wait_for_url("**/propose")
    hub.tab_to("#query")
    hub.page.keyboard.type("ed")  # the list jumps to what is typed
    hub.type("#epsilon", "2")
    hub.press('button[formaction="/plan#plan"]')
    expect(hub.page.locator(".plan .best")).to_contain_text("feat masked")
    hub.press('.plan .best button[name="take"]')
    expect(hub.page.locator("#protocol")).to_have_value("masked")
    hub.type("#purpose", NASTY)
    hub.press("#draft button.primary")
    expect(hub.page.locator(".done")).to_contain_text("proposed")
    run = re.search(r"[0-9a-f]{32}", hub.page.url)[0]  # type: ignore[index]

    # It appears at the silo by itself, and its purpose is a text.
    card = ben.page.locator(f'#waiting a.primary[href="/studies/{run}"]')
    expect(card).to_be_visible()
    assert ben.page.locator("#waiting .purpose").inner_text() == NASTY
    assert "taken" not in ben.page.title()

    world.kill_console(HUB)
    ben.decide(run, "accepted", "as agreed in March")
    expect(ben.page.locator(".done")).to_contain_text("wants another person")
    anna.decide(run, "accepted", "and checked by me")
    wait(lambda: world.runs(HUB)[run] == "done", "the run goes on without the console", 60)

    # The page that was left open finds the console again, and shows the answer.
    world.console(HUB)
    expect(hub.page.locator("#answer .value")).to_be_visible()
    expect(hub.page.locator("#progress")).to_contain_text("3 of 3")
    expect(ben.page.locator("#head")).to_contain_text("done")
    for desk in (ben, anna, hub):
        assert NODE not in desk.page.content()
        desk.quiet()
    _the_page(hub, run)
    _the_trail(ben)
    _looks(browser, world, ben, run)


def _over_tls(world: Consoles, ben: Desk, hub: Desk) -> None:
    """The silo's cookie is for TLS alone, scripts do not see it, and plain HTTP gets no answer."""
    (cookie,), (plain,) = ben.context.cookies(), hub.context.cookies()
    assert cookie["name"] == f"__Host-silograph-{SILO}"
    assert cookie["secure"]
    assert not plain["secure"]
    for each in (cookie, plain):
        assert (each["httpOnly"], each["sameSite"], each["path"]) == (True, "Strict", "/")
    assert ben.page.evaluate("document.cookie") == ""
    with pytest.raises(Error, match="ERR_"):
        ben.context.new_page().goto(world.address(SILO).replace("https", "http"))


def _the_page(hub: Desk, run: str) -> None:
    """The page of the answer draws its figures, and has no way to the session."""
    hub.press(f'a[href="/studies/{run}/page"]')
    hub.page.wait_for_function("document.documentElement.dataset.drawn", timeout=60_000)
    assert hub.page.evaluate("window.origin") == "null"
    reached = hub.page.evaluate("fetch('/').then(() => 'reached', () => 'refused')")
    assert reached == "refused"


def _the_trail(ben: Desk) -> None:
    ben.press('nav a[href="/trail"]')
    ben.page.wait_for_url("**/trail")
    ben.press("main button.primary")
    expect(ben.page.locator("#verified")).to_contain_text("The trail is whole")
    expect(ben.page.locator("#verified")).to_contain_text("all 2 signatures hold")


def _looks(browser: Any, world: Consoles, ben: Desk, run: str) -> None:
    """Light, dark and on a phone: nothing sticks out, and everything can be read."""
    page, study = ben.page, f"/studies/{run}"
    readable = {
        study: (".badge.good", ".badge.half", ".quiet", "nav a", ".observers p", "dt"),
        "/health": (".primary",),
    }
    for scheme, width in (("light", 1100), ("dark", 375)):
        page.emulate_media(color_scheme=scheme)
        page.set_viewport_size({"width": width, "height": 800})
        for path in ("/", study, "/budget", "/trail", "/roster", "/health"):
            page.goto(world.address(SILO, path))
            wide = page.evaluate("document.documentElement.scrollWidth")
            assert wide <= width, (path, scheme, wide)
            assert page.evaluate(UNLABELLED) == []
            for selector in readable.get(path, ()):
                assert contrast(page, selector) >= 4.5, (selector, scheme)
            if path == "/budget":
                told = page.locator(".course svg").get_attribute("aria-label")
                assert "one step up to ε\xa0=\xa02" in told
            if path == "/roster":  # a key is one line, which scrolls
                assert page.locator("td code").first.bounding_box()["height"] < 40


#: Fields without a label, buttons and links without a name, images without words.
UNLABELLED = """() => [...document.querySelectorAll(
    "input:not([type=hidden]), textarea, select, button, a, svg:not([aria-hidden])")]
    .filter(e => !(e.labels?.length || e.textContent.trim() || e.getAttribute("aria-label")))
    .map(e => e.outerHTML.slice(0, 80))"""


def test_a_study_is_refused(browser: Any, world: Consoles) -> None:
    """One of two refuses, and the coordinator sees it by itself."""
    run = world.propose(Question("edges", 1.0, protocol="masked", purpose="again"))
    hub, ben = Desk(browser, world, HUB, "ben"), Desk(browser, world, SILO, "ben")
    hub.press(f'#running a[href="/studies/{run}"]')
    hub.page.wait_for_url(f"**/studies/{run}")
    hub.press('form[action$="/carry"] button')
    expect(ben.page.locator(f'#waiting a.primary[href="/studies/{run}"]')).to_be_visible()
    ben.decide(run, "refused", "not a second time")
    expect(hub.page.locator("#answer")).to_contain_text("aborted")
    expect(ben.page.locator("#decisions")).to_contain_text("not a second time")
    ben.press("header form button")
    ben.page.wait_for_url("**/enter")
    ben.page.goto(world.address(SILO, "/trail"))
    expect(ben.page).to_have_url(world.address(SILO, "/enter"))
