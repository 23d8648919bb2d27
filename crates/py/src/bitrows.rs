//! Bindings of `graph::bitrows` and `graph::kernels`.

use numpy::{
    PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2, PyReadwriteArray1,
};
use pyo3::exceptions::{PyMemoryError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use silograph_core::graph::bitrows::{self, BitRows, pair_count, row_words};
use silograph_core::graph::kernels::{self, Moments};
use silograph_core::graph::simd::Level;
use silograph_core::words;

/// Rows of a numpy array, if they are padded bit rows.
pub fn borrow<'a>(words: &'a PyReadonlyArray2<'_, u64>) -> PyResult<BitRows<'a>> {
    let n = words.as_array().nrows();
    let words = words.as_slice()?;
    BitRows::new(n, words).ok_or_else(|| PyValueError::new_err("these are not padded bit rows"))
}

/// The level of that name, or the best.
pub fn level(name: Option<&str>) -> PyResult<Level> {
    match name {
        None => Ok(Level::best()),
        Some(name) => Level::named(name)
            .ok_or_else(|| PyValueError::new_err(format!("this CPU has no level {name:?}"))),
    }
}

/// Refuses nodes that are not in the graph.
pub fn nodes(picked: &[u32], n: usize) -> PyResult<()> {
    match picked.iter().all(|&u| (u as usize) < n) {
        true => Ok(()),
        false => Err(PyValueError::new_err("a picked node is not in the graph")),
    }
}

/// The words of a little-endian byte string with one bit per pair.
pub fn words_of_bits(bits: &[u8], pairs: usize) -> PyResult<Vec<u64>> {
    words::read(bits, pairs.div_ceil(64))
        .ok_or_else(|| PyValueError::new_err("there is not one bit per pair"))
}

/// Words as they travel.
pub fn bytes_of_words<'py>(py: Python<'py>, words: &[u64]) -> PyResult<Bound<'py, PyBytes>> {
    PyBytes::new_with(py, 8 * words.len(), |bytes| {
        let (eights, _) = bytes.as_chunks_mut::<8>();
        for (eight, word) in eights.iter_mut().zip(words) {
            *eight = word.to_le_bytes();
        }
        Ok(())
    })
}

/// Pairs in one list, checked to be u < v < n.
pub fn flat_pairs<'a>(n: usize, pairs: &'a PyReadonlyArray2<'_, u32>) -> PyResult<&'a [u32]> {
    let flat = pairs.as_slice()?;
    let valid = flat.len() % 2 == 0
        && flat
            .chunks_exact(2)
            .all(|p| p[0] < p[1] && (p[1] as usize) < n);
    match valid {
        true => Ok(flat),
        false => Err(PyValueError::new_err("a pair is not u < v < n")),
    }
}

/// A triangle of the given pairs.
pub fn triangle_of_pairs(n: usize, pairs: &PyReadonlyArray2<'_, u32>) -> PyResult<Vec<u64>> {
    Ok(bitrows::triangle_of_pairs(n, flat_pairs(n, pairs)?))
}

/// Writes the triangle of the given pairs over all of an array.
#[pyfunction]
fn write_triangle(
    py: Python<'_>,
    n: usize,
    pairs: PyReadonlyArray2<'_, u32>,
    mut triangle: PyReadwriteArray1<'_, u64>,
) -> PyResult<()> {
    let (flat, words) = (flat_pairs(n, &pairs)?, triangle.as_slice_mut()?);
    if words.len() != pair_count(n).div_ceil(64) {
        return Err(PyValueError::new_err("there is not one bit per pair"));
    }
    py.detach(|| bitrows::write_triangle(n, flat, words));
    Ok(())
}

/// Hands rows to numpy without a copy.
pub fn to_array<'py>(
    py: Python<'py>,
    n: usize,
    rows: Vec<u64>,
) -> PyResult<Bound<'py, PyArray2<u64>>> {
    PyArray1::from_vec(py, rows).reshape([n, row_words(n)])
}

#[pyfunction]
fn simd_levels() -> Vec<&'static str> {
    Level::available()
        .iter()
        .map(|level| level.name())
        .collect()
}

#[pyfunction]
fn rows_from_pairs<'py>(
    py: Python<'py>,
    n: usize,
    pairs: PyReadonlyArray2<'py, u32>,
) -> PyResult<Bound<'py, PyArray2<u64>>> {
    let flat = flat_pairs(n, &pairs)?;
    let rows = py.detach(|| bitrows::rows_of_pairs(n, flat));
    to_array(py, n, rows)
}

