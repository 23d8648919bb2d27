//! One chunk of pairs at one silo: from its bits to its shares of the union mod 2^64.
//!
//! Steps: one for each level of the AND-tree, then one for daBits. In each the silo opens its
//! share, takes those of all others, and closes.

use super::dabits;
use super::dealt::Dealt;
use super::stream::Label;
use super::union::{Union, depth, gates};
use std::ops::Range;

/// A chunk on its way.
pub struct Chunk {
    pairs: Range<usize>,
    union: Option<Union>,
    bits: Vec<u64>,
    step: usize,
    opened: Vec<u64>,
    shares: Vec<u64>,
}

impl Chunk {
    /// From the silo's bits of these pairs; the first is a multiple of 64.
    pub fn new(dealt: &Dealt, pairs: Range<usize>, bits: &[u64]) -> Self {
        Self {
            pairs,
            union: Some(Union::new(dealt.place(), dealt.silos(), bits)),
            bits: vec![],
            step: 0,
            opened: vec![],
            shares: vec![],
        }
    }

    fn words(&self) -> Range<usize> {
        self.pairs.start / 64..self.pairs.end.div_ceil(64)
    }

    /// The words of corrections for so many pairs: a product for each gate, then one word per pair.
    pub fn correction_words(silos: usize, pairs: usize) -> usize {
        (silos - 1) * pairs.div_ceil(64) + pairs
    }

    /// The pairs that this chunk is about.
    pub fn pairs(&self) -> Range<usize> {
        self.pairs.clone()
    }

    /// This silo's share of what the present step opens.
    pub fn open(&mut self, dealt: &Dealt) -> Vec<u64> {
        self.opened = match &self.union {
            Some(union) => {
                let triples: Vec<_> = gates(dealt.silos(), self.step)
                    // What is opened does not depend on the product.
                    .map(|gate| dealt.triple(gate, self.words(), Some(&[])))
                    .collect();
                union.open(&triples)
            }
            None => {
                let masks = dealt.drawn(Label::Bit, self.words());
                super::bits::masked(&self.bits, &masks)
            }
        };
        self.opened.clone()
    }

    /// How many words each silo opens in the present step.
    pub fn opening_words(&self) -> usize {
        self.opened.len()
    }

    /// Takes another silo's share, of as many words.
    pub fn take(&mut self, other: &[u64]) {
        for (sum, word) in self.opened.iter_mut().zip(other) {
            *sum ^= word;
        }
    }

    /// Ends the present step, when all shares are there.
    pub fn close(&mut self, dealt: &Dealt, correction: Option<&[u64]>) {
        let words = self.words();
        let silos = dealt.silos();
        let products = (silos - 1) * words.len();
        if let Some(union) = &mut self.union {
            let triples: Vec<_> = gates(silos, self.step)
                .map(|gate| {
                    let own = correction.map(|all| &all[gate * words.len()..][..words.len()]);
                    dealt.triple(gate, words.clone(), own)
                })
                .collect();
            union.close(&self.opened, &triples);
            self.step += 1;
            if self.step == depth(silos) {
                self.bits = self.union.take().map(Union::share).unwrap_or_default();
            }
        } else {
            let own = correction.map(|all| &all[products..]);
            let mut shares = dealt.corrected_words(Label::Word, self.pairs(), own);
            dabits::arithmetic(&self.opened, &mut shares, dealt.first());
            self.shares = shares;
            self.step += 1;
        }
    }

    /// This silo's shares of the union bits mod 2^64, when all steps are done.
    pub fn shares(&self) -> &[u64] {
        &self.shares
    }
}
