"""Spends, limits and amounts, their exact sums, and the ledger's printed table."""

import math
import sys
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from types import MappingProxyType
from typing import Any

from rich.cells import cell_len, set_cell_size

from silograph.dp.loss import shown_loss, worst_losses
from silograph.errors import ArgumentError

__all__ = [
    "ANYONE",
    "Amount",
    "Freeze",
    "Limit",
    "Spend",
    "check_collusion",
    "check_delta",
    "check_loss",
    "check_losses",
    "check_name",
    "from_units",
    "loss_at",
    "render",
    "request",
    "round_down",
    "round_up",
    "timestamp",
    "to_units",
]


# --- Spends, limits and amounts -------------------------------------------------------------------
#
# A sum of losses is an upper bound only if it is never rounded down. Sums here are exact, because
# every float is a fraction. For display, the amount spent is rounded up and the amount left is
# rounded down, so whatever is shown as left can be spent.

#: The collusion level of a loss that holds against coalitions of any size.
ANYONE = (1 << 31) - 1

_LONGEST_NAME = 200
# Every finite float is an integer multiple of 2^-1074, which is the unit here.
_SCALE = 1074


def to_units(value: float) -> int:
    """Convert a finite float to an integer number of units. Sums of units are exact and fast.

    >>> 10 * to_units(0.1) > to_units(1.0) > to_units(sum([0.1] * 10))
    True
    """
    numerator, denominator = value.as_integer_ratio()
    return numerator << (_SCALE + 1 - denominator.bit_length())


def from_units(units: int) -> Fraction:
    """Convert a number of units to a fraction."""
    return Fraction(units, 1 << _SCALE)


def round_up(value: Fraction) -> float:
    """Return the smallest float that is at least ``value``."""
    try:
        near = float(value)
    except OverflowError:
        return math.inf if value > 0 else -sys.float_info.max
    return near if Fraction(near) >= value else math.nextafter(near, math.inf)


def round_down(value: Fraction) -> float:
    """Return the largest float that is at most ``value``."""
    return -round_up(-value) + 0.0  # turns −0.0 into 0.0


def loss_at(losses: Mapping[int, float], collusion: int) -> tuple[int, float]:
    """Return the loss against any coalition of at most ``collusion`` silos, and its level.

    A larger coalition can see less than a smaller one: in baseline and feat+, the members' own
    reports need no protection from the coalition. Therefore the largest loss of all levels up to
    ``collusion`` counts. If no loss was recorded for ``collusion`` itself, the next higher level is
    used instead. If there is no higher level either, the loss is infinite.

    >>> loss_at({0: 1.0, 1: 0.5}, 1)
    (1, 1.0)
    >>> loss_at({0: 1.0, 2: 1.5}, 1)
    (2, 1.5)
    >>> loss_at({0: 1.0}, 1)
    (1, inf)
    """
    level = min((t for t in losses if t >= collusion), default=None)
    return (collusion, math.inf) if level is None else (level, worst_losses(losses)[level])


