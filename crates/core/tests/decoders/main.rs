//! Bytes that nobody meant, for everything that reads bytes of another party or of a file: they are
//! refused, or read as what their encoding says; nothing panics; and a large number with few bytes
//! behind it is refused before memory is taken for it.
//!
//! Inputs are arbitrary bytes, and valid encodings with a few bytes changed. They follow from a
//! fixed seed, so a failure comes again.

mod committee;
mod elgamal;
mod keys;
mod masked;
mod numbers;
mod texts;
mod words_and_bits;

use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::RngSeed;

/// Numbers that products and sums wrap round to small ones, and others that are merely large.
const HUGE: [usize; 6] = [
    usize::MAX,
    usize::MAX - 1,
    1 << 63,
    (1 << 63) + 1,
    (1 << 32) + 1,
    1 << 40,
];

fn cases(cases: u32) -> ProptestConfig {
    ProptestConfig {
        cases,
        rng_seed: RngSeed::Fixed(6),
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

fn bytes(most: usize) -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 0..=most)
}

/// A few changed bytes.
fn changes() -> impl Strategy<Value = Vec<(Index, u8)>> {
    prop::collection::vec((any::<Index>(), 1u8..), 1..4)
}

fn changed(valid: &[u8], changes: &[(Index, u8)]) -> Vec<u8> {
    let mut bytes = valid.to_vec();
    for (at, by) in changes {
        bytes[at.index(valid.len())] ^= by;
    }
    bytes
}
