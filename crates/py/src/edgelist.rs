//! Text edge lists.

use std::path::PathBuf;

use numpy::PyArray1;
use pyo3::exceptions::{PyMemoryError, PyValueError};
use pyo3::prelude::*;
use silograph_core::graph::edgelist::{self, Tally};
use silograph_core::graph::lines::{Fault, Layout};
use silograph_core::graph::text::{OpenError, Text};
use silograph_core::graph::times::{self, Window};

use super::ids::{IdTable, normal};
use super::sparse::written;

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

type Counts = (usize, usize, usize, usize, usize);
/// A window crosses as (field, since, until, dates).
type Timed = Option<(usize, i64, i64, bool)>;
type Shape = (Option<u8>, usize, usize, usize, bool, Timed);
type Pairs<'py> = Bound<'py, PyArray1<u64>>;

/// The text of an edge list.
#[pyclass(frozen, module = "silograph._core")]
pub struct EdgeText(edgelist::EdgeText);

impl EdgeText {
    fn error(&self, fault: &Fault) -> PyErr {
        let (code, text, expected, found) = fault.kind.parts();
        let line = self.0.text().line_number(fault.offset).unwrap_or_default();
        LineError::new_err((code, line, text.to_owned(), expected, found))
    }
}

/// Layouts cross as (delimiter, fields, first, second, header, window).
fn layout((delimiter, fields, first, second, header, timed): Shape) -> Layout {
    Layout {
        delimiter,
        fields,
        first,
        second,
        header,
        window: timed.map(|(field, since, until, dates)| Window {
            field,
            since,
            until,
            dates,
        }),
    }
}

fn counts(tally: &Tally) -> Counts {
    (
        tally.rows,
        tally.comments,
        tally.loops,
        tally.repeats,
        tally.outside,
    )
}

#[pymethods]
impl EdgeText {
    #[staticmethod]
    fn open(py: Python<'_>, path: PathBuf, limit: u64) -> PyResult<Self> {
        py.detach(|| Text::open(&path, limit))
            .map(|text| Self(edgelist::EdgeText::new(text)))
            .map_err(|error| match error {
                OpenError::Io(error) => error.into(),
                OpenError::Large(_) => PyMemoryError::new_err(error.to_string()),
                OpenError::Gzip(error) => GzipError::new_err(error.to_string()),
            })
    }

    #[getter]
    fn gzip(&self) -> bool {
        self.0.text().gzip()
    }

    #[getter]
    fn magic(&self) -> Vec<u8> {
        self.0.text().magic().to_vec()
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

    fn column(&self, py: Python<'_>, shape: Shape) -> PyResult<Vec<String>> {
        py.detach(|| self.0.column(&layout(shape)))
            .map_err(|fault| self.error(&fault))
    }

    fn keys<'py>(
        &self,
        py: Python<'py>,
        table: &IdTable,
        shape: Shape,
    ) -> PyResult<(Pairs<'py>, Counts)> {
        let read = || self.0.keys(&table.0, &layout(shape));
        let (edges, tally) = py.detach(read).map_err(|fault| self.error(&fault))?;
        let (pairs, ()) = written(py, edges.count(), |pairs| edges.write(pairs))?;
        Ok((pairs, counts(&tally)))
    }

    fn graph<'py>(
        &self,
        py: Python<'py>,
        strip: bool,
        case: Option<&str>,
        shape: Shape,
    ) -> PyResult<(IdTable, Pairs<'py>, Counts)> {
        let normal = normal(strip, case)?;
        let read = || self.0.graph(normal, &layout(shape));
        let (found, tally) = py.detach(read).map_err(|fault| self.error(&fault))?;
        let (pairs, table) = written(py, found.count(), |pairs| found.write(pairs))?;
        Ok((IdTable(table), pairs, counts(&tally)))
    }
}

/// The microseconds since 1970 of a time as text, or None if it is not one.
#[pyfunction]
fn instant(text: &str, dates: bool) -> Option<i64> {
    times::instant(text, dates)
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("LineError", module.py().get_type::<LineError>())?;
    module.add("GzipError", module.py().get_type::<GzipError>())?;
    module.add_function(wrap_pyfunction!(instant, module)?)?;
    module.add_class::<EdgeText>()
}
