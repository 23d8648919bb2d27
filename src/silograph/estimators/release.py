"""The release: a published noisy graph with its channel, its queries and its file format.

A release is paid for once. Every query on it is post-processing and costs no further privacy,
however many queries are asked and by whom.
"""

import hashlib
import json
import math
import os
import re
import reprlib
import struct
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from silograph import _core
from silograph.dp.channel import Channel, limbs
from silograph.dp.loss import PUBLISHED, View, shown_loss
from silograph.errors import (
    ArgumentError,
    CalibrationWarning,
    ChannelError,
    ReleaseError,
    UniverseError,
)
from silograph.estimators import cycles, degrees, stars, triangles
from silograph.estimators.estimate import (
    NO_ANSWER,
    Estimate,
    FloatArray,
    Origin,
    Provenance,
    definitions,
    views_table,
)
from silograph.estimators.inversion import degree_limits
from silograph.estimators.pair_sums import GraphSums
from silograph.extras import library
from silograph.graph.bits import BitRows, triangle_bytes
from silograph.graph.convert import adjacency
from silograph.graph.samples import seed_bytes
from silograph.graph.silo import Silo
from silograph.graph.universe import NodeUniverse
from silograph.whole_files import written_whole

if TYPE_CHECKING:
    import networkx
    import scipy.sparse

__all__ = [
    "CURVE_NOTE",
    "RATIO_NOTE",
    "Provenance",
    "Release",
    "ReleaseContent",
    "read",
    "to_edges",
    "to_networkx",
    "to_scipy",
    "write",
]


# --- Release files: versioned, with a checksum, written completely or not at all ------------------
#
# Layout; all integers are little-endian::
#
#     16 bytes   the magic, b"silograph.releas"
#      4 bytes   format version
#      4 bytes   length of the header
#                header: JSON, UTF-8 (n, channel as fractions, universe digest, provenance, views,
#                losses)
#                payload: one bit per pair in pair order, padded to 64-bit words
#     32 bytes   SHA-256 of everything before it
#
# The checksum detects damage, not manipulation: anyone who can write the file can write the
# checksum. So every field is checked, and views and losses are compared with the noise: a release
# that claims to cost less than its own channel is refused. What colluding silos see beyond the
# channel depends on the protocol and does not follow from the channel, so the losses in the file
# are used for it.
#
# JSON has no infinity: an unbounded loss is written as the text "unbounded".
_MAGIC = b"silograph.releas"
_VERSION = 2
_PREFIX = struct.Struct("<16sII")
_CHECKSUM_BYTES = 32
_LARGEST_HEADER = 1 << 20
_LONGEST_TEXT = 200
_MOST_SILOS = 64
_UNBOUNDED = "unbounded"
# Exponents are not accepted: a few characters could stand for a number of any size.
_FRACTION = re.compile(r"[0-9]+(/[0-9]+)?")
_DIGEST = re.compile(r"[0-9a-f]{64}")
_RUN = re.compile(r"([0-9a-f]{32})?")


@dataclass(frozen=True)
class ReleaseContent:
    """The content of a release file."""

    graph: BitRows
    channel: Channel
    universe_digest: str
    provenance: Provenance
    views: tuple[View, ...]
    losses: Mapping[int, float]


def write(
    path: str | os.PathLike[str],
    graph: BitRows,
    channel: Channel,
    universe_digest: str,
    provenance: Provenance,
    views: Iterable[View],
    losses: Mapping[int, float],
) -> None:
    """Write a release file, completely or not at all."""
    target = Path(path)
    try:
        p11, p01 = str(channel.p11), str(channel.p01)
    except ValueError:  # more digits than Python converts
        raise ReleaseError(f"{target}: p11 or p01 is too long to be written") from None
    header = {
        "n": graph.n,
        "p11": p11,
        "p01": p01,
        "universe": universe_digest,
        "provenance": asdict(provenance),
        "views": [asdict(view) | {"epsilon": _plain(view.epsilon)} for view in views],
        "losses": {str(t): _plain(loss) for t, loss in losses.items()},
    }
    text = json.dumps(header, sort_keys=True, separators=(",", ":"), allow_nan=False)
    encoded = text.encode()
    content = _PREFIX.pack(_MAGIC, _VERSION, len(encoded)) + encoded + graph.to_triangle()
    try:
        with written_whole(target) as partial, partial.open("wb") as file:
            file.write(content)
            file.write(hashlib.sha256(content).digest())
    except OSError as error:
        raise ReleaseError(f"{target}: cannot write the release: {error.strerror}") from None


