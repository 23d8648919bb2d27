"""``silograph roster``: write, compare, sign and change the list of parties."""

from datetime import UTC, date, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from silograph.cli.keys import PassphraseFile, for_identity
from silograph.cli.options import Json, one_of
from silograph.cli.output import echo, echo_json
from silograph.errors import ArgumentError, RosterError
from silograph.messages.identity import ROLES, Member
from silograph.party.keys import key_text, load_identity, read_key
from silograph.party.roster import (
    RosterFile,
    check_role,
    digest_text,
    new_roster,
    read_roster,
    roster_words,
    write_roster,
)

__all__ = ["app"]

app = typer.Typer(help="Write, compare, sign and change rosters.", no_args_is_help=True)

File = Annotated[Path, typer.Argument(help="A roster.", show_default=False)]
Name = Annotated[str, typer.Argument(help="A party's name.", show_default=False)]
Key = Annotated[
    str, typer.Argument(help="The party's public key (silograph keys show).", show_default=False)
]
Organisation = Annotated[
    str | None,
    typer.Option(
        help="The organisation that is responsible for the party. The default is its name.",
        show_default=False,
    ),
]


@app.command("new")
def new(
    path: File, name: Name, key: Key, organisation: Organisation = None, as_json: Json = False
) -> None:
    """Create a roster with its coordinator."""
    made = new_roster(name, read_key(key), organisation)
    write_roster(path, made, new=True)
    _say(path, made, as_json)


@app.command("add")
def add(
    path: File,
    name: Name,
    key: Key,
    role: Annotated[
        str,
        typer.Option(
            help="silo, or helper: a party without edges that serves in committees.",
            autocompletion=one_of(ROLES),
        ),
    ] = "silo",
    organisation: Organisation = None,
    as_json: Json = False,
) -> None:
    """Add a party, after all others of its role."""
    added = read_roster(path).add(name, read_key(key), check_role(role), organisation)
    _change(path, added, as_json)


