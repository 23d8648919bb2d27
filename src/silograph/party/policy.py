"""A silo's policy: which studies it takes part in, decided by its own people in its own file.

What
    Limits on who asks, what for, at what cost and with whom. :meth:`Policy.check_fields` looks at
    the study as it is written, :meth:`Policy.check` at what follows from it. Each raises a
    :class:`PolicyError` that names the first term that is not met; the text stays in the silo's own
    log, and what goes out is a bare code.
Why in a file
    It is read by people, kept under version control, and the same for every study. Nothing in a
    study can change it.
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
    """The terms on which a silo takes part. Every default is the careful one."""

    #: Names of coordinators that may ask.
    coordinators: tuple[str, ...]
    #: ``"feat masked"``, ``"feat+ masked"``, ``"feat elgamal/blinded"``, ``"sealed"`` (the
    #: coordinator deals honestly and colludes with no silo), ``"baseline"`` …
    methods: tuple[str, ...] = ("feat masked",)
    #: Queries that may be asked; empty for all.
    queries: tuple[str, ...] = ()
    #: The largest epsilon and delta of one study.
    epsilon: float = 1.0
    delta: float = 0.0
    #: The fewest silos that may pool what they know, and the fewest that take part.
    least_collusion: int = 1
    least_silos: int = 3
    #: Whether a study may leave out silos of the roster. (Then holders' ledgers add.)
    part_of_roster: bool = False
    #: Whether the silos trust each other with their edges, which elgamal/replace needs.
    silos_trust_each_other: bool = False
    #: The longest that a study may take, in seconds.
    longest: int = 7 * 24 * 3600
    #: ``auto``: what is allowed is accepted. ``ask``: an operator decides on it.
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
        """Refuse by what stands in the study itself; nothing is computed from it before this."""
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
        """Refuse by what follows from a study whose fields have passed."""
        if plan.what not in self.methods:
            raise PolicyError(f"{plan.what!r} is not among the methods that are allowed here")
        if plan.protocol == "elgamal/replace" and not self.silos_trust_each_other:
            raise PolicyError("elgamal/replace shows silos each other's edges: they must trust so")
        # The study's level is at least the policy's, and fewer silos may see more than all of it.
        self._check_cost(worst_losses(plan.losses)[plan.study.collusion], plan.delta)

    def _check_cost(self, epsilon: float, delta: float) -> None:
        if not epsilon <= self.epsilon:
            most = shown_loss(self.epsilon, left=True)
            raise PolicyError(f"epsilon {shown_loss(epsilon)}; at most {most} a study")
        if not delta <= self.delta:
            most = shown_loss(self.delta, left=True)
            raise PolicyError(f"delta {shown_loss(delta)}; at most {most}")
