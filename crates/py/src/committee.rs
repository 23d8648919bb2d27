//! Bindings of `committee`: what a member, a silo outside the committee and the coordinator do.

use pyo3::create_exception;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use silograph_core::committee::{
    self, Circuit, Fault, MEMBERS, Owner, Route, Seeds, vector_component,
};

use crate::bitrows::{bytes_of_words, words_of_bits};
use crate::numbers::CommitteeNumbers;

create_exception!(
    silograph._core,
    MismatchError,
    PyValueError,
    "Arguments: the member that sent a message, the member whose hash does not match it."
);

pub fn refuse(fault: Fault) -> PyErr {
    match fault {
        Fault::Mismatch(sender, hasher) => MismatchError::new_err((sender, hasher)),
        Fault::Size => PyValueError::new_err(fault.to_string()),
    }
}

fn owner(member: Option<usize>) -> Owner {
    member.map_or(Owner::Outside, Owner::Member)
}

pub fn place(member: usize) -> PyResult<usize> {
    match member < MEMBERS {
        true => Ok(member),
        false => Err(PyValueError::new_err("a committee has four members")),
    }
}

/// The gates of a union and of a coin.
#[pyclass(frozen, module = "silograph._core")]
pub struct CommitteeCircuit(pub Circuit);

#[pymethods]
impl CommitteeCircuit {
    /// The member that owns each input, or `None`; the digits of the coin, lowest first.
    #[new]
    fn new(owners: Vec<Option<usize>>, coin: Vec<bool>) -> PyResult<Self> {
        for member in owners.iter().flatten() {
            place(*member)?;
        }
        Circuit::new(owners.into_iter().map(owner).collect(), coin)
            .map(Self)
            .ok_or_else(|| PyValueError::new_err("no silo, or the coin is not odd"))
    }

    /// The union as numbers of so many bytes.
    #[staticmethod]
    fn counting(owners: Vec<Option<usize>>, width: usize) -> PyResult<Self> {
        for member in owners.iter().flatten() {
            place(*member)?;
        }
        Circuit::counting(owners.into_iter().map(owner).collect(), width)
            .map(Self)
            .ok_or_else(|| PyValueError::new_err("no silo, or no such numbers"))
    }

    /// Noise: so many numbers of so many bytes, from the coins of their digits, lowest place first.
    #[staticmethod]
    fn noise(coins: Vec<Vec<bool>>, count: usize, width: usize) -> PyResult<Self> {
        Circuit::noise(coins, count, width)
            .map(Self)
            .ok_or_else(|| PyValueError::new_err("there are no such digits"))
    }

    #[getter]
    fn layers(&self) -> usize {
        self.0.layers()
    }

    #[getter]
    fn gates(&self) -> usize {
        self.0.gates(self.0.layers()).start
    }
}

/// The seeds that one party has. It shows nothing of them.
#[pyclass(frozen, module = "silograph._core")]
pub struct CommitteeSeeds(pub Seeds);

#[pymethods]
impl CommitteeSeeds {
    #[new]
    fn new(seeds: [Option<[u8; 32]>; MEMBERS], view: [u8; 32]) -> Self {
        Self(Seeds::new(seeds, view))
    }

    /// The component of a silo's bits that travels, where all the others come from these seeds.
    fn hide<'py>(
        &self,
        py: Python<'py>,
        silo: usize,
        chunk: u64,
        bits: &[u8],
        pairs: usize,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let bits = words_of_bits(bits, pairs)?;
        let vector = py.detach(|| self.0.hide(silo, chunk, &bits));
        bytes_of_words(py, &vector)
    }

    fn __repr__(&self) -> &'static str {
        "CommitteeSeeds(…)"
    }
}

/// One chunk of pairs at one member. It shows nothing of it.
#[pyclass(module = "silograph._core")]
struct CommitteeChunk {
    circuit: Py<CommitteeCircuit>,
    /// `None` once it was opened.
    chunk: Option<committee::Chunk>,
    place: usize,
    pairs: usize,
}

