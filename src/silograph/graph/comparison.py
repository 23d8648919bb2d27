"""How two node universes differ, for people who have to agree on one."""

from dataclasses import dataclass

from silograph.graph.faults import shown


@dataclass(frozen=True, slots=True, kw_only=True)
class UniverseComparison:
    """The outcome of :meth:`NodeUniverse.compare`; true when the two are the same."""

    same: bool
    """Whether the digests are equal: ids, order and normalisation."""
    sizes: tuple[int, int]
    """The number of nodes here and there."""
    only_here: int
    """How many ids the other does not have."""
    only_there: int
    """How many ids only the other has."""
    examples_here: tuple[str, ...]
    """A few of the ids that are only here."""
    examples_there: tuple[str, ...]
    """A few of the ids that are only there."""
    order_differs: bool
    """Whether the ids that both have stand in another order."""
    normalisation_differs: bool
    """Whether ``strip`` or ``case`` are different."""

    def __bool__(self) -> bool:
        return self.same

    def __str__(self) -> str:
        here, there = self.sizes
        if self.same:
            return f"the same universe of {here:,} nodes"
        lines = [f"different universes: {here:,} nodes here, {there:,} there"]
        sides = (
            ("here", self.only_here, self.examples_here),
            ("there", self.only_there, self.examples_there),
        )
        for side, count, examples in sides:
            if count:
                some = ", ".join(map(shown, examples)) + (", …" if count > len(examples) else "")
                lines.append(f"  only {side}: {count:,} ({some})")
        if self.order_differs:
            lines.append("  the common ids are in another order")
        if self.normalisation_differs:
            lines.append("  the normalisation (strip, case) is different")
        return "\n".join(lines)
