"""The federation: several silos in one process that answer queries together."""

import math
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache, partial
from typing import Any, Literal, cast, overload

from silograph.dp.channel import Channel
from silograph.dp.loss import (
    check_delta,
    check_epsilon,
    check_number,
    check_parties,
    float_below,
    shown_loss,
)
from silograph.errors import (
    ArgumentError,
    BudgetError,
    PrivacyWarning,
    StudyError,
    UniverseError,
    UselessAnswerWarning,
)
from silograph.estimators.estimate import Estimate
from silograph.estimators.folded_release import FoldedRelease
from silograph.estimators.groups import Groups
from silograph.estimators.reference import Reference, guess, reference_like
from silograph.estimators.release import Release
from silograph.graph.fold import Fold
from silograph.graph.partitioned import PartedSilo, whole
from silograph.graph.silo import Silo
from silograph.ledger.book import Ledger, NoLedger
from silograph.ledger.entries import check_name, loss_at
from silograph.local.drive import Parties, Record, drive_study
from silograph.messages.entropy import Entropy, OsEntropy
from silograph.messages.identity import Roster
from silograph.methods.baseline.answer import Reports
from silograph.methods.catalogue import ANSWERING, GROUPED, QUERIES, settle_study
from silograph.methods.committee.rounds import MEMBERS
from silograph.methods.forecast import Forecast, forecast
from silograph.methods.hubs.answer import HubSearch
from silograph.methods.method import Outcome, SettledStudy
from silograph.methods.planner import PLANNED, WAYS, Option, plan_options
from silograph.methods.prediction import Question
from silograph.methods.sealed.answer import SealedRelease
from silograph.methods.sealed.method import group_options, sealed_delta
from silograph.methods.sealed.noise import NOISE_DELTA, Answer, Kind, Rule
from silograph.methods.study import (
    COMMITTEE,
    RELEASE,
    Index,
    Study,
    StudyMember,
    folded_index,
    nameable,
)
from silograph.methods.study import Option as StudyOption
from silograph.methods.union import channel_option, default_protocol

__all__ = ["Federation"]

Like = Reference | Release | Silo
#: Of fewer nodes nothing is expected.
_LEAST_NODES = 3
#: Is told what is expected of a run, and stops it by raising an error.
Confirm = Callable[[Forecast], None]
Expect = Callable[[SettledStudy], None]


