//! Dealing edges to silos.

use numpy::PyArray1;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use silograph_core::graph::split::{Plan, deal};

/// The holders of each edge as a bit mask; `counts` is (edges, union, shared, holders).
#[pyfunction]
fn split_masks(
    py: Python<'_>,
    counts: (usize, usize, usize, usize),
    silos: usize,
    seed: [u8; 32],
) -> PyResult<Bound<'_, PyArray1<u64>>> {
    let (edges, union, shared, holders) = counts;
    let plan = Plan {
        edges,
        silos,
        union,
        shared,
        holders,
    };
    if !plan.is_sound() {
        return Err(PyValueError::new_err(
            "the counts of the split do not fit together",
        ));
    }
    Ok(PyArray1::from_vec(py, py.detach(|| deal(&plan, seed))))
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(split_masks, module)?)
}
