"""``silograph query``: ask a release. It has its own module so that it starts fast."""

import os
from pathlib import Path
from typing import Annotated, Any

# NumPy reads this when it is loaded. Queries multiply no matrices, so they need no threads, which
# take time to start.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import typer

from silograph.cli.options import Json, K, Query, check_question
from silograph.cli.output import echo_json
from silograph.estimators.estimate import Estimate
from silograph.estimators.release import Release

__all__ = ["query"]


def query(
    release: Annotated[Path, typer.Argument(help="A release file.", show_default=False)],
    name: Query,
    k: K = None,
    as_json: Json = False,
) -> None:
    """Ask a release a question. This costs no privacy: the release is already paid for.

    $ silograph query g.release kstars --k 3
    """
    check_question(name, k)
    answer = _ask(Release.load(release), name, k)
    if as_json:
        echo_json(answer.to_dict())
    else:
        typer.echo(str(answer))


def _ask(release: Release, name: str, k: int | None) -> Estimate[Any]:
    if k is not None:
        return release.kstars(k)
    found: Estimate[Any] = getattr(release, name)()
    return found
