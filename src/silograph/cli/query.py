"""``silograph query``: ask a release. It has its own module so that it starts fast."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

# NumPy reads this when it is loaded. Queries multiply no matrices, so they need no threads, which
# take time to start.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import typer

from silograph.cli.options import Json, K, Query, check_question
from silograph.cli.output import echo_json
from silograph.estimators.estimate import Estimate
from silograph.estimators.release import Release
from silograph.estimators.release_file import FOLDED, kind_of

if TYPE_CHECKING:
    from silograph.estimators.folded_release import FoldedRelease

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
    answer = _ask(_loaded(release), name, k)
    if as_json:
        echo_json(answer.to_dict())
    else:
        typer.echo(str(answer))


def _loaded(path: Path) -> "Release | FoldedRelease":
    if kind_of(path) != FOLDED:
        return Release.load(path)
    from silograph.estimators.folded_release import FoldedRelease  # noqa: PLC0415

    return FoldedRelease.load(path)


def _ask(release: "Release | FoldedRelease", name: str, k: int | None) -> Estimate[Any]:
    if not isinstance(release, Release):
        return release.ask(name, k)
    if k is not None:
        return release.kstars(k)
    found: Estimate[Any] = getattr(release, name)()
    return found
