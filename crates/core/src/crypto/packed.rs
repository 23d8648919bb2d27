//! Elements of Z_q as they travel: base-q digits, as many as fit a 32-bit word.
//!
//! A word holds d = ⌊log_q 2^32⌋ elements, the first as its lowest digit; words are little-endian.
//! At q = 21 these are seven, 0.571 bytes each. There is one encoding of every vector: a word of q^d
//! or more is refused, and so is a last word with digits past the end.
//!
//! Digits are taken from the top, by multiplication alone: after the highest one, what is left is
//! a fraction of q^(d−1), held in 32 bits; q times the fraction has the next digit above the point.
//! Nothing here depends on the elements but the values themselves.

use thiserror::Error;

use crate::graph::simd::Level;

/// Bytes of a word.
pub const WORD: usize = 4;
/// Words that are worked on together.
const LANES: usize = 8;
/// Words that are packed together.
const PACKED: usize = 32;
const LOW: u64 = u32::MAX as u64;

/// What a packed vector can be refused for.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum PackedError {
    /// The modulus is outside 2 … 65536.
    #[error("the modulus must be from 2 to 65536")]
    Modulus,
    /// A vector has not the bytes of one element per pair.
    #[error("expected {expected} bytes, got {found}")]
    Length {
        /// Bytes of one element per pair.
        expected: usize,
        /// Bytes that came.
        found: usize,
    },
    /// A word has more than its digits.
    #[error("word {index} is not made of digits below the modulus")]
    Word {
        /// Its position in the vector.
        index: usize,
    },
}

/// The ring Z_q, 2 ≤ q ≤ 65536, and how its elements are packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ring {
    q: u32,
    digits: usize,
    /// q^(d−1), what the highest digit counts.
    top: u32,
    /// ⌊2^32 / top⌋.
    inverse: u32,
    /// ⌈2^(32 + shift) / top⌉, which fits 32 bits.
    scale: u32,
    shift: u32,
}

impl Ring {
    /// Z_q.
    pub fn new(q: u32) -> Result<Self, PackedError> {
        if !(2..=1 << 16).contains(&q) {
            return Err(PackedError::Modulus);
        }
        let (mut top, mut digits) = (1u64, 1);
        while top * u64::from(q) * u64::from(q) <= 1 << 32 {
            (top, digits) = (top * u64::from(q), digits + 1);
        }
        // Two digits always fit, so top is 2 or more.
        let shift = (top - 1).ilog2();
        Ok(Self {
            q,
            digits,
            top: top as u32,
            inverse: ((1u64 << 32) / top) as u32,
            scale: (1u64 << (32 + shift)).div_ceil(top) as u32,
            shift,
        })
    }

    /// The modulus.
    pub fn q(self) -> u32 {
        self.q
    }

    /// Elements in a word.
    pub fn digits(self) -> usize {
        self.digits
    }

    /// Words of one element per pair.
    pub fn words(self, pairs: usize) -> usize {
        pairs.div_ceil(self.digits)
    }

    /// Bytes of one element per pair.
    pub fn bytes(self, pairs: usize) -> usize {
        self.words(pairs).saturating_mul(WORD)
    }

    fn check_length(self, pairs: usize, bytes: &[u8]) -> Result<(), PackedError> {
        let (expected, found) = (self.bytes(pairs), bytes.len());
        match expected == found {
            true => Ok(()),
            false => Err(PackedError::Length { expected, found }),
        }
    }

    /// Refuses all bytes that are not the one encoding of one element per pair, however many pairs
    /// are named.
    pub fn check(self, pairs: usize, bytes: &[u8]) -> Result<(), PackedError> {
        self.check_length(pairs, bytes)?;
        let (words, _) = bytes.as_chunks();
        let words = || words.iter().map(|&word| u32::from_le_bytes(word));
        // The largest first, which is one pass in vectors; then, if need be, where it is.
        let most = self.largest(self.digits);
        let largest = Level::best().run(
            #[inline(always)]
            || words().fold(0, u32::max),
        );
        if largest > most {
            let index = words().position(|word| word > most).unwrap_or_default();
            return Err(PackedError::Word { index });
        }
        let digits = (pairs + self.digits - 1) % self.digits + 1;
        if words().next_back() > Some(self.largest(digits)) {
            let index = words().len() - 1;
            return Err(PackedError::Word { index });
        }
        Ok(())
    }

