//! The only crate that knows Python: parse, call, convert.

mod bitrows;
mod channel;
mod edgelist;
mod elgamal;
mod generate;
mod identity;
mod ids;
mod laplace;
mod masked;
mod sparse;
mod split;

use pyo3::prelude::*;

#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    bitrows::register(module)?;
    channel::register(module)?;
    edgelist::register(module)?;
    elgamal::register(module)?;
    generate::register(module)?;
    identity::register(module)?;
    ids::register(module)?;
    laplace::register(module)?;
    masked::register(module)?;
    sparse::register(module)?;
    split::register(module)
}
