"""The federation: several silos, one question, one answer."""

import math
import warnings
from collections.abc import Collection, Mapping, Sequence
from typing import Any, cast

from silograph.dp.channel import Channel
from silograph.dp.loss import check_delta, check_epsilon, check_number, check_parties
from silograph.errors import ArgumentError, PrivacyWarning, StudyError, UniverseError
from silograph.estimators.estimate import Estimate
from silograph.estimators.reference import Reference, guess, reference_like
from silograph.estimators.release import Release
from silograph.graph.silo import Silo
from silograph.ledger.book import Ledger, NoLedger
from silograph.ledger.entries import check_name
from silograph.local.drive import Parties, Record, drive_study
from silograph.messages.entropy import Entropy, OsEntropy
from silograph.methods.baseline.answer import Reports
from silograph.methods.catalogue import METHODS, QUERIES, settle_study
from silograph.methods.method import Outcome, channel_option
from silograph.methods.planner import PLANNED, Option, plan_options
from silograph.methods.prediction import Question
from silograph.methods.sealed.answer import SealedRelease
from silograph.methods.sealed.noise import Answer, Kind
from silograph.methods.study import RELEASE, Study
from silograph.methods.study import Option as StudyOption

__all__ = ["Federation"]

Like = Reference | Release | Silo


