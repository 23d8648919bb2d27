//! Probabilities from limbs, and scales of noise.

use chacha20::ChaCha20Rng;
use proptest::prelude::*;
use rand_core::SeedableRng;
use silograph_core::dp::bernoulli::{Probability, lanes};
use silograph_core::dp::laplace::{Scale, laplace_noise};
use silograph_core::dp::polya::{MOST_SHARES, share_noise};

use super::cases;

/// Limbs without the zeros on top, from the top down: they compare as the numbers do.
fn number(limbs: &[u64]) -> (usize, Vec<u64>) {
    let top: Vec<u64> = limbs
        .iter()
        .rev()
        .copied()
        .skip_while(|&x| x == 0)
        .collect();
    (top.len(), top)
}

/// Numbers of every length, many of them with few bits.
fn limbs(most: usize) -> impl Strategy<Value = Vec<u64>> {
    let limb = prop_oneof![Just(0), Just(1), Just(u64::MAX), any::<u64>()];
    prop::collection::vec(limb, 0..=most)
}

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn probabilities(num in limbs(300), den in limbs(300), same: bool, seed: [u8; 32]) {
        let num = if same { den.clone() } else { num };
        let (n, d) = (number(&num), number(&den));
        let valid = (1..=255).contains(&d.0) && n <= d;
        let found = Probability::new(&num, &den);
        prop_assert_eq!(found.is_some(), valid);
        if let Some(p) = found {
            let drawn = lanes(&mut ChaCha20Rng::from_seed(seed), &p);
            prop_assert!(n.0 > 0 || drawn == 0);
            prop_assert!(n != d || drawn == u64::MAX);
        }
    }

    #[test]
    fn scales(
        num in prop_oneof![any::<u64>(), 0u64..9, (0u32..64).prop_map(|k| 1 << k)],
        den in prop_oneof![any::<u64>(), 0u64..9, (0u32..64).prop_map(|k| 1 << k)],
        shares in 1..=MOST_SHARES, seed: [u8; 32],
    ) {
        let parts = 1..=1u64 << 62;
        let valid = parts.contains(&num) && parts.contains(&den)
            && u128::from(num) <= u128::from(den) << 50;
        let found = Scale::new(num, den);
        prop_assert_eq!(found.is_some(), valid);
        if let Some(scale) = found {
            prop_assert_eq!(laplace_noise(2, scale, seed).len(), 2);
            prop_assert_eq!(share_noise(2, scale, shares, seed).len(), 2);
        }
    }
}
