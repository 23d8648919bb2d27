//! The masked union: contributions in Z_q, hidden by pairwise masks that cancel in the sum.
//!
//! For each pair a silo contributes a uniform element of Z_q if it holds the pair; otherwise, with
//! probability b, a uniform element; otherwise 0. It adds the mask that it shares with each silo
//! after it, and subtracts the one that it shares with each silo before it. A uniform element
//! absorbs whatever is added to it, so the sum over all silos is uniform wherever anyone
//! contributed one, and 0 elsewhere.
//!
//! Work is cut into blocks with a stream of their own, so that blocks run in parallel. What is drawn
//! and when depends on the streams alone: bits of a silo only ever select between drawn values.

use chacha20::ChaCha20Rng;
use rand_core::{Rng, SeedableRng};
use rayon::prelude::*;
use thiserror::Error;

use crate::dp::bernoulli::{Probability, lanes};
use crate::graph::simd::Level;

/// Pairs in a block, a multiple of 64.
const BLOCK: usize = 1 << 16;
/// Stream elements drawn at once.
const DRAWN: usize = 1024;
/// The streams of contributions: elements, and coins.
const ELEMENTS: u64 = 0;
const COINS: u64 = 1 << 63;
/// Eight bytes of a word: the lowest bit of each, and all but the highest.
const ONES: u64 = u64::MAX / 255;
const LOW: u64 = ONES * 127;

/// What a vector of elements can be refused for.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum MaskedError {
    /// The modulus is outside 2 … 65536.
    #[error("the modulus must be from 2 to 65536")]
    Modulus,
    /// A vector is not one element a pair.
    #[error("expected {expected} bytes, got {found}")]
    Length {
        /// Bytes of one element a pair.
        expected: usize,
        /// Bytes that came.
        found: usize,
    },
    /// An element is not below the modulus.
    #[error("element {index} is not below the modulus")]
    Element {
        /// Its position in the chunk.
        index: usize,
    },
}

/// The ring Z_q, 2 ≤ q ≤ 65536.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ring {
    q: u32,
}

impl Ring {
    /// Z_q.
    pub fn new(q: u32) -> Result<Self, MaskedError> {
        match (2..=1 << 16).contains(&q) {
            true => Ok(Self { q }),
            false => Err(MaskedError::Modulus),
        }
    }

    /// Bytes of an element on the wire: one, or two above q = 256.
    pub fn width(self) -> usize {
        if self.q <= 256 { 1 } else { 2 }
    }

    /// Refuses bytes that are not one element a pair, however many pairs are named.
    fn check_length(self, pairs: usize, bytes: &[u8]) -> Result<(), MaskedError> {
        let (expected, found) = (pairs.saturating_mul(self.width()), bytes.len());
        match expected == found {
            true => Ok(()),
            false => Err(MaskedError::Length { expected, found }),
        }
    }

    fn check(self, pairs: usize, bytes: &[u8]) -> Result<(), MaskedError> {
        self.check_length(pairs, bytes)?;
        match self.width() {
            1 => self.below::<u8>(bytes),
            _ => self.below::<u16>(bytes),
        }
    }

    fn below<E: Element>(self, bytes: &[u8]) -> Result<(), MaskedError> {
        let last = E::low(self.q - 1);
        let elements = || bytes.chunks_exact(E::BYTES).map(E::read);
        // The largest first, which is one pass in vectors; then, if need be, where it is.
        let largest = elements().fold(E::default(), |most, x| if x > most { x } else { most });
        if largest <= last {
            return Ok(());
        }
        let index = elements().position(|x| x > last).unwrap_or_default();
        Err(MaskedError::Element { index })
    }
}

