//! The square of a symmetric matrix with a zero diagonal, mod 2^64, band by band.
//!
//! D² is symmetric too, so only its entries right of the diagonal are made: about n³/2 products of
//! 64-bit words. It is never stored: rows of finished strips are handed to the caller, who sums
//! them against something or writes down a band. The rows of a band are made dense once; columns
//! are packed as they are needed, a strip at a time, and each packed word meets all rows.

use std::ops::Range;

use rayon::prelude::*;

use super::matrix::{COLUMNS, Line, Triangle, row_start};
use super::simd::{add_paired, multiply_add, paired};
use crate::graph::simd::Level;

/// Rows of a band. A packed word of a column meets all of them.
pub const BAND: usize = 512;
/// How deep is multiplied before the next panel: 16 KiB of packed words, half of the first cache,
/// which every row of the band meets again. It is even: the products are made in pairs.
const DEPTH: usize = 128;
/// Panels of columns in a task.
const PANELS: usize = 4;
/// Rows that meet all panels of a task before the next rows do: they stay in the second cache.
const GROUP: usize = 128;

/// The depth in steps, each with its even length.
fn steps(n: usize) -> impl Iterator<Item = (Range<usize>, usize)> {
    let step = move |start| start..n.min(start + DEPTH);
    let even = |depth: Range<usize>| (depth.clone(), depth.len().next_multiple_of(2));
    (0..n).step_by(DEPTH).map(step).map(even)
}

/// The rows of a band, step by step, and what is subtracted from their sums.
struct Left {
    words: Vec<u64>,
    paired: Vec<u64>,
}

impl Left {
    fn new(matrix: Triangle<'_>, rows: Range<usize>) -> Self {
        let (n, count) = (matrix.n(), rows.len());
        let mut words = vec![0; count * n.next_multiple_of(2)];
        let each = words.par_chunks_mut(count * DEPTH);
        let paired = each.enumerate().map(|(step, words)| {
            let depth = step * DEPTH..n.min((step + 1) * DEPTH);
            let length = words.len() / count;
            matrix.rows(rows.clone(), depth, length, words);
            words.chunks_exact(length).map(paired).collect()
        });
        let sum = |mut sums: Vec<u64>, more: Vec<u64>| {
            for (sum, x) in sums.iter_mut().zip(more) {
                *sum = sum.wrapping_add(x);
            }
            sums
        };
        let paired = paired.reduce(|| vec![0; count], sum);
        Self { words, paired }
    }

    /// Some rows, counted from the first of the band, of the step that begins at `start`.
    fn rows(&self, rows: Range<usize>, start: usize, length: usize) -> &[u64] {
        let step = &self.words[start * self.paired.len()..];
        &step[rows.start * length..rows.end * length]
    }
}

/// Makes the rows `rows` of the square right of the diagonal, in parallel.
///
/// `take(state, i, j, words)` gets the words of row i from column j on, each exactly once, in some
/// order; every task has a state of its own, and all of them are returned.
pub fn band<T: Default + Send>(
    matrix: Triangle<'_>,
    rows: Range<usize>,
    level: Level,
    take: impl Fn(&mut T, usize, usize, &[u64]) + Sync,
) -> Vec<T> {
    if rows.is_empty() {
        return vec![];
    }
    let n = matrix.n();
    let left = Left::new(matrix, rows.clone());
    // From the right, one after the other as threads come free: strips that cross the diagonal
    // have ever fewer rows, so that the last ones are small and all threads end together.
    let strips = (rows.start..n).step_by(PANELS * COLUMNS).rev();
    let tasks = strips.collect::<Vec<usize>>().into_iter().par_bridge();
    tasks
        .map(|first| {
            let mut state = T::default();
            let columns = first..(first + PANELS * COLUMNS).min(n);
            strip(
                matrix,
                &left,
                rows.clone(),
                columns,
                level,
                |i, j, words| take(&mut state, i, j, words),
            );
            state
        })
        .collect()
}

