//! Graphs: bit rows and their kernels, edge lists, splits.

pub mod bitrows;
pub mod kernels;
pub mod simd;
