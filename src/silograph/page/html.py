"""One self-contained page: text that is escaped, styles and scripts that are in it.

Elements are built from the inside out. A text is escaped wherever it comes from; only what is
:class:`Markup`, and only this module makes it, goes in as it is.

>>> element("p", "a < b, ", element("em", "c & d"), class_="note")
Markup('<p class="note">a &lt; b, <em>c &amp; d</em></p>')

The page forbids itself the network (a content security policy), follows the reader's light or dark
setting until the button in its corner says otherwise, prints in light colours, and fits a phone.
The same input gives the same bytes.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from importlib.resources import files
from typing import Any, Final

__all__ = [
    "Child",
    "Markup",
    "asset",
    "element",
    "json_script",
    "page",
    "script",
    "section",
    "table",
]

#: Spaces at which a number or a setting is not broken: 5 × 10⁶, ε = 3.
_TOGETHER: Final = re.compile(r" ([×=]) (?=[\d−])")
_VOID: Final = frozenset({"br", "hr", "img", "input", "link", "meta", "wbr"})

#: Nothing is fetched: what is not in the file does not exist. Vega compiles its expressions.
_POLICY: Final = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline' 'unsafe-eval'; "
    "img-src data: blob:; font-src data:; base-uri 'none'; form-action 'none'"
)


class Markup(str):
    """HTML that is safe to put into a page as it is."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"Markup({super().__repr__()})"


Child = str | Markup | Iterable["Child"] | None


def element(name: str, /, *children: Child, **attributes: str | int | bool | None) -> Markup:
    """One element. ``class_`` and ``for_`` lose their underscore, others turn theirs to a hyphen.

    True stands for an attribute without a value; None and False for none.
    """
    written = "".join(
        _attribute(key.removesuffix("_").replace("_", "-"), value)
        for key, value in attributes.items()
    )
    if name in _VOID:
        return Markup(f"<{name}{written}>")
    return Markup(f"<{name}{written}>{_inside(children)}</{name}>")


def _attribute(name: str, value: str | int | bool | None) -> str:
    if value is None or value is False:
        return ""
    return f" {name}" if value is True else f' {name}="{escape(str(value))}"'


def _inside(child: Child) -> str:
    if child is None:
        return ""
    if isinstance(child, Markup):
        return str.__str__(child)
    if isinstance(child, str):
        return _TOGETHER.sub("\u00a0\\1\u00a0", escape(child, quote=False))
    return "".join(_inside(one) for one in child)


def table(
    headers: Sequence[str],
    rows: Iterable[Sequence[Child]],
    *,
    caption: str,
    numeric: Iterable[int] = (),
    class_: str | None = None,
    shown: bool = True,
) -> Markup:
    """A table in a box of its own, which scrolls where the table is wider than the page.

    ``numeric`` columns stand at the right. The caption is for everybody, or, where it is not
    ``shown``, for screen readers alone.
    """
    right = dict.fromkeys(numeric, "number")
    head = element(
        "tr", [element("th", h, scope="col", class_=right.get(i)) for i, h in enumerate(headers)]
    )
    body = [
        element("tr", [element("td", cell, class_=right.get(i)) for i, cell in enumerate(row)])
        for row in rows
    ]
    return element(
        "div",
        element(
            "table",
            element("caption", caption, class_=None if shown else "unseen"),
            element("thead", head),
            element("tbody", body),
        ),
        class_=" ".join(filter(None, ("scroll", class_))),
        tabindex="0",
        role="region",
        aria_label=caption,
    )


def section(anchor: str, title: str, *children: Child, level: int = 2) -> Markup:
    """A part of the page with a heading that can be linked to."""
    heading = element(f"h{level}", title, id=f"{anchor}-title")
    return element("section", heading, *children, id=anchor, aria_labelledby=f"{anchor}-title")


def json_script(anchor: str, value: Any) -> Markup:
    """Data for the page's scripts. No text in it can end the element or start a comment."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(f'<script type="application/json" id="{escape(anchor)}">{text}</script>')


def script(source: str) -> Markup:
    """A script of our own or of a library, as it is but for what would end the element."""
    source = source.replace("</script", "<\\/script").replace("<!--", "<\\!--")
    return Markup(f"<script>{source}</script>")


def asset(name: str) -> str:
    """A style sheet or a script that comes with the package."""
    return files("silograph.page").joinpath("assets", name).read_text(encoding="utf-8")


def page(
    title: str,
    *body: Child,
    subtitle: Child = None,
    contents: Mapping[str, str] | None = None,
    scripts: Iterable[Markup] = (),
    footer: Child = None,
    styles: str = "",
) -> str:
    """The whole file. ``contents`` maps anchors of sections to their names in the index;
    ``styles`` are rules of this kind of page beside those of all pages."""
    index = contents and element(
        "nav",
        element("ul", [element("li", element("a", n, href=f"#{a}")) for a, n in contents.items()]),
        aria_label="On this page",
    )
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=_POLICY),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("title", title),
        Markup(f"<style>{asset('page.css')}{styles}</style>"),
    )
    toggle = element(
        "button", "Dark", type="button", id="theme", class_="toggle", aria_pressed="false"
    )
    content = element(
        "body",
        element("a", "To the text", href="#main", class_="skip"),
        element("div", toggle, class_="corner"),
        element(
            "main",
            element(
                "header",
                element("h1", title),
                element("div", subtitle, class_="lead") if subtitle else None,
            ),
            index,
            *body,
            id="main",
        ),
        element("footer", footer) if footer else None,
        script(asset("page.js")),
        *scripts,
    )
    return f"<!doctype html>\n{element('html', head, content, lang='en')}\n"
