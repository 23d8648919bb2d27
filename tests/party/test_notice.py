"""Notices of studies that wait: given as configured, and harmless when they fail."""

import asyncio
import json
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from silograph.errors import ArgumentError, DeploymentError
from silograph.party.notice import Notice, Waiting
from tests.party.test_approval import study

STUDY = study(purpose='$(touch made) `touch made` "; touch made')


def give(waiting: Waiting) -> None:
    asyncio.run(Notice("north", STUDY).give(waiting))


class TestCommand:
    def test_it_gets_what_the_proposal_says(self, tmp_path: Path) -> None:
        out = tmp_path / "said"
        code = f"import sys; open({str(out)!r}, 'w').write(sys.stdin.read() + repr(sys.argv))"
        give(Waiting((sys.executable, "-c", code, "$HOME; touch made")))
        content, argv = out.read_text().split("}", 1)
        said = json.loads(content + "}")
        assert said["party"] == "north"
        assert (said["run"], said["purpose"]) == (STUDY.run, STUDY.purpose)
        assert set(said) == {
            "event", "party", "run", "coordinator", "query", "method", "epsilon", "delta",
            "deadline", "purpose",
        }  # fmt: skip
        assert argv == "['-c', '$HOME; touch made']"
        assert not Path("made").exists()

    @pytest.mark.parametrize(
        ("command", "seconds", "said"),
        [
            (("/nowhere/at/all",), 20.0, "No such file"),
            (("/bin/false",), 20.0, "ended with 1"),
            (("/bin/sh", "-c", "sleep 60 & sleep 60"), 0.2, "did not end within 0.2 s"),
        ],
    )
    def test_it_fails_or_hangs(self, command: tuple[str, ...], seconds: float, said: str) -> None:
        began = time.monotonic()
        with pytest.raises(DeploymentError, match=said):
            give(Waiting(command, seconds=seconds))
        assert time.monotonic() - began < 5


class _Hook(BaseHTTPRequestHandler):
    got: list[bytes] = []  # noqa: RUF012
    status = 200
    silent = threading.Event()

    def do_POST(self) -> None:
        self.got.append(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path == "/hang":
            self.silent.wait(5)
            return
        self.send_response(307 if self.path == "/away" else self.status)
        self.send_header("Location", "/elsewhere")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def hook() -> Iterator[str]:
    _Hook.got.clear()
    _Hook.silent.clear()
    server = HTTPServer(("127.0.0.1", 0), _Hook)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    _Hook.silent.set()
    server.shutdown()
    thread.join()
    server.server_close()


class TestWebhook:
    def test_it_gets_the_same(self, hook: str) -> None:
        give(Waiting(webhook=f"{hook}/secret-token"))
        assert _Hook.got == [Notice("north", STUDY).content()]

    def test_it_is_not_led_away(self, hook: str) -> None:
        with pytest.raises(DeploymentError, match="answered 307"):
            give(Waiting(webhook=f"{hook}/away"))
        assert len(_Hook.got) == 1

    def test_it_hangs(self, hook: str) -> None:
        with pytest.raises(DeploymentError, match=r"webhook: TimeoutError|no answer") as caught:
            give(Waiting(webhook=f"{hook}/hang", seconds=0.2))
        assert "127.0.0.1" not in str(caught.value)

    def test_nobody_is_there(self) -> None:
        with pytest.raises(DeploymentError, match="webhook: URLError") as caught:
            give(Waiting(webhook="http://127.0.0.1:9/secret-token"))
        assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "missing"),
        ({"command": ("tell",)}, "full path"),
        ({"command": ("/bin/x", "a\0b")}, "character"),
        ({"webhook": "http://example.org/x"}, "https"),
        ({"webhook": "file:///etc/passwd"}, "not the address"),
        ({"webhook": "ftp://example.org/"}, "https"),
        ({"webhook": "https://exa mple.org/"}, "not the address"),
        ({"webhook": "https://x/", "seconds": 0.0}, "seconds"),
    ],
)
def test_settings(given: dict[str, object], said: str) -> None:
    with pytest.raises(ArgumentError, match=said):
        Waiting(**given)  # type: ignore[arg-type]


def test_what_may_hold_a_token_is_not_shown() -> None:
    waiting = Waiting(("/bin/tell", "--token=SECRET"), "https://chat.example/hooks/SECRET")
    assert "SECRET" not in repr(waiting)
