"""``silograph invite``, ``join`` and ``admit``: from nothing to a roster that all have signed."""

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Literal

import typer

from silograph.cli.keys import PassphraseFile, new_passphrase
from silograph.cli.options import (
    Columns,
    Format,
    Header,
    Json,
    Nodes,
    Since,
    TimeColumn,
    Until,
    column_pair,
    one_of,
    time_window,
)
from silograph.cli.output import echo, echo_json, note
from silograph.dp.loss import shown_loss
from silograph.errors import ArgumentError, EnrolmentError, RosterError
from silograph.messages.identity import ROLES
from silograph.party.config import SiloConfig
from silograph.party.enrolment import (
    Answer,
    Invitation,
    RosterSignature,
    Suggested,
    kind_of,
)
from silograph.party.joining import Arrival, Choices, Joined, folder_of, open_welcome
from silograph.party.joining import join as join_consortium
from silograph.party.roster import RosterFile, check_role, roster_words

__all__ = ["admit", "invite", "join"]

Folder = Annotated[
    Path | None,
    typer.Option(
        help="The party's folder. By default it is named like the consortium, in this folder.",
        show_default=False,
    ),
]
Words = Annotated[
    str | None,
    typer.Option(
        help="The twelve words that the other parties have read out, instead of a question.",
        show_default=False,
    ),
]
Organisation = Annotated[
    str | None,
    typer.Option(
        help="The organisation that is responsible for the party. The default is its name.",
        show_default=False,
    ),
]
_ROLE = "silo, or helper: a party without edges that serves in committees."


# --- The coordinator invites ----------------------------------------------------------------------


def invite(
    consortium: Annotated[
        str, typer.Argument(help="The consortium's name, as in payments.", show_default=False)
    ],
    broker: Annotated[
        list[str] | None,
        typer.Option(
            help="HOST:PORT, where parties reach the broker. May be repeated for a cluster. "
            "Needed the first time only.",
            show_default=False,
        ),
    ] = None,
    nodes: Nodes = None,
    name: Annotated[str, typer.Option(help="The coordinator's own name.")] = "hub",
    organisation: Organisation = None,
    role: Annotated[str, typer.Option(help=_ROLE, autocompletion=one_of(ROLES))] = "silo",
    epsilon: Annotated[
        float, typer.Option(help="Suggest this as the most that one study may cost.")
    ] = Suggested.epsilon,
    budget: Annotated[
        float, typer.Option(help="Suggest this as the most that may ever be spent.")
    ] = Suggested.budget,
    method: Annotated[
        list[str] | None,
        typer.Option(
            help="Suggest this method and protocol, as in 'feat masked'. May be repeated.",
            show_default="feat masked",
        ),
    ] = None,
    days: Annotated[int, typer.Option(help="How many days the invitation is valid.", min=1)] = 30,
    listen: Annotated[
        str | None,
        typer.Option(
            help="The address that the broker listens on. The default is every address, at the "
            "port of --broker; for localhost, the loopback.",
            show_default=False,
        ),
    ] = None,
    passphrase_file: PassphraseFile = None,
    folder: Folder = None,
    as_json: Json = False,
) -> None:
    """Found a consortium, as its coordinator, and write an invitation to it.

    The first call makes the coordinator's folder: its identity, an authority for certificates, the
    broker's configuration, and a roster. Later calls only write another invitation, for example
    with other terms or for helpers. One invitation serves any number of parties.
    """
    from silograph.nats import consortium as desk  # noqa: PLC0415 - needs the extra

    now = datetime.now(UTC)
    place, terms = (
        folder_of(consortium, folder),
        Suggested(epsilon, budget, tuple(method or Suggested.methods)),
    )
    known, new = check_role(role), not (place / desk.CONFIG).exists()
    if new:
        founding = desk.Founding(
            consortium, tuple(broker or ()), name, organisation, nodes, listen, passphrase_file
        )
        passphrase = None if passphrase_file is None else new_passphrase(passphrase_file)
        desk.found(founding, now, place, passphrase)
    elif broker or nodes or listen or organisation or passphrase_file:
        raise ArgumentError(
            f"{place}: the consortium is there already; --broker, --nodes, --listen, "
            "--organisation and --passphrase-file are for a new one"
        )
    path, made = desk.invite(place, known, terms, now.date(), days)
    if as_json:
        echo_json({"folder": str(place), "new": new, "invitation": str(path)})
        return
    if new:
        echo(f"{_near(place)}: the folder of {name}, coordinator of {consortium}")
    echo(f"{_near(path)}: send it to every {known}; valid until {made.expires}")


