//! Bindings of `crypto::elgamal`: whole chunks of bytes in, whole chunks of bytes out.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;
use silograph_core::crypto::elgamal::{self, Error, Member, Place, Run, Variant};

use crate::channel::probability;

pyo3::create_exception!(
    _core,
    ElgamalError,
    PyValueError,
    "A key, proof, cell or share that is refused: code, message, silo, index."
);

type Rational = (Vec<u8>, Vec<u8>);
type Bytes<'py> = PyResult<Bound<'py, PyBytes>>;

fn refused(error: Error) -> PyErr {
    ElgamalError::new_err((error.code(), error.to_string(), error.silo(), error.index()))
}

fn sent<'py>(py: Python<'py>, made: Result<Vec<u8>, Error>) -> Bytes<'py> {
    made.map(|bytes| PyBytes::new(py, &bytes)).map_err(refused)
}

fn variant(name: &str, p: Rational) -> PyResult<Variant> {
    match name {
        "printed" => Ok(Variant::Printed(probability(&p)?)),
        "replace" => Ok(Variant::Replace(probability(&p)?)),
        "blinded" if p.0.iter().all(|&limb| limb == 0) => Ok(Variant::Blinded),
        _ => Err(PyValueError::new_err(
            "not a variant, or noise in blinded's first pass",
        )),
    }
}

fn member([identity, key, proof]: &[PyBackedBytes; 3]) -> Member<'_> {
    Member {
        identity,
        key,
        proof,
    }
}

fn place((chunk, hops): (u64, u16)) -> Place {
    Place { chunk, hops }
}

#[pyclass(frozen, module = "silograph._core")]
struct ElgamalSecretKey(elgamal::SecretKey);

#[pymethods]
impl ElgamalSecretKey {
    #[staticmethod]
    fn from_seed(seed: [u8; 32]) -> Self {
        Self(elgamal::SecretKey::from_seed(&seed))
    }

    fn public_key<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.0.public_key().to_bytes())
    }

    fn prove<'py>(
        &self,
        py: Python<'py>,
        run: (Vec<u8>, Vec<u8>),
        identity: &[u8],
        seed: [u8; 32],
    ) -> Bound<'py, PyBytes> {
        let (id, roster) = run;
        PyBytes::new(py, &self.0.prove(&Run { id, roster }, identity, &seed))
    }
}

#[pyclass(frozen, module = "silograph._core")]
struct ElgamalDecoder(elgamal::Decoder);

#[pymethods]
impl ElgamalDecoder {
    #[new]
    fn new(py: Python<'_>, hops: u16) -> Self {
        Self(py.detach(|| elgamal::Decoder::new(hops)))
    }

    #[getter]
    fn hops(&self) -> u16 {
        self.0.hops()
    }
}

#[pyclass(frozen, module = "silograph._core")]
struct ElgamalJointKey(elgamal::JointKey);

#[pymethods]
impl ElgamalJointKey {
    #[staticmethod]
    fn agree(
        py: Python<'_>,
        run: (Vec<u8>, Vec<u8>),
        members: Vec<[PyBackedBytes; 3]>,
    ) -> PyResult<Self> {
        let (id, roster) = run;
        let members: Vec<Member<'_>> = members.iter().map(member).collect();
        py.detach(|| elgamal::JointKey::agree(&Run { id, roster }, &members))
            .map(Self)
            .map_err(refused)
    }

    #[getter]
    fn silos(&self) -> usize {
        self.0.silos()
    }

    fn public_key<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.0.to_bytes())
    }

    fn binding<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, self.0.binding())
    }

    fn encrypt<'py>(
        &self,
        py: Python<'py>,
        bits: &[u8],
        count: usize,
        chunk: u64,
        seed: [u8; 32],
    ) -> Bytes<'py> {
        sent(
            py,
            py.detach(|| elgamal::encrypt(&self.0, bits, count, chunk, &seed)),
        )
    }

    fn overwrite<'py>(
        &self,
        py: Python<'py>,
        cells: &[u8],
        mask: &[u8],
        values: &[u8],
        at: (u64, u16),
        seed: [u8; 32],
    ) -> Bytes<'py> {
        sent(
            py,
            py.detach(|| elgamal::overwrite(&self.0, cells, mask, values, place(at), &seed)),
        )
    }

    fn flip<'py>(
        &self,
        py: Python<'py>,
        cells: &[u8],
        coins: &[u8],
        at: (u64, u16),
        seed: [u8; 32],
    ) -> Bytes<'py> {
        sent(
            py,
            py.detach(|| elgamal::flip(&self.0, cells, coins, place(at), &seed)),
        )
    }

    #[allow(clippy::too_many_arguments)]
    fn first_hop<'py>(
        &self,
        py: Python<'py>,
        bits: &[u8],
        count: usize,
        name: &str,
        p: Rational,
        chunk: u64,
        seed: [u8; 32],
    ) -> Bytes<'py> {
        let variant = variant(name, p)?;
        let made = py.detach(|| elgamal::first_hop(&self.0, bits, count, &variant, chunk, &seed));
        sent(py, made)
    }

    #[allow(clippy::too_many_arguments)]
    fn hop<'py>(
        &self,
        py: Python<'py>,
        cells: &[u8],
        bits: &[u8],
        name: &str,
        p: Rational,
        at: (u64, u16),
        seed: [u8; 32],
    ) -> Bytes<'py> {
        let variant = variant(name, p)?;
        let made = py.detach(|| elgamal::hop(&self.0, cells, bits, &variant, place(at), &seed));
        sent(py, made)
    }

    fn flip_hop<'py>(
        &self,
        py: Python<'py>,
        cells: &[u8],
        b: Rational,
        at: (u64, u16),
        seed: [u8; 32],
    ) -> Bytes<'py> {
        let b = probability(&b)?;
        let made = py.detach(|| elgamal::flip_hop(&self.0, cells, &b, place(at), &seed));
        sent(py, made)
    }

    fn share<'py>(
        &self,
        py: Python<'py>,
        secret: &ElgamalSecretKey,
        silo: usize,
        cells: &[u8],
        at: (u64, u16),
        seed: [u8; 32],
    ) -> Bytes<'py> {
        let made = py.detach(|| elgamal::share(&self.0, &secret.0, silo, cells, place(at), &seed));
        sent(py, made)
    }

    fn combine<'py>(
        &self,
        py: Python<'py>,
        decoder: &ElgamalDecoder,
        cells: &[u8],
        shares: Vec<PyBackedBytes>,
        chunk: u64,
    ) -> Bytes<'py> {
        let shares: Vec<&[u8]> = shares.iter().map(|bytes| &bytes[..]).collect();
        let made = py.detach(|| elgamal::combine(&self.0, &decoder.0, cells, &shares, chunk));
        sent(py, made)
    }
}

/// Adds this file's classes to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("ElgamalError", module.py().get_type::<ElgamalError>())?;
    module.add_class::<ElgamalSecretKey>()?;
    module.add_class::<ElgamalDecoder>()?;
    module.add_class::<ElgamalJointKey>()
}
