//! Bindings of `graph::local`.

use numpy::{PyArray1, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use silograph_core::graph::local;

use crate::bitrows::{borrow, level, nodes};

#[pyfunction]
#[pyo3(signature = (held, noisy, owned, simd=None))]
fn local_triples(
    py: Python<'_>,
    held: PyReadonlyArray2<'_, u64>,
    noisy: PyReadonlyArray2<'_, u64>,
    owned: PyReadonlyArray1<'_, u32>,
    simd: Option<&str>,
) -> PyResult<[[u64; 4]; 4]> {
    let (held, noisy) = (borrow(&held)?, borrow(&noisy)?);
    let (owned, level) = (owned.as_slice()?, level(simd)?);
    if held.n() != noisy.n() {
        return Err(PyValueError::new_err("the two graphs differ in size"));
    }
    nodes(owned, held.n())?;
    Ok(py.detach(|| local::triples(held, noisy, owned, level)))
}

#[pyfunction]
#[pyo3(signature = (rows, pairs, simd=None))]
fn common_of_pairs<'py>(
    py: Python<'py>,
    rows: PyReadonlyArray2<'py, u64>,
    pairs: PyReadonlyArray2<'py, u32>,
    simd: Option<&str>,
) -> PyResult<Bound<'py, PyArray1<u32>>> {
    let (rows, level, pairs) = (borrow(&rows)?, level(simd)?, pairs.as_slice()?);
    nodes(pairs, rows.n())?;
    let found = py.detach(|| local::common_of_pairs(rows, pairs, level));
    Ok(PyArray1::from_vec(py, found))
}

#[pyfunction]
#[pyo3(signature = (rows, pairs, simd=None))]
fn walks_of_pairs<'py>(
    py: Python<'py>,
    rows: PyReadonlyArray2<'py, u64>,
    pairs: PyReadonlyArray2<'py, u32>,
    simd: Option<&str>,
) -> PyResult<Bound<'py, PyArray1<u64>>> {
    let (rows, level, pairs) = (borrow(&rows)?, level(simd)?, pairs.as_slice()?);
    nodes(pairs, rows.n())?;
    let found = py.detach(|| local::walks_of_pairs(rows, pairs, level));
    Ok(PyArray1::from_vec(py, found))
}

/// Adds this file's functions to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(local_triples, module)?)?;
    module.add_function(wrap_pyfunction!(common_of_pairs, module)?)?;
    module.add_function(wrap_pyfunction!(walks_of_pairs, module)?)
}
