"""The figures of pages, from stored measurements: what `make bench-tables` writes.

``docs/benchmarks/NAME.json`` is what a benchmark found; see :mod:`benchmarks.harness`. A page
quotes one of its tables, or its words, between two comments:

    <!-- bench: NAME.KEY -->
    …
    <!-- /bench -->

Files that are given are stored first: ``python -m benchmarks.tables build/benchmarks/union.json``.
A table without a stored measurement says which command makes one; words are then left as they are.
"""

import re
import sys
from pathlib import Path

from benchmarks.harness import ROOT, Report

__all__ = ["STORED", "pages", "rewritten"]

#: Where measurements that pages quote are stored.
STORED = ROOT / "docs" / "benchmarks"
QUOTED = re.compile(r"(<!-- bench: ([\w-]+)\.([\w-]+) -->)(.*?)(<!-- /bench -->)", flags=re.S)


def pages() -> list[Path]:
    """Pages that may quote a measurement."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def rewritten(text: str, folder: Path = STORED) -> str:
    """A page with every quotation as the measurements of a folder have it."""

    def quote(found: re.Match[str]) -> str:
        begin, name, key, before, end = found.groups()
        stored = folder / f"{name}.json"
        report = Report.from_json(stored.read_text()) if stored.exists() else None
        is_table = before.startswith("\n")
        if report is None:
            made = f"*No measurement is stored here; `make bench-{name}` makes one.*"
            return f"{begin}\n{made}\n{end}" if is_table else found[0]
        if key not in (report.tables if is_table else report.texts):
            raise SystemExit(f"{stored} has no {key}, which a page quotes")
        if is_table:
            return f"{begin}\n{report.tables[key].markdown()}\n\n*{report.origin}.*\n{end}"
        return f"{begin}{report.texts[key]}{end}"

    return QUOTED.sub(quote, text)


def main() -> int:
    for given in map(Path, sys.argv[1:]):
        report = Report.from_json(given.read_text())
        if unfair := [verdict for verdict in report.missed if verdict.fairness]:
            print(f"{given} is not stored: {unfair[0]}", file=sys.stderr)
            return 1
        STORED.mkdir(exist_ok=True)
        (STORED / f"{report.name}.json").write_text(report.to_json())
    for page in pages():
        text = page.read_text()
        if (new := rewritten(text)) != text:
            page.write_text(new)
            print(page.relative_to(ROOT))
    return 0


if __name__ == "__main__":
    sys.exit(main())
