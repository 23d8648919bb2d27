//! Graphs: bit rows and their kernels, edge lists, splits.
