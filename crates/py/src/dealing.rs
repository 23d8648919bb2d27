//! Bindings of `shares::dealing`: what the dealer does.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use silograph_core::shares::dealing;
use silograph_core::shares::stream::Seed;

use crate::shares::bytes_of_words;

/// The seeds of all silos of one run. It shows nothing of them.
#[pyclass(frozen, module = "silograph._core")]
struct Dealing(dealing::Dealing);

/// The random matrix of a run, with the band of its square that was made last.
#[pyclass(module = "silograph._core")]
struct DealtMatrix(dealing::DealtMatrix);

#[pymethods]
impl Dealing {
    #[new]
    fn new(seeds: Vec<[u8; 32]>) -> PyResult<Self> {
        if seeds.len() < 2 {
            return Err(PyValueError::new_err("there must be two silos"));
        }
        let seeds = seeds.into_iter().map(Seed::new).collect();
        Ok(Self(dealing::Dealing::new(seeds)))
    }

    fn chunk<'py>(&self, py: Python<'py>, start: usize, pairs: usize) -> PyResult<Made<'py>> {
        let words = py.detach(|| self.0.chunk(start..start + pairs));
        bytes_of_words(py, &words)
    }

    fn squares<'py>(&self, py: Python<'py>, n: usize) -> PyResult<Made<'py>> {
        bytes_of_words(py, &self.0.squares(n))
    }

    fn matrix(&self, py: Python<'_>, n: usize) -> DealtMatrix {
        DealtMatrix(py.detach(|| self.0.matrix(n)))
    }

    fn matrix_squares<'py>(
        &self,
        py: Python<'py>,
        matrix: &mut DealtMatrix,
        start: usize,
        pairs: usize,
    ) -> PyResult<Made<'py>> {
        let matrix = &mut matrix.0;
        let words = py.detach(|| self.0.matrix_squares(matrix, start..start + pairs));
        bytes_of_words(py, &words)
    }

    fn trace<'py>(&self, py: Python<'py>, matrix: &DealtMatrix) -> PyResult<Made<'py>> {
        let trace = self.0.trace(&matrix.0);
        let trace = trace.ok_or_else(|| PyValueError::new_err("the square is not whole"))?;
        bytes_of_words(py, &[trace])
    }

    fn __repr__(&self) -> &'static str {
        "Dealing(…)"
    }
}

type Made<'py> = Bound<'py, PyBytes>;

#[pymethods]
impl DealtMatrix {
    fn __repr__(&self) -> &'static str {
        "DealtMatrix(…)"
    }
}

/// Adds this file's names to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Dealing>()?;
    module.add_class::<DealtMatrix>()
}
