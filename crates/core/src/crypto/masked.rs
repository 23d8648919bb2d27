//! The masked union: contributions in Z_q, hidden by pairwise masks that cancel in the sum.
//!
//! For each pair a silo contributes a uniform element of Z_q if it holds the pair; otherwise, with
//! probability b, a uniform element; otherwise 0. It adds the mask that it shares with each silo
//! after it, and subtracts the one that it shares with each silo before it. A uniform element
//! absorbs whatever is added to it, so the sum over all silos is uniform wherever anyone
//! contributed one, and 0 elsewhere.
//!
//! Work is cut into blocks with streams of their own, so that blocks run in parallel. Inside a block
//! elements stand in the order in which they are packed: the lowest digits of all words, then the
//! next ones. Uniform elements come from 16-bit words of the stream, c of them from a word: w/2^16
//! as a fraction in base q, to c places. Digit i of the n-th word that is kept goes to place
//! n + i·k, where k words fill the block.
//!
//! What is drawn and when depends on the streams alone: bits of a silo only ever select between
//! drawn values.
//!
//! Numbers are summed in the same way, without elements and coins: a silo's 64-bit numbers, noise
//! included, plus and minus masks of 64 bits, all modulo 2^64. A mask is a word of the stream.

use rayon::prelude::*;

use super::keystream::{Keystream, StreamKey};
use super::packed::{self, Ring, WORD, less};
use super::simd::{self, Masks};
use crate::dp::bernoulli::{self, Probability};
use crate::graph::simd::Level;

/// Packed words in a block, a multiple of 64: what a block works on stays in the nearest cache.
const BLOCK: usize = 1 << 10;
/// Blocks that one thread makes in a row at the least: it lays out its desk once for all of them.
const FEWEST: usize = 16;
/// The streams of contributions: elements, and coins.
const ELEMENTS: u64 = 0;
const COINS: u64 = 1 << 63;
/// Stream words of 2^16 that may be refused, where fewer digits a word avoid it.
const MOST_REFUSED: u64 = 1 << 12;
/// Words of a stream that are drawn together: 64 blocks of the cipher. Fewer than so many are
/// encrypted one by one.
const BATCH: usize = 512;

/// A seed that this silo shares with another, and whether its masks are added or subtracted.
pub struct SharedSeed {
    /// The seed of this chunk.
    pub seed: [u8; 32],
    /// Added by the silo that comes first in the roster, subtracted by the other.
    pub add: bool,
}

/// The masked contributions of one silo for one chunk, as they travel, written to `wire`, which has
/// `ring.bytes(pairs)` bytes.
///
/// `bits` has one bit per pair; `own` is the silo's secret seed for this chunk.
pub fn contribute(
    ring: Ring,
    b: &Probability,
    (bits, pairs): (&[u64], usize),
    wire: &mut [u8],
    own: [u8; 32],
    shared: &[SharedSeed],
) {
    let own = StreamKey::new(&own);
    let keys = stream_keys(shared);
    let size = BLOCK * ring.digits();
    wire.par_chunks_mut(BLOCK * WORD)
        .zip(bits.par_chunks(size / 64))
        .enumerate()
        .with_min_len(FEWEST)
        .for_each_init(
            || Desk::new(ring),
            |desk, (block, (wire, bits))| {
                let pairs = size.min(pairs - block * size);
                desk.draw(wire.len() / WORD, &own, &keys, block as u64);
                desk.choose(bits, b, own.stream(COINS + block as u64));
                desk.sum();
                desk.finish(pairs, wire);
            },
        );
}

fn stream_keys(shared: &[SharedSeed]) -> Vec<(StreamKey, bool)> {
    let key = |peer: &SharedSeed| (StreamKey::new(&peer.seed), peer.add);
    shared.iter().map(key).collect()
}