class Federation:
    """Silos over one universe, and the studies that they take part in together.

    >>> import warnings, silograph
    >>> silos = silograph.split(silograph.clustered_power_law(100, seed=1), 4)
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")  # no ledger: this is only an example
    ...     fed = Federation.simulate(silos)
    ...     release = fed.collect(epsilon=3.0)
    >>> [str(view) for view in release.views][1]
    'coordinator + 1 silo: ε = 3'
    """

    def __init__(
        self,
        silos: Sequence[Silo],
        ledger: Ledger | None,
        lineage: str,
        entropy: Entropy,
        *,
        new_lineage: bool = False,
        parties: Parties | None = None,
        deadline: int = 0,
        record: Record | None = None,
    ) -> None:
        self.silos = tuple(silos)
        self.universe = self.silos[0].universe
        self.lineage = lineage
        self._new_lineage = new_lineage
        self._ledger: Ledger | NoLedger = ledger if ledger is not None else NoLedger()
        self._entropy = entropy
        # Who takes part (new identities for each run, where nobody is given), until when, and who
        # is shown every message: by these a run here can be compared with a deployed one.
        self._parties, self._deadline, self._record = parties, deadline, record

    @classmethod
    def simulate(
        cls,
        silos: Sequence[Silo],
        ledger: Ledger | None = None,
        *,
        lineage: str = "simulation",
        new_lineage: bool = False,
    ) -> "Federation":
        """All parties in this process, with the real protocols.

        Good for trying methods on data that may be in one place. Without a ledger nothing adds up
        what is spent, and a warning says so. A ledger that has limits takes a lineage that it does
        not know only with ``new_lineage``.
        """
        silos = tuple(silos)
        if ledger is not None and not isinstance(ledger, Ledger):
            raise ArgumentError(
                f"ledger must be a Ledger, as in Ledger('own.ledger'), not {ledger!r}"
            )
        check_name("a lineage", lineage)
        if not all(isinstance(silo, Silo) for silo in silos):
            raise ArgumentError("silos must be a list of Silo")
        if not 2 <= len(silos) <= 64:
            raise ArgumentError(f"there must be 2 to 64 silos, not {len(silos)}")
        for place, silo in enumerate(silos[1:], 2):
            if silo.universe != silos[0].universe:
                raise UniverseError(
                    f"silos 1 and {place} are over different universes:\n"
                    f"{silos[0].universe.compare(silo.universe)}"
                )
        if len(silos[0].universe) < 2:
            raise UniverseError("a universe of one node has no pairs")
        names = [silo.name for silo in silos if silo.name]
        if len(set(names)) != len(names):
            raise ArgumentError("two silos have the same name")
        return cls(silos, ledger, lineage, OsEntropy(), new_lineage=new_lineage)

    def collect(
        self,
        epsilon: float,
        protocol: str = "masked",
        collusion: int = 1,
        *,
        channel: Channel | None = None,
        progress: bool | None = None,
    ) -> Release:
        """Make a release of the union at epsilon. It answers any number of queries.

        ``collusion`` is how many silos may pool what they know with the coordinator and still learn
        no more than epsilon. Protocol ``clear`` draws the release from its channel in this process:
        the same distribution, no protection while it is drawn, for experiments; ``channel`` is for
        it alone.
        """
        if channel is not None and not isinstance(channel, Channel):
            raise ArgumentError(f"channel must be a Channel, not {channel!r}")
        options = {} if channel is None else {"channel": channel_option(channel)}
        study = ("feat", RELEASE, epsilon, collusion)
        outcome = self._ask(*study, protocol=protocol, options=options, progress=progress)
        return cast("Release", outcome.source)

    def reports(
        self, epsilon: float, collusion: int = 0, *, progress: bool | None = None
    ) -> Reports:
        """The baseline (the paper's Algorithm 1): every silo's own noisy bits, at epsilon/m each.

        It needs no cryptography, shows which silos hold an edge as far as epsilon allows, and is
        far less accurate than :meth:`collect`.
        """
        outcome = self._ask("baseline", RELEASE, epsilon, collusion, progress=progress)
        return cast("Reports", outcome.source)

    def seal(
        self,
        epsilon: float,
        answers: Sequence[Answer] = ("degrees", "triangles"),
        *,
        delta: float = 0.0,
        collusion: int = 1,
        noise: Kind = "shared",
        degree_share: float | None = None,
        progress: bool | None = None,
    ) -> SealedRelease:
        """Count exactly on the hidden union, and open the answers with noise.

        ``answers`` are some of edges, degrees, two_stars, triangles. With ``delta`` the noisy
        degrees come first, with ``degree_share`` of epsilon (a tenth, if not said), and bound the
        noise of the others.
        It assumes that the coordinator deals honestly and colludes with no silo.
        """
        if isinstance(answers, str) or not all(isinstance(name, str) for name in answers or ()):
            raise ArgumentError(f"answers must be a list of names, not {answers!r}")
        options: dict[str, StudyOption] = {"answers": ",".join(answers or ()), "noise": noise}
        if degree_share is not None:
            options["degree_share"] = check_number("degree_share", degree_share)
        study = ("sealed", RELEASE, epsilon, collusion)
        outcome = self._ask(*study, delta=delta, options=options, progress=progress)
        return cast("SealedRelease", outcome.source)

    def count(
        self,
        query: str,
        method: str = "auto",
        *,
        epsilon: float,
        k: int | None = None,
        collusion: int = 1,
        delta: float | None = None,
        protocol: str | None = None,
        raw: bool | None = None,
        local: str | None = None,
        split: str | tuple[float, float, float] | None = None,
        bound: float | None = None,
        like: Like | None = None,
        owned: float | None = None,
        trust: Collection[str] | None = None,
        noise: Kind | None = None,
        progress: bool | None = None,
    ) -> Estimate[Any]:
        """Ask one question. For several, :meth:`collect` once and ask the release.

        What stands before ``delta`` is for every method; the rest is for some, and an argument that
        the method does not use is an error.

        ``method`` is ``feat`` (a release of the union), ``feat+`` (a release, and every silo's own
        answer beside it), ``sealed`` (exact counting on the hidden union, opened with noise; it can
        use ``delta``, and trusts the coordinator to deal) or ``baseline`` (every silo's own report
        at epsilon/m; ``raw=True`` counts on the union of the reports as the paper prints it).
        ``auto`` takes the one with the least error that :func:`silograph.plan` predicts among
        those that ``trust`` allows, on a graph ``like`` a public one, or a past release;
        where no error can be predicted (degree_histogram, node_triangles) it takes ``feat``.

        For ``feat+``, ``local`` is the form of the silos' answers, ``gradient`` (what their edges
        take off the release's error, each pair's part clipped at ``bound``) or ``paper`` (counts on
        their edges and the release together); ``split`` shares epsilon among release, partition and
        local answers: ``"auto"`` (as the planner finds best), ``"paper"`` (.45, .1, .45) or three
        numbers. ``owned`` is the share of a node's edges that you expect its main silo to hold.
        """
        if query not in QUERIES:
            raise ArgumentError(f"unknown query {query!r}; choose from {', '.join(QUERIES)}")
        if method not in (*METHODS, "auto"):
            known = ", ".join((*METHODS, "auto"))
            raise ArgumentError(f"unknown method {method!r}; choose from {known}")
        Release.check_leaves(query, k, len(self.universe))
        epsilon = check_epsilon(epsilon)
        check_parties(len(self.silos), collusion)
        given: dict[str, Any] = {
            "delta": delta, "protocol": protocol, "raw": raw, "local": local, "split": split,
            "bound": bound, "like": like, "owned": owned, "trust": trust, "noise": noise,
        }  # fmt: skip
        _check_options(method, given)
        if method == "auto":
            method, chosen = self._choose(query, k, epsilon, collusion, given)
            given = dict.fromkeys(given) | chosen
        outcome = self._ask(
            method,
            query,
            epsilon,
            collusion,
            k=k,
            delta=given["delta"] or 0.0,
            protocol=given["protocol"],
            options=_study_options(given),
            like=given["like"],
            owned=given["owned"],
            progress=progress,
        )
        return cast("Estimate[Any]", outcome.answer)

    def _choose(
        self, query: str, k: int | None, epsilon: float, collusion: int, given: Mapping[str, Any]
    ) -> tuple[str, dict[str, Any]]:
        """The planner's method, and the arguments that ask for it."""
        if query not in PLANNED:
            return "feat", {}
        like, delta, silos = given["like"], given["delta"] or 0.0, len(self.silos)
        asked = Question(query, epsilon, silos, collusion, k, delta, given["owned"])
        plan = plan_options(self._outline(like, query), asked, given["trust"] or ())
        best: Option = plan.best
        if best.method == "feat":
            return "feat", {"protocol": best.protocol}
        if best.method == "sealed":
            return "sealed", {"delta": best.delta, "like": like}
        return best.method, best.arguments

    def _outline(self, like: Like | None, query: str) -> Reference:
        """What the graph may look like; never taken from the silos' edges."""
        cycles = query == "four_cycles"
        if like is None:
            return guess(len(self.universe), cycles=cycles)
        return reference_like(like, cycles=cycles)

    def _ask(
        self,
        method: str,
        query: str,
        epsilon: float,
        collusion: int,
        *,
        k: int | None = None,
        delta: float = 0.0,
        protocol: str | None = None,
        options: Mapping[str, StudyOption] | None = None,
        like: Like | None = None,
        owned: float | None = None,
        progress: bool | None = None,
    ) -> Outcome:
        """One study from its question to its outcome: settled once, paid, driven, answered."""
        epsilon, delta = check_epsilon(epsilon), check_delta(delta)
        check_parties(len(self.silos), collusion)
        parties = self._parties or Parties.fresh(self.silos, self._entropy)
        united = method in ("feat", "feat+")
        try:
            study = Study(
                run=parties.coordinator[1].bytes(16).hex(),
                query=query,
                method=method,
                protocol=("masked" if protocol is None else protocol) if united else "",
                epsilon=epsilon,
                delta=delta,
                collusion=collusion,
                universe=self.universe.digest,
                nodes=len(self.universe),
                roster=parties.roster.digest.hex(),
                coordinator=parties.roster.coordinator.name,
                silos=tuple(member.name for member in parties.roster.silos),
                deadline=self._deadline,
                k=None if k is None else int(k),
                options=options or {},
            )
            reference = None if like is None else self._outline(like, query)
            plan = settle_study(study, reference, owned)
        except StudyError as error:
            raise ArgumentError(str(error)) from None
        if plan.advice:
            warnings.warn(plan.advice, PrivacyWarning, stacklevel=3)
        losses = plan.losses

        def spend() -> None:
            """All of it, at every level of collusion, before anything leaves a silo."""
            self._ledger.spend(
                self.lineage, study.run, "release", losses, plan.delta, view=plan.view,
                method=plan.what, unbounded=any(map(math.isinf, losses.values())),
                new_lineage=self._new_lineage,
            )  # fmt: skip

        result = drive_study(plan, parties, self.silos, spend, record=self._record, shown=progress)
        return plan.outcome(result, self.universe)

    def __repr__(self) -> str:
        return f"Federation({len(self.silos)} silos, {len(self.universe):,} nodes)"


