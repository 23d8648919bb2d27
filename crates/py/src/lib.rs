//! The only crate that knows Python: parse, call, convert.

use pyo3::prelude::*;

mod edgelist;
mod generate;
mod ids;
mod sparse;
mod split;

#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    edgelist::register(module)?;
    generate::register(module)?;
    ids::register(module)?;
    sparse::register(module)?;
    split::register(module)?;
    Ok(())
}
