//! Bindings of `shares`: what a silo does with what it was dealt and what is opened.

use std::ops::Range;

use numpy::{PyArray1, PyReadonlyArray1, PyReadwriteArray1};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use silograph_core::shares::stream::{Label, Seed};
use silograph_core::shares::{chunk, dealt, squares, triangles, zeros};
use silograph_core::symmetric::matrix::{Triangle, add_to_nodes, pair_count, row_start};
use silograph_core::symmetric::square::rows_of_square;
use silograph_core::words;

use crate::bitrows::{level, words_of_bits};

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

/// Exactly so many words.
fn words_of(bytes: &[u8], count: usize) -> PyResult<Vec<u64>> {
    words::read(bytes, count).ok_or_else(|| {
        let message = format!("expected {count} words, got {} bytes", bytes.len());
        PyValueError::new_err(message)
    })
}

/// What one silo was dealt. It shows nothing of it.
#[pyclass(frozen, module = "silograph._core")]
struct Dealt(dealt::Dealt);

impl Dealt {
    /// A correction of so many words, where and only where this silo is the one that has them.
    fn correction(&self, bytes: Option<&[u8]>, count: usize) -> PyResult<Option<Vec<u64>>> {
        if bytes.is_some() != self.0.corrected() {
            return Err(PyValueError::new_err("the last silo alone has corrections"));
        }
        bytes.map(|bytes| words_of(bytes, count)).transpose()
    }
}

#[pymethods]
impl Dealt {
    #[new]
    fn new(seed: [u8; 32], place: usize, silos: usize) -> PyResult<Self> {
        match place < silos && silos >= 2 {
            true => Ok(Self(dealt::Dealt::new(Seed::new(seed), place, silos))),
            false => Err(PyValueError::new_err("there is no such silo")),
        }
    }

    /// This silo's share of what is opened so that numbers can be squared.
    fn open_squares<'py>(
        &self,
        py: Python<'py>,
        numbers: PyReadonlyArray1<'py, u64>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let numbers = numbers.as_slice()?;
        let masks = self.0.drawn(Label::Node, 0..numbers.len());
        bytes_of_words(py, &squares::masked(numbers, &masks))
    }

    /// Its share of the sum of squares, from what all opened.
    fn squares(
        &self,
        opened: PyReadonlyArray1<'_, u64>,
        correction: Option<&[u8]>,
    ) -> PyResult<u64> {
        let (opened, at) = (opened.as_slice()?, 0..opened.as_array().len());
        let own = self.correction(correction, at.len())?;
        let masks = self.0.drawn(Label::Node, at.clone());
        let shares = self
            .0
            .corrected_words(Label::NodeSquare, at, own.as_deref());
        Ok(squares::share(opened, &masks, &shares, self.0.first()))
    }

    /// Its share of tr(X³), from its sums over all pairs.
    fn cube(&self, contracted: u64, inner: u64, correction: Option<&[u8]>) -> PyResult<u64> {
        let own = self.correction(correction, 1)?;
        let trace = self.0.corrected_words(Label::Trace, 0..1, own.as_deref());
        Ok(triangles::share(contracted, inner, trace[0]))
    }

    fn __repr__(&self) -> &'static str {
        "Dealt(…)"
    }
}

/// One chunk of pairs at one silo. It shows nothing of it.
#[pyclass(module = "silograph._core")]
struct SharedChunk(chunk::Chunk);

#[pymethods]
impl SharedChunk {
    #[new]
    fn new(dealt: &Dealt, start: usize, pairs: usize, bits: &[u8]) -> PyResult<Self> {
        if !start.is_multiple_of(64) {
            return Err(PyValueError::new_err("chunks begin with a whole word"));
        }
        let bits = words_of_bits(bits, pairs)?;
        Ok(Self(chunk::Chunk::new(
            &dealt.0,
            start..start + pairs,
            &bits,
        )))
    }

