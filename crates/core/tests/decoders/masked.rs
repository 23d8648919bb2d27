//! Packed vectors of the masked union.

use proptest::prelude::*;
use silograph_core::crypto::packed::{PackedError, Ring, Sum};

use super::{HUGE, cases};

fn words(bytes: &[u8]) -> impl Iterator<Item = u64> {
    let wide = |word: &[u8]| word.iter().rev().fold(0, |x, &b| x << 8 | u64::from(b));
    bytes.chunks(4).map(wide)
}

/// The elements of a vector, by division.
fn elements(ring: Ring, bytes: &[u8]) -> Vec<u64> {
    let q = u64::from(ring.q());
    let digits = move |word: u64| (0..ring.digits()).map(move |j| word / q.pow(j as u32) % q);
    words(bytes).flat_map(digits).collect()
}

/// Whether bytes are the encoding of one element per pair.
fn canonical(ring: Ring, pairs: usize, bytes: &[u8]) -> bool {
    let power = |digits: usize| u64::from(ring.q()).pow(digits as u32);
    bytes.len() == pairs.div_ceil(ring.digits()) * 4
        && words(bytes).all(|word| word < power(ring.digits()))
        && elements(ring, bytes)[pairs..].iter().all(|&x| x == 0)
}

/// A modulus, a number of pairs, and a vector whose words are near the edges of what is allowed.
fn vectors() -> impl Strategy<Value = (Ring, usize, Vec<u8>)> {
    (prop_oneof![2u32..300, 2u32..=65_536], 1usize..200)
        .prop_flat_map(|(q, pairs)| {
            let ring = Ring::new(q).unwrap();
            let rest = (pairs - 1) % ring.digits() + 1;
            let edge = move |digits: usize| u64::from(q).pow(digits as u32);
            let near =
                |edge: u64| prop_oneof![8 => 0..edge, 1 => edge - 1..edge + 2, 1 => 0..1u64 << 32];
            let before =
                proptest::collection::vec(near(edge(ring.digits())), ring.words(pairs) - 1);
            let more = prop_oneof![8 => Just(0usize), 1 => 1usize..9];
            (Just((ring, pairs)), before, near(edge(rest)), more)
        })
        .prop_map(|((ring, pairs), mut words, last, more)| {
            words.push(last);
            let low = |word: u64| (word.min(u32::MAX.into()) as u32).to_le_bytes();
            let mut bytes: Vec<u8> = words.into_iter().flat_map(low).collect();
            bytes.extend(vec![0; more]);
            (ring, pairs, bytes)
        })
}

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn a_vector_is_added_or_changes_nothing((ring, pairs, bytes) in vectors(), more in 0u64..12) {
        // Many times, so that digits wrap and sums are put together.
        let mut total = Sum::new(ring, pairs);
        for times in 1..=1 + more {
            let found = total.add(bytes.clone());
            prop_assert_eq!(found.is_ok(), canonical(ring, pairs, &bytes), "{:?}", found);
            let (packed, bits) = (total.packed(), total.nonzero());
            if found.is_err() {
                prop_assert_eq!(packed, vec![0; ring.bytes(pairs)]);
                prop_assert!(bits.iter().all(|&word| word == 0));
                continue;
            }
            let q = u64::from(ring.q());
            let sums: Vec<u64> = elements(ring, &bytes).iter().map(|x| x * times % q).collect();
            prop_assert_eq!(elements(ring, &packed), &sums[..]);
            prop_assert_eq!(bits.len(), pairs.div_ceil(64));
            for (k, &x) in sums.iter().enumerate() {
                let bit = bits.get(k / 64).is_some_and(|word| word >> (k % 64) & 1 == 1);
                prop_assert_eq!(bit, x != 0);
            }
        }
    }

    #[test]
    fn moduli(q: u32) {
        prop_assert_eq!(Ring::new(q).is_ok(), (2..=65_536).contains(&q));
    }
}

#[test]
fn huge_numbers_take_no_memory() {
    for q in [2, 256, 257] {
        let ring = Ring::new(q).unwrap();
        for pairs in HUGE {
            for few in [&[][..], &[0; 4]] {
                let found = Sum::new(ring, pairs).add(few);
                assert!(matches!(found, Err(PackedError::Length { .. })));
            }
        }
    }
}
