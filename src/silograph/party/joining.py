"""A silo's or a helper's side of an enrolment: its folder, made from an invitation.

What: :func:`join` makes a folder with the party's identity, its TLS key, a configuration with
cautious terms, and the answer for the coordinator. :func:`open_welcome` checks what comes back, and
:meth:`Arrival.settle` installs it::

    silo.toml            the configuration (helper.toml for a helper)
    north.key            the identity, mode 0600; stays here
    north.tls.key        the TLS key, mode 0600; stays here
    north.pem, ca.pem    the certificates, from the coordinator
    roster.toml          who takes part; roster.next.toml while it is being signed
    north.answer, north.signature, invitation.toml      what was exchanged; no secrets

Guarantee: the folder appears complete or not at all. A welcome is checked as a whole before
anything is written. Nothing in an invitation can make a configuration less cautious than the
defaults of :class:`~silograph.party.policy.Policy`: the party itself must ask for that.
"""

import os
from dataclasses import astuple, dataclass
from datetime import date
from pathlib import Path
from typing import Literal

from silograph import whole_files
from silograph.errors import ArgumentError, EnrolmentError, SilographError
from silograph.graph.universe import NodeUniverse
from silograph.graph.window import Window
from silograph.party import certificates
from silograph.party.config import (
    WINDOW_KEYS,
    HelperConfig,
    SiloConfig,
    SiloData,
    load_silo,
    read_served,
)
from silograph.party.connection import TlsFiles
from silograph.party.enrolment import (
    NEXT,
    ROSTER,
    Answer,
    Invitation,
    RosterSignature,
    Suggested,
    Welcome,
    keep_roster,
    pending_roster,
)
from silograph.party.keys import load_identity, new_identity
from silograph.party.policy import Policy
from silograph.party.roster import RosterFile, new_member, read_roster

__all__ = [
    "Arrival",
    "Choices",
    "Joined",
    "check_free",
    "check_untaken",
    "coordinator_text",
    "folder_of",
    "join",
    "open_welcome",
]


# --- Joining --------------------------------------------------------------------------------------

_INVITATION = "invitation.toml"
_AUTHORITY = f"{certificates.AUTHORITY}.pem"


@dataclass(frozen=True)
class Choices:
    """What a party decides about itself when it joins."""

    name: str
    organisation: str | None = None
    #: The edge file of a silo, and how to read it.
    edges: Path | None = None
    columns: tuple[str, str] | None = None
    format: str | None = None
    header: bool | None = None
    window: Window | None = None
    #: The public node list; None if the universe is open.
    nodes: Path | None = None
    #: The ledger's name for the edges; the consortium's name if it is empty.
    lineage: str = ""
    #: The most that one study may cost, and the most that may ever be spent. By default what the
    #: invitation suggests, but no more than the cautious defaults.
    epsilon: float | None = None
    budget: float | None = None
    #: The methods that studies may use. By default those that the invitation suggests, of the
    #: cautious defaults.
    methods: tuple[str, ...] = ()
    accept: Literal["ask", "auto"] = "ask"
    #: A file with the passphrase that seals the identity.
    passphrase_file: Path | None = None


@dataclass(frozen=True)
class Joined:
    """What :func:`join` has made."""

    config: SiloConfig | HelperConfig
    answer: Path
    invitation: Invitation
    #: The edges of a silo.
    data: SiloData | None


def folder_of(consortium: str, folder: Path | None) -> Path:
    """The folder of a party; by default one named like the consortium, in this folder."""
    return (Path(consortium) if folder is None else folder).absolute()


