"""The federation: several silos, one question, one answer."""

import math
import warnings
from collections.abc import Collection, Sequence
from dataclasses import replace
from numbers import Real
from typing import Any

from silograph import _core
from silograph.crypto.limbs import limbs
from silograph.errors import ArgumentError, PrivacyWarning, UniverseError
from silograph.graph.bitrows import BitRows
from silograph.graph.silo import Silo, union
from silograph.methods.catalogue import METHODS, QUERIES
from silograph.methods.featplus import FeatPlusPlan, combine, plan_featplus
from silograph.methods.planner import PLANNED, Option, plan_options
from silograph.methods.plans import union_parameters
from silograph.methods.prediction import Question
from silograph.methods.sealed import (
    plan_sealed,
    sealed_parameters,
    sealed_release,
    with_trust_note,
)
from silograph.methods.union import UnionPlan, plan_union
from silograph.privacy.baseline import BaselineNoise
from silograph.privacy.channel import Channel
from silograph.privacy.loss import check_delta, check_epsilon, shown_loss
from silograph.privacy.masked import check_parties
from silograph.privacy.sealed import Answer, Kind, SealedNoise
from silograph.protocol.entropy import Entropy
from silograph.protocol.masked import MaskedParameters
from silograph.protocol.reports import ReportParameters
from silograph.queries.estimate import Estimate
from silograph.queries.outline import Outline
from silograph.queries.outline_sources import guess, outline_like
from silograph.queries.release import Provenance, Release
from silograph.queries.report_counts import ReportCounts
from silograph.queries.reports import Reports
from silograph.queries.sealed import SealedRelease
from silograph.runtime.entropy import OsEntropy
from silograph.runtime.ledger import Ledger, NoLedger
from silograph.runtime.ledger_entries import check_name
from silograph.runtime.simulation import (
    Run,
    run_elgamal,
    run_masked,
    run_reports,
    simulated_roster,
)
from silograph.runtime.simulation_featplus import run_local
from silograph.runtime.simulation_sealed import run_sealed

__all__ = ["Federation"]

_METHODS = (*METHODS, "auto")


