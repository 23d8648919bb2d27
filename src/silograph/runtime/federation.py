"""The federation: several silos, one question, one answer."""

import math
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from silograph import _core
from silograph.crypto.limbs import limbs
from silograph.errors import ArgumentError, PrivacyWarning, UniverseError
from silograph.graph.bitrows import BitRows
from silograph.graph.silo import Silo, union
from silograph.methods.union import UnionPlan, plan_union
from silograph.privacy.channel import Channel
from silograph.privacy.loss import check_epsilon
from silograph.privacy.masked import MaskedNoise
from silograph.protocol.elgamal import ElgamalParameters
from silograph.protocol.entropy import Entropy
from silograph.protocol.masked import MaskedParameters
from silograph.queries.estimate import Estimate
from silograph.queries.release import Provenance, Release
from silograph.runtime.entropy import OsEntropy
from silograph.runtime.ledger import Ledger, NoLedger
from silograph.runtime.simulation import Run, run_elgamal, run_masked

__all__ = ["Federation"]

_METHODS = ("feat",)
_QUERIES: dict[str, Callable[..., Estimate[Any]]] = {
    "edges": Release.edges,
    "degrees": Release.degrees,
    "degree_histogram": Release.degree_histogram,
    "kstars": Release.kstars,
    "triangles": Release.triangles,
    "node_triangles": Release.node_triangles,
    "four_cycles": Release.four_cycles,
    "clustering": Release.clustering,
}


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
        self, silos: Sequence[Silo], ledger: Ledger | None, lineage: str, entropy: Entropy
    ) -> None:
        self.silos = tuple(silos)
        self.universe = self.silos[0].universe
        self.lineage = lineage
        self._ledger: Ledger | NoLedger = ledger if ledger is not None else NoLedger()
        self._entropy = entropy

    @classmethod
    def simulate(
        cls, silos: Sequence[Silo], ledger: Ledger | None = None, *, lineage: str = "simulation"
    ) -> "Federation":
        """All parties in this process, with the real protocols.

        Good for trying methods on data that may be in one place. Without a ledger nothing adds up
        what is spent, and a warning says so.
        """
        silos = tuple(silos)
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
        return cls(silos, ledger, lineage, OsEntropy())

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
        plan = plan_union(protocol, epsilon, len(self.silos), collusion, channel)
        return self._collect(plan, "feat", progress)

    def count(
        self,
        query: str,
        method: str = "feat",
        *,
        epsilon: float,
        k: int | None = None,
        protocol: str = "masked",
        collusion: int = 1,
        progress: bool | None = None,
    ) -> Estimate[Any]:
        """Ask one question. For several, :meth:`collect` once and ask the release."""
        if query not in _QUERIES:
            raise ArgumentError(f"unknown query {query!r}; choose from {', '.join(_QUERIES)}")
        if method not in _METHODS:
            raise ArgumentError(f"unknown method {method!r}; choose from {', '.join(_METHODS)}")
        if (k is None) != (query != "kstars"):
            raise ArgumentError("kstars needs k, and nothing else takes it")
        if k is not None:
            Release.check_k(k, len(self.universe))
        check_epsilon(epsilon)
        plan = plan_union(protocol, epsilon, len(self.silos), collusion)
        release = self._collect(plan, method, progress)
        return _QUERIES[query](release) if k is None else _QUERIES[query](release, k)

    def _collect(self, plan: UnionPlan, method: str, progress: bool | None) -> Release:
        if plan.advice:
            warnings.warn(plan.advice, PrivacyWarning, stacklevel=3)
        run = self._entropy.bytes(16)

        def spend() -> None:
            self._ledger.spend(
                self.lineage,
                run.hex(),
                "release",
                plan.losses,
                view="coordinator + t silos",
                method=f"{method} {plan.protocol}",
                unbounded=any(map(math.isinf, plan.losses.values())),
            )

        n = len(self.universe)
        if plan.noise is None:
            spend()
            graph = self._draw(plan.channel)
        else:
            pairs, subject = n * (n - 1) // 2, bytes.fromhex(self.universe.digest)
            simulated = Run(self.silos, run, self._entropy, spend, shown=progress)
            if isinstance(plan.noise, MaskedNoise):
                q, b = plan.noise.q, plan.noise.b
                masked = MaskedParameters(q, b, plan.silos, pairs, subject)
                triangle = run_masked(simulated, masked)
            else:
                variant, coin = plan.noise.variant, plan.noise.coin
                elgamal = ElgamalParameters(variant, coin, plan.silos, pairs, subject)
                triangle = run_elgamal(simulated, elgamal)
            graph = BitRows.from_triangle(n, triangle)
        provenance = Provenance(method, plan.protocol, plan.silos, plan.collusion, run.hex())
        return Release(
            graph, plan.channel, self.universe.digest, provenance, plan.views, self.universe
        )

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
