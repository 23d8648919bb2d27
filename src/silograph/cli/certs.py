"""``silograph certs``: make and show TLS certificates for trials."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from silograph.cli.exits import FINE, NO
from silograph.cli.options import Json
from silograph.cli.output import echo_json
from silograph.party import certificates
from silograph.party.roster import read_roster

__all__ = ["app"]

app = typer.Typer(help="Make and show TLS certificates for trials.", no_args_is_help=True)

Days = Annotated[int, typer.Option(help="How many days they are valid.", min=1, max=825)]
Folder = Annotated[Path, typer.Option(help="The folder of the certificates.", show_default=False)]
Hosts = Annotated[
    list[str] | None,
    typer.Option(help="A name or address of the broker. May be repeated.", show_default=False),
]
_LOCAL = ["localhost", "127.0.0.1"]


@app.command("new")
def new(
    roster: Annotated[Path, typer.Option(help="The roster file.", show_default=False)],
    out: Folder,
    host: Hosts = None,
    days: Days = certificates.DAYS,
    as_json: Json = False,
) -> None:
    """Make an authority, and certificates for the broker and every party of a roster.

    This is for trials: anyone who has ca.key can impersonate any party at the broker. Give each
    party its own two files and ca.pem, and keep ca.key in a safe place.
    """
    members, now = read_roster(roster).members, datetime.now(UTC)
    made = [
        certificates.new_authority(out, now, days),
        certificates.issue(out, certificates.BROKER, now, days, host or _LOCAL),
        *(certificates.issue(out, member.name, now, days) for member in members),
    ]
    _say(made, as_json)


@app.command("issue")
def issue(
    name: Annotated[str, typer.Argument(help="A party's name.", show_default=False)],
    out: Folder,
    host: Hosts = None,
    days: Days = certificates.DAYS,
    as_json: Json = False,
) -> None:
    """Make one more certificate with the authority in a folder.

    With --host, it is a server's certificate.
    """
    _say([certificates.issue(out, name, datetime.now(UTC), days, host or ())], as_json)


@app.command("show")
def show(
    paths: Annotated[list[Path], typer.Argument(help="Certificates.", show_default=False)],
    as_json: Json = False,
) -> None:
    """Show the owners and expiry dates of certificates.

    The exit code is 1 if one of them has expired.
    """
    found = [certificates.show_certificate(path) for path in paths]
    _say(found, as_json)
    expired = any(certificate.days_left(datetime.now(UTC)) < 0 for certificate in found)
    raise typer.Exit(NO if expired else FINE)


def _say(found: list[certificates.CertificateFile], as_json: bool) -> None:
    now = datetime.now(UTC)
    if as_json:
        echo_json([_plain(certificate, now) for certificate in found])
        return
    for certificate in found:
        left = certificate.days_left(now)
        when = f"in {left} days" if left >= 0 else "EXPIRED"
        hosts = f" for {', '.join(certificate.hosts)}" if certificate.hosts else ""
        typer.echo(f"{certificate.path}: {certificate.subject}{hosts}")
        typer.echo(f"  expires {certificate.expires:%Y-%m-%d %H:%M} UTC ({when})")


def _plain(certificate: certificates.CertificateFile, now: datetime) -> dict[str, Any]:
    return {
        "path": str(certificate.path),
        "subject": certificate.subject,
        "hosts": list(certificate.hosts),
        "expires": certificate.expires.isoformat(),
        "days_left": certificate.days_left(now),
    }
