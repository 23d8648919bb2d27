"""Who may use a console: tokens, sessions, and what every request must prove.

What
    Every person has a file of mode 0600 in ``state/console``. :meth:`People.invite` writes it and
    returns a token, which is shown once. The token is exchanged once (:meth:`People.exchange`) for
    a session, whose secret is a cookie. The file holds SHA-256 digests of the two, when they end,
    and the path of the person's approver key. Tokens and sessions are 32 random bytes, so that a
    plain hash of them cannot be searched.
Guarantee
    :class:`Guard` lets a request through to a page only if its ``Host`` is one of the console's
    own, its cookie is that of a session that has not ended, and, where it changes something, its
    ``Origin`` is the console's own and its form has the session's token against forgery. This holds
    on the loopback interface, too: other programs and other people's browsers are there as well.
    Every response carries a policy that forbids scripts and styles in pages, frames and foreign
    resources; nothing allows other origins to read (there is no CORS).
Where a person's key is
    In a file that the person's own file names. If the key is sealed, its passphrase is asked for
    each decision and forgotten after it. If not, whoever may use the console's machine as its user
    can sign as that person; a token without a key can look, and decide nothing.
"""

import asyncio
import base64
import hashlib
import hmac
import json
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from silograph import whole_files
from silograph.errors import ArgumentError, ConfigError, KeyFileError, SilographError
from silograph.extras import library
from silograph.messages.entropy import Entropy, OsEntropy
from silograph.messages.identity import Identity
from silograph.party.keys import load_identity, show_identity
from silograph.party.opened import locked
from silograph.party.roster import check_name

library("starlette", "consoles")  # a clear error before the import would fail

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.formparsers import MultiPartException
from starlette.requests import ClientDisconnect, Request, cookie_parser
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["FORGERY", "PATIENCE", "Guard", "People", "Person", "forgery_token", "read_form"]

#: The hidden field of every form.
FORGERY = "check"
_KIND = "silograph console person"
_LARGEST = 4096
_LARGEST_FORM = 1 << 16
#: How many seconds a request may take to arrive.
PATIENCE = 10.0
_HOUR, _DAY = 3600, 86_400
_MOST_DAYS = 366


# --- People, and the files that they are known by -------------------------------------------------


@dataclass(frozen=True)
class Person:
    """One person's file. Digests are empty where there is no token or no session."""

    name: str
    #: The path of the person's approver key; empty for one who only looks.
    key: str = ""
    token: str = ""
    token_until: float = 0.0
    session: str = ""
    session_until: float = 0.0
    #: How long a session lasts.
    days: int = 7
    kind: str = _KIND

    @property
    def sealed(self) -> bool:
        """Whether the person's key needs a passphrase."""
        return bool(self.key) and show_identity(self.key).sealed

    @property
    def public(self) -> bytes:
        """The public part of the person's key."""
        return show_identity(self.key).public

    @property
    def public_or_empty(self) -> str:
        """The public key in hexadecimal digits; empty if there is none that can be read."""
        try:
            return self.public.hex() if self.key else ""
        except KeyFileError:
            return ""

    def identity(self, passphrase: str) -> Identity:
        """The person's key, to sign one decision."""
        if not self.key:
            raise KeyFileError(
                f"{self.name} has no key at this console: make a token with one "
                "(silograph console token NAME --key FILE)"
            )
        return load_identity(self.key, passphrase if self.sealed else None)