class Federation:
    """Silos over one node list, and the studies that they run together in this process.

    Make one with :meth:`simulate`. Then either ask single questions with :meth:`count`, or make a
    release with :meth:`collect` and query it as often as you like.

    Examples
    --------
    >>> import warnings, silograph
    >>> silos = silograph.split(silograph.clustered_power_law(100, seed=1), 4)
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")  # no ledger: this is only an example
    ...     fed = Federation.simulate(silos)
    ...     release = fed.collect(epsilon=3.0)
    >>> [str(view) for view in release.views][1]
    'coordinator + 1 member: ε = 2.99062'
    """

    def __init__(
        self,
        silos: Sequence[Silo | PartedSilo],
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
        # The parties (None for new identities in each run), the deadline, and the record of
        # messages allow a run here to be compared with a deployed one.
        self._parties, self._deadline, self._record = parties, deadline, record

    @classmethod
    def simulate(
        cls,
        silos: Sequence[Silo | PartedSilo],
        ledger: Ledger | None = None,
        *,
        lineage: str = "simulation",
        new_lineage: bool = False,
    ) -> "Federation":
        """Make a federation whose parties are all in this process, with the real protocols.

        It is meant for trying methods on data that may be in one place. Without a ledger nothing
        adds up what is spent, and a warning says so.

        Parameters
        ----------
        silos
            2 to 64 silos over the same universe. Those in parts can take part in folded studies.
        ledger
            The ledger that records what is spent.
        lineage
            The name under which the ledger adds up the spending on these data.
        new_lineage
            Allow a lineage that the ledger does not know yet, if the ledger has limits.

        Returns
        -------
        Federation
            The federation.

        Raises
        ------
        ArgumentError
            If the silos or the ledger are not valid.
        UniverseError
            If the silos have different node lists.

        Examples
        --------
        >>> import silograph
        >>> silos = silograph.split(silograph.clustered_power_law(100, seed=1), 4)
        >>> len(Federation.simulate(silos).silos)
        4
        """
        silos = tuple(silos)
        if ledger is not None and not isinstance(ledger, Ledger):
            raise ArgumentError(
                f"ledger must be a Ledger, as in Ledger('own.ledger'), not {ledger!r}"
            )
        check_name("a lineage", lineage)
        if not all(isinstance(silo, Silo | PartedSilo) for silo in silos):
            raise ArgumentError("silos must be a list of Silo")
        if not 2 <= len(silos) <= 64:
            raise ArgumentError(f"there must be 2 to 64 silos, not {len(silos)}")
        for place, silo in enumerate(silos[1:], 2):
            if silo.universe != silos[0].universe:
                raise UniverseError(
                    f"silos 1 and {place} are over different universes:\n"
                    f"{silos[0].universe.compare(silo.universe)}"
                )
        if not silos[0].universe.is_open and len(silos[0].universe) < 2:
            raise UniverseError("a universe of one node has no pairs")
        names = [silo.name for silo in silos if silo.name]
        if len(set(names)) != len(names):
            raise ArgumentError("two silos have the same name")
        return cls(silos, ledger, lineage, OsEntropy(), new_lineage=new_lineage)

    @overload
    def collect(
        self,
        epsilon: float,
        protocol: str | None = None,
        collusion: int = 1,
        *,
        channel: Channel | None = None,
        progress: bool | None = None,
        fold: None = None,
        like: None = None,
        confirm: Confirm | None = None,
    ) -> Release: ...

    @overload
    def collect(
        self,
        epsilon: float,
        protocol: str | None = None,
        collusion: int = 1,
        *,
        channel: Channel | None = None,
        progress: bool | None = None,
        fold: Fold | Literal["auto"],
        like: Like | None = None,
        confirm: Confirm | None = None,
    ) -> FoldedRelease: ...

    def collect(
        self,
        epsilon: float,
        protocol: str | None = None,
        collusion: int = 1,
        *,
        channel: Channel | None = None,
        progress: bool | None = None,
        fold: Fold | Literal["auto"] | None = None,
        like: Like | None = None,
        confirm: Confirm | None = None,
    ) -> Release | FoldedRelease:
        """Make a release of the union. It answers any number of queries.

        Parameters
        ----------
        epsilon
            The privacy budget.
        protocol
            The union protocol: by default ``"committee"`` if there are four silos and collusion is
            at most 1, otherwise ``"masked"``. If ``"committee"`` is asked for with fewer silos,
            simulated helpers complete the committee. ``"clear"`` draws the release from its channel
            in this process, for experiments: the distribution is the same as that of ``"masked"``,
            but nothing is protected while it is drawn.
        collusion
            How many silos may pool what they know with the coordinator and still learn no more than
            epsilon allows.
        channel
            The channel, for protocol ``"clear"`` only.
        progress
            Whether to show a progress bar; by default only on a terminal.
        fold
            How to fold the nodes into groups. The cost then depends on the number of groups, not of
            nodes, and so does the noise: for large graphs it is far less. ``"auto"`` takes what is
            expected to be best for triangles.
        like
            For ``fold="auto"``: a public graph, a past release or a reference that the graph is
            expected to resemble.
        confirm
            Called with a :class:`~silograph.methods.forecast.Forecast`, what the run is expected
            to give and to cost, before anything is spent. It stops the run by raising an error. By
            default a warning says where no usable answer is expected.

        Returns
        -------
        Release or FoldedRelease
            The release; a folded one if ``fold`` is given.

        Raises
        ------
        ArgumentError
            If an argument is not valid.

        Examples
        --------
        >>> import warnings, silograph
        >>> silos = silograph.split(silograph.clustered_power_law(100, seed=1), 4)
        >>> with warnings.catch_warnings():
        ...     warnings.simplefilter("ignore")  # no ledger: this is only an example
        ...     release = Federation.simulate(silos).collect(epsilon=3.0)
        >>> release.n, release.epsilon <= 3.0
        (100, True)
        """
        if channel is not None and not isinstance(channel, Channel):
            raise ArgumentError(f"channel must be a Channel, not {channel!r}")
        options = {} if channel is None else {"channel": channel_option(channel)}
        if like is not None and fold != "auto":
            raise ArgumentError("collect has no use for like; it is for fold='auto'")
        way = "feat folded" if fold == "auto" else "feat"
        if fold == "auto":
            best = Question("triangles", check_epsilon(epsilon), len(self.silos), collusion)
            protocol, fold = self._choose_fold(best, protocol, like)
        # Edges are the easiest question: where they drown in noise, everything does.
        easiest = Question("edges", check_epsilon(epsilon), len(self.silos), collusion)
        expect = partial(self._expect, confirm, easiest, way, like)
        if fold is not None:
            asked = (RELEASE, None, epsilon, protocol, collusion, fold, options, progress, expect)
            return self._collect_folded(*asked)[0]
        study = ("feat", RELEASE, epsilon, collusion)
        outcome = self._ask(
            *study, protocol=protocol, options=options, progress=progress, expect=expect
        )
        return cast("Release", outcome.source)

    def _collect_folded(
        self,
        query: str,
        k: int | None,
        epsilon: float,
        protocol: str | None,
        collusion: int,
        fold: Fold,
        options: Mapping[str, StudyOption],
        progress: bool | None,
        expect: Expect,
    ) -> tuple[FoldedRelease, Estimate[Any] | None]:
        """A folded release and its answer, after a search for hubs where the fold asks for one."""
        if not isinstance(fold, Fold):
            raise ArgumentError(f"fold must be a Fold or 'auto', not {fold!r}")
        epsilon, search = check_epsilon(epsilon), None
        if isinstance(fold.hubs, int):
            share = check_epsilon(epsilon * fold.hub_share)
            epsilon = check_epsilon(float_below(Fraction(epsilon) - Fraction(share)))
            expect(self._check_search(share, epsilon, protocol, collusion, fold, options))
            expect = _expected_before
            search = self.find_hubs(share, collusion, progress=progress)
            named = filter(nameable, search.top(fold.hubs))
            fold = replace(fold, hubs=tuple(named))
        outcome = self._ask(
            "feat", query, epsilon, collusion, k=k, protocol=protocol, options=options,
            progress=progress, index=self._index(fold), expect=expect,
        )  # fmt: skip
        release = cast("FoldedRelease", outcome.source)
        if search is not None:
            release = release.with_search(search.views, search.losses)
        return release, outcome.answer

    def _check_search(
        self,
        share: float,
        rest: float,
        protocol: str | None,
        collusion: int,
        fold: Fold,
        options: Mapping[str, StudyOption],
    ) -> SettledStudy:
        """The folded study, if it and its search for hubs can be paid for; none of it is yet."""
        if self.universe.is_open:
            raise ArgumentError(
                "hubs are found among a list of nodes, and an open universe has none; name them: "
                "Fold(…, hubs=[…])"
            )
        # The hubs are not known yet. Any names will do to see whether there can be so many.
        names = tuple(f"hub {number}" for number in range(fold.layout.hubs))
        try:
            index = Index("fold", fold.groups, names, fold.sub, self.universe.form)
        except StudyError as error:
            raise ArgumentError(str(error)) from None
        whole(self.silos)
        plans = (
            self._settled("hubs", RELEASE, share, collusion)[0],
            self._settled("feat", RELEASE, rest, collusion, protocol=protocol, options=options,
                          index=index)[0],
        )  # fmt: skip
        if isinstance(self._ledger, NoLedger):
            return plans[1]
        limit, left = self._ledger.limit(self.lineage), self._ledger.remaining(self.lineage)
        if limit is None or left is None:
            return plans[1]
        costs = [loss_at(plan.losses, limit.collusion)[1] for plan in plans]
        if sum(costs) > left.epsilon:
            both = " and ".join(shown_loss(cost) for cost in costs)
            raise BudgetError(
                f"finding hubs and the release cost ε = {both} at t = {limit.collusion}; {left} is "
                "left",
                self.lineage, limit.collusion, (sum(costs), 0.0), (left.epsilon, left.delta),
            )  # fmt: skip
        return plans[1]

    def reports(
        self, epsilon: float, collusion: int = 0, *, progress: bool | None = None
    ) -> Reports:
        """Run the baseline (the paper's Algorithm 1): every silo sends its own noisy bits.

        Each report takes epsilon/m. The baseline needs no cryptography. It shows, as far as epsilon
        allows, which silos hold an edge, and is far less accurate than :meth:`collect`.

        Parameters
        ----------
        epsilon
            The privacy budget of all reports together.
        collusion
            How many silos may pool what they know with the coordinator.
        progress
            Whether to show a progress bar; by default only on a terminal.

        Returns
        -------
        Reports
            The reports of all silos.

        Examples
        --------
        >>> import warnings, silograph
        >>> silos = silograph.split(silograph.clustered_power_law(100, seed=1), 4)
        >>> with warnings.catch_warnings():
        ...     warnings.simplefilter("ignore")  # no ledger: this is only an example
        ...     reports = Federation.simulate(silos).reports(epsilon=3.0)
        >>> reports.n, reports.epsilon <= 3.0
        (100, True)
        """
        outcome = self._ask("baseline", RELEASE, epsilon, collusion, progress=progress)
        return cast("Reports", outcome.source)

    def seal(
        self,
        epsilon: float,
        answers: Sequence[Answer] = ("degrees", "triangles"),
        *,
        delta: float | None = None,
        collusion: int = 1,
        noise: Kind | None = None,
        rule: Rule | None = None,
        degree_share: float | None = None,
        triangle_share: float | None = None,
        progress: bool | None = None,
    ) -> SealedRelease:
        """Count exactly in the hidden union, and open the answers with noise.

        A committee of four counts: the first four silos, completed by simulated helpers if there
        are fewer. At most one of the four may be dishonest.

        Parameters
        ----------
        epsilon
            The privacy budget.
        answers
            What to open: some of edges, degrees, two_stars and triangles.
        delta
            With a delta the noisy degrees are opened first, and bound the noise of the counts. By
            default it is what committee noise needs, at most 2^-60; with 0, noise is in shares.
        collusion
            How many silos may pool what they know with the coordinator and still learn no more than
            epsilon allows: 0 or 1.
        noise
            ``"committee"``, noise that nobody knows, or ``"shares"``, of which each member draws a
            part: a little more noise, and no delta.
        rule
            With a delta: which noisy degree bounds the triangles, ``"largest"`` (the default) or
            ``"second"``.
        degree_share
            The degrees' share of epsilon; a tenth by default.
        triangle_share
            The triangles' share of what the degrees leave, if 2-stars are counted too; a half by
            default.
        progress
            Whether to show a progress bar; by default only on a terminal.

        Returns
        -------
        SealedRelease
            The opened answers.

        Raises
        ------
        ArgumentError
            If an argument is not valid.

        Examples
        --------
        >>> import warnings, silograph
        >>> silos = silograph.split(silograph.clustered_power_law(100, seed=1), 4)
        >>> with warnings.catch_warnings():
        ...     warnings.simplefilter("ignore")  # no ledger: this is only an example
        ...     sealed = Federation.simulate(silos).seal(3.0, ["edges"])
        >>> sealed.edges().query, sealed.epsilon <= 3.0
        ('edges', True)
        """
        if isinstance(answers, str) or not all(isinstance(name, str) for name in answers or ()):
            raise ArgumentError(f"answers must be a list of names, not {answers!r}")
        options: dict[str, StudyOption] = {"answers": ",".join(answers or ())}
        if noise is not None:
            options["noise"] = noise
        shares = {"degree_share": degree_share, "triangle_share": triangle_share}
        for name, share in shares.items():
            if share is not None:
                options[name] = check_number(name, share)
        delta = sealed_delta(delta, noise)
        counts = {"two_stars", "triangles"} & set(answers or ())
        if rule is not None or (delta > NOISE_DELTA and counts):
            options["rule"] = rule or "largest"
        study = ("sealed", RELEASE, epsilon, collusion)
        outcome = self._ask(*study, delta=delta, options=options, progress=progress)
        return cast("SealedRelease", outcome.source)

    def find_hubs(
        self, epsilon: float, collusion: int = 1, *, progress: bool | None = None
    ) -> HubSearch:
        """Sum the silos' degrees with noise, to find the nodes that have the largest.

        The degrees are summed under masks: nobody sees those of a single silo. An edge has two ends
        and up to m holders, so the noise has the scale 2m/epsilon. The nodes that are found may be
        published, and a later study can name them as hubs.

        Parameters
        ----------
        epsilon
            The privacy budget of the search.
        collusion
            How many silos may pool what they know with the coordinator and still learn no more than
            epsilon allows.
        progress
            Whether to show a progress bar; by default only on a terminal.

        Returns
        -------
        HubSearch
            One noisy sum per node, and the nodes with the largest.

        Raises
        ------
        ArgumentError
            If an argument is not valid.

        Examples
        --------
        >>> import warnings, silograph
        >>> silos = silograph.split(silograph.clustered_power_law(100, seed=1), 4)
        >>> with warnings.catch_warnings():
        ...     warnings.simplefilter("ignore")  # no ledger: this is only an example
        ...     found = Federation.simulate(silos).find_hubs(epsilon=0.25)
        >>> found.scale, len(found.top(10)), found.epsilon
        (32.0, 10, 0.25)
        """
        outcome = self._ask("hubs", RELEASE, epsilon, collusion, progress=progress)
        return cast("HubSearch", outcome.source)

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
        fold: Fold | Literal["auto"] | None = None,
        groups: Mapping[Any, Any] | None = None,
        progress: bool | None = None,
        confirm: Confirm | None = None,
    ) -> Estimate[Any]:
        """Answer one query. For several queries, call :meth:`collect` once and query the release.

        The arguments before ``delta`` apply to every method. The others apply to some methods only;
        an argument that the method does not use is an error.

        Parameters
        ----------
        query
            The query, such as ``"triangles"``.
        method
            ``"feat"`` makes a release of the union. ``"feat+"`` makes a release and adds a local
            answer of every silo. ``"sealed"`` counts exactly on the hidden union, in a committee of
            four, and opens the answer with noise. ``"baseline"`` uses every silo's own report at
            epsilon/m. ``"auto"`` takes the method for which :func:`silograph.plan`
            predicts the smallest error among those that ``trust`` allows; it takes ``feat`` if no
            error can be predicted (degree_histogram, node_triangles).
        epsilon
            The privacy budget.
        k
            The number of leaves, for ``"kstars"`` only.
        collusion
            How many silos may pool what they know with the coordinator and still learn no more than
            epsilon allows.
        delta
            The delta that ``sealed`` may use. By default it is what committee noise needs, at most
            2^-60; with 0, noise is in shares. With more, noisy degrees can bound the noise.
        protocol
            The union protocol of ``feat`` and ``feat+``; see :meth:`collect`.
        raw
            For ``baseline``: count on the union of the reports, as the paper prints it.
        local
            For ``feat+``, the form of local answers: ``"gradient"`` (by how much a silo's edges
            correct the release's answer) or ``"paper"`` (counts on its edges and the release
            together).
        split
            For ``feat+``, how epsilon is split between release, partition and local answers:
            ``"auto"`` (as the planner finds best), ``"paper"`` (.45, .1, .45) or three numbers.
        bound
            For ``feat+`` with gradients, the bound at which each pair's part is clipped.
        like
            A public graph, a past release or a reference that the graph is expected to resemble.
        owned
            The share of a node's edges that its main silo is expected to hold.
        trust
            What the planner may assume; see :func:`silograph.plan`.
        noise
            For ``sealed``: ``"committee"``, which nobody knows, or ``"shares"``, of which each
            member draws a part.
        fold
            For ``feat`` and ``sealed``: how to fold the nodes into groups; see :meth:`collect`.
            ``"auto"`` is for ``feat``. ``sealed`` answers edges and triangles on folded nodes.
        groups
            For ``"mixing"`` by ``sealed``: the group of every node, a dict from id to group. It
            must be public; it becomes part of the study. (A release answers such questions, too.)
        progress
            Whether to show a progress bar; by default only on a terminal.
        confirm
            Called before anything is spent; see :meth:`collect`.

        Returns
        -------
        Estimate
            The answer with its standard error.

        Raises
        ------
        ArgumentError
            If an argument is not valid, or the method does not use it.

        Examples
        --------
        >>> import warnings, silograph
        >>> silos = silograph.split(silograph.clustered_power_law(100, seed=1), 4)
        >>> with warnings.catch_warnings():
        ...     warnings.simplefilter("ignore")  # no ledger: this is only an example
        ...     answer = Federation.simulate(silos).count("kstars", "feat", epsilon=3.0, k=2)
        >>> answer.name, answer.method
        ('kstars(k=2)', 'feat')
        """
        if query not in (*QUERIES, *GROUPED):
            known = ", ".join((*QUERIES, *GROUPED))
            raise ArgumentError(f"unknown query {query!r}; choose from {known}")
        if query in GROUPED and method != "sealed":
            raise ArgumentError(
                f"{query} is counted by method sealed; or make a release, which answers it for free"
            )
        if method not in (*ANSWERING, "auto"):
            known = ", ".join((*ANSWERING, "auto"))
            raise ArgumentError(f"unknown method {method!r}; choose from {known}")
        epsilon = check_epsilon(epsilon)
        check_parties(len(self.silos), collusion)
        if fold is not None:
            FoldedRelease.check_query(query, k)
        else:
            Release.check_leaves(query, k, len(self.universe))
        given: dict[str, Any] = {
            "delta": delta, "protocol": protocol, "raw": raw, "local": local, "split": split,
            "bound": bound, "like": like, "owned": owned, "trust": trust, "noise": noise,
            "fold": fold, "groups": groups,
        }  # fmt: skip
        if method == "auto" and fold is not None:
            method = "feat"
        _check_options(method, given)
        if fold == "auto" and method == "feat":
            asked = Question(query, epsilon, len(self.silos), collusion, k)
            given["protocol"], given["fold"] = self._choose_fold(asked, protocol, like)
            given["like"] = None
        if method == "auto":
            method, chosen = self._choose(query, k, epsilon, collusion, given)
            given = dict.fromkeys(given) | chosen
        index, asked = None, Question(query, epsilon, len(self.silos), collusion, k, delta, owned)
        way = "feat folded" if fold == "auto" and method == "feat" else method
        expect = partial(self._expect, confirm, asked, way, like)
        if method == "sealed" and given["fold"] is not None:
            if given["fold"] == "auto" or isinstance(given["fold"].hubs, int):
                raise ArgumentError(
                    "sealed needs a fold whose hubs are a list; Federation.find_hubs finds them"
                )
            index = self._index(given["fold"])
        elif given["fold"] is not None:
            release, answer = self._collect_folded(
                query, k, epsilon, given["protocol"], collusion, given["fold"], {}, progress, expect
            )
            return release.at_its_cost(cast("Estimate[Any]", answer))
        outcome = self._ask(
            method,
            query,
            epsilon,
            collusion,
            k=k,
            delta=sealed_delta(given["delta"], given["noise"]) if method == "sealed" else 0.0,
            protocol=given["protocol"],
            options=_study_options(given) | self._group_options(query, groups),
            like=given["like"],
            owned=given["owned"],
            progress=progress,
            index=index,
            expect=expect,
        )
        return cast("Estimate[Any]", outcome.answer)

    def _group_options(
        self, query: str, groups: Mapping[Any, Any] | None
    ) -> dict[str, StudyOption]:
        """The options of a study by a public partition."""
        if (groups is None) == (query in GROUPED):
            raise ArgumentError(f"groups are for {', '.join(GROUPED)}, which needs them")
        return {} if groups is None else group_options(Groups.of(groups, self.universe))

    def _index(self, fold: Fold) -> Index:
        """The index of a study that folds nodes in this way."""
        try:
            return folded_index(fold, self.universe)
        except StudyError as error:
            raise ArgumentError(str(error)) from None

    def _choose(
        self, query: str, k: int | None, epsilon: float, collusion: int, given: Mapping[str, Any]
    ) -> tuple[str, dict[str, Any]]:
        """The method that the planner chooses, and its arguments."""
        if query not in PLANNED:
            return "feat", {}
        like, silos = given["like"], len(self.silos)
        asked = Question(query, epsilon, silos, collusion, k, given["delta"], given["owned"])
        plan = plan_options(self._outline(like, query), asked, given["trust"] or ())
        best: Option = plan.best
        if best.method == "feat":
            return "feat", {"protocol": best.protocol, **best.arguments}
        if best.method == "sealed":
            return "sealed", {"delta": given["delta"], "like": like}
        return best.method, best.arguments

    def _choose_fold(
        self, asked: Question, protocol: str | None, like: Like | None
    ) -> tuple[str, Fold]:
        """The protocol and the fold that are expected to be best for a question."""
        trust = ("helpers",) if protocol == COMMITTEE else ()
        for option in plan_options(self._outline(like, asked.query), asked, trust).allowed:
            if "fold" in option.arguments and protocol in (None, option.protocol):
                return option.protocol, option.arguments["fold"]
        raise ArgumentError(
            "no fold is expected to serve this graph at this epsilon; name one, as in "
            "Fold(groups=1000)"
        )

    def _expect(
        self,
        confirm: Confirm | None,
        asked: Question,
        way: str,
        like: Like | None,
        plan: SettledStudy,
    ) -> None:
        """Tell the caller what a run is expected to give and to cost, before it is paid for."""
        expected = Forecast(asked, None, plan.cost)
        # Of a fold that the caller names, the planner knows nothing.
        named = plan.study.index.folded and way != "feat folded"
        large = (self.universe.size or 0) >= _LEAST_NODES
        if asked.query in PLANNED and way in WAYS and not named and (large or like is not None):
            outline = self._outline(like, asked.query)
            protocol = plan.protocol if way.startswith("feat") else None
            expected = forecast(outline, asked, way, protocol, cost=plan.cost)
        if confirm is not None:
            confirm(expected)
        elif expected.useless:
            warnings.warn(expected.warning, UselessAnswerWarning, stacklevel=4)

    def _outline(self, like: Like | None, query: str) -> Reference:
        """A reference for the graph; it is never taken from the silos' edges."""
        cycles = query == "four_cycles"
        if like is None and self.universe.is_open:
            raise ArgumentError(
                "an open universe does not say how many nodes there are: name a method and a fold, "
                "or give a graph that this one is like"
            )
        if like is None:
            return _guessed(len(self.universe), cycles)
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
        index: Index | None = None,
        expect: Expect | None = None,
    ) -> Outcome:
        """Run one study: settle it, charge the ledger, drive the sessions, and answer."""
        # A folded study asks its silos for nothing but folds, which those in parts have, too.
        folded = index is not None and index.folded
        silos = cast("tuple[Silo, ...]", self.silos) if folded else whole(self.silos)
        plan, parties = self._settled(
            method, query, epsilon, collusion, k=k, delta=delta, protocol=protocol,
            options=options, like=like, owned=owned, index=index,
        )  # fmt: skip
        if plan.cost is not None and not plan.cost.within_reach:
            what, advice = _OUT_OF_REACH[plan.study.index.folded]
            raise ArgumentError(
                f"{plan.cost.bits:,} {what} are out of reach of this machine: {plan.cost}; {advice}"
            )
        if expect is not None:
            expect(plan)
        for advice in (self._completed_by(parties), plan.advice):
            if advice:
                warnings.warn(advice, PrivacyWarning, stacklevel=3)
        losses = plan.losses

        def spend() -> None:
            """Charge the whole cost, at every level of collusion, before anything leaves a silo."""
            self._ledger.spend(
                self.lineage, plan.study.run, "release", losses, plan.delta, view=plan.view,
                method=plan.what, unbounded=any(map(math.isinf, losses.values())),
                new_lineage=self._new_lineage,
            )  # fmt: skip

        result = drive_study(plan, parties, silos, spend, record=self._record, shown=progress)
        return plan.outcome(result, self.universe)

    def _settled(
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
        index: Index | None = None,
    ) -> tuple[SettledStudy, Parties]:
        """A study with all that follows from it, and its parties. Nothing is spent."""
        epsilon, delta = check_epsilon(epsilon), check_delta(delta)
        check_parties(len(self.silos), collusion)
        if protocol is None:
            protocol = default_protocol(len(self.silos), collusion, method)
        missing = max(MEMBERS - len(self.silos), 0) if protocol == COMMITTEE else 0
        parties = self._parties or Parties.fresh(self.silos, self._entropy, missing)
        try:
            study = Study(
                run=parties.coordinator[1].bytes(16).hex(),
                query=query,
                method=method,
                protocol=protocol,
                epsilon=epsilon,
                delta=delta,
                collusion=collusion,
                universe=self.universe.digest,
                nodes=self.universe.size or 0,
                roster=parties.roster.digest.hex(),
                coordinator=parties.roster.coordinator.name,
                silos=tuple(member.name for member in parties.roster.silos),
                deadline=self._deadline,
                k=None if k is None else int(k),
                options=options or {},
                members=_committee(parties.roster) if protocol == COMMITTEE else (),
                index=index or Index(),
            )
            reference = None if like is None else self._outline(like, query)
            return settle_study(study, reference, owned), parties
        except StudyError as error:
            raise ArgumentError(str(error)) from None

    def _completed_by(self, parties: Parties) -> str:
        """A note on simulated helpers; empty if there are none."""
        return _completed(len(parties.helpers)) if parties.helpers and not self._parties else ""

    def __repr__(self) -> str:
        return f"Federation({len(self.silos)} silos, {self.universe.size_text})"


