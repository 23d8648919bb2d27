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

/// A key as memory that reads `u, v` in 32-bit words; and the way back.
#[inline]
pub fn as_pair(key: u64) -> u64 {
    if cfg!(target_endian = "little") {
        key.rotate_left(32)
    } else {
        key
    }
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
    fn pairs_are_words_in_memory() {
        let words = [key(0, 9), key(3, 1)].map(as_pair);
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        let ends: Vec<u32> = bytes
            .chunks(4)
            .map(|chunk| u32::from_ne_bytes(chunk.try_into().unwrap()))
            .collect();
        assert_eq!(ends, [0, 9, 1, 3]);
    }

    proptest! {
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
