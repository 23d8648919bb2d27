//! A graph as a symmetric matrix of bits, one padded row per node.
//!
//! Two layouts of the same graph:
//! * the **triangle**: bit k is pair k, k = u·n − u(u+1)/2 + (v−u−1), u < v. Protocols and files use it.
//! * the **rows**: row u has bit v set where u and v are joined. Kernels use it.

use std::ops::Range;

use rayon::prelude::*;

/// Words (of 64 bits) in one vector register of the widest kernel.
pub const LANES: usize = 8;

/// The number of pairs u < v of n nodes; `usize::MAX`, which no list has, where it is larger.
///
/// Lengths of what others send are compared with it, so it must not wrap round to a small number.
pub fn pair_count(n: usize) -> usize {
    let pairs = n as u128 * n.saturating_sub(1) as u128 / 2;
    usize::try_from(pairs).unwrap_or(usize::MAX)
}

/// The index of the first pair of row u, (u, u+1).
fn row_start(n: usize, u: usize) -> usize {
    u * n - u * (u + 1) / 2
}

/// The index of the pair u < v.
pub fn pair_index(n: usize, u: usize, v: usize) -> usize {
    row_start(n, u) + (v - u - 1)
}

/// Words in a padded row: whole vector registers, so that no kernel has a tail.
pub fn row_words(n: usize) -> usize {
    n.div_ceil(64 * LANES) * LANES
}

/// A borrowed graph in the row layout. Invariants: symmetric, diagonal zero, padding zero.
#[derive(Clone, Copy)]
pub struct BitRows<'a> {
    n: usize,
    words: &'a [u64],
}

impl<'a> BitRows<'a> {
    /// Borrows `words`, or `None` where their number is not that of n padded rows.
    ///
    /// The other invariants are the maker's ([`into_rows`]); they are not checked again.
    pub fn new(n: usize, words: &'a [u64]) -> Option<Self> {
        (n.checked_mul(row_words(n)) == Some(words.len())).then_some(Self { n, words })
    }

    /// The number of nodes.
    pub fn n(&self) -> usize {
        self.n
    }

    /// Row u.
    pub fn row(&self, u: usize) -> &'a [u64] {
        let width = row_words(self.n);
        &self.words[u * width..(u + 1) * width]
    }

    /// The number of neighbours of every node.
    pub fn degrees(&self) -> Vec<u32> {
        (0..self.n)
            .into_par_iter()
            .map(|u| self.row(u).iter().map(|w| w.count_ones()).sum())
            .collect()
    }
}

/// The positions of the ones of `row` within `range`, ascending.
pub fn ones(row: &[u64], range: Range<usize>) -> impl Iterator<Item = usize> {
    let (first, last) = (range.start / 64, range.end.div_ceil(64).min(row.len()));
    (first..last).flat_map(move |w| {
        let mut word = row[w];
        if w == first {
            word &= u64::MAX << (range.start % 64);
        }
        if w + 1 == last && !range.end.is_multiple_of(64) {
            word &= u64::MAX >> (64 - range.end % 64);
        }
        std::iter::from_fn(move || {
            (word != 0).then(|| {
                let bit = word.trailing_zeros() as usize;
                word &= word - 1;
                w * 64 + bit
            })
        })
    })
}

/// The rows of a list of pairs (u < v < n); repeats are harmless.
pub fn rows_of_pairs(n: usize, pairs: &[u32]) -> Vec<u64> {
    into_rows(n, triangle_of_pairs(n, pairs))
}

/// The triangle of a list of pairs (u < v < n); repeats are harmless.
pub fn triangle_of_pairs(n: usize, pairs: &[u32]) -> Vec<u64> {
    let mut triangle = vec![0u64; pair_count(n).div_ceil(64)];
    set_pairs(n, pairs, &mut triangle);
    triangle
}

/// Writes the triangle of a list of pairs (u < v < n) over all of `triangle`.
///
/// Every word is written, also those without a pair: memory that was never written is slower to
/// read, or quicker, and the time of a later read would show where pairs are.
pub fn write_triangle(n: usize, pairs: &[u32], triangle: &mut [u64]) {
    triangle.fill(0);
    set_pairs(n, pairs, triangle);
}

fn set_pairs(n: usize, pairs: &[u32], triangle: &mut [u64]) {
    for pair in pairs.chunks_exact(2) {
        let k = pair_index(n, pair[0] as usize, pair[1] as usize);
        triangle[k / 64] |= 1 << (k % 64);
    }
}

/// Rows from a triangle (bits past the last pair are ignored), in place: a graph never takes more
/// memory than its rows.
///
/// The triangle stays at the front, and the last row is made first. Row u starts at u·n bits or
/// later, where no row before it is left: in the triangle they end at u·n − u(u+1)/2.
pub fn into_rows(n: usize, triangle: Vec<u64>) -> Vec<u64> {
    let (width, mut rows) = (row_words(n), triangle);
    rows.resize(n * width, 0);
    let mut row = vec![0u64; width];
    for u in (0..n).rev() {
        row.fill(0);
        copy_bits(&rows, row_start(n, u), &mut row, u + 1, n - 1 - u);
        rows[u * width..(u + 1) * width].copy_from_slice(&row);
    }
    mirror(n, &mut rows);
    rows
}