    /// This silo's share of what the present step opens.
    fn open<'py>(&mut self, py: Python<'py>, dealt: &Dealt) -> PyResult<Bound<'py, PyBytes>> {
        let words = py.detach(|| self.0.open(&dealt.0));
        bytes_of_words(py, &words)
    }

    /// Take another silo's share; a wrong one changes nothing.
    fn take(&mut self, other: &[u8]) -> PyResult<()> {
        let words = words_of(other, self.0.opening_words())?;
        self.0.take(&words);
        Ok(())
    }

    /// End the present step, when all shares are there.
    fn close(&mut self, py: Python<'_>, dealt: &Dealt, correction: Option<&[u8]>) -> PyResult<()> {
        let count = chunk::Chunk::correction_words(dealt.0.silos(), self.0.pairs().len());
        let own = dealt.correction(correction, count)?;
        py.detach(|| self.0.close(&dealt.0, own.as_deref()));
        Ok(())
    }

    /// Add this silo's shares of the union to the sums of both nodes of each pair.
    fn add_to_nodes(&self, mut sums: PyReadwriteArray1<'_, u64>) -> PyResult<()> {
        let sums = sums.as_slice_mut()?;
        if self.0.pairs().end > pair_count(sums.len()) {
            return Err(PyValueError::new_err("there are fewer pairs than that"));
        }
        add_to_nodes(self.0.pairs(), self.0.shares(), sums);
        Ok(())
    }

    /// The sum of this silo's shares of the union.
    fn total(&self) -> u64 {
        self.0
            .shares()
            .iter()
            .fold(0, |sum, x| sum.wrapping_add(*x))
    }

    /// This silo's share of D = X − R.
    fn difference<'py>(&self, py: Python<'py>, dealt: &Dealt) -> PyResult<Bound<'py, PyBytes>> {
        let words = py.detach(|| {
            let mut shares = self.0.shares().to_vec();
            let masks = dealt.0.drawn(Label::Matrix, self.0.pairs());
            triangles::difference(&mut shares, &masks);
            shares
        });
        bytes_of_words(py, &words)
    }

    fn __repr__(&self) -> &'static str {
        "SharedChunk(…)"
    }
}

/// The matrix D that the silos open to each other. It shows nothing of it.
#[pyclass(module = "silograph._core")]
struct OpenedMatrix {
    n: usize,
    words: Vec<u64>,
}

impl OpenedMatrix {
    fn pairs(&self, start: usize, count: usize) -> PyResult<Range<usize>> {
        let end = start
            .checked_add(count)
            .filter(|end| *end <= self.words.len());
        let end = end.ok_or_else(|| PyValueError::new_err("there are fewer pairs than that"))?;
        Ok(start..end)
    }
}

#[pymethods]
impl OpenedMatrix {
    #[new]
    fn new(n: usize) -> Self {
        let words = vec![0; pair_count(n)];
        Self { n, words }
    }

    /// Add one silo's share of some pairs; a wrong one changes nothing.
    fn add(&mut self, py: Python<'_>, start: usize, count: usize, share: &[u8]) -> PyResult<()> {
        let pairs = self.pairs(start, count)?;
        let (words, rest) = share.as_chunks::<8>();
        if words.len() != count || !rest.is_empty() {
            return Err(PyValueError::new_err("there is not one word per pair"));
        }
        py.detach(|| {
            for (sum, word) in self.words[pairs].iter_mut().zip(words) {
                *sum = sum.wrapping_add(u64::from_le_bytes(*word));
            }
        });
        Ok(())
    }

    /// Σ D·[R²] over some pairs, [R²] the silo's share.
    fn inner(
        &self,
        py: Python<'_>,
        dealt: &Dealt,
        start: usize,
        count: usize,
        correction: Option<&[u8]>,
    ) -> PyResult<u64> {
        let own = dealt.correction(correction, count)?;
        let pairs = self.pairs(start, count)?;
        Ok(py.detach(|| {
            let label = Label::MatrixSquare;
            let squares = dealt
                .0
                .corrected_words(label, pairs.clone(), own.as_deref());
            triangles::inner(&self.words[pairs], &squares)
        }))
    }

    /// Σ D²·(3[R] + D for the first silo) over the pairs of some rows.
    fn contract(&self, py: Python<'_>, dealt: &Dealt, first: usize, end: usize) -> PyResult<u64> {
        if first > end || end > self.n {
            return Err(PyValueError::new_err("there are fewer rows than that"));
        }
        Ok(py.detach(|| {
            let pairs = row_start(self.n, first)..row_start(self.n, end);
            let mut weights = dealt.0.drawn(Label::Matrix, pairs.clone());
            triangles::weights(&mut weights, &self.words[pairs], dealt.0.first());
            let matrix = Triangle::new(self.n, &self.words).expect("one word per pair");
            triangles::contract(matrix, first..end, &weights)
        }))
    }

    fn __repr__(&self) -> String {
        format!("OpenedMatrix({})", self.n)
    }
}

/// Add this silo's share of zero to words: (seed, whether to add) for each other silo.
#[pyfunction]
fn add_zero_share(
    seeds: Vec<([u8; 32], bool)>,
    mut words: PyReadwriteArray1<'_, u64>,
) -> PyResult<()> {
    let seeds: Vec<(Seed, bool)> = seeds
        .into_iter()
        .map(|(s, add)| (Seed::new(s), add))
        .collect();
    zeros::add(&seeds, words.as_slice_mut()?);
    Ok(())
}

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
    module.add_class::<Dealt>()?;
    module.add_class::<SharedChunk>()?;
    module.add_class::<OpenedMatrix>()?;
    module.add_function(wrap_pyfunction!(add_zero_share, module)?)?;
    module.add_function(wrap_pyfunction!(symmetric_square, module)?)
}
