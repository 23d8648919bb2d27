//! Exact Bernoulli bits of any rational probability, 64 lanes at a time.
//!
//! A lane compares a uniform real U, whose binary digits it draws one at a time, with the digits
//! of p, and is decided at the first that differs: P(U < p) = p exactly, for every rational p.
//! Half of the undecided lanes are decided by each random word, so 64 lanes cost about 8 words.
//! Which words are drawn depends on the random words alone, never on what the bits are used for.

use rand_core::Rng;

use crate::graph::simd::Level;

const TABLE: usize = 256;
/// The longest numerator or denominator, in 64-bit limbs.
const MOST_LIMBS: usize = 256;

/// The binary digits of a probability num/den. 1 is read as 0.111…
#[derive(Clone, Debug)]
pub struct Probability {
    digits: [u64; TABLE / 64],
    remainder: Vec<u64>,
    den: Vec<u64>,
    one: bool,
}

impl Probability {
    /// num/den in little-endian limbs, or `None` unless 0 ≤ num ≤ den, 0 < den < 2^16383.
    pub fn new(num: &[u64], den: &[u64]) -> Option<Self> {
        let limbs = significant(den).len() + 1; // room to double
        if !(2..=MOST_LIMBS).contains(&limbs) || significant(num).len() >= limbs {
            return None;
        }
        let widen = |x: &[u64]| {
            let mut wide = significant(x).to_vec();
            wide.resize(limbs, 0);
            wide
        };
        let (num, den) = (widen(num), widen(den));
        if less(&den, &num) {
            return None;
        }
        let mut probability = Self {
            digits: [0; TABLE / 64],
            one: num == den,
            remainder: num,
            den,
        };
        for i in 0..TABLE {
            let digit = probability.next();
            probability.digits[i / 64] |= u64::from(digit) << (i % 64);
        }
        Some(probability)
    }

    /// num/den for numbers that fit into one limb.
    pub fn ratio(num: u64, den: u64) -> Option<Self> {
        Self::new(&[num], &[den])
    }

    /// Long division, one binary digit a step.
    fn next(&mut self) -> bool {
        if self.one {
            return true;
        }
        double(&mut self.remainder);
        let digit = !less(&self.remainder, &self.den);
        if digit {
            subtract(&mut self.remainder, &self.den);
        }
        digit
    }

    /// Digit i spread over 64 lanes. Past the table (probability below 2^-248) it divides on.
    #[inline]
    fn digit(&self, i: usize) -> u64 {
        if i < TABLE {
            return 0u64.wrapping_sub(self.digits[i / 64] >> (i % 64) & 1);
        }
        self.divided(i)
    }

    #[cold]
    fn divided(&self, i: usize) -> u64 {
        let mut tail = self.clone();
        let last = (TABLE..=i).map(|_| tail.next()).last();
        0u64.wrapping_sub(u64::from(last == Some(true)))
    }
}

fn significant(x: &[u64]) -> &[u64] {
    let len = x.iter().rposition(|&limb| limb != 0).map_or(0, |i| i + 1);
    &x[..len]
}

fn less(a: &[u64], b: &[u64]) -> bool {
    a.iter().rev().lt(b.iter().rev())
}

fn double(x: &mut [u64]) {
    let mut carry = 0;
    for limb in x {
        (*limb, carry) = (*limb << 1 | carry, *limb >> 63);
    }
}

fn subtract(a: &mut [u64], b: &[u64]) {
    let mut borrow = false;
    for (x, &y) in a.iter_mut().zip(b) {
        let (d, first) = x.overflowing_sub(y);
        let (d, second) = d.overflowing_sub(u64::from(borrow));
        (*x, borrow) = (d, first | second);
    }
}

/// 64 exact Bernoulli(p) bits.
#[inline]
pub fn lanes(rng: &mut impl Rng, p: &Probability) -> u64 {
    let (mut below, mut open) = (0u64, u64::MAX);
    let mut i = 0;
    while open != 0 {
        let (word, digit) = (rng.next_u64(), p.digit(i));
        below |= open & digit & !word;
        open &= !(word ^ digit);
        i += 1;
    }
    below
}

/// Digits that all lanes of [`fill`] draw before it looks which are decided: all but one in 256.
const TOGETHER: usize = 8;
/// Words of lanes that draw together.
const GROUP: usize = 16;

