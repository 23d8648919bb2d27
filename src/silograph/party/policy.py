"""A party's policy: the studies it takes part in, decided by its operators in its own file.

What
    Limits on who may ask, which queries, at what cost and with which silos.
    :meth:`Policy.check_fields` checks the fields of a study, :meth:`Policy.check_committee` its
    committee, :meth:`Policy.check` what is computed from the study. Each raises a
    :class:`PolicyError` that names the first term that is not met. The text stays in the party's
    own log; other parties get only a code.
Why in a file
    People can read it and keep it under version control. It is the same for every study, and
    nothing in a study can change it.
"""

import math
from dataclasses import dataclass
from typing import Literal

from silograph.dp.loss import shown_loss, worst_losses
from silograph.errors import ArgumentError, DeadlineError, PolicyError
from silograph.messages.identity import Member, Roster
from silograph.methods.method import SettledStudy
from silograph.methods.sealed.noise import NOISE_DELTA
from silograph.methods.study import Study

__all__ = ["Policy"]

_MOST_APPROVALS = 16


@dataclass(frozen=True)
class Policy:
    """The terms on which a silo or a helper takes part. Every default is the cautious choice."""

    #: Names of the coordinators that may propose studies.
    coordinators: tuple[str, ...]
    #: ``"feat committee"`` (if the policy pins a committee), ``"feat masked"``, ``"feat+ masked"``,
    #: ``"feat elgamal/blinded"``, ``"baseline"``, ``"sealed"`` (if the policy pins a
    #: committee; its noise needs a delta of 2^-60, unless it is in shares), ``"hubs masked"`` …
    methods: tuple[str, ...] = ("feat committee", "feat masked")
    #: Queries that may be asked; empty for all.
    queries: tuple[str, ...] = ()
    #: The largest epsilon and delta of one study.
    epsilon: float = 1.0
    delta: float = 0.0
    #: The smallest collusion level (how many silos may pool what they see) and the smallest number
    #: of silos that a study may have.
    least_collusion: int = 1
    least_silos: int = 3
    #: Whether a study may leave out silos of the roster. (If so, the spends in the ledgers of the
    #: silos that hold an edge add up.)
    part_of_roster: bool = False
    #: Whether the silos trust each other with their edges; elgamal/replace requires this.
    silos_trust_each_other: bool = False
    #: The four members of every committee, by name, key and organisation; empty if the party takes
    #: part in no study that has a committee. Two members that pool what they see know the union.
    committee: tuple[Member, ...] = ()
    #: Whether helpers, and whether the coordinator, may be among the four. (If the coordinator is a
    #: member, a study holds against any one party, but not against the coordinator with a silo.)
    helpers: bool = True
    coordinator_in_committee: bool = False
    #: Whether a study may fold nodes into groups. Its epsilon means the same.
    fold: bool = True
    #: The largest number of pairs or buckets of a study.
    largest: int = 1 << 36
    #: The longest that a study may take, in seconds.
    longest: int = 7 * 24 * 3600
    #: ``auto``: every study that the policy allows is accepted. ``ask``: an operator decides.
    accept: Literal["auto", "ask"] = "ask"
    #: How many enrolled people with different keys must approve a study, where people are enrolled.
    approvals: int = 1

    def __post_init__(self) -> None:
        if self.accept not in ("auto", "ask"):
            raise ArgumentError("accept must be 'auto' or 'ask'")
        if not 1 <= self.approvals <= _MOST_APPROVALS:
            raise ArgumentError(f"approvals must be from 1 to {_MOST_APPROVALS}")
        if self.approvals > 1 and self.accept == "auto":
            raise ArgumentError("approvals are for accept = 'ask': 'auto' asks nobody")
        if not self.coordinators or not self.methods:
            raise ArgumentError("a policy names the coordinators and the methods that it allows")
        if not 0 < self.epsilon < math.inf or not 0 <= self.delta < 1:
            raise ArgumentError("epsilon must be positive and finite, delta from 0 to 1")
        if self.least_collusion < 0 or self.least_silos < 2 or min(self.longest, self.largest) < 1:
            raise ArgumentError("least_collusion, least_silos, largest or longest is too small")
        self._check_pinned()

    def _check_pinned(self) -> None:
        if self.committee and len(self.committee) != 4:
            raise ArgumentError(f"committee has {len(self.committee)} members; it must have four")
        for what, values in (
            ("a name", {member.name for member in self.committee}),
            ("a key", {member.public.hex() for member in self.committee}),
            ("an organisation", {member.organisation for member in self.committee}),
        ):
            if len(values) != len(self.committee) or "" in values:
                raise ArgumentError(f"each member of committee must have {what} of its own")

    def check_fields(self, study: Study, roster_silos: int, now: float) -> None:
        """Check the fields of a study. This comes before anything is computed from them."""
        if study.deadline <= now:
            raise DeadlineError("the study's deadline has passed")
        if study.deadline > now + self.longest:
            raise PolicyError(f"the study may go on for more than {self.longest} seconds")
        if study.coordinator not in self.coordinators:
            raise PolicyError(f"{study.coordinator} may not propose studies here")
        if study.method not in {allowed.split()[0] for allowed in self.methods}:
            raise PolicyError(f"{study.method!r} is not among the methods that are allowed here")
        if self.queries and study.query not in self.queries:
            raise PolicyError(f"query {study.query!r} is not allowed here")
        if study.index.folded and not self.fold:
            raise PolicyError("the study folds nodes, which is not allowed here")
        if study.bits > self.largest:
            raise PolicyError(
                f"the study has {study.bits:,} pairs or buckets; at most {self.largest:,}"
            )
        if len(study.silos) < self.least_silos:
            raise PolicyError(
                f"{len(study.silos)} silos; at least {self.least_silos} must take part"
            )
        if len(study.silos) < roster_silos and not self.part_of_roster:
            raise PolicyError("the study leaves out silos of the roster")
        if study.collusion < self.least_collusion:
            raise PolicyError(
                f"collusion {study.collusion}; it must be at least {self.least_collusion}"
            )
        self._check_cost(study.epsilon, study.delta, study.method)

    def check_committee(self, study: Study, roster: Roster) -> None:
        """Check the members of a study's committee. This, too, comes before any computation.

        The committee is the same for all studies, also for those that leave out silos.
        """
        if not study.members:
            return
        pinned = {member.name: member for member in self.committee}
        if not pinned:
            raise PolicyError("the study has a committee, and the policy names no members of one")
        for name in sorted({member.name for member in study.members} - pinned.keys()):
            raise PolicyError(f"{name} may not be a member of a committee here")
        known = {member.name: member for member in roster.members}
        for member in study.members:
            wanted, found = pinned[member.name], known.get(member.name)
            if found is None:
                raise PolicyError(f"{member.name} of the committee is not in the roster")
            if found.public != wanted.public:
                raise PolicyError(f"{member.name} has another key in the roster than in the policy")
            if found.organisation != wanted.organisation:
                raise PolicyError(
                    f"{member.name} has another organisation in the roster than in the policy"
                )
            if found in roster.helpers and not self.helpers:
                raise PolicyError(f"{member.name} is a helper, which may not be a member here")
            if found == roster.coordinator:
                self._check_coordinator(member.name)

    def _check_coordinator(self, name: str) -> None:
        if not self.coordinator_in_committee:
            raise PolicyError(f"{name} is the coordinator, which may not be a member here")
        if self.least_collusion > 0:
            raise PolicyError(
                f"{name} is the coordinator and a member: the study does not hold against it and a "
                f"silo, and collusion must be at least {self.least_collusion}"
            )

    def check(self, plan: SettledStudy) -> None:
        """Check what was computed from a study whose fields have passed."""
        if plan.what not in self.methods:
            raise PolicyError(f"{plan.what!r} is not among the methods that are allowed here")
        if plan.protocol == "elgamal/replace" and not self.silos_trust_each_other:
            raise PolicyError("elgamal/replace shows silos each other's edges: they must trust so")
        # The study's collusion level is at least the policy's. A smaller coalition can have a
        # larger loss, so the worst loss up to that level counts.
        epsilon = worst_losses(plan.losses)[plan.study.collusion]
        self._check_cost(epsilon, plan.delta, plan.study.method)

    def _check_cost(self, epsilon: float, delta: float, method: str) -> None:
        if not epsilon <= self.epsilon:
            most = shown_loss(self.epsilon, left=True)
            raise PolicyError(f"epsilon {shown_loss(epsilon)}; at most {most} a study")
        if not delta <= self.delta:
            most = shown_loss(self.delta, left=True)
            needless = method == "sealed" and delta <= NOISE_DELTA
            advice = "; ask with --delta 0 for noise that needs none" if needless else ""
            raise PolicyError(f"delta {shown_loss(delta)}; at most {most}{advice}")
