//! Symmetric matrices with a zero diagonal, mod 2^64: only the pairs i < j are kept.
//!
//! Word k is that of pair k = i·n − i(i+1)/2 + (j−i−1), so a matrix is its chunks of pairs one
//! after the other, in half the room of a full matrix, and the rows of a band are neighbours.

use std::ops::Range;

pub use crate::graph::bitrows::pair_count;

/// The index of pair (i, i+1): where row i begins.
pub fn row_start(n: usize, i: usize) -> usize {
    i * n - i * (i + 1) / 2
}

/// The first row that has a pair at `index` or after it.
pub fn row_of(n: usize, index: usize) -> usize {
    let (mut low, mut high) = (0, n);
    while low < high {
        let middle = (low + high) / 2;
        // Row `middle` ends before the index: look further down.
        if row_start(n, middle + 1) <= index {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}

/// The pairs of a range as runs (i, first j, length), each within one row.
pub fn runs(n: usize, pairs: Range<usize>) -> impl Iterator<Item = (usize, usize, usize)> {
    let mut next = pairs.start;
    let mut row = row_of(n, next);
    std::iter::from_fn(move || {
        if next >= pairs.end {
            return None;
        }
        let (start, end) = (row_start(n, row), row_start(n, row + 1).min(pairs.end));
        let run = (row, row + 1 + next - start, end - next);
        next = end;
        row += 1;
        Some(run)
    })
}

/// A symmetric matrix with a zero diagonal.
#[derive(Clone, Copy)]
pub struct Triangle<'a> {
    n: usize,
    words: &'a [u64],
}

impl<'a> Triangle<'a> {
    /// One word a pair, or `None` where there is not.
    pub fn new(n: usize, words: &'a [u64]) -> Option<Self> {
        (words.len() == pair_count(n)).then_some(Self { n, words })
    }

    /// The number of rows.
    pub fn n(self) -> usize {
        self.n
    }

    /// The words of row i right of the diagonal.
    #[inline]
    pub fn row(self, i: usize) -> &'a [u64] {
        &self.words[row_start(self.n, i)..row_start(self.n, i + 1)]
    }

    /// `packed[k][l]` = entry (first + l, k) for each k of `depth`; zero outside of the matrix.
    pub fn pack<const W: usize>(self, first: usize, depth: Range<usize>, packed: &mut [[u64; W]]) {
        let width = W.min(self.n.saturating_sub(first));
        // Above the diagonal the wanted words of one k are neighbours in row k.
        let above = depth.start..depth.end.min(first);
        for (k, out) in above.clone().zip(packed.iter_mut()) {
            *out = [0; W];
            out[..width].copy_from_slice(&self.row(k)[first - k - 1..][..width]);
        }
        let rest = &mut packed[above.len()..depth.len()];
        let start = depth.start.max(first);
        if width < W {
            rest.fill([0; W]);
        }
        // Below it they are neighbours in the rows of the panel; near it, on either side.
        for l in 0..width {
            let i = first + l;
            for k in start..depth.end.min(i) {
                rest[k - start][l] = self.row(k)[i - k - 1];
            }
            if (start..depth.end).contains(&i) {
                rest[i - start][l] = 0;
            }
            let from = start.max(i + 1);
            if from < depth.end {
                let words = &self.row(i)[from - i - 1..depth.end - i - 1];
                for (out, word) in rest[from - start..].iter_mut().zip(words) {
                    out[l] = *word;
                }
            }
        }
    }
}

/// Adds the words of a range of pairs to the sums of both their nodes.
pub fn add_to_nodes(pairs: Range<usize>, words: &[u64], sums: &mut [u64]) {
    let n = sums.len();
    let mut rest = words;
    for (i, j, length) in runs(n, pairs) {
        let (own, others) = rest.split_at(length);
        let mut total = 0u64;
        for (sum, word) in sums[j..j + length].iter_mut().zip(own) {
            *sum = sum.wrapping_add(*word);
            total = total.wrapping_add(*word);
        }
        sums[i] = sums[i].wrapping_add(total);
        rest = others;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_in_order() {
        for n in [2, 3, 5, 9] {
            let all: Vec<(usize, usize)> = (0..n)
                .flat_map(|i| (i + 1..n).map(move |j| (i, j)))
                .collect();
            assert_eq!(all.len(), pair_count(n));
            for start in 0..all.len() {
                for end in start..=all.len() {
                    let found: Vec<(usize, usize)> = runs(n, start..end)
                        .flat_map(|(i, j, length)| (j..j + length).map(move |j| (i, j)))
                        .collect();
                    assert_eq!(found, all[start..end]);
                }
            }
        }
    }

    #[test]
    fn sums_of_nodes() {
        let words: Vec<u64> = (0..10).map(|k| u64::MAX - 3 * k).collect();
        for cut in 0..=10 {
            let mut sums = [0u64; 5];
            add_to_nodes(0..cut, &words[..cut], &mut sums);
            add_to_nodes(cut..10, &words[cut..], &mut sums);
            for (node, sum) in sums.iter().enumerate() {
                let touching = runs(5, 0..10).flat_map(|(i, j, l)| (j..j + l).map(move |j| (i, j)));
                let expected = touching
                    .zip(&words)
                    .filter(|((i, j), _)| *i == node || *j == node)
                    .fold(0u64, |sum, (_, w)| sum.wrapping_add(*w));
                assert_eq!(*sum, expected);
            }
        }
    }

    #[test]
    fn packing_is_the_matrix() {
        let n = 13;
        let words: Vec<u64> = (1..=pair_count(n) as u64).collect();
        let matrix = Triangle::new(n, &words).unwrap();
        let entry = |i: usize, j: usize| match i.cmp(&j) {
            _ if i >= n || j >= n => 0,
            std::cmp::Ordering::Equal => 0,
            _ => words[row_start(n, i.min(j)) + i.max(j) - i.min(j) - 1],
        };
        for first in 0..n {
            for start in 0..n {
                for end in start..=n {
                    let mut packed = vec![[7u64; 4]; end - start];
                    matrix.pack(first, start..end, &mut packed);
                    for (k, row) in (start..end).zip(&packed) {
                        let expected: [u64; 4] = std::array::from_fn(|l| entry(first + l, k));
                        assert_eq!(*row, expected);
                    }
                }
            }
        }
    }
}