/// An element as it travels: one byte, or two. q itself wraps to 0 where it is 2^8 or 2^16, and
/// every operation here is right for that too.
trait Element: Copy + Default + PartialOrd + Send + Sync {
    /// Bytes of an element.
    const BYTES: usize;
    /// The low bits.
    fn low(wide: u32) -> Self;
    fn wide(self) -> u32;
    fn minus(self, other: Self) -> Self;
    fn plus(self, other: Self) -> Self;
    fn read(bytes: &[u8]) -> Self;
    fn write(self, bytes: &mut [u8]);
}

macro_rules! element {
    ($type:ty) => {
        impl Element for $type {
            const BYTES: usize = size_of::<$type>();
            #[inline(always)]
            fn low(wide: u32) -> Self {
                wide as $type
            }
            #[inline(always)]
            fn wide(self) -> u32 {
                u32::from(self)
            }
            #[inline(always)]
            fn minus(self, other: Self) -> Self {
                self.wrapping_sub(other)
            }
            #[inline(always)]
            fn plus(self, other: Self) -> Self {
                self.wrapping_add(other)
            }
            #[inline(always)]
            fn read(bytes: &[u8]) -> Self {
                let (own, _) = bytes.as_chunks();
                <$type>::from_le_bytes(own[0])
            }
            #[inline(always)]
            fn write(self, bytes: &mut [u8]) {
                bytes.copy_from_slice(&self.to_le_bytes());
            }
        }
    };
}
element!(u8);
element!(u16);

/// A seed that this silo shares with another, and whether its masks are added or subtracted.
pub struct SharedSeed {
    /// The seed of this chunk.
    pub seed: [u8; 32],
    /// Added by the silo that comes first in the roster, subtracted by the other.
    pub add: bool,
}

/// The masked contributions of one silo for one chunk, as they travel, written to `wire`.
///
/// `bits` has a bit a pair; `own` is the silo's secret seed for this chunk.
pub fn contribute(
    ring: Ring,
    b: &Probability,
    bits: &[u64],
    wire: &mut [u8],
    own: [u8; 32],
    shared: &[SharedSeed],
) {
    wire.par_chunks_mut(BLOCK * ring.width())
        .zip(bits.par_chunks(BLOCK / 64))
        .enumerate()
        .for_each(|(block, (wire, bits))| match ring.width() {
            1 => contribute_block::<u8>(ring, b, bits, wire, (&own, block as u64), shared),
            _ => contribute_block::<u16>(ring, b, bits, wire, (&own, block as u64), shared),
        });
}

fn contribute_block<E: Element>(
    ring: Ring,
    b: &Probability,
    bits: &[u64],
    wire: &mut [u8],
    (own, block): (&[u8; 32], u64),
    shared: &[SharedSeed],
) {
    let level = Level::best();
    let mut sums = Vec::with_capacity(wire.len() / E::BYTES);
    sums.resize(wire.len() / E::BYTES, E::default());
    let mut position = 0;
    uniform(
        level,
        ring,
        own,
        ELEMENTS + block,
        sums.len(),
        |drawn: &[E]| {
            sums[position..position + drawn.len()].copy_from_slice(drawn);
            position += drawn.len();
        },
    );
    keep_where_chosen(level, &mut sums, bits, b, stream(own, COINS + block));
    for peer in shared {
        let mut position = 0;
        uniform(level, ring, &peer.seed, block, sums.len(), |masks| {
            let sums = &mut sums[position..position + masks.len()];
            level.run(
                #[inline(always)]
                || add(ring, sums, masks, peer.add),
            );
            position += masks.len();
        });
    }
    for (bytes, sum) in wire.chunks_exact_mut(E::BYTES).zip(&sums) {
        sum.write(bytes);
    }
}

/// Adds a silo's vector to the running sum of a chunk, which is one of elements.
pub fn accumulate(
    ring: Ring,
    pairs: usize,
    total: &mut [u8],
    vector: &[u8],
) -> Result<(), MaskedError> {
    let level = Level::best();
    level.run(
        #[inline(always)]
        || ring.check(pairs, vector),
    )?;
    ring.check_length(pairs, total)?;
    match ring.width() {
        1 => level.run(
            #[inline(always)]
            || accumulate_by::<u8>(ring, total, vector),
        ),
        _ => level.run(
            #[inline(always)]
            || accumulate_by::<u16>(ring, total, vector),
        ),
    }
    Ok(())
}