#[pyfunction]
fn rows_from_triangle<'py>(
    py: Python<'py>,
    n: usize,
    triangle: &[u8],
) -> PyResult<Bound<'py, PyArray2<u64>>> {
    let words = words_of_bits(triangle, pair_count(n))?;
    let rows = py.detach(|| bitrows::into_rows(n, words));
    to_array(py, n, rows)
}

/// One bit per pair, written chunk by chunk in any order. Its memory becomes that of the rows.
#[pyclass(module = "silograph._core")]
struct OpenBits {
    size: usize,
    /// Empty before the first bits come: machines of large runs are made to be asked about them, too.
    words: Vec<u64>,
}

#[pymethods]
impl OpenBits {
    #[new]
    fn new(bits: usize) -> Self {
        let (size, words) = (bits.div_ceil(64), Vec::new());
        Self { size, words }
    }

    /// Writes whole words of bits, from bit `start` on.
    fn write(&mut self, start: usize, bits: &[u8]) -> PyResult<()> {
        let (eights, rest) = bits.as_chunks::<8>();
        let place = start / 64..start / 64 + eights.len();
        if !start.is_multiple_of(64) || !rest.is_empty() || place.end > self.size {
            return Err(PyValueError::new_err("these bits have no place here"));
        }
        if self.words.is_empty() {
            let made = self.words.try_reserve_exact(self.size);
            made.map_err(|_| PyMemoryError::new_err("there is no memory for one bit per pair"))?;
            self.words.resize(self.size, 0);
        }
        let room = &mut self.words[place];
        for (word, eight) in room.iter_mut().zip(eights) {
            *word = u64::from_le_bytes(*eight);
        }
        Ok(())
    }

    fn __bytes__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        bytes_of_words(py, &self.words)
    }

    /// The rows of the graph of these bits, which are then no longer here.
    fn rows<'py>(&mut self, py: Python<'py>, n: usize) -> PyResult<Bound<'py, PyArray2<u64>>> {
        if self.words.len() != pair_count(n).div_ceil(64) {
            return Err(PyValueError::new_err("there is not one bit per pair"));
        }
        let words = std::mem::take(&mut self.words);
        let rows = py.detach(|| bitrows::into_rows(n, words));
        to_array(py, n, rows)
    }
}

#[pyfunction]
fn triangle_of_rows<'py>(
    py: Python<'py>,
    rows: PyReadonlyArray2<'py, u64>,
) -> PyResult<Bound<'py, PyBytes>> {
    let rows = borrow(&rows)?;
    let triangle = py.detach(|| bitrows::to_triangle(rows));
    let bytes: Vec<u8> = triangle.iter().flat_map(|w| w.to_le_bytes()).collect();
    Ok(PyBytes::new(py, &bytes))
}

#[pyfunction]
fn pairs_of_rows<'py>(
    py: Python<'py>,
    rows: PyReadonlyArray2<'py, u64>,
) -> PyResult<Bound<'py, PyArray2<u32>>> {
    let rows = borrow(&rows)?;
    let flat = py.detach(|| bitrows::to_pairs(rows));
    let edges = flat.len() / 2;
    PyArray1::from_vec(py, flat).reshape([edges, 2])
}

#[pyfunction]
fn row_degrees<'py>(
    py: Python<'py>,
    rows: PyReadonlyArray2<'py, u64>,
) -> PyResult<Bound<'py, PyArray1<u32>>> {
    let rows = borrow(&rows)?;
    Ok(PyArray1::from_vec(py, py.detach(|| rows.degrees())))
}

#[pyfunction]
#[pyo3(signature = (rows, simd=None))]
fn count_triangles(
    py: Python<'_>,
    rows: PyReadonlyArray2<'_, u64>,
    simd: Option<&str>,
) -> PyResult<u64> {
    let (rows, level) = (borrow(&rows)?, level(simd)?);
    Ok(py.detach(|| kernels::triangles(rows, level)))
}

#[pyfunction]
#[pyo3(signature = (rows, simd=None))]
fn count_four_cliques(
    py: Python<'_>,
    rows: PyReadonlyArray2<'_, u64>,
    simd: Option<&str>,
) -> PyResult<u64> {
    let (rows, level) = (borrow(&rows)?, level(simd)?);
    Ok(py.detach(|| kernels::four_cliques(rows, level)))
}

#[pyfunction]
#[pyo3(signature = (rows, picked, simd=None))]
fn row_moments<'py>(
    py: Python<'py>,
    rows: PyReadonlyArray2<'py, u64>,
    picked: PyReadonlyArray1<'py, u32>,
    simd: Option<&str>,
) -> PyResult<Bound<'py, PyArray2<u64>>> {
    let (rows, level, picked) = (borrow(&rows)?, level(simd)?, picked.as_slice()?);
    nodes(picked, rows.n())?;
    moment_array(py, py.detach(|| kernels::moments(rows, picked, level)))
}

