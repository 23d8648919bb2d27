"""What a union protocol will cost and give, decided before anything is drawn or spent."""

from dataclasses import dataclass
from fractions import Fraction

from silograph.errors import ArgumentError
from silograph.privacy.channel import Channel
from silograph.privacy.masked import MaskedNoise
from silograph.privacy.views import PUBLISHED, View

__all__ = ["PROTOCOLS", "UnionPlan", "plan_union"]

PROTOCOLS = ("masked", "clear")


@dataclass(frozen=True)
class UnionPlan:
    """One union: its channel, who learns how much, and the loss at every level of collusion."""

    protocol: str
    silos: int
    collusion: int
    channel: Channel
    views: tuple[View, ...]
    #: The certified epsilon against the coordinator with t silos, for t = 0 … m−1.
    losses: dict[int, float]
    #: The masked union's parameters; for ``clear`` those that its channel was taken from.
    noise: MaskedNoise | None
    #: What the caller should be told.
    advice: str = ""

    @property
    def coin(self) -> tuple[int, Fraction]:
        """(q, b) of the masked union."""
        if self.noise is None:
            raise ArgumentError(f"protocol {self.protocol} has no masks")
        return self.noise.q, self.noise.b


def plan_union(
    protocol: str,
    epsilon: float,
    silos: int,
    collusion: int,
    channel: Channel | None = None,
) -> UnionPlan:
    """Choose the parameters of a union of so many silos, or say what is wrong with the request."""
    if protocol not in PROTOCOLS:
        raise ArgumentError(f"unknown protocol {protocol!r}; choose from {', '.join(PROTOCOLS)}")
    if channel is not None and protocol != "clear":
        raise ArgumentError("a channel can be chosen for protocol 'clear' only")
    noise = MaskedNoise.choose(epsilon, silos, collusion)
    if protocol == "clear":
        drawn = channel or noise.channel
        published = (View(PUBLISHED, drawn.epsilon),)
        losses = dict.fromkeys(range(silos), drawn.epsilon)
        return UnionPlan(protocol, silos, collusion, drawn, published, losses, noise)
    losses = {t: noise.epsilon(silos - t) for t in range(silos)}
    views, advice = noise.views, ""
    if noise.beyond is not None:
        views = (*views, noise.beyond)
        advice = (
            f"with collusion=0 a silo that gets to see the release has a loss of "
            f"{noise.beyond.epsilon:.4g}, not {epsilon:g}; show it to the coordinator alone"
        )
    elif silos - collusion == 1:
        advice = "one honest silo among all means plain local noise: every silo pays for itself"
    return UnionPlan(protocol, silos, collusion, noise.channel, views, losses, noise, advice)