# --- A party joins --------------------------------------------------------------------------------


def join(
    invitation: Annotated[
        Path | None, typer.Argument(help="An invitation.", show_default=False)
    ] = None,
    welcome: Annotated[
        Path | None,
        typer.Option(
            help="A welcome that the coordinator has sent: the second and the third step.",
            show_default=False,
        ),
    ] = None,
    name: Annotated[
        str, typer.Option(help="This party's name, as in north.", show_default=False)
    ] = "",
    data: Annotated[
        Path | None, typer.Option(help="A silo's edge file.", show_default=False)
    ] = None,
    nodes: Nodes = None,
    organisation: Organisation = None,
    lineage: Annotated[
        str,
        typer.Option(
            help="The ledger's name for the edges. The default is the consortium's name.",
            show_default=False,
        ),
    ] = "",
    epsilon: Annotated[
        float | None,
        typer.Option(
            help="The most that one study may cost.",
            show_default="what the invitation suggests, but at most 1",
        ),
    ] = None,
    budget: Annotated[
        float | None,
        typer.Option(
            help="The most that may ever be spent.",
            show_default="what the invitation suggests, but at most 10",
        ),
    ] = None,
    method: Annotated[
        list[str] | None,
        typer.Option(
            help="Allow this method and protocol, as in 'feat masked'. May be repeated.",
            show_default="what the invitation suggests, of feat masked and feat committee",
        ),
    ] = None,
    accept: Annotated[
        Literal["ask", "auto"],
        typer.Option(help="ask: an operator decides on each study. auto: these terms decide."),
    ] = "ask",
    columns: Columns = None,
    format: Format = None,  # noqa: A002
    header: Header = None,
    time_column: TimeColumn = None,
    since: Since = None,
    until: Until = None,
    words: Words = None,
    passphrase_file: PassphraseFile = None,
    folder: Folder = None,
    as_json: Json = False,
) -> None:
    """Join a consortium: first with an INVITATION, then twice with a welcome.

    The first step makes this party's folder: its keys, which never leave it, a configuration with
    cautious terms, and an answer to send back. The second installs the certificate and, after
    people have compared twelve words, signs the roster. The third installs the roster that all have
    signed.
    """
    if welcome is not None and invitation is None:
        _arrive(welcome, folder, words, as_json)
        return
    if invitation is None or welcome is not None:
        raise ArgumentError("join: give an invitation, or --welcome and a welcome")
    if not name:
        raise ArgumentError("join: give this party's name with --name")
    pair = column_pair(columns)
    choices = Choices(
        name, organisation, data, None if pair is None else (str(pair[0]), str(pair[1])),
        format, header, time_window(time_column, since, until), nodes, lineage, epsilon, budget,
        tuple(method or ()), accept, passphrase_file,
    )  # fmt: skip
    passphrase = None if passphrase_file is None else new_passphrase(passphrase_file)
    made = join_consortium(invitation, choices, datetime.now(UTC).date(), folder, passphrase)
    if as_json:
        echo_json({"folder": str(made.config.file.parent), "config": str(made.config.file),
                   "answer": str(made.answer)})  # fmt: skip
    else:
        _say_joined(made)


def _say_joined(made: Joined) -> None:
    config, given = made.config, made.invitation
    hub = given.coordinator
    house = f" ({hub.organisation})" * (hub.organisation != hub.name)
    echo(f"{config.name} joins {given.consortium} of {hub.name}{house} as a {config.role}")
    if made.data is not None:
        held = f"{len(made.data.silo):,} (seen by nobody else)"
        echo(f"edges     {held}{made.data.left_out}")
    policy = config.policy
    terms = [f"ε ≤ {shown_loss(policy.epsilon, left=True)} per study"]
    if isinstance(config, SiloConfig):
        terms.append(f"ε ≤ {shown_loss(config.ledger.epsilon, left=True)} in all")
    echo(f"terms     {', '.join(policy.methods)}; {', '.join(terms)}; {policy.accept}")
    echo(f"{_near(config.file)}: read it, and change what you like")
    echo(f"{_near(made.answer)}: send it to {hub.name}")
    more = [method for method in given.terms.methods if method not in policy.methods]
    if policy.epsilon < given.terms.epsilon:
        more.insert(0, f"ε = {shown_loss(given.terms.epsilon)} per study")
    if more:
        note(f"the invitation suggests {', '.join(more)}; {config.file.name} can allow it")


