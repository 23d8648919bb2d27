//! Bindings of `dp::laplace` and `dp::polya`.

use numpy::PyArray1;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use silograph_core::dp::laplace::{Scale, laplace_noise};
use silograph_core::dp::polya::{MOST_SHARES, share_noise};

fn scale(numerator: u64, denominator: u64) -> PyResult<Scale> {
    Scale::new(numerator, denominator).ok_or_else(|| {
        PyValueError::new_err("a scale has parts from 1 to 2^62 and is at most 2^50")
    })
}

#[pyfunction]
fn discrete_laplace(
    py: Python<'_>,
    count: usize,
    numerator: u64,
    denominator: u64,
    seed: [u8; 32],
) -> PyResult<Bound<'_, PyArray1<i64>>> {
    let scale = scale(numerator, denominator)?;
    let drawn = py.detach(|| laplace_noise(count, scale, seed));
    Ok(PyArray1::from_vec(py, drawn))
}

#[pyfunction]
fn polya_difference(
    py: Python<'_>,
    count: usize,
    numerator: u64,
    denominator: u64,
    shares: u64,
    seed: [u8; 32],
) -> PyResult<Bound<'_, PyArray1<i64>>> {
    let scale = scale(numerator, denominator)?;
    if !(1..=MOST_SHARES).contains(&shares) {
        return Err(PyValueError::new_err("there are 1 to 64 shares"));
    }
    let drawn = py.detach(|| share_noise(count, scale, shares, seed));
    Ok(PyArray1::from_vec(py, drawn))
}

/// Adds this file's functions to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(discrete_laplace, module)?)?;
    module.add_function(wrap_pyfunction!(polya_difference, module)?)
}
