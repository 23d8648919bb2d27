"""Every error and warning that Silograph raises, in one tree.

::

    SilographError
    ├── ArgumentError        a wrong argument; nothing was done
    ├── MissingExtraError    a library of one of the extras is not installed
    ├── GraphError
    │   ├── UniverseError    the node list is wrong, or two lists differ
    │   ├── EdgeError        an edge, a line or a file cannot be read
    │   └── DatasetError     a named dataset is missing, or is not the published one
    ├── ChannelError         the probabilities do not form a channel
    ├── ReleaseError         a release file is damaged, truncated or of another kind
    ├── ProtocolError        the protocol refuses a message or a step
    │   ├── EnvelopeError    the bytes are not a message
    │   ├── SignatureError   a key or a signature is not valid
    │   ├── BindingError     a message of another run, with other parameters, for someone else
    │   ├── OrderError       a message out of order, repeated, or after the end
    │   ├── PayloadError     the content of a message is not valid
    │   └── ViewsDifferError the silos were shown different things
    │       └── ClonedError  our own key signed something that we did not make
    ├── StudyError           a study cannot be read, is not valid, or is not for us
    │   ├── PolicyError      a silo's policy does not allow the study
    │   ├── BusyError        a silo has as many studies as it allows
    │   └── DeadlineError    the deadline of the study has passed
    │       └── SlowLineError the line is too slow for the deadline
    ├── ExperimentError      parameters, a journal or results of the reproduction are refused
    ├── AbortedError         a run ended without an answer
    ├── LedgerError          a ledger cannot be opened, read or written, or is inconsistent
    │   ├── BudgetError      a spend would exceed the limit; nothing was spent
    │   ├── FrozenError      the ledger is frozen until its operator decides
    │   └── RollbackError    a ledger is older than what was seen of it
    ├── ReportError          a page cannot be made or written
    ├── DeploymentError      a file or a setting of a deployment is refused
    │   ├── KeyFileError     an identity file
    │   ├── RosterError      a roster file
    │   ├── EnrolmentError   an invitation, an answer to one, a welcome or a signature
    │   ├── TrailError       an audit trail, or a value that must not be written
    │   ├── ConfigError      a configuration file
    │   ├── StoreError       a state store, or one that contradicts the ledger
    │   └── TransportError   a broker cannot be reached, or does not work as it should
    └── CryptoError          a key, proof, cell or share is refused; it was not used
        ├── EncodingError    the bytes are not a point, a scalar or a whole chunk
        ├── ProofError       a proof is not valid for this run
        ├── KeyRefusedError  keys repeat, cancel or do not belong to the silo
        └── DecryptionError  cells do not open to bits
    SilographWarning
    ├── CalibrationWarning   the raw noisy graph is used without calibration
    ├── LedgerWarning        no ledger records a run, or a limit is below what is spent
    ├── PrivacyWarning       a choice protects less than one may think
    ├── SplitWarning         a split could not reach the requested rate
    └── UselessAnswerWarning the answer is expected to be mostly noise

Messages say what is wrong, where, and how to fix it. They never contain secrets. An
:class:`EdgeError` names the file, the line and the identifier at fault; it is meant for the silo
that owns the file. Error texts never leave a silo.
"""

__all__ = [
    "AbortedError",
    "ArgumentError",
    "BindingError",
    "BrokerError",
    "BudgetError",
    "BusyError",
    "CalibrationWarning",
    "CertificateError",
    "ChannelError",
    "ClonedError",
    "ConfigError",
    "CryptoError",
    "DatasetError",
    "DeadlineError",
    "DecryptionError",
    "DeploymentError",
    "EdgeError",
    "EncodingError",
    "EnrolmentError",
    "EnvelopeError",
    "ExperimentError",
    "FrozenError",
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
    "SlowLineError",
    "SplitWarning",
    "StoreError",
    "StudyError",
    "TrailError",
    "TransportError",
    "UniverseError",
    "UselessAnswerWarning",
    "ViewsDifferError",
]


class SilographError(Exception):
    """The root of all errors that Silograph raises on purpose."""


class ArgumentError(SilographError, ValueError):
    """A wrong argument. Nothing was read, drawn, spent or written."""


class MissingExtraError(SilographError, ImportError):
    """A library of one of the package's extras is not installed. Nothing was done."""


class GraphError(SilographError):
    """A graph cannot be made from the given input."""


class UniverseError(GraphError):
    """The node list is wrong, or two node lists differ."""


class EdgeError(GraphError):
    """An edge, a line or a whole file cannot be read. Nothing was loaded."""


class DatasetError(GraphError):
    """A named dataset is missing, or its counts are not the published ones."""


class ChannelError(SilographError, ValueError):
    """The probabilities do not form a channel."""


class CryptoError(SilographError):
    """A key, proof, cell or share is refused. It was not used.

    ``silo`` is the index of the silo at fault (from 0), and ``index`` that of the cell or share;
    they are None if they do not apply.
    """

    def __init__(self, message: str, *, silo: int | None = None, index: int | None = None) -> None:
        super().__init__(message)
        self.silo = silo
        self.index = index


class EncodingError(CryptoError):
    """The bytes are not a canonical point or scalar, are the identity, or have a wrong length."""


class ProofError(CryptoError):
    """A proof is not valid for this run, roster, silo, chunk and these bytes."""