def _arrive(path: Path, folder: Path | None, words: str | None, as_json: bool) -> None:
    found = open_welcome(path, folder)
    if not found.signed:
        _compare(found.roster, words)
    roster = found.settle()
    if as_json:
        words_of = list(roster_words(roster.digest))
        echo_json({"folder": str(found.folder), "signature": str(found.signature),
                   "words": words_of, "missing": list(roster.missing)})  # fmt: skip
    else:
        _say_arrived(found, roster)


def _say_arrived(found: Arrival, roster: RosterFile) -> None:
    config, file = found.config, _near(found.config.file)
    if found.certificate:
        echo(f"{_near(found.folder / f'{config.name}.pem')}: the certificate of {config.name}")
    if roster.missing:
        echo(f"{_near(found.signature)}: send it to {roster.roster.coordinator.name}")
        return
    echo(f"roster: serial {roster.serial}, signed by all {len(roster.members)} parties")
    echo(f"next: silograph silo check --config {file}")
    echo(f"      silograph silo run --config {file}")


# --- The coordinator admits -----------------------------------------------------------------------


def admit(
    files: Annotated[
        list[Path],
        typer.Argument(help="Answers, or signatures, of parties.", show_default=False),
    ],
    renew: Annotated[
        bool,
        typer.Option("--renew", help="Sign new certificates for parties that are in the roster."),
    ] = False,
    days: Annotated[
        int, typer.Option(help="How many days certificates are valid.", min=1, max=825)
    ] = 365,
    words: Words = None,
    folder: Folder = None,
    as_json: Json = False,
) -> None:
    """Take parties into the roster, from their answers; later, add their signatures to it.

    With answers: sign the requests for certificates and write one welcome for each party. Give all
    answers at once where you can, since every change of the roster must be signed by all. With
    signatures: after people have compared twelve words, sign the roster as the coordinator, too.
    Once all have signed, one welcome for all parties has the roster. All files are checked before
    anything is written.
    """
    from silograph.nats import consortium as desk  # noqa: PLC0415 - needs the extra

    kinds = {kind_of(path) for path in files}
    if kinds not in ({"answer"}, {"signature"}):
        raise EnrolmentError(
            f"admit takes answers, or signatures, and not {' and '.join(sorted(kinds))} files"
        )
    kind = kinds.pop()
    consortium = _consortium(files[0], kind)
    place = folder_of(consortium, folder)
    if kind == "answer":
        done = desk.admit(place, files, datetime.now(UTC), days, renew=renew)
    else:
        _compare(desk.check(place, files).roster, words)
        done = desk.collect(place, files)
    roster = done.roster
    if as_json:
        echo_json({"folder": str(place), "serial": roster.serial, "missing": list(roster.missing),
                   "words": list(roster_words(roster.digest)),
                   "welcomes": [str(path) for path in done.welcomes]})  # fmt: skip
        return
    if kind == "answer" and not renew:
        echo(f"{_near(place / 'broker')}: start the broker, or reload it if it runs")
    for path in done.welcomes:
        name = path.stem if path.stem != consortium else "every party"
        echo(f"{_near(path)}: send it to {name}")
    if roster.missing:
        echo(f"roster: serial {roster.serial}, not signed by {', '.join(roster.missing)}")
        _show_words(roster, err=False)
    else:
        echo(f"roster: serial {roster.serial}, signed by all {len(roster.members)} parties")


def _consortium(path: Path, kind: str) -> str:
    if kind == "signature":
        return RosterSignature.read(path).consortium
    return Invitation.decode(path, Answer.read(path).invitation).consortium


# --- Twelve words ---------------------------------------------------------------------------------


def _compare(roster: RosterFile, words: str | None) -> None:
    """Have the roster's words compared by people, or with the words that they were told."""
    if words is None:
        _show_words(roster, err=True)
        typer.confirm("Do the other parties read out the same words?", abort=True, err=True)
    elif tuple(words.lower().split()) != roster_words(roster.digest):
        raise RosterError(
            "the words are not those of this roster: somebody has another one. Do not sign; ask "
            "the other parties to read out theirs"
        )


def _show_words(roster: RosterFile, *, err: bool) -> None:
    words = roster_words(roster.digest)
    names = ", ".join(member.name for member in roster.members)
    echo(f"Compare these words by telephone ({names}):", err=err)
    for start in range(0, len(words), 4):
        numbered = enumerate(words[start : start + 4], start + 1)
        echo("".join(f"{place:>4} {word:<10}" for place, word in numbered).rstrip(), err=err)


def _near(path: Path) -> str:
    """A path as people type it: relative to this folder if it is below it."""
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return os.fspath(path)
