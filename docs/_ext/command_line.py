"""The directive ``command-line``: every command of ``silograph``, from the program itself.

The text is made when the pages are, from the same objects that parse the arguments, so it cannot
say what the program does not do.
"""

import re
from collections.abc import Iterator
from typing import Any

import typer.main
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from silograph.cli.app import app

__all__ = ["setup"]

#: The placeholder for a value, by the first word of Typer's name for its type.
_WORDS = {"path": "PATH", "int": "N", "float": "NUMBER", "str": "TEXT"}


class CommandLine(SphinxDirective):
    """All commands, each with its usage, its help and its parameters."""

    def run(self) -> list[nodes.Node]:
        """The sections."""
        self.env.note_reread()  # no file on the disk says when a command has changed
        text = "\n".join(_sections("silograph", typer.main.get_command(app)))
        return self.parse_text_to_nodes(text, allow_section_headings=True)


def _sections(name: str, command: Any) -> Iterator[str]:
    level = "##" if name.count(" ") < 2 else "###"
    yield f"\n{level} {name}\n"
    yield from _described(name, command)
    for word, inner in sorted(getattr(command, "commands", {}).items()):
        if not inner.hidden:
            yield from _sections(f"{name} {word}", inner)


def _described(name: str, command: Any) -> Iterator[str]:
    shown = [given for given in command.params if not getattr(given, "hidden", False)]
    group = hasattr(command, "commands")
    if not group:
        required = (_usage(given) for given in shown if given.required)
        yield f"```text\n{' '.join(['silograph' + name[9:], *required])} [OPTIONS]\n```\n"
    yield _markdown(command.help or "")
    if group:
        yield "\n" + "\n".join(
            f"- [`{name} {word}`](#{_anchor(f'{name} {word}')}): {_first(inner.help)}"
            for word, inner in sorted(command.commands.items())
            if not inner.hidden
        )
    if shown:
        yield "\n| parameter | meaning |\n|---|---|"
        for given in shown:
            yield f"| `{_written(given)}` | {_meaning(given)} |"
    epilogue = getattr(command, "epilog", None)
    if epilogue:
        yield "\n" + _markdown(epilogue)
    yield ""


def _usage(given: Any) -> str:
    if given.param_type_name == "argument":
        return f"{_metavar(given)}{'…' if given.nargs != 1 else ''}"
    return f"{given.opts[0]} {_metavar(given)}"


def _written(given: Any) -> str:
    """A parameter as it is typed. (A bar would end the cell of a table.)"""
    if given.param_type_name == "argument":
        return _usage(given)
    names = ", ".join([*given.opts, *given.secondary_opts])
    return names if given.is_flag else f"{names} {_metavar(given)}"


def _metavar(given: Any) -> str:
    if given.metavar or given.param_type_name == "argument":
        return str(given.metavar or given.name.upper().rstrip("_"))
    return _WORDS.get(given.type.name.split()[0], "NAME")


def _meaning(given: Any) -> str:
    said = [_markdown(given.help or "").replace("|", "\\|").replace("\n", " ")]
    choices = getattr(given.type, "choices", ())
    if choices:
        said.append("One of " + ", ".join(f"`{choice}`" for choice in choices) + ".")
    if getattr(given, "multiple", False) and not re.search("repeated", said[0]):
        said.append("May be repeated.")
    if given.required:
        said.append("**Required.**")
    elif given.default not in (None, False, True, ()) and given.show_default:
        said.append(f"Default: `{given.default}`.")
    return " ".join(part for part in said if part)


def _markdown(text: str) -> str:
    """Help as it is written for a terminal: its mark-up taken out, its examples as blocks."""
    text = re.sub(r"\[/?(?:bold|dim|italic|red|green|yellow|cyan)?\]", "", text.replace("\b", ""))
    parts = (part.strip() for part in text.split("\n\n"))
    return "\n\n".join(
        f"```text\n{part}\n```" if re.match(r"(\$ )?silograph ", part) else part for part in parts
    )


def _first(text: str | None) -> str:
    return _markdown(text or "").split("\n\n")[0].replace("\n", " ")


def _anchor(name: str) -> str:
    return name.replace(" ", "-")


def setup(sphinx: Sphinx) -> dict[str, Any]:
    """Tell Sphinx about the directive."""
    sphinx.add_directive("command-line", CommandLine)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