#[inline(always)]
fn accumulate_by<E: Element>(ring: Ring, total: &mut [u8], vector: &[u8]) {
    let q = E::low(ring.q);
    let vectors = vector.chunks_exact(E::BYTES);
    for (t, v) in total.chunks_exact_mut(E::BYTES).zip(vectors) {
        less(q, E::read(t), q.minus(E::read(v))).write(t);
    }
}

/// y = 1 where the sum over all silos is not zero, a bit a pair.
pub fn open(ring: Ring, pairs: usize, total: &[u8]) -> Result<Vec<u64>, MaskedError> {
    ring.check_length(pairs, total)?;
    let mut bits = vec![0u64; pairs.div_ceil(64)];
    match ring.width() {
        1 => open_by::<u8>(&mut bits, total),
        _ => open_by::<u16>(&mut bits, total),
    }
    Ok(bits)
}

fn open_by<E: Element>(bits: &mut [u64], total: &[u8]) {
    for (word, elements) in bits.iter_mut().zip(total.chunks(64 * E::BYTES)) {
        let mut bytes = [0u8; 64];
        if E::BYTES == 1 {
            bytes[..elements.len()].copy_from_slice(elements);
        } else {
            for (byte, element) in bytes.iter_mut().zip(elements.chunks_exact(E::BYTES)) {
                *byte = u8::from(E::read(element).wide() != 0);
            }
        }
        *word = nonzero(&bytes);
    }
}

/// Bit i says whether byte i is not zero.
fn nonzero(bytes: &[u8; 64]) -> u64 {
    let (eights, _) = bytes.as_chunks::<8>();
    let gathered = eights.iter().map(|&eight| {
        let x = u64::from_le_bytes(eight);
        let ones = ((((x & LOW) + LOW) | x) >> 7) & ONES;
        // Each product puts one byte's bit at its place in the top byte; no two of them meet.
        (ones.wrapping_mul(0x0102_0408_1020_4080) >> 56) as u8
    });
    let mut word = [0u8; 8];
    for (byte, found) in word.iter_mut().zip(gathered) {
        *byte = found;
    }
    u64::from_le_bytes(word)
}

fn stream(seed: &[u8; 32], number: u64) -> ChaCha20Rng {
    let mut rng = ChaCha20Rng::from_seed(*seed);
    rng.set_stream(number);
    rng
}

/// Hands out `count` uniform elements, some at a time.
fn uniform<E: Element>(
    level: Level,
    ring: Ring,
    seed: &[u8; 32],
    number: u64,
    count: usize,
    take: impl FnMut(&[E]),
) {
    let mut rng = stream(seed, number);
    uniform_by(level, ring.q, count, |bytes| rng.fill_bytes(bytes), take);
}

/// A stream word is refused where it would make the remainder uneven. What is refused decides what
/// is read next, and says nothing about the words that are kept: those are uniform whatever it is.
fn uniform_by<E: Element>(
    level: Level,
    q: u32,
    count: usize,
    mut draw: impl FnMut(&mut [u8]),
    mut take: impl FnMut(&[E]),
) {
    let range = 1u32 << (8 * E::BYTES);
    // The largest word that is kept.
    let last = E::low(range / q * q - 1);
    let mut drawn = [0u8; 2 * DRAWN];
    let drawn = &mut drawn[..DRAWN * E::BYTES];
    let mut words = [E::default(); DRAWN];
    let (mut remainders, mut kept) = (words, words);
    let mut left = count;
    while left > 0 {
        draw(drawn);
        let found = level.run(
            #[inline(always)]
            || {
                for (word, bytes) in words.iter_mut().zip(drawn.chunks_exact(E::BYTES)) {
                    *word = E::read(bytes);
                }
                reduce(q, &words, &mut remainders);
                keep(last, &words, &remainders, &mut kept)
            },
        );
        let step = found.min(left);
        take(&kept[..step]);
        left -= step;
    }
}

