"""Who gets in: tokens once, sessions for a while, own pages only; and nobody else."""

import contextlib
import json
import re
import socket
import stat
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from silograph.console import access
from silograph.console.access import People
from silograph.console.app import Console, server_of
from silograph.errors import ArgumentError, ConfigError, KeyFileError, RosterError
from silograph.party.config import SiloConfig
from tests.console.world import ORIGIN, Visitor, console_of, deployment, propose
from tests.support.local_deployment import LocalDeployment

PAGES = ("/", "/budget", "/trail", "/trail?verify=1", "/roster", "/health", "/events",
         f"/studies/{1:032x}")  # fmt: skip
FORMS = ("/health", "/leave", f"/studies/{1:032x}/decide")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> LocalDeployment:
    made = deployment(tmp_path_factory.mktemp("access"))
    propose(made)
    return made


@pytest.fixture
def console(made: LocalDeployment) -> Iterator[Console]:
    with console_of(made.silo("silo-1")) as console:
        yield console


class Clock:
    now = 1_900_000_000.0

    def __call__(self) -> float:
        return self.now


class TestPeople:
    @pytest.fixture
    def people(self, tmp_path: Path) -> People:
        self.clock = Clock()
        return People(tmp_path / "console", self.clock)

    def test_a_token_is_exchanged_once(self, people: People) -> None:
        token = people.invite("anna")
        begun = people.exchange(token)
        assert begun is not None
        person, secret = begun
        assert person.name == "anna"
        assert people.exchange(token) is None
        assert people.of_session(secret) == person
        for other in ("", "x", token, secret[:-1], secret + "A", secret.swapcase()):
            assert people.of_session(other) is None

    def test_they_end(self, people: People) -> None:
        token = people.invite("anna", hours=2, days=3)
        self.clock.now += 2 * 3600 + 1
        assert people.exchange(token) is None
        begun = people.exchange(people.invite("anna", days=3))
        assert begun is not None
        self.clock.now += 3 * 86_400 - 1
        assert people.of_session(begun[1]) is not None
        self.clock.now += 2
        assert people.of_session(begun[1]) is None

    def test_a_new_token_ends_the_old_session(self, people: People) -> None:
        begun = people.exchange(people.invite("anna"))
        assert begun is not None
        people.invite("anna")
        assert people.of_session(begun[1]) is None

    def test_leaving_and_dismissal(self, people: People) -> None:
        begun = people.exchange(people.invite("anna"))
        assert begun is not None
        people.leave(begun[1])
        assert people.of_session(begun[1]) is None
        begun = people.exchange(people.invite("anna"))
        assert begun is not None
        assert people.dismiss("anna")
        assert people.of_session(begun[1]) is None
        assert not people.dismiss("anna")

    def test_what_is_at_rest(self, people: People) -> None:
        token = people.invite("anna")
        path = people.folder / "anna.person"
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert stat.S_IMODE(people.folder.stat().st_mode) == 0o700
        assert token not in path.read_text()
        begun = people.exchange(token)
        assert begun is not None
        assert begun[1] not in path.read_text()
        assert len(token) == 43
        path.chmod(0o644)
        with pytest.raises(ConfigError, match="others can read"):
            people.of_session(begun[1])

    def test_a_damaged_file_is_nobody(self, people: People) -> None:
        begun = people.exchange(people.invite("anna"))
        assert begun is not None
        path = people.folder / "anna.person"
        known = json.loads(path.read_text())
        for content in ("", "[]", "{}", json.dumps(known | {"name": "eve"}), "x" * 100):
            path.write_text(content)
            assert people.of_session(begun[1]) is None

    def test_whoever_tries_tokens_is_in_nobody_s_way(self, people: People) -> None:
        """A wrong token is refused at once, also while somebody signs in."""
        people.invite("anna")
        with people._alone():
            assert people.exchange("a guess") is None

    def test_names_and_times(self, people: People) -> None:
        for name in ("../anna", "", "An na"):
            with pytest.raises(RosterError):
                people.invite(name)
        for given in ({"hours": 0}, {"days": 0}, {"days": 9999}):
            with pytest.raises(ArgumentError):
                people.invite("anna", **given)  # type: ignore[arg-type]
        with pytest.raises(KeyFileError):
            people.invite("anna", people.folder / "no.key")


