"""``silograph console``: serve a party's web console, and let people in."""

from pathlib import Path
from typing import Annotated

import typer

from silograph.cli.options import Json
from silograph.cli.output import echo_json, note
from silograph.errors import ArgumentError
from silograph.party.config import read_config

__all__ = ["app"]

app = typer.Typer(
    help="A web console for those who decide about studies, on this party's machine.",
    invoke_without_command=True,
    no_args_is_help=True,
)

Config = Annotated[
    Path | None,
    typer.Option("--config", "-c", help="The party's configuration file.", show_default=False),
]
Needed = Annotated[Path, typer.Option("--config", "-c", help="The party's configuration file.")]


@app.callback()
def serve(context: typer.Context, config: Config = None) -> None:
    """Serve the console of a silo, a helper or a coordinator until SIGTERM or Ctrl-C.

    $ silograph console --config north.toml

    It is a process of its own on the party's files; ending it harms no study. It listens on
    127.0.0.1:8470 unless [console] in the configuration says otherwise. Everybody needs a token
    (silograph console token), also on this machine.
    """
    if context.invoked_subcommand is not None:
        if config is not None:
            raise ArgumentError("--config comes after the command's name")
        return
    if config is None:
        raise ArgumentError("--config is missing: the party whose console it is")
    from silograph.console.access import People  # noqa: PLC0415 - needs the extra
    from silograph.console.app import serve as serve_console  # noqa: PLC0415

    given = read_config(config)
    if not People(given.state / "console").everyone():
        note(f"nobody has a token yet: silograph console token NAME --config {config}")
    serve_console(given, lambda address: typer.echo(f"{given.name}: console on {address}"))


@app.command()
def token(
    name: Annotated[str, typer.Argument(help="A person's name: a-z, 0-9 and -.")],
    config: Needed,
    key: Annotated[
        Path | None,
        typer.Option(
            help="The person's approver key on this machine; without it, the person can look and "
            "decide nothing. Seal it (silograph keys new --seal), so that only the person can use "
            "it.",
            show_default=False,
        ),
    ] = None,
    hours: Annotated[int, typer.Option(help="Hours in which the token can be used.")] = 24,
    days: Annotated[int, typer.Option(help="Days that the session then lasts.")] = 7,
    revoke: Annotated[
        bool, typer.Option("--revoke", help="End the person's token and session instead.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Make a token for a person, and print it once. It ends the person's earlier one.

    The token can be used once, to sign in. It is kept as a hash, in a file that only this user can
    read.
    """
    from silograph.console.access import People  # noqa: PLC0415 - needs the extra

    given = read_config(config)
    people = People(given.state / "console")
    if revoke:
        if not people.dismiss(name):
            raise ArgumentError(f"{name} has no token here")
        made = ""
    else:
        made = people.invite(name, key, hours=hours, days=days)
    if as_json:
        echo_json({"name": name, "token": made})
    elif made:
        typer.echo(made)
    else:
        typer.echo(f"{name}: token and session have ended")
