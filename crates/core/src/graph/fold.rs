//! Folding: nodes become groups with signs by a public hash, and edges become buckets.
//!
//! Each ordinary node has a group and a sign; each **hub** has a row of its own and sign +. An edge
//! whose ends are in different rows occupies one **bucket**: its cell (the two rows), its sign (the
//! product of the ends' signs) and one of `sub` sub-buckets, by a hash of the edge. A cell of two
//! hubs has one bucket. An edge within a group is dropped.
//!
//! Buckets are numbered: cells of two hubs in pair order, then cells of a hub and a group, then
//! cells of two groups in pair order; within a cell first all of sign +, then all of sign −.
//!
//! A pair of identifiers touches at most one bucket, whatever the key. So an edge that is added to
//! or removed from a silo changes at most one bit.

use std::hash::Hasher;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use rayon::prelude::*;
use siphasher::sip::SipHasher24;
use siphasher::sip128::SipHasher24 as SipHasher24Wide;

use super::bitrows::{pair_count, pair_index};
use super::ids::{IdTable, NONE};

/// The most rows of an index, hubs and groups together.
pub const MOST_ROWS: usize = 1 << 21;
/// The most sub-buckets for each sign of a cell.
pub const MOST_SUB: usize = 64;
/// How many nodes or edges a thread takes at a time.
const BATCH: usize = 1 << 14;

/// The shape of a folded index: how many buckets there are, and where each is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    groups: usize,
    hubs: usize,
    sub: usize,
}

impl Layout {
    /// A shape, or `None` where it has too few groups or too many rows or sub-buckets.
    pub fn new(groups: usize, hubs: usize, sub: usize) -> Option<Self> {
        let fits = (2..=MOST_ROWS).contains(&groups) && hubs <= MOST_ROWS - groups;
        (fits && (1..=MOST_SUB).contains(&sub)).then_some(Self { groups, hubs, sub })
    }

    /// The number of hubs.
    pub fn hubs(&self) -> usize {
        self.hubs
    }

    /// The number of rows: hubs, then groups.
    pub fn rows(&self) -> usize {
        self.hubs + self.groups
    }

    /// The number of buckets.
    pub fn buckets(&self) -> usize {
        self.between_groups() + pair_count(self.groups) * 2 * self.sub
    }

    /// The first bucket of a hub and a group.
    fn beside_hubs(&self) -> usize {
        pair_count(self.hubs)
    }

    /// The first bucket of two groups.
    fn between_groups(&self) -> usize {
        self.beside_hubs() + self.hubs * self.groups * 2 * self.sub
    }

    /// The first bucket of the cell of rows low < high, and how many buckets it has for each sign.
    fn cell(&self, low: usize, high: usize) -> (usize, usize) {
        let wide = 2 * self.sub;
        if high < self.hubs {
            (pair_index(self.hubs, low, high), 0)
        } else if low < self.hubs {
            let at = low * self.groups + (high - self.hubs);
            (self.beside_hubs() + at * wide, self.sub)
        } else {
            let at = pair_index(self.groups, low - self.hubs, high - self.hubs);
            (self.between_groups() + at * wide, self.sub)
        }
    }

    /// The rows low < high of each bucket from `start` on, and whether its sign is −.
    pub fn places(self, start: usize) -> impl Iterator<Item = (usize, usize, bool)> {
        let (mut low, mut high) = self.cell_of(start);
        let mut at = start.saturating_sub(self.cell(low, high).0);
        (start..self.buckets()).map(move |_| {
            let signs = if high < self.hubs { 0 } else { self.sub };
            let place = (low, high, signs > 0 && at >= signs);
            at += 1;
            if at >= (2 * signs).max(1) {
                (low, high) = self.next_cell(low, high);
                at = 0;
            }
            place
        })
    }

    /// The rows of the cell that a bucket belongs to.
    fn cell_of(&self, bucket: usize) -> (usize, usize) {
        let (hubs, wide) = (self.hubs, 2 * self.sub);
        if bucket < self.beside_hubs() {
            return pair_at(hubs, bucket);
        }
        if bucket < self.between_groups() {
            let at = (bucket - self.beside_hubs()) / wide;
            return (at / self.groups, hubs + at % self.groups);
        }
        let (low, high) = pair_at(self.groups, (bucket - self.between_groups()) / wide);
        (hubs + low, hubs + high)
    }

