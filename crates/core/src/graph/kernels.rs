//! Counts on bit rows: triangles, common neighbours and their moments, 4-cycles, 4-cliques.
//!
//! All are sums of popcount(row u AND row v). They are tiled so that the rows of one tile stay
//! in a core's own cache while many others stream past it.

use rayon::prelude::*;

use super::bitrows::{BitRows, LANES, ones, row_words};
use super::simd::Level;

/// Words in a column strip: 512 bytes of a row, eight of the widest registers.
const STRIP: usize = 8 * LANES;
/// Bytes of rows in a tile: half of a typical private cache of 1 MiB.
const TILE_BYTES: usize = 1 << 19;

/// popcount(a AND b), for rows of equal length.
///
/// A plain loop: any cleverer one keeps the compiler from using whole registers.
#[inline(always)]
pub(super) fn common(a: &[u64], b: &[u64]) -> u64 {
    a.iter()
        .zip(b)
        .map(|(x, y)| u64::from((x & y).count_ones()))
        .sum()
}

/// Zeroed words that start on a cache line: loads that straddle two lines cost double.
struct Aligned {
    buffer: Vec<u64>,
    start: usize,
    len: usize,
}

impl Aligned {
    fn new(len: usize) -> Self {
        let buffer = vec![0u64; len + LANES];
        let start = buffer.as_ptr().align_offset(8 * LANES).min(LANES);
        Self { buffer, start, len }
    }

    fn words(&mut self) -> &mut [u64] {
        &mut self.buffer[self.start..self.start + self.len]
    }
}

/// The number of triangles.
///
/// Each is counted once, at u < v < w: for a tile of nodes v, their rows cut to the columns
/// w > v are held in cache, strip by strip, and every u with a neighbour in the tile meets them.
pub fn triangles(rows: BitRows<'_>, level: Level) -> u64 {
    let (n, width) = (rows.n(), row_words(rows.n()));
    let tile = TILE_BYTES / (8 * STRIP);
    let tasks: Vec<(usize, usize)> = (0..n.div_ceil(tile))
        .flat_map(|t| {
            // Columns left of the tile's first node hold no w > v.
            let first = t * tile / 64 / STRIP * STRIP;
            (first..width).step_by(STRIP).map(move |s| (t * tile, s))
        })
        .collect();
    tasks
        .into_par_iter()
        .map(|(start, strip)| {
            let (end, stop) = ((start + tile).min(n), (strip + STRIP).min(width));
            level.run(
                #[inline(always)]
                || triangle_tile(rows, start, end, strip, stop),
            )
        })
        .sum()
}

#[inline(always)]
fn triangle_tile(rows: BitRows<'_>, start: usize, end: usize, strip: usize, stop: usize) -> u64 {
    let len = stop - strip;
    let (mut held, mut columns) = (Aligned::new((end - start) * len), Aligned::new(len));
    let (held, columns) = (held.words(), columns.words());
    for (v, row) in (start..end).zip(held.chunks_exact_mut(len)) {
        row.copy_from_slice(&rows.row(v)[strip..stop]);
        let cut = (v + 1).saturating_sub(64 * strip);
        let whole = (cut / 64).min(len);
        row[..whole].fill(0);
        if whole < len {
            row[whole] &= u64::MAX << (cut % 64);
        }
    }
    let mut count = 0;
    for u in 0..end {
        let row = rows.row(u);
        columns.copy_from_slice(&row[strip..stop]);
        for v in ones(row, start.max(u + 1)..end) {
            let from = (v - start) * len;
            count += common(columns, &held[from..from + len]);
        }
    }
    count
}

/// Sums over the other nodes v of one node u; c is the number of common neighbours of u and v,
/// d the degree of v. `all` runs over every v ≠ u, `joined` over the neighbours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moments {
    /// Σ c, Σ c², Σ c·d over all v ≠ u.
    pub all: [u64; 3],
    /// Σ c, Σ c², Σ c·d over the neighbours of u.
    pub joined: [u64; 3],
    /// Σ d, Σ d² over the neighbours of u.
    pub joined_degrees: [u64; 2],
}

