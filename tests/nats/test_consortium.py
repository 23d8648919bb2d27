"""Enrolments from invitation to roster: what is made, and what is refused without a trace."""

import contextlib
import os
import re
import stat
from base64 import b64decode
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from silograph import Window, whole_files
from silograph.errors import DeploymentError, EnrolmentError, SilographError
from silograph.nats import consortium
from silograph.party import certificates
from silograph.party.config import CoordinatorConfig, SiloConfig, read_served
from silograph.party.enrolment import Answer, RosterSignature, Suggested, Welcome
from silograph.party.joining import open_welcome
from silograph.party.keys import load_identity, new_identity
from silograph.party.opened import Party
from silograph.party.roster import read_roster
from tests.support.enrolment import NOW, Enrolment, tree

SILOS = ("north", "south", "west")


@pytest.fixture
def made(tmp_path: Path) -> Enrolment:
    return Enrolment(tmp_path)


def refused(folder: Path, call: Callable[[], object], said: str) -> None:
    """The call raises one error that says this, and nothing below the folder has changed."""
    before = tree(folder)
    with pytest.raises(SilographError, match=said):
        call()
    assert tree(folder) == before
    assert not list(folder.rglob(".silograph-*"))


def inside(content: bytes) -> Iterator[bytes]:
    """A content, and all that stands in it as hexadecimal digits or in base64, however deep."""
    yield content
    joined = content.replace(b"\n", b"")
    for word in re.findall(rb"[0-9a-f]{64,}", joined):
        yield bytes.fromhex(word[: len(word) // 2 * 2].decode())
    for found in (content, joined):
        for word in re.findall(rb"[A-Za-z0-9+/]{40,}={0,2}", found):
            with contextlib.suppress(ValueError):
                yield from inside(b64decode(word, validate=True))


class TestTheWholeWay:
    def test_all_parties_can_start(self, made: Enrolment) -> None:
        made.whole(SILOS)
        for config in (
            CoordinatorConfig.read(made.hub / "coordinator.toml"),
            *(read_served(made.folder / name / "silo.toml") for name in SILOS),
        ):
            party = Party(config)  # the roster is signed by all, and the identity is in it
            party.close()
            assert config.broker.connect_options(config.name)["tls"]
        users = (made.hub / "broker" / "users.conf").read_text()
        assert [name for name in SILOS if f'"CN={name}"' in users] == list(SILOS)

    def test_secrets_stay_where_they_were_made(self, made: Enrolment) -> None:
        made.whole(SILOS)
        for name in SILOS:
            folder = made.folder / name
            for file in (f"{name}.key", f"{name}.tls.key", "silo.toml"):
                assert stat.S_IMODE((folder / file).stat().st_mode) == 0o600
            assert stat.S_IMODE(folder.stat().st_mode) == 0o700
            text = (folder / f"{name}.key").read_text()
            identity = bytes.fromhex(text.partition('secret = "')[2][:64])
            pem = (folder / f"{name}.tls.key").read_bytes()
            tls = b64decode(b"".join(pem.splitlines()[1:-1]))[36:68]  # the number in PKCS #8
            assert len(identity) == len(tls) == 32
            others = [p for p in made.folder.rglob("*") if p.is_file() and p.parent != folder]
            sent = [folder / f"{name}.answer", folder / f"{name}.signature"]
            for path in (*others, *sent):
                for content in inside(path.read_bytes()):
                    assert identity not in content, path
                    assert tls not in content, path
        keys = {path.name for path in made.hub.rglob("*.key")}
        assert keys == {"hub.key", "ca.key", "broker.key"}

    def test_certificates_are_for_clients_only(self, made: Enrolment) -> None:
        made.whole(SILOS)
        found = certificates.show_certificate(made.folder / "north" / "north.pem")
        assert (found.subject, found.hosts, found.authority) == ("CN=north", (), False)
        assert 360 < found.days_left(NOW) <= 365

    def test_a_helper(self, made: Enrolment) -> None:
        invitation = made.invite("helper")
        made.join("notary", invitation, edges=None, nodes=None)
        for name in SILOS:
            made.join(name)
        admitted = made.admit(*SILOS, "notary")
        assert [member.name for member in admitted.roster.roster.helpers] == ["notary"]
        assert read_served(made.folder / "notary" / "helper.toml").universe is None


class TestJoining:
    def test_a_greedy_invitation_changes_nothing(self, made: Enrolment) -> None:
        greedy = made.invite(
            terms=Suggested(1000.0, 1e6, ("feat elgamal/blinded", "feat masked"), 2)
        )
        config = made.join("north", greedy).config
        assert isinstance(config, SiloConfig)
        policy = config.policy
        assert (policy.epsilon, config.ledger.epsilon, policy.least_silos) == (1.0, 10.0, 3)
        assert (policy.accept, policy.least_collusion, policy.coordinators) == ("ask", 1, ("hub",))
        assert policy.methods == ("feat masked",)
        own = made.join("south", greedy, epsilon=5.0, budget=20.0, accept="auto").config
        assert isinstance(own, SiloConfig)
        assert (own.policy.epsilon, own.ledger.epsilon, own.policy.accept) == (5.0, 20.0, "auto")

    def test_a_time_window_is_written_down(self, made: Enrolment) -> None:
        first, *rows = made.edges.read_text().splitlines()
        days = [f"{row},{200_000_000 + number}" for number, row in enumerate(rows)]
        made.edges.write_text("\n".join([f"{first},when", *days]))
        window = Window("when", since="1976-05-03T19:33:20Z", until=200_000_000 + len(rows) - 1)
        joined = made.join("north", window=window)
        assert joined.data is not None
        assert joined.data.other_times == 1
        config = SiloConfig.read(joined.config.file)
        assert config.data.window == replace(window, until=str(window.until))

    def test_a_sealed_identity(self, made: Enrolment) -> None:
        secret = made.folder / "secret"
        secret.touch(0o600)
        secret.write_text("correct horse\n")
        from silograph.party.joining import join

        choices = replace(made.choices("north"), passphrase_file=secret)
        done = join(made.invitation, choices, NOW.date(), made.folder / "north", "correct horse")
        load_identity(done.config.identity, done.config.passphrase())

    @pytest.mark.parametrize(
        ("changes", "said"),
        [
            ({"edges": None}, "a silo has edges"),
            ({"nodes": None}, "has a public node list"),
            ({"name": "hub"}, "'hub' is taken"),
            ({"name": "broker"}, "'broker' is taken"),
            ({"name": "payments"}, "'payments' is taken"),
            ({"name": "North"}, "not a party's name"),
            ({"organisation": " "}, "not an organisation"),
            ({"epsilon": -1.0}, "epsilon must be positive"),
            ({"columns": ("x", "y")}, "x"),
        ],
    )
    def test_wrong_choices(self, made: Enrolment, changes: dict[str, object], said: str) -> None:
        name = changes.pop("name", "north")
        refused(made.folder, lambda: made.join(str(name), **changes), said)

    def test_wrong_files(self, made: Enrolment) -> None:
        other = made.folder / "others.txt"
        other.write_text("a\nb\nc\n")
        foreign = made.folder / "foreign.csv"
        foreign.write_text("from,to\nx,y\n")
        refused(made.folder, lambda: made.join("north", nodes=other), "not the node list")
        refused(made.folder, lambda: made.join("north", edges=foreign), "no edge has both ends")
        text = made.invitation.read_text()
        made.invitation.write_text(text.replace("127.0.0.1:4222", "203.0.113.9:4222"))
        refused(made.folder, lambda: made.join("north"), "changed after it was signed")
        made.invitation.write_text("not an invitation")
        refused(made.folder, lambda: made.join("north"), "not TOML")

    def test_a_stale_invitation(self, made: Enrolment) -> None:
        from silograph.party.joining import join

        late = NOW.date() + timedelta(days=31)
        choices, place = made.choices("north"), made.folder / "north"
        refused(made.folder, lambda: join(made.invitation, choices, late, place), "expired")

    def test_a_party_joins_once(self, made: Enrolment) -> None:
        made.join("north")
        refused(made.folder, lambda: made.join("north"), "never overwritten")

    def test_a_full_disk(self, made: Enrolment, monkeypatch: pytest.MonkeyPatch) -> None:
        """At each of the folder's files."""
        count, real = [0], os.fsync

        def full(descriptor: int) -> None:
            count[0] -= 1
            if count[0] == 0:
                raise OSError(28, "No space left on device")
            real(descriptor)

        monkeypatch.setattr(os, "fsync", full)
        for place in range(1, 12, 3):
            count[0] = place
            refused(made.folder, lambda: made.join("north"), "No space left")


class TestAdmitting:
    def test_all_or_none(self, made: Enrolment) -> None:
        for name in SILOS:
            made.join(name)
        answer = made.answer("west")
        answer.write_bytes(answer.read_bytes().replace(b'"west"', b'"east"'))
        refused(made.folder, lambda: made.admit(*SILOS), "changed after it was signed")

    def test_a_repeated_answer(self, made: Enrolment) -> None:
        made.join("north")
        refused(made.folder, lambda: made.admit("north", "north"), "a repeated answer")
        made.admit("north")
        refused(made.folder, lambda: made.admit("north"), "a repeated answer")

    def test_two_parties_of_one_name(self, made: Enrolment) -> None:
        made.join("north")
        made.admit("north")
        (made.folder / "north").rename(made.folder / "old")
        made.join("north")
        refused(made.folder, lambda: made.admit("north"), "another party of the roster is named")

    def test_another_consortium(self, made: Enrolment, tmp_path: Path) -> None:
        other = Enrolment(tmp_path / "other", "claims")
        same = Enrolment(tmp_path / "same")  # the same name, another coordinator
        for foreign in (other, same):
            foreign.join("north")
            answer = foreign.answer("north")
            refused(
                made.folder,
                lambda answer=answer: consortium.admit(made.hub, [answer], NOW),  # type: ignore[misc]
                "another consortium or coordinator",
            )

    def test_a_stale_answer(self, made: Enrolment) -> None:
        made.join("north")
        late = NOW + timedelta(days=31)
        call = lambda: consortium.admit(made.hub, [made.answer("north")], late)  # noqa: E731
        refused(made.folder, call, "expired")

    @pytest.mark.parametrize(
        ("request_of", "said"),
        [
            (lambda: certificates.new_request("south")[1], "not for CN=north"),
            (lambda: b"nonsense", "not a request"),
        ],
    )
    def test_a_wrong_request(
        self, made: Enrolment, request_of: Callable[[], bytes], said: str
    ) -> None:
        made.join("north")
        answer = Answer.read(made.answer("north"))
        identity = load_identity(made.folder / "north" / "north.key")
        wrong = replace(answer, request=request_of()).encode(identity)
        made.answer("north").write_bytes(wrong)
        refused(made.folder, lambda: made.admit("north"), said)

    def test_an_interrupted_call_is_made_again(
        self, made: Enrolment, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for name in SILOS:
            made.join(name)
        real, left = whole_files.replace, [0]

        def failing(*args: object, **options: object) -> None:
            left[0] -= 1
            if left[0] < 0:
                raise DeploymentError("the machine lost its power")
            real(*args, **options)  # type: ignore[arg-type]

        monkeypatch.setattr(whole_files, "replace", failing)
        for writes in range(5):
            left[0] = writes
            with pytest.raises(DeploymentError, match="power"):
                made.admit(*SILOS)
            assert not read_roster(made.hub / "roster.next.toml").parties
        left[0] = 1000
        assert len(made.admit(*SILOS).welcomes) == 3
        for name in SILOS:
            made.arrive(name)

    def test_a_new_certificate(self, made: Enrolment) -> None:
        made.whole(SILOS)
        before = (made.folder / "north" / "north.pem").read_bytes()
        roster = (made.hub / "roster.toml").read_bytes()
        call = lambda: consortium.admit(made.hub, [made.answer("north")], NOW)  # noqa: E731
        refused(made.folder, call, "--renew")
        later = NOW + timedelta(days=300)  # the invitation has long expired
        consortium.admit(made.hub, [made.answer("north")], later, renew=True)
        made.arrive("north")
        assert (made.folder / "north" / "north.pem").read_bytes() != before
        assert (made.hub / "roster.toml").read_bytes() == roster
        made.join("east")
        call = lambda: consortium.admit(made.hub, [made.answer("east")], NOW, renew=True)  # noqa: E731
        refused(made.folder, call, "not in the roster with this key")


class TestWelcomes:
    @pytest.fixture
    def admitted(self, made: Enrolment) -> Enrolment:
        for name in SILOS:
            made.join(name)
        made.admit(*SILOS)
        return made

    def forged(self, made: Enrolment, **changes: object) -> None:
        """A welcome to north that the coordinator itself has made wrong."""
        path = made.welcome("north")
        hub = load_identity(made.hub / "hub.key")
        path.write_bytes(replace(Welcome.read(path), **changes).encode(hub))  # type: ignore[arg-type]

    def test_for_another_party(self, admitted: Enrolment) -> None:
        call = lambda: admitted.arrive("north", "south")  # noqa: E731
        refused(admitted.folder, call, "it is for south, not for north")

    def test_changed_on_its_way(self, admitted: Enrolment) -> None:
        path = admitted.welcome("north")
        path.write_bytes(path.read_bytes().replace(b'"north"', b'"south"'))
        refused(admitted.folder, lambda: admitted.arrive("north"), "changed after it was signed")

    def test_from_another_coordinator(self, admitted: Enrolment) -> None:
        path = admitted.welcome("north")
        other = new_identity(admitted.folder / "other.key")
        found = replace(Welcome.read(path), key=other.public)
        path.write_bytes(found.encode(other))
        refused(admitted.folder, lambda: admitted.arrive("north"), "not from the coordinator")

    def test_our_key_is_replaced(self, admitted: Enrolment) -> None:
        other = new_identity(admitted.folder / "other.key")
        roster = Welcome.read(admitted.welcome("north")).roster
        wrong = roster.rotate("north", other.public, NOW.date())
        self.forged(admitted, roster=wrong)
        refused(admitted.folder, lambda: admitted.arrive("north"), "revoked|not in the roster")

    def test_our_role_is_replaced(self, admitted: Enrolment) -> None:
        roster = Welcome.read(admitted.welcome("north")).roster.change("north", "helper")
        self.forged(admitted, roster=roster)
        refused(admitted.folder, lambda: admitted.arrive("north"), "another name or role")

    def test_anothers_certificate(self, admitted: Enrolment) -> None:
        south = Welcome.read(admitted.welcome("south")).certificate
        self.forged(admitted, certificate=south)
        refused(admitted.folder, lambda: admitted.arrive("north"), "not for CN=north")
        key, request = certificates.new_request("north")
        other = certificates.sign_request(admitted.hub / "certs", "north", request, NOW)
        self.forged(admitted, certificate=other)
        refused(admitted.folder, lambda: admitted.arrive("north"), "not for the key")
        assert key

    def test_another_authority(self, admitted: Enrolment, tmp_path: Path) -> None:
        other = Enrolment(tmp_path / "other")
        own = admitted.folder / "north" / "north.tls.key"
        answer = Answer.read(admitted.answer("north"))
        made = certificates.sign_request(other.hub / "certs", "north", answer.request, NOW)
        assert own.exists()
        self.forged(admitted, certificate=made)
        refused(admitted.folder, lambda: admitted.arrive("north"), "not issued by")

    def test_repeated(self, admitted: Enrolment) -> None:
        admitted.arrive("north")
        refused(admitted.folder, lambda: admitted.arrive("north"), "installed already")

    def test_before_ones_own(self, admitted: Enrolment) -> None:
        """The welcome for all has no certificate."""
        for name in ("south", "west"):
            admitted.arrive(name)
        hub = load_identity(admitted.hub / "hub.key")
        found = Welcome.read(admitted.welcome("north"))
        path = admitted.welcome("payments")
        path.write_bytes(Welcome("payments", hub.public, found.roster).encode(hub))
        call = lambda: admitted.arrive("north", "payments")  # noqa: E731
        refused(admitted.folder, call, "no certificate yet: install north.welcome first")

    def test_nobody_has_joined_here(self, admitted: Enrolment, tmp_path: Path) -> None:
        call = lambda: open_welcome(admitted.welcome("north"), tmp_path / "empty")  # noqa: E731
        refused(admitted.folder, call, "not the folder of a party")


class TestSignatures:
    @pytest.fixture
    def signed(self, made: Enrolment) -> Enrolment:
        for name in SILOS:
            made.join(name)
        made.admit(*SILOS)
        for name in SILOS:
            made.arrive(name)
        return made

    def test_one_after_the_other(self, signed: Enrolment) -> None:
        assert signed.collect("north").roster.missing == ("south", "west")
        assert not (signed.hub / "roster.toml").exists()
        done = signed.collect("south", "west")
        assert done.roster.missing == ()
        assert done.welcomes == (signed.welcome("payments"),)
        assert read_roster(signed.hub / "roster.toml") == done.roster
        assert not (signed.hub / "roster.next.toml").exists()

    def test_repeated(self, signed: Enrolment) -> None:
        signed.collect("north")
        refused(signed.folder, lambda: signed.collect("south", "north"), "is here already")

    def test_forged(self, signed: Enrolment) -> None:
        south = load_identity(signed.folder / "south" / "south.key")
        path = signed.signature("north")
        found = RosterSignature.read(path)
        path.write_bytes(replace(found, signature=bytes(64)).encode(south))
        refused(signed.folder, lambda: signed.collect("north"), "signature of north is not on this")

    def test_of_an_older_draft(self, signed: Enrolment) -> None:
        signed.join("east")
        signed.admit("east")
        refused(signed.folder, lambda: signed.collect("north"), "another roster than this one")
        for name in (*SILOS, "east"):
            signed.arrive(name, "payments" if name in SILOS else None)
        assert signed.collect(*SILOS, "east").roster.missing == ()

    def test_of_another_consortium(self, signed: Enrolment, tmp_path: Path) -> None:
        other = Enrolment(tmp_path / "other", "claims")
        call = lambda: consortium.collect(other.hub, [signed.signature("north")])  # noqa: E731
        refused(tmp_path, call, "another consortium")


class TestLater:
    def test_a_fourth_silo(self, made: Enrolment) -> None:
        made.whole(SILOS)
        made.join("east")
        made.admit("east")
        old = read_roster(made.folder / "north" / "roster.toml")
        for name in SILOS:
            made.arrive(name, "payments")
            # Until all have signed, services start with the roster that is in force.
            assert read_roster(made.folder / name / "roster.toml") == old
        made.arrive("east")
        assert read_roster(made.hub / "roster.toml") == old
        made.collect(*SILOS, "east")
        for name in (*SILOS, "east"):
            made.arrive(name, "payments")
            now = read_roster(made.folder / name / "roster.toml")
            assert (now.serial, now.previous, now.missing) == (2, old.digest, ())
        assert read_roster(made.folder / "north" / "roster.1.toml") == old

    def test_nobody_disappears(self, made: Enrolment) -> None:
        """A roster that leaves a party out without revoking its key is not signed."""
        made.whole(SILOS)
        hub = load_identity(made.hub / "hub.key")
        old = read_roster(made.hub / "roster.toml")
        gone = old.revoke("south", NOW.date(), "left")
        without = replace(gone, revoked=())
        path = made.welcome("payments")
        path.write_bytes(Welcome("payments", hub.public, without).encode(hub))
        refused(made.folder, lambda: made.arrive("north", "payments"), "is not revoked")
        path.write_bytes(Welcome("payments", hub.public, gone).encode(hub))
        made.arrive("north", "payments")

    def test_an_older_roster(self, made: Enrolment) -> None:
        made.whole(SILOS)
        first = made.welcome("payments").read_bytes()
        made.join("east")
        made.admit("east")
        made.arrive("north", "payments")
        made.welcome("payments").write_bytes(first)
        refused(made.folder, lambda: made.arrive("north", "payments"), "older than the one here")


class TestFounding:
    @pytest.mark.parametrize(
        ("changes", "said"),
        [
            ({"brokers": ()}, "needs a broker"),
            ({"brokers": ("nowhere",)}, "is not an address"),
            ({"brokers": ("a:b@host:4222",)}, "is not an address"),
            ({"name": "ca"}, "'ca' is taken"),
            ({"consortium": "Not A Name"}, "not a party's name"),
            ({"listen": "x"}, "is not an address"),
            ({"nodes": Path("absent.txt")}, "absent.txt"),
        ],
    )
    def test_wrong_choices(self, tmp_path: Path, changes: dict[str, object], said: str) -> None:
        right = consortium.Founding("payments", ("broker.example.org:4222",))
        wrong = replace(right, **changes)  # type: ignore[arg-type]
        refused(tmp_path, lambda: consortium.found(wrong, NOW, tmp_path / "hub"), said)
        assert os.listdir(tmp_path) == []

    def test_twice(self, made: Enrolment) -> None:
        again = consortium.Founding("payments", ("127.0.0.1:4222",))
        refused(made.folder, lambda: consortium.found(again, NOW, made.hub), "never overwritten")

    def test_a_folder_that_is_none(self, tmp_path: Path) -> None:
        with pytest.raises(EnrolmentError, match="not a coordinator's folder"):
            consortium.admit(tmp_path, [], NOW)
