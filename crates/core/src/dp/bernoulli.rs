//! Exact Bernoulli bits of any rational probability, 64 lanes at a time.
//!
//! A lane compares a uniform real U, whose binary digits it draws one at a time, with the digits
//! of p, and is decided at the first that differs: P(U < p) = p exactly, for every rational p.
//! Half of the undecided lanes are decided by each random word, so 64 lanes cost about 8 words.
//! Which words are drawn depends on the random words alone, never on what the bits are used for.

use rand_core::Rng;

const TABLE: usize = 256;

/// The binary digits of a probability num/den. 1 is read as 0.111…
#[derive(Clone, Debug)]
pub struct Probability {
    digits: [u64; TABLE / 64],
    remainder: u128,
    den: u128,
    one: bool,
}

impl Probability {
    /// num/den, or `None` unless 0 ≤ num ≤ den, 0 < den ≤ 2^126.
    pub fn new(num: u128, den: u128) -> Option<Self> {
        if den == 0 || den > 1 << 126 || num > den {
            return None;
        }
        let mut probability = Self {
            digits: [0; TABLE / 64],
            remainder: num,
            den,
            one: num == den,
        };
        for i in 0..TABLE {
            let digit = probability.next();
            probability.digits[i / 64] |= u64::from(digit) << (i % 64);
        }
        Some(probability)
    }

    /// Long division, one binary digit a step.
    fn next(&mut self) -> bool {
        if self.one {
            return true;
        }
        self.remainder *= 2;
        let digit = self.remainder >= self.den;
        if digit {
            self.remainder -= self.den;
        }
        digit
    }

    /// Digit i spread over 64 lanes. Past the table (probability below 2^-248) it divides on.
    #[inline]
    fn digit(&self, i: usize) -> u64 {
        if i < TABLE {
            return 0u64.wrapping_sub(self.digits[i / 64] >> (i % 64) & 1);
        }
        let mut tail = self.clone();
        let last = (TABLE..=i).map(|_| tail.next()).last();
        0u64.wrapping_sub(u64::from(last == Some(true)))
    }
}

/// 64 comparisons of uniform reals with two probabilities at once: in each lane, U < p and U < r
/// for the same U. Each result alone is an exact Bernoulli word; together they are coupled, so a
/// caller uses one of the two per lane.
#[inline]
pub fn coupled(rng: &mut impl Rng, p: &Probability, r: &Probability) -> (u64, u64) {
    let (mut below_p, mut below_r) = (0u64, 0u64);
    let (mut open_p, mut open_r) = (u64::MAX, u64::MAX);
    let mut i = 0;
    while open_p | open_r != 0 {
        let word = rng.next_u64();
        let (digit_p, digit_r) = (p.digit(i), r.digit(i));
        below_p |= open_p & digit_p & !word;
        below_r |= open_r & digit_r & !word;
        open_p &= !(word ^ digit_p);
        open_r &= !(word ^ digit_r);
        i += 1;
    }
    (below_p, below_r)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;

    /// Feeds fixed words, so that every path of the comparison can be enumerated.
    struct Fixed<'a>(std::slice::Iter<'a, u64>);

    impl rand_core::TryRng for Fixed<'_> {
        type Error = Infallible;
        fn try_next_u32(&mut self) -> Result<u32, Infallible> {
            Ok(self.try_next_u64()? as u32)
        }
        fn try_next_u64(&mut self) -> Result<u64, Infallible> {
            Ok(*self.0.next().expect("the enumeration feeds enough digits"))
        }
        fn try_fill_bytes(&mut self, _: &mut [u8]) -> Result<(), Infallible> {
            unreachable!("the sampler draws words")
        }
    }

    /// All 2^D first digits, one a lane: lane count of ones = floor(p·2^D) once decided.
    #[test]
    fn every_digit_pattern_is_compared_exactly() {
        const D: u32 = 10;
        for (num, den) in [
            (0, 1),
            (1, 1),
            (1, 3),
            (20, 21),
            (37, 1024),
            (1, 1024),
            (5, 7),
        ] {
            let p = Probability::new(num, den).unwrap();
            let mut below = 0u128;
            for block in 0..(1u64 << D) / 64 {
                // Lane j of word i is digit i of the number block·64 + j; then zeros, then ones
                // decide what D digits leave open.
                let mut words: Vec<u64> = (0..D)
                    .map(|i| {
                        (0..64u64)
                            .map(|j| ((block * 64 + j) >> (D - 1 - i) & 1) << j)
                            .sum()
                    })
                    .collect();
                words.extend([0u64; 300]);
                words.extend([u64::MAX; 2]);
                let (ones, same) = coupled(&mut Fixed(words.iter()), &p, &p);
                assert_eq!(ones, same);
                below += u128::from(ones.count_ones());
            }
            // U = j/2^D exactly: U < p for ceil(p·2^D) of the j.
            let expected = (num << D).div_ceil(den);
            assert_eq!(below, expected, "{num}/{den}");
        }
    }

    #[test]
    fn digits_past_the_table_go_on_dividing() {
        let third = Probability::new(1, 3).unwrap();
        for i in 0..2 * TABLE {
            assert_eq!(third.digit(i), if i % 2 == 1 { u64::MAX } else { 0 });
        }
        let one = Probability::new(7, 7).unwrap();
        assert_eq!(one.digit(3 * TABLE), u64::MAX);
    }

    #[test]
    fn nonsense_is_refused() {
        assert!(Probability::new(1, 0).is_none());
        assert!(Probability::new(2, 1).is_none());
        assert!(Probability::new(1, (1 << 126) + 1).is_none());
    }
}
