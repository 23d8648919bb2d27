//! Sets of edges as sorted 64-bit keys, and exact triangle counts of sparse graphs.

use rayon::prelude::*;

/// The key of the pair {a, b}: the smaller end above the larger, so that keys sort as pairs do.
#[inline]
pub fn key(a: u32, b: u32) -> u64 {
    u64::from(a.min(b)) << 32 | u64::from(a.max(b))
}

/// Whether both ends of a key are the same node.
#[inline]
pub fn is_loop(key: u64) -> bool {
    (key >> 32) as u32 == key as u32
}

/// Drops loops, sorts, merges repeats; returns how many loops and repeats there were.
pub fn settle(keys: &mut Vec<u64>) -> (usize, usize) {
    let rows = keys.len();
    keys.retain(|&key| !is_loop(key));
    let edges = keys.len();
    keys.par_sort_unstable();
    keys.dedup();
    (rows - edges, edges - keys.len())
}

/// Renames the ends of sorted keys, and the `extra` nodes, to 0, 1, … in the order of their
/// values; returns the old names in order. Keys stay sorted, because the renaming is monotone.
pub fn compact(keys: &mut [u64], extra: &[u32]) -> Vec<u32> {
    let top = keys.par_iter().map(|&key| key as u32).max();
    let Some(top) = top.max(extra.iter().copied().max()) else {
        return Vec::new();
    };
    let ends = keys.len() * 2 + extra.len();
    // A table by value, where the values are not much more than the ends.
    if (top as usize) < 8 * ends + 4096 {
        let mut rank = vec![0u32; top as usize + 1];
        for &key in keys.iter() {
            rank[(key >> 32) as usize] = 1;
            rank[key as u32 as usize] = 1;
        }
        extra.iter().for_each(|&id| rank[id as usize] = 1);
        let mut ids = Vec::new();
        for (id, rank) in rank.iter_mut().enumerate().filter(|(_, rank)| **rank == 1) {
            *rank = ids.len() as u32;
            ids.push(id as u32);
        }
        rename(keys, |id| rank[id as usize]);
        return ids;
    }
    let mut ids: Vec<u32> = keys.par_iter().map(|&key| key as u32).collect();
    ids.extend_from_slice(extra);
    let mut last = None;
    for &key in keys.iter() {
        let id = (key >> 32) as u32;
        if last.replace(id) != Some(id) {
            ids.push(id);
        }
    }
    ids = radix_sorted(ids);
    ids.dedup();
    let buckets = Buckets::new(&ids);
    rename(keys, |id| buckets.rank(&ids, id));
    ids
}

/// Sorts by eleven bits at a time: for millions of integers faster than two cores that compare.
fn radix_sorted(mut from: Vec<u32>) -> Vec<u32> {
    let mut to = vec![0u32; from.len()];
    for shift in [0, 11, 22] {
        let digit = |id: u32| (id >> shift) as usize & 0x7ff;
        let mut starts = [0usize; 2049];
        from.iter().for_each(|&id| starts[digit(id) + 1] += 1);
        for place in 1..2049 {
            starts[place] += starts[place - 1];
        }
        for &id in &from {
            to[starts[digit(id)]] = id;
            starts[digit(id)] += 1;
        }
        std::mem::swap(&mut from, &mut to);
    }
    from
}

fn rename(keys: &mut [u64], rank: impl Fn(u32) -> u32 + Sync) {
    keys.par_iter_mut().with_min_len(1 << 14).for_each(|key| {
        *key = u64::from(rank((*key >> 32) as u32)) << 32 | u64::from(rank(*key as u32));
    });
}

/// Where the identifiers of each run of high bits begin in a sorted list: a lookup is then a
/// short walk instead of a binary search through memory.
struct Buckets {
    shift: u32,
    starts: Vec<u32>,
}

impl Buckets {
    fn new(ids: &[u32]) -> Self {
        let count = ids.len().next_power_of_two().max(2);
        let width = u32::BITS - ids.last().map_or(0, |id| id.leading_zeros());
        let shift = width.saturating_sub(count.ilog2());
        let mut starts = vec![0u32; count + 1];
        for &id in ids {
            starts[(id >> shift) as usize + 1] += 1;
        }
        for bucket in 0..count {
            starts[bucket + 1] += starts[bucket];
        }
        Self { shift, starts }
    }

    #[inline]
    fn rank(&self, ids: &[u32], id: u32) -> u32 {
        let bucket = (id >> self.shift) as usize;
        let (start, stop) = (self.starts[bucket], self.starts[bucket + 1]);
        let run = &ids[start as usize..stop as usize];
        // Runs are short where the values are spread, and a search covers where they are not.
        let within = if run.len() <= 32 {
            run.iter().filter(|&&other| other < id).count()
        } else {
            run.partition_point(|&other| other < id)
        };
        start + within as u32
    }
}

