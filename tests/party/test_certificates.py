"""Certificates for trials: what they say, their modes, and that they work as TLS."""

import base64
import contextlib
import ssl
import stat
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from silograph.errors import BrokerError, CertificateError, MissingExtraError, RosterError
from silograph.party import certificates
from silograph.party.connection import BrokerConfig, TlsFiles

NOW = datetime.now(UTC).replace(microsecond=0)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("trial") / "certs"
    certificates.new_authority(place, NOW, 30)
    certificates.issue(place, "broker", NOW, 90, ["localhost", "127.0.0.1", "::1", "b.example.org"])
    certificates.issue(place, "north", NOW, 10)
    return place


def files(folder: Path, name: str) -> TlsFiles:
    return TlsFiles(folder / "ca.pem", folder / f"{name}.pem", folder / f"{name}.key")


def handshake(folder: Path, client: ssl.SSLContext, host: str, *, server: str = "broker") -> str:
    """A handshake in memory with a server that wants a certificate; the version."""
    listening = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    listening.verify_mode = ssl.CERT_REQUIRED
    listening.load_verify_locations(folder / "ca.pem")
    listening.load_cert_chain(folder / f"{server}.pem", folder / f"{server}.key")
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ours = client.wrap_bio(to_client, to_server, server_hostname=host)
    theirs = listening.wrap_bio(to_server, to_client, server_side=True)
    pending = [ours, theirs]
    for _ in range(10):
        for side in list(pending):
            try:
                side.do_handshake()
                pending.remove(side)
            except ssl.SSLWantReadError:
                pass
    assert pending == []
    return str(ours.version())


class TestFiles:
    def test_what_they_say(self, folder: Path) -> None:
        authority = certificates.show_certificate(folder / "ca.pem")
        broker = certificates.show_certificate(folder / "broker.pem")
        north = certificates.show_certificate(folder / "north.pem")
        assert (authority.authority, broker.authority, north.authority) == (True, False, False)
        assert (broker.subject, north.subject) == ("CN=broker", "CN=north")
        assert broker.hosts == ("localhost", "127.0.0.1", "::1", "b.example.org")
        assert north.hosts == ()
        assert authority.expires == broker.expires == NOW + timedelta(days=30), "no later than it"
        assert north.days_left(NOW) == 10
        assert north.days_left(NOW + timedelta(days=10, seconds=1)) == -1

    def test_modes(self, folder: Path) -> None:
        modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}
        assert {mode for name, mode in modes.items() if name.endswith(".key")} == {0o600}
        assert {mode for name, mode in modes.items() if name.endswith(".pem")} == {0o644}
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert sorted(modes) == [
            "broker.key", "broker.pem", "ca.key", "ca.pem", "north.key", "north.pem",
        ]  # fmt: skip

    def test_nothing_is_overwritten(self, folder: Path) -> None:
        before = {path: path.read_bytes() for path in folder.iterdir()}
        with pytest.raises(CertificateError, match="never overwritten"):
            certificates.new_authority(folder, NOW)
        with pytest.raises(CertificateError, match="never overwritten"):
            certificates.issue(folder, "north", NOW)
        assert {path: path.read_bytes() for path in folder.iterdir()} == before

    @pytest.mark.parametrize("host", ["", "a b", "-", "a..b", "x" * 64, "*", "ü.example", "a/b"])
    def test_hosts(self, folder: Path, host: str) -> None:
        with pytest.raises(CertificateError, match="neither a host's name nor an address"):
            certificates.issue(folder, "other", NOW, hosts=[host])

    def test_refusals(self, folder: Path, tmp_path: Path) -> None:
        with pytest.raises(CertificateError, match="authority's own name"):
            certificates.issue(folder, "ca", NOW)
        with pytest.raises(RosterError, match="not a party's name"):
            certificates.issue(folder, "../x", NOW)
        for days in (0, 826):
            with pytest.raises(CertificateError, match="1 to 825 days"):
                certificates.issue(folder, "other", NOW, days)
        with pytest.raises(CertificateError, match="No such file"):
            certificates.issue(tmp_path, "north", NOW)
        (tmp_path / "x.pem").write_text("-----BEGIN CERTIFICATE-----\nx\n")
        with pytest.raises(CertificateError, match="not a certificate in PEM"):
            certificates.show_certificate(tmp_path / "x.pem")

    def test_the_authoritys_key(self, folder: Path, tmp_path: Path) -> None:
        (tmp_path / "ca.pem").write_bytes((folder / "ca.pem").read_bytes())
        key = tmp_path / "ca.key"
        key.touch(0o600)
        for content, said in (
            ((folder / "north.key").read_bytes(), "not the key of ca.pem"),
            (b"x", "not a key in PEM"),
        ):
            key.write_bytes(content)
            with pytest.raises(CertificateError, match=said):
                certificates.issue(tmp_path, "north", NOW)
        key.chmod(0o644)
        with pytest.raises(CertificateError, match="others can read"):
            certificates.issue(tmp_path, "north", NOW)


