//! Counts on bit rows: triangles, common neighbours and their moments, 4-cycles, 4-cliques.
//!
//! All are sums of popcount(row u AND row v). They are tiled so that the rows of one tile stay
//! in a core's own cache while many others stream past it.

use std::ops::Range;

use rayon::prelude::*;

use super::bitrows::{BitRows, LANES, ones, row_words};
use super::popcount::{Ones, common, common_of_four};
use super::simd::{Level, STRIP, common_ones, fetch};

/// Bytes of rows in a tile: half of a private cache of 512 KiB, the smallest of servers.
const TILE_BYTES: usize = 1 << 18;

/// Rows are fetched so many before they are used: they lie apart, where no cache expects them.
const AHEAD: usize = 2;

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
            (t * tile / 64..width)
                .step_by(STRIP)
                .map(move |s| (t * tile, s))
        })
        .collect();
    tasks
        .into_par_iter()
        .map(|(start, strip)| {
            let (end, stop) = ((start + tile).min(n), (strip + STRIP).min(width));
            level.run(
                #[inline(always)]
                || triangle_tile(rows, start..end, strip..stop, level),
            )
        })
        .sum()
}

#[inline(always)]
fn triangle_tile(rows: BitRows<'_>, nodes: Range<usize>, strip: Range<usize>, level: Level) -> u64 {
    // A last, short strip is filled up with zeros.
    let (mut held, mut columns) = (Aligned::new(nodes.len() * STRIP), Aligned::new(STRIP));
    let (held, _) = held.words().as_chunks_mut::<STRIP>();
    let (columns, _) = columns.words().as_chunks_mut::<STRIP>();
    for (v, row) in nodes.clone().zip(held.iter_mut()) {
        row[..strip.len()].copy_from_slice(&rows.row(v)[strip.clone()]);
        let cut = (v + 1).saturating_sub(64 * strip.start);
        let whole = (cut / 64).min(STRIP);
        row[..whole].fill(0);
        if whole < STRIP {
            row[whole] &= u64::MAX << (cut % 64);
        }
    }
    let (mut count, mut added) = (0, Ones::default());
    let mut bits = vec![0; nodes.len().div_ceil(64)];
    for u in 0..nodes.end {
        let row = rows.row(u);
        let ahead = rows.row((u + AHEAD).min(nodes.end - 1));
        fetch(&ahead[strip.clone()]);
        fetch(&ahead[nodes.start / 64..nodes.end.div_ceil(64)]);
        columns[0][..strip.len()].copy_from_slice(&row[strip.clone()]);
        let neighbours = nodes.start / 64..nodes.end.div_ceil(64);
        bits.copy_from_slice(&row[neighbours]);
        // Nor beyond the tile, in whose last word a matrix from elsewhere may have anything.
        if let (Some(last), used @ 1..) = (bits.last_mut(), nodes.len() % 64) {
            *last &= !(u64::MAX << used);
        }
        if u >= nodes.start {
            // Only those behind u.
            let behind = u + 1 - nodes.start;
            bits[..behind / 64].fill(0);
            if let Some(bits) = bits.get_mut(behind / 64) {
                *bits &= u64::MAX << (behind % 64);
            }
        }
        match common_ones(level, (&columns[0], strip.len()), &bits, held) {
            Some(found) => count += found,
            None => {
                for v in ones(&bits, 0..nodes.len()) {
                    added.add(&columns[0], &held[v]);
                }
            }
        }
    }
    count + added.total()
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

impl Moments {
    /// From its sums in the order of its fields.
    #[inline(always)]
    fn of([c, c2, cd, joined_c, joined_c2, joined_cd, d, d2]: [u64; 8]) -> Self {
        Self {
            all: [c, c2, cd],
            joined: [joined_c, joined_c2, joined_cd],
            joined_degrees: [d, d2],
        }
    }

    #[inline(always)]
    fn add(&mut self, other: &Self) {
        for i in 0..3 {
            self.all[i] += other.all[i];
            self.joined[i] += other.joined[i];
        }
        for (sum, term) in self.joined_degrees.iter_mut().zip(other.joined_degrees) {
            *sum += term;
        }
    }
}

/// Words of a strip of the rows that a tile meets four at a time: they stay in the first cache.
const LONG_STRIP: usize = 512;
/// Nodes that meet as many others at once: their rows are a tile, their counts a small buffer.
const MET: usize = 64;

/// The [`Moments`] of the nodes in `picked`.
pub fn moments(rows: BitRows<'_>, picked: &[u32], level: Level) -> Vec<Moments> {
    let degrees = rows.degrees();
    let mut found = vec![Moments::default(); picked.len()];
    found
        .par_chunks_mut(MET)
        .zip(picked.par_chunks(MET))
        .for_each(|(found, picked)| {
            level.run(
                #[inline(always)]
                || {
                    let mut tile = Tile::new(rows);
                    for start in (0..rows.n()).step_by(MET) {
                        tile.fetch(start, &degrees);
                        for (four, sums) in picked.chunks(4).zip(found.chunks_mut(4)) {
                            let counts = tile.counts(four.iter().map(|&u| u as usize), level);
                            for ((&u, sums), c) in four.iter().zip(sums).zip(&counts) {
                                let joined = rows.row(u as usize)[start / 64];
                                add_moments(sums, c, &tile.degrees, joined);
                            }
                        }
                    }
                },
            );
        });
    found
}

/// The [`Moments`] of every node. Each pair is met once, and counted at both of its ends.
pub fn all_moments(rows: BitRows<'_>, level: Level) -> Vec<Moments> {
    let (n, degrees) = (rows.n(), rows.degrees());
    let nobody = || vec![Moments::default(); n];
    (0..n.div_ceil(MET))
        .into_par_iter()
        .fold(nobody, |mut found, tile| {
            level.run(
                #[inline(always)]
                || meet_others(rows, &degrees, tile * MET, &mut found, level),
            );
            found
        })
        .reduce(nobody, |mut sum, found| {
            for (sum, found) in sum.iter_mut().zip(&found) {
                sum.add(found);
            }
            sum
        })
}

/// The tile that starts at `start` meets itself and all nodes after it.
#[inline(always)]
fn meet_others(
    rows: BitRows<'_>,
    degrees: &[u32],
    start: usize,
    found: &mut [Moments],
    level: Level,
) {
    let mut tile = Tile::new(rows);
    tile.fetch(start, degrees);
    let mut of_tile = [[0; MET]; 8];
    for first in (start..rows.n()).step_by(4) {
        let four = first..(first + 4).min(rows.n());
        for (u, c) in four.clone().zip(&tile.counts(four, level)) {
            let joined = rows.row(u)[start / 64];
            add_moments(&mut found[u], c, &tile.degrees, joined);
            // Within the tile, both orders of a pair come by.
            if u >= start + MET {
                add_to_tile(&mut of_tile, c, degrees[u], joined);
            }
        }
    }
    for (i, sums) in found[start..].iter_mut().take(MET).enumerate() {
        sums.add(&Moments::of(std::array::from_fn(|k| of_tile[k][i])));
    }
}

/// What node u, of degree `d`, adds to the sums of [`Moments`] at the nodes of a tile.
#[inline(always)]
fn add_to_tile(sums: &mut [[u64; MET]; 8], c: &[u32; MET], d: u32, joined: u64) {
    let d = u64::from(d);
    for i in 0..MET {
        let (c, y) = (u64::from(c[i]), 0u64.wrapping_sub(joined >> i & 1));
        sums[0][i] += c;
        sums[1][i] += c * c;
        sums[2][i] += c * d;
        sums[3][i] += c & y;
        sums[4][i] += (c * c) & y;
        sums[5][i] += (c * d) & y;
        sums[6][i] += d & y;
        sums[7][i] += (d * d) & y;
    }
}

/// The rows and degrees of some nodes, held in the cache. Those past the last node are zero.
struct Tile<'a> {
    rows: BitRows<'a>,
    held: Aligned,
    /// A strip of the rows that they meet.
    met: Aligned,
    start: usize,
    degrees: [u32; MET],
}

