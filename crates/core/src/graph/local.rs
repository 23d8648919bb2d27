//! What one silo counts on its own edges and a release together: triples by where their pairs
//! come from, common neighbours and paths of chosen pairs.
//!
//! The silo's own edges are `held`, those of the release that it does not hold are the *others*.
//! All counts are exact integers; what they weigh is decided elsewhere.

use rayon::prelude::*;

use super::bitrows::{BitRows, LANES, ones, row_words};
use super::popcount::common;
use super::simd::Level;

/// Nodes u that share the degrees of what lies after them.
const GROUP: usize = 32;

/// `[h][y]`: triples with h held pairs and y noisy ones among the pairs that are not held.
pub type Triples = [[u64; 4]; 4];

/// The triples whose smallest node is in `owned` (any order, no repeats), by kind.
///
/// For a node u with held neighbours A, other noisy neighbours B and the rest C, all after u, a
/// triple is a pair v, w of them. Pairs v, w of each kind (held, other) are counted within A and B
/// and between them by popcounts; those that reach C follow from the degrees after u.
pub fn triples(held: BitRows<'_>, noisy: BitRows<'_>, owned: &[u32], level: Level) -> Triples {
    let n = held.n();
    let others: Vec<u64> = (0..n)
        .flat_map(|u| held.row(u).iter().zip(noisy.row(u)))
        .map(|(h, y)| y & !h)
        .collect();
    let kinds = [
        held,
        BitRows::new(n, &others).expect("as many rows as the release has"),
    ];
    let mut sorted = owned.to_vec();
    sorted.sort_unstable();
    sorted
        .par_chunks(GROUP)
        .map(|group| {
            level.run(
                #[inline(always)]
                || triple_group(kinds, group, level),
            )
        })
        .reduce(Triples::default, |mut sum, found| {
            for (total, count) in sum.iter_mut().flatten().zip(found.iter().flatten()) {
                *total += count;
            }
            sum
        })
}

