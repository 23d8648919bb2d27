"""``silograph keys``: make and show identity files, which a passphrase may encrypt."""

from pathlib import Path
from typing import Annotated

import typer

from silograph import whole_files
from silograph.cli.options import Json
from silograph.cli.output import echo_json
from silograph.errors import KeyFileError
from silograph.messages.identity import Identity
from silograph.party import keys
from silograph.party.keys import show_identity

__all__ = [
    "ApproverKey",
    "PassphraseFile",
    "Reason",
    "app",
    "approver",
    "for_identity",
    "new_passphrase",
]


# --- Passphrases: typed at a prompt or read from a file, but never an argument --------------------

PassphraseFile = Annotated[
    Path | None,
    typer.Option(
        help="A file of mode 0600 whose first line is the passphrase.", show_default=False
    ),
]
_LARGEST = 4096

#: The key and the reason of a decision that a person signs.
ApproverKey = Annotated[
    Path | None,
    typer.Option("--key", help="The approver's key, which signs this.", show_default=False),
]
Reason = Annotated[
    str, typer.Option(help="Why; it is kept in the trail for ever.", show_default=False)
]


def approver(key: Path | None, passphrase_file: Path | None) -> Identity | None:
    """The identity of the person who decides; None if no key is given."""
    return None if key is None else keys.load_identity(key, for_identity(key, passphrase_file))


def for_identity(identity: Path, file: Path | None) -> str | None:
    """Return the passphrase of an identity file; prompt for it if the file is sealed."""
    if file is not None:
        return _first_line(file)
    if not show_identity(identity).sealed:
        return None
    return str(typer.prompt(f"passphrase of {identity}", hide_input=True, err=True))


def new_passphrase(file: Path | None) -> str:
    """Return the passphrase for a new file; without ``file``, prompt for it twice."""
    if file is not None:
        return _first_line(file)
    return str(typer.prompt("new passphrase", hide_input=True, confirmation_prompt=True, err=True))


def _first_line(file: Path) -> str:
    content = whole_files.read(file, _LARGEST, KeyFileError, private=True)
    try:
        line = content.decode().partition("\n")[0].rstrip("\r")
    except UnicodeDecodeError:
        raise KeyFileError(f"{file}: not a text in UTF-8") from None
    if not line:
        raise KeyFileError(f"{file}: its first line is empty")
    return line


# --- ``silograph keys`` ---------------------------------------------------------------------------

app = typer.Typer(help="Make and show a party's identity.", no_args_is_help=True)


@app.command("new")
def new(
    path: Annotated[Path, typer.Argument(help="The file to create.", show_default=False)],
    seal: Annotated[bool, typer.Option("--seal", help="Encrypt it with a passphrase.")] = False,
    passphrase_file: PassphraseFile = None,
    as_json: Json = False,
) -> None:
    """Make an identity in a new file of mode 0600, and print its public key.

    Give the public key to the other parties yourself. Anyone who has the file can act as this
    party, so keep it where only the party's own service can read it.
    """
    sealed = seal or passphrase_file is not None
    made = keys.new_identity(path, new_passphrase(passphrase_file) if sealed else None)
    if as_json:
        echo_json({"path": str(path), "key": keys.key_text(made.public), "sealed": sealed})
    else:
        typer.echo(keys.key_text(made.public))


@app.command("show")
def show(
    path: Annotated[Path, typer.Argument(help="An identity file.", show_default=False)],
    as_json: Json = False,
) -> None:
    """Print the public key of an identity file, and whether it is sealed."""
    found = keys.show_identity(path)
    if as_json:
        key = keys.key_text(found.public)
        created = str(found.created)
        echo_json({"path": str(path), "key": key, "sealed": found.sealed, "created": created})
        return
    typer.echo(f"{path}: {'sealed' if found.sealed else 'not sealed'}, made {found.created}")
    typer.echo(keys.key_text(found.public))
