//! Exact samplers.