#: What each method takes beyond the question, epsilon and collusion.
_OPTIONS = {
    "auto": {"delta", "like", "owned", "trust"},
    "baseline": {"raw"},
    "feat": {"protocol"},
    "feat+": {"protocol", "local", "split", "bound", "like", "owned"},
    "sealed": {"delta", "noise", "like"},
}
_KINDS: dict[str, tuple[type[Any], ...]] = {
    "raw": (bool,),
    "local": (str,),
    "protocol": (str,),
    "like": (Reference, Release, Silo),
    "noise": (str,),
}


def _check_options(method: str, given: Mapping[str, Any]) -> None:
    """Refuse what the method does not use, and what is of the wrong kind, before anything is
    spent."""
    for name, value in given.items():
        unused = value is not None and name not in _OPTIONS[method]
        if unused and not (name == "delta" and value == 0):
            takes = ", ".join(sorted(_OPTIONS[method]))
            raise ArgumentError(f"{method} has no use for {name}; it takes {takes}")
    for name, kind in _KINDS.items():
        if given[name] is not None and not isinstance(given[name], kind):
            wanted = " or ".join(one.__name__ for one in kind)
            raise ArgumentError(f"{name} must be a {wanted}, not {given[name]!r}")
    for name in ("bound", "owned"):
        if given[name] is not None:
            check_number(name, given[name])
    if given["owned"] is not None and not 0 <= given["owned"] <= 1:
        raise ArgumentError(f"owned must be from 0 to 1, not {given['owned']!r}")
    if given["split"] not in (None, "auto"):  # like and owned are for who chooses a split
        for name in ("like", "owned"):
            if given[name] is not None:
                raise ArgumentError(f"feat+ with a split has no use for {name}")
    trust = given["trust"]
    if trust is not None and (isinstance(trust, str) or not isinstance(trust, Collection)):
        raise ArgumentError(f"trust must be a list of names, not {trust!r}")
    if given["delta"] is not None:
        check_delta(given["delta"])


def _study_options(given: Mapping[str, Any]) -> dict[str, StudyOption]:
    """The options of a study, from arguments."""
    made: dict[str, StudyOption] = {
        name: given[name] for name in ("raw", "local", "noise") if given[name] is not None
    }
    if given["bound"] is not None:
        made["bound"] = check_number("bound", given["bound"])
    split = given["split"]
    if isinstance(split, str):
        made["split"] = split
    elif split is not None:
        try:
            made["split"] = ",".join(repr(float(share)) for share in split)
        except (TypeError, ValueError):
            message = f"split is {split!r}; it is 'paper', 'auto' or three numbers"
            raise ArgumentError(message) from None
    return made
