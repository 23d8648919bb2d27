//! The discrete Laplace law of any rational scale, sampled exactly.
//!
//! C. Canonne, G. Kamath, T. Steinke, The discrete Gaussian for differential privacy, NeurIPS 2020,
//! Algorithms 1 and 2.

use chacha20::ChaCha20Rng;
use rand_core::SeedableRng;

use super::coins::Draws;

/// A scale num/den.
///
/// **Values are 64-bit.** A draw that would not fit is made again. At the largest scale, 2^50, a
/// value of 2^62 or more has a probability below 2·e^−4096 < 2^−5900, which bounds how far, in
/// total variation, a draw is from the exact law; up to a scale of 2^30 it is 2·e^−(2^32).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scale {
    num: u64,
    den: u64,
}

/// The largest numerator and denominator.
const LARGEST_PART: u64 = 1 << 62;
/// The largest scale.
const LARGEST_SCALE: u64 = 1 << 50;

impl Scale {
    /// num/den, or `None` unless both are from 1 to 2^62 and their ratio is at most 2^50.
    pub fn new(num: u64, den: u64) -> Option<Self> {
        let parts = 1..=LARGEST_PART;
        let largest = u128::from(LARGEST_SCALE) * u128::from(den);
        (parts.contains(&num) && parts.contains(&den) && u128::from(num) <= largest)
            .then_some(Self { num, den })
    }

    /// The least power of two 2^i that is at least num/den.
    pub fn level(self) -> u32 {
        self.num.div_ceil(self.den).next_power_of_two().ilog2()
    }

    /// A coin of e^(−(x·den/num − whole)), for x·den/num ≥ whole.
    pub fn decay(self, draws: &mut impl Draws, x: u64, whole: u64) -> bool {
        let exponent =
            u128::from(x) * u128::from(self.den) - u128::from(whole) * u128::from(self.num);
        draws.decays(exponent, self.num)
    }
}

/// The geometric law P(k) ∝ e^(−k·den/num), k ≥ 0.
///
/// A uniform u below num that a coin of e^(−u/num) keeps, and a number v of coins of 1/e in a row,
/// make x = u + num·v with P(x) ∝ e^(−x/num); k = ⌊x/den⌋.
pub fn geometric(draws: &mut impl Draws, scale: Scale) -> i64 {
    until(|| try_geometric(draws, scale))
}

/// The discrete Laplace law P(z) ∝ e^(−|z|·den/num).
///
/// A geometric value with a fair sign; −0 is drawn again, since 0 would count twice.
pub fn discrete_laplace(draws: &mut impl Draws, scale: Scale) -> i64 {
    until(|| try_laplace(draws, scale))
}

/// So many independent discrete Laplace values. Deterministic in the seed.
pub fn laplace_noise(count: usize, scale: Scale, seed: [u8; 32]) -> Vec<i64> {
    let mut rng = ChaCha20Rng::from_seed(seed);
    (0..count)
        .map(|_| discrete_laplace(&mut rng, scale))
        .collect()
}

/// Attempts are independent, so the law is that of one which succeeds.
pub(super) fn until<T>(mut attempt: impl FnMut() -> Option<T>) -> T {
    loop {
        if let Some(value) = attempt() {
            return value;
        }
    }
}

fn try_geometric(draws: &mut impl Draws, scale: Scale) -> Option<i64> {
    let u = draws.below(scale.num);
    if !draws.decays(u.into(), scale.num) {
        return None;
    }
    let mut x = u128::from(u);
    while draws.one_over_e() {
        x += u128::from(scale.num);
    }
    i64::try_from(x / u128::from(scale.den)).ok()
}

fn try_laplace(draws: &mut impl Draws, scale: Scale) -> Option<i64> {
    let negative = draws.toss(1, 2);
    let k = try_geometric(draws, scale)?;
    match (negative, k) {
        (true, 0) => None,
        (true, k) => Some(-k),
        (false, k) => Some(k),
    }
}

#[cfg(test)]
mod tests {
    use super::super::coins::tree::{assert_law, walk};
    use super::*;

    const SCALES: [(u64, u64); 7] = [(1, 1), (1, 3), (2, 1), (3, 2), (2, 5), (5, 1), (20, 3)];

    /// p = e^(−den/num), and the probability that a geometric attempt succeeds.
    fn parts(num: u64, den: u64) -> (f64, f64) {
        let kept = (0..num).map(|u| (-(u as f64) / num as f64).exp());
        (
            (-(den as f64) / num as f64).exp(),
            kept.sum::<f64>() / num as f64,
        )
    }

    #[test]
    fn every_path_together_is_the_geometric_law() {
        for (num, den) in SCALES {
            let (p, kept) = parts(num, den);
            let law =
                |k: Option<i64>| k.map_or(1.0 - kept, |k| kept * (1.0 - p) * p.powi(k as i32));
            let scale = Scale::new(num, den).unwrap();
            assert_law(walk(1e-14, |d| try_geometric(d, scale)), 1e-11, law);
        }
    }

    #[test]
    fn every_path_together_is_the_discrete_laplace_law() {
        for (num, den) in SCALES {
            let (p, kept) = parts(num, den);
            let each = |z: i64| kept / 2.0 * (1.0 - p) * p.powi(z.unsigned_abs() as i32);
            let law = |z: Option<i64>| z.map_or(1.0 - kept + each(0), each);
            let scale = Scale::new(num, den).unwrap();
            assert_law(walk(1e-14, |d| try_laplace(d, scale)), 1e-11, law);
        }
    }

    #[test]
    fn a_value_is_drawn_until_an_attempt_succeeds() {
        let mut attempts = vec![Some(3), Some(2), None, None];
        assert_eq!(until(|| attempts.pop().unwrap()), 2);
        assert_eq!(attempts, [Some(3)]);
    }

    #[test]
    fn scales_that_make_no_sense_are_refused() {
        for (num, den) in [(0, 1), (1, 0), ((1 << 62) + 1, 1 << 62), (1, (1 << 62) + 1)] {
            assert!(Scale::new(num, den).is_none());
        }
        assert!(Scale::new((1 << 50) + 1, 1).is_none());
        assert!(Scale::new((1 << 51) + 1, 2).is_none());
        assert!(Scale::new(1 << 62, 1 << 12).is_some());
        assert!(Scale::new(1, 1 << 62).is_some());
    }

    #[test]
    fn levels() {
        let level = |num, den| Scale::new(num, den).unwrap().level();
        assert_eq!(level(1, 3), 0);
        assert_eq!(level(1, 1), 0);
        assert_eq!(level(3, 2), 1);
        assert_eq!(level(2, 1), 1);
        assert_eq!(level(5, 1), 3);
        assert_eq!(level(1 << 50, 1), 50);
    }
}
