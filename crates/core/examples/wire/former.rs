//! The wire before elements were packed, at q ≤ 256: ChaCha20 as a generator, one byte per element, each
//! drawn from a byte of the stream. Here only to be measured beside what replaced it.

use chacha20::ChaCha20Rng;
use rand_core::{Rng, SeedableRng};
use rayon::prelude::*;
use silograph_core::crypto::masked::SharedSeed;
use silograph_core::dp::bernoulli::{Probability, lanes};
use silograph_core::graph::simd::Level;

const BLOCK: usize = 1 << 16;
const DRAWN: usize = 1024;
const COINS: u64 = 1 << 63;
const ONES: u64 = u64::MAX / 255;
const LOW: u64 = ONES * 127;

/// The masked contributions of one silo for one chunk.
pub fn contribute(
    q: u8,
    b: &Probability,
    bits: &[u64],
    wire: &mut [u8],
    own: [u8; 32],
    shared: &[SharedSeed],
) {
    let level = Level::best();
    wire.par_chunks_mut(BLOCK)
        .zip(bits.par_chunks(BLOCK / 64))
        .enumerate()
        .for_each(|(block, (sums, bits))| {
            let block = block as u64;
            let mut position = 0;
            uniform(level, q, stream(&own, block), sums.len(), |drawn| {
                sums[position..position + drawn.len()].copy_from_slice(drawn);
                position += drawn.len();
            });
            let mut coins = stream(&own, COINS + block);
            for (elements, held) in sums.as_chunks_mut::<64>().0.iter_mut().zip(bits) {
                let chosen = held | lanes(&mut coins, b);
                level.run(
                    #[inline(always)]
                    || choose(elements, chosen),
                );
            }
            for peer in shared {
                let mut position = 0;
                uniform(level, q, stream(&peer.seed, block), sums.len(), |masks| {
                    let sums = &mut sums[position..position + masks.len()];
                    level.run(
                        #[inline(always)]
                        || match peer.add {
                            true => add(
                                q,
                                sums,
                                masks,
                                #[inline(always)]
                                |mask| q - mask,
                            ),
                            false => add(
                                q,
                                sums,
                                masks,
                                #[inline(always)]
                                |mask| mask,
                            ),
                        },
                    );
                    position += masks.len();
                });
            }
        });
}

/// Adds a silo's vector to the running sum of a chunk.
pub fn accumulate(q: u8, total: &mut [u8], vector: &[u8]) {
    Level::best().run(
        #[inline(always)]
        || {
            assert!(vector.iter().fold(0, |most, &x| x.max(most)) < q);
            add(
                q,
                total,
                vector,
                #[inline(always)]
                |x| q - x,
            );
        },
    );
}

/// A bit a pair: whether the sum is not zero.
pub fn open(total: &[u8]) -> Vec<u64> {
    let words = total.as_chunks::<64>().0.iter().map(|bytes| {
        let bytes = bytes.as_chunks::<8>().0.iter().map(|&eight| {
            let x = u64::from_le_bytes(eight);
            let ones = ((((x & LOW) + LOW) | x) >> 7) & ONES;
            (ones.wrapping_mul(0x0102_0408_1020_4080) >> 56) as u8
        });
        bytes
            .rev()
            .fold(0, |word, byte| word << 8 | u64::from(byte))
    });
    words.collect()
}

fn stream(seed: &[u8; 32], number: u64) -> ChaCha20Rng {
    let mut rng = ChaCha20Rng::from_seed(*seed);
    rng.set_stream(number);
    rng
}

fn uniform(level: Level, q: u8, mut rng: ChaCha20Rng, count: usize, mut take: impl FnMut(&[u8])) {
    let last = (256 / u32::from(q) * u32::from(q) - 1) as u8;
    let (mut words, mut remainders, mut kept) = ([0u8; DRAWN], [0u8; DRAWN], [0u8; DRAWN]);
    let mut left = count;
    while left > 0 {
        rng.fill_bytes(&mut words);
        let found = level.run(
            #[inline(always)]
            || {
                reduce(q, &words, &mut remainders);
                keep(last, &words, &remainders, &mut kept)
            },
        );
        let step = found.min(left);
        take(&kept[..step]);
        left -= step;
    }
}

#[inline(always)]
fn reduce(q: u8, words: &[u8; DRAWN], remainders: &mut [u8; DRAWN]) {
    let multiplier = (1u32 << 16).div_ceil(q.into());
    for (remainder, &word) in remainders.iter_mut().zip(words) {
        let quotient = ((u32::from(word) * multiplier) >> 16) as u16;
        *remainder = u16::from(word).wrapping_sub(quotient.wrapping_mul(q.into())) as u8;
    }
}

#[inline(always)]
fn keep(last: u8, words: &[u8; DRAWN], remainders: &[u8; DRAWN], kept: &mut [u8; DRAWN]) -> usize {
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
            for (refused, remainder) in refused.iter().zip(group) {
                kept[count] = *remainder;
                count += 1 - usize::from(*refused);
            }
        }
    }
    count
}

#[inline(always)]
fn choose(elements: &mut [u8; 64], chosen: u64) {
    let (eights, _) = elements.as_chunks_mut::<8>();
    for (eight, chosen) in eights.iter_mut().zip(chosen.to_le_bytes()) {
        let alone = (u64::from(chosen) * ONES) & 0x8040_2010_0804_0201;
        let ones = ((alone + LOW) >> 7) & ONES;
        for (element, mask) in eight.iter_mut().zip((ones * 255).to_le_bytes()) {
            *element &= mask;
        }
    }
}

#[inline(always)]
fn add(q: u8, sums: &mut [u8], masks: &[u8], negative: impl Fn(u8) -> u8) {
    for (sum, &mask) in sums.iter_mut().zip(masks) {
        let (a, b) = (*sum, negative(mask));
        *sum = a.wrapping_sub(b).wrapping_add(if a < b { q } else { 0 });
    }
}
