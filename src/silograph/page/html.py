"""Pages from templates: every value is escaped where it goes in, whatever its source.

A page forbids itself the network (a content security policy), follows the reader's light or dark
setting until the button in its corner says otherwise, prints in light colours, and fits a phone.
The same input gives the same bytes.

>>> environment().from_string("{{ who }}: {{ loss }}").render(who="<b>", loss="ε = 3")
'&lt;b&gt;: ε\\xa0=\\xa03'
"""

import re
from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

from silograph.extras import library
from silograph.page.charts import Figure, specifications, vega

__all__ = ["environment", "page"]

#: Spaces at which a number or a setting is not broken: 5 × 10⁶, ε = 3.
_TOGETHER: Final = re.compile(r" ([×=]) (?=[\d−])")


@cache
def environment(*folders: Path) -> Any:
    """The Jinja2 environment of all pages; ``folders`` hold templates beside those of the package.

    A name that a template uses and is not given is an error. Data for scripts goes through
    ``tojson``, which leaves no character that could end the element or start a comment; what JSON
    cannot say is refused.
    """
    jinja = library("jinja2", "pages")
    made = jinja.Environment(
        loader=jinja.ChoiceLoader(
            [jinja.FileSystemLoader(folders), jinja.PackageLoader("silograph.page")]
        ),
        autoescape=True,
        undefined=jinja.StrictUndefined,
        finalize=_together,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    made.policies["json.dumps_kwargs"] = {"allow_nan": False, "separators": (",", ":")}
    made.globals["asset"] = _asset
    made.filters["in_script"] = _in_script
    return made


def page(template: str, figures: Iterable[Figure], *folders: Path, **values: Any) -> str:
    """The whole file: a template that extends ``page.html``, with what draws its figures."""
    data = specifications(figures)
    found = environment(*folders).get_template(template)
    return str(found.render(values, figures=data, vega=vega() if data else ""))


def _together(value: Any) -> Any:
    """A text with the spaces in its numbers made unbreakable; markup stays as it is."""
    if isinstance(value, str) and not hasattr(value, "__html__"):
        return _TOGETHER.sub("\u00a0\\1\u00a0", value)
    return value


def _asset(name: str) -> str:
    """A style sheet or a script that comes with the package."""
    return files("silograph.page").joinpath("assets", name).read_text(encoding="utf-8")


def _in_script(source: str) -> str:
    """A script of our own or of a library, as it is but for what would end the element."""
    return source.replace("</script", "<\\/script").replace("<!--", "<\\!--")