/// The masked numbers of one silo for one chunk, as they travel: 64-bit words, the lowest byte first,
/// written to `wire`, which has 8 bytes for each number.
pub fn contribute_words(values: &[i64], wire: &mut [u8], shared: &[SharedSeed]) {
    let keys = stream_keys(shared);
    wire.par_chunks_mut(BLOCK * 8)
        .zip(values.par_chunks(BLOCK))
        .enumerate()
        .with_min_len(FEWEST)
        .for_each_init(
            || vec![0u64; BLOCK],
            |masks, (block, (wire, values))| {
                let masks = &mut masks[..values.len()];
                let mut sums: Vec<u64> = values.iter().map(|&value| value as u64).collect();
                for (key, add) in &keys {
                    key.stream(block as u64).words().fill(masks);
                    for (sum, &mask) in sums.iter_mut().zip(&*masks) {
                        *sum = match add {
                            true => sum.wrapping_add(mask),
                            false => sum.wrapping_sub(mask),
                        };
                    }
                }
                for (eight, sum) in wire.as_chunks_mut().0.iter_mut().zip(sums) {
                    *eight = sum.to_le_bytes();
                }
            },
        );
}

/// Adds a silo's masked numbers to their running sum, which has as many words; false, with nothing
/// changed, if they are not of its size.
pub fn accumulate_words(total: &mut [u64], vector: &[u8]) -> bool {
    let (words, rest) = vector.as_chunks::<8>();
    let fits = words.len() == total.len() && rest.is_empty();
    if fits {
        for (sum, word) in total.iter_mut().zip(words) {
            *sum = sum.wrapping_add(u64::from_le_bytes(*word));
        }
    }
    fits
}

/// Where the blocks of one thread are made, one after the other.
struct Desk {
    ring: Ring,
    uniform: Uniform,
    words: usize,
    own: Vec<u16>,
    masks: Vec<Masks>,
    sums: Vec<u16>,
    chosen: Vec<u64>,
    bytes: Vec<u8>,
    groups: Vec<u16>,
    places: Vec<u8>,
}

impl Desk {
    fn new(ring: Ring) -> Self {
        Self {
            ring,
            uniform: Uniform::new(ring.q()),
            words: 0,
            own: vec![],
            masks: vec![],
            sums: vec![],
            chosen: vec![],
            bytes: vec![],
            groups: vec![],
            places: vec![],
        }
    }

    /// Draws words with elements for all places of so many packed words: our own, and those of every
    /// mask.
    fn draw(&mut self, words: usize, own: &StreamKey, keys: &[(StreamKey, bool)], block: u64) {
        self.words = words;
        self.sums.resize(words * self.ring.digits(), 0);
        let places = self.sums.len();
        let stream = own.stream(ELEMENTS + block);
        self.uniform.draw(stream, places, &mut self.own);
        self.masks.resize_with(keys.len(), Masks::default);
        for ((key, plus), masks) in keys.iter().zip(&mut self.masks) {
            masks.plus = *plus;
            self.uniform
                .draw(key.stream(block), places, &mut masks.words);
        }
    }

    /// Tosses the coins. A place is chosen where its pair is held, or by a coin.
    fn choose(&mut self, held: &[u64], b: &Probability, coins: Keystream<'_>) {
        let mut coins = coins.words();
        self.chosen.resize(held.len(), 0);
        bernoulli::fill(self.uniform.level, b, &mut self.chosen, |words| {
            coins.fill(words);
        });
        // Bits are read as eight bytes, past the end as well.
        let eights = self.words.div_ceil(8);
        let size = 8 * held.len() + eights * self.ring.digits() + 16;
        self.bytes.resize(size, 0);
        let bytes = self.bytes.as_chunks_mut().0;
        for ((eight, chosen), held) in bytes.iter_mut().zip(&self.chosen).zip(held) {
            *eight = (chosen | held).to_le_bytes();
        }
        self.groups.resize(8 * eights, 0);
    }

