//! Symmetric matrices with a zero diagonal, mod 2^64, and their squares.

pub mod matrix;
pub mod simd;
pub mod square;
