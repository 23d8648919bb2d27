"""Why a broker cannot be reached: each cause, with a real server, has its own words."""

import asyncio
import gc
import os
import shutil
import signal
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from silograph.errors import TransportError
from silograph.nats.link import Link
from silograph.party import certificates
from silograph.party.connection import BrokerConfig, TlsFiles
from tests.nats.brokers import LocalDeployment, make_trial, running
from tests.support.ports import free_port

# The client leaves the sockets of failed attempts to the garbage collector.
pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning")

NOW = datetime.now(UTC)


@pytest.fixture(scope="module")
def trial(tmp_path_factory: pytest.TempPathFactory) -> LocalDeployment:
    return make_trial(tmp_path_factory.mktemp("trial"), "north", "south")


@pytest.fixture(scope="module")
def server(trial: LocalDeployment) -> Iterator[LocalDeployment]:
    with running(trial):
        yield trial


def other_authority(trial: LocalDeployment) -> Path:
    folder = trial.folder / "other"
    if not folder.exists():
        certificates.new_authority(folder, NOW)
        certificates.issue(folder, "north", NOW)
    return folder


def issued(trial: LocalDeployment, name: str, start: timedelta, days: int = 10) -> TlsFiles:
    """A certificate of the trial's authority that begins at another time."""
    folder = trial.folder / f"{name}-{start.days}"
    folder.mkdir(exist_ok=True)
    for part in ("ca.pem", "ca.key"):
        shutil.copy(trial.folder / "certs" / part, folder / part)
    certificates.issue(folder, name, NOW + start, days, ["localhost"] if name == "broker" else ())
    return TlsFiles(folder / "ca.pem", folder / f"{name}.pem", folder / f"{name}.key")


def attempt(broker: BrokerConfig, party: str = "north", seconds: float = 5.0) -> TransportError:
    async def connect() -> None:
        link = await Link.connect(broker, party, seconds)
        await link.close()

    with pytest.raises(TransportError) as caught:
        asyncio.run(connect())
    gc.collect()
    assert caught.value.args[0].startswith(", ".join(broker.urls))
    return caught.value


def at(trial: LocalDeployment, tls: TlsFiles, websocket: bool = False) -> BrokerConfig:
    return replace(trial.config("north", websocket=websocket), tls=tls)


@pytest.mark.parametrize("websocket", [False, True], ids=["tls", "websocket"])
class TestOurCertificate:
    """What the broker says about it in an alert, or when it looks for its user."""

    def test_expired(self, server: LocalDeployment, websocket: bool) -> None:
        tls = issued(server, "north", timedelta(days=-30 - websocket))
        error = attempt(at(server, tls, websocket))
        ended = (NOW + timedelta(days=-20 - websocket)).strftime("%Y-%m-%d")
        assert f"{tls.cert} expired on {ended}" in str(error)
        assert "have it renewed" in str(error)

    def test_not_valid_yet(self, server: LocalDeployment, websocket: bool) -> None:
        tls = issued(server, "north", timedelta(days=3 + websocket))
        error = attempt(at(server, tls, websocket))
        assert "is valid from" in str(error)
        assert "the clock" in str(error)

    def test_of_another_authority(self, server: LocalDeployment, websocket: bool) -> None:
        other = other_authority(server)
        tls = replace(server.tls("north"), cert=other / "north.pem", key=other / "north.key")
        error = attempt(at(server, tls, websocket))
        assert f"does not know the authority that signed {tls.cert}" in str(error)

    def test_of_nobody_in_the_roster(self, server: LocalDeployment, websocket: bool) -> None:
        if not (server.folder / "certs" / "east.pem").exists():
            certificates.issue(server.folder / "certs", "east", NOW)
        error = attempt(at(server, server.tls("east"), websocket))
        assert "the broker has no user CN=east" in str(error)
        assert "broker config" in str(error)

    def test_of_another_party(self, server: LocalDeployment, websocket: bool) -> None:
        """The broker takes the connection, and would never let the party hear an answer."""
        error = attempt(at(server, server.tls("south"), websocket))
        assert error.lasting
        assert "CN=south" in str(error)
        assert "must be the certificate of north" in str(error)