    /// Sums of our own elements at chosen places, zeros elsewhere, and all masks.
    fn sum(&mut self) {
        let (level, q) = (self.uniform.level, self.uniform.q);
        if simd::sums_at_once(level, q, self.masks.len(), self.words) {
            self.place();
            let own = (&self.own[..], &self.places[..]);
            simd::sum(
                level,
                (q, self.uniform.digits),
                own,
                &self.masks,
                &mut self.sums,
            );
            return;
        }
        self.uniform.spread(
            &mut self.own,
            &mut self.sums,
            #[inline(always)]
            |sum, drawn| *sum = drawn,
        );
        self.clear();
        for Masks { words, plus } in &mut self.masks {
            match plus {
                true => self.uniform.spread(
                    words,
                    &mut self.sums,
                    #[inline(always)]
                    move |sum, mask| *sum = less(q, *sum, q.wrapping_sub(mask)),
                ),
                false => self.uniform.spread(
                    words,
                    &mut self.sums,
                    #[inline(always)]
                    move |sum, mask| *sum = less(q, *sum, mask),
                ),
            }
        }
    }

    /// One bit for each place, and eight bytes more: which are chosen.
    fn place(&mut self) {
        let (row, digits) = (self.words / 8, self.ring.digits());
        self.places.resize(row * digits + 8, 0);
        for half in 0..digits.div_ceil(16) {
            self.group(half);
            let rows = &mut self.places[16 * half * row..(16 * half + 16).min(digits) * row];
            simd::places(self.uniform.level, &self.groups, rows);
        }
    }

    /// Sets to zero what is not chosen.
    fn clear(&mut self) {
        for half in 0..self.ring.digits().div_ceil(16) {
            self.group(half);
            let (words, groups) = (self.words, &self.groups);
            let planes = self.sums[16 * half * words..].chunks_exact_mut(words);
            self.uniform.level.run(
                #[inline(always)]
                || {
                    for (digit, sums) in planes.take(16).enumerate() {
                        for (sum, group) in sums.iter_mut().zip(groups) {
                            *sum &= 0u16.wrapping_sub(group >> digit & 1);
                        }
                    }
                },
            );
        }
    }

    /// Of every word the bits of its first sixteen digits, or, of the least moduli, of the others.
    fn group(&mut self, half: usize) {
        let (bytes, digits) = (&self.bytes, self.ring.digits());
        let from =
            |byte: usize| u64::from_le_bytes(*bytes[byte..].first_chunk().unwrap_or(&[0; 8]));
        let groups = self.groups.as_chunks_mut::<8>().0;
        self.uniform.level.run(
            #[inline(always)]
            || {
                for (i, groups) in groups.iter_mut().enumerate() {
                    // The bits of eight words fill as many whole bytes as a word has digits.
                    if digits <= 8 {
                        let bits = from(i * digits);
                        *groups = std::array::from_fn(|word| (bits >> (word * digits)) as u16);
                    } else {
                        *groups = std::array::from_fn(|word| {
                            let bit = (8 * i + word) * digits + 16 * half;
                            (from(bit / 8) >> (bit % 8)) as u16
                        });
                    }
                }
            },
        );
    }

    /// Packs what is there; places past the last pair are zero.
    fn finish(&mut self, pairs: usize, wire: &mut [u8]) {
        for place in pairs..self.words * self.ring.digits() {
            let (word, digit) = (place / self.ring.digits(), place % self.ring.digits());
            self.sums[digit * self.words + word] = 0;
        }
        packed::pack(self.ring, &self.sums, wire);
    }
}

/// Uniform elements of Z_q from 16-bit words of a stream.
struct Uniform {
    level: Level,
    /// q, or 0 for 2^16.
    q: u16,
    /// Elements of a word.
    digits: usize,
    /// q^digits, modulo 2^16.
    power: u16,
    /// 2^16 modulo q^digits: so many words are refused.
    refused: u16,
    /// q, once for every word.
    factors: Vec<u16>,
    drawn: Vec<u8>,
}

impl Uniform {
    fn new(q: u32) -> Self {
        let refused = |digits: u32| (1u64 << 16) % u64::from(q).pow(digits);
        let fitting = (1..=(1u32 << 16).ilog(q)).rev();
        let digits = { fitting }
            .find(|&c| refused(c) <= MOST_REFUSED)
            .unwrap_or(1);
        Self {
            level: Level::best(),
            q: q as u16,
            digits: digits as usize,
            power: q.pow(digits) as u16,
            refused: refused(digits) as u16,
            factors: vec![],
            drawn: vec![],
        }
    }

