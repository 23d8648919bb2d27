"""Every error and warning that Silograph raises, in one tree.

::

    SilographError
    ├── ArgumentError        a wrong argument; nothing was done
    ├── GraphError
    │   ├── UniverseError    the node list is wrong, or two lists differ
    │   ├── EdgeError        an edge, a line or a file that cannot be read
    │   └── DatasetError     a named dataset is absent, or is not what it should be
    ├── ChannelError         probabilities that make no channel
    ├── CryptoError          a key, proof, cell or share is refused; nothing was made of it
    │   ├── EncodingError    bytes that are no point, scalar or whole chunk
    │   ├── ProofError       a proof that does not hold for this run
    │   ├── KeyRefusedError  keys that repeat, cancel or are not the silo's own
    │   └── DecryptionError  cells that do not open to bits
    └── ReleaseError         a release file that is damaged, truncated or foreign
    SilographWarning
    ├── CalibrationWarning   the raw noisy graph leaves the calibrated world
    └── SplitWarning         a split could not reach the rate that was asked for

Messages say what, where, and how to mend it. They never contain secrets; an
:class:`EdgeError` names the file, the line and the identifier at fault, and is meant for the
silo that owns the file (what leaves a silo is never an error text).
"""

__all__ = [
    "ArgumentError",
    "CalibrationWarning",
    "ChannelError",
    "CryptoError",
    "DatasetError",
    "DecryptionError",
    "EdgeError",
    "EncodingError",
    "GraphError",
    "KeyRefusedError",
    "ProofError",
    "ReleaseError",
    "SilographError",
    "SilographWarning",
    "SplitWarning",
    "UniverseError",
]


class SilographError(Exception):
    """The root: catch this to catch everything that Silograph raises on purpose."""


class ArgumentError(SilographError, ValueError):
    """A wrong argument. Nothing was read, drawn, spent or written."""


class GraphError(SilographError):
    """A graph cannot be made from what was given."""


class UniverseError(GraphError):
    """The node list is wrong, or two node lists differ."""


class EdgeError(GraphError):
    """An edge, a line or a whole file that cannot be read. Nothing was loaded."""


class DatasetError(GraphError):
    """A named dataset is absent, or its counts are not what they should be."""


class ChannelError(SilographError, ValueError):
    """Probabilities that make no channel."""


class CryptoError(SilographError):
    """A key, proof, cell or share is refused. Nothing was made of it.

    ``silo`` is the index of the silo at fault (from 0), ``index`` that of the cell or share;
    None where there is none.
    """

    def __init__(self, message: str, *, silo: int | None = None, index: int | None = None) -> None:
        super().__init__(message)
        self.silo = silo
        self.index = index


class EncodingError(CryptoError):
    """Bytes that are no canonical point or scalar, are the identity, or are too few or many."""


class ProofError(CryptoError):
    """A proof that does not hold for this run, roster, silo, chunk and these bytes."""


class KeyRefusedError(CryptoError):
    """Public keys that repeat or cancel, or a secret key that is not the silo's own."""


class DecryptionError(CryptoError):
    """Cells that do not open to bits: somebody encrypted something else."""


class ReleaseError(SilographError):
    """A release file that is damaged, truncated, foreign or of another version."""


class SilographWarning(UserWarning):
    """The root of all warnings."""


class CalibrationWarning(SilographWarning):
    """Statistics of the raw noisy graph are biased; use the release's own queries."""


class SplitWarning(SilographWarning):
    """A split could not reach the sampling rate that was asked for."""