    /// The rows of the cell whose buckets come next.
    fn next_cell(&self, low: usize, high: usize) -> (usize, usize) {
        let (hubs, rows) = (self.hubs, self.rows());
        if high < hubs {
            match (high + 1 < hubs, low + 2 < hubs) {
                (true, _) => (low, high + 1),
                (false, true) => (low + 1, low + 2),
                (false, false) => (0, hubs),
            }
        } else if low < hubs {
            match (high + 1 < rows, low + 1 < hubs) {
                (true, _) => (low, high + 1),
                (false, true) => (low + 1, hubs),
                (false, false) => (hubs, hubs + 1),
            }
        } else if high + 1 < rows {
            (low, high + 1)
        } else {
            (low + 1, low + 2)
        }
    }
}

/// The pair with an index, among `n` rows.
fn pair_at(n: usize, index: usize) -> (usize, usize) {
    let start = |low: usize| low * n - low * (low + 1) / 2;
    let (mut low, mut end) = (0, n);
    while end - low > 1 {
        let middle = (low + end) / 2;
        match start(middle) <= index {
            true => low = middle,
            false => end = middle,
        }
    }
    (low, low + 1 + index - start(low))
}

/// The public keys of the two hashes: of nodes, and of edges.
#[derive(Clone, Copy)]
pub struct Keys {
    nodes: [u8; 16],
    edges: [u8; 16],
}

impl Keys {
    /// Both keys from 32 bytes.
    pub fn new(key: &[u8; 32]) -> Self {
        let (nodes, edges) = key.split_at(16);
        Self {
            nodes: nodes.try_into().expect("16 bytes"),
            edges: edges.try_into().expect("16 bytes"),
        }
    }
}

/// Where every node of a table falls.
pub struct Folded {
    layout: Layout,
    keys: Keys,
    /// Twice the row, plus one where the sign is −.
    places: Vec<u32>,
    /// What the hash of an edge is made of; empty where there is one sub-bucket.
    tags: Vec<u64>,
}

impl Folded {
    /// Folds the identifiers of `table`; `hubs` are in the order of their rows.
    pub fn new<S: AsRef<str>>(layout: Layout, keys: Keys, table: &IdTable, hubs: &[S]) -> Self {
        assert_eq!(hubs.len(), layout.hubs, "one identifier for each hub");
        let hash = SipHasher24Wide::new_with_key(&keys.nodes);
        let (mut places, mut tags): (Vec<u32>, Vec<u64>) = (0..table.len())
            .into_par_iter()
            .with_min_len(BATCH)
            .map(|position| {
                let found = hash.hash(table.id(position).as_bytes());
                let (group, minus) = uniform(found.h2, layout.groups as u64, &keys.nodes);
                let row = (layout.hubs as u32 + group as u32) << 1;
                (row | minus as u32, found.h1)
            })
            .unzip();
        for (row, hub) in hubs.iter().enumerate() {
            let position = table.get(hub.as_ref());
            if position != NONE {
                places[position as usize] = (row as u32) << 1;
            }
        }
        if layout.sub == 1 {
            tags = Vec::new();
        }
        Self {
            layout,
            keys,
            places,
            tags,
        }
    }

    /// The bucket of an edge, or `None` where both ends are in one row.
    pub fn bucket(&self, u: usize, v: usize) -> Option<usize> {
        let (a, b) = (self.places[u], self.places[v]);
        let (low, high) = ((a >> 1).min(b >> 1), (a >> 1).max(b >> 1));
        if low == high {
            return None;
        }
        let (start, signs) = self.layout.cell(low as usize, high as usize);
        let minus = ((a ^ b) & 1) as usize * signs;
        let sub = if signs > 1 { self.sub(u, v) } else { 0 };
        Some(start + minus + sub)
    }

    /// The sub-bucket of an edge: a hash of what its two ends hash to, whatever their order.
    fn sub(&self, u: usize, v: usize) -> usize {
        let (a, b) = (self.tags[u], self.tags[v]);
        let mut hash = SipHasher24::new_with_key(&self.keys.edges);
        hash.write(&a.min(b).to_le_bytes());
        hash.write(&a.max(b).to_le_bytes());
        uniform(hash.finish(), self.layout.sub as u64, &self.keys.edges).0 as usize
    }

