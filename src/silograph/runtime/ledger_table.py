"""A ledger's export as a table of 80 columns."""

from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from typing import Any

from rich.cells import cell_len, set_cell_size

__all__ = ["render"]

_WIDTH = 80
_NAME = 29
_DIGITS = 6


def render(name: str, export: dict[str, Any]) -> str:
    """One line a lineage, and one more for its deltas where there are any."""
    lineages = export["lineages"]
    counts = f"{_count(len(export['spends']), 'spend')}, {_count(len(lineages), 'lineage')}"
    lines = [f"{_cut(f'ledger {name}', _WIDTH - 2 - len(counts))}: {counts}"]
    if lineages:
        lines.append(_line("lineage", "t", "limit", "spent", "left", "spends"))
    for entry in lineages:
        limit, spent, left = entry["limit"], entry["spent"], entry["remaining"]
        lines.append(
            _line(
                entry["lineage"],
                str(spent["collusion"]),
                "none" if limit is None else _number(limit["epsilon"], ROUND_FLOOR),
                _number(spent["epsilon"], ROUND_CEILING),
                "" if left is None else _number(left["epsilon"], ROUND_FLOOR),
                str(entry["spends"]),
            )
        )
        if spent["delta"] or (limit is not None and limit["delta"]):
            lines.append(
                _line(
                    "  delta",
                    "",
                    "none" if limit is None else _number(limit["delta"], ROUND_FLOOR),
                    _number(spent["delta"], ROUND_CEILING),
                    "" if left is None else _number(left["delta"], ROUND_FLOOR),
                    "",
                )
            )
    for entry in export["restores"]:
        said = "nothing was" if entry["statement"] == "complete" else "what may have been"
        kept = " is counted" if entry["statement"] != "complete" else ""
        lines.append(
            f"restored {entry['time'][:10]} from entry {entry['base']}: {said} lost after it{kept}"
        )
    return "\n".join(line.rstrip() for line in lines)


def _line(lineage: str, t: str, limit: str, spent: str, left: str, spends: str) -> str:
    name = set_cell_size(_cut(lineage, _NAME), _NAME)
    return f"{name} {t:>3} {limit:>12} {spent:>12} {left:>12} {spends:>7}"


def _cut(text: str, width: int) -> str:
    return text if cell_len(text) <= width else set_cell_size(text, width - 1).rstrip() + "…"


def _count(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def _number(value: float | str, rounding: str) -> str:
    """Six digits, rounded away from comfort: spent up, left and limits down."""
    if isinstance(value, str):
        return value
    return f"{Context(prec=_DIGITS, rounding=rounding).create_decimal(Decimal(repr(value))):g}"
