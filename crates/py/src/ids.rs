//! Tables of node identifiers.

use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use silograph_core::graph::ids::{self, Case, NONE, Normal};

pyo3::create_exception!(
    _core,
    IdError,
    PyValueError,
    "Identifiers that make no table."
);

/// The first integer that a table keeps as text.
const MOST_INT: u64 = 10_u64.pow(18);

/// `case` is "lower", "upper" or nothing.
pub fn normal(strip: bool, case: Option<&str>) -> PyResult<Normal> {
    let case = match case {
        None => None,
        Some("lower") => Some(Case::Lower),
        Some("upper") => Some(Case::Upper),
        Some(_) => return Err(PyValueError::new_err("case is 'lower', 'upper' or None")),
    };
    Ok(Normal { strip, case })
}

/// Ordered identifiers, and the way back from an identifier to its position.
#[pyclass(frozen, module = "silograph._core")]
pub struct IdTable(pub ids::IdTable);

#[pymethods]
impl IdTable {
    #[staticmethod]
    fn range(n: u32, strip: bool, case: Option<&str>) -> PyResult<Self> {
        Ok(Self(ids::IdTable::range(n, normal(strip, case)?)))
    }

    #[staticmethod]
    fn from_texts(
        py: Python<'_>,
        texts: Vec<String>,
        strip: bool,
        case: Option<&str>,
    ) -> PyResult<Self> {
        let normal = normal(strip, case)?;
        py.detach(|| ids::IdTable::from_texts(&texts, normal))
            .map(Self)
            .map_err(|fault| IdError::new_err(fault.parts()))
    }

    /// A table of ascending integers, which are their own normal forms.
    #[staticmethod]
    fn from_ints(
        values: PyReadonlyArray1<'_, u64>,
        strip: bool,
        case: Option<&str>,
    ) -> PyResult<Self> {
        let (values, normal) = (values.as_slice()?, normal(strip, case)?);
        if !values.is_sorted_by(|a, b| a < b) || values.last().is_some_and(|&id| id >= MOST_INT) {
            return Err(PyValueError::new_err("integers ascend, below 10^18"));
        }
        Ok(Self(ids::IdTable::from_ints(values.to_vec(), normal)))
    }

    fn __len__(&self) -> usize {
        self.0.len()
    }

    fn get(&self, text: &str) -> Option<u32> {
        Some(self.0.get(text)).filter(|&position| position != NONE)
    }

    fn texts(&self, start: usize, stop: usize) -> Vec<String> {
        let stop = stop.min(self.0.len());
        (start..stop)
            .map(|position| self.0.id(position).into_owned())
            .collect()
    }

    fn encode<'py>(&self, py: Python<'py>, start: usize, stop: usize) -> Vec<u8> {
        py.detach(|| self.0.encode(start, stop.min(self.0.len())))
    }

    /// Positions of texts; 2^32 − 1 marks one that is not there.
    fn find_texts<'py>(&self, py: Python<'py>, texts: Vec<String>) -> Bound<'py, PyArray1<u32>> {
        let found = py.detach(|| texts.iter().map(|text| self.0.get(text)).collect());
        PyArray1::from_vec(py, found)
    }

    /// Positions of integers; 2^32 − 1 marks one that is not there.
    fn find_ints<'py>(
        &self,
        py: Python<'py>,
        values: PyReadonlyArray1<'py, u64>,
    ) -> PyResult<Bound<'py, PyArray1<u32>>> {
        let values = values.as_slice()?;
        let found = py.detach(|| values.iter().map(|&value| self.0.get_int(value)).collect());
        Ok(PyArray1::from_vec(py, found))
    }
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("IdError", module.py().get_type::<IdError>())?;
    module.add_class::<IdTable>()
}
