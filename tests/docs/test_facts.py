"""Tables that people wrote, against what the program says."""

import re
from pathlib import Path

import pytest

import silograph
from silograph.cli import exits
from silograph.methods.catalogue import ANSWERING, METHODS
from silograph.methods.union import PROTOCOLS
from tests.docs.readers import ROOT, pages

DOCS = ROOT / "docs"
LINK = re.compile(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)")


def test_exit_codes() -> None:
    """The page has every code that the program ends with, and no other."""
    table = (DOCS / "reference/exits.md").read_text()
    stated = {int(code) for code in re.findall(r"^\| (\d+) \|", table, flags=re.M)}
    codes = {exits.FINE, exits.NO, exits.WRONG, exits.REFUSED, exits.MISBEHAVED, exits.ABORTED}
    assert stated == codes | {exits.FAULT, exits.LATER}


def test_methods_and_protocols() -> None:
    page = (DOCS / "methods.md").read_text()
    head = next(line for line in page.splitlines() if line.startswith("| |"))
    assert set(re.findall(r"`([^`]+)`", head)) == set(ANSWERING)
    assert all(f"`{method}`" in page for method in METHODS)
    table = (DOCS / "explanation/unions.md").read_text()
    stated = set(re.findall(r"^\| `([^`]+)`", table, flags=re.M))
    assert stated == set(PROTOCOLS) - {"elgamal"}  # a short name of two of them


def test_every_public_name_is_in_the_reference() -> None:
    text = (DOCS / "reference/api.md").read_text()
    stated = set(re.findall(r":: silograph\.(\w+)$", text, flags=re.M))
    assert stated == set(silograph.__all__) - {"__version__", "errors", "report"}


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_links(page: Path) -> None:
    """Links are files that are there, as they are read in the repository."""
    for target in LINK.findall(page.read_text()):
        assert (page.parent / target).exists(), f"{page.name}: {target}"
