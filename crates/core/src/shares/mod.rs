//! Additive shares: what silos compute on together without showing it to each other.

pub mod matrix;
pub mod simd;
pub mod square;
