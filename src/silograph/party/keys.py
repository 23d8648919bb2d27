"""Identity files: one text file per party, readable by its owner only, optionally sealed.

What: a versioned TOML file with the public key and the secret of an Ed25519 identity. In a sealed
file the secret is encrypted under a passphrase, with scrypt (N = 2^17, r = 8, p = 1: 128 MiB and
some tenths of a second per guess) and ChaCha20-Poly1305. Everything else in the file is associated
data. The version of the file fixes these numbers; a file cannot ask for others.

Guarantee: the file has mode 0600 from the moment it is created and is never overwritten. It is
refused if anyone but its owner can read it. No error, representation or output contains the secret
or the passphrase.

Why text: people back up, move and recognise these files. A plain file is as safe as the disk. A
sealed file is as safe as its passphrase, which somebody must type or another file must hold.
"""

import base64
import binascii
import os
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from silograph import whole_files
from silograph.errors import ArgumentError, KeyFileError, SignatureError
from silograph.extras import library
from silograph.messages.entropy import Entropy, OsEntropy
from silograph.messages.identity import Identity, pack

__all__ = ["KeyFile", "key_text", "load_identity", "new_identity", "read_key", "show_identity"]

_KIND = "silograph identity"
_LARGEST = 4096
_LOG_N, _R, _P = 17, 8, 1
_SALT, _NONCE, _TAG = 16, 12, 16
_PREFIX = "ed25519:"
_LONGEST_PASSPHRASE = 1024


@dataclass(frozen=True)
class KeyFile:
    """The public part of an identity file. In a sealed file it is not verified until unsealing."""

    public: bytes
    created: str
    sealed: bool


def key_text(public: bytes) -> str:
    """A public key as text, in the form that people exchange.

    >>> key_text(bytes(32))[:20]
    'ed25519:000000000000'
    """
    return _PREFIX + public.hex()


def read_key(text: str) -> bytes:
    """Parse a public key; raises :class:`ArgumentError` if the text is not one."""
    digits = text.removeprefix(_PREFIX)
    if text == _PREFIX + digits and len(digits) == 64 and set(digits) <= set("0123456789abcdef"):
        return bytes.fromhex(digits)
    raise ArgumentError(f"{text[:80]!r} is not a public key: {_PREFIX} and 64 hexadecimal digits")


def utc_now() -> datetime:
    """The current time in UTC."""
    return datetime.now(UTC)


def new_identity(
    path: str | os.PathLike[str],
    passphrase: str | None = None,
    *,
    entropy: Entropy | None = None,
    clock: Callable[[], datetime] = utc_now,
) -> Identity:
    """Draw an identity and write its file, which is sealed if a passphrase is given."""
    entropy = entropy or OsEntropy()
    secret = entropy.bytes(32)
    identity = Identity(secret)
    created = clock().astimezone(UTC).isoformat(timespec="seconds")
    if passphrase is None:
        kept = f'secret = "{secret.hex()}"'
    else:
        salt, nonce = entropy.bytes(_SALT), entropy.bytes(_NONCE)
        box = _cipher(_passphrase_bytes(passphrase), salt).encrypt(
            nonce, secret, _bound(identity.public, created)
        )
        kept = f'sealed = "{base64.b64encode(salt + nonce + box).decode()}"'
    text = (
        "# SECRET. Whoever has this file"
        + (" and its passphrase" if passphrase is not None else "")
        + " can speak for this party.\n"
        f'kind = "{_KIND}"\n'
        f"version = {whole_files.IDENTITY.current}\n"
        f'created = "{created}"\n'
        f'public = "{key_text(identity.public)}"\n'
        f"{kept}\n"
    )
    whole_files.create(Path(path), text.encode(), KeyFileError)
    return identity


