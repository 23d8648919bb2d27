//! What silos open to each other, and what the dealer corrects.

use proptest::prelude::*;
use proptest::sample::Index;
use silograph_core::graph::bitrows;
use silograph_core::shares::chunk::Chunk;
use silograph_core::shares::dealt::Dealt;
use silograph_core::shares::stream::{Label, Seed};
use silograph_core::shares::union::depth;
use silograph_core::shares::{squares, triangles};
use silograph_core::symmetric::matrix::{Triangle, add_to_nodes};

use super::cases;

proptest! {
    #![proptest_config(cases(64))]

    /// A chunk from its bits to its words, whatever the others open and the dealer corrects.
    #[test]
    fn a_chunk_takes_any_words(
        silos in 2usize..7, place: Index, start in 0usize..4, pairs in 1usize..200,
        seed: [u8; 32], noise in prop::collection::vec(any::<u64>(), 1..50),
    ) {
        let place = place.index(silos);
        let mut drawn = noise.iter().copied().cycle();
        let mut any = |count: usize| -> Vec<u64> { drawn.by_ref().take(count).collect() };
        let dealt = Dealt::new(Seed::new(seed), place, silos);
        let range = 64 * start..64 * start + pairs;
        let mut chunk = Chunk::new(&dealt, range.clone(), &any(pairs.div_ceil(64)));
        let correction = any(Chunk::correction_words(silos, pairs));
        let correction = dealt.corrected().then_some(&correction[..]);
        for _ in 0..=depth(silos) {
            chunk.open(&dealt);
            let due = chunk.opening_words();
            for _ in 1..silos {
                chunk.take(&any(due));
            }
            chunk.close(&dealt, correction);
        }
        prop_assert_eq!((chunk.pairs(), chunk.shares().len()), (range, pairs));
    }

    #[test]
    fn numbers_take_any_words(
        seed: [u8; 32], n in 0usize..40, first: bool,
        noise in prop::collection::vec(any::<u64>(), 1..50),
    ) {
        let drawn = |count: usize| -> Vec<u64> { noise.iter().copied().cycle().take(count).collect() };
        let dealt = Dealt::new(Seed::new(seed), usize::from(!first), 2);
        let pairs = bitrows::pair_count(n);
        let (opened, masks) = (drawn(n), dealt.drawn(Label::Node, 0..n));
        squares::share(&opened, &masks, &drawn(n), first);
        let (words, mut weights) = (drawn(pairs), dealt.drawn(Label::Matrix, 0..pairs));
        triangles::weights(&mut weights, &words, first);
        triangles::contract(Triangle::new(n, &words).unwrap(), 0..n, &weights);
        let mut sums = vec![0u64; n];
        add_to_nodes(0..pairs, &words, &mut sums);
        let twice = words.iter().fold(0u64, |sum, w| sum.wrapping_add(w.wrapping_mul(2)));
        prop_assert_eq!(sums.into_iter().fold(0, u64::wrapping_add), twice);
    }
}
