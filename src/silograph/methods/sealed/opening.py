"""A silo's computation on its dealt material and on the values that silos open to each other.

No messages are made here. Only silos have an object of this kind. The dealer has a ``Dealing``, and
neither can be made from the other: an opening takes a single silo's seed, and a dealing takes no
opened values.

Why m − 1 silos learn only the answers: everything that they see can be simulated from the answers.
    Dealt material
        The streams of their own seeds are uniform. If the last silo is among them, its corrections
        contain the honest silo's share of the same product, drawn from a seed that they do not
        have. So the corrections are uniform too.
    AND, daBits, D, degrees
        An opened value is a secret minus (or XOR) a dealt mask. The honest silo's share of that
        mask is drawn from its seed, for this gate, pair and chunk only. So the opened value is
        uniform, whatever the secret is.
    Shares
        The honest silo's share of each result is the part that they lack. It is determined by their
        own shares and the result, and it stays with the honest silo.
    Answers
        The honest silo's published share is the noisy answer minus their shares, so it can be
        computed from the answer.
Why the coordinator learns only the answers: it knows all seeds, but it sees openings only encrypted
under keys that the silos told each other. It sees output shares only under zero-shares, derived
from a secret of each pair of silos. Any m − 1 output shares are uniform, and the sum of all of them
is the answer.

Memory: the opened matrix with one word per pair (half of a full matrix), two bands of 512 rows
while it is squared, and the chunks in progress.
"""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from silograph import _core
from silograph.errors import OrderError, PayloadError, ProtocolError
from silograph.messages.identity import COORDINATOR, Roster
from silograph.methods.sealed.rounds import SealedParameters

__all__ = ["Opening"]

#: Rows of the matrix between two reports of progress.
_ROWS = 512
_WORDS = 1 << 64


class _Chunk:
    """One chunk in progress."""

    def __init__(self, shared: _core.SharedChunk) -> None:
        self.shared = shared
        self.step = 0
        self.came: set[int] = set()