def read(path: str | os.PathLike[str]) -> ReleaseContent:
    """Read a release file; raise :class:`ReleaseError` for anything that is not exactly one."""
    source = Path(path)
    try:
        content = source.read_bytes()
    except OSError as error:
        raise ReleaseError(f"{source}: cannot read the release: {error.strerror}") from None
    try:
        return _read(content)
    except ReleaseError as error:
        raise ReleaseError(f"{source}: {error}") from None
    except ChannelError as error:
        raise ReleaseError(f"{source}: the release is refused: {error}") from None


def _read(content: bytes) -> ReleaseContent:
    if len(content) < _PREFIX.size or not content.startswith(_MAGIC):
        raise ReleaseError("not a Silograph release")
    _, version, header_bytes = _PREFIX.unpack_from(content)
    if version != _VERSION:
        raise ReleaseError(
            f"release format {version}; this version of Silograph reads format {_VERSION}"
        )
    start = _PREFIX.size + header_bytes
    if header_bytes > _LARGEST_HEADER or len(content) < start:
        raise ReleaseError("the release is truncated")
    intact = hashlib.sha256(content[:-_CHECKSUM_BYTES]).digest() == content[-_CHECKSUM_BYTES:]
    try:
        header = _Fields("", json.loads(content[_PREFIX.size : start]))
        n = header.whole("n", 0)
    except (ReleaseError, ValueError, RecursionError) as error:
        known = intact and isinstance(error, ReleaseError)
        raise ReleaseError(str(error) if known else "the release is damaged") from None
    expected = start + triangle_bytes(n) + _CHECKSUM_BYTES
    if not intact:
        cut = len(content) < expected
        raise ReleaseError(f"the release is {'truncated' if cut else 'damaged'}")
    if len(content) != expected:
        raise ReleaseError("the release is damaged: its length is wrong")
    channel = Channel(header.fraction("p11"), header.fraction("p01"))
    universe = header.text("universe", _DIGEST, "64 hexadecimal digits")
    provenance = _provenance(header.inner("provenance"))
    views = _views(header)
    losses = _losses(header.inner("losses"), provenance.silos)
    header.check_all_read()
    _check_views(channel, views, provenance.collusion, losses)
    _check_losses(channel, losses)
    graph = BitRows.from_triangle(n, content[start:-_CHECKSUM_BYTES])
    return ReleaseContent(graph, channel, universe, provenance, views, losses)


def _provenance(given: "_Fields") -> Provenance:
    silos = given.whole("silos", 1, _MOST_SILOS)
    found = Provenance(
        method=given.text("method"),
        protocol=given.text("protocol"),
        silos=silos,
        collusion=given.whole("collusion", 0, silos - 1),
        run=given.text("run", _RUN, "32 hexadecimal digits, or empty"),
    )
    given.check_all_read()
    return found


def _views(header: "_Fields") -> tuple[View, ...]:
    views: dict[str, View] = {}
    for given in header.listed("views"):
        name, epsilon, delta = given.text("name"), given.loss("epsilon"), given.share("delta")
        if name in views:
            raise ReleaseError(f"the release is refused: there are two views {name!r}")
        views[name] = View(name, epsilon, delta, given.truth("claimed"))
        given.check_all_read()
    if not any(view.claimed for view in views.values()):
        raise ReleaseError("the release is refused: no view is claimed, so it promises nothing")
    return tuple(views.values())


def _losses(given: "_Fields", silos: int) -> dict[int, float]:
    """The loss for each number of colluding silos, from none to all but one."""
    losses = {t: given.loss(str(t)) for t in range(silos)}
    given.check_all_read()
    return losses


def _check_losses(channel: Channel, losses: Mapping[int, float]) -> None:
    """Refuse losses that no union can have.

    Every coalition in them sees the release, so no loss is below that of the channel; and one more
    silo never sees less of a union. Both sides are rounded up to a float. An honest loss is never
    below the smallest sufficient float, whichever version of Silograph computed it.
    """
    for t, loss in losses.items():
        if loss < channel.epsilon:
            raise ReleaseError(
                f"the release is refused: losses.{t} says ε = {shown_loss(loss)}, but anyone "
                f"who sees its noise has a loss of {shown_loss(channel.epsilon)}"
            )
        if t and loss < losses[t - 1]:
            raise ReleaseError(
                f"the release is refused: losses.{t} says ε = {shown_loss(loss)}, less than with "
                f"one silo fewer, {shown_loss(losses[t - 1])}"
            )


