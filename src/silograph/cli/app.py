"""The command line: every command by name. A command's module is loaded when it is called."""

import platform
from collections.abc import Iterator, MutableMapping
from importlib import import_module
from importlib.util import find_spec
from typing import Annotated, Any, Literal

import typer
from typer.core import TyperGroup
from typer.main import get_group

from silograph import __version__, _core
from silograph.cli.exits import HELP
from silograph.cli.output import noted
from silograph.extras import EXTRAS

__all__ = ["app"]

_EVERYDAY, _DEPLOYMENT, _RESEARCH = "Everyday", "Deployment", "Research"

#: Every command: the module that it is in, and its panel of the help.
_COMMANDS = {
    "demo": ("demo", _EVERYDAY),
    "count": ("count", _EVERYDAY),
    "collect": ("count", _EVERYDAY),
    "query": ("query", _EVERYDAY),
    "compare": ("query", _EVERYDAY),
    "plan": ("plan", _EVERYDAY),
    "bench": ("bench", _EVERYDAY),
    "ledger": ("ledger", _EVERYDAY),
    "universe": ("data", _EVERYDAY),
    "split": ("data", _RESEARCH),
    "audit": ("audit", _RESEARCH),
    "up": ("up", _DEPLOYMENT),
    "invite": ("enrol", _DEPLOYMENT),
    "join": ("enrol", _DEPLOYMENT),
    "admit": ("enrol", _DEPLOYMENT),
    "keys": ("keys", _DEPLOYMENT),
    "roster": ("roster", _DEPLOYMENT),
    "certs": ("certs", _DEPLOYMENT),
    "broker": ("broker", _DEPLOYMENT),
    "silo": ("silo", _DEPLOYMENT),
    "study": ("study", _DEPLOYMENT),
    "trail": ("trail", _DEPLOYMENT),
    "console": ("console", _DEPLOYMENT),
}
#: Commands that have commands of their own: ``app`` in their module.
_GROUPS = {
    "ledger", "universe", "keys", "roster", "certs", "broker", "silo", "study", "trail", "console",
}  # fmt: skip
#: Paragraphs of a help text flow.
_STYLE: Literal["markdown"] = "markdown"


class _Commands(MutableMapping[str, Any]):
    """Typer's table of commands, filled as they are asked for: each costs time to load."""

    def __init__(self) -> None:
        self._loaded: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._loaded:
            module, panel = _COMMANDS[name]
            found = import_module(f"silograph.cli.{module}")
            around = typer.Typer(rich_markup_mode=_STYLE, pretty_exceptions_enable=False)
            around.callback()(lambda: None)
            if name in _GROUPS:
                around.add_typer(found.app, name=name, rich_help_panel=panel)
            else:
                around.command(name, rich_help_panel=panel)(getattr(found, name))
            self._loaded[name] = get_group(around).commands[name]
        return self._loaded[name]

    def __setitem__(self, name: str, command: Any) -> None:
        self._loaded[name] = command

    def __delitem__(self, name: str) -> None:
        del self._loaded[name]

    def __iter__(self) -> Iterator[str]:
        return iter(_COMMANDS)

    def __len__(self) -> int:
        return len(_COMMANDS)

    def __contains__(self, name: object) -> bool:
        return name in _COMMANDS


class _Group(TyperGroup):
    """The command ``silograph``."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = _Commands()


def show_version(wanted: bool) -> None:
    """Print the version and what it was built and runs with, and end."""
    if wanted:
        typer.echo(_version())
        raise typer.Exit


def _version() -> str:
    from importlib.metadata import version  # noqa: PLC0415 (it loads a lot)

    profile, commit, _ = _core.build()
    extras = [name for name, libraries in EXTRAS.items() if all(map(find_spec, libraries))]
    python = f"{platform.python_implementation()} {platform.python_version()}"
    system = f"{platform.system()} {platform.machine()}"
    level = _core.simd_levels()[-1]
    return (
        f"silograph {__version__} ({python}, NumPy {version('numpy')}, {system})\n"
        f"core: Rust, {profile} profile, {level}; commit {commit or 'not recorded'}\n"
        f"extras: {', '.join(extras) or 'none'}"
    )


app = typer.Typer(
    name="silograph",
    cls=_Group,
    help="Statistics of a graph that no one holds, under edge differential privacy.",
    epilog=HELP,
    no_args_is_help=True,
    rich_markup_mode=_STYLE,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback()
def options(
    context: typer.Context,
    version: Annotated[
        bool,
        typer.Option("--version", callback=show_version, is_eager=True, help="Show the version."),
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show tracebacks of errors; may stand anywhere.")
    ] = False,
) -> None:
    """Options of every command."""
    context.with_resource(noted())