class Opening:
    """One silo's shares in one run. Its representation shows nothing of them."""

    def __init__(
        self, parameters: SealedParameters, roster: Roster, place: int, seed: bytes
    ) -> None:
        self._parameters = parameters
        self._roster = roster
        self._dealt = _core.Dealt(seed, place, parameters.silos)
        self._corrected = place == parameters.silos - 1
        self._used: set[int] = set()
        self._chunks: dict[int, _Chunk] = {}
        self._finished = 0
        self._corrections: dict[int, bytes] = {}
        self._total = 0
        self._degrees = np.zeros(parameters.nodes, dtype=np.uint64)
        self._matrix = _core.OpenedMatrix(parameters.nodes) if parameters.has("triangles") else None
        self._inner = 0
        self._matrix_chunks = 0
        self._trace: bytes | None = None
        self._nodes_correction: bytes | None = None
        self._nodes: npt.NDArray[np.uint64] | None = None
        self._nodes_came: set[int] = set()

    # --- chunks -------------------------------------------------------------------------------

    def begin(self, number: int, bits: bytes) -> bytes:
        """A chunk's first opening. Its material is marked as used before it is used, once."""
        if number in self._used:
            raise OrderError(f"chunk {number} has been opened before", round="open")
        given = self._parameters
        size = given.chunk_size(number)
        if len(bits) != -(-size // 64) * 8:
            raise PayloadError("there is not one bit per pair", round="open")
        self._used.add(number)
        shared = _core.SharedChunk(self._dealt, number * given.chunk_pairs, size, bits)
        self._chunks[number] = _Chunk(shared)
        return shared.open(self._dealt)

    def take(self, number: int, step: int, sender: int, share: bytes) -> bool:
        """Take another silo's share; return whether the step is now complete."""
        self._due(number, step, sender)
        chunk = self._chunks[number]
        try:
            if step > self._parameters.levels:
                self._add_to_matrix(number, share)
            else:
                chunk.shared.take(share)
        except ValueError as error:
            what = f"chunk {number}: {error}"
            raise self._refuse(PayloadError, what, sender, "open") from None
        chunk.came.add(sender)
        return len(chunk.came) == self._parameters.silos - 1

    def _due(self, number: int, step: int, sender: int) -> None:
        """Refuse an opening that is not the next one."""
        chunk = self._chunks.get(number)
        if chunk is None or chunk.step != step:
            what = f"step {step} of chunk {number} was not due"
            raise self._refuse(OrderError, what, sender, "open")
        if sender in chunk.came:
            what = f"step {step} of chunk {number} came twice"
            raise self._refuse(OrderError, what, sender, "open")
        if self._corrected and number not in self._corrections:
            what = f"the corrections of chunk {number} are missing"
            raise self._refuse(OrderError, what, sender, "open")

    def close(self, number: int) -> bytes | None:
        """End a step; return what the next one opens, or None if the chunk is done."""
        given, chunk = self._parameters, self._chunks[number]
        if chunk.step <= given.levels:
            chunk.shared.close(self._dealt, self._corrections.get(number))
        chunk.step += 1
        chunk.came = set()
        if chunk.step <= given.levels:
            return chunk.shared.open(self._dealt)
        if chunk.step == given.levels + 1:
            self._total = (self._total + chunk.shared.total()) % _WORDS
            chunk.shared.add_to_nodes(self._degrees)
            if self._matrix is not None:
                share = chunk.shared.difference(self._dealt)
                self._add_to_matrix(number, share)
                return share
        elif not self._corrected:
            self._add_inner(number, None)
        del self._chunks[number]
        self._corrections.pop(number, None)
        self._finished += 1
        return None

    def _add_to_matrix(self, number: int, share: bytes) -> None:
        given = self._parameters
        assert self._matrix is not None  # noqa: S101 - only triangles have this step
        self._matrix.add(number * given.chunk_pairs, given.chunk_size(number), share)

    def _add_inner(self, number: int, correction: bytes | None) -> None:
        given = self._parameters
        assert self._matrix is not None  # noqa: S101 - as above
        start, size = number * given.chunk_pairs, given.chunk_size(number)
        self._inner += self._matrix.inner(self._dealt, start, size, correction)
        self._matrix_chunks += 1

    # --- corrections, for the last silo -------------------------------------------------------

    def correct_chunk(self, number: int, correction: bytes) -> None:
        """Keep the dealer's correction of a chunk; each is accepted once."""
        known = number in self._corrections or (number in self._used and not self._going(number))
        if not self._corrected or not 0 <= number < self._parameters.chunks or known:
            what = f"corrections of chunk {number} were not due"
            raise self._refuse(OrderError, what, COORDINATOR, "deal")
        if len(correction) != self._parameters.correction_bytes(number):
            what = "there is not one correction per share"
            raise self._refuse(PayloadError, what, COORDINATOR, "deal")
        self._corrections[number] = correction

    def _going(self, number: int) -> bool:
        return number in self._chunks

    def correct_matrix(self, number: int, correction: bytes) -> None:
        """Use the dealer's corrections of R², in order; the last one contains tr(R³) too."""
        given = self._parameters
        due = self._matrix is not None and self._corrected and number == self._matrix_chunks
        opened = number in self._used and not self._going(number)
        if not due or not opened:
            what = f"corrections of chunk {number} were not due"
            raise self._refuse(OrderError, what, COORDINATOR, "deal-matrix")
        last, size = number == given.chunks - 1, 8 * given.chunk_size(number)
        if len(correction) != size + 8 * last:
            what = "there is not one correction per share"
            raise self._refuse(PayloadError, what, COORDINATOR, "deal-matrix")
        self._add_inner(number, correction[:size])
        if last:
            self._trace = correction[size:]

    def correct_nodes(self, correction: bytes) -> None:
        """Keep the dealer's corrections of squares; they are accepted once."""
        wanted = self._corrected and self._parameters.has("two_stars")
        if not wanted or self._nodes_correction is not None:
            what = "corrections of squares were not due"
            raise self._refuse(OrderError, what, COORDINATOR, "deal-nodes")
        if len(correction) != 8 * self._parameters.nodes:
            what = "there is not one correction per node"
            raise self._refuse(PayloadError, what, COORDINATOR, "deal-nodes")
        self._nodes_correction = correction

    # --- nodes --------------------------------------------------------------------------------

    @property
    def chunks_done(self) -> bool:
        """Whether every chunk has been opened."""
        return self._finished == self._parameters.chunks

    def begin_nodes(self) -> bytes:
        """The opening for squared degrees; made once, when all chunks are done."""
        if not self.chunks_done or self._nodes is not None:
            raise OrderError("squares were not due", round="open-nodes")
        share = self._dealt.open_squares(self._degrees)
        self._nodes = np.frombuffer(share, dtype="<u8").copy()
        return share

    def take_nodes(self, sender: int, share: bytes) -> None:
        """Take another silo's share of the opening for squared degrees."""
        if self._nodes is None or sender in self._nodes_came:
            raise self._refuse(OrderError, "squares were not due", sender, "open-nodes")
        if len(share) != 8 * self._parameters.nodes:
            raise self._refuse(PayloadError, "there is not one word per node", sender, "open-nodes")
        self._nodes += np.frombuffer(share, dtype="<u8")
        self._nodes_came.add(sender)

    @property
    def complete(self) -> bool:
        """Whether everything that the answers need has arrived."""
        given = self._parameters
        done = self.chunks_done
        if given.has("triangles"):
            done = done and self._matrix_chunks == given.chunks
        if given.has("two_stars"):
            done = done and len(self._nodes_came) == given.silos - 1
            done = done and (self._nodes_correction is not None or not self._corrected)
        return done

    # --- answers ------------------------------------------------------------------------------

    def count(self, progress: Callable[[int], None]) -> dict[str, npt.NDArray[np.uint64]]:
        """This silo's shares of the exact answers, each multiplied by its factor."""
        found = {"edges": self._word(self._total), "degrees": self._degrees}
        if self._nodes is not None:
            squares = self._dealt.squares(self._nodes, self._nodes_correction)
            # 2·S2 = Σd² − Σd.
            found["two_stars"] = self._word(squares - 2 * self._total)
        if self._matrix is not None:
            contracted, n = 0, self._parameters.nodes
            for first in range(0, n, _ROWS):
                end = min(first + _ROWS, n)
                contracted += self._matrix.contract(self._dealt, first, end)
                progress(end - first)
            share = self._dealt.cube(contracted % _WORDS, self._inner % _WORDS, self._trace)
            found["triangles"] = self._word(share)
            self._matrix = None
        return found

    def _word(self, value: int) -> npt.NDArray[np.uint64]:
        return np.array([value % _WORDS], dtype=np.uint64)

    def _refuse(
        self, kind: type[ProtocolError], what: str, sender: int, name: str
    ) -> ProtocolError:
        return kind(what, silo=self._roster.member(sender).name, round=name)

    def __repr__(self) -> str:
        return "Opening(…)"
