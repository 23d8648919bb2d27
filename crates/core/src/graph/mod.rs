//! Graphs: bit rows and their kernels, edge lists, splits.
mod compact;
pub mod edgelist;
pub mod generate;
pub mod ids;
pub mod lines;
mod sinks;
pub mod sparse;
pub mod split;
