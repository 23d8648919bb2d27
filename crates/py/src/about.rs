//! How this extension was built.

use pyo3::prelude::*;

/// The profile, the commit where whoever built it named one in `SILOGRAPH_COMMIT`, and whether the
/// curve's AVX-512 code is compiled in (`.cargo/config.toml`).
///
/// Nothing else of the build goes in: the same source and the same name give the same bytes.
#[pyfunction]
fn build() -> (&'static str, Option<&'static str>, bool) {
    let profile = if cfg!(debug_assertions) {
        "debug"
    } else {
        "release"
    };
    let wide = cfg!(curve25519_dalek_backend = "avx512");
    (profile, option_env!("SILOGRAPH_COMMIT"), wide)
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(build, module)?)
}
