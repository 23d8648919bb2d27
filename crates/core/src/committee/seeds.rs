//! What the members draw in common: streams of bits from seeds.

use super::MEMBERS;
use crate::crypto::agreement::expand;
use crate::crypto::keystream::StreamKey;
use zeroize::{Zeroize, ZeroizeOnDrop};

/// What a stream is for. No two streams of a run have the same name.
#[derive(Clone, Copy, Debug)]
pub enum Purpose {
    /// A component of a silo's bits.
    Input {
        /// The silo's number among all silos.
        silo: usize,
    },
    /// The mask of a joint message; the component is the receiver's.
    Mask {
        /// The number of the gate.
        gate: usize,
        /// The member that sends the message.
        sender: usize,
    },
    /// A component of a random bit of the coin.
    Coin {
        /// The place of the bit, from the lowest.
        place: usize,
    },
    /// The mask of a joint message of numbers; the component is the receiver's.
    Number {
        /// The member that sends the message.
        sender: usize,
    },
    /// A component of a member's part of the noise.
    Part {
        /// The member.
        member: usize,
    },
    /// What members add to their summands and subtract again.
    Zero,
}

impl Purpose {
    fn name(self) -> [u64; 3] {
        match self {
            Self::Input { silo } => [0, silo as u64, 0],
            Self::Mask { gate, sender } => [1, gate as u64, sender as u64],
            Self::Coin { place } => [2, place as u64, 0],
            Self::Number { sender } => [3, sender as u64, 0],
            Self::Part { member } => [4, member as u64, 0],
            Self::Zero => [5, 0, 0],
        }
    }
}

/// The seeds that one party has, by component. A member has those of every component but its own.
/// They are wiped when dropped, and never shown.
#[derive(Zeroize, ZeroizeOnDrop)]
pub struct Seeds {
    seeds: [Option<[u8; 32]>; MEMBERS],
    view: [u8; 32],
}

impl Seeds {
    /// `view` is the digest that every party of the run has signed.
    pub fn new(seeds: [Option<[u8; 32]>; MEMBERS], view: [u8; 32]) -> Self {
        Self { seeds, view }
    }

    /// Whether the seed of a component is here.
    pub fn has(&self, component: usize) -> bool {
        self.seeds[component].is_some()
    }

    /// The same seeds but one.
    pub fn without(&self, component: usize) -> Self {
        let mut seeds = self.seeds;
        seeds[component] = None;
        Self::new(seeds, self.view)
    }

    /// The key of a stream, which starts at number 0.
    pub fn key(&self, component: usize, chunk: u64, purpose: Purpose) -> StreamKey {
        let seed = self.seeds[component].expect("a party draws from seeds that it has");
        let mut context = self.view.to_vec();
        for number in [component as u64, chunk].into_iter().chain(purpose.name()) {
            context.extend(number.to_le_bytes());
        }
        let mut key = expand(&seed, b"silograph/committee/stream/v1", &context);
        let made = StreamKey::new(&key);
        key.zeroize();
        made
    }

    /// Adds so many words of a stream to `words`.
    pub fn add(&self, component: usize, chunk: u64, purpose: Purpose, words: &mut [u64]) {
        let key = self.key(component, chunk, purpose);
        let (mut stream, mut block) = (key.stream(0), [0u8; 4096]);
        for part in words.chunks_mut(block.len() / 8) {
            let bytes = &mut block[..8 * part.len()];
            stream.fill(bytes);
            let (eights, _) = bytes.as_chunks::<8>();
            for (word, eight) in part.iter_mut().zip(eights) {
                *word ^= u64::from_le_bytes(*eight);
            }
        }
        block.zeroize();
    }

    /// The component of a silo's bits that travels, from its bits and all other components.
    pub fn hide(&self, silo: usize, chunk: u64, bits: &[u64]) -> Vec<u64> {
        let mut vector = bits.to_vec();
        for component in (0..MEMBERS).filter(|component| self.has(*component)) {
            self.add(component, chunk, Purpose::Input { silo }, &mut vector);
        }
        vector
    }

    /// So many words of a stream.
    pub fn words(&self, component: usize, chunk: u64, purpose: Purpose, count: usize) -> Vec<u64> {
        let mut words = vec![0; count];
        self.add(component, chunk, purpose, &mut words);
        words
    }
}