def join(
    path: Path,
    choices: Choices,
    today: date,
    folder: Path | None = None,
    passphrase: str | None = None,
) -> Joined:
    """Make the folder of a party that was invited, with its answer in it."""
    content = whole_files.read(path, 1 << 20, EnrolmentError)
    invitation = Invitation.decode(path, content)
    invitation.check_date(path, today)
    target = folder_of(invitation.consortium, folder)
    check_untaken(choices.name, invitation.consortium, invitation.coordinator.name)
    check_free(target)
    name, organisation = choices.name, choices.organisation
    new_member(name, invitation.coordinator.public, organisation)  # refuses bad names early
    universe = _universe(invitation, choices)
    file = f"{invitation.role}.toml"
    with whole_files.folder_whole(target, EnrolmentError) as made:
        identity = new_identity(made / f"{name}.key", passphrase)
        key, request = certificates.new_request(name)
        member = new_member(name, identity.public, organisation)
        answer = Answer(member, request, content)
        for part, text, mode in (
            (f"{name}.tls.key", key, 0o600),
            (_AUTHORITY, invitation.authority, 0o644),
            (_INVITATION, content, 0o644),
            (file, _config_text(invitation, choices, universe).encode(), 0o600),
            (f"{name}.answer", answer.encode(identity), 0o644),
        ):
            whole_files.create(made / part, text, EnrolmentError, mode=mode)
        certificates.show_certificate(made / _AUTHORITY)
        trial = read_served(made / file)
        data = load_silo(trial, universe) if isinstance(trial, SiloConfig) and universe else None
    return Joined(read_served(target / file), target / f"{name}.answer", invitation, data)


def check_free(target: Path) -> None:
    """Refuse a place for a new folder where something is, or where none can be."""
    if not target.parent.is_dir():
        raise EnrolmentError(f"{target}: there is no folder {target.parent}; make it first")
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise EnrolmentError(
            f"{target}: something is there already, and is never overwritten; choose another "
            "--folder"
        )


def check_untaken(name: str, *others: str) -> None:
    """Refuse a party's name that would give two files or two users the same name."""
    if name in (certificates.AUTHORITY, certificates.BROKER, *others):
        raise EnrolmentError(f"the name {name!r} is taken; choose another one")


def _universe(invitation: Invitation, choices: Choices) -> NodeUniverse | None:
    """The agreed universe. A helper may do without it."""
    if (choices.edges is None) != (invitation.role == "helper"):
        raise ArgumentError(
            "a helper has no edges; leave --data out"
            if choices.edges is not None
            else "a silo has edges; say where with --data"
        )
    given = NodeUniverse.open() if choices.nodes is None else NodeUniverse.from_file(choices.nodes)
    if given.digest == invitation.universe:
        return given
    if choices.nodes is not None:
        raise EnrolmentError(
            f"{choices.nodes}: not the node list of the invitation: digest {given.digest[:16]}…, "
            f"and {invitation.universe[:16]}… is agreed"
        )
    if invitation.role == "helper":
        return None
    raise EnrolmentError(
        f"{invitation.consortium} has a public node list (digest {invitation.universe[:16]}…): get "
        "it, and give it with --nodes"
    )


# --- Configurations, with comments ----------------------------------------------------------------


def _config_text(invitation: Invitation, choices: Choices, universe: NodeUniverse | None) -> str:
    """The configuration of a silo or a helper."""
    name, helper = choices.name, invitation.role == "helper"
    nodes = None if universe is None else _nodes(choices.nodes)
    files = TlsFiles(Path(_AUTHORITY), Path(f"{name}.pem"), Path(f"{name}.tls.key"))
    lines = [
        f"# {name} in {invitation.consortium}. Made by 'silograph join'; all of it is yours to",
        "# change. Paths are relative to this file.",
        "version = 1",
        *(['role = "helper"'] if helper else []),
        *_party_lines(name, nodes, choices.passphrase_file, invitation.urls, files),
    ]
    if choices.edges is not None:
        lines += _data_lines(invitation, choices, choices.edges)
    return "\n".join([*lines, *_policy_lines(invitation, choices)]) + "\n"


def coordinator_text(
    consortium: str,
    name: str,
    brokers: tuple[str, ...],
    nodes: Path | None,
    passphrase_file: Path | None,
) -> str:
    """The configuration of a coordinator whose certificates are in ``certs``."""
    place = Path("certs")
    files = TlsFiles(place / _AUTHORITY, place / f"{name}.pem", place / f"{name}.key")
    urls = tuple(f"tls://{address}" for address in brokers)
    lines = [
        f"# The coordinator of {consortium}. Made by 'silograph invite'; paths are relative to",
        "# this file.",
        "version = 1",
        *_party_lines(name, _nodes(nodes), passphrase_file, urls, files),
    ]
    return "\n".join(lines) + "\n"