class TestWithoutASession:
    @pytest.mark.parametrize("page", PAGES)
    def test_no_page(self, console: Console, page: str) -> None:
        answer = Visitor(console).get(page)
        assert (answer.status_code, answer.headers["location"]) == (303, "/enter")
        assert "Rings" not in answer.text

    @pytest.mark.parametrize("form", FORMS)
    def test_no_form(self, console: Console, form: str) -> None:
        assert Visitor(console).post(form, decision="accepted").status_code == 401

    def test_a_stale_token(self, console: Console) -> None:
        anna = Visitor(console, "anna")
        stranger = Visitor(console)
        for token in (anna.token, "", "x", "é", "a" * 10_000):
            answer = stranger.post("/enter", token=token)
            assert answer.status_code == 403
            assert "was used already" in answer.text
            assert "set-cookie" not in answer.headers

    def test_a_stale_session(self, console: Console) -> None:
        anna = Visitor(console, "anna")
        assert anna.get("/").status_code == 200
        kept = dict(anna.client.cookies)
        anna.act("/leave")
        for name, value in kept.items():
            anna.client.cookies.set(name, value)
        assert anna.get("/").status_code == 303

    def test_what_is_open_shows_nothing(self, console: Console) -> None:
        stranger = Visitor(console)
        for path in ("/enter", "/assets/console.css", "/assets/console.js"):
            answer = stranger.get(path)
            assert answer.status_code == 200
            assert "Rings" not in answer.text
            assert "anna" not in answer.text
        for path in ("/assets/", "/assets/..%2fapp.py", "/assets/../app.py", "/assets/app.py"):
            assert stranger.get(path).status_code in (303, 404)

    def test_a_file_that_others_can_read(self, made: LocalDeployment, console: Console) -> None:
        """Nobody is let in, and nobody is told where it is."""
        anna = Visitor(console, "anna")
        path = console.people.folder / "anna.person"
        path.chmod(0o644)
        try:
            for answer in (anna.get("/"), Visitor(console).post("/enter", token="x")):  # noqa: S106
                assert answer.status_code in (400, 503)
                assert "Rings" not in answer.text
            assert str(path) not in anna.get("/").text
        finally:
            path.chmod(0o600)

    def test_a_token_in_an_address_is_no_token(self, console: Console) -> None:
        token, stranger = console.people.invite("anna"), Visitor(console)
        answer = stranger.get(f"/enter?token={token}")
        assert "set-cookie" not in answer.headers
        assert token not in answer.text
        assert stranger.get(f"/?token={token}").status_code == 303
        assert answer.headers["referrer-policy"] == "same-origin"

    def test_a_session_that_was_there_before_is_not_taken(self, console: Console) -> None:
        anna = Visitor(console)
        anna.client.cookies.set("silograph-silo-1", "chosen-by-somebody-else")
        anna.post("/enter", token=console.people.invite("anna"))
        secret = anna.client.cookies.get("silograph-silo-1", domain="127.0.0.1")
        assert secret != "chosen-by-somebody-else"  # noqa: S105
        assert console.people.of_session("chosen-by-somebody-else") is None

    @pytest.mark.parametrize(
        "path", ["//evil.example", "//evil.example/", "/enter?next=//evil.example", "/trail/",
                 "/\\evil.example", "/studies//evil.example/", "/http://evil.example/"],
    )  # fmt: skip
    def test_no_way_leads_elsewhere(self, console: Console, path: str) -> None:
        for visitor in (Visitor(console), Visitor(console, "anna")):
            found = visitor.get(ORIGIN + path).headers.get("location", "/")
            assert found == "/" or found.startswith(("/enter", f"{ORIGIN}/"))


