"""JSON for programs, on the standard output and nothing else there."""

import json
import math
from typing import Any

import typer

__all__ = ["echo_json"]


def echo_json(value: Any) -> None:
    """Print plain values as one line; numbers that JSON does not know are null.

    >>> echo_json({"epsilon": 3.0, "bound": float("inf"), "query": "2 × ε"})
    {"epsilon": 3.0, "bound": null, "query": "2 × ε"}
    """
    typer.echo(json.dumps(_finite(value), ensure_ascii=False, allow_nan=False))


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(inner) for inner in value]
    return value
