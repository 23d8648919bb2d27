"""Draw the picture at the top of README.md, from a real answer: ``make picture``.

The tutorial's three banks, one run with a fixed seed. What is drawn: how many rings of three each
bank finds alone, what the three can say together, and the truth, which nobody could know.
"""

import contextlib
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import silograph as sg
from tests.docs.readers import ROOT, banks
from tests.support.parties import SeededEntropy

__all__ = ["PICTURE", "Seen", "drawn", "seen"]

PICTURE = ROOT / "docs" / "_static" / "rings.svg"
NAMES = ("north", "south", "west")
EPSILON = 3.0

#: The page's own colours, on a card of its own, so that it can be read on light and dark pages.
INK, QUIET, LINE, GREY, BLUE = "#1b1f24", "#5b6470", "#dfe3e8", "#9aa4b1", "#0f6cbd"
LEFT, WIDE, TOP, ROW = 210, 490, 92, 44
FONT = "system-ui,'Segoe UI',Roboto,'Noto Sans','Liberation Sans',sans-serif"


@dataclass(frozen=True)
class Seen:
    """The numbers of the picture."""

    alone: dict[str, int]
    value: float
    low: float
    high: float
    truth: int


def seen() -> Seen:
    """Make the banks, and ask once."""
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        banks(Path(folder))
        nodes = sg.NodeUniverse.from_file("nodes.txt")
        silos = [sg.Silo.from_file(nodes, f"{name}.csv", name=name) for name in NAMES]
        with sg.Ledger("banks.ledger") as ledger:
            federation = sg.Federation(silos, ledger, "payments", SeededEntropy(7))
            answer = federation.collect(EPSILON).triangles()
    low, high = (float(end) for end in answer.interval)
    alone = {silo.name: silo.triangles() for silo in silos}
    return Seen(alone, float(answer.value), low, high, sg.union(silos).triangles())


def drawn(found: Seen) -> str:
    """The picture as SVG."""
    scale = WIDE / (1.12 * max(found.high, found.truth))
    rows = []
    for place, (name, count) in enumerate(found.alone.items()):
        rows += _bar(place, f"bank {name}, alone", count * scale, GREY, f"{count:,}")
    middle = TOP + 3 * ROW + 14
    low, high = (LEFT + end * scale for end in (found.low, found.high))
    rows += _bar(3, "all three, with Silograph", found.value * scale, BLUE, "")
    rows += [
        f'<path d="M{low:.1f} {middle}H{high:.1f}M{low:.1f} {middle - 7}v14M{high:.1f} '
        f'{middle - 7}v14" stroke="{INK}" stroke-width="2" fill="none"/>',
        _text(high + 10, middle + 5, f"{found.value:,.0f}", INK, size=17, weight=700),
        _text(LEFT, middle + 34, f"between {found.low:,.0f} and {found.high:,.0f}, 95 % sure; "
              f"ε = {EPSILON:g}; no bank showed a payment", QUIET, size=13),
    ]  # fmt: skip
    truth = LEFT + found.truth * scale
    bottom = TOP + 4 * ROW - 16
    rows += [
        f'<path d="M{truth:.1f} {TOP - 12}V{bottom}" stroke="{QUIET}" stroke-dasharray="4 4"/>',
        _text(truth, TOP - 20, f"the truth, which nobody sees: {found.truth:,}", QUIET, 13,
              anchor="middle"),
    ]  # fmt: skip
    title = "Rings of three in the payments of three banks"
    whole = TOP + 4 * ROW + 36
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 760 {whole}" width="760" '
        f'height="{whole}" font-family="{FONT}" role="img" aria-label="{title}: each bank alone '
        f"finds {', '.join(f'{n:,}' for n in found.alone.values())}; together about "
        f'{found.value:,.0f}; the truth is {found.truth:,}.">\n'
        f'<rect x=".5" y=".5" width="759" height="{whole - 1}" rx="12" fill="#fff" '
        f'stroke="{LINE}"/>\n'
        f"{_text(24, 38, title, INK, size=18, weight=700)}\n" + "\n".join(rows) + "\n</svg>\n"
    )


def _bar(place: int, name: str, width: float, colour: str, label: str) -> list[str]:
    y = TOP + place * ROW
    return [
        _text(LEFT - 12, y + 19, name, INK, size=14, anchor="end"),
        f'<rect x="{LEFT}" y="{y}" width="{width:.1f}" height="28" rx="3" fill="{colour}"/>',
        *([_text(LEFT + width + 10, y + 19, label, INK, size=15, weight=600)] if label else []),
    ]


def _text(
    x: float, y: float, text: str, colour: str, size: int, weight: int = 400, anchor: str = "start"
) -> str:
    return (
        f'<text x="{x:.1f}" y="{y}" font-size="{size}" font-weight="{weight}" fill="{colour}" '
        f'text-anchor="{anchor}">{text}</text>'
    )


if __name__ == "__main__":
    PICTURE.write_text(drawn(seen()), encoding="utf-8")
    sys.stdout.write(f"{PICTURE.relative_to(ROOT)}\n")
