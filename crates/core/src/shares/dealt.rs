//! What one silo was dealt: a seed that all its shares come from.
//!
//! The last silo's shares of products and squares do not come from its seed: they are corrections,
//! which the dealer sends it chunk by chunk, so that all shares add up.

use std::ops::Range;

use super::bits::Triple;
use super::stream::{Label, Seed};

/// One silo's material for one run.
pub struct Dealt {
    seed: Seed,
    place: usize,
    silos: usize,
}

impl Dealt {
    /// From the seed that the dealer sent to the silo at `place`.
    pub fn new(seed: Seed, place: usize, silos: usize) -> Self {
        Self { seed, place, silos }
    }

    /// Its place among the silos.
    pub fn place(&self) -> usize {
        self.place
    }

    /// How many silos there are.
    pub fn silos(&self) -> usize {
        self.silos
    }

    /// Whether this silo adds what all know.
    pub fn first(&self) -> bool {
        self.place == 0
    }

    /// Whether this silo gets corrections.
    pub fn corrected(&self) -> bool {
        self.place == self.silos - 1
    }

    /// Its triple of one gate, for some words of bits.
    pub fn triple(&self, gate: usize, words: Range<usize>, correction: Option<&[u64]>) -> Triple {
        Triple {
            left: self.drawn(Label::Left(gate), words.clone()),
            right: self.drawn(Label::Right(gate), words.clone()),
            product: self.corrected_words(Label::Product(gate), words, correction),
        }
    }

    /// Words that come from the seed at every silo.
    pub fn drawn(&self, label: Label, positions: Range<usize>) -> Vec<u64> {
        self.seed.words(label, positions.start, positions.len())
    }

    /// Words that come from the seed, but for the silo that has a correction.
    pub fn corrected_words(
        &self,
        label: Label,
        positions: Range<usize>,
        correction: Option<&[u64]>,
    ) -> Vec<u64> {
        match correction {
            Some(words) => words.to_vec(),
            None => self.drawn(label, positions),
        }
    }
}
