"""What was met while a silo's edges were loaded."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadReport:
    """Counts of one load. Rows = edges + repeats + self-loops.

    It is for the silo that owns the edges: every number in it depends on them.
    """

    source: str
    """The file, or the kind of object."""
    format: str
    """How it was read, such as ``csv`` or ``networkx``."""
    rows: int
    """Rows that name an edge."""
    edges: int
    """Distinct edges that were kept."""
    repeats: int = 0
    """Rows merged into an edge that was there already, in either direction."""
    self_loops: int = 0
    """Rows dropped because both ends are the same node."""
    comments: int = 0
    """Comment lines."""
    header: tuple[str, ...] | None = None
    """The names in the first row, if it was taken for a header."""
    columns: tuple[str, str] | tuple[int, int] | None = None
    """The two columns that were read: names where there is a header, otherwise positions."""
    ignored: tuple[str, ...] | tuple[int, ...] = ()
    """The columns that were not read."""

    def __str__(self) -> str:
        kept = f"{_count(self.edges, 'edge')} from {_count(self.rows, 'row')}"
        lines = [f"{self.source} ({self.format}): {kept}"]
        if self.repeats:
            merged = _count(self.repeats, "repeat")
            lines.append(f"  {merged} merged (both directions count as one edge)")
        if self.self_loops:
            lines.append(f"  {_count(self.self_loops, 'self-loop')} dropped")
        if self.comments:
            lines.append(f"  {_count(self.comments, 'comment line')} skipped")
        if self.header is not None:
            lines.append(f"  header: {', '.join(self.header)}")
        if self.columns is not None and (self.header is not None or self.ignored):
            lines.append(f"  columns read: {self.columns[0]}, {self.columns[1]}")
        if self.ignored:
            lines.append(f"  columns ignored: {', '.join(map(str, self.ignored))}")
        return "\n".join(lines)


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'s' * (number != 1)}"
