//! A release drawn from its channel directly: y = 1 with probability p11 on edges, p01 elsewhere.

use chacha20::ChaCha20Rng;
use rand_core::SeedableRng;
use rayon::prelude::*;

use super::bernoulli::{Probability, coupled};

/// Pairs in a chunk; every chunk has a stream of its own, so chunks can be drawn in any order.
pub const CHUNK_PAIRS: usize = 1 << 20;

/// Passes `pairs` bits of a triangle through the channel, in place.
///
/// Deterministic in the seed. The random words do not depend on the bits.
pub fn transmit(
    triangle: &mut [u64],
    pairs: usize,
    p11: &Probability,
    p01: &Probability,
    seed: [u8; 32],
) {
    triangle
        .par_chunks_mut(CHUNK_PAIRS / 64)
        .enumerate()
        .for_each(|(chunk, words)| {
            let mut rng = ChaCha20Rng::from_seed(seed);
            rng.set_stream(chunk as u64);
            for x in words {
                let (present, absent) = coupled(&mut rng, p11, p01);
                *x = (*x & present) | (!*x & absent);
            }
        });
    // The last word has lanes past the last pair; they drew noise as well.
    if let Some(last) = triangle.get_mut(pairs / 64) {
        *last &= (1 << (pairs % 64)) - 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn probability(num: u64, den: u64) -> Probability {
        Probability::ratio(num, den).unwrap()
    }

    #[test]
    fn a_perfect_channel_changes_nothing_and_a_constant_one_forgets_all() {
        let truth: Vec<u64> = (0..100u64)
            .map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15))
            .collect();
        let (zero, one) = (probability(0, 1), probability(1, 1));
        let mut bits = truth.clone();
        transmit(&mut bits, 6400, &one, &zero, [1; 32]);
        assert_eq!(bits, truth);
        transmit(&mut bits, 6399, &one, &one, [1; 32]);
        assert!(bits[..99].iter().all(|&w| w == u64::MAX));
        assert_eq!(bits[99], u64::MAX >> 1);
    }

    #[test]
    fn lanes_and_chunks_are_all_noisy_and_differ() {
        let pairs = 2 * CHUNK_PAIRS + 130;
        let mut bits = vec![0u64; pairs.div_ceil(64)];
        transmit(
            &mut bits,
            pairs,
            &probability(1, 2),
            &probability(1, 4),
            [7; 32],
        );
        let mut lanes = [0u32; 64];
        for word in &bits {
            for (lane, count) in lanes.iter_mut().enumerate() {
                *count += (word >> lane & 1) as u32;
            }
        }
        // Binomial(32,770, 1/4): 8192.5 ± 78; six and a half standard deviations each side.
        assert!(
            lanes.iter().all(|&c| (7685..=8700).contains(&c)),
            "{lanes:?}"
        );
        assert_ne!(
            bits[..1024],
            bits[CHUNK_PAIRS / 64..CHUNK_PAIRS / 64 + 1024]
        );
    }
}
