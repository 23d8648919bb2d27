//! Bindings of `crypto::identity`.

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use silograph_core::crypto::identity;

/// A long-term signing key. It shows nothing of itself.
#[pyclass(frozen, module = "silograph._core")]
struct Identity(identity::Identity);

#[pymethods]
impl Identity {
    #[new]
    fn new(secret: [u8; 32]) -> Self {
        Self(identity::Identity::from_secret(&secret))
    }

    fn public<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.0.public())
    }

    fn sign<'py>(&self, py: Python<'py>, message: &[u8]) -> Bound<'py, PyBytes> {
        let signature = py.detach(|| self.0.sign(message));
        PyBytes::new(py, &signature)
    }

    fn __repr__(&self) -> &'static str {
        "Identity(…)"
    }
}

#[pyfunction]
fn is_public_key(public: [u8; 32]) -> bool {
    identity::is_public_key(&public)
}

#[pyfunction]
fn verify_signature(py: Python<'_>, public: [u8; 32], message: &[u8], signature: [u8; 64]) -> bool {
    py.detach(|| identity::verify(&public, message, &signature))
}

/// The digest of a message's payload, which begins at `start`.
#[pyfunction]
fn payload_digest<'py>(py: Python<'py>, content: &[u8], start: usize) -> Bound<'py, PyBytes> {
    let payload = content.get(start..).unwrap_or_default();
    let digest = py.detach(|| identity::payload_digest(payload));
    PyBytes::new(py, &digest)
}

/// Adds this file's names to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Identity>()?;
    module.add_function(wrap_pyfunction!(is_public_key, module)?)?;
    module.add_function(wrap_pyfunction!(payload_digest, module)?)?;
    module.add_function(wrap_pyfunction!(verify_signature, module)?)
}