class TestForeign:
    """Any byte of a request or a certificate may be another: one error, and never the library's."""

    def changed(self, pem: bytes) -> Iterator[bytes]:
        first, *middle, last = pem.splitlines()
        content = base64.b64decode(b"".join(middle))
        for place in range(0, len(content), 2):
            for bit in (1, 0x80):
                wrong = bytearray(content)
                wrong[place] ^= bit
                yield b"\n".join([first, base64.b64encode(wrong), last])

    def test_a_request(self, folder: Path) -> None:
        _, request = certificates.new_request("north")
        for wrong in self.changed(request):
            with pytest.raises(CertificateError):
                certificates.sign_request(folder, "north", wrong, NOW)

    def test_a_certificate(self, folder: Path, tmp_path: Path) -> None:
        path = tmp_path / "wrong.pem"
        key, authority = folder / "north.key", folder / "ca.pem"
        for wrong in self.changed((folder / "north.pem").read_bytes()):
            with pytest.raises(CertificateError):
                certificates.check_issued(wrong, "north", key, authority)
            path.write_bytes(wrong)
            with contextlib.suppress(CertificateError):
                certificates.show_certificate(path)


class TestTls:
    @pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "::1", "b.example.org"])
    def test_mutual(self, folder: Path, host: str) -> None:
        assert handshake(folder, files(folder, "north").context(), host) == "TLSv1.3"

    def test_the_hosts_name_is_checked(self, folder: Path) -> None:
        with pytest.raises(ssl.SSLCertVerificationError, match=r"evil\.example"):
            handshake(folder, files(folder, "north").context(), "evil.example")

    def test_a_partys_certificate_is_no_servers(self, folder: Path) -> None:
        """Neither by its name, nor by what it may be used for."""
        context = files(folder, "north").context()
        with pytest.raises(ssl.SSLCertVerificationError):
            handshake(folder, context, "localhost", server="north")
        context.check_hostname = False
        with pytest.raises(ssl.SSLCertVerificationError, match="purpose"):
            handshake(folder, context, "localhost", server="north")

    def test_a_stranger(self, folder: Path, tmp_path: Path) -> None:
        certificates.new_authority(tmp_path, NOW)
        certificates.issue(tmp_path, "north", NOW)
        own = files(tmp_path, "north")
        with pytest.raises(ssl.SSLCertVerificationError):
            handshake(folder, own.context(), "localhost")
        fooled = TlsFiles(folder / "ca.pem", own.cert, own.key)
        with pytest.raises(ssl.SSLError):
            handshake(folder, fooled.context(), "localhost")

    def test_files_that_are_not(self, folder: Path, tmp_path: Path) -> None:
        good = files(folder, "north")
        with pytest.raises(BrokerError, match="not certificates to trust"):
            TlsFiles(tmp_path / "absent", good.cert, good.key).context()
        with pytest.raises(BrokerError, match="not a certificate and its key"):
            TlsFiles(good.ca, good.cert, folder / "broker.key").context()
        with pytest.raises(BrokerError, match="No such file"):
            TlsFiles(good.ca, good.cert, tmp_path / "absent").context()
        loose = tmp_path / "north.key"
        loose.write_bytes(good.key.read_bytes())
        loose.chmod(0o640)
        with pytest.raises(BrokerError, match="others can read"):
            TlsFiles(good.ca, good.cert, loose).context()

    def test_an_encrypted_key(self, folder: Path, tmp_path: Path) -> None:
        from cryptography.hazmat.primitives import serialization as form

        key = form.load_pem_private_key((folder / "north.key").read_bytes(), None)
        path = tmp_path / "north.key"
        path.touch(0o600)
        encrypted = form.BestAvailableEncryption(b"x")
        path.write_bytes(key.private_bytes(form.Encoding.PEM, form.PrivateFormat.PKCS8, encrypted))
        with pytest.raises(BrokerError, match="the TLS key is encrypted"):
            TlsFiles(folder / "ca.pem", folder / "north.pem", path).context()