    /// Draws words with a digit for each place to `kept`.
    fn draw(&mut self, mut stream: Keystream<'_>, places: usize, kept: &mut Vec<u16>) {
        self.keep(places.div_ceil(self.digits), kept, |bytes| {
            stream.fill(bytes)
        });
    }

    /// Hands out the digits of all words.
    fn spread(&self, words: &mut [u16], places: &mut [u16], take: impl Fn(&mut u16, u16)) {
        let count = places.len().div_ceil(self.digits);
        let (kept, q) = (&mut words[..count], self.q);
        self.level.run(
            #[inline(always)]
            || {
                for places in places.chunks_mut(count.max(1)) {
                    if q == 0 {
                        // The word is the element.
                        for (place, &word) in places.iter_mut().zip(&*kept) {
                            take(place, word);
                        }
                    } else {
                        // The halves of the products apart, and q from memory, so that both
                        // factors have 16 bits: vectors multiply these.
                        let fractions = kept.iter().zip(&self.factors);
                        for (place, (&fraction, &q)) in places.iter_mut().zip(fractions) {
                            take(place, ((u32::from(fraction) * u32::from(q)) >> 16) as u16);
                        }
                        for fraction in &mut *kept {
                            *fraction = fraction.wrapping_mul(q);
                        }
                    }
                }
            },
        );
    }

