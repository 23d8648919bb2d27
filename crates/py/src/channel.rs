//! Bindings of `dp::channel`.

use numpy::{PyArray2, PyReadonlyArray2};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use silograph_core::dp::bernoulli::Probability;
use silograph_core::dp::channel;
use silograph_core::graph::bitrows::{into_rows, pair_count};

use crate::bitrows::{to_array, triangle_of_pairs, words_of_bits};

/// A fraction as two little-endian byte strings, of whole 64-bit limbs each.
pub fn probability((num, den): &(Vec<u8>, Vec<u8>)) -> PyResult<Probability> {
    let limbs = |bytes: &[u8]| -> Vec<u64> {
        let (limbs, _) = bytes.as_chunks::<8>();
        limbs.iter().map(|l| u64::from_le_bytes(*l)).collect()
    };
    Probability::new(&limbs(num), &limbs(den))
        .ok_or_else(|| PyValueError::new_err("this is not a probability"))
}

#[pyfunction]
fn draw_rows<'py>(
    py: Python<'py>,
    n: usize,
    pairs: PyReadonlyArray2<'py, u32>,
    p11: (Vec<u8>, Vec<u8>),
    p01: (Vec<u8>, Vec<u8>),
    seed: [u8; 32],
) -> PyResult<Bound<'py, PyArray2<u64>>> {
    let mut bits = triangle_of_pairs(n, &pairs)?;
    let (p11, p01) = (probability(&p11)?, probability(&p01)?);
    let rows = py.detach(|| {
        channel::transmit(&mut bits, pair_count(n), &p11, &p01, seed);
        into_rows(n, bits)
    });
    to_array(py, n, rows)
}

#[pyfunction]
fn perturb<'py>(
    py: Python<'py>,
    bits: &[u8],
    pairs: usize,
    p11: (Vec<u8>, Vec<u8>),
    p01: (Vec<u8>, Vec<u8>),
    seed: [u8; 32],
) -> PyResult<Bound<'py, PyBytes>> {
    let mut words = words_of_bits(bits, pairs)?;
    let (p11, p01) = (probability(&p11)?, probability(&p01)?);
    py.detach(|| channel::transmit(&mut words, pairs, &p11, &p01, seed));
    let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
    Ok(PyBytes::new(py, &bytes))
}

/// Adds this file's functions to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(draw_rows, module)?)?;
    module.add_function(wrap_pyfunction!(perturb, module)?)
}