    /// The largest number of so many digits, at most d.
    fn largest(self, digits: usize) -> u32 {
        (u64::from(self.q).pow(digits as u32) - 1) as u32
    }

    /// The highest digits, and what is left as fractions of `top`.
    #[inline(always)]
    fn split(self, words: &[u64; LANES]) -> Digits {
        let (top, scale) = (u64::from(self.top), u64::from(self.scale));
        let (mut high, mut fraction) = ([0; LANES], [0; LANES]);
        for i in 0..LANES {
            // One too small at most.
            let quotient = (words[i] * u64::from(self.inverse)) >> 32;
            let rest = words[i] - quotient * top;
            let more = mask(rest, top);
            high[i] = quotient + (more & 1);
            // In units of 2^-32 a fraction must lie in [rest, rest + 1)/top, an interval of length
            // 2^32/top ≥ q. The scale is rounded up, which adds less than 2, or nothing where top
            // is a power of two; rounding down and adding 1 adds at most 1.
            let rest = (rest - (more & top)) & LOW;
            fraction[i] = ((rest * scale) >> self.shift) + 1;
        }
        Digits { high, fraction }
    }
}

/// All ones where a ≥ b, without a branch; both are below 2^63.
#[inline(always)]
fn mask(a: u64, b: u64) -> u64 {
    if a.cast_signed() >= b.cast_signed() {
        u64::MAX
    } else {
        0
    }
}

/// Words of [`WORD`] bytes, wide.
#[inline(always)]
fn read(words: &[[u8; WORD]; LANES]) -> [u64; LANES] {
    words.map(|word| u32::from_le_bytes(word).into())
}

/// The digits of some words, from the top.
struct Digits {
    high: [u64; LANES],
    fraction: [u64; LANES],
}

impl Digits {
    /// Goes on to the next digits.
    #[inline(always)]
    fn next(&mut self, q: u32) {
        for (high, fraction) in self.high.iter_mut().zip(&mut self.fraction) {
            *fraction = (*fraction & LOW) * u64::from(q);
            *high = *fraction >> 32;
        }
    }
}

/// Packs elements that are given digit by digit: first the lowest digits of all words, then the
/// next ones, and so on.
pub fn pack(ring: Ring, elements: &[u16], packed: &mut [u8]) {
    let (words, _) = packed.as_chunks_mut::<WORD>();
    let planes = elements.chunks_exact(words.len().max(1)).rev();
    Level::best().run(
        #[inline(always)]
        || {
            let (wholes, rest) = words.as_chunks_mut::<PACKED>();
            for (n, words) in wholes.iter_mut().enumerate() {
                let mut sums = [0u32; PACKED];
                for digits in planes.clone() {
                    let digits: &[u16; PACKED] = digits[n * PACKED..].first_chunk().expect("whole");
                    for i in 0..PACKED {
                        sums[i] = sums[i].wrapping_mul(ring.q).wrapping_add(digits[i].into());
                    }
                }
                *words = sums.map(u32::to_le_bytes);
            }
            let start = wholes.len() * PACKED;
            for (i, word) in rest.iter_mut().enumerate() {
                let next = |above: u32, digits: &[u16]| {
                    let digit = digits[start + i];
                    above.wrapping_mul(ring.q).wrapping_add(digit.into())
                };
                *word = planes.clone().fold(0, next).to_le_bytes();
            }
        },
    );
}

/// Adds a vector to a sum, both packed, element by element in Z_q. A vector that is refused changes
/// nothing.
pub fn add(ring: Ring, pairs: usize, total: &mut [u8], vector: &[u8]) -> Result<(), PackedError> {
    ring.check(pairs, vector)?;
    ring.check_length(pairs, total)?;
    let (words, _) = total.as_chunks_mut::<WORD>();
    Level::best().run(
        #[inline(always)]
        || {
            let (wholes, rest) = words.as_chunks_mut::<LANES>();
            let (others, other_rest) = vector.as_chunks::<WORD>().0.as_chunks::<LANES>();
            for (sums, terms) in wholes.iter_mut().zip(others) {
                add_lanes(ring, sums, terms);
            }
            let (mut sums, mut terms) = ([[0; WORD]; LANES], [[0; WORD]; LANES]);
            sums[..rest.len()].copy_from_slice(rest);
            terms[..rest.len()].copy_from_slice(other_rest);
            add_lanes(ring, &mut sums, &terms);
            rest.copy_from_slice(&sums[..rest.len()]);
        },
    );
    Ok(())
}

