"""What a union protocol will cost and give, decided before anything is drawn or spent."""

from dataclasses import dataclass

from silograph.errors import ArgumentError
from silograph.privacy.channel import Channel
from silograph.privacy.elgamal import ElgamalNoise, Variant
from silograph.privacy.loss import shown_loss
from silograph.privacy.masked import MaskedNoise
from silograph.privacy.views import PUBLISHED, View

__all__ = ["PROTOCOLS", "UnionPlan", "plan_union"]

PROTOCOLS = ("masked", "elgamal", "elgamal/printed", "elgamal/replace", "elgamal/blinded", "clear")


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
    #: The parameters of the noise; none for ``clear``.
    noise: MaskedNoise | ElgamalNoise | None
    #: What the caller should be told.
    advice: str = ""


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
    if channel is not None and not isinstance(channel, Channel):
        raise ArgumentError(f"channel must be a Channel, not {channel!r}")
    if channel is not None and protocol != "clear":
        raise ArgumentError("a channel can be chosen for protocol 'clear' only")
    if protocol == "clear":
        drawn = channel or MaskedNoise.choose(epsilon, silos, collusion).channel
        published = (View(PUBLISHED, drawn.epsilon),)
        losses = dict.fromkeys(range(silos), drawn.epsilon)
        return UnionPlan(protocol, silos, collusion, drawn, published, losses, None)
    noise: MaskedNoise | ElgamalNoise
    if protocol == "masked":
        noise = MaskedNoise.choose(epsilon, silos, collusion)
    else:
        variant = _variant(protocol, collusion)
        protocol = f"elgamal/{variant}"
        noise = ElgamalNoise.choose(variant, epsilon, silos, collusion)
    losses = {t: noise.epsilon(silos - t) for t in range(silos)}
    advice = _advice(protocol, noise)
    return UnionPlan(protocol, silos, collusion, noise.channel, noise.views, losses, noise, advice)


def _variant(protocol: str, collusion: int) -> Variant:
    """Plain ``elgamal`` means replace where nobody colludes, otherwise blinded."""
    match protocol:
        case "elgamal/printed":
            return "printed"
        case "elgamal/replace":
            return "replace"
        case "elgamal/blinded":
            return "blinded"
    return "blinded" if collusion else "replace"


def _advice(protocol: str, noise: MaskedNoise | ElgamalNoise) -> str:
    if protocol == "elgamal/printed":
        return (
            f"Algorithm 3 as printed has a loss of {shown_loss(noise.epsilon(noise.silos))} "
            "(the number of silos times ε), and its release is calibrated wrongly"
        )
    beyond = [view for view in noise.views if not view.claimed]
    if beyond:
        return (
            f"with collusion=0 a silo that gets to see the release has a loss of "
            f"{shown_loss(beyond[0].epsilon)}; show it to the coordinator alone"
        )
    if noise.silos - noise.collusion == 1:
        return "one honest silo among all means plain local noise: every silo pays for itself"
    return ""