class TestTheirCertificate:
    @pytest.mark.parametrize("websocket", [False, True], ids=["tls", "websocket"])
    def test_of_another_authority(self, server: LocalDeployment, websocket: bool) -> None:
        ca = other_authority(server) / "ca.pem"
        error = attempt(at(server, replace(server.tls("north"), ca=ca), websocket))
        assert f"not signed by the authority in {ca}" in str(error)

    @pytest.mark.parametrize(
        ("start", "said"),
        [(-30, "the broker's certificate has expired"), (3, "not valid yet: the clock of this")],
    )
    def test_at_a_wrong_time(self, tmp_path: Path, start: int, said: str) -> None:
        made = make_trial(tmp_path, "north")
        tls = issued(made, "broker", timedelta(days=start))
        for new, old in ((tls.cert, "broker.pem"), (tls.key, "broker.key")):
            shutil.copy(new, made.folder / "certs" / old)
        with running(made):
            assert said in str(attempt(made.config("north")))

    def test_for_another_host(self, server: LocalDeployment) -> None:
        url = f"tls://{'127.1'}:{server.port}"  # another spelling of an address in it
        error = attempt(replace(server.config("north"), urls=(url,)))
        assert "the broker's certificate is not for 127.1" in str(error)


class TestTheWay:
    def test_a_name_that_nobody_knows(self, trial: LocalDeployment) -> None:
        url = f"tls://broker.invalid:{trial.port}"
        error = attempt(replace(trial.config("north"), urls=(url,)))
        assert "no address is known for broker.invalid" in str(error)

    def test_a_closed_port(self, trial: LocalDeployment) -> None:
        error = attempt(replace(trial.config("north"), urls=(f"tls://localhost:{free_port()}",)))
        assert "nothing listens on this port" in str(error)

    def test_not_a_broker(self, trial: LocalDeployment) -> None:
        async def pretend() -> TransportError:
            async def greet(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                writer.write(b"220 mail.example ESMTP\r\n" * 20)
                writer.close()

            other = await asyncio.start_server(greet, "127.0.0.1", 0)
            url = f"tls://localhost:{other.sockets[0].getsockname()[1]}"
            try:
                broker = replace(trial.config("north"), urls=(url,))
                with pytest.raises(TransportError) as caught:
                    await Link.connect(broker, "north", 5.0)
                return caught.value
            finally:
                other.close()

        assert "is not a broker that begins with TLS" in str(asyncio.run(pretend()))


@pytest.mark.parametrize("what", ["the user", "its inbox"])
def test_what_the_broker_takes_away_later(tmp_path: Path, what: str) -> None:
    """Its operator changes users.conf and reloads it: the party knows the cause."""
    trial = make_trial(tmp_path, "north", "south")
    users = trial.folder / "broker" / "users.conf"

    async def work(pid: int) -> None:
        link = await Link.connect(trial.config("north"), "north", 5.0)
        assert await link.stream_names() == []  # an answer came to its inbox
        assert (link.connected, link.trouble) == (True, "")
        for old in ('"CN=north"',) if what == "the user" else ("_INBOX_north",):
            users.write_text(users.read_text().replace(old, old.replace("north", "gone")))
        os.kill(pid, signal.SIGHUP)
        if what == "the user":  # it may come back, and the client goes on trying
            async with asyncio.timeout(10):
                while "no user CN=north" not in link.trouble:
                    await asyncio.sleep(0.05)
        else:
            with pytest.raises(TransportError, match="not use the subjects of north") as caught:
                await asyncio.wait_for(link.ended(), 10)
            assert caught.value.lasting
        await link.close()

    with running(trial) as log:
        asyncio.run(work(int(log.read_text().partition("]")[0].strip("["))))
