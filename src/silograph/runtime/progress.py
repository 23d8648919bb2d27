"""A progress bar with rate and time left; silent where there is no terminal."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

__all__ = ["Advance", "progress"]


class Advance(Protocol):
    """Reports that some pairs are done."""

    def __call__(self, pairs: int, /) -> None:
        """So many more."""


@contextmanager
def progress(what: str, pairs: int, *, shown: bool | None = None) -> Iterator[Advance]:
    """Show how many pairs are done; by default only on a terminal."""
    if not (sys.stderr.isatty() if shown is None else shown):
        yield lambda _pairs: None
        return
    from rich.console import Console  # noqa: PLC0415 - not needed where nothing is shown
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn  # noqa: PLC0415

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %  {task.fields[rate]}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=pairs, rate="")

        def advance(done: int, /) -> None:
            speed = bar.tasks[0].speed
            size, unit = (1e6, "M ") if speed and speed >= 1e5 else (1, "")
            rate = f"{speed / size:,.{int(size > 1)}f} {unit}pairs/s" if speed else ""
            bar.update(task, advance=done, rate=rate)

        yield advance
