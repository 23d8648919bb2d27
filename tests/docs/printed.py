"""What a page says is printed, against what was printed."""

import re

__all__ = ["near_noise", "same"]

# A number as programs print it: with thousands, decimals, exponents, or as hexadecimal digits.
_NUMBER = re.compile(r"[0-9a-f]{8,}|[-−+]?(?:\d[\d,]*(?:\.\d+)?|\.\d+)(?:e[-+]?\d+)?")
_RULE = re.compile(r"[─━]+")
# A count as answers print it: its name, its value, its standard error.
_COUNT = re.compile(r"^(\S+) = ([\d,.]+) ± ([\d,.]+)$", re.MULTILINE)


def same(stated: str, printed: str, *, numbers_vary: bool = False) -> bool:
    """Whether the statement holds.

    ``…`` stands for anything within a line, and a line of ``…`` alone for any lines. White space at
    the ends of lines does not count. Where numbers vary, they and the widths that follow from them
    do not count either.
    """
    left, right = (_lines(text, numbers_vary) for text in (stated, printed))
    pattern = "".join(r"(?:.*\n)*" if line == "…" else f"{_pattern(line)}\n" for line in left)
    return re.fullmatch(pattern, "".join(f"{line}\n" for line in right)) is not None


def near_noise(text: str) -> list[str]:
    """The counts so near to their noise that some readers would be told of no usable answer.

    That is what is printed for a count below one standard error. From five, noise gets it there
    in one of 31,600 runs.
    """

    def value(digits: str) -> float:
        return float(digits.replace(",", ""))

    return [c[0] for c in _COUNT.finditer(text) if value(c[2]) < 5 * value(c[3])]


def _lines(text: str, numbers_vary: bool) -> list[str]:
    lines = [line.rstrip() for line in text.strip("\n").splitlines()]
    return [_shape(line) for line in lines] if numbers_vary else lines


def _shape(line: str) -> str:
    return re.sub(r"\s+", " ", _RULE.sub("─", _NUMBER.sub("#", line))).strip()


def _pattern(line: str) -> str:
    return ".*".join(map(re.escape, line.split("…")))
