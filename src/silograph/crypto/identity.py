"""Long-term identities: Ed25519 (RFC 8032). Verification raises; it never returns a bool."""

from silograph import _core
from silograph.errors import SignatureError

__all__ = ["Identity", "check_public_key", "verify"]


class Identity:
    """A signing key. Its representation shows the public half only."""

    __slots__ = ("_key", "public")

    def __init__(self, secret: bytes) -> None:
        if len(secret) != 32:
            raise SignatureError("an identity's secret has 32 bytes")
        self._key = _core.Identity(secret)
        self.public = self._key.public()

    def sign(self, message: bytes) -> bytes:
        """A 64-byte signature."""
        return self._key.sign(message)

    def __repr__(self) -> str:
        return f"Identity(public={self.public.hex()[:16]}…)"


def check_public_key(public: bytes) -> None:
    """Refuse what is no canonical Ed25519 key, or one of small order."""
    if len(public) != 32 or not _core.is_public_key(public):
        raise SignatureError(f"{public.hex()[:16]}… is not an Ed25519 public key")


def verify(public: bytes, message: bytes, signature: bytes, *, who: str) -> None:
    """Raise :class:`SignatureError`, naming ``who``, unless the signature is theirs."""
    if len(signature) != 64 or not _core.verify_signature(public, message, signature):
        raise SignatureError(f"the signature is not that of {who}")
