//! Elements of Z_q as they travel: base-q digits, as many as fit a 32-bit word.
//!
//! A word holds d = ⌊log_q 2^32⌋ elements, the first as its lowest digit; words are little-endian.
//! At q = 21 these are seven, 0.571 bytes each. There is one encoding of every vector: a word of q^d
//! or more is refused, and so is a last word with digits past the end.
//!
//! To be added, a word is divided into two or three parts of at most h = ⌊log_q 2^16⌋ digits. A part
//! becomes a fraction of q^h in 16 bits, like the words from which masks are drawn: its digits are
//! taken from the top, by multiplication alone, from many words at once. Nothing here depends on the
//! elements but the values themselves.

use std::array;

use thiserror::Error;

use super::simd::{self, LANES};
use crate::graph::simd::Level;

/// Bytes of a word.
pub const WORD: usize = 4;
/// Vectors that are added together; so many wait for each other at most.
const TOGETHER: usize = simd::STREAMS;

/// One number for each of some words.
type Lanes<T> = [T; LANES];

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
    pub(super) q: u32,
    digits: usize,
    /// h, the digits of a part but the highest, which may have fewer.
    pub(super) part: usize,
    /// q^h.
    pub(super) unit: u32,
    /// ⌊2^32 / unit⌋.
    pub(super) inverse: u32,
    /// The power of q by which a fraction is past the digits that the highest part does not have.
    pub(super) past: u32,
}