/// The rows of the graph on the nodes in `picked` alone, in their order.
pub fn induced(rows: BitRows<'_>, picked: &[u32]) -> Vec<u64> {
    let width = row_words(picked.len());
    let mut found = vec![0u64; picked.len() * width];
    found
        .par_chunks_mut(width.max(1))
        .zip(picked)
        .for_each(|(found, &u)| {
            let row = rows.row(u as usize);
            for (word, columns) in found.iter_mut().zip(picked.chunks(64)) {
                for (bit, &v) in columns.iter().enumerate() {
                    *word |= (row[v as usize / 64] >> (v % 64) & 1) << bit;
                }
            }
        });
    found
}

/// The triangle of rows, the inverse of [`into_rows`].
pub fn to_triangle(rows: BitRows<'_>) -> Vec<u64> {
    let n = rows.n();
    let mut triangle = vec![0u64; pair_count(n).div_ceil(64)];
    for u in 0..n {
        copy_bits(
            rows.row(u),
            u + 1,
            &mut triangle,
            row_start(n, u),
            n - 1 - u,
        );
    }
    triangle
}

/// The pairs of a graph in ascending order, flat: u, v, u, v, …
pub fn to_pairs(rows: BitRows<'_>) -> Vec<u32> {
    (0..rows.n())
        .into_par_iter()
        .flat_map_iter(|u| {
            ones(rows.row(u), u + 1..rows.n()).flat_map(move |v| [u as u32, v as u32])
        })
        .collect()
}

/// Copies `len` bits from bit `from` of `source` onto the (zero) bits at `to` of `target`.
fn copy_bits(source: &[u64], from: usize, target: &mut [u64], to: usize, len: usize) {
    let mut done = 0;
    while done < len {
        let (s, t) = (from + done, to + done);
        let step = (64 - t % 64).min(len - done);
        let mut word = source[s / 64] >> (s % 64);
        if s % 64 + step > 64 {
            word |= source[s / 64 + 1] << (64 - s % 64);
        }
        if step < 64 {
            word &= (1 << step) - 1;
        }
        target[t / 64] |= word << (t % 64);
        done += step;
    }
}

/// Writes the lower half of a matrix whose upper half is filled, 64 × 64 bits at a time.
///
/// Eight by eight such blocks are a tile: a line of the cache is met once for all of its words.
fn mirror(n: usize, rows: &mut [u64]) {
    let (width, blocks) = (row_words(n), n.div_ceil(64));
    let tiles = (0..blocks).step_by(LANES).flat_map(|above| {
        (above..blocks)
            .step_by(LANES)
            .map(move |right| (above, right))
    });
    for (first, beside) in tiles {
        for above in first..blocks.min(first + LANES) {
            for right in beside.max(above)..blocks.min(beside + LANES) {
                let mut block = [0u64; 64];
                let height = 64.min(n - above * 64);
                for (i, word) in block.iter_mut().enumerate().take(height) {
                    *word = rows[(above * 64 + i) * width + right];
                }
                transpose(&mut block);
                let height = 64.min(n - right * 64);
                for (i, word) in block.iter().enumerate().take(height) {
                    rows[(right * 64 + i) * width + above] |= word;
                }
            }
        }
    }
}

/// Transposes a 64 × 64 bit matrix by swapping ever smaller off-diagonal squares.
fn transpose(block: &mut [u64; 64]) {
    let mut size = 32;
    let mut mask = u64::MAX >> 32;
    while size > 0 {
        let mut i = 0;
        while i < 64 {
            let swapped = ((block[i] >> size) ^ block[i + size]) & mask;
            block[i] ^= swapped << size;
            block[i + size] ^= swapped;
            i = (i + size + 1) & !size;
        }
        size /= 2;
        mask ^= mask << size;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn pair_indices_are_dense_and_ordered() {
        for n in 0..70 {
            let mut k = 0;
            for u in 0..n {
                for v in u + 1..n {
                    assert_eq!(pair_index(n, u, v), k);
                    k += 1;
                }
            }
            assert_eq!(pair_count(n), k);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn layouts_agree(n in 0usize..700, picks in prop::collection::vec(any::<u64>(), 0..400)) {
            let mut pairs: Vec<(u32, u32)> = picks
                .iter()
                .filter(|_| n >= 2)
                .map(|p| {
                    let u = (p % (n as u64 - 1)) as u32;
                    (u, u + 1 + ((p >> 32) % (n as u64 - 1 - u64::from(u))) as u32)
                })
                .collect();
            pairs.sort_unstable();
            pairs.dedup();
            let flat: Vec<u32> = pairs.iter().flat_map(|&(u, v)| [u, v]).collect();
            let words = rows_of_pairs(n, &flat);
            let rows = BitRows::new(n, &words).unwrap();
            prop_assert_eq!(to_triangle(rows), triangle_of_pairs(n, &flat));
            prop_assert_eq!(to_pairs(rows), flat);
            let mut degrees = vec![0u32; n];
            for &(u, v) in &pairs {
                degrees[u as usize] += 1;
                degrees[v as usize] += 1;
            }
            prop_assert_eq!(rows.degrees(), degrees);
            for u in 0..n {
                for v in ones(rows.row(u), 0..n) {
                    prop_assert!(ones(rows.row(v), u..u + 1).eq([u]));
                }
            }
        }
    }
}