#[inline(always)]
fn add_lanes(ring: Ring, sums: &mut [[u8; WORD]; LANES], terms: &[[u8; WORD]; LANES]) {
    let (left, right) = (read(sums), read(terms));
    let (mut a, mut b) = (ring.split(&left), ring.split(&right));
    let mut sum: [u64; LANES] = std::array::from_fn(|i| left[i] + right[i]);
    // Where two digits reach q, it is q too much, and one too much for the digit above.
    let mut above = u64::from(ring.top) * u64::from(ring.q);
    for left in (0..ring.digits).rev() {
        for (sum, (a, b)) in sum.iter_mut().zip(a.high.iter().zip(&b.high)) {
            *sum -= mask(a + b, ring.q.into()) & above;
        }
        if left > 0 {
            a.next(ring.q);
            b.next(ring.q);
            above /= u64::from(ring.q);
        }
    }
    *sums = sum.map(|word| (word as u32).to_le_bytes());
}

/// Which elements are not zero, one bit per pair.
pub fn nonzero(ring: Ring, pairs: usize, packed: &[u8]) -> Result<Vec<u64>, PackedError> {
    ring.check(pairs, packed)?;
    let (words, _) = packed.as_chunks();
    // The bits of as many words as fit 64 bits are joined first.
    let mut bits = Level::best().run(
        #[inline(always)]
        || match ring.digits {
            ..=8 => joined::<8>(ring, words),
            9..=16 => joined::<4>(ring, words),
            _ => joined::<2>(ring, words),
        },
    );
    bits.truncate(pairs.div_ceil(64));
    Ok(bits)
}

/// The bits of all words, those of `TOGETHER` words at a time, as bits of 64-bit words.
#[inline(always)]
fn joined<const TOGETHER: usize>(ring: Ring, words: &[[u8; WORD]]) -> Vec<u64> {
    let mut bits = Vec::with_capacity((words.len() + LANES) * ring.digits / 64 + 1);
    let (mut word, mut filled) = (0u64, 0);
    let (wholes, rest) = words.as_chunks();
    let mut last = [[0; WORD]; LANES];
    last[..rest.len()].copy_from_slice(rest);
    for words in wholes.iter().chain([&last]) {
        for groups in nonzero_lanes(ring, words).as_chunks::<TOGETHER>().0 {
            let mut more = 0;
            for (i, group) in groups.iter().enumerate() {
                more |= group << (i * ring.digits);
            }
            word |= more << filled;
            filled += TOGETHER * ring.digits;
            if filled >= 64 {
                bits.push(word);
                filled -= 64;
                // What did not fit; nothing, if all of it came to the beginning of a word.
                let fitted = (TOGETHER * ring.digits - filled) as u32;
                word = more.checked_shr(fitted).unwrap_or_default();
            }
        }
    }
    bits.push(word);
    bits
}

