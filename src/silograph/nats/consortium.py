"""The coordinator's side of an enrolment: a folder from which parties are invited and admitted.

::

    coordinator.toml     the coordinator's configuration
    hub.key              its identity, mode 0600
    certs/               the authority (ca.pem, ca.key), the broker's and its own certificate
    broker/              nats.conf and users.conf, to be given to a NATS server
    roster.toml          who takes part; roster.next.toml while it is being signed
    payments.invitation, north.welcome, payments.welcome      files to send

Guarantee: no private key of another party is ever here; only requests for certificates come in.
:func:`admit` and :func:`collect` check every file before they write anything, and the roster is
written last: a call that was interrupted can be made again.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from urllib.parse import urlsplit

from silograph import whole_files
from silograph.errors import ArgumentError, BrokerError, EnrolmentError, SilographError
from silograph.graph.universe import NodeUniverse
from silograph.messages.identity import Identity, Role
from silograph.nats.broker import ServerSettings, users_text, write_broker_files
from silograph.party import certificates
from silograph.party.config import CoordinatorConfig
from silograph.party.connection import TlsFiles
from silograph.party.enrolment import (
    Answer,
    Invitation,
    RosterSignature,
    Suggested,
    Welcome,
    keep_roster,
    pending_roster,
)
from silograph.party.joining import check_free, check_untaken, coordinator_text, folder_of
from silograph.party.keys import load_identity, new_identity
from silograph.party.roster import RosterFile, check_name, new_roster

__all__ = ["Admitted", "Founding", "admit", "check", "collect", "found", "invite"]

#: How many days the authority's certificate and those of parties are valid.
AUTHORITY_DAYS, PARTY_DAYS = 825, 365
CONFIG = "coordinator.toml"
_LOCAL = ("localhost", "127.0.0.1", "::1")


# --- A new consortium, and invitations to it ------------------------------------------------------


@dataclass(frozen=True)
class Founding:
    """What a coordinator decides when it founds a consortium."""

    consortium: str
    #: Where parties reach the broker: ``host:port``.
    brokers: tuple[str, ...]
    name: str = "hub"
    organisation: str | None = None
    #: The public node list; None if the universe is open.
    nodes: Path | None = None
    #: The address that the server listens on; by default the port of the first broker.
    listen: str | None = None
    passphrase_file: Path | None = None


def found(
    founding: Founding, now: datetime, folder: Path | None = None, passphrase: str | None = None
) -> Path:
    """Make the folder of a coordinator: identity, authority, broker, configuration, roster."""
    name, target = founding.name, folder_of(check_name(founding.consortium), folder)
    check_free(target)
    hosts = [_host(address) for address in founding.brokers]
    if not hosts:
        raise ArgumentError("a consortium needs a broker: --broker HOST:PORT")
    check_untaken(name, founding.consortium)
    if founding.nodes is not None:
        NodeUniverse.from_file(founding.nodes)  # readable, before anything is made
    with whole_files.folder_whole(target, EnrolmentError) as made:
        identity = new_identity(made / f"{name}.key", passphrase)
        roster = new_roster(name, identity.public, founding.organisation)
        keep_roster(made, roster)
        place = made / "certs"
        authority = f"silograph {founding.consortium}"
        certificates.new_authority(place, now, AUTHORITY_DAYS, authority)
        local = _LOCAL if set(hosts) & set(_LOCAL) else ()
        every = tuple(dict.fromkeys((*hosts, *local)))
        certificates.issue(place, certificates.BROKER, now, AUTHORITY_DAYS, every)
        certificates.issue(place, name, now, AUTHORITY_DAYS)
        text = coordinator_text(
            founding.consortium, name, founding.brokers, founding.nodes, founding.passphrase_file
        )
        whole_files.create(made / CONFIG, text.encode(), EnrolmentError)
        CoordinatorConfig.read(made / CONFIG)
        # Paths in nats.conf are absolute, so they are those of the folder's final name.
        settings = ServerSettings(
            TlsFiles(*(target / "certs" / file for file in ("ca.pem", "broker.pem", "broker.key"))),
            target / "broker" / "streams",
            founding.listen or _listen(founding.brokers[0], hosts[0]),
        )
        write_broker_files(made / "broker", roster, settings)
    return target


def _host(address: str) -> str:
    try:
        parts = urlsplit(f"tls://{address}")
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    if not host or not port or address != parts.netloc or "@" in address:
        raise BrokerError(f"{address[:80]!r} is not an address, such as broker.example.org:4222")
    return host


def _listen(address: str, host: str) -> str:
    """On the loopback for a trial on one machine; otherwise on every address."""
    return f"{'127.0.0.1' if host in _LOCAL else '0.0.0.0'}:{address.rpartition(':')[2]}"  # noqa: S104


def invite(
    folder: Path, role: Role, terms: Suggested, today: date, days: int = 30
) -> tuple[Path, Invitation]:
    """Write an invitation for parties of a role; an earlier one for this role is replaced."""
    desk = _Desk.open(folder)
    config = desk.config
    universe = config.nodes()
    if universe is None or config.broker.tls is None:
        raise EnrolmentError(f"{config.file}: not the configuration of a coordinator with TLS")
    if days < 1:
        raise ArgumentError("an invitation is valid for at least one day")
    made = Invitation(
        desk.consortium,
        desk.roster.roster.coordinator,
        tuple(url.removeprefix("tls://") for url in config.broker.urls),
        whole_files.read(config.broker.tls.ca, 1 << 16, EnrolmentError),
        universe.digest,
        role,
        today + timedelta(days=days),
        terms,
    )
    kind = "" if role == "silo" else f"-{role}"
    path = desk.folder / f"{desk.consortium}{kind}.invitation"
    whole_files.replace(path, made.encode(desk.identity), EnrolmentError, mode=0o644)
    return path, made


# --- Parties that answer --------------------------------------------------------------------------


@dataclass(frozen=True)
class _Desk:
    """A coordinator's folder, opened."""

    folder: Path
    config: CoordinatorConfig
    consortium: str
    identity: Identity
    #: The roster that is being signed, or else the one in force.
    roster: RosterFile

    @classmethod
    def open(cls, folder: Path) -> "_Desk":
        folder = folder.absolute()
        path = folder / CONFIG
        if not path.exists():
            raise EnrolmentError(
                f"{folder}: not a coordinator's folder (silograph invite makes one; --folder names "
                "another)"
            )
        config = CoordinatorConfig.read(path)
        roster = pending_roster(folder)
        if roster is None:
            raise EnrolmentError(f"{folder}: there is no roster")
        authority = certificates.show_certificate(folder / "certs" / "ca.pem")
        consortium = authority.subject.removeprefix("CN=silograph ")
        identity = load_identity(config.identity, config.passphrase())
        return cls(folder, config, consortium, identity, roster)

    def welcome(self, roster: RosterFile, name: str = "", certificate: bytes = b"") -> Path:
        """Write a welcome, for one party or for all."""
        made = Welcome(self.consortium, self.identity.public, roster, name, certificate)
        path = self.folder / f"{name or self.consortium}.welcome"
        whole_files.replace(path, made.encode(self.identity), EnrolmentError, mode=0o644)
        return path