class People:
    """The people of a console, in a folder of the party's state."""

    def __init__(
        self,
        folder: Path,
        clock: Callable[[], float] = time.time,
        entropy: Entropy | None = None,
    ) -> None:
        self.folder = folder
        self._clock = clock
        self._entropy = entropy or OsEntropy()

    def invite(self, name: str, key: Path | None = None, *, hours: int = 24, days: int = 7) -> str:
        """Make a token for a person, which ends the person's earlier token and session."""
        check_name(name)
        if not 1 <= hours <= 24 * _MOST_DAYS or not 1 <= days <= _MOST_DAYS:
            raise ArgumentError(f"hours and days must be from 1 to {_MOST_DAYS} days")
        if key is not None:
            show_identity(key)  # refuses what is no key, or what others can read
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise ConfigError(f"{self.folder}: {error.strerror}") from None
        token = self._secret()
        path = "" if key is None else str(key.absolute())
        until = self._clock() + hours * _HOUR
        with self._alone():
            self._write(Person(name, path, _digest(token), until, days=days))
        return token

    def dismiss(self, name: str) -> bool:
        """End a person's token and session; False if there is no such person."""
        found = self._read(self._path(check_name(name)))
        self._path(name).unlink(missing_ok=True)
        return found is not None

    def everyone(self) -> list[Person]:
        """All people, by name."""
        paths = sorted(self.folder.glob("*.person")) if self.folder.is_dir() else []
        return [person for path in paths if (person := self._read(path))]

    def exchange(self, token: str) -> tuple[Person, str] | None:
        """Take a token and begin its session; None if the token is unknown, used or too old."""
        digest = _digest(token)
        # Looked for first: whoever tries tokens must not keep others from signing in.
        if not any(_same(person.token, digest) for person in self.everyone()):
            return None
        with self._alone():
            for person in self.everyone():
                if not _same(person.token, digest):
                    continue
                if person.token_until <= self._clock():
                    return None
                secret = self._secret()
                until = self._clock() + person.days * _DAY
                begun = replace(
                    person, token="", token_until=0.0, session=_digest(secret), session_until=until
                )
                self._write(begun)
                return begun, secret
        return None

    def of_session(self, secret: str) -> Person | None:
        """The person whose session a cookie is; None if it is nobody's, or has ended."""
        digest = _digest(secret)
        for person in self.everyone():
            if _same(person.session, digest):
                return person if person.session_until > self._clock() else None
        return None

    def leave(self, secret: str) -> None:
        """End a session."""
        with self._alone():
            person = self.of_session(secret)
            if person is not None:
                self._write(replace(person, session="", session_until=0.0))

    def _secret(self) -> str:
        return base64.urlsafe_b64encode(self._entropy.bytes(32)).decode().rstrip("=")

    def _path(self, name: str) -> Path:
        return self.folder / f"{name}.person"

    def _alone(self) -> Any:
        """One change at a time, by whichever process: a token must not be exchanged twice."""
        return locked(self.folder / "people.lock", "somebody is signing in; try again")

    def _write(self, person: Person) -> None:
        content = json.dumps(asdict(person), indent=1).encode()
        whole_files.replace(self._path(person.name), content, ConfigError)

    @staticmethod
    def _read(path: Path) -> Person | None:
        """A person's file; None if it was removed or is not whole."""
        if not path.exists():
            return None
        content = whole_files.read(path, _LARGEST, ConfigError, private=True)
        try:
            person = Person(**json.loads(content))
        except (ValueError, TypeError, RecursionError):
            return None
        return person if person.kind == _KIND and person.name == path.stem else None


def _digest(secret: str) -> str:
    return hashlib.sha256(b"silograph/console/v1 " + secret.encode("utf-8", "replace")).hexdigest()


def _same(known: str, digest: str) -> bool:
    return bool(known) and hmac.compare_digest(known, digest)


def forgery_token(secret: str) -> str:
    """The value that a form of this session must have: only our own pages can know it."""
    return hashlib.sha256(b"silograph/console/form/v1 " + secret.encode()).hexdigest()


async def read_form(scope: Scope, receive: Receive) -> dict[str, str]:
    """The fields of a form; of several with one name all values, joined by commas.

    What is too large, or comes too slowly, raises a :class:`ValueError`.
    """
    left = _LARGEST_FORM

    async def bounded() -> Message:
        # Counted, since a message in chunks can be longer than it says.
        nonlocal left
        message = await receive()
        left -= len(message.get("body", b""))
        if left < 0:
            raise ValueError
        return message

    length = Headers(scope=scope).get("content-length", "")
    if not length.isdecimal() or int(length) > _LARGEST_FORM:
        raise ValueError
    try:
        async with asyncio.timeout(PATIENCE):
            found = await Request(scope, bounded).form(max_fields=200)
    except (HTTPException, MultiPartException, ClientDisconnect, TimeoutError):
        raise ValueError from None
    fields: dict[str, str] = {}
    for name, value in found.multi_items():
        fields[name] = f"{fields[name]},{value}" if name in fields else str(value)
    return fields


