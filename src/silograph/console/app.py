"""The console of a party as a web application: its pages, and what can be done on them.

Pages are made on the server from templates that escape every value; texts of other parties, such
as a study's purpose, are text. Everything that a page can do goes through a desk
(:mod:`~silograph.console.silo`, :mod:`~silograph.console.coordinator`), which calls what the
command line calls.
"""

import asyncio
import re
import socket
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from importlib.resources import files
from pathlib import Path
from typing import Any

from silograph.console import access
from silograph.console.access import FORGERY, Guard, People, Person, forgery_token
from silograph.console.coordinator import CoordinatorDesk, Draft
from silograph.console.desk import Desk
from silograph.console.live import Live
from silograph.console.silo import SiloDesk
from silograph.errors import DeploymentError, SilographError, TrailError
from silograph.extras import library
from silograph.page.html import environment
from silograph.party.approval import ACCEPTED, REFUSED
from silograph.party.config import CoordinatorConfig, HelperConfig, PartyConfig, SiloConfig

library("starlette", "consoles")
library("uvicorn", "consoles")

import h11
import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route
from uvicorn.protocols.http.h11_impl import H11Protocol

__all__ = ["Console", "serve", "server_of"]

_RUN = re.compile(r"[0-9a-f]{32}")
#: The files that pages use, and where they are.
_ASSETS = {
    "page.css": ("silograph.page", "text/css"),
    "result.css": ("silograph.page", "text/css"),
    "console.css": ("silograph.console", "text/css"),
    "page.js": ("silograph.page", "text/javascript"),
    "console.js": ("silograph.console", "text/javascript"),
    "icon.svg": ("silograph.console", "image/svg+xml"),
}
#: What is said after something was done.
_SAID = {
    "approved": "You have approved the study. Your signature is in the trail.",
    "waits": "You have approved the study, and your signature is in the trail. The policy wants "
    "another person's approval, too.",
    "refused": "You have refused the study. Your signature is in the trail.",
    "proposed": "The study is proposed. The silos' people decide now.",
    "aborted": "The study is being ended for all parties.",
    "carried": "The study is being carried on.",
}
#: An answer's page has scripts of its own. In this sandbox it has no origin: it can neither read
#: the session nor send anything anywhere.
_SANDBOX = (
    "sandbox allow-scripts allow-downloads; default-src 'none'; style-src 'unsafe-inline'; "
    "script-src 'unsafe-inline' 'unsafe-eval'; img-src data: blob:; font-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


class Console:
    """The application of one party; ``app`` is what a server calls."""

    def __init__(self, config: PartyConfig, clock: Callable[[], float] = time.time) -> None:
        self.config = config
        self.people = People(config.state / "console", clock)
        self.desk = _desk(config, clock)
        self.live = Live(self.desk)
        self._pages = environment(Path(str(files("silograph.console").joinpath("templates"))))
        settings = config.console
        self._guard = Guard(
            Starlette(
                routes=self._routes(), lifespan=self._lifespan,
                exception_handlers={SilographError: self._failed, HTTPException: self._missing},
            ),
            self.people, settings.names, f"silograph-{config.name}", tls=settings.tls,
        )  # fmt: skip
        self.app = self._guard

    def close(self) -> None:
        """Close the party's files."""
        self.desk.close()

    @asynccontextmanager
    async def _lifespan(self, _app: Starlette) -> AsyncIterator[None]:
        watching = asyncio.create_task(self.live.watch())
        try:
            yield
        finally:
            watching.cancel()
            with suppress(asyncio.CancelledError):
                await watching

    def _routes(self) -> list[Route]:
        routes = [
            Route("/enter", self.enter),
            Route("/enter", self.entered, methods=["POST"]),
            Route("/leave", self.leave, methods=["POST"]),
            Route("/assets/{name}", self.asset),
            Route("/events", self.events),
            Route("/", self.overview),
            Route("/studies/{run}", self.study),
            Route("/trail", self.trail),
            Route("/roster", self.roster),
            Route("/health", self.health),
            Route("/health", self.preflight, methods=["POST"]),
        ]
        if isinstance(self.desk, CoordinatorDesk):
            return [
                *routes,
                Route("/propose", self.form),
                Route("/plan", self.plan, methods=["POST"]),
                Route("/propose", self.propose, methods=["POST"]),
                Route("/studies/{run}/abort", self.abort, methods=["POST"]),
                Route("/studies/{run}/carry", self.carry, methods=["POST"]),
                Route("/studies/{run}/page", self.page),
            ]
        return [
            *routes,
            Route("/budget", self.budget),
            Route("/studies/{run}/decide", self.decide, methods=["POST"]),
        ]

    # -- pages -------------------------------------------------------------------------------

    def _page(self, request: Request, name: str, *, status: int = 200, **values: Any) -> Response:
        """A page for the person who asks for it."""
        person: Person | None = getattr(request.state, "person", None)
        common = {
            "party": self.config.name,
            "role": self.config.role,
            "pages": self.desk.pages if person else {},
            "here": request.url.path,
            "person": person,
            "check": (FORGERY, forgery_token(request.state.secret)) if person else None,
            "said": _SAID.get(request.query_params.get("said", ""), ""),
            "mark": self.live.mark,
            # What answers a form cannot be loaded again, and so is not live.
            "live": person is not None and request.method == "GET",
            "unwell": self.desk.alive() if person else "",
            "problem": "",
            "sentence": lambda text: text[:1].upper() + text[1:],
        }
        text = self._pages.get_template(name).render(common | values)
        return HTMLResponse(text, status)

    def _failed(self, request: Request, error: Exception) -> Response:
        return self._page(request, "problem.html", status=400, problem=str(error))

    def _missing(self, request: Request, error: Exception) -> Response:
        status = error.status_code if isinstance(error, HTTPException) else 500
        return self._page(request, "problem.html", status=status, problem="There is no such page.")

    def enter(self, request: Request) -> Response:
        """The page to sign in."""
        return self._page(request, "enter.html")

    def entered(self, request: Request) -> Response:
        """Exchange a token for a session."""
        begun = self.people.exchange(request.state.form.get("token", "").strip())
        if begun is None:
            problem = "This token is not known here, was used already, or is too old."
            return self._page(request, "enter.html", status=403, problem=problem)
        response = RedirectResponse("/", 303)
        self._guard.remember(response, *begun)
        return response

    def leave(self, request: Request) -> Response:
        """End a session."""
        self.people.leave(request.state.secret)
        response = RedirectResponse("/enter", 303)
        self._guard.forget(response)
        return response

    @staticmethod
    def asset(request: Request) -> Response:
        """A style sheet or a script."""
        name = request.path_params["name"]
        if name not in _ASSETS:
            raise HTTPException(404)
        package, kind = _ASSETS[name]
        content = files(package).joinpath("assets", name).read_bytes()
        return Response(content, media_type=f"{kind}; charset=utf-8")

    def events(self, request: Request) -> Response:
        """The stream that tells an open page of changes."""
        if self.live.full:
            raise HTTPException(503)
        secret = request.state.secret
        stream = self.live.events(lambda: self.people.of_session(secret) is not None)
        return StreamingResponse(stream, media_type="text/event-stream")

    def overview(self, request: Request) -> Response:
        """All studies."""
        name = "hub.html" if isinstance(self.desk, CoordinatorDesk) else "silo.html"
        return self._page(request, name, **self.desk.overview())

    def study(self, request: Request) -> Response:
        """One study."""
        return self._study(request)

    def _study(self, request: Request, *, problem: str = "", reason: str = "") -> Response:
        run, person = _run(request), request.state.person
        status = 400 if problem else 200
        desk = self.desk
        common = {
            "study": desk.study(run),
            "problem": problem,
            "reason": reason,
            "refusal": desk.may_sign(person),
            "sealed": _sealed(person),
        }
        if isinstance(desk, CoordinatorDesk):
            return self._page(request, "hub_study.html", status=status, **common)
        mine = isinstance(desk, SiloDesk) and desk.has_approved(person, run)
        return self._page(request, "silo_study.html", status=status, mine=mine, **common)

    def trail(self, request: Request) -> Response:
        """The trail, and its verification if that is asked for."""
        verified = self.desk.verify() if request.query_params.get("verify") else None
        try:
            entries = self.desk.entries()
        except TrailError:  # a trail that was tampered with is not shown as if it were one
            entries, verified = [], self.desk.verify()
        return self._page(request, "trail.html", entries=entries, verified=verified)

    def roster(self, request: Request) -> Response:
        """The parties."""
        return self._page(request, "roster.html", roster=self.desk.roster())

    def health(self, request: Request) -> Response:
        """The service, and the way to a preflight."""
        return self._page(request, "health.html", checks=None)

    def preflight(self, request: Request) -> Response:
        """Look at everything that a study needs."""
        return self._page(request, "health.html", checks=self.desk.preflight())

    # -- a silo's pages ----------------------------------------------------------------------

    def budget(self, request: Request) -> Response:
        """What was spent, and what is left."""
        return self._page(request, "budget.html", lineages=_silo(self.desk).budget())

    def decide(self, request: Request) -> Response:
        """Approve or refuse a study."""
        run, form = _run(request), request.state.form
        decision, reason = form.get("decision", ""), form.get("reason", "")
        if decision not in (ACCEPTED, REFUSED):
            raise HTTPException(400)
        try:
            done = _silo(self.desk).decide(
                request.state.person, run, decision, reason, form.get("passphrase", "")
            )
        except SilographError as error:
            return self._study(request, problem=str(error), reason=reason)
        word = {ACCEPTED: "approved", REFUSED: "refused"}.get(done.decision, "waits")
        return RedirectResponse(f"/studies/{run}?said={word}", 303)

    # -- a coordinator's pages ---------------------------------------------------------------

    def form(self, request: Request) -> Response:
        """The form of a proposal, with the planner beside it."""
        return self._form(request, Draft({}))

    def plan(self, request: Request) -> Response:
        """The same with what is filled in, and a plan for it."""
        return self._form(request, Draft.of(request.state.form))

    def _form(self, request: Request, draft: Draft, problem: str = "") -> Response:
        desk, person = _hub(self.desk), request.state.person
        made = desk.form(draft)
        return self._page(
            request, "propose.html", status=400 if problem else 200, form=made,
            problem=problem or "; ".join(draft.problems), refusal=desk.may_sign(person),
            sealed=_sealed(person),
        )  # fmt: skip

    def propose(self, request: Request) -> Response:
        """Propose a study."""
        draft = Draft.of(request.state.form)
        try:
            passphrase = request.state.form.get("passphrase", "")
            run = _hub(self.desk).propose(request.state.person, draft, passphrase)
        except SilographError as error:
            draft.problems.clear()
            return self._form(request, draft, str(error))
        return RedirectResponse(f"/studies/{run}?said=proposed", 303)

    def abort(self, request: Request) -> Response:
        """End a study for all."""
        run, form = _run(request), request.state.form
        try:
            _hub(self.desk).abort(
                request.state.person, run, form.get("reason", ""), form.get("passphrase", "")
            )
        except SilographError as error:
            return self._study(request, problem=str(error), reason=form.get("reason", ""))
        return RedirectResponse(f"/studies/{run}?said=aborted", 303)

    def carry(self, request: Request) -> Response:
        """Carry a study on that nobody carries."""
        run, desk = _run(request), _hub(self.desk)
        refusal = desk.may_sign(request.state.person)
        if refusal:
            return self._study(request, problem=refusal)
        desk.carry(run)
        return RedirectResponse(f"/studies/{run}?said=carried", 303)

    def page(self, request: Request) -> Response:
        """The page of an answer, which can do nothing here."""
        text = _hub(self.desk).page(_run(request))
        return HTMLResponse(text, headers={"content-security-policy": _SANDBOX})


def _desk(config: PartyConfig, clock: Callable[[], float]) -> SiloDesk | CoordinatorDesk:
    if isinstance(config, CoordinatorConfig):
        return CoordinatorDesk(config, clock)
    if isinstance(config, SiloConfig | HelperConfig):
        return SiloDesk(config, clock)
    raise DeploymentError(f"{config.file}: a console is for a silo, a helper or a coordinator")


def _silo(desk: Desk) -> SiloDesk:
    assert isinstance(desk, SiloDesk)  # noqa: S101 - only its routes lead here
    return desk


def _hub(desk: Desk) -> CoordinatorDesk:
    assert isinstance(desk, CoordinatorDesk)  # noqa: S101 - only its routes lead here
    return desk


def _sealed(person: Person) -> bool:
    try:
        return person.sealed
    except SilographError:  # said on the page in other words
        return False


def _run(request: Request) -> str:
    run: str = request.path_params["run"]
    if not _RUN.fullmatch(run):
        raise HTTPException(404)
    return run


# --- Serving --------------------------------------------------------------------------------------


class _Connection(H11Protocol):
    """A connection that must bring its request in time; silent ones would take all places."""

    _late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait."""
        super().connection_made(transport)
        self._wait()

    def data_received(self, data: bytes) -> None:
        """Take what came, and go on waiting if a head is not whole."""
        super().data_received(data)
        if self.conn.their_state is h11.IDLE:
            self._wait()
        else:
            self._stop_waiting()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no longer."""
        self._stop_waiting()
        super().connection_lost(exc)

    def shutdown(self) -> None:
        """End with the console: a stream of events has no end of its own."""
        super().shutdown()
        if self.cycle is not None and self.scope["path"] == "/events":
            self.transport.abort()  # over TLS, a browser would be waited for

    def _wait(self) -> None:
        if self._late is None:
            self._late = self.loop.call_later(access.PATIENCE, self.transport.abort)

    def _stop_waiting(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None


def server_of(console: Console) -> uvicorn.Server:
    """The server of a console; it listens on sockets that it is given."""
    settings = console.config.console
    return uvicorn.Server(
        uvicorn.Config(
            console.app, http=_Connection, log_level="warning", access_log=False,
            server_header=False, proxy_headers=False, lifespan="on", ws="none",
            limit_concurrency=128, timeout_graceful_shutdown=1, ssl_certfile=settings.cert,
            ssl_keyfile=settings.key,
        )
    )  # fmt: skip


def serve(config: PartyConfig, ready: Callable[[str], None] = lambda _address: None) -> None:
    """Serve a party's console until SIGTERM or Ctrl-C; ``ready`` is told its address."""
    settings = config.console
    try:
        listening = socket.create_server(
            (settings.host, settings.port),
            family=socket.AF_INET6 if ":" in settings.host else socket.AF_INET,
        )
    except OSError as error:
        where = f"{settings.host}:{settings.port}"
        raise DeploymentError(f"the console cannot listen on {where}: {error.strerror}") from None
    console = Console(config)
    try:
        ready(f"{'https' if settings.tls else 'http'}://{settings.names[0]}")
        server_of(console).run([listening])
    finally:
        listening.close()
        console.close()