    /// One bit for each bucket, set where one of the edges occupies it.
    pub fn bits(&self, pairs: &[[u32; 2]]) -> Vec<u64> {
        let words: Vec<AtomicU64> = (0..self.layout.buckets().div_ceil(64))
            .map(|_| AtomicU64::new(0))
            .collect();
        pairs.par_chunks(BATCH).for_each(|some| {
            for &[u, v] in some {
                if let Some(bucket) = self.bucket(u as usize, v as usize) {
                    words[bucket / 64].fetch_or(1 << (bucket % 64), Ordering::Relaxed);
                }
            }
        });
        words.into_iter().map(AtomicU64::into_inner).collect()
    }
}

/// A uniform number below `bound` from the upper 63 bits of a hash, and its lowest bit.
///
/// A value in the last, incomplete multiple of `bound` is hashed again.
fn uniform(mut word: u64, bound: u64, key: &[u8; 16]) -> (u64, bool) {
    let end = (1 << 63) / bound * bound;
    loop {
        if word >> 1 < end {
            return ((word >> 1) % bound, word & 1 == 1);
        }
        let mut hash = SipHasher24::new_with_key(key);
        hash.write(&word.to_le_bytes());
        word = hash.finish();
    }
}

/// For each cell of the given rows, how many buckets of sign + and how many of sign − are set.
///
/// `bits` holds one bit for each bucket. A cell of two hubs counts as +; a row's own cell is 0.
pub fn count_rows(layout: Layout, bits: &[u8], rows: Range<usize>) -> (Vec<u8>, Vec<u8>) {
    let width = layout.rows();
    let size = rows.len() * width;
    let (mut plus, mut minus) = (vec![0; size], vec![0; size]);
    plus.par_chunks_mut(width)
        .zip(minus.par_chunks_mut(width))
        .zip(rows)
        .for_each(|((plus, minus), row)| count_row(layout, bits, row, plus, minus));
    (plus, minus)
}

