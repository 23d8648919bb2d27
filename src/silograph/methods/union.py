"""Union protocols: the cost and channel of a union, settled in advance, and its machines."""

import re
from dataclasses import dataclass
from fractions import Fraction

from silograph import _core
from silograph.dp.channel import Channel
from silograph.dp.loss import PUBLISHED, View, shown_loss
from silograph.errors import ArgumentError, StudyError
from silograph.graph.bits import bits_in_chunks
from silograph.graph.fold import folded_in_chunks
from silograph.graph.silo import Silo
from silograph.messages.entropy import Entropy
from silograph.messages.identity import Identity, Roster
from silograph.messages.machine import CoordinatorSession, SiloSession
from silograph.messages.rounds import Bits
from silograph.methods.baseline.machines import ReportParameters, ReportSilo
from silograph.methods.clear.machines import ClearCoordinator
from silograph.methods.committee.coordinator import CommitteeCoordinator
from silograph.methods.committee.noise import CommitteeNoise
from silograph.methods.committee.party import CommitteeParty
from silograph.methods.committee.rounds import MEMBERS, CommitteeParameters
from silograph.methods.elgamal.coordinator import ElgamalCoordinator
from silograph.methods.elgamal.noise import ElgamalNoise, Variant
from silograph.methods.elgamal.rounds import ElgamalParameters
from silograph.methods.elgamal.silo import ElgamalSilo
from silograph.methods.masked.machines import (
    MaskedCoordinator,
    MaskedParameters,
    MaskedSilo,
    chunk_pairs,
)
from silograph.methods.masked.noise import MaskedNoise
from silograph.methods.study import COMMITTEE, PROTOCOLS, Index, Study, StudyMember, places_of

__all__ = [
    "SettledUnion",
    "channel_option",
    "default_protocol",
    "given_channel",
    "input_bits",
    "settle_union",
    "unclaimed",
]

PAIRS = Index()


Noise = MaskedNoise | CommitteeNoise | ElgamalNoise


@dataclass(frozen=True)
class SettledUnion:
    """One settled union: its channel, its views, and its loss at every level of collusion."""

    protocol: str
    silos: int
    collusion: int
    channel: Channel
    views: tuple[View, ...]
    #: The certified epsilon against the coordinator with t silos, for t = 0 … m−1.
    losses: dict[int, float]
    #: The parameters of the noise; None for ``clear``.
    noise: Noise | None
    #: A note for the caller; empty if there is nothing to say.
    advice: str = ""
    #: The members of a committee, in their order.
    members: tuple[StudyMember, ...] = ()

    def silo(
        self,
        pairs: int,
        subject: bytes,
        roster: Roster,
        run: bytes,
        place: int,
        identity: Identity,
        entropy: Entropy,
        silo: Silo,
        index: Index = PAIRS,
    ) -> SiloSession:
        """Make a silo's machine. For pairs, all work per edge is done here, before any message."""
        given = self.parameters(pairs, subject, roster)
        party = (roster, run, place, identity, entropy, input_bits(silo, index, given.chunk_pairs))
        match given:
            case MaskedParameters():
                return MaskedSilo(given, *party)
            case CommitteeParameters():
                return CommitteeParty(given, *party)
            case ElgamalParameters():
                return ElgamalSilo(given, *party)
        return ReportSilo(given, *party)

    def helper(
        self,
        pairs: int,
        subject: bytes,
        roster: Roster,
        run: bytes,
        place: int,
        identity: Identity,
        entropy: Entropy,
    ) -> SiloSession:
        """Make the machine of a helper, a member of the committee that has no edges."""
        given = self.parameters(pairs, subject, roster)
        if not isinstance(given, CommitteeParameters):
            raise StudyError(f"{self.protocol} has no helpers")
        return CommitteeParty(given, roster, run, place, identity, entropy, None)

    def coordinator(
        self,
        pairs: int,
        subject: bytes,
        roster: Roster,
        run: bytes,
        identity: Identity,
        entropy: Entropy,
    ) -> CoordinatorSession[_core.OpenBits]:
        """Make the coordinator's machine; its result is Y, one bit per pair."""
        match given := self.parameters(pairs, subject, roster):
            case MaskedParameters():
                return MaskedCoordinator(given, roster, run, identity)
            case CommitteeParameters():
                return CommitteeCoordinator(given, roster, run, identity, entropy)
            case ElgamalParameters():
                return ElgamalCoordinator(given, roster, run, identity)
        channel = (self.channel.p11, self.channel.p01)
        return ClearCoordinator(given, roster, run, identity, entropy, channel)

    def parameters(
        self, pairs: int, subject: bytes, roster: Roster
    ) -> MaskedParameters | CommitteeParameters | ElgamalParameters | ReportParameters:
        """What the machines agree on. For ``clear``, silos report their bits without noise."""
        match self.noise:
            case MaskedNoise(q, b):
                return MaskedParameters(q, b, self.silos, pairs, subject, chunk_pairs(q))
            case CommitteeNoise(numerator, places):
                members = places_of(self.members, roster)
                return CommitteeParameters(numerator, places, self.silos, members, pairs, subject)
            case ElgamalNoise(variant, coin):
                return ElgamalParameters(variant, coin, self.silos, pairs, subject)
        return ReportParameters(Fraction(1), Fraction(0), self.silos, pairs, subject)