/// One task: all rows of the band in a few panels of columns.
fn strip(
    matrix: Triangle<'_>,
    left: &Left,
    rows: Range<usize>,
    columns: Range<usize>,
    level: Level,
    mut take: impl FnMut(usize, usize, &[u64]),
) {
    let panels: Vec<usize> = columns.clone().step_by(COLUMNS).collect();
    // Rows of the band that have an entry right of the diagonal in a panel.
    let needed = |panel: usize| rows.len().min(panel + COLUMNS - 1 - rows.start);
    let mut sums = vec![Line::ZERO; panels.len() * rows.len()];
    let mut paired = vec![Line::ZERO; panels.len()];
    let mut right = vec![Line::ZERO; panels.len() * DEPTH];
    for (depth, length) in steps(matrix.n()) {
        let right = &mut right[..panels.len() * length];
        matrix.columns(columns.start, depth.clone(), length, right);
        for (panel, paired) in right.chunks_exact(length).zip(&mut paired) {
            add_paired(level, panel, paired);
        }
        for group in (0..rows.len()).step_by(GROUP) {
            let each = right.chunks_exact(length).zip(sums.chunks_mut(rows.len()));
            for (&panel, (right, sums)) in panels.iter().zip(each) {
                let group = group..needed(panel).min(group + GROUP);
                if !group.is_empty() {
                    let left = left.rows(group.clone(), depth.start, length);
                    multiply_add(level, left, right, &mut sums[group]);
                }
            }
        }
    }
    let each = paired.iter().zip(sums.chunks_mut(rows.len()));
    for (&panel, (of_columns, sums)) in panels.iter().zip(each) {
        let all = rows.clone().zip(&left.paired).zip(sums);
        for ((i, of_row), Line(words)) in all.take(needed(panel)) {
            for (word, of_column) in words.iter_mut().zip(&of_columns.0) {
                *word = word.wrapping_sub(of_row.wrapping_add(*of_column));
            }
            let (from, to) = (panel.max(i + 1), (panel + COLUMNS).min(columns.end));
            if from < to {
                take(i, from, &words[from - panel..to - panel]);
            }
        }
    }
}

/// Σ over the pairs i < j of these rows of (D²)_ij · w_ij, mod 2^64.
///
/// `weights` are the words of the band's own pairs.
pub fn contract(matrix: Triangle<'_>, rows: Range<usize>, weights: &[u64], level: Level) -> u64 {
    let n = matrix.n();
    let base = row_start(n, rows.start);
    let sums = band(matrix, rows, level, |sum: &mut u64, i, j, words| {
        let at = row_start(n, i) + (j - i - 1) - base;
        for (x, w) in words.iter().zip(&weights[at..]) {
            *sum = sum.wrapping_add(x.wrapping_mul(*w));
        }
    });
    sums.into_iter().fold(0, u64::wrapping_add)
}

/// The words of D² of the pairs i < j of these rows, in the order of pairs.
pub fn rows_of_square(matrix: Triangle<'_>, rows: Range<usize>, level: Level) -> Vec<u64> {
    type Strip = (Vec<(usize, usize)>, Vec<u64>);
    let n = matrix.n();
    let start = |i: usize| row_start(n, i);
    let base = start(rows.start);
    let mut square = vec![0; start(rows.end) - base];
    // Not more than one band is dense at a time.
    for first in rows.clone().step_by(BAND) {
        let rows = first..rows.end.min(first + BAND);
        let strips = band(matrix, rows, level, |strip: &mut Strip, i, j, words| {
            strip.0.push((start(i) + (j - i - 1) - base, words.len()));
            strip.1.extend_from_slice(words);
        });
        for (places, words) in strips {
            let mut rest = words.as_slice();
            for (at, length) in places {
                let (own, others) = rest.split_at(length);
                square[at..at + length].copy_from_slice(own);
                rest = others;
            }
        }
    }
    square
}