/// Exact Bernoulli(p) bits, as many as there are; `draw` gives uniform words.
///
/// As [`lanes`], in another order: the first digits of 1024 lanes together, which vectors do at
/// once, then what is left word by word.
pub fn fill(level: Level, p: &Probability, bits: &mut [u64], mut draw: impl FnMut(&mut [u64])) {
    let mut words = [[0u64; GROUP]; TOGETHER];
    let digits: [u64; TOGETHER] = std::array::from_fn(|i| p.digit(i));
    for bits in bits.chunks_mut(GROUP) {
        draw(words.as_flattened_mut());
        let (mut below, mut open) = ([0u64; GROUP], [u64::MAX; GROUP]);
        level.run(
            #[inline(always)]
            || {
                for lane in 0..GROUP {
                    let (mut under, mut left) = (0, u64::MAX);
                    for (words, &digit) in words.iter().zip(&digits) {
                        under |= left & digit & !words[lane];
                        left &= !(words[lane] ^ digit);
                    }
                    (below[lane], open[lane]) = (under, left);
                }
            },
        );
        let mut undecided = 0u32;
        for (i, (bits, &below)) in bits.iter_mut().zip(&below).enumerate() {
            *bits = below;
            undecided |= u32::from(open[i] != 0) << i;
        }
        while undecided != 0 {
            let word = undecided.trailing_zeros() as usize;
            undecided &= undecided - 1;
            let (bits, mut open, mut i) = (&mut bits[word], open[word], TOGETHER);
            while open != 0 {
                let (mut drawn, digit) = ([0], p.digit(i));
                draw(&mut drawn);
                *bits |= open & digit & !drawn[0];
                open &= !(drawn[0] ^ digit);
                i += 1;
            }
        }
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
            let p = Probability::ratio(num, den).unwrap();
            let mut below = 0u64;
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
                assert_eq!(ones, lanes(&mut Fixed(words.iter()), &p));
                below += u64::from(ones.count_ones());
            }
            // U = j/2^D exactly: U < p for ceil(p·2^D) of the j.
            assert_eq!(below, (num << D).div_ceil(den), "{num}/{den}");
        }
    }

    #[test]
    fn digits_past_the_table_go_on_dividing() {
        let third = Probability::ratio(1, 3).unwrap();
        for i in 0..2 * TABLE {
            assert_eq!(third.digit(i), if i % 2 == 1 { u64::MAX } else { 0 });
        }
        let one = Probability::ratio(7, 7).unwrap();
        assert_eq!(one.digit(3 * TABLE), u64::MAX);
    }

    /// The same digits give the same bits as lanes one word at a time, in the order of `fill`.
    #[test]
    fn many_words_are_compared_as_one_is() {
        let mut state = 1u64;
        let drawn: Vec<u64> = (0..40 * GROUP)
            .map(|_| {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(3);
                (state ^ state >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9)
            })
            .collect();
        for level in Level::available() {
            for (num, den) in [(0, 1), (1, 1), (1, 61), (20, 21), (37, 1024), (1, 2)] {
                let p = Probability::ratio(num, den).unwrap();
                let mut next = drawn.iter();
                let mut bits = [0u64; GROUP];
                let mut later = vec![];
                fill(level, &p, &mut bits, |words| {
                    words.fill_with(|| *next.next().expect("enough words"));
                    later.extend(words.iter().filter(|_| words.len() == 1));
                });
                let mut later = later.into_iter();
                for (i, found) in bits.into_iter().enumerate() {
                    // The first digits of word i, then all that are left: `lanes` takes what it
                    // needs, which is as many as `fill` took for this word, or fewer than eight.
                    let first = (0..TOGETHER).map(|digit| drawn[digit * GROUP + i]);
                    let rest: Vec<u64> = later.clone().collect();
                    let words: Vec<u64> = first.chain(rest).collect();
                    let mut fixed = Fixed(words.iter());
                    assert_eq!(lanes(&mut fixed, &p), found);
                    let used = words.len() - fixed.0.len();
                    later
                        .by_ref()
                        .take(used.saturating_sub(TOGETHER))
                        .for_each(drop);
                }
                assert_eq!(later.len(), 0);
            }
        }
    }

    #[test]
    fn wide_fractions_are_exact() {
        // (2^300 − 1)/2^300: three hundred ones, then zeros.
        let mut num = vec![u64::MAX; 5];
        num[4] = (1 << 44) - 1;
        let mut den = vec![0; 5];
        den[4] = 1 << 44;
        let p = Probability::new(&num, &den).unwrap();
        for i in 0..400 {
            assert_eq!(p.digit(i), if i < 300 { u64::MAX } else { 0 }, "{i}");
        }
        // 2^200/(3·2^200) is a third.
        let p = Probability::new(&[0, 0, 0, 256], &[0, 0, 0, 768]).unwrap();
        assert_eq!(p.digits, Probability::ratio(1, 3).unwrap().digits);
    }

    #[test]
    fn nonsense_is_refused() {
        assert!(Probability::ratio(1, 0).is_none());
        assert!(Probability::ratio(2, 1).is_none());
        assert!(Probability::new(&[], &[]).is_none());
        assert!(Probability::new(&[0, 1], &[7]).is_none());
        assert!(Probability::new(&[1], &[1; 256]).is_none());
        assert!(Probability::new(&[0, 0, 0], &[7, 0, 0]).is_some());
    }
}
