//! What members of a committee send to each other and to the coordinator.

use proptest::prelude::*;
use silograph_core::committee::{
    Chunk, Circuit, Numbers, Owner, Parts, Seeds, opened, opened_numbers,
};
use silograph_core::graph::bitrows;
use silograph_core::symmetric::matrix::add_to_nodes;

use super::{bytes, cases};

const VIEW: [u8; 32] = [7; 32];

proptest! {
    #![proptest_config(cases(128))]

    /// Bytes that no member sent are refused in every layer, of gates and of numbers.
    #[test]
    fn a_layer_refuses_any_bytes(
        place in 0usize..4, width in 1usize..9, pairs in 1usize..200, counts: bool,
        came in prop::array::uniform4(bytes(2000)),
    ) {
        let seeds = Seeds::new(std::array::from_fn(|c| (c != place).then_some([c as u8; 32])), VIEW);
        let coins = vec![vec![true, false, true]; width];
        let circuit = match counts {
            true => Circuit::counting(vec![Owner::Member(0); 1], width).unwrap(),
            false => Circuit::noise(coins, pairs, width).unwrap(),
        };
        let mut chunk = Chunk::new(&circuit, place, VIEW, 1, pairs);
        if counts {
            chunk.take(0, &vec![1; 8 * pairs.div_ceil(64)]).unwrap();
        }
        chunk.begin(&circuit, &seeds, &[None]);
        chunk.speak(&circuit, &seeds);
        let sizes = |sender: usize| chunk.size(&circuit, 0, sender, place);
        // A member that is sent nothing in this layer has nothing to refuse.
        prop_assume!((0..4).any(|sender| sender != place && sizes(sender) > 0));
        let fitting: [Vec<u8>; 4] = std::array::from_fn(|sender| match sender == place {
            true => vec![],
            false => vec![3; sizes(sender)],
        });
        prop_assert!(chunk.hear(&circuit, std::array::from_fn(|i| &*came[i])).is_err());
        prop_assert!(chunk.hear(&circuit, std::array::from_fn(|i| &*fitting[i])).is_err());
        prop_assert_eq!(chunk.layer(), 0);
    }

    #[test]
    fn openings_refuse_any_bytes(
        place in 0usize..4, width in 1usize..9, count in 0usize..300, phase in 0u64..4,
        came in prop::array::uniform4(bytes(2000)),
    ) {
        let all: [&[u8]; 4] = std::array::from_fn(|i| &*came[i]);
        prop_assert!(opened_numbers(&VIEW, phase, count, width, all).is_err());
        prop_assert!(opened(&VIEW, phase, count, all).is_err());
        let numbers = Numbers::zeros(place, width, count);
        prop_assert!(numbers.learn(&VIEW, phase, all[0], all[1]).is_err());
        let mut parts = Parts::new(place, VIEW, phase, count, width);
        prop_assert_eq!(parts.take(0, all[2]).is_ok(), all[2].len() == count * width);
    }

    #[test]
    fn sums_of_nodes_take_any_words(
        n in 0usize..40, noise in prop::collection::vec(any::<u64>(), 1..50),
    ) {
        let pairs = bitrows::pair_count(n);
        let words: Vec<u64> = noise.iter().copied().cycle().take(pairs).collect();
        let mut sums = vec![0u64; n];
        add_to_nodes(0..pairs, &words, &mut sums);
        let twice = words.iter().fold(0u64, |sum, w| sum.wrapping_add(w.wrapping_mul(2)));
        prop_assert_eq!(sums.into_iter().fold(0, u64::wrapping_add), twice);
    }
}
