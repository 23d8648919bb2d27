//! Cryptography, composed from well-kept crates.

pub mod agreement;
pub mod identity;
pub mod masked;