class KeyRefusedError(CryptoError):
    """Public keys repeat or cancel, or a secret key does not belong to the silo."""


class DecryptionError(CryptoError):
    """Cells do not open to bits: somebody encrypted something else."""


class ReleaseError(SilographError):
    """A release file is damaged, truncated, of another kind or of another version."""


class ProtocolError(SilographError):
    """The protocol refuses a message or a step. The state is unchanged.

    ``silo`` and ``round`` say whose message it was, if that is known.
    """

    def __init__(self, what: str, *, silo: str | None = None, round: str | None = None) -> None:  # noqa: A002
        where = " of ".join(
            part for part in (f"round {round!r}" if round else "", silo or "") if part
        )
        super().__init__(f"{where}: {what}" if where else what)
        self.silo = silo
        self.round = round


class EnvelopeError(ProtocolError):
    """The bytes are not a message."""


class SignatureError(ProtocolError):
    """A key or a signature is not valid."""


class BindingError(ProtocolError):
    """A message belongs to another run, has other parameters, or is for someone else."""


class OrderError(ProtocolError):
    """A message is out of order, repeated, or came after the end."""


class PayloadError(ProtocolError):
    """The content of a message is not valid."""


class ViewsDifferError(ProtocolError):
    """The silos were shown different things: someone between them is not honest."""


class ClonedError(ViewsDifferError):
    """Our own key signed something that we did not make: a clone, or we ourselves before now."""


class MismatchError(ProtocolError):
    """Two parties told a third different things: one of them is not honest. The run is over."""


class StudyError(SilographError):
    """A study cannot be read, is not valid, or is not for us. Nothing was drawn or spent."""


class PolicyError(StudyError):
    """This silo's policy does not allow the study. The reason stays in the silo's own log."""


class DeadlineError(StudyError):
    """The deadline of the study has passed. It does not continue."""


class BusyError(StudyError):
    """This party has as many open or stored studies as it allows. Nothing was stored."""


class SlowLineError(DeadlineError):
    """The line to the broker is too slow for a study's deadline. Nothing was spent."""


class ExperimentError(SilographError):
    """Parameters, a journal or results of the reproduction are missing, damaged or of another kind.

    What was finished before is unchanged.
    """


class AbortedError(SilographError):
    """A run ended without an answer. Its cost is what the ledgers say.

    ``code`` is the code that is sent to the other parties; ``by`` is the party that ended the run.
    """

    def __init__(self, message: str, *, code: str, by: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.by = by


class LedgerError(SilographError):
    """A ledger cannot be opened, read or written, or a spend contradicts it.

    Nothing may be released after this error, since the spending may not be recorded.
    """


class BudgetError(LedgerError):
    """A spend would exceed the limit of its lineage. Nothing was spent or written.

    ``asked`` and ``left`` are (epsilon, delta) at collusion level ``collusion``. An epsilon of
    ``math.inf`` is an unbounded loss. ``left`` is rounded down, so it can be spent.
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


class FrozenError(LedgerError):
    """The ledger is frozen: nothing is spent before its operator has decided. Nothing was."""


class RollbackError(LedgerError):
    """A ledger is older than what was seen of it, or has another history. Nothing was spent.

    Some recorded spends are missing from it: continuing would spend their budget again.
    """


class ReportError(SilographError):
    """A page cannot be made or written. Nothing was written."""


class DeploymentError(SilographError):
    """A file or a setting of a deployment is missing, damaged or refused.

    Nothing was started or written. Messages name files, parties and settings; they never contain
    secrets or anything of a silo's data.
    """


class KeyFileError(DeploymentError):
    """An identity file is missing, open to others, damaged, of another kind, or does not unseal."""


class RosterError(DeploymentError):
    """A roster file is damaged, inconsistent, or not the one that people signed."""


class EnrolmentError(DeploymentError):
    """A file of an enrolment is damaged, foreign, stale or repeated. Nothing was written."""


class CertificateError(DeploymentError):
    """A certificate cannot be made, read or trusted."""


class BrokerError(DeploymentError):
    """The settings do not allow a broker to be reached, or are not safe."""


class TrailError(DeploymentError):
    """An audit trail cannot be read or written, or its entries do not follow each other."""


class ConfigError(DeploymentError):
    """A configuration file is missing, unreadable or wrong; the message names file and key."""


class StoreError(DeploymentError):
    """A state store cannot be opened or written, or contradicts the ledger.

    Nothing may be sent after this error, since it is not known what was sent before.
    """


class TransportError(DeploymentError):
    """A broker cannot be reached, or does not work as it should.

    ``lasting`` says that it is useless to try again before somebody has changed a file.
    ``standing`` is the message that stands under a name that we wanted to use.
    """

    def __init__(self, message: str, *, lasting: bool = False, standing: bytes = b"") -> None:
        super().__init__(message)
        self.lasting = lasting
        self.standing = standing


class SilographWarning(UserWarning):
    """The root of all warnings."""


class CalibrationWarning(SilographWarning):
    """Statistics of the raw noisy graph are biased; use the release's own queries."""


class PrivacyWarning(SilographWarning):
    """A choice protects less than one may think."""


class LedgerWarning(SilographWarning):
    """No ledger records a run, or a limit is already exceeded."""


class SplitWarning(SilographWarning):
    """A split could not reach the requested sampling rate."""


class UselessAnswerWarning(SilographWarning):
    """The answer is expected to be mostly noise; the message says what would help."""
