"""The command ``silograph``."""

import sys

__all__ = ["main"]


def main() -> None:
    """Run the command line; errors that we raise on purpose are one line and exit code 2."""
    # Imported here, so that `import silograph` does not load a command line.
    from silograph.cli.app import app  # noqa: PLC0415
    from silograph.errors import SilographError  # noqa: PLC0415

    debug = "--debug" in sys.argv
    try:
        app()
    except SilographError as error:
        if debug:
            raise
        sys.stderr.write(f"silograph: {error}\n")
        sys.exit(2)
