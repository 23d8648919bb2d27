//! Vectors of the masked union.

use proptest::prelude::*;
use silograph_core::crypto::masked::{self, MaskedError, Ring};

use super::{HUGE, bytes, cases};

fn elements(ring: Ring, bytes: &[u8]) -> Vec<u32> {
    let wide = |element: &[u8]| element.iter().rev().fold(0, |x, &b| x << 8 | u32::from(b));
    bytes.chunks(ring.width()).map(wide).collect()
}

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn a_vector_is_added_or_changes_nothing(
        q in prop_oneof![2u32..300, 2u32..=65_536],
        start: u32,
        bytes in bytes(600),
        more in 0usize..3,
    ) {
        let ring = Ring::new(q).unwrap();
        let pairs = bytes.len() / ring.width() + more;
        let first = (start % q).to_le_bytes();
        let before = first[..ring.width()].repeat(pairs);
        let mut total = before.clone();
        let found = masked::accumulate(ring, pairs, &mut total, &bytes);
        let whole = bytes.len() == pairs * ring.width();
        let below = elements(ring, &bytes).iter().all(|&x| x < q);
        prop_assert_eq!(found.is_ok(), whole && below, "{:?}", found);
        if found.is_err() {
            prop_assert_eq!(total, before);
        } else {
            let sums: Vec<u32> =
                elements(ring, &bytes).iter().map(|x| (x + start % q) % q).collect();
            prop_assert_eq!(elements(ring, &total), sums);
        }
    }

    #[test]
    fn sums_open_to_one_bit_a_pair(q in 2u32..=65_536, total in bytes(600), more in 0usize..2) {
        let ring = Ring::new(q).unwrap();
        let pairs = total.len() / ring.width() + more;
        let opened = masked::open(ring, pairs, &total);
        prop_assert_eq!(opened.is_ok(), total.len() == pairs * ring.width());
        for (k, x) in elements(ring, &total).into_iter().enumerate() {
            if let Ok(bits) = &opened {
                prop_assert_eq!(bits[k / 64] >> (k % 64) & 1 == 1, x != 0);
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
    for q in [256, 257] {
        let ring = Ring::new(q).unwrap();
        for pairs in HUGE {
            for few in [&[][..], &[0; 2]] {
                let mut total = few.to_vec();
                let refused = |found| matches!(found, Err(MaskedError::Length { .. }));
                assert!(refused(masked::accumulate(ring, pairs, &mut total, few)));
                assert!(refused(masked::open(ring, pairs, few).map(|_| ())));
            }
        }
    }
}
