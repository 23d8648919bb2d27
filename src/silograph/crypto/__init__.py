"""Cryptography from well-kept Rust crates, in whole steps: bytes and chunks cross, no scalars."""