@dataclass(frozen=True)
class Admitted:
    """What :func:`admit` or :func:`collect` has done."""

    roster: RosterFile
    #: Files to send: to the party that each is named after, or to all.
    welcomes: tuple[Path, ...]


def admit(
    folder: Path,
    paths: Sequence[Path],
    now: datetime,
    days: int = PARTY_DAYS,
    *,
    renew: bool = False,
) -> Admitted:
    """Take parties into the roster, sign their requests, and write their welcomes.

    With ``renew`` the answers are those of parties in the roster, whose certificates run out.
    """
    desk = _Desk.open(folder)
    roster, issued = desk.roster, dict[str, bytes]()
    for path in paths:
        answer = Answer.read(path)
        invitation = answer.check_invitation(path, desk.identity, desk.consortium)
        if not renew:
            invitation.check_date(path, now.astimezone(UTC).date())
        try:
            check_untaken(answer.member.name, desk.consortium)
            roster = _with(roster, answer, invitation.role, renew)
            issued[answer.member.name] = certificates.sign_request(
                desk.folder / "certs", answer.member.name, answer.request, now, days
            )
        except SilographError as error:
            raise EnrolmentError(f"{path}: {error}") from None
    welcomes = [desk.welcome(roster, name, made) for name, made in issued.items()]
    if not renew:
        if desk.roster.parties:  # those who were here before sign the new roster, too
            welcomes.append(desk.welcome(roster))
        users = users_text(roster).encode()
        whole_files.replace(desk.folder / "broker" / "users.conf", users, BrokerError)
        keep_roster(desk.folder, roster)
    return Admitted(roster, tuple(welcomes))


def _with(roster: RosterFile, answer: Answer, role: Role, renew: bool) -> RosterFile:
    """The roster with a party; unchanged if only its certificate is renewed."""
    member = answer.member
    known = {other.name: other.public for other in roster.members}
    same = known.get(member.name) == member.public
    if renew:
        if not same:
            raise EnrolmentError(f"{member.name} is not in the roster with this key")
        return roster
    if same:
        raise EnrolmentError(
            f"{member.name} is in the roster already: a repeated answer (--renew signs a new "
            "certificate)"
        )
    if member.name in known:
        raise EnrolmentError(f"another party of the roster is named {member.name}")
    return roster.add(member.name, member.public, role, member.organisation)


# --- Signatures that come back --------------------------------------------------------------------


def check(folder: Path, paths: Sequence[Path]) -> Admitted:
    """The roster with parties' signatures added, all of them checked. Nothing is written."""
    desk = _Desk.open(folder)
    return Admitted(_with_signatures(desk, paths), ())


def collect(folder: Path, paths: Sequence[Path]) -> Admitted:
    """Add parties' signatures to the roster, and the coordinator's own.

    Call this only after people have compared the roster's words. Once all have signed, the roster
    is in force, and a welcome for all parties has it.
    """
    desk = _Desk.open(folder)
    roster = _with_signatures(desk, paths).sign(desk.identity)
    welcomes = () if roster.missing else (desk.welcome(roster),)
    keep_roster(desk.folder, roster)
    return Admitted(roster, welcomes)


def _with_signatures(desk: _Desk, paths: Sequence[Path]) -> RosterFile:
    roster = desk.roster
    for path in paths:
        given = RosterSignature.read(path)
        if given.consortium != desk.consortium:
            raise EnrolmentError(f"{path}: a signature for another consortium, {given.consortium}")
        if given.digest != roster.digest:
            raise EnrolmentError(
                f"{path}: {given.name} has signed another roster than this one (serial "
                f"{roster.serial}); send {given.name} the newest welcome"
            )
        if given.name in roster.signatures:
            raise EnrolmentError(f"{path}: the signature of {given.name} is here already")
        try:
            roster = replace(roster, signatures={**roster.signatures, given.name: given.signature})
        except SilographError as error:
            raise EnrolmentError(f"{path}: {error}") from None
    return roster
