//! Text edge lists.

use std::path::PathBuf;

use numpy::PyArray1;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use silograph_core::graph::edgelist::{self, OpenError, Tally};
use silograph_core::graph::lines::{Fault, Layout};
use silograph_core::graph::sparse::as_pairs;

use super::ids::{IdTable, normal};

pyo3::create_exception!(
    _core,
    LineError,
    PyValueError,
    "A line that cannot be read."
);
pyo3::create_exception!(
    _core,
    GzipError,
    PyValueError,
    "Damaged or truncated gzip data."
);

type Counts = (usize, usize, usize, usize);
type Pairs<'py> = Bound<'py, PyArray1<u64>>;

/// The text of an edge list, in memory.
#[pyclass(frozen, module = "silograph._core")]
pub struct EdgeText(edgelist::EdgeText);

impl EdgeText {
    fn error(&self, fault: &Fault) -> PyErr {
        let (code, text, expected, found) = fault.kind.parts();
        let line = self.0.line_number(fault.offset);
        LineError::new_err((code, line, text.to_owned(), expected, found))
    }
}

/// Layouts cross as (delimiter, fields, first, second, header).
fn layout(
    (delimiter, fields, first, second, header): (Option<u8>, usize, usize, usize, bool),
) -> Layout {
    Layout {
        delimiter,
        fields,
        first,
        second,
        header,
    }
}

fn counts(tally: &Tally) -> Counts {
    (tally.rows, tally.comments, tally.loops, tally.repeats)
}

#[pymethods]
impl EdgeText {
    #[staticmethod]
    fn open(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        py.detach(|| edgelist::EdgeText::open(&path))
            .map(Self)
            .map_err(|error| match error {
                OpenError::Io(error) => error.into(),
                OpenError::Gzip(error) => GzipError::new_err(error.to_string()),
            })
    }

    #[getter]
    fn gzip(&self) -> bool {
        self.0.gzip
    }

    #[getter]
    fn magic(&self) -> Vec<u8> {
        self.0.magic().to_vec()
    }

    fn head(&self, delimiter: Option<u8>, limit: usize) -> PyResult<Vec<Vec<String>>> {
        self.0
            .head(delimiter, limit)
            .map_err(|fault| self.error(&fault))
    }

    fn lines(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        py.detach(|| self.0.lines())
            .map_err(|fault| self.error(&fault))
    }

    fn column(
        &self,
        py: Python<'_>,
        shape: (Option<u8>, usize, usize, usize, bool),
    ) -> PyResult<Vec<String>> {
        py.detach(|| self.0.column(&layout(shape)))
            .map_err(|fault| self.error(&fault))
    }

    fn keys<'py>(
        &self,
        py: Python<'py>,
        table: &IdTable,
        shape: (Option<u8>, usize, usize, usize, bool),
    ) -> PyResult<(Pairs<'py>, Counts)> {
        let read = || {
            self.0
                .keys(&table.0, &layout(shape))
                .map(|(keys, t)| (as_pairs(keys), t))
        };
        let (pairs, tally) = py.detach(read).map_err(|fault| self.error(&fault))?;
        Ok((PyArray1::from_vec(py, pairs), counts(&tally)))
    }

    fn graph<'py>(
        &self,
        py: Python<'py>,
        strip: bool,
        case: Option<&str>,
        shape: (Option<u8>, usize, usize, usize, bool),
    ) -> PyResult<(IdTable, Pairs<'py>, Counts)> {
        let normal = normal(strip, case)?;
        let read = || {
            self.0
                .graph(normal, &layout(shape))
                .map(|(i, keys, t)| (i, as_pairs(keys), t))
        };
        let (table, pairs, tally) = py.detach(read).map_err(|fault| self.error(&fault))?;
        Ok((
            IdTable(table),
            PyArray1::from_vec(py, pairs),
            counts(&tally),
        ))
    }
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("LineError", module.py().get_type::<LineError>())?;
    module.add("GzipError", module.py().get_type::<GzipError>())?;
    module.add_class::<EdgeText>()
}