@lru_cache(maxsize=16)
def _guessed(nodes: int, cycles: bool) -> Reference:
    return guess(nodes, cycles=cycles)


def _committee(roster: Roster) -> tuple[StudyMember, ...]:
    """The first four of the silos and the helpers after them."""
    silos = [StudyMember(member.name, "silo") for member in roster.silos]
    helpers = [StudyMember(member.name, "helper") for member in roster.helpers]
    return tuple([*silos, *helpers][:MEMBERS])


def _expected_before(plan: SettledStudy) -> None:
    """Nothing: what is expected was said before the first of two studies."""


def _completed(helpers: int) -> str:
    what = (
        "a simulated helper completes" if helpers == 1 else f"{helpers} simulated helpers complete"
    )
    return (
        f"{what} the committee of four; in a deployment a helper is a party of its own, such as a "
        "notary or a university"
    )


#: What helps where a run is out of reach, for pairs and for buckets.
_OUT_OF_REACH = (
    ("pairs of nodes", "fold the nodes into groups, with fold='auto' (or --fold auto)"),
    ("buckets", "take fewer groups"),
)
#: The options that each method takes besides the query, epsilon and collusion.
_OPTIONS = {
    "auto": {"delta", "like", "owned", "trust"},
    "baseline": {"raw"},
    "feat": {"protocol", "fold", "like"},
    "feat+": {"protocol", "local", "split", "bound", "like", "owned"},
    "sealed": {"delta", "noise", "like", "fold", "groups"},
}
_KINDS: dict[str, tuple[type[Any], ...]] = {
    "raw": (bool,),
    "local": (str,),
    "protocol": (str,),
    "like": (Reference, Release, Silo),
    "noise": (str,),
    "fold": (Fold,),
}


