"""Passphrases: typed at a prompt, or in a file of their own; never an argument."""

from pathlib import Path
from typing import Annotated

import typer

from silograph.errors import KeyFileError
from silograph.runtime import whole_files
from silograph.runtime.keys import show_identity

__all__ = ["PassphraseFile", "for_identity", "new_passphrase"]

PassphraseFile = Annotated[
    Path | None,
    typer.Option(help="A file (mode 0600) whose first line is the passphrase.", show_default=False),
]
_LARGEST = 4096


def for_identity(identity: Path, file: Path | None) -> str | None:
    """The passphrase of an identity file; asks for it where the file is sealed."""
    if file is not None:
        return _first_line(file)
    if not show_identity(identity).sealed:
        return None
    return str(typer.prompt(f"passphrase of {identity}", hide_input=True, err=True))


def new_passphrase(file: Path | None) -> str:
    """A passphrase for a new file, asked for twice."""
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