/// Nodes v met at once: their rows are a tile, their counts a small buffer.
const MET: usize = 64;
/// Nodes u that pass a tile before the next one is fetched.
const GROUP: usize = 64;

/// The [`Moments`] of the nodes in `picked`.
pub fn moments(rows: BitRows<'_>, picked: &[u32], level: Level) -> Vec<Moments> {
    let degrees = rows.degrees();
    let mut found = vec![Moments::default(); picked.len()];
    found
        .par_chunks_mut(GROUP)
        .zip(picked.par_chunks(GROUP))
        .for_each(|(found, picked)| {
            level.run(
                #[inline(always)]
                || moment_group(rows, &degrees, picked, found),
            );
        });
    found
}

#[inline(always)]
fn moment_group(rows: BitRows<'_>, degrees: &[u32], picked: &[u32], found: &mut [Moments]) {
    let width = row_words(rows.n());
    let (mut held, mut row) = (Aligned::new(MET * width), Aligned::new(width));
    let (held, row) = (held.words(), row.words());
    for start in (0..rows.n()).step_by(MET) {
        let end = (start + MET).min(rows.n());
        for (v, copy) in (start..end).zip(held.chunks_exact_mut(width)) {
            copy.copy_from_slice(rows.row(v));
        }
        for (&u, sums) in picked.iter().zip(found.iter_mut()) {
            row.copy_from_slice(rows.row(u as usize));
            // The padding lanes of a last, short tile stay zero and add nothing.
            let (mut c, mut d) = ([0u32; MET], [0u32; MET]);
            for (c, other) in c.iter_mut().zip(held.chunks_exact(width)).take(end - start) {
                *c = common(row, other) as u32;
            }
            d[..end - start].copy_from_slice(&degrees[start..end]);
            if (start..end).contains(&(u as usize)) {
                c[u as usize - start] = 0; // row u AND row u is no pair
            }
            add_moments(sums, &c, &d, row[start / 64]);
        }
    }
}

#[inline(always)]
fn add_moments(sums: &mut Moments, c: &[u32; MET], d: &[u32; MET], joined: u64) {
    let mut s = [0u64; 8];
    for i in 0..MET {
        let (c, d) = (u64::from(c[i]), u64::from(d[i]));
        let y = 0u64.wrapping_sub(joined >> i & 1);
        s[0] += c;
        s[1] += c * c;
        s[2] += c * d;
        s[3] += c & y;
        s[4] += (c * c) & y;
        s[5] += (c * d) & y;
        s[6] += d & y;
        s[7] += (d * d) & y;
    }
    for i in 0..3 {
        sums.all[i] += s[i];
        sums.joined[i] += s[3 + i];
    }
    sums.joined_degrees[0] += s[6];
    sums.joined_degrees[1] += s[7];
}

/// The numbers of common neighbours of each node in `picked` with every node (0 with itself).
pub fn common_neighbours(rows: BitRows<'_>, picked: &[u32], level: Level) -> Vec<u32> {
    let mut found = vec![0u32; picked.len() * rows.n()];
    found
        .par_chunks_mut(rows.n().max(1))
        .zip(picked)
        .for_each(|(found, &u)| {
            level.run(
                #[inline(always)]
                || {
                    let row = rows.row(u as usize);
                    for (v, c) in found.iter_mut().enumerate() {
                        *c = common(row, rows.row(v)) as u32;
                    }
                },
            );
            found[u as usize] = 0;
        });
    found
}