def _check_options(method: str, given: Mapping[str, Any]) -> None:
    """Refuse unused arguments and arguments of the wrong type, before anything is spent."""
    for name, value in given.items():
        unused = value is not None and name not in _OPTIONS[method]
        if unused and not (name == "delta" and value == 0):
            takes = ", ".join(sorted(_OPTIONS[method]))
            users = [other for other, options in _OPTIONS.items() if name in options]
            raise ArgumentError(
                f"{method} has no use for {name}; it takes {takes}"
                + (f"; {name} is for the method {' or '.join(users)}" if users else "")
            )
    for name, kind in _KINDS.items():
        auto = name == "fold" and given[name] == "auto"
        if given[name] is not None and not auto and not isinstance(given[name], kind):
            wanted = " or ".join(one.__name__ for one in kind)
            raise ArgumentError(f"{name} must be a {wanted}, not {given[name]!r}")
    for name in ("bound", "owned"):
        if given[name] is not None:
            check_number(name, given[name])
    if given["owned"] is not None and not 0 <= given["owned"] <= 1:
        raise ArgumentError(f"owned must be from 0 to 1, not {given['owned']!r}")
    _check_helpful(method, given)
    trust = given["trust"]
    if trust is not None and (isinstance(trust, str) or not isinstance(trust, Collection)):
        raise ArgumentError(f"trust must be a list of names, not {trust!r}")
    if given["delta"] is not None:
        check_delta(given["delta"])


def _check_helpful(method: str, given: Mapping[str, Any]) -> None:
    """Refuse descriptions of the graph where there is nothing left to choose."""
    chosen = given["split"] not in (None, "auto")
    for name in ("like", "owned"):
        if given[name] is not None and chosen:
            raise ArgumentError(f"feat+ with a split has no use for {name}")
    if method == "feat" and given["like"] is not None and given["fold"] != "auto":
        raise ArgumentError("feat has no use for like, unless fold is 'auto'")


def _study_options(given: Mapping[str, Any]) -> dict[str, StudyOption]:
    """The options of a study, from the arguments of a call."""
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
            message = f"split is {split!r}; it must be paper, auto or three numbers"
            raise ArgumentError(message) from None
    return made
