"""A silo's policy: the studies it takes part in, decided by its operators in a file of its own.

What
    Limits on who may ask, which queries, at what cost and with which silos.
    :meth:`Policy.check_fields` checks the fields of a study, :meth:`Policy.check` what is computed
    from them. Each raises a :class:`PolicyError` that names the first term that is not met. The
    text stays in the silo's own log; other parties get only a code.
Why in a file
    People can read it and keep it under version control. It is the same for every study, and
    nothing in a study can change it.
"""

import math
from dataclasses import dataclass
from typing import Literal

from silograph.dp.loss import shown_loss, worst_losses
from silograph.errors import ArgumentError, DeadlineError, PolicyError
from silograph.methods.method import SettledStudy
from silograph.methods.study import Study

__all__ = ["Policy"]


@dataclass(frozen=True)
class Policy:
    """The terms on which a silo takes part. Every default is the cautious choice."""

    #: Names of the coordinators that may propose studies.
    coordinators: tuple[str, ...]
    #: ``"feat masked"``, ``"feat+ masked"``, ``"feat elgamal/blinded"``, ``"sealed"`` (this
    #: trusts the coordinator to deal honestly and to collude with no silo), ``"baseline"`` …
    methods: tuple[str, ...] = ("feat masked",)
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
    #: The longest that a study may take, in seconds.
    longest: int = 7 * 24 * 3600
    #: ``auto``: every study that the policy allows is accepted. ``ask``: an operator decides.
    accept: Literal["auto", "ask"] = "ask"

    def __post_init__(self) -> None:
        if self.accept not in ("auto", "ask"):
            raise ArgumentError("accept must be 'auto' or 'ask'")
        if not self.coordinators or not self.methods:
            raise ArgumentError("a policy names the coordinators and the methods that it allows")
        if not 0 < self.epsilon < math.inf or not 0 <= self.delta < 1:
            raise ArgumentError("epsilon must be positive and finite, delta from 0 to 1")
        if self.least_collusion < 0 or self.least_silos < 2 or self.longest < 1:
            raise ArgumentError("least_collusion, least_silos or longest is too small")

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
        self._check_cost(study.epsilon, study.delta)

    def check(self, plan: SettledStudy) -> None:
        """Check what was computed from a study whose fields have passed."""
        if plan.what not in self.methods:
            raise PolicyError(f"{plan.what!r} is not among the methods that are allowed here")
        if plan.protocol == "elgamal/replace" and not self.silos_trust_each_other:
            raise PolicyError("elgamal/replace shows silos each other's edges: they must trust so")
        # The study's collusion level is at least the policy's. A smaller coalition can have a
        # larger loss, so the worst loss up to that level counts.
        self._check_cost(worst_losses(plan.losses)[plan.study.collusion], plan.delta)

    def _check_cost(self, epsilon: float, delta: float) -> None:
        if not epsilon <= self.epsilon:
            most = shown_loss(self.epsilon, left=True)
            raise PolicyError(f"epsilon {shown_loss(epsilon)}; at most {most} a study")
        if not delta <= self.delta:
            most = shown_loss(self.delta, left=True)
            raise PolicyError(f"delta {shown_loss(delta)}; at most {most}")
