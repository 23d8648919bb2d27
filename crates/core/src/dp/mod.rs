//! Exact samplers: no floating point between a stated probability and a drawn bit or integer.

pub mod bernoulli;
pub mod channel;
pub mod coins;
pub mod laplace;
pub mod polya;