/// Bit j of a group says whether digit j of its word is not zero.
#[inline(always)]
fn nonzero_lanes(ring: Ring, words: &[[u8; WORD]; LANES]) -> [u64; LANES] {
    let (mut groups, mut digits) = ([0; LANES], ring.split(&read(words)));
    for left in (0..ring.digits).rev() {
        for (group, &digit) in groups.iter_mut().zip(&digits.high) {
            *group |= mask(digit, 1) & (1 << left);
        }
        if left > 0 {
            digits.next(ring.q);
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packed(words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    /// The digits of a word, by division.
    fn digits(ring: Ring, word: u32) -> Vec<u32> {
        let places = (0..ring.digits as u32).map(|j| u64::from(ring.q).pow(j));
        places
            .map(|place| (u64::from(word) / place % u64::from(ring.q)) as u32)
            .collect()
    }

    /// Words where a digit or a carry is about to change, and some between.
    fn words(ring: Ring) -> Vec<u32> {
        let last = ring.largest(ring.digits);
        let mut found = vec![0, 1, last / 2, last - 1, last];
        for j in 1..ring.digits {
            let place = ring.largest(j);
            for times in [1, 2, ring.q / 2, ring.q - 1] {
                let edge = (u64::from(place) + 1) * u64::from(times);
                found.extend([edge - 1, edge, edge + 1].map(|x| x.min(last.into()) as u32));
            }
        }
        let mut mixed = 1u64;
        for _ in 0..40 {
            mixed = mixed
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            found.push((((mixed >> 32) * (u64::from(last) + 1)) >> 32) as u32);
        }
        found
    }

    #[test]
    fn as_many_digits_as_fit() {
        let digits = |q| Ring::new(q).unwrap().digits();
        let known = [
            (2, 32),
            (3, 20),
            (4, 16),
            (21, 7),
            (23, 7),
            (24, 6),
            (256, 4),
            (257, 3),
        ];
        for (q, expected) in known {
            assert_eq!(digits(q), expected, "{q}");
        }
        for q in 2..=1 << 16 {
            let (d, q) = (digits(q) as u32, u128::from(q));
            assert!(
                d >= 2 && q.pow(d) <= 1 << 32 && q.pow(d + 1) > 1 << 32,
                "{q}"
            );
        }
        let ring = Ring::new(21).unwrap();
        assert_eq!([0, 1, 7, 8].map(|pairs| ring.bytes(pairs)), [0, 4, 4, 8]);
    }

    /// Every modulus: what is read of a word by multiplication is what division gives.
    #[test]
    fn digits_sums_and_zeros_of_every_modulus() {
        for q in 2..=1u32 << 16 {
            let ring = Ring::new(q).unwrap();
            let one = words(ring);
            let mut other = one.clone();
            other.rotate_left(7);
            let pairs = one.len() * ring.digits;
            let mut total = packed(&one);
            let bits = nonzero(ring, pairs, &total).unwrap();
            add(ring, pairs, &mut total, &packed(&other)).unwrap();
            let sums = total.as_chunks().0.iter().map(|&x| u32::from_le_bytes(x));
            for (k, ((a, b), sum)) in one.iter().zip(&other).zip(sums).enumerate() {
                let (a, b) = (digits(ring, *a), digits(ring, *b));
                for (j, found) in digits(ring, sum).into_iter().enumerate() {
                    assert_eq!(found, (a[j] + b[j]) % q, "{q}");
                    let place = k * ring.digits + j;
                    assert_eq!(bits[place / 64] >> (place % 64) & 1 == 1, a[j] != 0, "{q}");
                }
            }
        }
    }

    #[test]
    fn planes_become_words() {
        for q in [2, 3, 21, 256, 40_000, 65_536] {
            let ring = Ring::new(q).unwrap();
            let element = |word: usize, digit: usize| ((word * 31 + digit * 7) as u32 % q) as u16;
            let planes = (0..ring.digits).flat_map(|j| (0..11).map(move |w| element(w, j)));
            let mut wire = vec![0xff; 11 * WORD];
            pack(ring, &planes.collect::<Vec<_>>(), &mut wire);
            ring.check(11 * ring.digits, &wire).unwrap();
            for (w, &word) in wire.as_chunks().0.iter().enumerate() {
                let found = digits(ring, u32::from_le_bytes(word));
                let expected = (0..ring.digits).map(|j| element(w, j).into());
                assert_eq!(found, expected.collect::<Vec<u32>>());
            }
        }
    }

    #[test]
    fn wrong_vectors_change_nothing() {
        let ring = Ring::new(21).unwrap();
        let whole = 21u32.pow(7);
        let before = packed(&[whole - 1, 20]);
        let refused = |words: &[u32], pairs| {
            let mut total = before.clone();
            let found = add(ring, pairs, &mut total, &packed(words));
            assert_eq!(total, before);
            found
        };
        let word = |index| Err(PackedError::Word { index });
        // One more than seven digits can say, and the largest word of all.
        assert_eq!(refused(&[whole, 0], 8), word(0));
        assert_eq!(refused(&[0, whole], 14), word(1));
        assert_eq!(refused(&[u32::MAX, 0], 8), word(0));
        // The eighth pair is the only digit of the second word.
        assert_eq!(refused(&[0, 21], 8), word(1));
        assert_eq!(refused(&[0, 21 * 21], 9), word(1));
        let length = |expected, found| Err(PackedError::Length { expected, found });
        assert_eq!(refused(&[0], 8), length(8, 4));
        assert_eq!(refused(&[0, 0], 15), length(12, 8));
        assert_eq!(Ring::new(1), Err(PackedError::Modulus));
        assert_eq!(Ring::new(65_537), Err(PackedError::Modulus));
    }
}
