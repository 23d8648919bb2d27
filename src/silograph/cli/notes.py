"""Warnings of the library as notes of one line each, on the standard error."""

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from silograph.errors import SilographWarning

__all__ = ["note", "noted"]


def note(text: str) -> None:
    """Say something beside the answer. Programs read the standard output, people both."""
    sys.stderr.write(f"note: {' '.join(text.split())}\n")


@contextmanager
def noted() -> Iterator[None]:
    """Inside, every warning of Silograph is a note, said once; those of others are as before."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", SilographWarning)
        before, said = warnings.showwarning, set()

        def show(
            message: Warning | str,
            category: type[Warning],
            filename: str,
            lineno: int,
            file: TextIO | None = None,
            line: str | None = None,
        ) -> None:
            if not issubclass(category, SilographWarning):
                before(message, category, filename, lineno, file, line)
            elif str(message) not in said:
                said.add(str(message))
                note(str(message))

        warnings.showwarning = show
        yield
