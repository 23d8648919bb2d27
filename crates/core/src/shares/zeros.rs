//! Shares of zero, from seeds that two silos share and the dealer does not know.
//!
//! The dealer knows all that was dealt, so a silo's share of an answer would tell it a function of
//! what was opened. Each two silos add and subtract the same words; the sum over all silos is what
//! it was, and any m − 1 of the masked shares are uniform.

use super::stream::{Label, Seed};

/// Adds this silo's share of zero: each seed's words, added by the first of its two silos and
/// subtracted by the other.
pub fn add(seeds: &[(Seed, bool)], words: &mut [u64]) {
    for (seed, first) in seeds {
        mask(words, &seed.words(Label::Zero, 0, words.len()), *first);
    }
}

/// One pair's part of it.
pub(crate) fn mask(words: &mut [u64], zeros: &[u64], first: bool) {
    for (word, zero) in words.iter_mut().zip(zeros) {
        *word = match first {
            true => word.wrapping_add(*zero),
            false => word.wrapping_sub(*zero),
        };
    }
}
