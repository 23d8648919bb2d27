"""``silograph broker``: write the configuration of a NATS server."""

from pathlib import Path
from typing import Annotated

import typer

from silograph.cli.options import Json
from silograph.cli.output import echo_json
from silograph.errors import ArgumentError
from silograph.nats.broker import ServerSettings, write_broker_files
from silograph.party import certificates
from silograph.party.connection import TlsFiles
from silograph.party.roster import read_roster

__all__ = ["app"]

app = typer.Typer(help="Configure a broker.", no_args_is_help=True)


@app.callback()
def commands() -> None:
    """Configure a broker."""


@app.command("config")
def config(
    roster: Annotated[Path, typer.Option(help="The roster file.", show_default=False)],
    out: Annotated[Path, typer.Option(help="The folder to write to.", show_default=False)],
    tls: Annotated[
        Path, typer.Option(help="The folder with ca.pem, broker.pem and broker.key.")
    ] = Path("certs"),
    listen: Annotated[str, typer.Option(help="The server's address.")] = "127.0.0.1:4222",
    websocket: Annotated[
        str | None,
        typer.Option(help="An additional address for WebSocket.", show_default=False),
    ] = None,
    store: Annotated[
        Path | None, typer.Option(help="The folder for the streams.  [default: OUT/streams]")
    ] = None,
    max_file_store: Annotated[
        float, typer.Option(help="The disk space for all streams together, in GB.")
    ] = 20.0,
    subject: Annotated[
        list[str] | None,
        typer.Option(
            help="NAME=SUBJECT, for a party whose certificate's subject is not CN=NAME. "
            "May be repeated.",
            show_default=False,
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Write nats.conf and users.conf: mutual TLS, durable streams and each party's permissions."""
    files = TlsFiles(
        tls / f"{certificates.AUTHORITY}.pem",
        tls / f"{certificates.BROKER}.pem",
        tls / f"{certificates.BROKER}.key",
    )
    names = dict(_pair(text) for text in subject or [])
    most = int(1e9 * max_file_store) if 0 < max_file_store < 1e9 else 0
    settings = ServerSettings(files, store or out / "streams", listen, websocket, names, most)
    written = [str(path) for path in write_broker_files(out, read_roster(roster), settings)]
    if as_json:
        echo_json({"files": written})
        return
    for path in written:
        typer.echo(path)


def _pair(text: str) -> tuple[str, str]:
    name, equals, subject = text.partition("=")
    if not equals or not subject:
        raise ArgumentError(f"{text[:80]!r} is not NAME=SUBJECT, such as north=CN=north,O=Bank")
    return name, subject
