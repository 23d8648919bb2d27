//! Shares of zero, from seeds that two silos share and the dealer does not know.
//!
//! The dealer knows all that was dealt, so a silo's share of an answer would tell it a function of
//! what was opened. Each two silos add and subtract the same words; the sum over all silos is what
//! it was, and any m − 1 of the masked shares are uniform.

use super::stream::{Label, Seed};

/// Adds this silo's share of zero: each seed's words, added by the first of its two silos and
/// subtracted by the other.
pub fn add(seeds: &[(Seed, bool)], words: &mut [u64]) {
    for (seed, plus) in seeds {
        match plus {
            true => seed.combine(Label::Zero, 0, words, u64::wrapping_add),
            false => seed.combine(Label::Zero, 0, words, u64::wrapping_sub),
        }
    }
}