/// The number of 4-cliques: for each edge u < v and common neighbour w > v, the x > w joined to all.
pub fn four_cliques(rows: BitRows<'_>, level: Level) -> u64 {
    (0..rows.n())
        .into_par_iter()
        .map(|u| {
            level.run(
                #[inline(always)]
                || {
                    let row = rows.row(u);
                    let mut both = vec![0u64; row.len()];
                    let mut count = 0;
                    for v in ones(row, u + 1..rows.n()) {
                        for (b, (x, y)) in both.iter_mut().zip(row.iter().zip(rows.row(v))) {
                            *b = x & y;
                        }
                        // Each such w, x pair is met from both ends.
                        for w in ones(&both, v + 1..rows.n()) {
                            let from = w / 64 / LANES * LANES;
                            let after = common(&both[from..], &rows.row(w)[from..]);
                            let upto = ones(&both, 64 * from..w)
                                .filter(|&x| rows.row(w)[x / 64] >> (x % 64) & 1 == 1)
                                .count() as u64;
                            count += after - upto;
                        }
                    }
                    count
                },
            )
        })
        .sum()
}

/// Σ f(u)·f(v) over the edges u < v.
pub fn edge_products(rows: BitRows<'_>, f: &[f64]) -> f64 {
    (0..rows.n())
        .into_par_iter()
        .map(|u| {
            let sum: f64 = ones(rows.row(u), u + 1..rows.n()).map(|v| f[v]).sum();
            f[u] * sum
        })
        // Collected, so that the order of addition does not depend on the threads.
        .collect::<Vec<f64>>()
        .iter()
        .sum()
}

/// How many neighbours of every node are in each of `groups` groups, one row a node; `group` names
/// the group of every node.
///
/// It steps from one to one, so its time does not grow with the number of groups.
pub fn group_degrees(rows: BitRows<'_>, group: &[u32], groups: usize) -> Vec<u32> {
    let mut found = vec![0u32; rows.n() * groups];
    found
        .par_chunks_mut(groups.max(1))
        .enumerate()
        .for_each(|(u, found)| {
            for v in ones(rows.row(u), 0..rows.n()) {
                found[group[v] as usize] += 1;
            }
        });
    found
}

#[cfg(test)]
mod tests {
    use super::super::bitrows::{from_triangle, induced, triangle_of_pairs};
    use super::*;
    use proptest::prelude::*;

    struct Naive {
        triangles: u64,
        cliques: u64,
        moments: Vec<Moments>,
        common: Vec<u32>,
    }

    fn naive(n: usize, joined: &[Vec<bool>]) -> Naive {
        let degree = |u: usize| joined[u].iter().filter(|&&y| y).count() as u64;
        let mut found = Naive {
            triangles: 0,
            cliques: 0,
            moments: vec![Moments::default(); n],
            common: vec![0; n * n],
        };
        for u in 0..n {
            for v in (0..n).filter(|&v| v != u) {
                let c = (0..n).filter(|&w| joined[u][w] && joined[v][w]).count() as u64;
                found.common[u * n + v] = c as u32;
                let sums = [c, c * c, c * degree(v)];
                for (i, sum) in sums.iter().enumerate() {
                    found.moments[u].all[i] += sum;
                    if joined[u][v] {
                        found.moments[u].joined[i] += sum;
                    }
                }
                if joined[u][v] {
                    found.moments[u].joined_degrees[0] += degree(v);
                    found.moments[u].joined_degrees[1] += degree(v) * degree(v);
                }
            }
            for v in u + 1..n {
                for w in v + 1..n {
                    if joined[u][v] && joined[u][w] && joined[v][w] {
                        found.triangles += 1;
                        found.cliques += (w + 1..n)
                            .filter(|&x| joined[u][x] && joined[v][x] && joined[w][x])
                            .count() as u64;
                    }
                }
            }
        }
        found
    }

