//! Bindings of `symmetric`: the square of a symmetric matrix, for tests and benchmarks.

use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use silograph_core::symmetric::matrix::Triangle;
use silograph_core::symmetric::square::rows_of_square;

use crate::bitrows::level;

/// The square of a symmetric matrix with a zero diagonal, mod 2^64: one word per pair, in and out.
#[pyfunction]
#[pyo3(signature = (n, words, simd = None))]
fn symmetric_square<'py>(
    py: Python<'py>,
    n: usize,
    words: PyReadonlyArray1<'py, u64>,
    simd: Option<&str>,
) -> PyResult<Bound<'py, PyArray1<u64>>> {
    let (words, level) = (words.as_slice()?, level(simd)?);
    let matrix = Triangle::new(n, words);
    let matrix = matrix.ok_or_else(|| PyValueError::new_err("there is not one word per pair"))?;
    let square = py.detach(|| rows_of_square(matrix, 0..n, level));
    Ok(PyArray1::from_vec(py, square))
}

/// Adds this file's names to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(symmetric_square, module)?)
}
