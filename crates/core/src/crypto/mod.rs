//! Cryptography on well-kept crates: curve arithmetic is curve25519-dalek's alone.

pub mod aead;
pub mod agreement;
pub mod elgamal;
pub mod identity;
pub mod keystream;
pub mod masked;
pub mod packed;
mod simd;