@app.command("change")
def change(
    path: File,
    name: Name,
    role: Annotated[
        str | None,
        typer.Option(help="silo or helper.", autocompletion=one_of(ROLES), show_default=False),
    ] = None,
    organisation: Annotated[
        str | None,
        typer.Option(
            help="The organisation that is responsible for the party.", show_default=False
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Give a party another role or organisation. All parties must sign again."""
    known = None if role is None else check_role(role)
    _change(path, read_roster(path).change(name, known, organisation), as_json)


@app.command("show")
def show(path: File, as_json: Json = False) -> None:
    """Show the parties, who has signed, and which keys are revoked."""
    found = read_roster(path)
    _say(path, found, as_json)
    if as_json:
        return
    _show("coordinator", found.roster.coordinator, found)
    for place, (role, member) in enumerate(found.parties):
        _show(f"{role} {place}", member, found)
    for entry in found.revoked:
        echo(f"revoked {entry.date}, {entry.name}: {entry.reason}\n  {key_text(entry.key)}")


def _show(place: str, member: Member, found: RosterFile) -> None:
    signed = "signed" if member.name in found.signatures else "not signed"
    echo(f"{place:<12}{member.name:<40}{signed}")
    echo(f"  {member.organisation}\n  {key_text(member.public)}")


@app.command("digest")
def digest(path: File, as_json: Json = False) -> None:
    """Print the digest, which people compare and sign."""
    found = digest_text(read_roster(path).digest)
    if as_json:
        echo_json({"path": str(path), "digest": found})
    else:
        echo(found)


@app.command("words")
def words(path: File, as_json: Json = False) -> None:
    """Print twelve words that stand for the digest, to be compared by telephone."""
    found = roster_words(read_roster(path).digest)
    if as_json:
        echo_json({"path": str(path), "words": list(found)})
    else:
        echo(" ".join(found))


@app.command("sign")
def sign(
    path: File,
    identity: Annotated[Path, typer.Option(help="Your identity file.", show_default=False)],
    digest: Annotated[
        str | None,
        typer.Option(help="The digest that the other parties have told you.", show_default=False),
    ] = None,
    previous: Annotated[
        Path | None, typer.Option(help="The roster that this one replaces.", show_default=False)
    ] = None,
    passphrase_file: PassphraseFile = None,
    as_json: Json = False,
) -> None:
    """Sign a roster, after comparing its digest with the other parties.

    Compare it over a channel that the coordinator does not control, such as the telephone or a
    meeting.
    """
    found = read_roster(path)
    if previous is not None:
        found.check_follows(read_roster(previous))
    elif found.previous is not None:
        raise ArgumentError(
            f"serial {found.serial} replaces another roster: give that one with --previous, so "
            "that the changes can be checked"
        )
    if digest is None:
        _say(path, found, err=True)
        typer.confirm("Have you compared this digest with the others?", abort=True, err=True)
    elif digest != digest_text(found.digest):
        raise RosterError(f"{path}: the digest is {digest_text(found.digest)}, and not {digest}")
    signed = found.sign(load_identity(identity, for_identity(identity, passphrase_file)))
    write_roster(path, signed)
    _say(path, signed, as_json)


@app.command("merge")
def merge(
    path: File,
    others: Annotated[
        list[Path], typer.Argument(help="Signed copies of the roster.", show_default=False)
    ],
    as_json: Json = False,
) -> None:
    """Add the signatures in other copies of the same roster to this file."""
    found = read_roster(path)
    for other in others:
        found = found.merge(read_roster(other))
    write_roster(path, found)
    _say(path, found, as_json)


@app.command("rotate")
def rotate(
    path: File,
    name: Name,
    key: Key,
    reason: Annotated[str, typer.Option(help="Why the old key is revoked.")] = "rotated",
    as_json: Json = False,
) -> None:
    """Give a party a new key and revoke the old one. All parties must sign again."""
    _change(path, read_roster(path).rotate(name, read_key(key), _today(), reason), as_json)


@app.command("revoke")
def revoke(
    path: File,
    name: Name,
    reason: Annotated[str, typer.Option(help="Why the party is removed.", show_default=False)],
    as_json: Json = False,
) -> None:
    """Remove a party and revoke its key. All remaining parties must sign again."""
    _change(path, read_roster(path).revoke(name, _today(), reason), as_json)


def _today() -> date:
    return datetime.now(UTC).date()


def _change(path: Path, changed: RosterFile, as_json: bool) -> None:
    """Write the changed roster. A replaced roster is kept next to it, named by its serial."""
    before = read_roster(path)
    if changed.serial != before.serial:
        kept = path.with_name(f"{path.stem}.{before.serial}{path.suffix}")
        if not kept.exists() or read_roster(kept) != before:
            write_roster(kept, before, new=True)
        echo(f"{kept}: the roster that is replaced", err=as_json)
    write_roster(path, changed)
    _say(path, changed, as_json)


def _say(path: Path, found: RosterFile, as_json: bool = False, *, err: bool = False) -> None:
    if as_json:
        echo_json(_plain(found))
        return
    missing = f"not signed by {', '.join(found.missing)}" if found.missing else "signed by all"
    silos, helpers = len(found.roster.silos), len(found.roster.helpers)
    parties = f"{silos} silo{'' if silos == 1 else 's'}"
    if helpers:
        parties += f", {helpers} helper{'' if helpers == 1 else 's'}"
    echo(f"{path}: serial {found.serial}, {parties}, {missing}", err=err)
    echo(f"digest {digest_text(found.digest)}", err=err)


def _plain_member(member: Member) -> dict[str, str]:
    key = key_text(member.public)
    return {"name": member.name, "organisation": member.organisation, "key": key}


def _plain(found: RosterFile) -> dict[str, Any]:
    return {
        "serial": found.serial,
        "digest": digest_text(found.digest),
        "previous": None if found.previous is None else digest_text(found.previous),
        "coordinator": _plain_member(found.roster.coordinator),
        "silos": [_plain_member(member) for member in found.roster.silos],
        "helpers": [_plain_member(member) for member in found.roster.helpers],
        "signed_by": list(found.signed_by),
        "missing": list(found.missing),
        "revoked": [
            {
                "name": entry.name,
                "key": key_text(entry.key),
                "date": entry.date.isoformat(),
                "reason": entry.reason,
            }
            for entry in found.revoked
        ],
    }
