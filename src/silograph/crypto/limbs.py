"""Exact fractions as the Rust samplers take them."""

from fractions import Fraction

__all__ = ["limbs"]


def limbs(p: Fraction) -> tuple[bytes, bytes]:
    """Numerator and denominator in little-endian 64-bit limbs.

    >>> limbs(Fraction(1, 3)) == (b"\\1" + bytes(7), b"\\3" + bytes(7))
    True
    """
    width = -(-p.denominator.bit_length() // 64) * 8
    return p.numerator.to_bytes(width, "little"), p.denominator.to_bytes(width, "little")