class TestBrokerConfig:
    def test_options(self, folder: Path) -> None:
        tls = files(folder, "north")
        options = BrokerConfig(["tls://a:1", "tls://b:2"], tls).connect_options("north")  # type: ignore[arg-type]
        assert options["servers"] == ["tls://a:1", "tls://b:2"]
        assert options["tls_handshake_first"] is True
        assert options["inbox_prefix"] == "_INBOX_north"
        assert options["max_reconnect_attempts"] == -1
        context = options["tls"]
        assert context.minimum_version == ssl.TLSVersion.TLSv1_3
        assert context.check_hostname
        assert context.verify_mode == ssl.CERT_REQUIRED
        over = BrokerConfig(("wss://a:1",), tls, websocket=True).connect_options()
        assert over["tls_handshake_first"] is False
        assert "name" not in over

    @pytest.mark.parametrize(
        ("urls", "tls", "websocket", "said"),
        [
            ((), True, False, "needs an address"),
            (("nats://a:1",), True, False, "tls://host:port"),
            (("ws://a:1",), True, True, "wss://host:port"),
            (("tls://a:1",), True, True, "wss://host:port"),
            (("tls://a:1", "wss://a:1"), True, False, "tls://host:port"),
            (("a:4222",), True, False, "tls://host:port"),
            (("tls://",), True, False, "tls://host:port"),
            (("tls://a:x",), True, False, "not an address"),
            (("tls://[::1",), True, False, "not an address"),
            (("nats://example.org:1",), False, False, "with TLS only"),
            (("tls://localhost:1",), False, False, "nats://host:port"),
            (("tls://me:hunter2@a:1",), True, False, "no user or password"),
            (("hunter2@a:1",), True, False, "tls://host:port"),
        ],
    )
    def test_refusals(
        self, folder: Path, urls: tuple[str, ...], tls: bool, websocket: bool, said: str
    ) -> None:
        with pytest.raises(BrokerError, match=said) as caught:
            BrokerConfig(urls, files(folder, "north") if tls else None, websocket)
        assert "hunter2" not in str(caught.value)

    def test_websocket_needs_its_extra(self, monkeypatch: pytest.MonkeyPatch) -> None:
        config = BrokerConfig(("ws://localhost:1",), None, websocket=True)
        config.connect_options()
        monkeypatch.setitem(sys.modules, "aiohttp", None)
        with pytest.raises(MissingExtraError, match=r"silograph\[websocket\]"):
            config.connect_options()

    def test_without_tls_on_this_machine(self) -> None:
        assert "tls" not in BrokerConfig(("nats://localhost:4222",)).connect_options()