class TestOnTheLine:
    """A real server: what is slow, silent or too large is cut off, and others are served."""

    @pytest.fixture
    def port(self, console: Console, monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
        monkeypatch.setattr(access, "PATIENCE", 0.3)
        server = server_of(console)
        with socket.create_server(("127.0.0.1", 0)) as listening:
            serving = threading.Thread(target=lambda: server.run([listening]))
            serving.start()
            try:
                yield listening.getsockname()[1]
            finally:
                server.should_exit = True
                serving.join()

    @staticmethod
    def answer(port: int, *parts: bytes) -> bytes:
        """What comes back, until the server closes the connection."""
        found = b""
        with (
            socket.create_connection(("127.0.0.1", port), 10) as line,
            contextlib.suppress(ConnectionResetError),
        ):
            line.sendall(b"".join(parts))
            while more := line.recv(65536):
                found += more
        return found

    HEAD = (
        b"POST /enter HTTP/1.1\r\nHost: 127.0.0.1:8470\r\nOrigin: http://127.0.0.1:8470\r\n"
        b"Content-Type: application/x-www-form-urlencoded\r\nConnection: close\r\n"
    )

    def test_an_open_page_does_not_hold_the_end_up(
        self, console: Console, capfd: pytest.CaptureFixture[str]
    ) -> None:
        secret = console.people.exchange(console.people.invite("anna"))[1]  # type: ignore[index]
        server = server_of(console)
        with socket.create_server(("127.0.0.1", 0)) as listening:
            serving = threading.Thread(target=lambda: server.run([listening]))
            serving.start()
            with socket.create_connection(listening.getsockname(), 10) as line:
                line.sendall(
                    b"GET /events HTTP/1.1\r\nHost: 127.0.0.1:8470\r\nCookie: silograph-silo-1="
                    + secret.encode() + b"\r\n\r\n"
                )  # fmt: skip
                found = b""
                while b"data: " not in found:
                    found += line.recv(65536)
                server.should_exit = True
                serving.join()
        assert capfd.readouterr().err == ""

    def test_silence_and_half_a_head(self, port: int) -> None:
        assert self.answer(port) == b""
        assert self.answer(port, b"GET / HTTP/1.1\r\nHost: 127.0.") == b""
        whole = b"GET /enter HTTP/1.1\r\nHost: 127.0.0.1:8470\r\nConnection: close\r\n\r\n"
        assert self.answer(port, whole).startswith(b"HTTP/1.1 200")

    def test_a_body_that_does_not_come(self, port: int) -> None:
        found = self.answer(port, self.HEAD + b"Content-Length: 50\r\n\r\ntoken=")
        assert found.startswith(b"HTTP/1.1 400")

    def test_a_body_that_is_longer_than_it_says(self, port: int) -> None:
        head = self.HEAD + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n"
        chunk = b"2000\r\n" + b"t" * 0x2000 + b"\r\n"
        end = b"0\r\n\r\n"
        assert self.answer(port, head, *[chunk] * 7, end).startswith(b"HTTP/1.1 403"), "a guess"
        more = b"1\r\nt\r\n"  # than 64 KiB, by one
        assert self.answer(port, head, *[chunk] * 8, more, end).startswith(b"HTTP/1.1 400")


class TestCookie:
    def test_its_attributes(self, console: Console) -> None:
        anna = Visitor(console)
        answer = anna.post("/enter", token=console.people.invite("anna"))
        cookie = answer.headers["set-cookie"].lower()
        assert "httponly" in cookie
        assert "samesite=strict" in cookie
        assert "path=/" in cookie

    def test_over_tls(self, made: LocalDeployment, tmp_path: Path) -> None:
        text = made.silo_file("silo-1").read_text()
        file = made.folder / "tls.toml"
        file.write_text(text + '[console]\nlisten = "127.0.0.1:8470"\ncert = "x"\nkey = "y"\n')
        with console_of(SiloConfig.read(file)) as console:
            anna = Visitor(console)
            token = console.people.invite("anna")
            assert anna.post("/enter", token=token).status_code == 403  # http is another origin
            answer = anna.post("/enter", origin=ORIGIN.replace("http", "https"), token=token)
            assert answer.status_code == 303
            assert answer.headers["set-cookie"].startswith("__Host-silograph-silo-1=")
            assert "secure" in answer.headers["set-cookie"].lower()
            assert "strict-transport-security" in answer.headers


class TestForeignRequests:
    @pytest.mark.parametrize(
        "host", ["evil.example", "127.0.0.1", "127.0.0.1:80", "localhost.evil.example:8470", ""]
    )
    def test_another_host(self, console: Console, host: str) -> None:
        anna = Visitor(console, "anna")
        assert anna.get("/", host=host).status_code == 421
        assert anna.get("/enter", host=host).status_code == 421

    def test_its_own_names(self, console: Console) -> None:
        anna = Visitor(console, "anna")
        assert anna.get("/enter", host="LOCALHOST:8470").status_code == 200

    @pytest.mark.parametrize(
        "origin", ["http://evil.example", "null", "http://127.0.0.1", "https://127.0.0.1:8470",
                   "http://localhost:8470", f"{ORIGIN}.evil.example", ""],
    )  # fmt: skip
    def test_another_origin(self, console: Console, origin: str) -> None:
        anna = Visitor(console, "anna")
        answer = anna.post("/leave", origin=origin, check=anna.check)
        assert answer.status_code == 403
        assert anna.get("/").status_code == 200, "the session is as it was"
        assert anna.post("/enter", origin=origin, token="x").status_code == 403  # noqa: S106

    def test_without_an_origin(self, console: Console) -> None:
        anna = Visitor(console, "anna")
        check = anna.check
        assert anna.client.post("/leave", data={"check": check}).status_code == 403

    def test_a_browser_that_knows_better(self, console: Console) -> None:
        anna = Visitor(console, "anna")
        headers = {"origin": ORIGIN, "sec-fetch-site": "cross-site"}
        answer = anna.client.post("/leave", data={"check": anna.check}, headers=headers)
        assert answer.status_code == 403

    @pytest.mark.parametrize("form", FORMS)
    def test_a_forged_form(self, console: Console, form: str) -> None:
        anna, ben = Visitor(console, "anna"), Visitor(console, "ben")
        good = {"decision": "accepted", "reason": "forged"}
        for check in ("", "0" * 64, ben.check):
            assert anna.post(form, check=check, **good).status_code == 403
        assert anna.post(form, **good).status_code == 403
        assert "forged" not in anna.get("/trail").text

    def test_other_kinds_of_requests(self, console: Console) -> None:
        anna = Visitor(console, "anna")
        headers = {"origin": ORIGIN}
        for method in ("PUT", "DELETE", "OPTIONS", "PATCH"):
            assert anna.client.request(method, "/", headers=headers).status_code == 405
        for kind in ("application/json", "text/plain", "multipart/form-data; boundary=x"):
            answer = anna.client.post(
                "/leave", content=b"{}", headers=headers | {"content-type": kind}
            )
            assert answer.status_code == 415
        kind = {"content-type": "application/x-www-form-urlencoded"}
        answer = anna.client.post("/leave", content=b"a=" + b"b" * 70_000, headers=headers | kind)
        assert answer.status_code == 400
        many = b"&".join(b"a=b" for _ in range(300))
        assert anna.client.post("/leave", content=many, headers=headers | kind).status_code == 400

    def test_no_other_origin_may_read(self, console: Console) -> None:
        anna = Visitor(console, "anna")
        for path in (*PAGES[:-2], "/enter", "/assets/page.css"):
            answer = anna.get(path, origin="http://evil.example")
            assert not [name for name in answer.headers if name.startswith("access-control")]


@pytest.mark.parametrize("path", [*PAGES[:-2], "/enter", "/nothing", "/assets/console.js"])
def test_every_answer_forbids_what_it_does_not_need(console: Console, path: str) -> None:
    for visitor in (Visitor(console), Visitor(console, "anna")):
        answer = visitor.get(path)
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "script-src 'self'" in policy
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["cache-control"] == "no-store"
        assert not re.search(r"<script(?! src=\"/assets/)|<[^>]+\son\w+=|<[^>]+\sstyle=|<style",
                             answer.text) or path.startswith("/assets")  # fmt: skip


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('listen = "0.0.0.0:8470"', "needs TLS"),
        ('listen = "192.0.2.1:8470"', "needs TLS"),
        ('listen = "[::]:8470"', "needs TLS"),
        ('listen = "somewhere:8470"', "an address and a port"),
        ('listen = "127.0.0.1:0"', "an address and a port"),
        ('listen = "127.0.0.1"', "an address and a port"),
        ('cert = "x.pem"', "come together"),
        ("port = 80", "not a key"),
    ],
)
def test_settings(made: LocalDeployment, text: str, said: str) -> None:
    file = made.folder / "other.toml"
    file.write_text(made.silo_file("silo-1").read_text() + f"[console]\n{text}\n")
    with pytest.raises(ConfigError, match=said):
        SiloConfig.read(file)


def test_other_addresses_with_tls(made: LocalDeployment) -> None:
    file = made.folder / "other.toml"
    more = '[console]\nlisten = "0.0.0.0:443"\nhosts = ["console.example"]\ncert = "x"\nkey = "y"\n'
    file.write_text(made.silo_file("silo-1").read_text() + more)
    assert SiloConfig.read(file).console.names == ("0.0.0.0:443", "console.example")