#[cfg(test)]
mod tests {
    use super::super::matrix::pair_count;
    use super::*;

    fn words(count: usize, salt: u64) -> Vec<u64> {
        let mix = |x: u64| (x ^ x >> 31).wrapping_mul(0xD6E8_FEB8_6659_FD93);
        (0..count as u64)
            .map(|k| mix(mix(k.wrapping_add(salt) + 1)))
            .collect()
    }

    fn naive(n: usize, words: &[u64]) -> Vec<u64> {
        let entry = |i: usize, j: usize| match i == j {
            true => 0,
            false => words[row_start(n, i.min(j)) + i.max(j) - i.min(j) - 1],
        };
        let dot = |i, j| {
            (0..n).fold(0u64, |sum, k| {
                sum.wrapping_add(entry(i, k).wrapping_mul(entry(k, j)))
            })
        };
        (0..n)
            .flat_map(|i| (i + 1..n).map(move |j| (i, j)))
            .map(|(i, j)| dot(i, j))
            .collect()
    }

    fn check(n: usize, d: &[u64]) {
        let matrix = Triangle::new(n, d).unwrap();
        let (expected, weights) = (naive(n, d), words(pair_count(n), 9));
        let dot = |range: Range<usize>| {
            let both = expected[range.clone()].iter().zip(&weights[range]);
            both.fold(0u64, |sum, (x, w)| sum.wrapping_add(x.wrapping_mul(*w)))
        };
        for level in Level::available() {
            for cut in [0, n / 3] {
                for rows in [0..cut, cut..n] {
                    let pairs = row_start(n, rows.start)..row_start(n, rows.end);
                    let found = rows_of_square(matrix, rows.clone(), level);
                    assert!(
                        found == expected[pairs.clone()],
                        "{n} {rows:?} {level:?} {:x}",
                        d[0]
                    );
                    let sum = contract(matrix, rows, &weights[pairs.clone()], level);
                    assert_eq!(sum, dot(pairs));
                }
            }
        }
    }

    #[test]
    fn every_level_squares_every_size() {
        // Up to more than one step of the depth, one strip of columns and one group of rows.
        // Without optimization the largest takes most of a minute.
        let largest = if cfg!(debug_assertions) { 131 } else { 261 };
        for n in (2..=26).step_by(3).chain([49, 64, 65, largest]) {
            check(n, &words(pair_count(n), 5));
        }
    }

    #[test]
    fn halves_carry_into_each_other() {
        for n in [2, 3, 17, if cfg!(debug_assertions) { 34 } else { 131 }] {
            let count = pair_count(n);
            let few = [0, 1, u64::MAX, 1 << 63, u64::from(u32::MAX), 1 << 32];
            for word in few.into_iter().chain([!u64::from(u32::MAX), 1 << 31]) {
                check(n, &vec![word; count]);
            }
            let random = words(count, 11);
            let map = |f: fn(u64) -> u64| random.iter().map(|x| f(*x)).collect::<Vec<u64>>();
            check(n, &map(|x| x << 32));
            check(n, &map(|x| x >> 32));
            check(n, &map(|x| x | !u64::from(u32::MAX)));
            check(n, &map(|x| x | u64::from(u32::MAX)));
            check(n, &map(|x| if x % 3 == 0 { u64::MAX } else { x % 2 }));
        }
    }

    #[test]
    fn more_than_one_band_is_the_bands() {
        let n = BAND + 100;
        let d = words(pair_count(n), 3);
        let matrix = Triangle::new(n, &d).unwrap();
        let mut bands = rows_of_square(matrix, 0..BAND, Level::best());
        bands.extend(rows_of_square(matrix, BAND..n, Level::best()));
        assert!(bands == rows_of_square(matrix, 0..n, Level::best()));
    }
}
