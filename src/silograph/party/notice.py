"""Telling people that a study waits for them: a command or a webhook of the configuration.

What
    When a study that the policy allows waits for a decision, a :class:`Notice` of it goes to the
    command's standard input or by POST to the webhook, as one JSON object. It says what the
    proposal says (run, coordinator, query, method, epsilon, delta, deadline, purpose) and which
    party it is that waits. Nothing in it depends on edges, and it holds no secret.
Guarantee
    A command is started with its arguments as they are configured, never through a shell, and with
    nothing of the study among them. A notice that fails or hangs is given up after some seconds and
    stops nothing: no study is decided by it, or waits for it.
"""

import asyncio
import contextlib
import json
import os
import signal
import ssl
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from http.client import HTTPException, HTTPMessage
from typing import IO
from urllib.parse import urlsplit

from silograph.errors import ArgumentError, DeploymentError
from silograph.methods.study import Study

__all__ = ["Notice", "Waiting"]

_LONGEST_SECONDS = 600.0
_LOOPBACK = ("127.0.0.1", "localhost", "::1")


@dataclass(frozen=True)
class Waiting:
    """What is called when a study waits: the configuration's table ``[waiting]``."""

    command: tuple[str, ...] = field(default=(), repr=False)
    #: Addresses, like words of commands, may hold tokens: neither is shown.
    webhook: str = field(default="", repr=False)
    #: After this many seconds a call is given up.
    seconds: float = 10.0

    def __post_init__(self) -> None:
        if not self.command and not self.webhook:
            raise ArgumentError("command or webhook is missing")
        if self.command and not self.command[0].startswith("/"):
            raise ArgumentError("command must begin with the full path of a program")
        if any("\0" in word for word in self.command):
            raise ArgumentError("command has a character that cannot be in an argument")
        if not 0 < self.seconds <= _LONGEST_SECONDS:
            raise ArgumentError(f"seconds must be from 0 to {_LONGEST_SECONDS:.0f}")
        if self.webhook:
            _check_address(self.webhook)


def _check_address(webhook: str) -> None:
    try:
        parts = urlsplit(webhook)
        host, _ = parts.hostname, parts.port
    except ValueError:
        host = None
    if not host or not webhook.isascii() or not webhook.isprintable() or " " in webhook:
        raise ArgumentError("webhook is not the address of a page")
    if parts.scheme != "https" and not (parts.scheme == "http" and host in _LOOPBACK):
        raise ArgumentError("webhook must begin with https:// (http:// only for this machine)")


@dataclass(frozen=True)
class Notice:
    """That a study waits at a party."""

    party: str
    study: Study

    def content(self) -> bytes:
        """The JSON object that is given away: parts of the proposal, and the party's name."""
        study = self.study
        return json.dumps(
            {
                "event": "study.waiting",
                "party": self.party,
                "run": study.run,
                "coordinator": study.coordinator,
                "query": study.query,
                "method": study.how,
                "epsilon": study.epsilon,
                "delta": study.delta,
                "deadline": study.deadline,
                "purpose": study.purpose,
            }
        ).encode()

    async def give(self, waiting: Waiting) -> None:
        """Call what is configured; raises :class:`DeploymentError` if any of it fails."""
        content, failed = self.content(), []
        if waiting.command:
            failed.append(await _call(waiting.command, content, waiting.seconds))
        if waiting.webhook:
            failed.append(await _post(waiting.webhook, content, waiting.seconds))
        if any(failed):
            raise DeploymentError("; ".join(filter(None, failed)))


async def _call(command: tuple[str, ...], content: bytes, seconds: float) -> str:
    """Start a command and give it the content; returns what went wrong."""
    try:
        process = await asyncio.create_subprocess_exec(
            *command, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
    except OSError as error:
        return f"waiting.command: {error.strerror}"
    try:
        async with asyncio.timeout(seconds):
            await process.communicate(content)
    except TimeoutError:
        return f"waiting.command: did not end within {seconds:g} s"
    finally:
        if process.returncode is None:  # all that it started goes with it
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
    return f"waiting.command: ended with {process.returncode}" if process.returncode else ""


async def _post(webhook: str, content: bytes, seconds: float) -> str:
    """Send the content to a webhook; returns what went wrong, without the address."""
    try:
        async with asyncio.timeout(2 * seconds):  # the thread's own limit is for each step
            status = await asyncio.to_thread(_send, webhook, content, seconds)
    except TimeoutError:
        return f"waiting.webhook: no answer within {seconds:g} s"
    except (OSError, HTTPException, ValueError) as error:
        # The address may hold a token, and errors may repeat it: only the kind is told.
        return f"waiting.webhook: {type(error).__name__}"
    return "" if 200 <= status < 300 else f"waiting.webhook: answered {status}"


class _Stay(urllib.request.HTTPRedirectHandler):
    """Follow no redirection: the content goes where the configuration says, and nowhere else."""

    def redirect_request(
        self, req: object, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> None:
        """Make no request."""


def _send(webhook: str, content: bytes, seconds: float) -> int:
    request = urllib.request.Request(  # noqa: S310 - the scheme was checked
        webhook, content, {"Content-Type": "application/json"}
    )
    opener = urllib.request.build_opener(
        _Stay, urllib.request.HTTPSHandler(context=ssl.create_default_context())
    )
    try:
        with opener.open(request, timeout=seconds) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        error.close()
        return error.code