@dataclass(frozen=True)
class Amount:
    """An epsilon and a delta at one collusion level. ``epsilon`` may be ``math.inf``."""

    epsilon: float
    delta: float
    collusion: int

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON. An infinite epsilon becomes the text ``"unbounded"``."""
        return {
            "epsilon": _plain(self.epsilon),
            "delta": self.delta,
            "collusion": self.collusion,
        }

    def __str__(self) -> str:
        return self.text()

    def text(self, *, left: bool = False) -> str:
        """The amount in six digits, rounded up; what is ``left`` of a budget is rounded down."""
        delta = f", δ = {shown_loss(self.delta, left=left)}" if self.delta else ""
        bounded = math.isfinite(self.epsilon)
        epsilon = shown_loss(self.epsilon, left=left) if bounded else _plain(self.epsilon)
        return f"ε = {epsilon}{delta}"


@dataclass(frozen=True)
class Limit:
    """The most that may be spent on a lineage in total, and the collusion level that counts."""

    lineage: str
    epsilon: float
    delta: float
    collusion: int
    time: str

    def amount(self) -> Amount:
        """Return the limit as an amount."""
        return Amount(self.epsilon, self.delta, self.collusion)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "lineage": self.lineage,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "collusion": self.collusion,
            "time": self.time,
        }

    def tightened(self, other: "Limit") -> "Limit":
        """Return the limit that keeps both this one and ``other``, with this one's time.

        >>> old, new = Limit("a", 5.0, 0.0, 2, "monday"), Limit("a", 3.0, 1e-6, 1, "friday")
        >>> new.tightened(old)
        Limit(lineage='a', epsilon=3.0, delta=0.0, collusion=2, time='friday')
        """
        # Losses never decrease with the level, so the higher level bounds those at both.
        return replace(
            self,
            epsilon=min(self.epsilon, other.epsilon),
            delta=min(self.delta, other.delta),
            collusion=max(self.collusion, other.collusion),
        )


@dataclass(frozen=True)
class Freeze:
    """That a ledger was frozen, or thawed, and why. Nothing can be spent on a frozen ledger."""

    frozen: bool
    reason: str
    time: str

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {"frozen": self.frozen, "reason": self.reason, "time": self.time}

    def __str__(self) -> str:
        return f"{'frozen' if self.frozen else 'thawed'} {self.time[:10]}: {self.reason}"


@dataclass(frozen=True)
class Spend:
    """One entry: what a phase of a run costs against any coalition of at most t silos, for every t.

    ``losses`` maps each t to an epsilon and never decreases with t. Where an old ledger recorded a
    smaller loss at a higher t, the largest loss up to that t is used.

    ``number`` counts the ledger's spends from 1, in the order of writing. ``repeated`` means that
    the same spend was already recorded, so nothing was paid this time.
    """

    number: int
    lineage: str
    run: str
    phase: str
    losses: Mapping[int, float]
    delta: float
    view: str
    method: str
    time: str
    repeated: bool = field(default=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "losses", MappingProxyType(worst_losses(self.losses)))

    def same_as(self, other: "Spend") -> bool:
        """Return whether both record the same payment. Their numbers and times may differ."""
        return self._content() == other._content()

    def _content(self) -> tuple[object, ...]:
        key = (self.lineage, self.run, self.phase)
        return (*key, dict(self.losses), self.delta, self.view, self.method)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON. An infinite epsilon becomes the text ``"unbounded"``."""
        return {
            "number": self.number,
            "lineage": self.lineage,
            "run": self.run,
            "phase": self.phase,
            "losses": {str(t): _plain(epsilon) for t, epsilon in self.losses.items()},
            "delta": self.delta,
            "view": self.view,
            "method": self.method,
            "time": self.time,
        }

    def __str__(self) -> str:
        losses = ", ".join(f"t = {t}: {_plain(epsilon)}" for t, epsilon in self.losses.items())
        delta = f", δ = {self.delta}" if self.delta else ""
        return f"{self.method}, ε at {losses}{delta}, view {self.view}"


def _plain(epsilon: float) -> float | str:
    return "unbounded" if math.isinf(epsilon) else epsilon


def request(
    lineage: str,
    run: str,
    phase: str,
    losses: Mapping[int, float],
    delta: float,
    view: str,
    method: str,
    unbounded: bool,
    time: str,
) -> Spend:
    """Check all arguments and return a spend that has no number yet."""
    return Spend(
        0,
        check_name("a lineage", lineage),
        check_name("a run id", run),
        check_name("a phase", phase),
        check_losses(losses, unbounded),
        check_delta(delta),
        check_name("a view", view),
        check_name("a method", method),
        time,
    )