#[inline(always)]
fn triple_group(kinds: [BitRows<'_>; 2], group: &[u32], level: Level) -> Triples {
    let n = kinds[0].n();
    let mut found = Triples::default();
    let within = within_others(kinds, group, level);
    let mut after = kinds.map(|rows| degrees_after(rows, group[0] as usize));
    let mut last = group[0] as usize;
    for (&u, within) in group.iter().zip(within) {
        let u = u as usize;
        for (rows, after) in kinds.iter().zip(&mut after) {
            for passed in last + 1..=u {
                for v in ones(rows.row(passed), u + 1..n) {
                    after[v] -= 1;
                }
            }
        }
        last = u;
        add_triples(kinds, &after, within, u, level, &mut found);
    }
    found
}

/// For each node u of the group, how many pairs of each kind join two of its other noisy
/// neighbours B after u. This is nearly all of the work: 64 rows at a time meet every u.
#[inline(always)]
fn within_others(kinds: [BitRows<'_>; 2], group: &[u32], level: Level) -> Vec<[u64; 2]> {
    let width = row_words(kinds[0].n());
    let mut rest: Vec<u64> = group
        .iter()
        .flat_map(|&u| suffix(kinds[1].row(u as usize), u as usize + 1, 0))
        .collect();
    let mut found = vec![[0; 2]; group.len()];
    for word in 0..width {
        let from = word / LANES * LANES;
        for (rest, found) in rest.chunks_exact_mut(width).zip(&mut found) {
            while rest[word] != 0 {
                let v = 64 * word + rest[word].trailing_zeros() as usize;
                // Each pair is met at its smaller end: what is passed is cleared.
                rest[word] &= rest[word] - 1;
                for (rows, count) in kinds.iter().zip(found.iter_mut()) {
                    *count += common(level, &rows.row(v)[from..], &rest[from..]);
                }
            }
        }
    }
    found
}

/// For each node v after u, how many neighbours it has after u.
#[inline(always)]
fn degrees_after(rows: BitRows<'_>, u: usize) -> Vec<u32> {
    let (first, mask) = ((u + 1) / 64, u64::MAX << ((u + 1) % 64));
    let mut degrees = vec![0; rows.n()];
    for (v, degree) in degrees.iter_mut().enumerate().skip(u + 1) {
        let row = &rows.row(v)[first..];
        let whole: u32 = row[1..].iter().map(|w| w.count_ones()).sum();
        *degree = whole + (row[0] & mask).count_ones();
    }
    degrees
}

#[inline(always)]
fn add_triples(
    kinds: [BitRows<'_>; 2],
    after: &[Vec<u32>; 2],
    within: [u64; 2],
    u: usize,
    level: Level,
    found: &mut Triples,
) {
    let n = kinds[0].n();
    // Whole registers from the one that holds the first node after u.
    let from = (u + 1) / 64 / LANES * LANES;
    if u + 1 >= n {
        return;
    }
    let [a, b] = kinds.map(|rows| suffix(rows.row(u), u + 1, from));
    let [in_a, in_b] = [&a, &b].map(|row| ones(row, 0..64 * row.len()).count() as u64);
    let in_c = (n - 1 - u) as u64 - in_a - in_b;
    // The pairs v, w by the sets of their ends, and of each kind.
    let sizes = [
        in_a * in_a.saturating_sub(1) / 2,
        in_a * in_b,
        in_a * in_c,
        in_b * in_b.saturating_sub(1) / 2,
        in_b * in_c,
        in_c * in_c.saturating_sub(1) / 2,
    ];
    let edges = [0, 1].map(|kind| {
        let (rows, after) = (kinds[kind], &after[kind]);
        let (mut twice_aa, mut ab, mut at_a) = (0, 0, 0);
        for v in ones(&a, 0..64 * a.len()) {
            let row = &rows.row(v + 64 * from)[from..];
            twice_aa += common(level, row, &a);
            ab += common(level, row, &b);
            at_a += u64::from(after[v + 64 * from]);
        }
        let at_b: u64 = ones(&b, 0..64 * b.len())
            .map(|v| u64::from(after[v + 64 * from]))
            .sum();
        let all = after[u + 1..].iter().map(|&d| u64::from(d)).sum::<u64>() / 2;
        let (aa, bb) = (twice_aa / 2, within[kind]);
        let (ac, bc) = (at_a - 2 * aa - ab, at_b - 2 * bb - ab);
        [aa, ab, ac, bb, bc, all - aa - ab - ac - bb - bc]
    });
    let ends = [(2, 0), (1, 1), (1, 0), (0, 2), (0, 1), (0, 0)];
    for (i, (h, y)) in ends.into_iter().enumerate() {
        found[h + 1][y] += edges[0][i];
        found[h][y + 1] += edges[1][i];
        found[h][y] += sizes[i] - edges[0][i] - edges[1][i];
    }
}

/// A row from word `from` on, without the columns before `start`.
#[inline(always)]
fn suffix(row: &[u64], start: usize, from: usize) -> Vec<u64> {
    let mut words = row[from..].to_vec();
    let cut = start - 64 * from;
    let whole = (cut / 64).min(words.len());
    words[..whole].fill(0);
    if whole < words.len() {
        words[whole] &= u64::MAX << (cut % 64);
    }
    words
}

/// The number of common neighbours of each pair (flat: u, v, u, v, …).
pub fn common_of_pairs(rows: BitRows<'_>, pairs: &[u32], level: Level) -> Vec<u32> {
    pairs
        .par_chunks(2 * 256)
        .flat_map_iter(|chunk| {
            level.run(
                #[inline(always)]
                || -> Vec<u32> {
                    let ends = chunk.chunks_exact(2);
                    ends.map(|p| {
                        common(level, rows.row(p[0] as usize), rows.row(p[1] as usize)) as u32
                    })
                    .collect()
                },
            )
        })
        .collect()
}

/// For each pair u, v the sum over the neighbours x ≠ u of v of the number of common neighbours
/// of u and x: walks u – w – x – v that do not come back to u at x.
///
/// The counts of one u are cut into planes of bits, so that a sum over a row is a few popcounts.
/// Pairs of the same u are best neighbours in the list.
pub fn walks_of_pairs(rows: BitRows<'_>, pairs: &[u32], level: Level) -> Vec<u64> {
    let ends: Vec<(usize, usize)> = pairs
        .chunks_exact(2)
        .map(|p| (p[0] as usize, p[1] as usize))
        .collect();
    let groups: Vec<&[(usize, usize)]> = ends.chunk_by(|p, q| p.0 == q.0).collect();
    groups
        .into_par_iter()
        .flat_map_iter(|group| {
            level.run(
                #[inline(always)]
                || walk_group(rows, group, level),
            )
        })
        .collect()
}

#[inline(always)]
fn walk_group(rows: BitRows<'_>, group: &[(usize, usize)], level: Level) -> Vec<u64> {
    let (n, width, u) = (rows.n(), row_words(rows.n()), group[0].0);
    let mut planes: Vec<Vec<u64>> = Vec::new();
    for x in (0..n).filter(|&x| x != u) {
        let count = common(level, rows.row(u), rows.row(x));
        for bit in 0..(64 - count.leading_zeros()) as usize {
            if planes.len() <= bit {
                planes.push(vec![0; width]);
            }
            planes[bit][x / 64] |= (count >> bit & 1) << (x % 64);
        }
    }
    let sum = |row: &[u64]| {
        let terms = planes.iter().enumerate();
        terms
            .map(|(bit, plane)| common(level, plane, row) << bit)
            .sum()
    };
    group.iter().map(|&(_, v)| sum(rows.row(v))).collect()
}

#[cfg(test)]
mod tests {
    use super::super::bitrows::rows_of_pairs;
    use super::*;
    use proptest::prelude::*;

    type Pair = (usize, usize);

    fn words(n: usize, pairs: &[Pair]) -> Vec<u64> {
        let flat: Vec<u32> = pairs
            .iter()
            .flat_map(|&(u, v)| [u as u32, v as u32])
            .collect();
        rows_of_pairs(n, &flat)
    }

    fn check(n: usize, held: &[Pair], noisy: &[Pair], owned: &[u32]) {
        let (h, y) = (words(n, held), words(n, noisy));
        let (h, y) = (BitRows::new(n, &h).unwrap(), BitRows::new(n, &y).unwrap());
        let has = |rows: BitRows<'_>, u: usize, v: usize| rows.row(u)[v / 64] >> (v % 64) & 1 == 1;
        let mut expected = Triples::default();
        for &u in owned {
            let u = u as usize;
            for v in u + 1..n {
                for w in v + 1..n {
                    let triple = [(u, v), (u, w), (v, w)];
                    let own = triple.iter().filter(|p| has(h, p.0, p.1)).count();
                    let seen = triple
                        .iter()
                        .filter(|p| has(y, p.0, p.1) && !has(h, p.0, p.1))
                        .count();
                    expected[own][seen] += 1;
                }
            }
        }
        let every: Vec<Pair> = (0..n)
            .flat_map(|u| (u + 1..n).map(move |v| (u, v)))
            .collect();
        let flat: Vec<u32> = every
            .iter()
            .flat_map(|&(u, v)| [u as u32, v as u32])
            .collect();
        let near = |u: usize| (0..n).filter(|&v| has(y, u, v)).collect::<Vec<_>>();
        let near: Vec<Vec<usize>> = (0..n).map(near).collect();
        let c = |u: usize, v: usize| near[u].iter().filter(|&&w| has(y, v, w)).count();
        let shared: Vec<u32> = every.iter().map(|&(u, v)| c(u, v) as u32).collect();
        let walks: Vec<u64> = every
            .iter()
            .map(|&(u, v)| {
                let ends = near[v].iter().filter(|&&x| x != u);
                ends.map(|&x| c(u, x) as u64).sum()
            })
            .collect();
        for level in Level::available() {
            assert_eq!(triples(h, y, owned, level), expected, "{level:?}");
            assert_eq!(common_of_pairs(y, &flat, level), shared, "{level:?}");
            assert_eq!(walks_of_pairs(y, &flat, level), walks, "{level:?}");
        }
    }

    #[test]
    fn few_nodes_and_complete_graphs() {
        for n in [0, 1, 2, 3, 4, 5, 63, 64, 65, 70] {
            let all: Vec<Pair> = (0..n)
                .flat_map(|u| (u + 1..n).map(move |v| (u, v)))
                .collect();
            let everyone: Vec<u32> = (0..n as u32).rev().collect();
            check(n, &[], &all, &everyone);
            check(n, &all, &[], &everyone);
            check(n, &all[..all.len() / 2], &all, &everyone);
            check(n, &all, &all, &[]);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn random_graphs(n in 2usize..90, density in 1u64..100, seed in any::<u64>()) {
            let mut state = seed | 1;
            let mut draw = |limit: u64| {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                state % 100 < limit
            };
            let (mut held, mut noisy) = (Vec::new(), Vec::new());
            for u in 0..n {
                for v in u + 1..n {
                    if draw(20) { held.push((u, v)); }
                    if draw(density) { noisy.push((u, v)); }
                }
            }
            let owned: Vec<u32> = (0..n as u32).filter(|_| draw(40)).collect();
            check(n, &held, &noisy, &owned);
        }
    }

    /// More than one group of owned nodes and more than one register of columns.
    #[test]
    fn groups_and_registers_join() {
        let n = 700;
        let step = |s: usize| (0..n - s).map(move |u| (u, u + s)).collect::<Vec<Pair>>();
        let held = [step(1), step(9), step(513)].concat();
        let noisy = [step(1), step(2), step(8), step(10), step(511), step(600)].concat();
        check(
            n,
            &held,
            &noisy,
            &(0..n as u32).step_by(7).collect::<Vec<_>>(),
        );
    }
}