#[pyfunction]
#[pyo3(signature = (rows, simd=None))]
fn all_row_moments<'py>(
    py: Python<'py>,
    rows: PyReadonlyArray2<'py, u64>,
    simd: Option<&str>,
) -> PyResult<Bound<'py, PyArray2<u64>>> {
    let (rows, level) = (borrow(&rows)?, level(simd)?);
    moment_array(py, py.detach(|| kernels::all_moments(rows, level)))
}

fn moment_array(py: Python<'_>, found: Vec<Moments>) -> PyResult<Bound<'_, PyArray2<u64>>> {
    let flat = found
        .iter()
        .flat_map(|m| m.all.into_iter().chain(m.joined).chain(m.joined_degrees));
    PyArray1::from_vec(py, flat.collect()).reshape([found.len(), 8])
}

#[pyfunction]
#[pyo3(signature = (rows, picked, simd=None))]
fn common_neighbours<'py>(
    py: Python<'py>,
    rows: PyReadonlyArray2<'py, u64>,
    picked: PyReadonlyArray1<'py, u32>,
    simd: Option<&str>,
) -> PyResult<Bound<'py, PyArray2<u32>>> {
    let (rows, level, picked) = (borrow(&rows)?, level(simd)?, picked.as_slice()?);
    nodes(picked, rows.n())?;
    let found = py.detach(|| kernels::common_neighbours(rows, picked, level));
    PyArray1::from_vec(py, found).reshape([picked.len(), rows.n()])
}

#[pyfunction]
fn edge_products(
    py: Python<'_>,
    rows: PyReadonlyArray2<'_, u64>,
    f: PyReadonlyArray1<'_, f64>,
) -> PyResult<f64> {
    let (rows, f) = (borrow(&rows)?, f.as_slice()?);
    match f.len() == rows.n() {
        true => Ok(py.detach(|| kernels::edge_products(rows, f))),
        false => Err(PyValueError::new_err("f has not one value per node")),
    }
}

#[pyfunction]
fn group_degrees<'py>(
    py: Python<'py>,
    rows: PyReadonlyArray2<'py, u64>,
    group: PyReadonlyArray1<'py, u32>,
    groups: usize,
) -> PyResult<Bound<'py, PyArray2<u32>>> {
    let (rows, group) = (borrow(&rows)?, group.as_slice()?);
    if group.len() != rows.n() {
        return Err(PyValueError::new_err("group has not one value per node"));
    }
    nodes(group, groups)?;
    let found = py.detach(|| kernels::group_degrees(rows, group, groups));
    PyArray1::from_vec(py, found).reshape([rows.n(), groups])
}

#[pyfunction]
fn induced_rows<'py>(
    py: Python<'py>,
    rows: PyReadonlyArray2<'py, u64>,
    picked: PyReadonlyArray1<'py, u32>,
) -> PyResult<Bound<'py, PyArray2<u64>>> {
    let (rows, picked) = (borrow(&rows)?, picked.as_slice()?);
    nodes(picked, rows.n())?;
    let found = py.detach(|| bitrows::induced(rows, picked));
    to_array(py, picked.len(), found)
}

/// Adds this file's functions to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<OpenBits>()?;
    module.add_function(wrap_pyfunction!(simd_levels, module)?)?;
    module.add_function(wrap_pyfunction!(write_triangle, module)?)?;
    module.add_function(wrap_pyfunction!(rows_from_pairs, module)?)?;
    module.add_function(wrap_pyfunction!(rows_from_triangle, module)?)?;
    module.add_function(wrap_pyfunction!(triangle_of_rows, module)?)?;
    module.add_function(wrap_pyfunction!(pairs_of_rows, module)?)?;
    module.add_function(wrap_pyfunction!(row_degrees, module)?)?;
    module.add_function(wrap_pyfunction!(count_triangles, module)?)?;
    module.add_function(wrap_pyfunction!(count_four_cliques, module)?)?;
    module.add_function(wrap_pyfunction!(row_moments, module)?)?;
    module.add_function(wrap_pyfunction!(all_row_moments, module)?)?;
    module.add_function(wrap_pyfunction!(common_neighbours, module)?)?;
    module.add_function(wrap_pyfunction!(edge_products, module)?)?;
    module.add_function(wrap_pyfunction!(group_degrees, module)?)?;
    module.add_function(wrap_pyfunction!(induced_rows, module)?)
}
