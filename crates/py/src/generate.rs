//! Seeded graphs.

use numpy::PyArray1;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use silograph_core::graph::{generate, sparse};

/// Pairs of a Holme–Kim graph.
#[pyfunction]
fn clustered_power_law(
    py: Python<'_>,
    n: u32,
    each: u32,
    closure: f64,
    seed: [u8; 32],
) -> PyResult<Bound<'_, PyArray1<u64>>> {
    if each == 0 || each >= n {
        return Err(PyValueError::new_err(
            "edges a node: at least one, and fewer than nodes",
        ));
    }
    let grow = || {
        let keys = generate::clustered_power_law(n, each, closure, seed);
        keys.into_iter().map(sparse::as_pair).collect()
    };
    Ok(PyArray1::from_vec(py, py.detach(grow)))
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(clustered_power_law, module)?)
}