def _nodes(path: Path | None) -> str:
    return "open" if path is None else _absolute(path)


def _absolute(path: Path) -> str:
    return os.path.abspath(path)  # without following links: the party may change them


def _party_lines(
    name: str,
    nodes: str | None,
    passphrase_file: Path | None,
    urls: tuple[str, ...],
    files: TlsFiles,
) -> list[str]:
    """What the configurations of all parties share, from the name on."""
    text = whole_files.quoted
    lines = [f"name = {text(name)}", f"identity = {text(f'{name}.key')}"]
    if passphrase_file is not None:
        lines.append(f"passphrase_file = {text(_absolute(passphrase_file))}")
    lines.append(f"roster = {text(ROSTER)}")
    if nodes is not None:
        lines.append(f"universe = {text(nodes)}")
    return [
        *lines,
        _line('state = "state"', "made when it is first needed"),
        "",
        "[broker]",
        f"urls = [{', '.join(map(text, urls))}]",
        f"ca = {text(str(files.ca))}",
        f"cert = {text(str(files.cert))}",
        f"key = {text(str(files.key))}",
        "",
        "# [metrics]",
        _line("# port = 9464", "/metrics and /healthz, to this machine alone"),
    ]


def _line(setting: str, comment: str) -> str:
    return f"{setting:<36} # {comment}"


def _data_lines(invitation: Invitation, choices: Choices, edges: Path) -> list[str]:
    text = whole_files.quoted
    lines = ["", "[data]", f"edges = {text(_absolute(edges))}"]
    if choices.columns is not None:
        lines.append(f"columns = [{', '.join(map(text, choices.columns))}]")
    if choices.format is not None:
        lines.append(f"format = {text(choices.format)}")
    if choices.header is not None:
        lines.append(f"header = {str(choices.header).lower()}")
    if choices.window is not None:
        lines += [
            f"{key} = {text(str(value))}"
            for key, value in zip(WINDOW_KEYS, astuple(choices.window), strict=True)
            if value is not None
        ]
    lineage = text(choices.lineage or invitation.consortium)
    budget = _cautious(choices.budget, invitation.terms.budget, Suggested.budget)
    return [
        *lines,
        _line(f"lineage = {lineage}", "the budget's name, whatever edges come and go"),
        "",
        "[ledger]",
        f"path = {text(f'{choices.name}.ledger')}",
        _line(f"epsilon = {budget!r}", "the most that may ever be spent on the lineage"),
        _line("collusion = 1", "counted against this many colluding silos"),
    ]


def _policy_lines(invitation: Invitation, choices: Choices) -> list[str]:
    text, terms = whole_files.quoted, invitation.terms
    epsilon = _cautious(choices.epsilon, terms.epsilon, Policy.epsilon)
    least = max(terms.least_silos, Policy.least_silos)
    known = tuple(method for method in terms.methods if method in Policy.methods)
    methods = choices.methods or known or Suggested.methods
    return [
        "",
        _line("[policy]", "no study can go beyond these terms"),
        f"coordinators = [{text(invitation.coordinator.name)}]",
        f"methods = [{', '.join(map(text, methods))}]",
        _line(f"epsilon = {epsilon!r}", "the most that one study may cost"),
        _line("least_collusion = 1", "so many silos may pool what they see with the coordinator"),
        _line(f"least_silos = {least}", "a study has at least so many silos"),
        _line(
            f"accept = {text(choices.accept)}", '"ask": an operator decides; "auto": these terms'
        ),
        "# For studies with a committee: its four members, as the roster shows them.",
        '# committee = [{ name = "…", organisation = "…", key = "ed25519:…" }, …]',
    ]


def _cautious(chosen: float | None, suggested: float, default: float) -> float:
    """The party's own choice; without one, the smaller of the suggestion and the default."""
    return float(min(suggested, default) if chosen is None else chosen)


