"""What does not hold in the paper, as data: with the tests that show it and the figures that do."""

import tomllib
from dataclasses import dataclass

from silograph.report.html import asset

__all__ = ["Erratum", "errata"]


@dataclass(frozen=True)
class Erratum:
    """One point: where it stands, what is printed, what is wrong with it, what we do instead."""

    number: int
    where: str
    printed: str
    wrong: str
    instead: str
    tests: tuple[str, ...]
    figure: str = ""


def errata() -> list[Erratum]:
    """All of them, by number."""
    entries = tomllib.loads(asset("errata.toml"))["erratum"]
    return [Erratum(**entry | {"tests": tuple(entry["tests"])}) for entry in entries]
