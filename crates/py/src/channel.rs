//! Bindings of `dp::channel`.

use numpy::{PyArray2, PyReadonlyArray2};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use silograph_core::dp::bernoulli::Probability;
use silograph_core::dp::channel;
use silograph_core::graph::bitrows::{from_triangle, pair_count};

use crate::bitrows::{to_array, triangle_of_pairs};

/// An exact probability num/den.
pub fn probability((num, den): (u128, u128)) -> PyResult<Probability> {
    Probability::new(num, den).ok_or_else(|| PyValueError::new_err("this is not a probability"))
}

#[pyfunction]
fn draw_rows<'py>(
    py: Python<'py>,
    n: usize,
    pairs: PyReadonlyArray2<'py, u32>,
    p11: (u128, u128),
    p01: (u128, u128),
    seed: [u8; 32],
) -> PyResult<Bound<'py, PyArray2<u64>>> {
    let mut bits = triangle_of_pairs(n, &pairs)?;
    let (p11, p01) = (probability(p11)?, probability(p01)?);
    let rows = py.detach(|| {
        channel::transmit(&mut bits, pair_count(n), &p11, &p01, seed);
        from_triangle(n, &bits)
    });
    to_array(py, n, rows)
}

/// Adds this file's functions to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(draw_rows, module)?)
}
