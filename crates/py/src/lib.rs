//! The only crate that knows Python: parse, call, convert.

mod bitrows;
mod channel;

use pyo3::prelude::*;

#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    bitrows::register(module)?;
    channel::register(module)?;
    Ok(())
}
