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

/// Columns of a panel: four of the registers of AVX2, two of those of AVX-512.
pub const COLUMNS: usize = 16;

/// One row of a panel. No register is loaded from two lines of the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C, align(64))]
pub struct Line(pub [u64; COLUMNS]);

impl Line {
    /// Nothing.
    pub const ZERO: Self = Self([0; COLUMNS]);
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

    /// Columns from `first` on, in panels of one line a row: line k of panel p is the entries of
    /// row depth.start + k in the columns first + p·COLUMNS and after; zero outside of the matrix.
    ///
    /// Panels are of `length` lines, not fewer than `depth`.
    pub fn columns(self, first: usize, depth: Range<usize>, length: usize, panels: &mut [Line]) {
        panels.fill(Line::ZERO);
        let width = panels.len() / length * COLUMNS;
        let end = self.n.min(first + width);
        let place = |j: usize, k: usize| {
            let (panel, l) = ((j - first) / COLUMNS, (j - first) % COLUMNS);
            (panel * length + k - depth.start, l)
        };
        for k in depth.clone() {
            // Right of the diagonal the wanted words of one k are neighbours in row k.
            let from = first.max(k + 1);
            if from == first && from < end {
                let words = &self.row(k)[first - k - 1..end - k - 1];
                let (whole, rest) = words.as_chunks::<COLUMNS>();
                let mut lines = panels[k - depth.start..].iter_mut().step_by(length);
                for (words, line) in whole.iter().zip(lines.by_ref()) {
                    line.0 = *words;
                }
                if let (Some(line), false) = (lines.next(), rest.is_empty()) {
                    line.0[..rest.len()].copy_from_slice(rest);
                }
            } else if from < end {
                for (j, word) in (from..end).zip(self.row(k)) {
                    let (line, l) = place(j, k);
                    panels[line].0[l] = *word;
                }
            }
        }
        // Left of it they are neighbours in the rows that have the columns' numbers.
        for j in first..end {
            let from = depth.start.max(j + 1);
            if from < depth.end {
                let words = &self.row(j)[from - j - 1..depth.end - j - 1];
                let (start, l) = place(j, from);
                for (line, word) in panels[start..].iter_mut().zip(words) {
                    line.0[l] = *word;
                }
            }
        }
    }

    /// The entries of `rows` in the columns `depth`, row after row; rows are of `length` words,
    /// not fewer than `depth`, and the last ones are left as they are.
    pub fn rows(self, rows: Range<usize>, depth: Range<usize>, length: usize, dense: &mut [u64]) {
        // Columns left of all rows are turned in strips of eight, so that lines are written whole.
        const TURNED: usize = 8;
        let mut k = depth.start;
        while k + TURNED <= depth.end.min(rows.start) {
            let strip: [&[u64]; TURNED] = std::array::from_fn(|t| {
                let k = k + t;
                &self.row(k)[rows.start - k - 1..rows.end - k - 1]
            });
            for (r, dense) in dense.chunks_exact_mut(length).enumerate() {
                let line = &mut dense[k - depth.start..][..TURNED];
                for (word, from) in line.iter_mut().zip(strip) {
                    *word = from[r];
                }
            }
            k += TURNED;
        }
        for (i, dense) in rows.clone().zip(dense.chunks_exact_mut(length)) {
            for k in k..depth.end.min(i) {
                dense[k - depth.start] = self.row(k)[i - k - 1];
            }
            if depth.contains(&i) {
                dense[i - depth.start] = 0;
            }
            let from = depth.start.max(i + 1);
            if from < depth.end {
                let words = &self.row(i)[from - i - 1..depth.end - i - 1];
                dense[from - depth.start..depth.len()].copy_from_slice(words);
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
    fn panels_and_rows_are_the_matrix() {
        let n = 37;
        let words: Vec<u64> = (1..=pair_count(n) as u64).collect();
        let matrix = Triangle::new(n, &words).unwrap();
        let entry = |i: usize, j: usize| match i.cmp(&j) {
            _ if i >= n || j >= n => 0,
            std::cmp::Ordering::Equal => 0,
            _ => words[row_start(n, i.min(j)) + i.max(j) - i.min(j) - 1],
        };
        for first in 0..n {
            for start in 0..n {
                for end in start + 1..=n {
                    let length = end - start + start % 2;
                    let mut panels = vec![Line([7; COLUMNS]); 2 * length];
                    matrix.columns(first, start..end, length, &mut panels);
                    for (at, line) in panels.iter().enumerate() {
                        let (panel, k) = (first + at / length * COLUMNS, start + at % length);
                        let known = |l| if k < end { entry(panel + l, k) } else { 0 };
                        assert_eq!(line.0, std::array::from_fn(known));
                    }
                    let rows = first..n.min(first + 11);
                    let mut dense = vec![7; rows.len() * length];
                    matrix.rows(rows, start..end, length, &mut dense);
                    for (at, word) in dense.iter().enumerate() {
                        let (i, k) = (first + at / length, start + at % length);
                        assert_eq!(*word, if k < end { entry(i, k) } else { 7 });
                    }
                }
            }
        }
    }
}
