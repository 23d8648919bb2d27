"""Optional libraries, which come with the package's extras and are imported only when needed."""

from importlib import import_module
from typing import Any

from silograph.errors import MissingExtraError

__all__ = ["EXTRAS", "library"]

#: The modules of each extra; pyproject.toml lists their distributions.
EXTRAS = {
    "interop": ("igraph", "networkx", "pandas", "polars", "pyarrow", "scipy"),
    "deploy": ("cryptography", "nats", "prometheus_client"),
    "websocket": ("aiohttp",),
    "dask": ("dask", "distributed"),
    "report": ("altair", "jinja2", "vl_convert"),
    "console": ("jinja2", "python_multipart", "starlette", "uvicorn"),
}


def library(name: str, users: str) -> Any:
    """A module of an optional library; the error says what needs it and how to install it.

    >>> library("scipy.sparse", "sparse matrices").__name__
    'scipy.sparse'
    """
    package = name.partition(".")[0]
    extra = next(extra for extra, packages in EXTRAS.items() if package in packages)
    try:
        import_module(package)  # first, so that an error names the package
        return import_module(name)
    except ImportError as error:
        absent = isinstance(error, ModuleNotFoundError) and error.name == package
        what = "is not installed" if absent else f"cannot be imported ({error})"
        raise MissingExtraError(
            f"{users} need {package}, which {what}: pip install 'silograph[{extra}]'"
        ) from None