    /// Draws words to `kept`, `count` at least.
    ///
    /// The digits of w are those of ⌊w·q^c / 2^16⌋. A number has ⌊2^16/q^c⌋ words or one more; the
    /// one too many is the word whose product is below 2^16 mod q^c in its low half (Lemire, "Fast
    /// random integer generation in an interval", 2019). It is refused. What is refused decides what
    /// is read next, and says nothing about the words that are kept: those are uniform whatever it
    /// is.
    fn keep(&mut self, count: usize, kept: &mut Vec<u16>, mut draw: impl FnMut(&mut [u8])) {
        self.factors.resize(self.factors.len().max(count), self.q);
        let mut found = 0;
        while found < count {
            let share = (1 << 16) - usize::from(self.refused);
            let words = (((count - found) << 16) / share + 32).next_multiple_of(BATCH);
            self.drawn.resize(2 * words, 0);
            kept.resize(kept.len().max(found + words), 0);
            draw(&mut self.drawn);
            let (drawn, _) = self.drawn.as_chunks();
            let bounds = (self.power, self.refused);
            found += simd::keep(self.level, drawn, bounds, &mut kept[found..]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crypto::packed::Sum;

    /// Every word of the stream, in order: each element equally often at every place.
    #[test]
    fn digits_of_all_words_are_even_and_in_order() {
        let moduli = (2..=300).chain([1000, 4096, 22_026, 40_000, 65_535, 65_536]);
        for (level, q) in Level::available()
            .into_iter()
            .flat_map(|level| moduli.clone().map(move |q| (level, q)))
        {
            let mut uniform = Uniform::new(q);
            uniform.level = level;
            let (digits, power) = (
                uniform.digits as u32,
                u64::from(q).pow(uniform.digits as u32),
            );
            let expected: Vec<u64> = (0..1u64 << 16)
                .filter(|w| w * power % (1 << 16) >= (1 << 16) % power)
                .map(|w| (w * power) >> 16)
                .collect();
            let mut counts = vec![0u64; power as usize];
            expected.iter().for_each(|&x| counts[x as usize] += 1);
            assert!(counts.iter().all(|&c| c == (1 << 16) / power), "{q}");
            let mut next = 0u32;
            let draw = |bytes: &mut [u8]| {
                for two in bytes.as_chunks_mut().0 {
                    *two = (next as u16).to_le_bytes();
                    next += 1;
                }
            };
            let mut places = vec![0u16; expected.len() * digits as usize];
            let mut kept = vec![];
            uniform.keep(expected.len(), &mut kept, draw);
            uniform.spread(
                &mut kept,
                &mut places,
                #[inline(always)]
                |place, digit| *place = digit,
            );
            for (i, plane) in places.chunks(expected.len()).enumerate() {
                let place = u64::from(q).pow(digits - 1 - i as u32);
                let found = plane.iter().zip(&expected);
                assert!(
                    found
                        .clone()
                        .all(|(&x, w)| u64::from(x) == w / place % u64::from(q)),
                    "{q}"
                );
            }
        }
    }

    #[test]
    fn a_word_gives_as_many_elements_as_few_refusals_allow() {
        let drawn = |q| {
            let uniform = Uniform::new(q);
            (uniform.digits, uniform.refused)
        };
        assert_eq!(drawn(2), (16, 0));
        assert_eq!(drawn(3), (7, 2113));
        assert_eq!(drawn(21), (3, 709));
        assert_eq!(drawn(256), (2, 0));
        assert_eq!(drawn(40_000), (1, 25_536));
        assert_eq!(drawn(65_536), (1, 0));
    }

    #[test]
    fn sums_and_differences_of_all_elements() {
        let both = |q: u32, a: u32, b: u32| {
            let (q, a, b) = (q as u16, a as u16, b as u16);
            [less(q, a, q.wrapping_sub(b)), less(q, a, b)].map(u32::from)
        };
        for q in 2..=256u32 {
            for a in 0..q {
                for b in 0..q {
                    assert_eq!(both(q, a, b), [(a + b) % q, (a + q - b) % q]);
                }
            }
        }
        for q in [257u32, 32_769, 65_535, 65_536] {
            for a in [0, 1, 5, q / 2, q - 2, q - 1] {
                for b in [0, 1, 5, q / 2, q - 2, q - 1] {
                    assert_eq!(both(q, a, b), [(a + b) % q, (a + q - b) % q]);
                }
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
        let mut wire = vec![0u8; ring.bytes(pairs)];
        let own = [200 + i as u8; 32];
        contribute(ring, b, (bits, pairs), &mut wire, own, &seeds(m, i));
        wire
    }

    fn seeds(m: usize, i: usize) -> Vec<SharedSeed> {
        let with = |j| SharedSeed {
            seed: pair_seed(i, j),
            add: i < j,
        };
        (0..m).filter(|&j| j != i).map(with).collect()
    }

    fn masked_words(m: usize, i: usize, values: &[i64]) -> Vec<u8> {
        let mut wire = vec![0u8; 8 * values.len()];
        contribute_words(values, &mut wire, &seeds(m, i));
        wire
    }

    #[test]
    fn masks_of_numbers_cancel() {
        for count in [1, 2, BLOCK - 1, BLOCK, BLOCK + 1, FEWEST * BLOCK + 77] {
            for m in [2, 3, 5] {
                let number = |i: usize, k: usize| (k as i64 - 3).wrapping_mul((i as i64 + 1) << 40);
                let mut total = vec![0u64; count];
                for i in 0..m {
                    let values: Vec<i64> = (0..count).map(|k| number(i, k)).collect();
                    assert!(accumulate_words(&mut total, &masked_words(m, i, &values)));
                }
                for (k, &sum) in total.iter().enumerate() {
                    let expected = (0..m).fold(0i64, |sum, i| sum.wrapping_add(number(i, k)));
                    assert_eq!(sum as i64, expected);
                }
            }
        }
    }

    /// No word of a mask comes again: not in another block, nor with another silo.
    #[test]
    fn masks_of_numbers_are_words_of_their_own() {
        let count = 3 * BLOCK + 5;
        let mut masks: Vec<[u8; 8]> = vec![];
        for (i, j) in [(0, 1), (0, 2), (1, 2)] {
            let mut wire = vec![0u8; 8 * count];
            let shared = SharedSeed {
                seed: pair_seed(i, j),
                add: true,
            };
            contribute_words(&vec![0; count], &mut wire, &[shared]);
            masks.extend(wire.as_chunks().0);
        }
        masks.sort_unstable();
        masks.dedup();
        assert_eq!(masks.len(), 3 * count);
    }

    #[test]
    fn numbers_of_another_size_change_nothing() {
        let mut total = vec![7u64; 3];
        for bytes in [0, 8, 23, 25, 32] {
            assert!(!accumulate_words(&mut total, &vec![1; bytes]));
            assert_eq!(total, [7; 3]);
        }
        assert!(accumulate_words(&mut total, &[255; 24]));
        assert_eq!(total, [6; 3]);
    }

    #[test]
    fn masks_cancel_and_only_held_pairs_show() {
        let never = Probability::ratio(0, 1).unwrap();
        for q in [2, 3, 21, 256, 257, 65_536] {
            let ring = Ring::new(q).unwrap();
            let block = BLOCK * ring.digits();
            for pairs in [1, 64, 100, block, block + 1, 2 * block + 77] {
                let m = 4;
                let mut total = Sum::new(ring, pairs);
                let mut held = vec![0u64; pairs.div_ceil(64)];
                for i in 0..m {
                    let mut bits = vec![0u64; pairs.div_ceil(64)];
                    for k in (i * 7..pairs).step_by(29 + i) {
                        bits[k / 64] |= 1 << (k % 64);
                        held[k / 64] |= 1 << (k % 64);
                    }
                    let sent = vector(ring, &never, m, i, &bits, pairs);
                    total.add(sent).unwrap();
                }
                let y = total.nonzero();
                // Not held, not shown; held, shown but for one in q.
                assert!(y.iter().zip(&held).all(|(y, h)| y & !h == 0));
                let (shown, all): (u32, u32) =
                    y.iter().zip(&held).fold((0, 0), |(s, a), (y, h)| {
                        (s + y.count_ones(), a + h.count_ones())
                    });
                if pairs > block {
                    let expected = f64::from(all) * (1.0 - 1.0 / f64::from(q));
                    assert!((f64::from(shown) - expected).abs() < 7.0 * expected.sqrt() + 1.0);
                }
            }
        }
    }

    /// Blocks of all sizes, with more streams than are added at once.
    #[test]
    fn all_levels_make_the_same_blocks() {
        let b = Probability::ratio(1, 7).unwrap();
        let (own, keys) = (StreamKey::new(&[9; 32]), stream_keys(&seeds(7, 2)));
        for q in [
            2, 3, 5, 21, 256, 1000, 13_107, 13_108, 40_000, 65_535, 65_536,
        ] {
            let ring = Ring::new(q).unwrap();
            for words in [1, 2, 7, 31, 64, 100, 960, BLOCK] {
                let bits: Vec<u64> = (0..(words * ring.digits()).div_ceil(64) as u64)
                    .map(|i| (i + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15))
                    .collect();
                let block = |level| {
                    let mut desk = Desk::new(ring);
                    desk.uniform.level = level;
                    desk.draw(words, &own, &keys, 3);
                    desk.choose(&bits, &b, own.stream(COINS + 3));
                    desk.sum();
                    desk.sums
                };
                let made: Vec<_> = Level::available().into_iter().map(block).collect();
                assert!(made.iter().all(|sums| *sums == made[0]), "{q} {words}");
                assert!(made[0].iter().all(|&sum| u32::from(sum) < q));
            }
        }
    }

    #[test]
    fn a_single_vector_is_uniform_whatever_the_bits() {
        let never = Probability::ratio(0, 1).unwrap();
        let ring = Ring::new(21).unwrap();
        let (q, pairs) = (ring.q(), 28 * BLOCK * ring.digits());
        for word in [0u64, u64::MAX] {
            let bits = vec![word; pairs / 64];
            let mut counts = vec![0u32; q as usize];
            let sent = vector(ring, &never, 2, 0, &bits, pairs);
            for word in sent.as_chunks().0 {
                let mut word = u32::from_le_bytes(*word);
                for _ in 0..ring.digits() {
                    counts[(word % q) as usize] += 1;
                    word /= q;
                }
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
}
