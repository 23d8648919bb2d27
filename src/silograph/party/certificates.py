"""TLS certificates: one certificate authority, the broker and every party.

What: ECDSA P-256 certificates for mutual TLS, in one folder of PEM files: ``ca.pem``,
``broker.pem`` and ``NAME.pem``. :func:`issue` makes a key, too, in the same folder (``.key``, mode
0600). A party on another machine makes its own key and a request (:func:`new_request`);
:func:`sign_request` needs nothing but that request, so the key never leaves its machine.

What they are good for: anyone who has ``ca.key`` can connect to the broker as any party. An
organisation that has its own certificate authority may use that. Privacy does not depend on
these certificates: messages are signed with identities from the roster, which no certificate
authority can issue.
"""

import ipaddress
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from silograph import whole_files
from silograph.errors import CertificateError
from silograph.extras import library
from silograph.party.roster import check_name

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import (
        EllipticCurvePrivateKey,
        EllipticCurvePublicKey,
    )
    from cryptography.x509 import Certificate

__all__ = [
    "AUTHORITY",
    "BROKER",
    "CertificateFile",
    "check_issued",
    "issue",
    "new_authority",
    "new_request",
    "show_certificate",
    "sign_request",
    "valid_from",
]

AUTHORITY = "ca"
BROKER = "broker"
#: How many days a certificate is valid by default.
DAYS = 90

_LARGEST = 64 * 1024
_MOST_DAYS = 825
_CLOCKS_DIFFER = timedelta(minutes=5)


@dataclass(frozen=True)
class CertificateFile:
    """The content of a certificate."""

    path: Path
    #: The distinguished name, which the broker maps to a user.
    subject: str
    hosts: tuple[str, ...]
    expires: datetime
    authority: bool

    def days_left(self, now: datetime) -> int:
        """Whole days until the certificate expires; negative once it has expired."""
        return (self.expires - now) // timedelta(days=1)


def new_authority(
    folder: Path, now: datetime, days: int = DAYS, name: str = "silograph trial authority"
) -> CertificateFile:
    """Write ``ca.pem`` and ``ca.key`` to a folder, which is created if necessary (mode 0700)."""
    x509, ec = _modules()
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise CertificateError(f"{folder}: cannot be made: {error.strerror}") from None
    key = ec.generate_private_key(ec.SECP256R1())
    subject = _name(x509, name)
    made = (
        _builder(x509, subject, subject, key.public_key(), now, days)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(x509, authority=True), critical=True)
    )
    return _write(folder, AUTHORITY, _signed(made, key), key)


def issue(
    folder: Path, name: str, now: datetime, days: int = DAYS, hosts: Iterable[str] = ()
) -> CertificateFile:
    """Write ``NAME.pem`` and ``NAME.key``, signed by the authority in the same folder.

    With ``hosts`` (names or addresses) the certificate is valid for a server and for a client,
    because the members of a cluster need both. Without ``hosts`` it is valid for a client only.
    It expires no later than the authority's certificate.
    """
    _, ec = _modules()
    key = ec.generate_private_key(ec.SECP256R1())
    return _write(folder, name, _issued(folder, name, key.public_key(), now, days, hosts), key)


def _issued(
    folder: Path,
    name: str,
    public: "EllipticCurvePublicKey",
    now: datetime,
    days: int,
    hosts: Iterable[str] = (),
) -> "Certificate":
    """A certificate for a public key, signed by the authority in the folder."""
    x509, _ = _modules()
    if check_name(name) == AUTHORITY:
        raise CertificateError(f"{name!r} is the authority's own name")
    authority, signer = _read_authority(folder)
    limit = authority.not_valid_after_utc
    uses = [x509.oid.ExtendedKeyUsageOID.CLIENT_AUTH]
    builder = (
        _builder(x509, _name(x509, name), authority.subject, public, now, days, limit)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(x509, authority=False), critical=True)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False
        )
    )
    alternatives = [_host(x509, host) for host in hosts]
    if alternatives:
        uses.insert(0, x509.oid.ExtendedKeyUsageOID.SERVER_AUTH)
        builder = builder.add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
    builder = builder.add_extension(x509.ExtendedKeyUsage(uses), critical=False)
    return _signed(builder, signer)


