//! The only crate that knows Python: parse, call, convert.

mod about;
mod aead;
mod agreement;
mod bitrows;
mod channel;
mod committee;
mod edgelist;
mod elgamal;
mod fold;
mod generate;
mod identity;
mod ids;
mod laplace;
mod local;
mod masked;
mod numbers;
mod sparse;
mod split;
mod symmetric;

use pyo3::prelude::*;

#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    about::register(module)?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    aead::register(module)?;
    agreement::register(module)?;
    bitrows::register(module)?;
    channel::register(module)?;
    committee::register(module)?;
    edgelist::register(module)?;
    elgamal::register(module)?;
    fold::register(module)?;
    generate::register(module)?;
    identity::register(module)?;
    ids::register(module)?;
    laplace::register(module)?;
    local::register(module)?;
    masked::register(module)?;
    numbers::register(module)?;
    sparse::register(module)?;
    split::register(module)?;
    symmetric::register(module)
}