def _check_views(
    channel: Channel, views: tuple[View, ...], collusion: int, losses: Mapping[int, float]
) -> None:
    """Refuse views that state less than the noise costs.

    Every view, claimed or not, has at least the loss of the channel. The claimed views must cover
    the coalition that the release names.
    """
    for view in views:
        if view.epsilon < channel.epsilon:
            raise ReleaseError(
                f"the release is refused: view {view.name!r} says ε = {shown_loss(view.epsilon)}, "
                f"but anyone who sees its noise has a loss of {shown_loss(channel.epsilon)}"
            )
    worst = max(view.epsilon for view in views if view.claimed)
    loss = losses[collusion]
    if worst < loss:
        raise ReleaseError(
            f"the release is refused: its views say at most ε = {shown_loss(worst)}, but with "
            f"{collusion} silos that collude its noise costs {shown_loss(loss)}"
        )


def _plain(loss: float) -> float | str:
    return _UNBOUNDED if loss == math.inf else loss


class _Fields:
    """One object of the header; every field is checked, and unknown fields are refused."""

    def __init__(self, where: str, given: object) -> None:
        self._where = where
        if not isinstance(given, dict):
            what = where.rstrip(".") or "the header"
            raise ReleaseError(
                f"the release is refused: {what} must be an object, not {_shown(given)}"
            )
        self._left = dict(given)

    def _take(self, name: str) -> Any:
        try:
            return self._left.pop(name)
        except KeyError:
            raise ReleaseError(f"the release is refused: {self._where}{name} is missing") from None

    def _refuse(self, name: str, due: str, value: object) -> ReleaseError:
        what = f"{self._where}{name} must be {due}, not {_shown(value)}"
        return ReleaseError(f"the release is refused: {what}")

    def whole(self, name: str, least: int, most: int | None = None) -> int:
        """An integer in the given range."""
        value = self._take(name)
        fits = isinstance(value, int) and not isinstance(value, bool) and value >= least
        if not fits or (most is not None and value > most):
            end = "up" if most is None else f"to {most}"
            raise self._refuse(name, f"an integer from {least} {end}", value)
        return int(value)

    def loss(self, name: str) -> float:
        """A finite number of at least 0, or the word for infinity."""
        value = self._take(name)
        number = math.inf if value == _UNBOUNDED else _finite(value)
        if number is None or number < 0:
            raise self._refuse(name, f"a number from 0 up, or {_UNBOUNDED!r}", value)
        return number

    def share(self, name: str) -> float:
        """A number from 0 to 1."""
        value = self._take(name)
        number = _finite(value)
        if number is None or not 0 <= number <= 1:
            raise self._refuse(name, "a number from 0 to 1", value)
        return number

    def fraction(self, name: str) -> Fraction:
        """A fraction as :func:`write` writes it."""
        value = self._take(name)
        try:
            if isinstance(value, str) and _FRACTION.fullmatch(value):
                return Fraction(value)
        except (ValueError, ZeroDivisionError):  # more digits than Python converts
            pass
        raise self._refuse(name, "a fraction such as '20/21'", value)

    def text(self, name: str, form: re.Pattern[str] | None = None, due: str = "") -> str:
        """A text of the given form, or any short printable text."""
        value = self._take(name)
        if isinstance(value, str):
            if form is not None and form.fullmatch(value):
                return value
            if form is None and 0 < len(value) <= _LONGEST_TEXT and value.isprintable():
                return value
        due = due or f"a text of 1 to {_LONGEST_TEXT} characters"
        raise self._refuse(name, due, value)

    def truth(self, name: str) -> bool:
        """True or false."""
        value = self._take(name)
        if not isinstance(value, bool):
            raise self._refuse(name, "true or false", value)
        return value

    def inner(self, name: str) -> "_Fields":
        """An object inside this one."""
        return _Fields(f"{self._where}{name}.", self._take(name))

    def listed(self, name: str) -> list["_Fields"]:
        """A list of objects."""
        value = self._take(name)
        if not isinstance(value, list):
            raise self._refuse(name, "a list", value)
        return [_Fields(f"{self._where}{name}[{i}].", each) for i, each in enumerate(value)]

    def check_all_read(self) -> None:
        """Refuse unknown fields: they may be meant to change the meaning of the others."""
        for name in self._left:
            known = f"{self._where}{_shown(name)} is not a field of this format"
            raise ReleaseError(f"the release is refused: {known}")