def input_bits(silo: Silo, index: Index, chunk_pairs: int) -> Bits:
    """A silo's input to a union: one bit for each pair or bucket, in chunks."""
    if index.folded:
        return folded_in_chunks(silo, index.layout, index.hubs, chunk_pairs)
    return bits_in_chunks(silo, chunk_pairs)


def default_protocol(members: int, collusion: int, method: str = "feat") -> str:
    """The protocol that is used if none is named; ``members`` could be in a committee.

    >>> default_protocol(4, 1), default_protocol(3, 1), default_protocol(4, 2)
    ('committee', 'masked', 'masked')
    >>> default_protocol(2, 1, "sealed"), default_protocol(4, 1, "baseline")
    ('committee', '')
    >>> default_protocol(4, 1, "hubs")
    'masked'
    """
    if method == "sealed":
        return COMMITTEE
    if method == "hubs":
        return "masked"
    if method not in ("feat", "feat+"):
        return ""
    return COMMITTEE if members >= MEMBERS and collusion <= 1 else "masked"


def settle_union(
    protocol: str,
    epsilon: float,
    silos: int,
    collusion: int,
    channel: Channel | None = None,
    members: tuple[StudyMember, ...] = (),
) -> SettledUnion:
    """Choose the parameters of a union, or raise an error that says what is wrong.

    ``members`` are those of a committee. Without them its cost is known, but it cannot run.
    """
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
        return SettledUnion(protocol, silos, collusion, drawn, published, losses, None)
    noise: Noise
    if protocol == COMMITTEE:
        inside = any(member.kind == "coordinator" for member in members)
        noise = CommitteeNoise.choose(epsilon, silos, collusion, inside=inside)
        return SettledUnion(
            protocol, silos, collusion, noise.channel, noise.views, noise.losses, noise,
            members=members,
        )  # fmt: skip
    if protocol == "masked":
        noise = MaskedNoise.choose(epsilon, silos, collusion)
    else:
        variant = _variant(protocol, collusion)
        protocol = f"elgamal/{variant}"
        noise = ElgamalNoise.choose(variant, epsilon, silos, collusion)
    losses = {t: noise.epsilon(silos - t) for t in range(silos)}
    advice = _advice(protocol, noise)
    return SettledUnion(
        protocol, silos, collusion, noise.channel, noise.views, losses, noise, advice
    )


def _variant(protocol: str, collusion: int) -> Variant:
    """Plain ``elgamal`` means ``replace`` if nobody colludes, otherwise ``blinded``."""
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
    if noise.silos - noise.collusion == 1:
        return "with one honest silo, every silo adds all noise for itself, as in the local model"
    return unclaimed(noise.views)


def unclaimed(views: tuple[View, ...]) -> str:
    """What to tell a caller of the first view that is not claimed; empty if all are."""
    beyond = [view for view in views if not view.claimed]
    if not beyond:
        return ""
    return (
        f"with collusion=0 a silo that gets to see the release has a loss of "
        f"{shown_loss(beyond[0].epsilon)}; show it to the coordinator alone"
    )


def channel_option(channel: Channel) -> str:
    """A channel written as an option of a study: p11 and p01 in hexadecimal.

    >>> channel_option(Channel("3/4", "1/10"))
    '3/4,1/a'
    """
    parts = (channel.p11.as_integer_ratio(), channel.p01.as_integer_ratio())
    return ",".join(f"{above:x}/{below:x}" for above, below in parts)


def given_channel(study: Study) -> Channel | None:
    """The channel that the study asks for; only protocol ``clear`` may ask for one.

    Only digits are accepted: a short text such as 1e999999999 would cause a long computation.
    """
    given = study.options.get("channel")
    if given is None:
        return None
    if study.protocol != "clear":
        raise StudyError("a channel can be chosen for protocol 'clear' only")
    parts = re.fullmatch(r"([0-9a-f]+)/([0-9a-f]+),([0-9a-f]+)/([0-9a-f]+)", str(given))
    if parts is None:
        raise StudyError("option channel is two fractions, p11 and p01, in hexadecimal")
    a, b, c, d = (int(part, 16) for part in parts.groups())
    if not b or not d:
        raise StudyError("option channel has a denominator of 0")
    return Channel(Fraction(a, b), Fraction(c, d))
