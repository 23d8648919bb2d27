"""``silograph --version``: what exactly is installed."""

import platform
from importlib.util import find_spec

import numpy as np
import typer

from silograph import __version__, _core
from silograph.extras import EXTRAS
from silograph.graph.bitrows import simd_levels

__all__ = ["show_version"]


def show_version(wanted: bool) -> None:
    """Print the version and what it was built and runs with, and end."""
    if wanted:
        typer.echo(_text())
        raise typer.Exit


def _text() -> str:
    profile, commit = _core.build()
    extras = [name for name, libraries in EXTRAS.items() if all(map(find_spec, libraries))]
    python = f"{platform.python_implementation()} {platform.python_version()}"
    system = f"{platform.system()} {platform.machine()}"
    return (
        f"silograph {__version__} ({python}, NumPy {np.__version__}, {system})\n"
        f"core: Rust, {profile} profile, {simd_levels()[-1]}; commit {commit or 'not recorded'}\n"
        f"extras: {', '.join(extras) or 'none'}"
    )
