//! Bindings of `crypto::agreement`.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use silograph_core::crypto::agreement;

/// A party's secret of one run. It shows nothing of itself.
#[pyclass(frozen, module = "silograph._core")]
struct RunSecret(agreement::RunSecret);

/// What two parties share in one run. It shows nothing of itself.
#[pyclass(frozen, module = "silograph._core")]
struct SharedSecret(agreement::SharedSecret);

#[pymethods]
impl RunSecret {
    #[new]
    fn new(secret: [u8; 32]) -> Self {
        Self(agreement::RunSecret::new(secret))
    }

    /// The public run key.
    fn public<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.0.public())
    }

    fn derive<'py>(&self, py: Python<'py>, label: &[u8], context: &[u8]) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.0.derive(label, context))
    }

    fn agree(&self, key: [u8; 32], context: &[u8]) -> PyResult<SharedSecret> {
        let shared = self.0.agree(&key, context);
        shared
            .map(SharedSecret)
            .ok_or_else(|| PyValueError::new_err("a weak run key"))
    }

    fn __repr__(&self) -> &'static str {
        "RunSecret(…)"
    }
}

#[pymethods]
impl SharedSecret {
    fn derive<'py>(&self, py: Python<'py>, label: &[u8], context: &[u8]) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.0.derive(label, context))
    }

    fn __repr__(&self) -> &'static str {
        "SharedSecret(…)"
    }
}

/// Adds this file's names to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<RunSecret>()?;
    module.add_class::<SharedSecret>()
}