impl CommitteeChunk {
    fn chunk(&mut self) -> PyResult<&mut committee::Chunk> {
        self.chunk
            .as_mut()
            .ok_or_else(|| PyValueError::new_err("the chunk was opened"))
    }

    fn silo(&self, silo: usize) -> PyResult<usize> {
        match silo < self.circuit.get().0.owners().len() {
            true => Ok(silo),
            false => Err(PyValueError::new_err("there is no such silo")),
        }
    }
}

#[pymethods]
impl CommitteeChunk {
    #[new]
    fn new(
        circuit: Py<CommitteeCircuit>,
        member: usize,
        view: [u8; 32],
        number: u64,
        pairs: usize,
    ) -> PyResult<Self> {
        let place = place(member)?;
        let chunk = committee::Chunk::new(&circuit.get().0, place, view, number, pairs);
        Ok(Self {
            circuit,
            chunk: Some(chunk),
            place,
            pairs,
        })
    }

    #[getter]
    fn layers(&self) -> usize {
        self.circuit.get().0.layers()
    }

    /// Share this member's own bits; returns the vector for the two others that hold it.
    fn share<'py>(
        &mut self,
        py: Python<'py>,
        seeds: &CommitteeSeeds,
        silo: usize,
        bits: &[u8],
    ) -> PyResult<Bound<'py, PyBytes>> {
        let bits = words_of_bits(bits, self.pairs)?;
        let silo = self.silo(silo)?;
        let circuit = self.circuit.clone_ref(py);
        let chunk = self.chunk()?;
        let vector = py.detach(|| chunk.share(&circuit.get().0, &seeds.0, silo, &bits));
        Ok(PyBytes::new(py, &vector))
    }

    /// Take the vector of another silo; a wrong one changes nothing.
    fn take(&mut self, silo: usize, vector: &[u8]) -> PyResult<()> {
        let silo = self.silo(silo)?;
        self.chunk()?.take(silo, vector).map_err(refuse)
    }

    /// Whether every vector that this member holds is here.
    fn complete(&mut self, py: Python<'_>) -> PyResult<bool> {
        let circuit = self.circuit.clone_ref(py);
        Ok(self.chunk()?.complete(&circuit.get().0))
    }

    /// The hash of all vectors that this member and another hold.
    fn inputs_digest<'py>(
        &mut self,
        py: Python<'py>,
        other: usize,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let other = place(other)?;
        let circuit = self.circuit.clone_ref(py);
        let chunk = self.chunk()?;
        if !chunk.complete(&circuit.get().0) {
            return Err(PyValueError::new_err("a vector is missing"));
        }
        let digest = py.detach(|| chunk.inputs_digest(&circuit.get().0, other));
        Ok(PyBytes::new(py, &digest))
    }

    /// Start the first layer; `outside` has the seeds of silos outside the committee.
    fn begin(
        &mut self,
        py: Python<'_>,
        seeds: &CommitteeSeeds,
        outside: Vec<Option<Py<CommitteeSeeds>>>,
    ) -> PyResult<()> {
        let circuit = self.circuit.clone_ref(py);
        let chunk = self.chunk()?;
        if !chunk.complete(&circuit.get().0) || outside.len() != circuit.get().0.owners().len() {
            return Err(PyValueError::new_err("an input is missing"));
        }
        let drawn: Vec<Option<&Seeds>> = outside
            .iter()
            .map(|seeds| seeds.as_ref().map(|seeds| &seeds.get().0))
            .collect();
        py.detach(|| chunk.begin(&circuit.get().0, &seeds.0, &drawn));
        Ok(())
    }

    /// What this member sends to each member in the present layer; nothing to itself.
    fn speak<'py>(
        &mut self,
        py: Python<'py>,
        seeds: &CommitteeSeeds,
    ) -> PyResult<Vec<Bound<'py, PyBytes>>> {
        let circuit = self.circuit.clone_ref(py);
        let chunk = self.chunk()?;
        let sent = py.detach(|| chunk.speak(&circuit.get().0, &seeds.0));
        Ok(sent.iter().map(|bytes| PyBytes::new(py, bytes)).collect())
    }

    /// The size of what a member sends to this one in a layer.
    fn size(&mut self, py: Python<'_>, layer: usize, sender: usize) -> PyResult<usize> {
        let (circuit, receiver) = (self.circuit.clone_ref(py), self.place);
        match place(sender)? == receiver || layer >= circuit.get().0.layers() {
            true => Err(PyValueError::new_err("there is no such message")),
            false => Ok(self
                .chunk()?
                .size(&circuit.get().0, layer, sender, receiver)),
        }
    }

    /// Compare what the others sent in the present layer, and only then use it.
    fn hear(&mut self, py: Python<'_>, came: [Bound<'_, PyBytes>; MEMBERS]) -> PyResult<()> {
        let circuit = self.circuit.clone_ref(py);
        let chunk = self.chunk()?;
        let came: [&[u8]; MEMBERS] = std::array::from_fn(|i| came[i].as_bytes());
        py.detach(|| chunk.hear(&circuit.get().0, came))
            .map_err(refuse)
    }

    /// What this member tells the coordinator, when all layers are done.
    fn open<'py>(&mut self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let done = self.chunk()?.layer() == self.circuit.get().0.layers();
        match self.chunk.take_if(|_| done).map(committee::Chunk::open) {
            Some(bytes) => Ok(PyBytes::new(py, &bytes)),
            None => Err(PyValueError::new_err("there are layers left")),
        }
    }

    /// The numbers of a chunk that is converted, when all layers are done; those of noise are put
    /// together from their digits.
    fn numbers(&mut self, py: Python<'_>) -> PyResult<CommitteeNumbers> {
        let circuit = self.circuit.clone_ref(py);
        let circuit = &circuit.get().0;
        let done = self.chunk()?.layer() == circuit.layers();
        let chunk = self.chunk.take_if(|_| done);
        let numbers = py.detach(|| {
            let numbers = chunk.and_then(committee::Chunk::numbers)?;
            Some(match circuit.digits() {
                Some(digits) => numbers.of_digits(digits),
                None => numbers,
            })
        });
        numbers
            .map(CommitteeNumbers)
            .ok_or_else(|| PyValueError::new_err("there are layers left, or no numbers"))
    }

    fn __repr__(&self) -> &'static str {
        "CommitteeChunk(…)"
    }
}