/// The remainders of words divided by q.
#[inline(always)]
fn reduce<E: Element>(q: u32, words: &[E; DRAWN], remainders: &mut [E; DRAWN]) {
    // word·multiplier >> shift is word/q for every word: the multiplier is at most q/2^shift too
    // large, and word·q < 2^shift.
    if E::BYTES == 1 {
        let multiplier = (1u32 << 16).div_ceil(q);
        for (remainder, word) in remainders.iter_mut().zip(words) {
            let word = word.wide() as u16;
            let quotient = ((u32::from(word) * multiplier) >> 16) as u16;
            *remainder = E::low(u32::from(
                word.wrapping_sub(quotient.wrapping_mul(q as u16)),
            ));
        }
    } else {
        let multiplier = (1u64 << 32).div_ceil(u64::from(q));
        for (remainder, word) in remainders.iter_mut().zip(words) {
            let quotient = ((u64::from(word.wide()) * multiplier) >> 32) as u32;
            *remainder = E::low(word.wide() - quotient * q);
        }
    }
}

/// Copies the remainders of words up to `last` to `kept`, in order; how many there are.
#[inline(always)]
fn keep<E: Element>(
    last: E,
    words: &[E; DRAWN],
    remainders: &[E; DRAWN],
    kept: &mut [E; DRAWN],
) -> usize {
    const GROUP: usize = 8;
    let mut refused = [0u8; DRAWN];
    for (refused, &word) in refused.iter_mut().zip(words) {
        *refused = u8::from(word > last);
    }
    let mut count = 0;
    let groups = refused.as_chunks::<GROUP>().0.iter();
    for (refused, group) in groups.zip(remainders.as_chunks::<GROUP>().0) {
        if u64::from_le_bytes(*refused) == 0 {
            kept[count..count + GROUP].copy_from_slice(group);
            count += GROUP;
        } else {
            // A refused remainder is overwritten by the next one.
            for (refused, remainder) in refused.iter().zip(group) {
                kept[count] = *remainder;
                count += 1 - usize::from(*refused);
            }
        }
    }
    count
}

/// Sets to zero what is neither held nor chosen by a coin.
fn keep_where_chosen<E: Element>(
    level: Level,
    elements: &mut [E],
    bits: &[u64],
    b: &Probability,
    mut coins: ChaCha20Rng,
) {
    let (words, rest) = elements.as_chunks_mut::<64>();
    for (elements, held) in words.iter_mut().zip(bits) {
        let chosen = held | lanes(&mut coins, b);
        level.run(
            #[inline(always)]
            || choose(elements, chosen),
        );
    }
    if let Some(held) = bits.get(words.len()) {
        let mut padded = [E::default(); 64];
        padded[..rest.len()].copy_from_slice(rest);
        choose(&mut padded, held | lanes(&mut coins, b));
        rest.copy_from_slice(&padded[..rest.len()]);
    }
}

/// Sets to zero each element whose bit is.
#[inline(always)]
fn choose<E: Element>(elements: &mut [E; 64], chosen: u64) {
    let (eights, _) = elements.as_chunks_mut::<8>();
    for (eight, chosen) in eights.iter_mut().zip(chosen.to_le_bytes()) {
        // Byte i of the product has bit i alone, which is then spread over the byte.
        let alone = (u64::from(chosen) * ONES) & 0x8040_2010_0804_0201;
        let ones = ((alone + LOW) >> 7) & ONES;
        for (element, mask) in eight.iter_mut().zip((ones * 255).to_le_bytes()) {
            *element = E::low(element.wide() & i32::from(mask as i8) as u32);
        }
    }
}

