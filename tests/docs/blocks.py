"""The code blocks of a page, in order.

Three kinds matter. ``console``: lines that begin with ``$`` are commands, the lines after one are
what it prints. ``python``: runs as it stands; an ``output`` block after it is what it prints. A
block with a caption is a file that the reader saves under that name.
"""

import re
from dataclasses import dataclass, replace
from pathlib import Path

__all__ = ["Block", "Command", "blocks", "commands"]

_FENCE = re.compile(r"^(?P<indent> *)(?P<ticks>`{3,}|~{3,})(?P<info>.*)$")
_DIRECTIVE = re.compile(r"^\{(?:code-block|code)\} *(?P<language>\S*)")
_OPTION = re.compile(r"^:(?P<name>[a-z-]+): *(?P<value>.*)$")
_NUMBERS_VARY = "<!-- numbers vary -->"


@dataclass(frozen=True)
class Block:
    """One fenced block."""

    page: Path
    #: The line of its opening fence, from 1.
    line: int
    language: str
    text: str
    #: The name under which a reader saves it; empty where it is not a file.
    caption: str = ""
    #: Whether what it prints is compared without its numbers.
    numbers_vary: bool = False

    @property
    def where(self) -> str:
        """For messages."""
        return f"{self.page.name}:{self.line}"


@dataclass(frozen=True)
class Command:
    """One command of a console block, and what stands below it."""

    text: str
    printed: str
    line: int


def blocks(page: Path) -> list[Block]:
    """Every fenced block of a page."""
    found: list[Block] = []
    lines = page.read_text().splitlines()
    number = 0
    while number < len(lines):
        opening = _FENCE.match(lines[number])
        if opening is None:
            number += 1
            continue
        indent, ticks = len(opening["indent"]), opening["ticks"]
        end = number + 1
        while end < len(lines) and lines[end].strip() != ticks:
            end += 1
        assert end < len(lines), f"{page.name}:{number + 1}: a block that does not end"
        body = [
            line[indent:] if not line[:indent].strip() else line for line in lines[number + 1 : end]
        ]
        before = next((line for line in reversed(lines[:number]) if line.strip()), "")
        block = Block(
            page, number + 1, opening["info"].strip(), "", "", before.strip() == _NUMBERS_VARY
        )
        found.append(_filled(block, body))
        number = end + 1
    return found


def _filled(block: Block, body: list[str]) -> Block:
    directive = _DIRECTIVE.match(block.language)
    caption = ""
    if directive is not None:
        block = replace(block, language=directive["language"])
        while body and (option := _OPTION.match(body[0])):
            caption = option["value"] if option["name"] == "caption" else caption
            body = body[1:]
        body = body[1:] if body and not body[0].strip() else body
    return replace(block, text="\n".join(body) + "\n", caption=caption.strip("`"))


def commands(block: Block) -> list[Command]:
    """The commands of a console block. A line that ends in a backslash goes on."""
    found: list[Command] = []
    goes_on = False
    for number, line in enumerate(block.text.splitlines(), block.line + 1):
        if goes_on:
            found[-1] = replace(found[-1], text=f"{found[-1].text}\n{line.removeprefix('> ')}")
        elif line.startswith("$ "):
            found.append(Command(line[2:], "", number))
        else:
            assert found, f"{block.page.name}:{number}: output before any command"
            found[-1] = replace(found[-1], printed=f"{found[-1].printed}{line}\n")
        goes_on = (goes_on or line.startswith("$ ")) and line.endswith("\\")
    return found
