"""Every error and warning that Silograph raises, in one tree.

::

    SilographError
    ├── ArgumentError        a wrong argument; nothing was done
    ├── MissingExtraError    a library that an extra brings is not installed
    ├── GraphError
    │   ├── UniverseError    the node list is wrong, or two lists differ
    │   ├── EdgeError        an edge, a line or a file that cannot be read
    │   └── DatasetError     a named dataset is absent, or is not what it should be
    ├── ChannelError         probabilities that make no channel
    ├── ReleaseError         a release file that is damaged, truncated or foreign
    ├── ProtocolError        a message or a step that the protocol refuses
    │   ├── EnvelopeError    bytes that are not a message
    │   ├── SignatureError   a key or a signature that is not what it claims
    │   ├── BindingError     of another run, with other parameters, for someone else
    │   ├── OrderError       out of order, repeated, or after the end
    │   ├── PayloadError     a message whose content cannot be right
    │   └── ViewsDifferError the silos were shown different things
    ├── StudyError           a study that cannot be read, makes no sense, or is not for us
    │   ├── PolicyError      a study that a silo's policy does not allow
    │   └── DeadlineError    a study whose time is over
    ├── ExperimentError      parameters, a journal or results of the reproduction are refused
    ├── AbortedError         a run that ended without an answer
    ├── LedgerError          a ledger that cannot be opened, read or written, or contradicts itself
    │   ├── BudgetError      a spend that would pass the limit; nothing was spent
    │   └── RollbackError    a ledger that is older than what was seen of it
    ├── ReportError          a page that cannot be made or written
    ├── DeploymentError      a file or a setting that a deployment rests on is refused
    │   ├── KeyFileError     an identity file
    │   ├── RosterError      a roster file
    │   ├── CertificateError a certificate, or what it is made from
    │   ├── BrokerError      settings of a broker
    │   ├── TrailError       an audit trail, or what a log may not say
    │   ├── ConfigError      a configuration file
    │   ├── StoreError       a state store, or one that contradicts the ledger
    │   └── TransportError   a broker that cannot be reached, or does not do its part
    └── CryptoError          a key, proof, cell or share is refused; nothing was made of it
        ├── EncodingError    bytes that are no point, scalar or whole chunk
        ├── ProofError       a proof that does not hold for this run
        ├── KeyRefusedError  keys that repeat, cancel or are not the silo's own
        └── DecryptionError  cells that do not open to bits
    SilographWarning
    ├── CalibrationWarning   the raw noisy graph leaves the calibrated world
    ├── LedgerWarning        a run that no ledger records, or a limit below what is spent
    ├── PrivacyWarning       a choice that protects less than one may think
    └── SplitWarning         a split could not reach the rate that was asked for

Messages say what, where, and how to mend it. They never contain secrets; an
:class:`EdgeError` names the file, the line and the identifier at fault, and is meant for the
silo that owns the file (what leaves a silo is never an error text).
"""

__all__ = [
    "AbortedError",
    "ArgumentError",
    "BindingError",
    "BrokerError",
    "BudgetError",
    "CalibrationWarning",
    "CertificateError",
    "ChannelError",
    "ConfigError",
    "CryptoError",
    "DatasetError",
    "DeadlineError",
    "DecryptionError",
    "DeploymentError",
    "EdgeError",
    "EncodingError",
    "EnvelopeError",
    "ExperimentError",
    "GraphError",
    "KeyFileError",
    "KeyRefusedError",
    "LedgerError",
    "LedgerWarning",
    "MissingExtraError",
    "OrderError",
    "PayloadError",
    "PolicyError",
    "PrivacyWarning",
    "ProofError",
    "ProtocolError",
    "ReleaseError",
    "ReportError",
    "RollbackError",
    "RosterError",
    "SignatureError",
    "SilographError",
    "SilographWarning",
    "SplitWarning",
    "StoreError",
    "StudyError",
    "TrailError",
    "TransportError",
    "UniverseError",
    "ViewsDifferError",
]


class SilographError(Exception):
    """The root: catch this to catch everything that Silograph raises on purpose."""


class ArgumentError(SilographError, ValueError):
    """A wrong argument. Nothing was read, drawn, spent or written."""


class MissingExtraError(SilographError, ImportError):
    """A library that one of the package's extras brings is not installed. Nothing was done."""


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


