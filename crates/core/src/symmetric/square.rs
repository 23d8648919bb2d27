//! The square of a symmetric matrix with a zero diagonal, mod 2^64, band by band.
//!
//! D² is symmetric too, so only its entries right of the diagonal are made: about n³/2 products of
//! 64-bit words. It is never stored: rows of finished blocks are handed to the caller, who sums
//! them against something or writes down a band. The rows of a band are packed once; columns are
//! packed as they are needed, a panel at a time, and each packed word meets all rows of the band.

use std::ops::Range;

use rayon::prelude::*;

use super::matrix::{Triangle, row_start};
use super::simd::{Block, COLUMNS, ROWS, multiply_add};
use crate::graph::simd::Level;

/// Rows of a band. A packed word of a column meets all of them.
pub const BAND: usize = 512;
/// How deep a block is multiplied before the next. A packed panel of 24 columns takes 48 KiB: it
/// streams from the second cache, which is fast enough, and loading and storing sums costs less.
const DEPTH: usize = 256;
/// Panels of columns in a task.
const PANELS: usize = 8;

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
    let blocks = rows.len().div_ceil(ROWS);
    let mut left = vec![[0u64; ROWS]; blocks * n];
    left.par_chunks_mut(n.max(1))
        .enumerate()
        .for_each(|(b, panel)| {
            matrix.pack(rows.start + b * ROWS, 0..n, panel);
        });
    let tasks: Vec<usize> = (rows.start..n).step_by(PANELS * COLUMNS).collect();
    tasks
        .into_par_iter()
        .map(|first| {
            let mut state = T::default();
            let columns = first..(first + PANELS * COLUMNS).min(n);
            strip(
                matrix,
                &left,
                rows.clone(),
                columns,
                level,
                |i, j, words| {
                    take(&mut state, i, j, words);
                },
            );
            state
        })
        .collect()
}

/// One task: all rows of the band in a few panels of columns.
fn strip(
    matrix: Triangle<'_>,
    left: &[[u64; ROWS]],
    rows: Range<usize>,
    columns: Range<usize>,
    level: Level,
    mut take: impl FnMut(usize, usize, &[u64]),
) {
    let n = matrix.n();
    let blocks = rows.len().div_ceil(ROWS);
    let panels: Vec<usize> = columns.clone().step_by(COLUMNS).collect();
    // Blocks wholly left of the diagonal are those of other bands, transposed.
    let needed = |panel: usize| {
        blocks.min(
            (panel + COLUMNS - 1)
                .saturating_sub(rows.start)
                .div_ceil(ROWS),
        )
    };
    let mut sums: Vec<Block> = vec![[[0; COLUMNS]; ROWS]; panels.len() * blocks];
    let mut right = [[0u64; COLUMNS]; DEPTH];
    for start in (0..n).step_by(DEPTH) {
        let depth = start..(start + DEPTH).min(n);
        let right = &mut right[..depth.len()];
        for (&panel, sums) in panels.iter().zip(sums.chunks_mut(blocks)) {
            matrix.pack(panel, depth.clone(), right);
            for (b, block) in sums.iter_mut().take(needed(panel)).enumerate() {
                let left = &left[b * n..][depth.clone()];
                multiply_add(level, left, right, block);
            }
        }
    }
    for (&panel, sums) in panels.iter().zip(sums.chunks(blocks)) {
        for (b, block) in sums.iter().take(needed(panel)).enumerate() {
            let first = rows.start + b * ROWS;
            for (i, words) in (first..rows.end).zip(block) {
                let (from, to) = (panel.max(i + 1), (panel + COLUMNS).min(columns.end));
                if from < to {
                    take(i, from, &words[from - panel..to - panel]);
                }
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
    let strips = band(
        matrix,
        rows.clone(),
        level,
        |strip: &mut Strip, i, j, words| {
            strip.0.push((start(i) + (j - i - 1) - base, words.len()));
            strip.1.extend_from_slice(words);
        },
    );
    let mut square = vec![0; start(rows.end) - base];
    for (places, words) in strips {
        let mut rest = words.as_slice();
        for (at, length) in places {
            let (own, others) = rest.split_at(length);
            square[at..at + length].copy_from_slice(own);
            rest = others;
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

    #[test]
    fn every_level_squares_every_size() {
        for n in (2..=26).step_by(3).chain([49, 131]) {
            let d = words(pair_count(n), 5);
            let matrix = Triangle::new(n, &d).unwrap();
            let (expected, weights) = (naive(n, &d), words(pair_count(n), 9));
            let dot = |range: Range<usize>| {
                let both = expected[range.clone()].iter().zip(&weights[range]);
                both.fold(0u64, |sum, (x, w)| sum.wrapping_add(x.wrapping_mul(*w)))
            };
            for level in Level::available() {
                for cut in [0, n / 3] {
                    for rows in [0..cut, cut..n] {
                        let pairs = row_start(n, rows.start)..row_start(n, rows.end);
                        let found = rows_of_square(matrix, rows.clone(), level);
                        assert_eq!(found, expected[pairs.clone()], "{n} {rows:?} {level:?}");
                        let sum = contract(matrix, rows, &weights[pairs.clone()], level);
                        assert_eq!(sum, dot(pairs));
                    }
                }
            }
        }
    }
}
