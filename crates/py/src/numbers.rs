//! Bindings of a committee's numbers: noise in parts, counts, and their openings.

use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use silograph_core::committee::{Count, MEMBERS, Numbers, Parts, Types, opened_numbers};

use crate::committee::{CommitteeSeeds, place, refuse};
use crate::fold::layout;

fn check_width(width: usize) -> PyResult<usize> {
    match (1..=8).contains(&width) {
        true => Ok(width),
        false => Err(PyValueError::new_err("a number has 1 to 8 bytes")),
    }
}

/// Numbers that the members share. It shows nothing of them.
#[pyclass(module = "silograph._core")]
pub struct CommitteeNumbers(pub Numbers);

#[pymethods]
impl CommitteeNumbers {
    /// So many zeros.
    #[new]
    fn new(member: usize, width: usize, count: usize) -> PyResult<Self> {
        let numbers = Numbers::zeros(place(member)?, check_width(width)?, count);
        Ok(Self(numbers))
    }

    fn __len__(&self) -> usize {
        self.0.len()
    }

    /// Add other numbers, from number `start` on.
    fn add(&mut self, start: usize, other: PyRef<'_, CommitteeNumbers>) -> PyResult<()> {
        self.0
            .join(start, &other.0)
            .ok_or_else(|| PyValueError::new_err("there are fewer numbers than that"))
    }

    /// What this member tells the coordinator.
    fn open<'py>(&self, py: Python<'py>, view: [u8; 32], phase: u64) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.0.open(&view, phase))
    }

    /// What this member tells another, if anything.
    fn tell<'py>(
        &self,
        py: Python<'py>,
        view: [u8; 32],
        phase: u64,
        receiver: usize,
    ) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let told = self.0.tell(&view, phase, place(receiver)?);
        Ok(told.map(|bytes| PyBytes::new(py, &bytes)))
    }

    /// The numbers, from the component that this member lacks and its hash.
    fn learn<'py>(
        &self,
        py: Python<'py>,
        view: [u8; 32],
        phase: u64,
        component: &[u8],
        hash: &[u8],
    ) -> PyResult<Bound<'py, PyArray1<i64>>> {
        let learnt = self.0.learn(&view, phase, component, hash);
        Ok(PyArray1::from_vec(py, learnt.map_err(refuse)?))
    }

    fn __repr__(&self) -> &'static str {
        "CommitteeNumbers(…)"
    }
}

/// The members' parts of the noise at one member. It shows nothing of them.
#[pyclass(module = "silograph._core")]
struct CommitteeParts(Option<Parts>);

impl CommitteeParts {
    fn parts(&mut self) -> PyResult<&mut Parts> {
        self.0
            .as_mut()
            .ok_or_else(|| PyValueError::new_err("the parts were added up"))
    }
}

#[pymethods]
impl CommitteeParts {
    #[new]
    fn new(
        member: usize,
        view: [u8; 32],
        number: u64,
        count: usize,
        width: usize,
    ) -> PyResult<Self> {
        let parts = Parts::new(place(member)?, view, number, count, check_width(width)?);
        Ok(Self(Some(parts)))
    }

    /// Parts are shared and added up, without gates.
    #[getter]
    fn layers(&self) -> usize {
        0
    }

    /// Share this member's own part; returns the vector for the two others that hold it.
    fn share<'py>(
        &mut self,
        py: Python<'py>,
        seeds: &CommitteeSeeds,
        part: PyReadonlyArray1<'_, i64>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let parts = self.parts()?;
        let words: Vec<u64> = part.as_slice()?.iter().map(|x| x.cast_unsigned()).collect();
        match words.len() == parts.count() {
            true => Ok(PyBytes::new(py, &parts.share(&seeds.0, &words))),
            false => Err(PyValueError::new_err("there is not one number for each")),
        }
    }

    /// Take the vector of another member; a wrong one changes nothing.
    fn take(&mut self, member: usize, vector: &[u8]) -> PyResult<()> {
        let member = place(member)?;
        self.parts()?.take(member, vector).map_err(refuse)
    }

    /// Whether every vector that this member holds is here.
    fn complete(&mut self) -> PyResult<bool> {
        Ok(self.parts()?.complete())
    }

    /// The hash of all vectors that this member and another hold.
    fn inputs_digest<'py>(
        &mut self,
        py: Python<'py>,
        other: usize,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let (other, parts) = (place(other)?, self.parts()?);
        match parts.complete() {
            true => Ok(PyBytes::new(py, &parts.digest(other))),
            false => Err(PyValueError::new_err("a vector is missing")),
        }
    }

    /// The sum of all parts.
    fn numbers(&mut self, seeds: &CommitteeSeeds) -> PyResult<CommitteeNumbers> {
        if !self.parts()?.complete() {
            return Err(PyValueError::new_err("a vector is missing"));
        }
        let parts = self.0.take().expect("they are here");
        Ok(CommitteeNumbers(parts.numbers(&seeds.0)))
    }

    fn __repr__(&self) -> &'static str {
        "CommitteeParts(…)"
    }
}

/// What one member counts on its shares. It shows nothing of them.
#[pyclass(module = "silograph._core")]
struct CommitteeCount {
    count: Count,
    n: usize,
    width: usize,
    place: usize,
}