/// The noisy bits of a chunk, from what the four members sent to the coordinator.
#[pyfunction]
fn committee_opened<'py>(
    py: Python<'py>,
    view: [u8; 32],
    chunk: u64,
    pairs: usize,
    came: [Bound<'_, PyBytes>; MEMBERS],
) -> PyResult<Bound<'py, PyBytes>> {
    let came: [&[u8]; MEMBERS] = std::array::from_fn(|i| came[i].as_bytes());
    let words = py
        .detach(|| committee::opened(&view, chunk, pairs, came))
        .map_err(refuse)?;
    bytes_of_words(py, &words)
}

/// The component of a silo's bits that travels as a vector.
#[pyfunction]
fn committee_vector(member: Option<usize>, silo: usize) -> usize {
    vector_component(owner(member), silo)
}

/// The hasher, the fourth member and the parity of the gates of what a member sends to another.
#[pyfunction]
fn committee_route(sender: usize, receiver: usize) -> PyResult<(usize, usize, usize)> {
    match place(sender)? != place(receiver)? {
        true => {
            let route = Route::new(sender, receiver);
            Ok((route.hasher, route.other, route.parity))
        }
        false => Err(PyValueError::new_err("nobody writes to itself")),
    }
}

/// Adds this file's names to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("MismatchError", module.py().get_type::<MismatchError>())?;
    module.add_class::<CommitteeCircuit>()?;
    module.add_class::<CommitteeSeeds>()?;
    module.add_class::<CommitteeChunk>()?;
    module.add_function(wrap_pyfunction!(committee_opened, module)?)?;
    module.add_function(wrap_pyfunction!(committee_route, module)?)?;
    module.add_function(wrap_pyfunction!(committee_vector, module)?)
}
