"""Downloads of single files, written completely or not at all."""

import http.client
import os
import sys
import tempfile
import urllib.error
import urllib.request
from pathlib import Path
from typing import BinaryIO
from urllib.parse import urlsplit

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn

from silograph.errors import DatasetError

MOST_BYTES = 64 << 20
TIMEOUT = 30.0
_STEP = 1 << 16


def fetch(url: str, target: Path, *, most: int = MOST_BYTES, timeout: float = TIMEOUT) -> None:
    """Download to a temporary file beside the target, then rename it.

    Only https is allowed, and plain http to this machine itself (for tests). More than ``most``
    bytes are refused, whatever size the server announces.
    """
    parts = urlsplit(url)
    if parts.scheme != "https" and not (
        parts.scheme == "http" and parts.hostname in ("127.0.0.1", "::1", "localhost")
    ):
        raise DatasetError(f"{url} is not an https address")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, partial = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    except OSError as error:
        raise DatasetError(f"{target.parent} cannot be written ({error.strerror})") from None
    try:
        with os.fdopen(handle, "wb") as file:
            _copy(url, file, most, timeout)
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, target)
    except (OSError, http.client.HTTPException) as error:
        if isinstance(error, urllib.error.HTTPError):
            error.close()  # the error holds an open response
        reason = getattr(error, "reason", None) or error
        raise DatasetError(f"{url} cannot be fetched ({reason})") from None
    finally:
        Path(partial).unlink(missing_ok=True)


def _copy(url: str, file: BinaryIO, most: int, timeout: float) -> None:
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn())
    console = Console(stderr=True)
    with (
        urllib.request.urlopen(url, timeout=timeout) as answer,  # noqa: S310 (scheme is checked)
        Progress(*columns, console=console, disable=not sys.stderr.isatty()) as progress,
    ):
        announced = int(answer.headers.get("Content-Length") or 0) or None
        task = progress.add_task(url.rpartition("/")[2], total=announced)
        done = 0
        while block := answer.read(_STEP):
            done += len(block)
            if done > most:
                raise DatasetError(f"{url} has more than {most:,} bytes")
            file.write(block)
            progress.update(task, completed=done)
        if announced is not None and done != announced:
            raise DatasetError(f"{url} ended after {done:,} of {announced:,} bytes")