# --- What comes back ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Arrival:
    """A welcome that has passed all checks, and has not been installed yet."""

    folder: Path
    config: SiloConfig | HelperConfig
    consortium: str
    #: The roster with all signatures that are known here.
    roster: RosterFile
    #: The new certificate in PEM; empty for none.
    certificate: bytes

    @property
    def signed(self) -> bool:
        """Whether this party has signed the roster already."""
        return self.config.name in self.roster.signatures

    @property
    def signature(self) -> Path:
        """The file that goes back to the coordinator."""
        return self.folder / f"{self.config.name}.signature"

    def settle(self) -> RosterFile:
        """Install it, signed. Call this only after people have compared the roster's words."""
        name, roster, config = self.config.name, self.roster, self.config
        identity = load_identity(config.identity, config.passphrase())
        roster = roster.sign(identity)
        if self.certificate:
            path = self.folder / f"{name}.pem"
            whole_files.replace(path, self.certificate, EnrolmentError, mode=0o644)
        made = RosterSignature(self.consortium, name, roster.digest, roster.signatures[name])
        content = made.encode(identity)
        whole_files.replace(self.signature, content, EnrolmentError, mode=0o644)
        keep_roster(self.folder, roster)  # last: before this, the same welcome can be given again
        return roster


def open_welcome(path: Path, folder: Path | None = None) -> Arrival:
    """Read a welcome and check that it is for the party in a folder. Nothing is written."""
    welcome = Welcome.read(path)
    place = folder_of(welcome.consortium, folder)
    if not (place / _INVITATION).exists():
        raise EnrolmentError(
            f"{path}: a welcome to {welcome.consortium}, and {place} is not the folder of a party "
            "that has joined it (silograph join INVITATION makes one; --folder names another)"
        )
    invitation = Invitation.read(place / _INVITATION)
    if (welcome.consortium, welcome.key) != (
        invitation.consortium,
        invitation.coordinator.public,
    ):
        raise EnrolmentError(
            f"{path}: not from the coordinator that invited us to {invitation.consortium}"
        )
    config = read_served(place / f"{invitation.role}.toml")
    try:
        roster = _checked_roster(welcome.roster, invitation, config, place)
        certificate = _checked_certificate(welcome, config)
    except SilographError as error:
        raise EnrolmentError(f"{path}: {error}") from None
    arrival = Arrival(place, config, welcome.consortium, roster, certificate)
    if arrival.signed and not certificate and roster == pending_roster(place):
        raise EnrolmentError(f"{path}: was installed already; there is nothing to do")
    return arrival


def _checked_roster(
    roster: RosterFile, invitation: Invitation, config: SiloConfig | HelperConfig, place: Path
) -> RosterFile:
    """The roster of a welcome, with the signatures that are known here."""
    if roster.roster.coordinator.public != invitation.coordinator.public:
        raise EnrolmentError("its roster has another coordinator than the invitation")
    identity = load_identity(config.identity, config.passphrase())
    roles: dict[str, str] = {member.name: role for role, member in roster.parties}
    if roster.place(identity.public) != config.name or roles[config.name] != config.role:
        raise EnrolmentError(
            f"its roster has our key under another name or role than {config.name}"
        )
    if (place / ROSTER).exists():
        old = read_roster(place / ROSTER)
        if roster.digest != old.digest:
            roster.check_follows(old)
    known = pending_roster(place)
    if known is None or known.digest == roster.digest:
        return roster if known is None else roster.merge(known)
    if (place / NEXT).exists() and roster.serial < known.serial:
        raise EnrolmentError(
            f"its roster (serial {roster.serial}) is older than the one here ({known.serial})"
        )
    return roster


def _checked_certificate(welcome: Welcome, config: SiloConfig | HelperConfig) -> bytes:
    """The certificate to install; empty if the one here stays."""
    tls, name = config.broker.tls, config.name
    if tls is None:
        raise EnrolmentError(f"{config.file}: [broker] has no certificates")
    if welcome.name and welcome.name != name:
        raise EnrolmentError(f"it is for {welcome.name}, not for {name}")
    if not welcome.name:
        if not tls.cert.exists():
            raise EnrolmentError(f"{name} has no certificate yet: install {name}.welcome first")
        return b""
    certificates.check_issued(welcome.certificate, name, tls.key, tls.ca)
    same = tls.cert.exists() and tls.cert.read_bytes() == welcome.certificate
    return b"" if same else welcome.certificate