def check_name(what: str, value: object) -> str:
    """Refuse a name that could be confused with another. A name is the key of a budget."""
    if not isinstance(value, str) or not value or value != value.strip():
        raise ArgumentError(f"{what} must be a text without white space around it, not {value!r}")
    if len(value) > _LONGEST_NAME or not value.isprintable():
        raise ArgumentError(
            f"{what} must have at most {_LONGEST_NAME} characters, all printable: {value[:40]!r}"
        )
    if value != unicodedata.normalize("NFC", value):
        raise ArgumentError(f"{what} {value!r} must be in Unicode's composed form (NFC)")
    return value


def check_loss(what: str, value: object, unbounded: bool = False) -> float:
    """Check that a loss is a number of at least 0; infinity needs ``unbounded``."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise ArgumentError(f"{what} must be a number, not {value!r}")
    if not value >= 0:  # also true for NaN
        raise ArgumentError(f"{what} must be at least 0, not {value!r}")
    if value == math.inf and not unbounded:
        raise ArgumentError(
            f"{what} is infinite: a loss without a bound is recorded only with unbounded=True"
        )
    try:
        exact = float(value)
    except OverflowError:
        exact = math.inf
    if exact != value:
        raise ArgumentError(f"{what} is an integer too large to be kept exactly")
    return exact + 0.0  # turns −0.0 into 0.0


def check_losses(losses: Mapping[int, float], unbounded: bool) -> dict[int, float]:
    """Check the loss of every collusion level and return them sorted by level."""
    if not isinstance(losses, Mapping) or not losses:
        raise ArgumentError(
            "losses must map collusion levels to epsilons, with at least one entry, "
            f"such as {{0: 1.0, 1: 1.23}}, not {losses!r}"
        )
    checked = {
        check_collusion(t): check_loss(f"epsilon at t = {t}", epsilon, unbounded)
        for t, epsilon in losses.items()
    }
    return dict(sorted(checked.items()))


def check_delta(value: object) -> float:
    """Check that a delta is from 0 to 1."""
    delta = check_loss("delta", value)
    if delta > 1:
        raise ArgumentError(f"delta must be from 0 to 1, not {value!r}")
    return delta


def check_collusion(value: object) -> int:
    """Check that a collusion level is an integer of at least 0."""
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 1 << 31:
        raise ArgumentError(f"a collusion level must be an integer of at least 0, not {value!r}")
    return value


def timestamp(now: datetime) -> str:
    """Return a time as ISO 8601 text in UTC, to the millisecond."""
    if now.tzinfo is None:
        raise ArgumentError("the ledger's clock must give times with a time zone")
    return now.astimezone(UTC).isoformat(timespec="milliseconds")


# --- A ledger's export as a table, 80 columns wide ------------------------------------------------

_WIDTH = 80
_NAME = 29
_DIGITS = 6


def render(name: str, export: dict[str, Any]) -> str:
    """Return a table with one line per lineage, and a second line for its deltas if it has any."""
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
    freezes = [Freeze(**entry) for entry in export["freezes"]]
    lines.extend(map(str, freezes))
    if freezes and freezes[-1].frozen:
        lines.append("FROZEN: nothing can be spent; see 'silograph ledger thaw --help'")
    return "\n".join(line.rstrip() for line in lines)


def _line(lineage: str, t: str, limit: str, spent: str, left: str, spends: str) -> str:
    name = set_cell_size(_cut(lineage, _NAME), _NAME)
    return f"{name} {t:>3} {limit:>12} {spent:>12} {left:>12} {spends:>7}"


def _cut(text: str, width: int) -> str:
    return text if cell_len(text) <= width else set_cell_size(text, width - 1).rstrip() + "…"


def _count(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def _number(value: float | str, rounding: str) -> str:
    """Format with six digits. Spent amounts are rounded up, limits and what is left down."""
    if isinstance(value, str):
        return value
    return f"{Context(prec=_DIGITS, rounding=rounding).create_decimal(Decimal(repr(value))):g}"