impl Ring {
    /// Z_q.
    pub fn new(q: u32) -> Result<Self, PackedError> {
        if !(2..=1 << 16).contains(&q) {
            return Err(PackedError::Modulus);
        }
        let (part, digits) = ((1u32 << 16).ilog(q), (1u64 << 32).ilog(q.into()));
        let (unit, missing) = (q.pow(part), digits.next_multiple_of(part) - digits);
        Ok(Self {
            q,
            digits: digits as usize,
            part: part as usize,
            unit,
            inverse: ((1u64 << 32) / u64::from(unit)) as u32,
            past: q.pow(missing),
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

    /// Quotients and remainders by the unit.
    #[inline(always)]
    fn divide(self, numbers: &Lanes<u32>) -> (Lanes<u32>, Lanes<u32>) {
        let (mut quotients, mut rests) = ([0; LANES], [0; LANES]);
        for i in 0..LANES {
            // One too small at most: the inverse lacks less than 1, and the number is below 2^32.
            let quotient = ((u64::from(numbers[i]) * u64::from(self.inverse)) >> 32) as u32;
            let rest = numbers[i] - quotient * self.unit;
            let more = u32::from(rest >= self.unit);
            quotients[i] = quotient + more;
            rests[i] = rest - (self.unit & 0u32.wrapping_sub(more));
        }
        (quotients, rests)
    }

    /// The least x with part / unit ≤ x / 2^16. Since the unit is at most 2^16, x / 2^16 is below
    /// (part + 1) / unit: x begins with the digits of the part.
    #[inline(always)]
    fn fraction(self, part: u16) -> u16 {
        let [part, unit] = [part.into(), self.unit];
        let found = (part * self.inverse_above()) >> 16;
        (found + u32::from(found * unit < part << 16)) as u16
    }

    /// ⌈2^32 / unit⌉, which makes the quotient of a part too large by less than 1.
    pub(super) fn inverse_above(self) -> u32 {
        self.inverse + u32::from(!self.unit.is_power_of_two())
    }

    /// The words of these digits, from the highest on.
    #[inline(always)]
    fn words_of<'a>(self, digits: impl Iterator<Item = &'a Lanes<u16>>) -> Lanes<[u8; WORD]> {
        let mut words = [0u32; LANES];
        for digits in digits {
            for i in 0..LANES {
                words[i] = words[i].wrapping_mul(self.q).wrapping_add(digits[i].into());
            }
        }
        words.map(u32::to_le_bytes)
    }

    /// Adds the digits of some words to sums: the lowest ones, the next ones, and so on.
    #[inline(always)]
    fn add(self, factors: &Lanes<u16>, words: &[[u8; WORD]; LANES], sums: &mut [Lanes<u16>]) {
        let mut above = words.map(u32::from_le_bytes);
        let parts = self.digits.div_ceil(self.part);
        for (number, sums) in sums.chunks_mut(self.part).enumerate() {
            // What is above the others is the highest part.
            let mut rests = above;
            if number + 1 < parts {
                (above, rests) = self.divide(&above);
            }
            let part = rests.map(|rest| rest as u16);
            if self.part == 1 {
                self.add_digit(&part, &mut sums[0]);
                continue;
            }
            let mut fractions = part.map(|part| self.fraction(part));
            if number + 1 == parts {
                fractions = fractions.map(|fraction| fraction.wrapping_mul(self.past as u16));
            }
            for sums in sums.iter_mut().rev() {
                self.add_digit(&advance(&mut fractions, factors), sums);
            }
        }
    }

    #[inline(always)]
    fn add_digit(self, digits: &Lanes<u16>, sums: &mut Lanes<u16>) {
        let q = self.q as u16;
        for i in 0..LANES {
            sums[i] = less(q, sums[i], q.wrapping_sub(digits[i]));
        }
    }
}

/// The highest digits of fractions, which go on to the next ones.
#[inline(always)]
fn advance(fractions: &mut Lanes<u16>, factors: &Lanes<u16>) -> Lanes<u16> {
    let mut digits = [0; LANES];
    for i in 0..LANES {
        digits[i] = ((u32::from(fractions[i]) * u32::from(factors[i])) >> 16) as u16;
        fractions[i] = fractions[i].wrapping_mul(factors[i]);
    }
    digits
}

/// a − b, plus q where that is below 0; a < q and b ≤ q. q itself is 0 where it is 2^16, and the
/// result is right for that too.
#[inline(always)]
pub(super) fn less(q: u16, a: u16, b: u16) -> u16 {
    let below = 0u16.wrapping_sub(u16::from(a < b));
    a.wrapping_sub(b).wrapping_add(q & below)
}

/// Packs elements that are given digit by digit: first the lowest digits of all words, then the
/// next ones, and so on.
pub fn pack(ring: Ring, elements: &[u16], packed: &mut [u8]) {
    let (words, _) = packed.as_chunks_mut::<WORD>();
    let planes = elements.chunks_exact(words.len().max(1)).rev();
    Level::best().run(
        #[inline(always)]
        || {
            let (wholes, rest) = words.as_chunks_mut::<LANES>();
            for (n, words) in wholes.iter_mut().enumerate() {
                *words = ring.words_of(planes.clone().map(
                    #[inline(always)]
                    |digits| digits[n * LANES..].first_chunk().expect("whole"),
                ));
            }
            let start = wholes.len() * LANES;
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

/// The sum of vectors, element by element in Z_q, of which a few are added at once.
pub struct Sum<V> {
    level: Level,
    ring: Ring,
    pairs: usize,
    /// The sum of all vectors that wait no more; empty before there are any.
    total: Vec<u8>,
    waiting: Vec<V>,
}

impl<V: AsRef<[u8]>> Sum<V> {
    /// The sum of nothing, one element per pair.
    pub fn new(ring: Ring, pairs: usize) -> Self {
        Self {
            level: Level::best(),
            ring,
            pairs,
            total: vec![],
            waiting: vec![],
        }
    }

    /// Adds a vector, as it travels. One that is refused changes nothing.
    pub fn add(&mut self, vector: V) -> Result<(), PackedError> {
        self.ring.check(self.pairs, vector.as_ref())?;
        if self.waiting.len() == TOGETHER {
            self.total = self.packed();
            self.waiting.clear();
        }
        self.waiting.push(vector);
        Ok(())
    }

    /// The sum, as it would travel.
    pub fn packed(&self) -> Vec<u8> {
        let mut packed = vec![0; self.ring.bytes(self.pairs)];
        let mut blocks = packed.as_chunks_mut::<WORD>().0.chunks_mut(LANES);
        self.each(
            #[inline(always)]
            |sums| {
                let block = blocks.next().expect("as many as there are");
                let words = self.ring.words_of(sums.iter().rev());
                block.copy_from_slice(&words[..block.len()]);
            },
        );
        packed
    }

    /// Which elements of the sum are not zero, one bit per pair.
    pub fn nonzero(&self) -> Vec<u64> {
        let digits = self.ring.digits;
        let room = self.ring.words(self.pairs).next_multiple_of(LANES) * digits;
        let mut bits = Bits::with_room(room);
        self.each(
            #[inline(always)]
            |sums| {
                let mut groups = [0u32; LANES];
                for (place, digits) in sums.iter().enumerate() {
                    for i in 0..LANES {
                        groups[i] |= u32::from(digits[i] != 0) << place;
                    }
                }
                bits.push_groups(digits, &groups);
            },
        );
        let mut words = bits.end();
        words.truncate(self.pairs.div_ceil(64));
        words
    }

    /// Takes the sums of some words after the others: all lowest digits, the next ones, and so on.
    #[inline(always)]
    fn each(&self, mut take: impl FnMut(&[Lanes<u16>])) {
        let ring = self.ring;
        let total = Some(&self.total[..]).filter(|total| !total.is_empty());
        let vectors = total.into_iter().chain(self.waiting.iter().map(V::as_ref));
        let vectors: Vec<&[[u8; WORD]]> = vectors.map(|vector| vector.as_chunks().0).collect();
        // From memory, so that both factors of a product have 16 bits: vectors multiply these.
        let factors = std::hint::black_box([ring.q as u16; LANES]);
        let mut sums = [[0; LANES]; 32];
        let (sums, level) = (&mut sums[..ring.digits], self.level);
        level.run(
            #[inline(always)]
            || {
                for start in (0..ring.words(self.pairs)).step_by(LANES) {
                    sums.fill([0; LANES]);
                    for vectors in vectors.chunks(TOGETHER) {
                        let mut last = [[[0; WORD]; LANES]; TOGETHER];
                        let mut blocks = [&[[0; WORD]; LANES]; TOGETHER];
                        for (block, (last, vector)) in
                            blocks.iter_mut().zip(last.iter_mut().zip(vectors))
                        {
                            let words = &vector[start..];
                            *block = words.first_chunk().unwrap_or_else(|| {
                                last[..words.len()].copy_from_slice(words);
                                last
                            });
                        }
                        let blocks = &blocks[..vectors.len()];
                        if !simd::add_digits(level, &ring, blocks, sums) {
                            for words in blocks {
                                ring.add(&factors, words, sums);
                            }
                        }
                    }
                    take(sums);
                }
            },
        );
    }
}

/// Bits that are put one behind the other.
struct Bits {
    words: Vec<u64>,
    word: u64,
    filled: usize,
}

impl Bits {
    fn with_room(bits: usize) -> Self {
        Self {
            words: Vec::with_capacity(bits / 64 + 1),
            word: 0,
            filled: 0,
        }
    }

    /// Puts groups of so many bits, at most 32, behind what is there. As many as fit 64 bits are
    /// joined before.
    #[inline(always)]
    fn push_groups(&mut self, bits: usize, groups: &Lanes<u32>) {
        let two: [u64; LANES / 2] = joined(bits, &groups.map(u64::from));
        if bits > 16 {
            return self.push(2 * bits, &two);
        }
        let four: [u64; LANES / 4] = joined(2 * bits, &two);
        if bits > 8 {
            return self.push(4 * bits, &four);
        }
        self.push(8 * bits, &joined::<8, 4>(4 * bits, &four));
    }

    #[inline(always)]
    fn push(&mut self, bits: usize, groups: &[u64]) {
        for group in groups {
            self.word |= group << self.filled;
            self.filled += bits;
            if self.filled >= 64 {
                self.words.push(self.word);
                self.filled -= 64;
                // What did not fit; nothing, if all of it came to the beginning of a word.
                let fitted = (bits - self.filled) as u32;
                self.word = group.checked_shr(fitted).unwrap_or_default();
            }
        }
    }

    fn end(mut self) -> Vec<u64> {
        self.words.push(self.word);
        self.words
    }
}

/// Two groups in the place of each: the second above the first, which has so many bits.
#[inline(always)]
fn joined<const FROM: usize, const TO: usize>(bits: usize, groups: &[u64; FROM]) -> [u64; TO] {
    array::from_fn(|i| groups[2 * i] | groups[2 * i + 1] << bits)
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

    /// Every modulus, and all levels: what is read of a word by multiplication is what division gives,
    /// and as many vectors as are added at once, or a total and others, make the same sums.
    #[test]
    fn digits_sums_and_zeros_of_every_modulus() {
        for q in 2..=1u32 << 16 {
            let ring = Ring::new(q).unwrap();
            let one = words(ring);
            let mut other = one.clone();
            other.rotate_left(7);
            let pairs = one.len() * ring.digits;
            // One vector, two, four, and two that are added to the sum of four.
            let counts = if q <= 300 { 1..=6u32 } else { 1..=2 };
            let mut made = vec![];
            for level in Level::available() {
                let mut total = Sum::new(ring, pairs);
                total.level = level;
                for count in counts.clone() {
                    let next = if count % 2 == 1 { &one } else { &other };
                    total.add(packed(next)).unwrap();
                    made.push((count, total.packed(), total.nonzero()));
                }
            }
            for (count, packed, bits) in made {
                let (ours, others) = (count.div_ceil(2), count / 2);
                let sums = packed.as_chunks().0.iter().map(|&x| u32::from_le_bytes(x));
                for (k, ((a, b), sum)) in one.iter().zip(&other).zip(sums).enumerate() {
                    let (a, b) = (digits(ring, *a), digits(ring, *b));
                    for (j, found) in digits(ring, sum).into_iter().enumerate() {
                        assert_eq!(found, (ours * a[j] + others * b[j]) % q, "{q} {count}");
                        let place = k * ring.digits + j;
                        assert_eq!(bits[place / 64] >> (place % 64) & 1 == 1, found != 0, "{q}");
                    }
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
        let refused = |words: &[u32], pairs| {
            let (mut total, mut before) = (Sum::new(ring, pairs), vec![0; ring.bytes(pairs)]);
            for _ in 0..2 {
                let found = total.add(packed(words));
                assert!(found.is_err());
                assert_eq!(total.packed(), before);
                before[0] = 19;
                total.add(before.clone()).unwrap();
            }
            total.add(packed(words))
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