fn count_row(layout: Layout, bits: &[u8], row: usize, plus: &mut [u8], minus: &mut [u8]) {
    let bit = |at: usize| bits[at / 8] >> (at % 8) & 1;
    for other in (0..layout.rows()).filter(|&other| other != row) {
        let (start, signs) = layout.cell(row.min(other), row.max(other));
        if signs == 0 {
            plus[other] = bit(start);
        } else {
            plus[other] = (start..start + signs).map(bit).sum();
            minus[other] = (start + signs..start + 2 * signs).map(bit).sum();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::ids::Normal;
    use std::collections::BTreeSet;

    fn keys(byte: u8) -> Keys {
        Keys::new(&[byte; 32])
    }

    fn folded(groups: usize, hubs: &[&str], sub: usize, nodes: u32) -> Folded {
        let layout = Layout::new(groups, hubs.len(), sub).unwrap();
        Folded::new(
            layout,
            keys(7),
            &IdTable::range(nodes, Normal::default()),
            hubs,
        )
    }

    #[test]
    fn every_bucket_belongs_to_one_cell() {
        for (groups, hubs, sub) in [(2, 0, 1), (5, 0, 3), (4, 3, 1), (6, 2, 2), (2, 5, 64)] {
            let layout = Layout::new(groups, hubs, sub).unwrap();
            let mut seen = BTreeSet::new();
            for high in 0..layout.rows() {
                for low in 0..high {
                    let (start, signs) = layout.cell(low, high);
                    seen.extend(start..start + (2 * signs).max(1));
                    assert_eq!(signs == 0, high < hubs);
                }
            }
            let all: BTreeSet<usize> = (0..layout.buckets()).collect();
            assert_eq!(seen, all, "{layout:?}");
            let formula = groups * (groups - 1) * sub + 2 * sub * hubs * groups;
            assert_eq!(
                layout.buckets(),
                formula + hubs * hubs.saturating_sub(1) / 2
            );
        }
    }

    #[test]
    fn buckets_are_visited_in_their_order() {
        for (groups, hubs, sub) in [(2, 0, 1), (5, 0, 3), (4, 3, 1), (6, 2, 2), (3, 1, 1)] {
            let layout = Layout::new(groups, hubs, sub).unwrap();
            let mut all = vec![(0, 0, false); layout.buckets()];
            for high in 0..layout.rows() {
                for low in 0..high {
                    let (start, signs) = layout.cell(low, high);
                    for at in 0..(2 * signs).max(1) {
                        all[start + at] = (low, high, signs > 0 && at >= signs);
                    }
                }
            }
            for start in 0..=all.len() {
                let found: Vec<_> = layout.places(start).collect();
                assert_eq!(found, all[start..], "{layout:?} from {start}");
            }
        }
    }

    #[test]
    fn shapes_have_limits() {
        assert!(Layout::new(1, 0, 1).is_none());
        assert!(Layout::new(2, 0, 0).is_none());
        assert!(Layout::new(2, 0, MOST_SUB + 1).is_none());
        assert!(Layout::new(MOST_ROWS, 1, 1).is_none());
        assert!(Layout::new(2, usize::MAX, 1).is_none());
        assert!(Layout::new(MOST_ROWS, 0, MOST_SUB).unwrap().buckets() > 1 << 47);
    }

    #[test]
    fn both_directions_of_an_edge_share_a_bucket_and_counts_find_it() {
        let fold = folded(5, &["3", "17", "absent"], 2, 40);
        for u in 0..40 {
            for v in 0..40 {
                let found = fold.bucket(u, v);
                assert_eq!(found, fold.bucket(v, u));
                assert_eq!(found.is_none(), fold.places[u] >> 1 == fold.places[v] >> 1);
                let Some(bucket) = found else { continue };
                let bits = fold.bits(&[[u as u32, v as u32]]);
                let ones: u32 = bits.iter().map(|word| word.count_ones()).sum();
                assert_eq!((ones, bits[bucket / 64] >> (bucket % 64) & 1), (1, 1));
                let bytes: Vec<u8> = bits.iter().flat_map(|word| word.to_le_bytes()).collect();
                let (row, other) = (
                    (fold.places[u] >> 1) as usize,
                    (fold.places[v] >> 1) as usize,
                );
                let (plus, minus) = count_rows(fold.layout, &bytes, row..row + 1);
                let hubs = row < 3 && other < 3;
                let opposite = !hubs && (fold.places[u] ^ fold.places[v]) & 1 == 1;
                assert_eq!(plus[other], !opposite as u8);
                assert_eq!(minus[other], opposite as u8);
                assert_eq!(plus.iter().chain(&minus).sum::<u8>(), 1);
            }
        }
    }

    #[test]
    fn hubs_sit_alone_and_have_sign_plus() {
        let fold = folded(4, &["9", "2"], 1, 50);
        assert_eq!((fold.places[9], fold.places[2]), (0, 2));
        assert!((0..50).all(|u| u == 9 || u == 2 || fold.places[u] >= 4));
    }

    #[test]
    fn groups_signs_and_sub_buckets_are_uniform() {
        let fold = folded(10, &[], 4, 100_000);
        let mut seen = [[0u32; 2]; 10];
        for place in &fold.places {
            seen[(place >> 1) as usize][(place & 1) as usize] += 1;
        }
        let mut subs = [0u32; 4];
        for u in 0..99_999 {
            subs[fold.sub(u, u + 1)] += 1;
        }
        // Six standard deviations on either side.
        assert!(
            seen.iter()
                .flatten()
                .all(|&many| many.abs_diff(5_000) < 420)
        );
        assert!(subs.iter().all(|&many| many.abs_diff(25_000) < 830));
    }

    #[test]
    fn values_past_the_last_multiple_are_hashed_again() {
        let bound = (1 << 62) + 1; // nearly half of all values are past it
        let many = (0..1000u64)
            .map(|i| u64::MAX - i)
            .filter(|&word| {
                let found = uniform(word, bound, &[1; 16]).0;
                found < bound && found != (word >> 1) % bound
            })
            .count();
        assert_eq!(many, 1000);
        assert_eq!(uniform(2 * 12 + 1, 10, &[1; 16]), (2, true));
    }

    #[test]
    fn buckets_do_not_change_between_versions() {
        // Parties with different versions must agree on every bucket.
        let fold = folded(1000, &["5"], 2, 8);
        let found: Vec<Option<usize>> = (0..7).map(|u| fold.bucket(u, u + 1)).collect();
        assert_eq!(found, GOLDEN);
    }

    const GOLDEN: [Option<usize>; 7] = [
        Some(301_863),
        Some(1_591_058),
        Some(1_747_525),
        Some(1_056_398),
        Some(1_247),
        Some(1_413),
        Some(1_166_450),
    ];
}