#[pymethods]
impl CommitteeCount {
    #[new]
    fn new(member: usize, n: usize, width: usize, triangles: bool) -> PyResult<Self> {
        let (place, width) = (place(member)?, check_width(width)?);
        Ok(Self {
            count: Count::new(place, n, width, triangles),
            n,
            width,
            place,
        })
    }

    /// The same for folded nodes: their numbers of groups, hubs and sub-buckets.
    #[staticmethod]
    fn folded(
        member: usize,
        shape: (usize, usize, usize),
        width: usize,
        triangles: bool,
    ) -> PyResult<Self> {
        let (place, width) = (place(member)?, check_width(width)?);
        let layout = layout(shape.0, shape.1, shape.2)?;
        Ok(Self {
            count: Count::folded(place, layout, width, triangles),
            n: layout.rows(),
            width,
            place,
        })
    }

    /// Count the edges of each type, too: the groups of the two ends, of so many groups.
    fn by_type(&mut self, labels: PyReadonlyArray1<'_, u32>, groups: usize) -> PyResult<()> {
        Types::new(labels.as_slice()?.to_vec(), groups)
            .and_then(|types| self.count.by_type(types))
            .ok_or_else(|| PyValueError::new_err("there is not one group for each node"))
    }

    /// Multiply the entries of a row right of the diagonal by public weights.
    fn weigh(&mut self, row: usize, weights: PyReadonlyArray1<'_, u64>) -> PyResult<()> {
        self.count
            .weigh(row, weights.as_slice()?)
            .ok_or_else(|| PyValueError::new_err("there is not one weight for each entry"))
    }

    /// Add the numbers of so many pairs, or buckets, from number `start` on.
    fn add(
        &mut self,
        py: Python<'_>,
        start: usize,
        pairs: usize,
        numbers: PyRef<'_, CommitteeNumbers>,
    ) -> PyResult<()> {
        let numbers = &numbers.0;
        py.detach(|| self.count.add(start, pairs, numbers))
            .ok_or_else(|| PyValueError::new_err("there are fewer pairs than that"))
    }

    /// Count the triangles of some rows.
    fn contract(&mut self, py: Python<'_>, first: usize, end: usize) -> PyResult<()> {
        py.detach(|| self.count.contract(first..end))
            .ok_or_else(|| PyValueError::new_err("there are fewer rows than that"))
    }

    /// Free what was kept to count triangles.
    fn forget(&mut self) {
        self.count.forget();
    }

    /// The shared number of edges, the shared degrees, or the shared numbers of each type.
    fn linear(&self, name: &str) -> PyResult<CommitteeNumbers> {
        let edges;
        let (shares, count) = match name {
            "edges" => {
                edges = self.count.edges();
                (&edges, 1)
            }
            "degrees" => (self.count.degrees(), self.n),
            "mixing" => {
                let sums = self.count.mixing();
                let sums = sums.ok_or_else(|| PyValueError::new_err("there are no groups"))?;
                (sums, sums.iter().map(Vec::len).max().unwrap_or(0))
            }
            _ => return Err(PyValueError::new_err("that is not a sum of bits")),
        };
        let mut numbers = Numbers::zeros(self.place, self.width, count);
        numbers.add(0, shares);
        Ok(CommitteeNumbers(numbers))
    }

    /// What this member publishes of a count: its summand with its component of the noise, `factor`
    /// times, under a share of zero.
    fn published<'py>(
        &self,
        py: Python<'py>,
        name: &str,
        seeds: &CommitteeSeeds,
        output: u64,
        factor: u64,
        noise: PyRef<'_, CommitteeNumbers>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let summand = match name {
            "two_stars" => self.count.two_stars(),
            "triangles" => self.count.triangles(),
            _ => return Err(PyValueError::new_err("that is not a count")),
        };
        if noise.0.is_empty() {
            return Err(PyValueError::new_err("there is no noise"));
        }
        let noise = &noise.0;
        let word = self
            .count
            .published(&seeds.0, output, summand, factor, noise);
        Ok(PyBytes::new(py, &word.to_le_bytes()[..self.width]))
    }

    fn __repr__(&self) -> &'static str {
        "CommitteeCount(…)"
    }
}

/// The numbers that the four members opened to the coordinator.
#[pyfunction]
fn committee_opened_numbers<'py>(
    py: Python<'py>,
    view: [u8; 32],
    phase: u64,
    count: usize,
    width: usize,
    came: [Bound<'_, PyBytes>; MEMBERS],
) -> PyResult<Bound<'py, PyArray1<i64>>> {
    let came: [&[u8]; MEMBERS] = std::array::from_fn(|i| came[i].as_bytes());
    let opened = opened_numbers(&view, phase, count, check_width(width)?, came);
    Ok(PyArray1::from_vec(py, opened.map_err(refuse)?))
}

/// Adds this file's names to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<CommitteeNumbers>()?;
    module.add_class::<CommitteeParts>()?;
    module.add_class::<CommitteeCount>()?;
    module.add_function(wrap_pyfunction!(committee_opened_numbers, module)?)
}
