//! Graphs: bit rows and their kernels, edge lists, splits.

pub mod bitrows;
pub mod edgelist;
pub mod fold;
pub mod generate;
pub mod ids;
pub mod kernels;
pub mod lines;
pub mod local;
mod popcount;
pub mod settle;
pub mod simd;
mod sinks;
pub mod sparse;
pub mod split;
pub mod text;
pub mod times;
