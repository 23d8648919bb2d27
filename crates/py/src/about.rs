//! How this extension was built.

use pyo3::prelude::*;

/// The profile, and the commit where whoever built it named one in `SILOGRAPH_COMMIT`.
///
/// Nothing else of the build goes in: the same source and the same name give the same bytes.
#[pyfunction]
fn build() -> (&'static str, Option<&'static str>) {
    let profile = if cfg!(debug_assertions) {
        "debug"
    } else {
        "release"
    };
    (profile, option_env!("SILOGRAPH_COMMIT"))
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(build, module)?)
}
