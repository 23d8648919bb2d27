//! Bindings of `crypto::aead`.

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use silograph_core::crypto::aead;

/// A key that encrypts payloads. It shows nothing of itself.
#[pyclass(frozen, module = "silograph._core")]
struct AeadKey(aead::AeadKey);

#[pymethods]
impl AeadKey {
    #[new]
    fn new(key: [u8; 32]) -> Self {
        Self(aead::AeadKey::new(&key))
    }

    fn seal<'py>(
        &self,
        py: Python<'py>,
        nonce: [u8; 12],
        header: &[u8],
        message: &[u8],
    ) -> Bound<'py, PyBytes> {
        let sealed = py.detach(|| self.0.seal(nonce, header, message));
        PyBytes::new(py, &sealed)
    }

    /// None where key, nonce, header or content are not those of the sender.
    fn open<'py>(
        &self,
        py: Python<'py>,
        nonce: [u8; 12],
        header: &[u8],
        sealed: &[u8],
    ) -> Option<Bound<'py, PyBytes>> {
        let opened = py.detach(|| self.0.open(nonce, header, sealed));
        opened.map(|message| PyBytes::new(py, &message))
    }

    fn __repr__(&self) -> &'static str {
        "AeadKey(…)"
    }
}

/// Adds this file's names to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<AeadKey>()
}