impl<'a> Tile<'a> {
    fn new(rows: BitRows<'a>) -> Self {
        let held = Aligned::new(MET * row_words(rows.n()));
        let met = Aligned::new(4 * LONG_STRIP);
        let (start, degrees) = (0, [0; MET]);
        Self {
            rows,
            held,
            met,
            start,
            degrees,
        }
    }

    #[inline(always)]
    fn fetch(&mut self, start: usize, degrees: &[u32]) {
        let (end, width) = ((start + MET).min(self.rows.n()), row_words(self.rows.n()));
        self.start = start;
        for (v, copy) in (start..end).zip(self.held.words().chunks_exact_mut(width)) {
            copy.copy_from_slice(self.rows.row(v));
        }
        self.degrees = [0; MET];
        self.degrees[..end - start].copy_from_slice(&degrees[start..end]);
    }

    /// The neighbours that the nodes have in common with each of at most four others.
    #[inline(always)]
    fn counts(
        &mut self,
        four: impl Iterator<Item = usize> + Clone,
        level: Level,
    ) -> [[u32; MET]; 4] {
        let (start, nodes) = (self.start, MET.min(self.rows.n() - self.start));
        let (width, mut c) = (row_words(self.rows.n()), [[0; MET]; 4]);
        for strip in (0..width).step_by(LONG_STRIP) {
            let len = LONG_STRIP.min(width - strip);
            for (u, copy) in four
                .clone()
                .zip(self.met.words().chunks_exact_mut(LONG_STRIP))
            {
                copy[..len].copy_from_slice(&self.rows.row(u)[strip..strip + len]);
            }
            let (met, _) = self.met.words().as_chunks::<LONG_STRIP>();
            let met = [
                &met[0][..len],
                &met[1][..len],
                &met[2][..len],
                &met[3][..len],
            ];
            let held = self.held.words().chunks_exact(width).take(nodes);
            for (v, other) in held.enumerate() {
                let found = common_of_four(level, met, &other[strip..strip + len]);
                for (c, found) in c.iter_mut().zip(found) {
                    c[v] += found as u32;
                }
            }
        }
        for (c, u) in c.iter_mut().zip(four) {
            if (start..start + nodes).contains(&u) {
                c[u - start] = 0; // row u AND row u is no pair
            }
        }
        c
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
    sums.add(&Moments::of(s));
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
                        *c = common(level, row, rows.row(v)) as u32;
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
                        let first = v / 64;
                        both[..first].fill(0);
                        let pairs = row.iter().zip(rows.row(v)).skip(first);
                        for (b, (x, y)) in both[first..].iter_mut().zip(pairs) {
                            *b = x & y;
                        }
                        both[first] &= u64::MAX << (v % 64);
                        for i in first..row.len() {
                            let from = i / LANES * LANES;
                            // Each w is taken out as it is met, so that the x > w are left.
                            while both[i] != 0 {
                                let w = 64 * i + both[i].trailing_zeros() as usize;
                                both[i] &= both[i] - 1;
                                count += common(level, &both[from..], &rows.row(w)[from..]);
                            }
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
    use super::super::bitrows::{induced, rows_of_pairs};
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
        let words = rows_of_pairs(n, &flat);
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
            assert_eq!(all_moments(rows, level), expected.moments, "{level:?}");
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

    /// Rows from elsewhere may have ones behind their end, which count alike at every level.
    #[test]
    fn ones_behind_the_end_of_a_row() {
        for n in [1_usize, 63, 65, 100] {
            let words = vec![u64::MAX; n * row_words(n)];
            let rows = BitRows::new(n, &words).unwrap();
            let expected = triangles(rows, Level::named("portable").unwrap());
            for level in Level::available() {
                assert_eq!(triangles(rows, level), expected, "{level:?}");
            }
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
        let words = rows_of_pairs(n, &flat);
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
