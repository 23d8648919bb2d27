//! Bindings of `crypto::masked` and `crypto::agreement`: what a silo does in sums under masks.

use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;
use silograph_core::crypto::agreement::{RunSecret, SharedSecret};
use silograph_core::crypto::masked::{self, SharedSeed};
use silograph_core::crypto::packed::{PackedError, Ring, Sum};
use silograph_core::dp::bernoulli::Probability;

use crate::bitrows::words_of_bits;
use crate::channel::probability;

fn refuse(error: PackedError) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// A silo's secrets in one run that sums 64-bit numbers. It shows nothing of them.
#[pyclass(frozen, subclass, module = "silograph._core")]
struct WordMasker {
    secret: RunSecret,
}

/// A silo's secrets in one run of the masked union.
#[pyclass(frozen, extends = WordMasker, module = "silograph._core")]
struct Masker {
    ring: Ring,
    coin: Probability,
}

/// The secrets shared with every other silo, and whether their masks are added.
#[pyclass(frozen, module = "silograph._core")]
struct SharedMasks(Vec<(SharedSecret, bool)>);

impl SharedMasks {
    fn seeds(&self, chunk: u64) -> Vec<SharedSeed> {
        let seed = |(s, add): &(SharedSecret, bool)| SharedSeed {
            seed: s.chunk_seed(chunk),
            add: *add,
        };
        self.0.iter().map(seed).collect()
    }
}

#[pymethods]
impl WordMasker {
    #[new]
    fn new(run_secret: [u8; 32]) -> Self {
        Self {
            secret: RunSecret::new(run_secret),
        }
    }

    /// The public run key.
    fn public<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.secret.public())
    }

    /// Agree with each other silo: (its run key, the context of the two, whether to add).
    fn agree(&self, others: Vec<([u8; 32], Vec<u8>, bool)>) -> PyResult<SharedMasks> {
        let agreed = others.iter().enumerate().map(|(i, (key, context, add))| {
            let shared = self.secret.agree(key, context);
            shared
                .map(|s| (s, *add))
                .ok_or_else(|| PyValueError::new_err(i))
        });
        Ok(SharedMasks(agreed.collect::<PyResult<_>>()?))
    }

    /// The masked numbers of one chunk.
    fn contribute_words<'py>(
        &self,
        py: Python<'py>,
        shared: &SharedMasks,
        chunk: u64,
        values: PyReadonlyArray1<'py, i64>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let (values, shared) = (values.as_slice()?, shared.seeds(chunk));
        PyBytes::new_with(py, 8 * values.len(), |wire| {
            py.detach(|| masked::contribute_words(values, wire, &shared));
            Ok(())
        })
    }

    fn __repr__(&self) -> &'static str {
        "Masker(…)"
    }
}

#[pymethods]
impl Masker {
    #[new]
    fn new(
        run_secret: [u8; 32],
        q: u32,
        b: (Vec<u8>, Vec<u8>),
    ) -> PyResult<PyClassInitializer<Self>> {
        let ring = Ring::new(q).map_err(refuse)?;
        let coin = probability(&b)?;
        let base = PyClassInitializer::from(WordMasker::new(run_secret));
        Ok(base.add_subclass(Self { ring, coin }))
    }

    /// The masked contributions of one chunk.
    fn contribute<'py>(
        slf: PyRef<'py, Self>,
        py: Python<'py>,
        shared: &SharedMasks,
        chunk: u64,
        bits: &[u8],
        pairs: usize,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let bits = words_of_bits(bits, pairs)?;
        let (ring, coin, shared) = (slf.ring, &slf.coin, shared.seeds(chunk));
        let secret = &slf.as_super().secret;
        let own = secret.derive(b"silograph/contribution/v2", &chunk.to_le_bytes());
        PyBytes::new_with(py, ring.bytes(pairs), |wire| {
            py.detach(|| masked::contribute(ring, coin, (&bits, pairs), wire, own, &shared));
            Ok(())
        })
    }
}

#[pymethods]
impl SharedMasks {
    fn __repr__(&self) -> &'static str {
        "SharedMasks(…)"
    }
}

/// The sum of one chunk, at the coordinator.
#[pyclass(module = "silograph._core")]
struct MaskedSum(Sum<Content>);

/// A silo's vector, which is the end of a message: kept as it is, not copied.
struct Content {
    message: PyBackedBytes,
    start: usize,
}

impl AsRef<[u8]> for Content {
    fn as_ref(&self) -> &[u8] {
        from(&self.message, self.start)
    }
}

#[pymethods]
impl MaskedSum {
    #[new]
    fn new(q: u32, pairs: usize) -> PyResult<Self> {
        Ok(Self(Sum::new(Ring::new(q).map_err(refuse)?, pairs)))
    }

    /// Add one silo's vector, which begins at `start`; a wrong one changes nothing.
    #[pyo3(signature = (content, start = 0))]
    fn add(&mut self, py: Python<'_>, content: PyBackedBytes, start: usize) -> PyResult<()> {
        let message = content;
        py.detach(|| self.0.add(Content { message, start }))
            .map_err(refuse)
    }

    /// One bit a pair: whether the sum is not zero.
    fn open<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let words = py.detach(|| self.0.nonzero());
        PyBytes::new_with(py, 8 * words.len(), |bytes| {
            let (eights, _) = bytes.as_chunks_mut::<8>();
            for (eight, word) in eights.iter_mut().zip(&words) {
                *eight = word.to_le_bytes();
            }
            Ok(())
        })
    }

    /// The sums themselves, which the coordinator learns, packed.
    fn sums<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.0.packed())
    }
}

/// The running sum of one chunk of numbers, at the coordinator.
#[pyclass(module = "silograph._core")]
struct WordSum(Vec<u64>);

#[pymethods]
impl WordSum {
    #[new]
    fn new(count: usize) -> Self {
        Self(vec![0; count])
    }

    /// Add one silo's masked numbers, which begin at `start`; a wrong vector changes nothing.
    #[pyo3(signature = (content, start = 0))]
    fn add(&mut self, content: &[u8], start: usize) -> PyResult<()> {
        let vector = from(content, start);
        match masked::accumulate_words(&mut self.0, vector) {
            true => Ok(()),
            false => Err(PyValueError::new_err(format!(
                "{} bytes were due, not {}",
                8 * self.0.len(),
                vector.len()
            ))),
        }
    }

    /// The sums, as numbers with a sign.
    fn sums<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<i64>> {
        let signed: Vec<i64> = self.0.iter().map(|&sum| sum as i64).collect();
        signed.into_pyarray(py)
    }
}

/// What a message says: the end of its content, which is not copied.
fn from(content: &[u8], start: usize) -> &[u8] {
    content.get(start..).unwrap_or_default()
}

/// Adds this file's names to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<WordMasker>()?;
    module.add_class::<WordSum>()?;
    module.add_class::<Masker>()?;
    module.add_class::<SharedMasks>()?;
    module.add_class::<MaskedSum>()
}
