//! The ones of a stream of words, counted with adders.
//!
//! AVX-512 counts the ones of a register at once. What has no such instruction looks them up, byte
//! by byte, in ten steps a register. Adders that work on every bit by itself take fewer: sixteen
//! registers are added up to one that counts sixteen each, and only that one is looked up (Muła,
//! Kurz and Lemire, "Faster population counts using AVX2 instructions", 2018).

use super::simd::Level;

/// Words that are added at once: a register of AVX2. AVX-512 does not come here.
const WIDE: usize = 4;
/// Words that are added up to one count.
pub(super) const BLOCK: usize = 16 * WIDE;

type Wide = [u64; WIDE];

/// popcount(a AND b), for rows of equal length.
#[inline(always)]
pub(super) fn common(level: Level, a: &[u64], b: &[u64]) -> u64 {
    if level.counts_words() {
        return counted(a, b);
    }
    let ((blocks, rest), (others, other_rest)) = (a.as_chunks(), b.as_chunks());
    let mut ones = Ones::default();
    for (a, b) in blocks.iter().zip(others) {
        ones.add(a, b);
    }
    ones.total() + counted(rest, other_rest)
}

/// A plain loop: any cleverer one keeps the compiler from using whole registers.
#[inline(always)]
fn counted(a: &[u64], b: &[u64]) -> u64 {
    a.iter()
        .zip(b)
        .map(|(x, y)| u64::from((x & y).count_ones()))
        .sum()
}

/// popcount(a AND b) for each of some rows a: where registers are counted at once, loading them takes
/// longer than counting, and one load of b serves all of them.
#[inline(always)]
pub(super) fn common_of_four(level: Level, a: [&[u64]; 4], b: &[u64]) -> [u64; 4] {
    let mut counts = [0; 4];
    if !level.counts_words() {
        for (count, a) in counts.iter_mut().zip(a) {
            *count = common(level, a, b);
        }
        return counts;
    }
    let [a0, a1, a2, a3] = a;
    let rows = a0.iter().zip(a1).zip(a2).zip(a3).zip(b);
    for ((((a0, a1), a2), a3), b) in rows {
        counts[0] += u64::from((a0 & b).count_ones());
        counts[1] += u64::from((a1 & b).count_ones());
        counts[2] += u64::from((a2 & b).count_ones());
        counts[3] += u64::from((a3 & b).count_ones());
    }
    counts
}

/// A running count: bits that count 1, 2, 4 and 8 each, and what was counted of those of 16.
#[derive(Default)]
pub(super) struct Ones {
    bits: [Wide; 4],
    sixteens: Wide,
}

impl Ones {
    /// Adds the ones of a AND b.
    #[inline(always)]
    pub(super) fn add(&mut self, a: &[u64; BLOCK], b: &[u64; BLOCK]) {
        let (a, b) = (a.as_chunks::<WIDE>().0, b.as_chunks::<WIDE>().0);
        let both = |i: usize| -> Wide { std::array::from_fn(|lane| a[i][lane] & b[i][lane]) };
        let [ones, twos, fours, eights] = &mut self.bits;
        let mut of_eight = [[0; WIDE]; 2];
        for (half, carry_8) in of_eight.iter_mut().enumerate() {
            let mut of_four = [[0; WIDE]; 2];
            for (quarter, carry_4) in of_four.iter_mut().enumerate() {
                let first = 8 * half + 4 * quarter;
                let low = carry(ones, both(first), both(first + 1));
                let high = carry(ones, both(first + 2), both(first + 3));
                *carry_4 = carry(twos, low, high);
            }
            *carry_8 = carry(fours, of_four[0], of_four[1]);
        }
        let of_sixteen = carry(eights, of_eight[0], of_eight[1]);
        for (sum, word) in self.sixteens.iter_mut().zip(of_sixteen) {
            *sum += u64::from(word.count_ones());
        }
    }

    /// All ones so far.
    #[inline(always)]
    pub(super) fn total(&self) -> u64 {
        let mut total = 16 * self.sixteens.iter().sum::<u64>();
        for (place, bits) in self.bits.iter().enumerate() {
            let count: u64 = bits.iter().map(|word| u64::from(word.count_ones())).sum();
            total += count << place;
        }
        total
    }
}

/// Adds three bits at every place: the sum stays in `a`, and what counts double is returned.
#[inline(always)]
fn carry(a: &mut Wide, b: Wide, c: Wide) -> Wide {
    let mut carried = [0; WIDE];
    for (i, carried) in carried.iter_mut().enumerate() {
        let half = a[i] ^ b[i];
        *carried = (a[i] & b[i]) | (half & c[i]);
        a[i] = half ^ c[i];
    }
    carried
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn every_one_is_counted(
            words in prop::collection::vec((any::<u64>(), any::<u64>()), 0..5 * BLOCK),
            full: bool,
        ) {
            let one = |word: u64| if full { u64::MAX } else { word };
            let (a, b): (Vec<u64>, Vec<u64>) = words.iter().map(|w| (one(w.0), one(w.1))).unzip();
            let expected: u32 = a.iter().zip(&b).map(|(x, y)| (x & y).count_ones()).sum();
            for level in Level::available() {
                let found = level.run(#[inline(always)] || common(level, &a, &b));
                prop_assert_eq!(found, u64::from(expected), "{:?}", level);
                let none = vec![0; b.len()];
                let four = [&b[..], &none, &b, &none];
                let found = level.run(#[inline(always)] || common_of_four(level, four, &a));
                prop_assert_eq!(found, [u64::from(expected), 0, u64::from(expected), 0]);
            }
        }
    }
}