/// Keys as memory that reads `u, v, u, v, …` in 32-bit words, without a copy.
pub fn as_pairs(mut keys: Vec<u64>) -> Vec<u64> {
    if cfg!(target_endian = "little") {
        keys.par_iter_mut()
            .with_min_len(1 << 14)
            .for_each(|key| *key = key.rotate_left(32));
    }
    keys
}

/// The number of triangles of the graph on nodes below `n` with the given distinct edges.
///
/// Each edge points from the end of smaller degree to the other, so that no list of successors
/// is longer than √(2·edges); a triangle is then a pair of edges from one node that a third
/// closes, and it is found once, at its lowest node.
pub fn triangles(n: usize, pairs: &[[u32; 2]]) -> u64 {
    let mut degree = vec![0u32; n];
    for &[u, v] in pairs {
        degree[u as usize] += 1;
        degree[v as usize] += 1;
    }
    let up = |u: u32, v: u32| (degree[u as usize], u) < (degree[v as usize], v);
    let mut starts = vec![0usize; n + 1];
    for &[u, v] in pairs {
        starts[if up(u, v) { u } else { v } as usize + 1] += 1;
    }
    for node in 0..n {
        starts[node + 1] += starts[node];
    }
    let mut next = starts.clone();
    let mut heads = vec![0u32; pairs.len()];
    for &[u, v] in pairs {
        let (from, to) = if up(u, v) { (u, v) } else { (v, u) };
        heads[next[from as usize]] = to;
        next[from as usize] += 1;
    }
    let row = |node: u32| &heads[starts[node as usize]..starts[node as usize + 1]];
    (0..n as u32)
        .into_par_iter()
        .with_min_len(64)
        .map_init(
            || vec![u32::MAX; n],
            |mark, node| {
                row(node)
                    .iter()
                    .for_each(|&head| mark[head as usize] = node);
                let closed = |&head: &u32| {
                    row(head)
                        .iter()
                        .filter(|&&third| mark[third as usize] == node)
                        .count() as u64
                };
                row(node).iter().map(closed).sum::<u64>()
            },
        )
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn settling_drops_and_merges() {
        let mut keys = vec![key(3, 1), key(1, 3), key(2, 2), key(0, 9)];
        assert_eq!(settle(&mut keys), (1, 1));
        assert_eq!(keys, [key(0, 9), key(1, 3)]);
        let words = as_pairs(keys);
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        let ends: Vec<u32> = bytes
            .chunks(4)
            .map(|chunk| u32::from_ne_bytes(chunk.try_into().unwrap()))
            .collect();
        assert_eq!(ends, [0, 9, 1, 3]);
    }

    proptest! {
        #[test]
        fn compacting_is_ranking(
            pairs in prop::collection::vec((any::<u32>(), any::<u32>()), 0..60),
            extra in prop::collection::vec(any::<u32>(), 0..5),
            shift in 0u32..32,
        ) {
            let mut keys: Vec<u64> =
                pairs.iter().map(|&(a, b)| key(a >> shift, b >> shift)).collect();
            settle(&mut keys);
            let mut all: Vec<u64> = keys
                .iter()
                .flat_map(|&key| [key >> 32, key & 0xffff_ffff])
                .chain(extra.iter().map(|&id| u64::from(id)))
                .collect();
            all.sort_unstable();
            all.dedup();
            let place = |id: u64| all.binary_search(&id).unwrap() as u32;
            let expected: Vec<u64> = keys
                .iter()
                .map(|&word| key(place(word >> 32), place(word & 0xffff_ffff)))
                .collect();
            let ids: Vec<u64> = compact(&mut keys, &extra).into_iter().map(u64::from).collect();
            prop_assert_eq!(ids, all);
            prop_assert_eq!(keys, expected);
        }

        #[test]
        fn triangles_match_the_definition(bits in prop::collection::vec(any::<bool>(), 66)) {
            let n = 12;
            let every: Vec<[u32; 2]> =
                (0..n).flat_map(|u| (u + 1..n).map(move |v| [u, v])).collect();
            let pairs: Vec<[u32; 2]> =
                every.iter().zip(&bits).filter(|(_, held)| **held).map(|(pair, _)| *pair).collect();
            let has = |u, v| pairs.contains(&[u, v]);
            let mut count = 0;
            for u in 0..n {
                for v in u + 1..n {
                    for w in v + 1..n {
                        count += u64::from(has(u, v) && has(u, w) && has(v, w));
                    }
                }
            }
            prop_assert_eq!(triangles(n as usize, &pairs), count);
        }
    }
}
