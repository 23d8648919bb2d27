"""Cryptography, thinly typed: the work is Rust's, and bytes and whole chunks cross."""
