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

/// Pairs in a block, a multiple of 64.
const BLOCK: usize = 1 << 16;
/// Stream elements drawn at once.
const DRAWN: usize = 1024;
/// The streams of contributions: elements, and coins.
const ELEMENTS: u64 = 0;
const COINS: u64 = 1 << 63;

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

    fn check(self, pairs: usize, bytes: &[u8]) -> Result<(), MaskedError> {
        let expected = pairs * self.width();
        let found = bytes.len();
        if expected != found {
            return Err(MaskedError::Length { expected, found });
        }
        let q = self.q;
        let bad = match self.width() {
            1 => bytes.iter().position(|&x| u32::from(x) >= q),
            _ => pairs_of(bytes).position(|x| u32::from(x) >= q),
        };
        bad.map_or(Ok(()), |index| Err(MaskedError::Element { index }))
    }
}

fn pairs_of(bytes: &[u8]) -> impl Iterator<Item = u16> {
    let (pairs, _) = bytes.as_chunks::<2>();
    pairs.iter().map(|x| u16::from_le_bytes(*x))
}

/// A seed that this silo shares with another, and whether its masks are added or subtracted.
pub struct SharedSeed {
    /// The seed of this chunk.
    pub seed: [u8; 32],
    /// Added by the silo that comes first in the roster, subtracted by the other.
    pub add: bool,
}

/// The masked contributions of one silo for one chunk, as they travel.
///
/// `bits` has a bit a pair; `own` is the silo's secret seed for this chunk.
pub fn contribute(
    ring: Ring,
    b: &Probability,
    bits: &[u64],
    pairs: usize,
    own: [u8; 32],
    shared: &[SharedSeed],
) -> Vec<u8> {
    let mut wire = vec![0u8; pairs * ring.width()];
    wire.par_chunks_mut(BLOCK * ring.width())
        .zip(bits.par_chunks(BLOCK / 64))
        .enumerate()
        .for_each(|(block, (wire, bits))| {
            let len = wire.len() / ring.width();
            let mut sums = vec![0u16; len];
            let mut masks = vec![0u16; len];
            let block = block as u64;
            uniform(ring, &own, ELEMENTS + block, &mut sums);
            keep_where_chosen(&mut sums, bits, b, stream(&own, COINS + block));
            for peer in shared {
                uniform(ring, &peer.seed, block, &mut masks);
                add(ring, &mut sums, &masks, peer.add);
            }
            encode(ring, &sums, wire);
        });
    wire
}

/// Adds a silo's vector to the running sum of a chunk.
pub fn accumulate(
    ring: Ring,
    pairs: usize,
    total: &mut [u8],
    vector: &[u8],
) -> Result<(), MaskedError> {
    ring.check(pairs, vector)?;
    ring.check(pairs, total)?;
    let q = ring.q;
    match ring.width() {
        1 => {
            for (t, v) in total.iter_mut().zip(vector) {
                let sum = u16::from(*t) + u16::from(*v);
                *t = (if u32::from(sum) >= q {
                    sum - q as u16
                } else {
                    sum
                }) as u8;
            }
        }
        _ => {
            let (total, _) = total.as_chunks_mut::<2>();
            for (t, v) in total.iter_mut().zip(pairs_of(vector)) {
                let sum = u32::from(u16::from_le_bytes(*t)) + u32::from(v);
                let sum = if sum >= q { sum - q } else { sum };
                *t = (sum as u16).to_le_bytes();
            }
        }
    }
    Ok(())
}

/// y = 1 where the sum over all silos is not zero, a bit a pair.
pub fn open(ring: Ring, pairs: usize, total: &[u8]) -> Result<Vec<u64>, MaskedError> {
    ring.check(pairs, total)?;
    let mut bits = vec![0u64; pairs.div_ceil(64)];
    let width = ring.width();
    for (word, elements) in bits.iter_mut().zip(total.chunks(64 * width)) {
        for (lane, element) in elements.chunks(width).enumerate() {
            *word |= u64::from(element.iter().any(|&byte| byte != 0)) << lane;
        }
    }
    Ok(bits)
}

fn stream(seed: &[u8; 32], number: u64) -> ChaCha20Rng {
    let mut rng = ChaCha20Rng::from_seed(*seed);
    rng.set_stream(number);
    rng
}

