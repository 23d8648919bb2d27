//! Noise in parts: every member draws a part and shares it among all four, as numbers.
//!
//! As with a member's bits, its own component is 0, two come from seeds, and the last travels to its
//! two other holders, who compare hashes before use. Any number is a valid part.

use sha2::Digest;

use super::chunk::{Fault, Hash, labelled};
use super::circuit::Owner;
use super::numbers::{Numbers, pack, unpack};
use super::seeds::{Purpose, Seeds};
use super::{MEMBERS, others, vector_component};

/// One member's view of all parts.
pub struct Parts {
    place: usize,
    number: u64,
    view: Hash,
    count: usize,
    width: usize,
    /// The components that travel, where this member holds them.
    vectors: [Option<Vec<u8>>; MEMBERS],
}

impl Parts {
    /// `count` numbers of `width` bytes.
    pub fn new(place: usize, view: Hash, number: u64, count: usize, width: usize) -> Self {
        Self {
            place,
            number,
            view,
            count,
            width,
            vectors: Default::default(),
        }
    }

    /// How many numbers there are.
    pub fn count(&self) -> usize {
        self.count
    }

    /// The size of a vector.
    pub fn size(&self) -> usize {
        self.count * self.width
    }

    /// Shares this member's own part; returns the vector for the two others that hold it.
    pub fn share(&mut self, seeds: &Seeds, words: &[u64]) -> Vec<u8> {
        let mut rest = words.to_vec();
        for component in others(self.place).filter(|c| *c != travels(self.place)) {
            let drawn = self.drawn(seeds, component, self.place);
            for (word, drawn) in rest.iter_mut().zip(drawn) {
                *word = word.wrapping_sub(drawn);
            }
        }
        let vector = pack(&rest, self.width);
        self.vectors[self.place] = Some(vector.clone());
        vector
    }

    /// Takes the vector of another member.
    pub fn take(&mut self, member: usize, bytes: &[u8]) -> Result<(), Fault> {
        if bytes.len() != self.size() {
            return Err(Fault::Size);
        }
        self.vectors[member] = Some(bytes.to_vec());
        Ok(())
    }

    /// Whether every vector that this member holds is here.
    pub fn complete(&self) -> bool {
        let here = |member: usize| self.vectors[member].is_some() || travels(member) == self.place;
        (0..MEMBERS).all(here)
    }

    /// The hash of all vectors that this member and another hold. The two compare it before use.
    pub fn digest(&self, other: usize) -> Hash {
        let two = [self.place.min(other), self.place.max(other)];
        let label = b"silograph/committee/parts/v1";
        let mut hash = labelled(label, &self.view, self.number, &two);
        for member in (0..MEMBERS).filter(|member| !two.contains(&travels(*member))) {
            hash.update(self.vectors[member].as_ref().expect("all vectors are here"));
        }
        hash.finalize().into()
    }

    /// The sum of all parts.
    pub fn numbers(self, seeds: &Seeds) -> Numbers {
        let mut sums = Numbers::zeros(self.place, self.width, self.count);
        for member in 0..MEMBERS {
            // A member's own component of its part is 0.
            for component in others(self.place).filter(|component| *component != member) {
                let words: Vec<u64> = match component == travels(member) {
                    true => {
                        let vector = self.vectors[member].as_ref();
                        unpack(vector.expect("all vectors are here"), self.width)
                    }
                    false => self.drawn(seeds, component, member),
                };
                for (sum, word) in sums.components[component].iter_mut().zip(words) {
                    *sum = sum.wrapping_add(word);
                }
            }
        }
        sums
    }

    fn drawn(&self, seeds: &Seeds, component: usize, member: usize) -> Vec<u64> {
        let purpose = Purpose::Part { member };
        seeds.words(component, self.number, purpose, self.count)
    }
}

/// The component of a member's part that travels.
fn travels(member: usize) -> usize {
    vector_component(Owner::Member(member), member)
}
