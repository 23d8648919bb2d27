"""The directive ``notebook``: a notebook of ``examples/``, with the outputs that are stored in it.

The cells become a page of the manual: words as they are, code as code, and what a cell printed
below it. Tests run the notebooks, so nothing is run here.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

__all__ = ["setup"]


class Notebook(SphinxDirective):
    """One notebook, by its path from the page."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """The page."""
        path = Path(self.env.doc2path(self.env.docname)).parent / self.arguments[0]
        self.env.note_dependency(str(path.resolve()))
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        text = "\n\n".join(part for cell in cells for part in _parts(cell))
        return self.parse_text_to_nodes(text, allow_section_headings=True)


def _parts(cell: dict[str, Any]) -> Iterator[str]:
    source = "".join(cell["source"])
    if cell["cell_type"] == "markdown":
        yield source
        return
    yield f"```python\n{source}\n```"
    for output in cell["outputs"]:
        if output["output_type"] == "stream":
            yield f"```text\n{''.join(output['text']).rstrip()}\n```"
        else:
            yield f"```{{raw}} html\n{''.join(output['data']['text/html'])}\n```"


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive("notebook", Notebook)
    return {"parallel_read_safe": True}