/// Uniform elements: a stream word is refused where it would make the remainder uneven.
fn uniform(ring: Ring, seed: &[u8; 32], number: u64, out: &mut [u16]) {
    let mut rng = stream(seed, number);
    if ring.width() == 1 {
        let mut drawn = [0u8; DRAWN];
        uniform_by(ring.q, 1 << 8, out, |words| {
            rng.fill_bytes(&mut drawn);
            for (word, byte) in words.iter_mut().zip(&drawn) {
                *word = u16::from(*byte);
            }
        });
    } else {
        let mut drawn = [0u8; 2 * DRAWN];
        uniform_by(ring.q, 1 << 16, out, |words| {
            rng.fill_bytes(&mut drawn);
            for (word, two) in words.iter_mut().zip(pairs_of(&drawn)) {
                *word = two;
            }
        });
    }
}

#[inline(always)]
fn uniform_by(q: u32, range: u32, out: &mut [u16], mut draw: impl FnMut(&mut [u16; DRAWN])) {
    // The largest word that is kept, and a multiplier that divides exactly: word·m >> 32 is
    // word/q for every word below 2^16.
    let last = (range / q * q - 1) as u16;
    let multiplier = (1u64 << 32).div_ceil(u64::from(q));
    let (mut words, mut kept) = ([0u16; DRAWN], [0u16; DRAWN]);
    let mut filled = 0;
    while filled < out.len() {
        draw(&mut words);
        // Without branches: a refused remainder is overwritten by the next one.
        let mut count = 0;
        for &word in &words {
            let quotient = (u64::from(word) * multiplier) >> 32;
            kept[count] = (u64::from(word) - quotient * u64::from(q)) as u16;
            count += usize::from(word <= last);
        }
        let step = count.min(out.len() - filled);
        out[filled..filled + step].copy_from_slice(&kept[..step]);
        filled += step;
    }
}

/// Sets to zero what is neither held nor chosen by a coin.
fn keep_where_chosen(elements: &mut [u16], bits: &[u64], b: &Probability, mut coins: ChaCha20Rng) {
    for (elements, held) in elements.chunks_mut(64).zip(bits) {
        let chosen = held | lanes(&mut coins, b);
        for (lane, element) in elements.iter_mut().enumerate() {
            *element &= 0u16.wrapping_sub((chosen >> lane & 1) as u16);
        }
    }
}

fn add(ring: Ring, sums: &mut [u16], masks: &[u16], plus: bool) {
    let q = ring.q;
    for (sum, &mask) in sums.iter_mut().zip(masks) {
        let mask = u32::from(mask);
        let shifted = u32::from(*sum) + if plus { mask } else { q - mask };
        *sum = (if shifted >= q { shifted - q } else { shifted }) as u16;
    }
}

fn encode(ring: Ring, sums: &[u16], wire: &mut [u8]) {
    if ring.width() == 1 {
        for (byte, sum) in wire.iter_mut().zip(sums) {
            *byte = *sum as u8;
        }
    } else {
        let (wire, _) = wire.as_chunks_mut::<2>();
        for (two, sum) in wire.iter_mut().zip(sums) {
            *two = sum.to_le_bytes();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(ring: Ring, wire: &[u8]) -> Vec<u32> {
        match ring.width() {
            1 => wire.iter().map(|&x| u32::from(x)).collect(),
            _ => pairs_of(wire).map(u32::from).collect(),
        }
    }

    /// Every word of the stream's range, once: each element comes out equally often.
    #[test]
    fn remainders_are_even() {
        for q in [2, 3, 5, 21, 128, 129, 255, 256] {
            let mut next = 0u16;
            let mut out = vec![0u16; (256 / q * q) as usize];
            uniform_by(q, 256, &mut out, |words| {
                for word in words {
                    *word = next % 256;
                    next += 1;
                }
            });
            let mut counts = vec![0; q as usize];
            for x in out {
                counts[usize::from(x)] += 1;
            }
            assert!(counts.iter().all(|&c| c == 256 / q), "{q}: {counts:?}");
        }
        for q in [257u32, 1000, 22_026, 65_535, 65_536] {
            let mut next = 0u32;
            let mut out = vec![0u16; ((1 << 16) / q * q) as usize];
            uniform_by(q, 1 << 16, &mut out, |words| {
                for word in words {
                    *word = next as u16;
                    next += 1;
                }
            });
            let mut counts = vec![0; q as usize];
            for x in out {
                counts[usize::from(x)] += 1;
            }
            assert!(counts.iter().all(|&c| c == (1 << 16) / q), "{q}");
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
        contribute(ring, b, bits, pairs, [200 + i as u8; 32], &shared)
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
