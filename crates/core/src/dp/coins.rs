//! Exact single coins: of any rational, and of e^−γ for any rational γ ≥ 0. No floating point.
//!
//! The samplers of this crate's integer noise draw nothing but uniform integers below a bound, so
//! each of them is a tree of equally likely branches, which tests walk whole.

use rand_core::Rng;

/// Where uniform integers come from.
pub trait Draws {
    /// A uniform integer below `bound`, which is at least 1.
    fn below(&mut self, bound: u64) -> u64;

    /// True with probability num/den, or 1 where that is more.
    fn toss(&mut self, num: u64, den: u64) -> bool {
        num >= den || self.below(den) < num
    }

    /// True with probability e^(−num/den).
    fn decays(&mut self, num: u128, den: u64) -> bool
    where
        Self: Sized,
    {
        exponential(self, num, den)
    }

    /// True with probability 1/e.
    fn one_over_e(&mut self) -> bool
    where
        Self: Sized,
    {
        alternating(self, 2)
    }

    /// True with probability 2/e.
    fn two_over_e(&mut self) -> bool
    where
        Self: Sized,
    {
        alternating(self, 3)
    }
}

impl<R: Rng> Draws for R {
    /// The high word of word·bound; of the 2^64 words, 2^64 mod `bound` are drawn again, and of
    /// the others equally many give each integer (D. Lemire, Fast random integer generation in an
    /// interval, 2019).
    #[inline]
    fn below(&mut self, bound: u64) -> u64 {
        assert!(bound > 0, "nothing is below zero");
        loop {
            let wide = u128::from(self.next_u64()) * u128::from(bound);
            let low = wide as u64;
            if low >= bound || low >= bound.wrapping_neg() % bound {
                return (wide >> 64) as u64;
            }
        }
    }
}

/// Tosses 1/k, 1/(k+1), … up to the first that fails, say 1/K; whether K is odd.
///
/// For k = 2 it is a coin of 1/2! − 1/3! + 1/4! − … = 1/e, and for k = 3 of 1 − 1/3 + 1/(3·4) − … =
/// 2/e.
fn alternating(draws: &mut impl Draws, mut k: u64) -> bool {
    while draws.toss(1, k) {
        k += 1;
    }
    k % 2 == 1
}

/// True with probability e^(−num/den).
///
/// Canonne, Kamath and Steinke (2020), Algorithm 1. Below 1: toss γ/1, γ/2, … up to the first that
/// fails, say γ/K; P(K > k) = γ^k/k!, so K is odd with probability 1 − γ + γ²/2! − … = e^−γ. From 1
/// on: one coin of 1/e for each whole part, up to the first that fails.
fn exponential(draws: &mut impl Draws, num: u128, den: u64) -> bool {
    let (whole, rest) = match u64::try_from(num) {
        Ok(num) => (u128::from(num / den), num % den),
        Err(_) => (
            num / u128::from(den),
            (num % u128::from(den)) as u64, // below den
        ),
    };
    for _ in 0..whole {
        if !alternating(draws, 2) {
            return false;
        }
    }
    let mut k = 1;
    while draws.toss(rest, den) && draws.toss(1, k) {
        k += 1;
    }
    k % 2 == 1
}

#[cfg(test)]
pub(super) mod tree {
    //! Walks the tree of all that a sampler can draw.

    use std::collections::BTreeMap;
    use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

    use super::Draws;

    /// One path: the branch that was taken, and of how many, at every fork.
    #[derive(Default)]
    pub struct Path {
        /// (choice, weight of each choice in turn).
        forks: Vec<(usize, Vec<f64>)>,
        at: usize,
        weight: f64,
        least: f64,
    }

    struct TooUnlikely;

    impl Path {
        fn fork(&mut self, weights: impl FnOnce() -> Vec<f64>) -> usize {
            if self.at == self.forks.len() {
                self.forks.push((0, weights()));
            }
            let (choice, weights) = &self.forks[self.at];
            self.at += 1;
            self.weight *= weights[*choice];
            if self.weight < self.least {
                resume_unwind(Box::new(TooUnlikely));
            }
            *choice
        }

        fn coin(&mut self, p: f64) -> bool {
            self.fork(|| vec![p, 1.0 - p]) == 0
        }
    }

    /// The coins of e are walked whole in tests of their own; here each is one fork.
    impl Draws for Path {
        fn below(&mut self, bound: u64) -> u64 {
            self.fork(|| vec![1.0 / bound as f64; bound as usize]) as u64
        }
        fn toss(&mut self, num: u64, den: u64) -> bool {
            if num == 0 || num >= den {
                return num != 0;
            }
            self.coin(num as f64 / den as f64)
        }
        fn decays(&mut self, num: u128, den: u64) -> bool {
            num == 0 || self.coin((-(num as f64) / den as f64).exp())
        }
        fn one_over_e(&mut self) -> bool {
            self.coin((-1f64).exp())
        }
        fn two_over_e(&mut self) -> bool {
            self.coin(2.0 * (-1f64).exp())
        }
    }

