//! Sets of edges.

use numpy::{PyArray1, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;
use silograph_core::graph::sparse;

/// Sorted distinct pairs from positions, with the numbers of loops and of repeats.
#[pyfunction]
fn settle_pairs<'py>(
    py: Python<'py>,
    first: PyReadonlyArray1<'py, u32>,
    second: PyReadonlyArray1<'py, u32>,
) -> PyResult<(Bound<'py, PyArray1<u64>>, usize, usize)> {
    let (first, second) = (first.as_slice()?, second.as_slice()?);
    let (pairs, loops, repeats) = py.detach(|| {
        let mut keys = first
            .iter()
            .zip(second)
            .map(|(&a, &b)| sparse::key(a, b))
            .collect();
        let (loops, repeats) = sparse::settle(&mut keys);
        (sparse::as_pairs(keys), loops, repeats)
    });
    Ok((PyArray1::from_vec(py, pairs), loops, repeats))
}

/// The number of triangles of a sparse graph.
#[pyfunction]
fn sparse_triangles(py: Python<'_>, n: usize, pairs: PyReadonlyArray2<'_, u32>) -> PyResult<u64> {
    let (pairs, _) = pairs.as_slice()?.as_chunks::<2>();
    Ok(py.detach(|| sparse::triangles(n, pairs)))
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(settle_pairs, module)?)?;
    module.add_function(wrap_pyfunction!(sparse_triangles, module)?)
}