    fn check(n: usize, pairs: &[(usize, usize)]) {
        let mut joined = vec![vec![false; n]; n];
        for &(u, v) in pairs {
            joined[u][v] = true;
            joined[v][u] = true;
        }
        let flat: Vec<u32> = pairs
            .iter()
            .flat_map(|&(u, v)| [u as u32, v as u32])
            .collect();
        let words = from_triangle(n, &triangle_of_pairs(n, &flat));
        let rows = BitRows::new(n, &words).unwrap();
        let expected = naive(n, &joined);
        let everyone: Vec<u32> = (0..n as u32).collect();
        for level in Level::available() {
            assert_eq!(triangles(rows, level), expected.triangles, "{level:?}");
            assert_eq!(four_cliques(rows, level), expected.cliques, "{level:?}");
            assert_eq!(
                moments(rows, &everyone, level),
                expected.moments,
                "{level:?}"
            );
            assert_eq!(
                common_neighbours(rows, &everyone, level),
                expected.common,
                "{level:?}"
            );
        }
        let f: Vec<f64> = (0..n).map(|u| (u * u) as f64 - 3.0).collect();
        let products: f64 = pairs.iter().map(|&(u, v)| f[u] * f[v]).sum();
        assert_eq!(edge_products(rows, &f), products);
        check_groups(rows, &joined);
    }

    fn check_groups(rows: BitRows<'_>, joined: &[Vec<bool>]) {
        let n = rows.n();
        let group: Vec<u32> = (0..n as u32).map(|u| u * u % 3).collect();
        let expected: Vec<u32> = (0..n)
            .flat_map(|u| {
                let of = |g| (0..n).filter(|&v| joined[u][v] && group[v] == g).count() as u32;
                [of(0), of(1), of(2)]
            })
            .collect();
        assert_eq!(group_degrees(rows, &group, 3), expected);
        // Every second node, backwards.
        let picked: Vec<u32> = (0..n as u32).rev().step_by(2).collect();
        let words = induced(rows, &picked);
        let part = BitRows::new(picked.len(), &words).unwrap();
        for (i, &u) in picked.iter().enumerate() {
            let found: Vec<usize> = ones(part.row(i), 0..64 * part.row(i).len()).collect();
            let expected: Vec<usize> = (0..picked.len())
                .filter(|&j| joined[u as usize][picked[j] as usize])
                .collect();
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn all_levels_of_this_cpu_are_tested() {
        let names: Vec<&str> = Level::available().iter().map(|l| l.name()).collect();
        println!("levels: {names:?}");
        assert_eq!(names[0], "portable");
        for level in Level::available() {
            assert_eq!(Level::named(level.name()), Some(level));
        }
        assert_eq!(Level::named("abacus"), None);
    }

    #[test]
    fn small_and_complete_graphs() {
        for n in [0, 1, 2, 3, 4, 5, 63, 64, 65] {
            let complete: Vec<_> = (0..n)
                .flat_map(|u| (u + 1..n).map(move |v| (u, v)))
                .collect();
            check(n, &[]);
            check(n, &complete);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn random_graphs(n in 2usize..150, density in 1u32..100, seed in any::<u64>()) {
            let mut state = seed | 1;
            let mut pairs = Vec::new();
            for u in 0..n {
                for v in u + 1..n {
                    state ^= state << 13;
                    state ^= state >> 7;
                    state ^= state << 17;
                    if state % 100 < u64::from(density) {
                        pairs.push((u, v));
                    }
                }
            }
            check(n, &pairs);
        }
    }

    /// More nodes than a tile and a strip hold, so that every boundary is crossed.
    #[test]
    fn tiles_and_strips_join() {
        let n = 4500;
        let pairs: Vec<(usize, usize)> = (0..n)
            .flat_map(|u| [1, 2, 700, 2100, 4100].map(move |step| (u, (u + step) % n)))
            .map(|(u, v)| (u.min(v), u.max(v)))
            .collect();
        let flat: Vec<u32> = pairs
            .iter()
            .flat_map(|&(u, v)| [u as u32, v as u32])
            .collect();
        let words = from_triangle(n, &triangle_of_pairs(n, &flat));
        let rows = BitRows::new(n, &words).unwrap();
        let mut expected = 0;
        for &(u, v) in &pairs {
            expected += (0..n)
                .filter(|&w| {
                    let has = |a: usize| rows.row(a)[w / 64] >> (w % 64) & 1 == 1;
                    w > v && has(u) && has(v)
                })
                .count() as u64;
        }
        assert!(expected > 0);
        for level in Level::available() {
            assert_eq!(triangles(rows, level), expected, "{level:?}");
        }
    }
}