class ProtocolError(SilographError):
    """A message or a step that the protocol refuses. The state is what it was before.

    ``silo`` and ``round`` say whose message it was, where that is known.
    """

    def __init__(self, what: str, *, silo: str | None = None, round: str | None = None) -> None:  # noqa: A002
        where = " of ".join(
            part for part in (f"round {round!r}" if round else "", silo or "") if part
        )
        super().__init__(f"{where}: {what}" if where else what)
        self.silo = silo
        self.round = round


class EnvelopeError(ProtocolError):
    """Bytes that are not a message."""


class SignatureError(ProtocolError):
    """A key or a signature that is not what it claims."""


class BindingError(ProtocolError):
    """A message of another run, with other parameters, or for someone else."""


class OrderError(ProtocolError):
    """A message that is out of order, repeated, or after the end."""


class PayloadError(ProtocolError):
    """A message whose content cannot be right."""


class ViewsDifferError(ProtocolError):
    """The silos were shown different things: someone between them is not honest."""


class StudyError(SilographError):
    """A study that cannot be read, makes no sense, or is not for us. Nothing was drawn or spent."""


class PolicyError(StudyError):
    """A study that this silo's policy does not allow. The reason stays in the silo's own log."""


class DeadlineError(StudyError):
    """A study whose time is over. Nothing of it goes on."""


class ExperimentError(SilographError):
    """Parameters, a journal or results of the reproduction that are absent, damaged or foreign.

    What was finished before stays as it is.
    """


class AbortedError(SilographError):
    """A run that ended without an answer. It costs what the ledgers say.

    ``code`` is the bare code that goes out; ``by`` is the party that ended it.
    """

    def __init__(self, message: str, *, code: str, by: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.by = by


class LedgerError(SilographError):
    """A ledger that cannot be opened, read or written, or a spend that contradicts it.

    Nothing may be released after one: what is spent is not known to be recorded.
    """


class BudgetError(LedgerError):
    """A spend that would pass the limit of its lineage. Nothing was spent, nothing is written.

    ``asked`` and ``left`` are (epsilon, delta) at collusion level ``collusion``; an epsilon of
    ``math.inf`` is a loss without a bound. ``left`` is rounded down: it can be spent.
    """

    def __init__(
        self,
        message: str,
        lineage: str = "",
        collusion: int = 0,
        asked: tuple[float, float] = (0.0, 0.0),
        left: tuple[float, float] = (0.0, 0.0),
    ) -> None:
        super().__init__(message)
        self.lineage = lineage
        self.collusion = collusion
        self.asked = asked
        self.left = left


class RollbackError(LedgerError):
    """A ledger that is older than what was seen of it, or has another past. Nothing was spent.

    Spends that somebody saw are not in it: going on would spend their budget again.
    """


class ReportError(SilographError):
    """A page that cannot be made from what is there, or cannot be written. Nothing was written."""


class DeploymentError(SilographError):
    """A file or a setting that a deployment rests on is missing, damaged or refused.

    Nothing was started or written. The texts name files, parties and settings, never secrets and
    nothing of a silo's data.
    """


class KeyFileError(DeploymentError):
    """An identity file that is absent, open to others, damaged, foreign or does not unseal."""


class RosterError(DeploymentError):
    """A roster file that is damaged, contradicts itself, or is not the one that people signed."""


class CertificateError(DeploymentError):
    """A certificate that cannot be made, read or trusted."""


class BrokerError(DeploymentError):
    """Settings by which a broker cannot be reached, or should not be."""


class TrailError(DeploymentError):
    """An audit trail whose entries do not follow each other, or a line that may not be written."""


class ConfigError(DeploymentError):
    """A configuration file that is absent, unreadable or wrong; names the file and the key."""


class StoreError(DeploymentError):
    """A state store that cannot be opened or written, or that contradicts the ledger.

    Nothing may be sent after one: what was sent before is not known.
    """


class TransportError(DeploymentError):
    """A broker that cannot be reached, or that does not do its part."""


class SilographWarning(UserWarning):
    """The root of all warnings."""


class CalibrationWarning(SilographWarning):
    """Statistics of the raw noisy graph are biased; use the release's own queries."""


class PrivacyWarning(SilographWarning):
    """A choice that protects less than one may think."""


class LedgerWarning(SilographWarning):
    """A run that no ledger records, or a limit that is already passed."""


class SplitWarning(SilographWarning):
    """A split could not reach the sampling rate that was asked for."""