# --- A key on one machine, its certificate from another -------------------------------------------


def new_request(name: str) -> tuple[bytes, bytes]:
    """A new key, which must not leave its machine, and the request for its certificate: PEM."""
    from cryptography.hazmat.primitives import hashes, serialization  # noqa: PLC0415

    x509, ec = _modules()
    key = ec.generate_private_key(ec.SECP256R1())
    made = x509.CertificateSigningRequestBuilder().subject_name(_name(x509, check_name(name)))
    request: bytes = made.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
    return _private(key), request


def sign_request(folder: Path, name: str, request: bytes, now: datetime, days: int = DAYS) -> bytes:
    """The certificate (PEM) that a request asks for, signed by the authority in a folder.

    Only the key is taken from the request. Its subject must be the party's name, and it must be
    signed with the key that it contains. The certificate is valid for a client only.
    """
    from cryptography.hazmat.primitives.serialization import Encoding  # noqa: PLC0415

    x509, ec = _modules()
    with _parsing(f"{name}: not a request for a certificate in PEM"):
        asked = x509.load_pem_x509_csr(request)
        public, subject, own = asked.public_key(), asked.subject, asked.is_signature_valid
    if not isinstance(public, ec.EllipticCurvePublicKey) or public.curve.name != "secp256r1":
        raise CertificateError(f"{name}: the request is not for a key on the curve P-256")
    if subject != _name(x509, name):
        said = subject.rfc4514_string()
        raise CertificateError(f"{name}: the request is for {said[:80]!r}, not for CN={name}")
    if not own:
        raise CertificateError(f"{name}: the request is not signed with its own key")
    made: bytes = _issued(folder, name, public, now, days).public_bytes(Encoding.PEM)
    return made


def check_issued(certificate: bytes, name: str, key: Path, authority: Path) -> None:
    """Refuse a certificate (PEM) that is not for this name and key, or not from this authority."""
    x509, _ = _modules()
    with _parsing(f"{name}: not a certificate in PEM"):
        made = x509.load_pem_x509_certificate(certificate)
        holder, public = made.subject, made.public_key()
    if holder != _name(x509, name):
        said = holder.rfc4514_string()
        raise CertificateError(f"the certificate is for {said[:80]!r}, not for CN={name}")
    if public != _read_key(key).public_key():
        raise CertificateError(f"the certificate is not for the key in {key}")
    with _parsing(f"the certificate was not issued by {authority}"):
        made.verify_directly_issued_by(_read_certificate(authority))


def show_certificate(path: str | os.PathLike[str]) -> CertificateFile:
    """Read a certificate file. This does not verify the certificate."""
    place = Path(path)
    return _facts(place, _read_certificate(place))


def valid_from(path: Path) -> datetime:
    """When a certificate begins to be valid."""
    return _read_certificate(path).not_valid_before_utc.astimezone(UTC)


@contextmanager
def _parsing(what: str) -> Iterator[None]:
    """Say one thing of a foreign text that the library cannot read, for which it has many errors.

    Most parts of a certificate are read only when they are asked for.
    """
    try:
        yield
    except CertificateError:
        raise
    except Exception:
        raise CertificateError(what) from None


def _modules() -> tuple[Any, Any]:
    names = ("cryptography.x509", "cryptography.hazmat.primitives.asymmetric.ec")
    x509, ec = (library(name, "certificates") for name in names)
    return x509, ec


def _name(x509: Any, common: str) -> Any:
    return x509.Name([x509.NameAttribute(x509.oid.NameOID.COMMON_NAME, common)])