def _shown(value: object) -> str:
    return reprlib.repr(value)


def _finite(value: object) -> float | None:
    """The value if it is a finite number; None for anything else, such as NaN."""
    try:
        number = float(value) if isinstance(value, int | float) else math.nan
    except OverflowError:
        return None
    return number if math.isfinite(number) and not isinstance(value, bool) else None


# --- Exports of the raw noisy graph, each with a warning ------------------------------------------


def to_edges(graph: BitRows, universe: NodeUniverse | None) -> np.ndarray[Any, Any]:
    """A (k, 2) array of ids, or of positions if there is no universe."""
    _warn()
    return _edges(graph, universe)


def to_networkx(graph: BitRows, universe: NodeUniverse | None) -> "networkx.Graph[Any]":
    """An undirected graph whose nodes are ids, or positions if there is no universe."""
    made: networkx.Graph[Any] = library("networkx", "networkx graphs").Graph()
    _warn()
    made.add_nodes_from(range(graph.n) if universe is None else universe.ids)
    made.add_edges_from(_edges(graph, universe).tolist())
    return made


def to_scipy(graph: BitRows) -> "scipy.sparse.csr_array":
    """A symmetric n × n matrix of zeros and ones in the order of the universe."""
    library("scipy.sparse", "sparse matrices")  # fail before anything is exported
    _warn()
    made: scipy.sparse.csr_array = adjacency(graph.pairs(), graph.n)
    return made


def _edges(graph: BitRows, universe: NodeUniverse | None) -> np.ndarray[Any, Any]:
    pairs = graph.pairs()
    return pairs if universe is None else np.asarray(universe.ids)[pairs]


def _warn() -> None:
    warnings.warn(
        "this is the raw noisy graph: most of its edges may be noise, and statistics of it are "
        "not calibrated; the release's own queries are",
        CalibrationWarning,
        stacklevel=4,
    )


# --- The release ----------------------------------------------------------------------------------

RATIO_NOTE = "a ratio of two unbiased counts: consistent, not unbiased"
NO_RATIO_NOTE = f"{NO_ANSWER}: the noise leaves every ratio possible; a larger ε would help"
NOISE_NOTE = f"{NO_ANSWER}: the noise is as large as the count; a larger ε would help"
CURVE_NOTE = "maximum likelihood, smoothed by early stopping: consistent, not unbiased"