def load_identity(path: str | os.PathLike[str], passphrase: str | None = None) -> Identity:
    """Read an identity file.

    A sealed file needs a passphrase. A plain file is refused if a passphrase is given, because the
    caller believes it to be sealed.
    """
    place = Path(path)
    shown, table = _read(place)
    if shown.sealed:
        if passphrase is None:
            raise KeyFileError(f"{place}: the identity is sealed; its passphrase is needed")
        secret = _unseal(place, shown, table["sealed"], passphrase)
    else:
        if passphrase is not None:
            raise KeyFileError(f"{place}: a passphrase was given, and the identity is not sealed")
        secret = _hexadecimal(table["secret"])
    try:
        identity = Identity(secret)
    except SignatureError:
        raise KeyFileError(f"{place}: the identity file is damaged") from None
    if identity.public != shown.public:
        raise KeyFileError(f"{place}: the secret is not that of the public key beside it")
    return identity


def show_identity(path: str | os.PathLike[str]) -> KeyFile:
    """The public part of an identity file."""
    return _read(Path(path))[0]


def _read(path: Path) -> tuple[KeyFile, dict[str, Any]]:
    content = whole_files.read(path, _LARGEST, KeyFileError, private=True)
    table = whole_files.parse_toml(path, content, KeyFileError)
    if table.get("kind") != _KIND:
        raise KeyFileError(f"{path}: not an identity file")
    whole_files.IDENTITY.check(table.get("version"), path, KeyFileError)
    head = {"kind", "version", "created", "public"}
    form = table.keys() - head
    if form not in ({"secret"}, {"sealed"}) or not head <= table.keys():
        raise KeyFileError(f"{path}: the identity file has other fields than it should")
    if not all(isinstance(table[name], str) for name in table.keys() - {"version"}):
        raise KeyFileError(f"{path}: the identity file is damaged")
    try:
        public = read_key(table["public"])
    except ArgumentError:
        raise KeyFileError(f"{path}: the identity file has no public key") from None
    return KeyFile(public, table["created"], form == {"sealed"}), table


def _hexadecimal(text: str) -> bytes:
    try:
        return bytes.fromhex(text)
    except ValueError:
        return b""  # not the length of a secret, so refused later


def _unseal(path: Path, shown: KeyFile, text: str, passphrase: str) -> bytes:
    try:
        box = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        box = b""
    if len(box) != _SALT + _NONCE + 32 + _TAG:
        raise KeyFileError(f"{path}: the identity file is damaged")
    cipher = _cipher(_passphrase_bytes(passphrase), box[:_SALT])
    from cryptography.exceptions import InvalidTag  # noqa: PLC0415 - _cipher checked it

    nonce = box[_SALT : _SALT + _NONCE]
    try:
        opened: bytes = cipher.decrypt(
            nonce, box[_SALT + _NONCE :], _bound(shown.public, shown.created)
        )
    except InvalidTag:
        raise KeyFileError(f"{path}: wrong passphrase, or the file was changed") from None
    return opened


def _bound(public: bytes, created: str) -> bytes:
    version = str(whole_files.IDENTITY.current).encode()
    return pack(b"silograph/identity", version, public, created.encode())


def _passphrase_bytes(passphrase: str) -> bytes:
    if not passphrase or len(passphrase) > _LONGEST_PASSPHRASE:
        raise ArgumentError(f"a passphrase has 1 to {_LONGEST_PASSPHRASE} characters")
    # Keyboards may compose the same letter differently; NFC makes the bytes equal.
    return unicodedata.normalize("NFC", passphrase).encode("utf-8", "surrogatepass")


def _cipher(passphrase: bytes, salt: bytes) -> Any:
    primitives = "cryptography.hazmat.primitives"
    scrypt = library(f"{primitives}.kdf.scrypt", "sealed identity files")
    aead = library(f"{primitives}.ciphers.aead", "sealed identity files")
    key = scrypt.Scrypt(salt=salt, length=32, n=1 << _LOG_N, r=_R, p=_P).derive(passphrase)
    return aead.ChaCha20Poly1305(key)