def _builder(
    x509: Any,
    subject: Any,
    issuer: Any,
    public: "EllipticCurvePublicKey",
    now: datetime,
    days: int,
    limit: datetime | None = None,
) -> Any:
    if not 1 <= days <= _MOST_DAYS:
        raise CertificateError(f"a certificate is good for 1 to {_MOST_DAYS} days, not {days}")
    end = now + timedelta(days=days)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _CLOCKS_DIFFER)
        .not_valid_after(min(end, limit) if limit else end)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
    )


def _usage(x509: Any, *, authority: bool) -> Any:
    return x509.KeyUsage(
        digital_signature=not authority,
        key_cert_sign=authority,
        crl_sign=authority,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _host(x509: Any, host: str) -> Any:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        pass
    labels = host.split(".")
    if len(host) > 253 or not all(
        0 < len(label) <= 63 and label.replace("-", "").isalnum() and label.isascii()
        for label in labels
    ):
        raise CertificateError(f"{host[:80]!r} is neither a host's name nor an address")
    return x509.DNSName(host)


def _signed(builder: Any, key: "EllipticCurvePrivateKey") -> "Certificate":
    from cryptography.hazmat.primitives import hashes  # noqa: PLC0415 - _modules checked it

    made: Certificate = builder.sign(key, hashes.SHA256())
    return made


def _write(
    folder: Path, name: str, certificate: "Certificate", key: "EllipticCurvePrivateKey"
) -> CertificateFile:
    from cryptography.hazmat.primitives import serialization as form  # noqa: PLC0415

    path = folder / f"{name}.pem"
    if path.exists():  # checked first, so that no new key lands beside an old certificate
        raise CertificateError(f"{path}: something is there already, and is never overwritten")
    whole_files.create(folder / f"{name}.key", _private(key), CertificateError)
    public = certificate.public_bytes(form.Encoding.PEM)
    whole_files.create(path, public, CertificateError, mode=0o644)
    return _facts(path, certificate)


def _private(key: "EllipticCurvePrivateKey") -> bytes:
    from cryptography.hazmat.primitives import serialization as form  # noqa: PLC0415

    return key.private_bytes(form.Encoding.PEM, form.PrivateFormat.PKCS8, form.NoEncryption())


def _read_certificate(path: Path) -> "Certificate":
    x509, _ = _modules()
    content = whole_files.read(path, _LARGEST, CertificateError)
    with _parsing(f"{path}: not a certificate in PEM"):
        made: Certificate = x509.load_pem_x509_certificate(content)
    return made


def _read_authority(folder: Path) -> tuple["Certificate", "EllipticCurvePrivateKey"]:
    path = folder / f"{AUTHORITY}.key"
    certificate = _read_certificate(folder / f"{AUTHORITY}.pem")
    key = _read_key(path)
    if key.public_key() != certificate.public_key():
        raise CertificateError(f"{path}: not the key of {AUTHORITY}.pem beside it")
    return certificate, key


def _read_key(path: Path) -> "EllipticCurvePrivateKey":
    from cryptography.hazmat.primitives.serialization import (  # noqa: PLC0415
        load_pem_private_key,
    )

    _, ec = _modules()
    content = whole_files.read(path, _LARGEST, CertificateError, private=True)
    try:
        key = load_pem_private_key(content, password=None)
    except (ValueError, TypeError):
        raise CertificateError(f"{path}: not a key in PEM, or an encrypted one") from None
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise CertificateError(f"{path}: not a key that Silograph has made")
    made: EllipticCurvePrivateKey = key
    return made


def _facts(path: Path, certificate: "Certificate") -> CertificateFile:
    x509, _ = _modules()

    def extension(kind: Any) -> Any:
        try:
            return certificate.extensions.get_extension_for_class(kind).value
        except x509.ExtensionNotFound:
            return None

    with _parsing(f"{path}: not a certificate in PEM"):
        alternatives = extension(x509.SubjectAlternativeName)
        constraints = extension(x509.BasicConstraints)
        return CertificateFile(
            path,
            certificate.subject.rfc4514_string(),
            tuple(str(other.value) for other in alternatives or ()),
            certificate.not_valid_after_utc.astimezone(UTC),
            bool(constraints and constraints.ca),
        )