class Federation:
    """Silos over one universe, and the runs that they make together.

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
    ) -> None:
        self.silos = tuple(silos)
        self.universe = self.silos[0].universe
        self.lineage = lineage
        self._new_lineage = new_lineage
        self._ledger: Ledger | NoLedger = ledger if ledger is not None else NoLedger()
        self._entropy = entropy

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
        the same distribution, no cryptography, for experiments.
        """
        plan = plan_union(protocol, check_epsilon(epsilon), len(self.silos), collusion, channel)
        return self._collect(plan, "feat", progress)

    def reports(
        self, epsilon: float, collusion: int = 0, *, progress: bool | None = None
    ) -> Reports:
        """The baseline (the paper's Algorithm 1): every silo's own noisy bits, at epsilon/m each.

        It needs no cryptography, shows which silos hold an edge as far as epsilon allows, and is
        far less accurate than :meth:`collect`.
        """
        noise = BaselineNoise.choose(epsilon, len(self.silos), collusion)
        run = self._entropy.bytes(16)
        m, n = len(self.silos), len(self.universe)
        losses = {t: noise.epsilon(m - t) for t in range(m)}
        simulated = self._run(run, losses, "baseline", progress)
        channel, subject = noise.channel, bytes.fromhex(self.universe.digest)
        parameters = ReportParameters(channel.p11, channel.p01, m, n * (n - 1) // 2, subject)
        rows = [BitRows.from_triangle(n, report) for report in run_reports(simulated, parameters)]
        provenance = Provenance("baseline", "reports", m, collusion, run.hex())
        return Reports(
            ReportCounts.of(rows), noise, self.universe.digest, provenance, self.universe
        )

    def seal(
        self,
        epsilon: float,
        answers: Sequence[Answer] = ("degrees", "triangles"),
        *,
        delta: float = 0.0,
        collusion: int = 1,
        noise: Kind = "shared",
        degree_share: float = 0.1,
        progress: bool | None = None,
    ) -> SealedRelease:
        """Count exactly on the hidden union, and open the answers with noise.

        ``answers`` are some of edges, degrees, two_stars, triangles. With ``delta`` the noisy
        degrees come first, with ``degree_share`` of epsilon, and bound the noise of the others.
        It assumes that the coordinator deals honestly and colludes with no silo.
        """
        chosen = SealedNoise.choose(
            epsilon,
            len(self.universe),
            len(self.silos),
            collusion,
            answers,
            delta=delta,
            degree_share=degree_share,
            kind=noise,
        )
        return self._seal(chosen, progress)

    def count(
        self,
        query: str,
        method: str = "feat",
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
        like: Outline | Release | Silo | None = None,
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
        if method not in _METHODS:
            raise ArgumentError(f"unknown method {method!r}; choose from {', '.join(_METHODS)}")
        Release.check_leaves(query, k, len(self.universe))
        epsilon = check_epsilon(epsilon)
        check_parties(len(self.silos), collusion)
        _check_options(
            method, delta=delta, protocol=protocol, raw=raw, local=local, split=split, bound=bound,
            like=like, owned=owned, trust=trust, noise=noise,
        )  # fmt: skip
        delta = check_delta(0.0 if delta is None else delta)
        asked = Question(query, epsilon, len(self.silos), collusion, k, delta, owned)
        if method == "auto" and query not in PLANNED:
            method = "feat"
        if method == "auto":
            best = plan_options(self._outline(like, query), asked, trust or ()).best
            return self.count(
                query,
                best.method,
                epsilon=epsilon,
                k=k,
                collusion=collusion,
                progress=progress,
                **self._chosen(best, like),
            )
        options = {} if k is None else {"k": k}
        protocol = "masked" if protocol is None else protocol
        if method == "baseline":
            if not hasattr(Reports, query):
                raise ArgumentError(f"baseline does not answer {query}")
            reports = self.reports(epsilon, collusion, progress=progress)
            return _with_release(getattr(reports, query)(raw=bool(raw), **options), reports)
        if method == "sealed":
            sealed = plan_sealed(self._outline(like, query), asked, noise or "shared")
            opened = self._seal(sealed.noise, progress)
            return _with_release(with_trust_note(getattr(opened, query)(**options)), opened)
        if method == "feat+":
            m, n = len(self.silos), len(self.universe)
            split, local = split or "auto", local or "gradient"
            outline = self._outline(like, query) if split == "auto" else None
            featplus = plan_featplus(
                query,
                k,
                local,
                split,
                epsilon,
                m,
                collusion,
                protocol,
                n,
                bound,
                outline=outline,
                owned=owned,
            )
            return self._featplus(featplus, progress)
        plan = plan_union(protocol, epsilon, len(self.silos), collusion)
        release = self._collect(plan, method, progress)
        return _with_release(getattr(release, query)(**options), release)

    @staticmethod
    def _chosen(best: Option, like: Outline | Release | Silo | None) -> dict[str, Any]:
        """The arguments that ask for what the planner has chosen."""
        if best.method == "feat":
            return {"protocol": best.protocol}
        if best.method == "sealed":
            return {"delta": best.delta, "like": like}
        return best.arguments

    def _outline(self, like: Outline | Release | Silo | None, query: str) -> Outline:
        """What the graph may look like; never taken from the silos' edges."""
        cycles = query == "four_cycles"
        if like is None:
            return guess(len(self.universe), cycles=cycles)
        return outline_like(like, cycles=cycles)

    def _collect(self, plan: UnionPlan, method: str, progress: bool | None) -> Release:
        if plan.advice:
            warnings.warn(plan.advice, PrivacyWarning, stacklevel=3)
        run = self._entropy.bytes(16)
        simulated = self._run(run, plan.losses, f"{method} {plan.protocol}", progress)
        return self._release(plan, method, simulated)

    def _featplus(self, plan: FeatPlusPlan, progress: bool | None) -> Estimate[float]:
        if plan.advice:
            warnings.warn(plan.advice, PrivacyWarning, stacklevel=3)
        run = self._entropy.bytes(16)
        parties = simulated_roster(self.silos, self._entropy)
        # One spend, of all of epsilon: the union makes it, before its first byte.
        simulated = self._run(run, plan.losses, f"feat+ {plan.union.protocol}", progress)
        simulated = replace(simulated, parties=parties)
        release = self._release(plan.union, "feat+", simulated)
        if not plan.answers_locally:
            return _with_release(combine(plan, release, None, ()), release)
        subject = bytes.fromhex(self.universe.digest)
        shared, reports = run_local(simulated, parties, plan, release.graph, subject)
        return _with_release(combine(plan, release, shared, reports), release)

    def _seal(self, noise: SealedNoise, progress: bool | None) -> SealedRelease:
        parameters = sealed_parameters(noise, bytes.fromhex(self.universe.digest))
        for view in noise.views:
            if not view.claimed and math.isfinite(view.epsilon):
                loss = shown_loss(view.epsilon)
                warnings.warn(
                    f"with collusion=0 one who holds {view.name} has a loss of {loss}",
                    PrivacyWarning,
                    stacklevel=3,
                )
        run = self._entropy.bytes(16)
        simulated = self._run(
            run, noise.losses, "sealed", progress, delta=noise.delta, view="t silos + answers"
        )
        result = run_sealed(simulated, parameters)
        return sealed_release(noise, result, self.universe, run.hex())

    def _release(self, plan: UnionPlan, method: str, simulated: Run) -> Release:
        n = len(self.universe)
        if plan.noise is None:
            simulated.spend()
            graph = self._draw(plan.channel)
        else:
            pairs, subject = n * (n - 1) // 2, bytes.fromhex(self.universe.digest)
            given = union_parameters(plan, pairs, subject)
            if isinstance(given, MaskedParameters):
                triangle = run_masked(simulated, given)
            else:
                triangle = run_elgamal(simulated, given)
            graph = BitRows.from_triangle(n, triangle)
        run = simulated.id.hex()
        provenance = Provenance(method, plan.protocol, plan.silos, plan.collusion, run)
        return Release(
            graph, plan.channel, self.universe.digest, provenance, plan.views, self.universe
        )

    def _run(
        self,
        run: bytes,
        losses: dict[int, float],
        what: str,
        progress: bool | None,
        *,
        delta: float = 0.0,
        view: str = "coordinator + t silos",
    ) -> Run:
        """A run whose cost, at every level of collusion, is in the ledger before any release."""
        unbounded = any(map(math.isinf, losses.values()))

        def spend() -> None:
            self._ledger.spend(
                self.lineage,
                run.hex(),
                "release",
                losses,
                delta,
                view=view,
                method=what,
                unbounded=unbounded,
                new_lineage=self._new_lineage,
            )

        return Run(self.silos, run, self._entropy, spend, shown=progress)

    def _draw(self, channel: Channel) -> BitRows:
        rows = _core.draw_rows(
            len(self.universe),
            union(self.silos).pairs,
            limbs(channel.p11),
            limbs(channel.p01),
            self._entropy.bytes(32),
        )
        return BitRows(rows)

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


def _check_options(method: str, **given: Any) -> None:
    """Refuse what the method does not use, and what is of the wrong kind, before anything is
    spent."""
    for name, value in given.items():
        if value is None:
            continue
        if name not in _OPTIONS[method] and not (name == "delta" and value == 0):
            takes = ", ".join(sorted(_OPTIONS[method]))
            raise ArgumentError(f"{method} has no use for {name}; it takes {takes}")
    kinds: dict[str, tuple[type[Any], ...]] = {
        "raw": (bool,),
        "local": (str,),
        "protocol": (str,),
        "like": (Outline, Release, Silo),
        "noise": (str,),
    }
    for name, kind in kinds.items():
        if given[name] is not None and not isinstance(given[name], kind):
            wanted = " or ".join(one.__name__ for one in kind)
            raise ArgumentError(f"{name} must be a {wanted}, not {given[name]!r}")
    for name in ("bound", "owned"):
        value = given[name]
        if value is not None and (isinstance(value, bool) or not isinstance(value, Real)):
            raise ArgumentError(f"{name} must be a number, not {value!r}")
    if isinstance(given["trust"], str):
        raise ArgumentError(f"trust must be a list of names, not {given['trust']!r}")


def _with_release(
    answer: Estimate[Any], release: Release | SealedRelease | Reports
) -> Estimate[Any]:
    """The answer, and with it what was paid for: more questions on that are free."""
    origin = answer.origin
    return answer if origin is None else replace(answer, origin=replace(origin, release=release))
