//! Sets of edges.

use numpy::{PyArray1, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;
use silograph_core::graph::settle::Settled;
use silograph_core::graph::sparse;

/// Rows that one thread takes at a time.
const PIECE: usize = 1 << 15;

/// Sorted distinct pairs from positions, with the numbers of loops and of repeats.
#[pyfunction]
fn settle_pairs<'py>(
    py: Python<'py>,
    first: PyReadonlyArray1<'py, u32>,
    second: PyReadonlyArray1<'py, u32>,
) -> PyResult<(Bound<'py, PyArray1<u64>>, usize, usize)> {
    let (first, second) = (first.as_slice()?, second.as_slice()?);
    let settled = py.detach(|| {
        let rows = first.chunks(PIECE).zip(second.chunks(PIECE));
        let keys = rows.map(|(first, second)| {
            let ends = first.iter().zip(second);
            ends.map(|(&a, &b)| sparse::key(a, b)).collect()
        });
        Settled::new(keys.collect())
    });
    let (pairs, ()) = written(py, settled.count(), |pairs| settled.write(pairs))?;
    Ok((pairs, settled.loops(), settled.repeats()))
}

/// An array of pairs, and what comes of writing them. The array is numpy's, which asks for large
/// pages: those of a fresh list would take longer than the writing.
pub fn written<'py, T: Send>(
    py: Python<'py>,
    count: usize,
    write: impl FnOnce(&mut [u64]) -> T + Send,
) -> PyResult<(Bound<'py, PyArray1<u64>>, T)> {
    let pairs = PyArray1::zeros(py, count, false);
    let made = {
        let mut room = pairs.readwrite();
        let room = room.as_slice_mut()?;
        py.detach(|| write(room))
    };
    Ok((pairs, made))
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
