//! Additive shares: what silos compute on together without showing it to each other.
//!
//! The dealer ([`dealing`]) has every silo's seed and makes corrections; a silo ([`dealt`],
//! [`chunk`]) has its own seed and what is opened. Nothing here has both.

pub mod bits;
pub mod chunk;
pub mod dabits;
pub mod dealing;
pub mod dealt;
pub mod squares;
pub mod stream;
pub mod triangles;
pub mod union;
pub mod zeros;

#[cfg(test)]
mod tests;