@dataclass(frozen=True, eq=False)
class Release:
    """A noisy graph, its channel, and the privacy loss against each view.

    Queries are methods that return an :class:`Estimate`. They cost no further privacy.

    Examples
    --------
    >>> import numpy as np
    >>> silo = Silo.from_edges(NodeUniverse.range(4), np.array([[0, 1], [1, 2], [0, 2]]))
    >>> release = Release.draw(silo, Channel(1, 0), seed=1)
    >>> release.triangles().value, release.edges().value
    (1.0, 3.0)
    """

    graph: BitRows
    channel: Channel
    universe_digest: str
    provenance: Provenance
    views: tuple[View, ...]
    #: The certified epsilon against the coordinator with t silos, for t = 0 … m−1.
    losses: Mapping[int, float]
    #: The node list, if it is available; a file holds only its digest.
    universe: NodeUniverse | None = field(default=None, repr=False)

    @classmethod
    def draw(cls, graph: Silo, channel: Channel, seed: int) -> "Release":
        """Pass a known graph through a channel. **For experiments only.**

        This needs the true graph in one place and is as predictable as its seed, so it protects
        nobody's edges. The draw is exact for every rational channel.

        Parameters
        ----------
        graph
            The true graph.
        channel
            The channel.
        seed
            The seed of the draw.

        Returns
        -------
        Release
            The simulated release.

        Examples
        --------
        >>> silo = Silo.from_edges(NodeUniverse.range(3), [[0, 1]])
        >>> Release.draw(silo, Channel(1, 0), seed=1).n
        3
        """
        rows = _core.draw_rows(
            len(graph.universe),
            graph.pairs,
            limbs(channel.p11),
            limbs(channel.p01),
            seed_bytes("draw", seed),
        )
        return cls(
            BitRows(rows),
            channel,
            graph.universe.digest,
            Provenance(method="feat", protocol="clear", silos=1),
            (View(PUBLISHED, channel.epsilon),),
            {0: channel.epsilon},
            graph.universe,
        )

    @property
    def n(self) -> int:
        """The number of nodes."""
        return self.graph.n

    @property
    def epsilon(self) -> float:
        """The certified epsilon against the worst of the claimed views."""
        return max(view.epsilon for view in self.views if view.claimed)

    @property
    def delta(self) -> float:
        """The delta against the worst of the claimed views."""
        return max(view.delta for view in self.views if view.claimed)

    @cached_property
    def origin(self) -> Origin:
        """What every answer states about its origin."""
        return Origin(self.provenance, self.views, self.losses, self.n, self.universe_digest)

    # -- queries ---------------------------------------------------------------------------

    def edges(self) -> Estimate[float]:
        """The number of edges.

        Returns
        -------
        Estimate
            The unbiased count.

        Examples
        --------
        >>> silo = Silo.from_edges(NodeUniverse.range(4), [[0, 1], [1, 2], [0, 2]])
        >>> release = Release.draw(silo, Channel(1, 0), seed=1)
        >>> release.edges().value
        3.0
        """
        value = degrees.edges_value(self.graph, self.channel)
        return self._estimate("edges", value, degrees.edges_stderr(self.graph, self.channel))

    def degrees(self) -> "Estimate[FloatArray]":
        """The degree of every node, in the order of the universe.

        Returns
        -------
        Estimate
            The unbiased degrees, with intervals that hold each true degree with a probability of at
            least 95 %, however few bits are wrong.

        Examples
        --------
        >>> silo = Silo.from_edges(NodeUniverse.range(4), [[0, 1], [1, 2], [0, 2]])
        >>> release = Release.draw(silo, Channel(1, 0), seed=1)
        >>> release.degrees().value.tolist()
        [2.0, 2.0, 2.0, 0.0]
        """
        value = degrees.degree_values(self.graph, self.channel)
        stderr = degrees.degree_stderrs(self.graph, self.channel)
        low, high = (ends.astype(np.float64) for ends in degree_limits(self.graph, self.channel))
        return self._array("degrees", value, stderr, ends=(low, high))

    def degree_histogram(self, bins: "list[int] | None" = None) -> "Estimate[FloatArray]":
        """How many nodes have a degree in each bin [b0, b1), [b1, b2), …

        The histogram is estimated by deconvolution.

        Parameters
        ----------
        bins
            The edges of the bins; by default 0, 1, 2, 4, 8, … up to n.

        Returns
        -------
        Estimate
            The histogram; consistent but not unbiased.

        Examples
        --------
        >>> silo = Silo.from_edges(NodeUniverse.range(4), [[0, 1], [1, 2], [0, 2]])
        >>> release = Release.draw(silo, Channel(1, 0), seed=1)
        >>> release.degree_histogram([0, 1, 4]).value.round(3).tolist()
        [1.0, 3.0]
        """
        edges = degrees.check_bins(bins, self.n)
        value, stderr = degrees.degree_histogram(self.graph, self.channel, edges)
        return self._array(
            "degree_histogram", value, stderr, note=CURVE_NOTE, parameters={"bins": edges}
        )

    def kstars(self, k: int) -> Estimate[float]:
        """The number of k-stars, Σ C(d, k).

        Parameters
        ----------
        k
            The number of leaves, at least 1.

        Returns
        -------
        Estimate
            The unbiased count. From k = 3 on the interval reaches further up than down, since the
            noise does.

        Raises
        ------
        ArgumentError
            If k is out of range.

        Examples
        --------
        >>> silo = Silo.from_edges(NodeUniverse.range(4), [[0, 1], [1, 2], [0, 2]])
        >>> Release.draw(silo, Channel(1, 0), seed=1).kstars(2).value
        3.0
        """
        self.check_k(k, self.n)
        try:
            value = float(stars.kstars_value(self.graph, self.channel, k))
            stderr = stars.kstars_stderr(self.graph, self.channel, k)
            more: dict[str, Any] = {"parameters": {"k": k}}
            if k > 2:
                ends = stars.kstars_ends(self.graph, self.channel, k, value, stderr)
                more |= {"ends": ends, "note": NOISE_NOTE if stderr >= min(value, ends[1]) else ""}
        except OverflowError:
            raise ArgumentError(f"k = {k}: the number of stars exceeds a float's range") from None
        return self._estimate("kstars", value, stderr, **more)

    def triangles(self) -> Estimate[float]:
        """The number of triangles.

        Returns
        -------
        Estimate
            The unbiased count.

        Examples
        --------
        >>> silo = Silo.from_edges(NodeUniverse.range(4), [[0, 1], [1, 2], [0, 2]])
        >>> release = Release.draw(silo, Channel(1, 0), seed=1)
        >>> release.triangles().value
        1.0
        """
        value = triangles.triangles_value(self.sums, self.channel)
        return self._estimate(
            "triangles", value, triangles.triangles_stderr(self.sums, self.channel)
        )

    def node_triangles(self) -> "Estimate[FloatArray]":
        """The number of triangles at every node, in the order of the universe.

        Returns
        -------
        Estimate
            The unbiased counts.

        Examples
        --------
        >>> silo = Silo.from_edges(NodeUniverse.range(4), [[0, 1], [1, 2], [0, 2]])
        >>> release = Release.draw(silo, Channel(1, 0), seed=1)
        >>> release.node_triangles().value.tolist()
        [1.0, 1.0, 1.0, 0.0]
        """
        value = triangles.node_triangle_values(self.sums, self.channel)
        stderr = triangles.node_triangle_stderrs(self.sums, self.channel)
        return self._array("node_triangles", value, stderr)

    def four_cycles(self) -> Estimate[float]:
        """The number of 4-cycles.

        Returns
        -------
        Estimate
            The unbiased count.

        Examples
        --------
        >>> silo = Silo.from_edges(NodeUniverse.range(4), [[0, 1], [1, 2], [0, 2]])
        >>> release = Release.draw(silo, Channel(1, 0), seed=1)
        >>> release.four_cycles().value
        0.0
        """
        value = cycles.four_cycles_value(self.sums, self.channel)
        return self._estimate(
            "four_cycles", value, cycles.four_cycles_stderr(self.sums, self.channel)
        )

    def clustering(self) -> Estimate[float]:
        """The global clustering coefficient, 3·triangles/2-stars.

        Returns
        -------
        Estimate
            The coefficient, cut to [0, 1]; consistent but not unbiased. Its interval is [0, 1] if
            the release says nothing about it.

        Examples
        --------
        >>> silo = Silo.from_edges(NodeUniverse.range(4), [[0, 1], [1, 2], [0, 2]])
        >>> release = Release.draw(silo, Channel(1, 0), seed=1)
        >>> release.clustering().value
        1.0
        """
        value = triangles.clustering_value(self.sums, self.channel)
        stderr = triangles.clustering_stderr(self.sums, self.channel)
        ends = triangles.clustering_ends(self.sums, self.channel)
        note = RATIO_NOTE if ends is not None else NO_RATIO_NOTE
        if not 0 <= value <= 1 and not math.isnan(value):
            note += f"; the noise gave {value:.4g}, which is cut to what is possible"
            value = min(max(value, 0.0), 1.0)
        return self._estimate("clustering", value, stderr, note=note, ends=ends or (0.0, 1.0))

    @cached_property
    def sums(self) -> GraphSums:
        """The sums over pairs that several queries share."""
        return GraphSums(self.graph)

    # -- files and other tools ---------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the release to a file; an existing file is replaced completely or not at all.

        Parameters
        ----------
        path
            The file to write.

        Raises
        ------
        ReleaseError
            If the file cannot be written.

        Examples
        --------
        >>> import tempfile, pathlib
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "my.release"
        >>> silo = Silo.from_edges(NodeUniverse.range(4), [[0, 1], [1, 2], [0, 2]])
        >>> Release.draw(silo, Channel("3/4", "1/4"), seed=1).save(path)
        >>> Release.load(path, silo.universe).n
        4
        """
        write(
            path,
            self.graph,
            self.channel,
            self.universe_digest,
            self.provenance,
            self.views,
            self.losses,
        )

    @classmethod
    def load(cls, path: str | os.PathLike[str], universe: NodeUniverse | None = None) -> "Release":
        """Read a release from a file.

        Parameters
        ----------
        path
            The file to read.
        universe
            The node list; if it is given, it must be the one that the release was made with.

        Returns
        -------
        Release
            The release.

        Raises
        ------
        ReleaseError
            If the file is not a valid release.
        UniverseError
            If the release was made with another node list.
        """
        found = read(path)
        release = cls(
            found.graph,
            found.channel,
            found.universe_digest,
            found.provenance,
            found.views,
            found.losses,
        )
        return release if universe is None else release.with_universe(universe)

    def with_universe(self, universe: NodeUniverse) -> "Release":
        """The same release with its node list, so that exports carry ids.

        Parameters
        ----------
        universe
            The node list that the release was made with.

        Returns
        -------
        Release
            The release with its node list.

        Raises
        ------
        UniverseError
            If the release was made with another node list.

        Examples
        --------
        >>> silo = Silo.from_edges(NodeUniverse.range(4), [[0, 1], [1, 2], [0, 2]])
        >>> release = Release.draw(silo, Channel(1, 0), seed=1)
        >>> release.with_universe(NodeUniverse.range(4)).n
        4
        """
        if universe.digest != self.universe_digest:
            raise UniverseError(
                f"this release is about another node list: its digest is "
                f"{self.universe_digest[:16]}…, not {universe.digest[:16]}…"
            )
        return replace(self, universe=universe)

    def to_networkx(self) -> "networkx.Graph[Any]":
        """The raw noisy graph, with a warning that its statistics are not calibrated.

        Returns
        -------
        networkx.Graph
            A graph whose nodes are ids, or positions if the node list is not available.
        """
        return to_networkx(self.graph, self.universe)

    def to_scipy(self) -> "scipy.sparse.csr_array":
        """The raw noisy adjacency matrix, with the same warning.

        Returns
        -------
        scipy.sparse.csr_array
            A symmetric matrix in the order of the universe.
        """
        return to_scipy(self.graph)

    def to_edges(self) -> "np.ndarray[Any, Any]":
        """The raw noisy edges, with the same warning.

        Returns
        -------
        numpy.ndarray
            A (k, 2) array of ids, or of positions if the node list is not available.
        """
        return to_edges(self.graph, self.universe)

    def _estimate(self, query: str, value: Any, stderr: float, **more: Any) -> Estimate[float]:
        return Estimate(query, float(value), stderr, **self._cost(), **more)

    def _array(
        self, query: str, value: FloatArray, stderr: FloatArray, **more: Any
    ) -> Estimate[FloatArray]:
        return Estimate(query, value, stderr, **self._cost(), **more)

    def _cost(self) -> dict[str, Any]:
        return {
            "epsilon": self.epsilon,
            "delta": self.delta,
            "method": self.provenance.method,
            "origin": self.origin,
        }

    @staticmethod
    def check_k(k: int, n: int) -> None:
        """Refuse a k for which there are no k-stars among n nodes."""
        if not isinstance(k, int | np.integer) or isinstance(k, bool) or k < 1:
            raise ArgumentError(f"k must be an integer of at least 1, not {k!r}")
        if k >= n:
            raise ArgumentError(f"k = {k}: a star with {k} leaves needs more than {n} nodes")

    @staticmethod
    def check_leaves(query: str, k: int | None, n: int) -> None:
        """Refuse a k that is missing, too large, or given for a query that does not take it."""
        if (k is None) != (query != "kstars"):
            raise ArgumentError("kstars needs k, and nothing else takes it")
        if k is not None:
            Release.check_k(k, n)

    def _repr_html_(self) -> str:
        """Show the release in notebooks."""
        made = self.provenance
        rows = {
            "nodes": f"{self.n:,}, list {self.universe_digest[:16]}…",
            "silos": f"{made.silos}, of which {made.collusion} may collude with the coordinator",
            "protocol": made.protocol,
            "noise": f"an edge shows with probability {float(self.channel.p11):.4g}, "
            f"any other pair with {float(self.channel.p01):.4g}",
            "cost": f"ε = {shown_loss(self.epsilon)}, paid; every question on it is free",
        }
        return definitions(f"release of {self.n:,} nodes", rows, views_table(self.views))

    def __str__(self) -> str:
        silos = self.provenance.silos
        lines = [
            f"release of {self.n:,} nodes, universe {self.universe_digest[:16]}…",
            f"  {self.channel}",
            f"  protocol {self.provenance.protocol}, {silos} silo{'s' * (silos != 1)}",
            *(f"  {view}" for view in self.views),
        ]
        return "\n".join(lines)
