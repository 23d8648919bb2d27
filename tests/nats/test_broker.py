"""The server's configuration, read by the real server, and tried by honest and other clients."""

import asyncio
import contextlib
import gc
import socket
import ssl
import subprocess
from collections.abc import Coroutine, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import nats
import pytest
from nats.errors import NoServersError
from nats.js.api import AckPolicy, ConsumerConfig

from silograph.errors import BrokerError
from silograph.nats.broker import ServerSettings, server_text, users_text
from silograph.party import certificates, connection
from tests.nats.brokers import SERVER, LocalDeployment, make_trial, running

RUN = bytes(range(16))


@pytest.fixture(scope="module")
def trial(tmp_path_factory: pytest.TempPathFactory) -> LocalDeployment:
    return make_trial(tmp_path_factory.mktemp("trial"), "north", "south")


@pytest.fixture(scope="module")
def log(trial: LocalDeployment) -> Iterator[Path]:
    with running(trial) as file:
        yield file


def test_the_server_takes_it(trial: LocalDeployment) -> None:
    done = subprocess.run(
        [SERVER, "-t", "-c", str(trial.folder / "broker" / "nats.conf")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "is valid" in done.stderr


def test_what_durability_and_privacy_rest_on(trial: LocalDeployment) -> None:
    text = (trial.folder / "broker" / "nats.conf").read_text()
    assert "sync_interval: always" in text
    assert "max_payload: 4194304" in text
    assert text.count("verify_and_map: true") == 2
    assert text.count('min_version: "1.3"') == 2
    assert "handshake_first: true" in text
    users = (trial.folder / "broker" / "users.conf").read_text()
    assert "never proof" in users
    assert users.count(connection.STUDIES) == 1
    assert trial.roster.digest.hex() in users


def test_certificates_of_an_organisation(trial: LocalDeployment) -> None:
    text = users_text(trial.roster, {"north": 'CN=n1,O="Bank, North"'})
    assert r'user: "CN=n1,O=\"Bank, North\""' in text
    assert '"CN=north"' not in text
    with pytest.raises(BrokerError, match="'east' is not in the roster"):
        users_text(trial.roster, {"east": "CN=x"})


@pytest.mark.parametrize("address", ["4222", "localhost", ":4222", "a:0", "a:65536", "a:x", "a:²"])
def test_addresses(trial: LocalDeployment, address: str) -> None:
    with pytest.raises(BrokerError, match="is not an address"):
        ServerSettings(trial.tls("broker"), trial.folder, listen=address)
    with pytest.raises(BrokerError, match="is not an address"):
        ServerSettings(trial.tls("broker"), trial.folder, websocket=address)


def test_odd_paths_are_quoted(trial: LocalDeployment, tmp_path: Path) -> None:
    odd = tmp_path / 'a "b" \\ $c # {d}'
    text = server_text(ServerSettings(trial.tls("broker"), odd))
    (tmp_path / "nats.conf").write_text(text)
    (tmp_path / "users.conf").write_text(users_text(trial.roster))
    done = subprocess.run(
        [SERVER, "-t", "-c", str(tmp_path / "nats.conf")], capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr


def together(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(work, 30))
    gc.collect()  # the client leaves sockets of failed attempts open, which is not our subject


class Party:
    """A client with a party's certificate, and what the server refused to it."""

    def __init__(self, trial: LocalDeployment, name: str, *, websocket: bool = False) -> None:
        self.options = trial.config(name, websocket=websocket).connect_options(name)
        self.refused: list[str] = []

    async def __aenter__(self) -> "Party":
        async def note(error: Exception) -> None:
            self.refused.append(str(error))

        self.client = await nats.connect(**self.options, error_cb=note)
        self.streams = self.client.jetstream(timeout=2)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.client.close()

    async def settle(self) -> None:
        await self.client.flush()
        await asyncio.sleep(0.05)


# The client's WebSocket passes an argument in a form that aiohttp would rather not see.
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
class TestServer:
    @pytest.mark.parametrize("websocket", [False, True], ids=["tls", "websocket"])
    def test_a_message_from_one_to_the_other(
        self, trial: LocalDeployment, log: Path, websocket: bool
    ) -> None:
        run = bytes([websocket]) * 16
        name = f"silograph-{run.hex()}-north"

        async def work() -> None:
            async with (
                Party(trial, "north", websocket=websocket) as north,
                Party(trial, "south", websocket=websocket) as south,
            ):
                await north.streams.add_stream(
                    name=name, subjects=[f"{connection.PREFIX}.{run.hex()}.north.>"]
                )
                subject = connection.message(run, "north", connection.ALL, "keys", 0)
                payload = bytes(2 << 20)
                once = {"Nats-Expected-Last-Subject-Sequence": "0"}
                await north.streams.publish(subject, payload, headers=dict(once))
                config = ConsumerConfig(ack_policy=AckPolicy.NONE, mem_storage=True)
                reader = await south.streams.pull_subscribe("", stream=name, config=config)
                (message,) = await reader.fetch(1, timeout=5)
                assert (message.subject, message.data) == (subject, payload)
                assert (await north.streams.get_last_msg(name, subject)).data == payload
                await north.streams.delete_stream(name)
                assert north.refused == south.refused == []

        together(work())

    def test_a_party_cannot_speak_under_anothers_name(
        self, trial: LocalDeployment, log: Path
    ) -> None:
        async def work() -> None:
            async with Party(trial, "north") as north:
                for subject in (
                    connection.message(RUN, "south", connection.ALL, "keys", 0),
                    connection.message(RUN, "hub", "north", "keys", 0),
                    connection.STUDIES,
                    "_INBOX_south.x",
                    "$JS.API.STREAM.PURGE.x",
                    "$JS.API.STREAM.MSG.DELETE.x",
                    "$SYS.REQ.SERVER.PING",
                ):
                    north.refused.clear()
                    await north.client.publish(subject, b"x")
                    await north.settle()
                    assert "permissions violation for publish" in str(north.refused), subject
                await north.client.publish(connection.message(RUN, "north", "hub", "keys", 0))
                north.refused.clear()
                await north.settle()
                assert north.refused == []

        together(work())

    def test_a_party_does_not_listen_to_others(self, trial: LocalDeployment, log: Path) -> None:
        async def work() -> None:
            async with Party(trial, "north") as north:
                for subject in ("_INBOX_south.>", "_INBOX.>", "silograph.>", ">", "$JS.>"):
                    north.refused.clear()
                    await north.client.subscribe(subject)
                    await north.settle()
                    assert "permissions violation for subscription" in str(north.refused), subject

        together(work())

    def test_only_the_coordinator_proposes(self, trial: LocalDeployment, log: Path) -> None:
        async def work() -> None:
            async with Party(trial, "hub") as hub:
                await hub.client.publish(connection.STUDIES, b"x")
                await hub.settle()
                assert hub.refused == []

        together(work())

    def test_without_a_certificate_nobody_comes_in(self, trial: LocalDeployment, log: Path) -> None:
        bare = ssl.create_default_context(cafile=trial.tls("north").ca)
        self.refused(trial.config("north").connect_options("north") | {"tls": bare})

    @pytest.mark.parametrize("shown", [True, False], ids=["certificate", "none"])
    def test_nor_over_websocket(self, trial: LocalDeployment, log: Path, shown: bool) -> None:
        bare = ssl.create_default_context(cafile=trial.tls("north").ca)
        context = trial.tls("north").context() if shown else bare
        upgrade = (
            b"GET / HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
        )
        answer = b""
        with (
            socket.create_connection(("127.0.0.1", trial.websocket_port), timeout=10) as line,
            context.wrap_socket(line, server_hostname="localhost") as secure,
            contextlib.suppress(OSError),
        ):
            secure.sendall(upgrade)
            answer = secure.recv(100)
        assert answer.startswith(b"HTTP/1.1 101") == shown

    def test_with_a_strangers_certificate_nobody_comes_in(
        self, trial: LocalDeployment, log: Path
    ) -> None:
        """A certificate of the right authority whose name is not in the roster."""
        certificates.issue(trial.folder / "certs", "east", datetime.now(UTC))
        self.refused(trial.config("east").connect_options("east"))

    def test_in_the_clear_nobody_comes_in(self, trial: LocalDeployment, log: Path) -> None:
        self.refused({"servers": [f"nats://127.0.0.1:{trial.port}"]})

    def test_a_client_does_not_fall_back_to_the_clear(self, trial: LocalDeployment) -> None:
        """A server in the clear that says TLS is not needed learns nothing."""
        heard: list[bytes] = []

        async def work() -> None:
            async def pretend(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                writer.write(b'INFO {"server_id":"x","version":"2.12.0","max_payload":99}\r\n')
                heard.append(await reader.read(1000))
                writer.close()

            server = await asyncio.start_server(pretend, "127.0.0.1", 0)
            port = server.sockets[0].getsockname()[1]
            options = trial.config("north").connect_options("north")
            options |= {"servers": [f"tls://localhost:{port}"]}
            try:
                await self.attempt(options)
            finally:
                server.close()

        together(work())
        assert heard
        assert all(said[:1] == b"\x16" for said in heard), "a TLS handshake and nothing else"

    def refused(self, options: dict[str, Any]) -> None:
        together(self.attempt(options))

    async def attempt(self, options: dict[str, Any]) -> None:
        async def ignore(_: Exception) -> None:
            pass

        options |= {"allow_reconnect": False, "max_reconnect_attempts": 0, "connect_timeout": 2}
        with pytest.raises((NoServersError, nats.errors.Error, OSError, asyncio.TimeoutError)):
            await nats.connect(**options, error_cb=ignore)
