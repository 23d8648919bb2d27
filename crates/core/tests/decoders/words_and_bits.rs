//! Words, bit triangles, bit rows and matrices.

use proptest::prelude::*;
use silograph_core::graph::bitrows::{self, BitRows};
use silograph_core::symmetric::matrix::Triangle;
use silograph_core::words;

use super::{HUGE, bytes, cases};

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn words_come_back(bytes in bytes(2048), count in 0usize..300) {
        let read = words::read(&bytes, count);
        prop_assert_eq!(read.is_some(), bytes.len() == 8 * count);
        if let Some(words) = read {
            let back: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            prop_assert_eq!(back, bytes);
        }
    }

    #[test]
    fn triangles_come_back(n in 0usize..90, bytes in bytes(504)) {
        let pairs = bitrows::pair_count(n);
        let mut triangle = words::read(&bytes[..bytes.len() / 8 * 8], bytes.len() / 8).unwrap();
        triangle.resize(pairs.div_ceil(64), 0);
        let rows = bitrows::into_rows(n, triangle.clone());
        let back = bitrows::to_triangle(BitRows::new(n, &rows).unwrap());
        // Bits past the last pair are nobody's.
        if let Some(last) = triangle.get_mut(pairs / 64) {
            *last &= (1 << (pairs % 64)) - 1;
        }
        prop_assert_eq!(back, triangle);
    }

    #[test]
    fn rows_and_matrices_have_one_length(n: usize, few in 0usize..80, count in 0usize..4000) {
        let words = vec![u64::MAX; count];
        prop_assert!(n < 1 << 20 || BitRows::new(n, &words).is_none());
        prop_assert!(n < 1 << 20 || Triangle::new(n, &words).is_none());
        let fits = few * bitrows::row_words(few) == count;
        prop_assert_eq!(BitRows::new(few, &words).is_some(), fits);
        let fits = few * few.saturating_sub(1) / 2 == count;
        prop_assert_eq!(Triangle::new(few, &words).is_some(), fits);
    }
}

#[test]
fn huge_numbers_take_no_memory() {
    for n in HUGE {
        for some in [&[][..], &[1], &[7; 9]] {
            assert!(BitRows::new(n, some).is_none());
            assert!(Triangle::new(n, some).is_none());
            let bytes = vec![0; 8 * some.len()];
            let due = bitrows::pair_count(n).div_ceil(64);
            assert!(words::read(&bytes, due).is_none(), "{n} nodes");
            assert!(words::read(&bytes, n).is_none(), "{n} words");
        }
    }
}
