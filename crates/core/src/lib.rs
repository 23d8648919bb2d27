//! The pure core of Silograph: graphs as bit rows, exact samplers, threshold ElGamal and
//! additive shares. It does not know Python.
//!
//! Every randomized function takes a 32-byte seed and is deterministic in it; entropy is chosen
//! by the caller.

pub mod committee;
pub mod crypto;
pub mod dp;
pub mod graph;
pub mod shares;
pub mod symmetric;
pub mod words;