    /// The probability of every outcome over all paths that are not less likely than `least`, and
    /// that of all other paths together: P(x) lies between the first and the sum of both.
    pub fn walk<T: Ord>(least: f64, draw: impl Fn(&mut Path) -> T) -> (BTreeMap<T, f64>, f64) {
        let (mut found, mut missed) = (BTreeMap::new(), 0.0);
        let mut path = Path {
            least,
            ..Path::default()
        };
        loop {
            (path.at, path.weight) = (0, 1.0);
            match catch_unwind(AssertUnwindSafe(|| draw(&mut path))) {
                Ok(outcome) => *found.entry(outcome).or_insert(0.0) += path.weight,
                Err(stopped) if stopped.is::<TooUnlikely>() => missed += path.weight,
                Err(other) => resume_unwind(other),
            }
            path.forks.truncate(path.at);
            loop {
                let Some((choice, weights)) = path.forks.last_mut() else {
                    return (found, missed);
                };
                *choice += 1;
                if *choice < weights.len() {
                    break;
                }
                path.forks.pop();
            }
        }
    }

    /// Asserts that every probability fits between its bounds.
    pub fn assert_law<T: Ord + Copy + std::fmt::Debug>(
        (found, missed): (BTreeMap<T, f64>, f64),
        most: f64,
        law: impl Fn(T) -> f64,
    ) {
        const ROUNDING: f64 = 1e-12;
        assert!(missed < most, "{missed} is left open");
        let total: f64 = found.values().sum();
        assert!((total + missed - 1.0).abs() < 1e-9, "{total} + {missed}");
        for (&outcome, &seen) in &found {
            let p = law(outcome);
            assert!(seen <= p + ROUNDING, "{outcome:?}: {seen} > {p}");
            assert!(
                p <= seen + missed + ROUNDING,
                "{outcome:?}: {p} > {seen} + {missed}"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::tree::{assert_law, walk};
    use super::*;

    /// Feeds fixed words.
    struct Fixed(Vec<u64>);

    impl rand_core::TryRng for Fixed {
        type Error = Infallible;
        fn try_next_u32(&mut self) -> Result<u32, Infallible> {
            unreachable!("the coins draw words")
        }
        fn try_next_u64(&mut self) -> Result<u64, Infallible> {
            Ok(self.0.pop().expect("enough words"))
        }
        fn try_fill_bytes(&mut self, _: &mut [u8]) -> Result<(), Infallible> {
            unreachable!("the coins draw words")
        }
    }

    /// The words that give x are those with x·2^64 ≤ word·bound < (x+1)·2^64, less the first ones
    /// where 2^64 mod bound words are too many: counted at the ends of each stretch.
    #[test]
    fn equally_many_words_give_each_integer() {
        for bound in [1u64, 2, 3, 7, 1000, (1 << 62) - 1, (1 << 63) + 1, u64::MAX] {
            let share = ((1u128 << 64) / u128::from(bound)) as u64; // 0 for bound 1: all words
            for x in [0, 1, bound / 3, bound - 1] {
                if bound == 1 || x >= bound {
                    continue;
                }
                let last = ((u128::from(x + 1) << 64).div_ceil(u128::from(bound)) - 1) as u64;
                // Exactly `share` words up to the last of the stretch give x; the one before them,
                // where there is one, is drawn again or belongs to x − 1.
                let give = |word: u64| Fixed(vec![77, word]).below(bound);
                let again = Fixed(vec![77]).below(bound);
                for word in [last, last - (share - 1)] {
                    assert_eq!(give(word), x, "{bound} {x} {word}");
                }
                if let Some(before) = (last - (share - 1)).checked_sub(1) {
                    let got = give(before);
                    let redrawn = (u128::from(before) * u128::from(bound)) >> 64 == u128::from(x);
                    assert_eq!(got, if redrawn { again } else { x - 1 }, "{bound} {x}");
                }
            }
        }
    }

    #[test]
    fn rational_coins() {
        for (num, den) in [(0, 1), (1, 3), (5, 7), (3, 3)] {
            let mut heads = 0;
            for x in 0..den {
                let word = ((u128::from(2 * x + 1) << 63) / u128::from(den)) as u64;
                heads += u64::from(Fixed(vec![word]).toss(num, den));
            }
            assert_eq!(heads, num);
        }
    }

    #[test]
    fn coins_of_e_have_their_probability() {
        let coin = |p: f64| move |heads: bool| if heads { p } else { 1.0 - p };
        let e = std::f64::consts::E;
        assert_law(walk(1e-15, |d| alternating(d, 2)), 1e-12, coin(1.0 / e));
        assert_law(walk(1e-15, |d| alternating(d, 3)), 1e-12, coin(2.0 / e));
        for (num, den) in [(0, 1), (1, 1), (1, 3), (2, 3), (7, 3), (99, 100), (5, 1)] {
            let law = coin((-(num as f64) / den as f64).exp());
            assert_law(walk(1e-13, |d| exponential(d, num, den)), 1e-9, law);
        }
    }

    #[test]
    fn exponents_past_64_bits() {
        let mut draws = Fixed(vec![0, u64::MAX - 1]);
        // 2^100/2^62 = 2^38 whole parts: the first coin of 1/e that fails ends it.
        assert!(!exponential(&mut draws, 1 << 100, 1 << 62));
    }
}