/// a − b, plus q where that is below 0; a < q and b ≤ q.
#[inline(always)]
fn less<E: Element>(q: E, a: E, b: E) -> E {
    let (below, back) = (a.minus(b), if a < b { q } else { E::default() });
    below.plus(back)
}

#[inline(always)]
fn add<E: Element>(ring: Ring, sums: &mut [E], masks: &[E], plus: bool) {
    let q = E::low(ring.q);
    if plus {
        for (sum, &mask) in sums.iter_mut().zip(masks) {
            *sum = less(q, *sum, q.minus(mask));
        }
    } else {
        for (sum, &mask) in sums.iter_mut().zip(masks) {
            *sum = less(q, *sum, mask);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(ring: Ring, wire: &[u8]) -> Vec<u32> {
        match ring.width() {
            1 => wire.iter().map(|&x| u32::from(x)).collect(),
            _ => wire.chunks(2).map(|x| u16::read(x).into()).collect(),
        }
    }

    /// Every word of the stream's range, in order, some at a time: each element equally often.
    fn all_words<E: Element>(level: Level, q: u32) -> Vec<u32> {
        let range = 1u32 << (8 * E::BYTES);
        let (mut next, mut found) = (0u32, vec![]);
        let draw = |bytes: &mut [u8]| {
            for two in bytes.chunks_mut(E::BYTES) {
                E::low(next).write(two);
                next += 1;
            }
        };
        let take = |drawn: &[E]| found.extend(drawn.iter().map(|x| x.wide()));
        uniform_by(level, q, (range / q * q) as usize, draw, take);
        found
    }

    #[test]
    fn remainders_are_even_and_in_order() {
        for level in Level::available() {
            for q in 2..=256 {
                let expected: Vec<u32> = (0..256 / q * q).map(|word| word % q).collect();
                assert_eq!(all_words::<u8>(level, q), expected, "{q}");
            }
            for q in [257u32, 1000, 22_026, 65_535, 65_536] {
                let expected: Vec<u32> = (0..(1 << 16) / q * q).map(|word| word % q).collect();
                assert_eq!(all_words::<u16>(level, q), expected, "{q}");
            }
        }
    }

    #[test]
    fn sums_and_differences_of_all_elements() {
        for q in 2..=256u32 {
            let ring = Ring::new(q).unwrap();
            for a in 0..q {
                for b in 0..q {
                    let mut sums = [a as u8; 2];
                    add(ring, &mut sums[..1], &[b as u8], true);
                    add(ring, &mut sums[1..], &[b as u8], false);
                    assert_eq!(sums.map(u32::from), [(a + b) % q, (a + q - b) % q]);
                }
            }
        }
        for q in [257u32, 65_535, 65_536] {
            let ring = Ring::new(q).unwrap();
            for (a, b) in [
                (0, 0),
                (0, q - 1),
                (q - 1, 0),
                (q - 1, q - 1),
                (1, q - 1),
                (q / 2, 5),
            ] {
                let mut sums = [a as u16; 2];
                add(ring, &mut sums[..1], &[b as u16], true);
                add(ring, &mut sums[1..], &[b as u16], false);
                assert_eq!(sums.map(u32::from), [(a + b) % q, (a + q - b) % q]);
            }
        }
    }

    #[test]
    fn bits_spread_and_gather() {
        for word in [0, 1, u64::MAX, 0x8000_0000_0000_0001, 0x0123_4567_89ab_cdef] {
            for value in [1u8, 127, 128, 255] {
                let mut elements = [value; 64];
                choose(&mut elements, word);
                for (i, element) in elements.iter().enumerate() {
                    assert_eq!(*element, value * (word >> i & 1) as u8);
                }
                assert_eq!(nonzero(&elements), word);
            }
        }
    }

    fn pair_seed(i: usize, j: usize) -> [u8; 32] {
        [(16 * i.min(j) + i.max(j) + 1) as u8; 32]
    }

    fn vector(
        ring: Ring,
        b: &Probability,
        m: usize,
        i: usize,
        bits: &[u64],
        pairs: usize,
    ) -> Vec<u8> {
        let shared: Vec<SharedSeed> = (0..m)
            .filter(|&j| j != i)
            .map(|j| SharedSeed {
                seed: pair_seed(i, j),
                add: i < j,
            })
            .collect();
        let mut wire = vec![0u8; pairs * ring.width()];
        contribute(ring, b, bits, &mut wire, [200 + i as u8; 32], &shared);
        wire
    }

    #[test]
    fn masks_cancel_and_only_held_pairs_show() {
        let never = Probability::ratio(0, 1).unwrap();
        for q in [2, 3, 21, 256, 257, 65_536] {
            let ring = Ring::new(q).unwrap();
            for pairs in [1, 64, 100, BLOCK, BLOCK + 1, 2 * BLOCK + 77] {
                let m = 4;
                let mut total = vec![0u8; pairs * ring.width()];
                let mut held = vec![0u64; pairs.div_ceil(64)];
                for i in 0..m {
                    let mut bits = vec![0u64; pairs.div_ceil(64)];
                    for k in (i * 7..pairs).step_by(29 + i) {
                        bits[k / 64] |= 1 << (k % 64);
                        held[k / 64] |= 1 << (k % 64);
                    }
                    let sent = vector(ring, &never, m, i, &bits, pairs);
                    accumulate(ring, pairs, &mut total, &sent).unwrap();
                }
                let y = open(ring, pairs, &total).unwrap();
                // Not held, not shown; held, shown but for one in q.
                assert!(y.iter().zip(&held).all(|(y, h)| y & !h == 0));
                let (shown, all): (u32, u32) =
                    y.iter().zip(&held).fold((0, 0), |(s, a), (y, h)| {
                        (s + y.count_ones(), a + h.count_ones())
                    });
                if pairs > BLOCK {
                    let expected = f64::from(all) * (1.0 - 1.0 / f64::from(q));
                    assert!((f64::from(shown) - expected).abs() < 7.0 * expected.sqrt() + 1.0);
                }
            }
        }
    }

    #[test]
    fn a_single_vector_is_uniform_whatever_the_bits() {
        let never = Probability::ratio(0, 1).unwrap();
        let (q, pairs) = (21, 4 * BLOCK);
        let ring = Ring::new(q).unwrap();
        for word in [0u64, u64::MAX] {
            let bits = vec![word; pairs / 64];
            let mut counts = vec![0u32; q as usize];
            for x in decode(ring, &vector(ring, &never, 2, 0, &bits, pairs)) {
                counts[x as usize] += 1;
            }
            let mean = pairs as f64 / f64::from(q);
            let chi: f64 = counts
                .iter()
                .map(|&c| (f64::from(c) - mean).powi(2) / mean)
                .sum();
            assert!(
                chi < 85.0,
                "chi-square with 20 degrees of freedom, 1e-9: {chi}"
            );
        }
    }

    #[test]
    fn wrong_vectors_change_nothing() {
        let ring = Ring::new(21).unwrap();
        let mut total = vec![20u8; 10];
        let mut bad = vec![0u8; 10];
        bad[9] = 21;
        let refused = accumulate(ring, 10, &mut total, &bad);
        assert_eq!(refused, Err(MaskedError::Element { index: 9 }));
        let refused = accumulate(ring, 10, &mut total, &bad[..9]);
        assert_eq!(
            refused,
            Err(MaskedError::Length {
                expected: 10,
                found: 9
            })
        );
        assert_eq!(total, vec![20u8; 10]);
        assert_eq!(Ring::new(1), Err(MaskedError::Modulus));
        assert_eq!(Ring::new(65_537), Err(MaskedError::Modulus));
    }
}
