"""``silograph keys``: identities of parties."""

from pathlib import Path
from typing import Annotated

import typer

from silograph.cli.json_output import echo_json
from silograph.cli.options import Json
from silograph.cli.passphrases import PassphraseFile, new_passphrase
from silograph.runtime import keys

__all__ = ["app"]

app = typer.Typer(help="Make and show a party's identity.", no_args_is_help=True)


@app.command("new")
def new(
    path: Annotated[Path, typer.Argument(help="The file to make.", show_default=False)],
    seal: Annotated[bool, typer.Option("--seal", help="Seal it with a passphrase.")] = False,
    passphrase_file: PassphraseFile = None,
    as_json: Json = False,
) -> None:
    """Make an identity in a new file of mode 0600, and print its public key.

    Give the public key to the other parties yourself. The file is the party: keep it where only
    the party's own service can read it.
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
