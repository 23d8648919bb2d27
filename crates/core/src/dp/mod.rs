//! Exact samplers: no floating point between a stated probability and a drawn bit.

pub mod bernoulli;
pub mod channel;
