//! Folded indices: where nodes and edges fall, and how many buckets of each cell are set.

use numpy::{PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray2};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use silograph_core::graph::fold::{Folded, Keys, Layout, count_rows};

use super::bitrows::flat_pairs;
use super::ids::IdTable;

pub fn layout(groups: usize, hubs: usize, sub: usize) -> PyResult<Layout> {
    Layout::new(groups, hubs, sub).ok_or_else(|| PyValueError::new_err("no such shape of a fold"))
}

/// The number of buckets of a shape.
#[pyfunction]
fn fold_buckets(groups: usize, hubs: usize, sub: usize) -> PyResult<usize> {
    Ok(layout(groups, hubs, sub)?.buckets())
}

/// One bit for each bucket that an edge of `pairs`, positions in `table`, occupies.
#[pyfunction]
fn fold_bits<'py>(
    py: Python<'py>,
    table: &IdTable,
    pairs: PyReadonlyArray2<'py, u32>,
    hubs: Vec<String>,
    groups: usize,
    sub: usize,
    key: [u8; 32],
) -> PyResult<Bound<'py, PyArray1<u64>>> {
    let layout = layout(groups, hubs.len(), sub)?;
    let (ends, _) = flat_pairs(table.0.len(), &pairs)?.as_chunks::<2>();
    let bits = py.detach(|| Folded::new(layout, Keys::new(&key), &table.0, &hubs).bits(ends));
    Ok(PyArray1::from_vec(py, bits))
}

type Counts<'py> = Bound<'py, PyArray2<u8>>;

/// For rows `start..stop` of the cells, how many buckets of sign + and of sign − are set.
#[pyfunction]
fn fold_counts<'py>(
    py: Python<'py>,
    bits: &[u8],
    shape: (usize, usize, usize),
    start: usize,
    stop: usize,
) -> PyResult<(Counts<'py>, Counts<'py>)> {
    let layout = layout(shape.0, shape.1, shape.2)?;
    let rows = layout.rows();
    if start > stop || stop > rows || bits.len() < layout.buckets().div_ceil(8) {
        return Err(PyValueError::new_err("no such rows, or too few bits"));
    }
    let (plus, minus) = py.detach(|| count_rows(layout, bits, start..stop));
    let shaped = |counts| PyArray1::from_vec(py, counts).reshape([stop - start, rows]);
    Ok((shaped(plus)?, shaped(minus)?))
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(fold_buckets, module)?)?;
    module.add_function(wrap_pyfunction!(fold_bits, module)?)?;
    module.add_function(wrap_pyfunction!(fold_counts, module)?)
}