# --- Every request --------------------------------------------------------------------------------

#: What pages may do: nothing but what comes from this console's own files.
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "content-security-policy": _POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    # With "no-referrer" browsers would send forms with the origin "null".
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "cache-control": "no-store",
}


class Guard:
    """The only way into a console.

    ``hosts`` are the values of the header ``Host`` that are its own. Below it, requests have
    ``state.person``, ``state.secret`` and, where they change something, ``state.form``.
    """

    def __init__(
        self, app: ASGIApp, people: People, hosts: Iterable[str], cookie: str, *, tls: bool
    ) -> None:
        self._app = app
        self._people = people
        self._hosts = frozenset(host.lower() for host in hosts)
        self._scheme = "https" if tls else "http"
        self.cookie = f"__Host-{cookie}" if tls else cookie
        self._more = {"strict-transport-security": "max-age=31536000"} if tls else {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check a request, and pass it on or refuse it."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":  # no WebSocket
            return

        async def headed(message: Message) -> None:
            if message["type"] == "http.response.start":
                known = {name.lower() for name, _ in message["headers"]}
                own = {**_HEADERS, **self._more}
                message["headers"] += [
                    (name.encode(), value.encode())
                    for name, value in own.items()
                    if name.encode() not in known
                ]
            await send(message)

        scope.setdefault("state", {})
        answer: ASGIApp = self._app
        try:
            await self._check(scope, receive)
        except HTTPException as refused:
            answer = PlainTextResponse(f"{refused.detail}\n", refused.status_code, refused.headers)
        except SilographError:  # others can read, or nobody: `silograph console token` says which
            answer = PlainTextResponse("The files of this console's people are unsafe.\n", 503)
        await answer(scope, receive, headed)

    async def _check(self, scope: Scope, receive: Receive) -> None:
        """Raise unless a request may go on."""
        headers, state = Headers(scope=scope), scope["state"]
        post = self._checked_head(scope["method"], headers)
        secret = cookie_parser(headers.get("cookie", "")).get(self.cookie, "")
        person = self._people.of_session(secret) if secret else None
        state["person"], state["secret"] = person, secret if person else ""
        if post:
            try:
                state["form"] = await read_form(scope, receive)
            except ValueError:
                raise HTTPException(400, "This form cannot be read.") from None
        # Signing in, and files without anything of the party in them, need no session.
        if scope["path"] == "/enter" or scope["path"].startswith("/assets/"):
            return
        if person is None:
            if post:
                raise HTTPException(401, "Sign in first.")
            raise HTTPException(303, "Sign in first.", {"location": "/enter"})
        if post and not _same(forgery_token(secret), state["form"].get(FORGERY, "")):
            raise HTTPException(403, "This form is not from your session; load the page again.")

    def _checked_head(self, method: str, headers: Headers) -> bool:
        """Check what a request says of itself; returns whether it wants to change something."""
        hosts = headers.getlist("host")
        if len(hosts) != 1 or hosts[0].lower() not in self._hosts:
            raise HTTPException(421, "This console has another address.")
        if method not in ("GET", "HEAD", "POST"):
            raise HTTPException(405, "This is not done here.")
        if method != "POST":
            return False
        if not self._own(headers, hosts[0].lower()):
            raise HTTPException(403, "This request comes from another page.")
        if headers.get("content-type", "") != "application/x-www-form-urlencoded":
            raise HTTPException(415, "This is not a form.")
        return True

    def _own(self, headers: Headers, host: str) -> bool:
        """Whether a request that changes something was made by a page of this console."""
        if headers.getlist("origin") != [f"{self._scheme}://{host}"]:
            return False
        return headers.get("sec-fetch-site", "same-origin") == "same-origin"

    def remember(self, response: Response, person: Person, secret: str) -> None:
        """Give a browser its session."""
        response.set_cookie(
            self.cookie, secret, max_age=person.days * _DAY, path="/", httponly=True,
            secure=self._scheme == "https", samesite="strict",
        )  # fmt: skip

    def forget(self, response: Response) -> None:
        """Take a browser's session away."""
        response.delete_cookie(
            self.cookie, path="/", httponly=True, secure=self._scheme == "https", samesite="strict"
        )
