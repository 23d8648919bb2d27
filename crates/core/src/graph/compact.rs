//! From identifiers that are integers to positions: the renaming that keeps order.

use std::sync::atomic::{AtomicU32, Ordering};

use rayon::prelude::*;

/// Values are cut into at most this many parts by their top bits; a part fits a core's cache.
const PART_BITS: u32 = 6;
/// Bits that one pass of the radix sort looks at.
const DIGIT: u32 = 12;
/// The place of an end that is in no key.
const NOWHERE: u32 = u32::MAX;

/// Renames the ends of sorted keys, and the `extra` nodes, to 0, 1, … in the order of their
/// values; returns the old names in order. Keys stay sorted, because the renaming is monotone.
pub fn compact(keys: &mut [u64], extra: &[u32]) -> Vec<u32> {
    let top = keys.par_iter().map(|&key| key as u32).max();
    let Some(top) = top.max(extra.iter().copied().max()) else {
        return Vec::new();
    };
    // A table by value, where the values are not much more than the ends.
    if (top as usize) < 8 * (keys.len() * 2 + extra.len()) + 4096 {
        by_table(keys, extra, top)
    } else {
        by_parts(keys, extra, top)
    }
}

fn by_table(keys: &mut [u64], extra: &[u32], top: u32) -> Vec<u32> {
    let mut rank = vec![0u32; top as usize + 1];
    for &key in keys.iter() {
        rank[(key >> 32) as usize] = 1;
        rank[key as u32 as usize] = 1;
    }
    extra.iter().for_each(|&id| rank[id as usize] = 1);
    let mut names = Vec::new();
    for (id, rank) in rank.iter_mut().enumerate().filter(|(_, rank)| **rank == 1) {
        *rank = names.len() as u32;
        names.push(id as u32);
    }
    keys.par_iter_mut().with_min_len(1 << 14).for_each(|key| {
        let (u, v) = (rank[(*key >> 32) as usize], rank[*key as u32 as usize]);
        *key = u64::from(u) << 32 | u64::from(v);
    });
    names
}

/// Sorts the larger ends, part by part and with the places of their keys, and walks them beside
/// the smaller ends, which are sorted already: no lookup ever leaves the cache.
fn by_parts(keys: &mut [u64], extra: &[u32], top: u32) -> Vec<u32> {
    assert!(keys.len() < NOWHERE as usize, "more edges than 2^32 - 2");
    let shift = (u32::BITS - top.leading_zeros()).saturating_sub(PART_BITS);
    let part = |id: u32| (id >> shift) as usize;
    let dealt = deal_ends(keys, extra, part(top) + 1, part);
    let bounds: Vec<usize> = (0..=part(top) + 1)
        .map(|number| keys.partition_point(|&key| part((key >> 32) as u32) < number))
        .collect();
    let ranks: Vec<AtomicU32> = keys.iter().map(|_| AtomicU32::new(0)).collect();
    let names: Vec<Vec<u32>> = cut(keys, &bounds)
        .into_par_iter()
        .enumerate()
        .map(|(number, mine)| {
            let ends = dealt.iter().flat_map(|parts| parts[number].iter().copied());
            rank_part(mine, &radix_sorted(ends.collect(), shift), &ranks)
        })
        .collect();
    let mut before = vec![0u32];
    for part in &names {
        before.push(before[before.len() - 1] + part.len() as u32);
    }
    let slices = cut(keys, &bounds).into_par_iter().zip(&bounds).zip(&before);
    slices.for_each(|((mine, &base), &first)| {
        for (key, rank) in mine.iter_mut().zip(&ranks[base..]) {
            let u = first + (*key >> 32) as u32;
            let v = before[part(*key as u32)] + rank.load(Ordering::Relaxed);
            *key = u64::from(u) << 32 | u64::from(v);
        }
    });
    names.concat()
}

/// The larger end of every key, above the key's place, by part; one list of parts a chunk.
fn deal_ends(
    keys: &[u64],
    extra: &[u32],
    parts: usize,
    part: impl Fn(u32) -> usize + Sync,
) -> Vec<Vec<Vec<u64>>> {
    let chunk = (keys.len() / (4 * rayon::current_num_threads())).max(1 << 12);
    let room = chunk / parts + chunk / (4 * parts);
    let deal = |(number, keys): (usize, &[u64])| {
        let mut lists: Vec<Vec<u64>> = (0..parts).map(|_| Vec::with_capacity(room)).collect();
        for (place, &key) in (number * chunk..).zip(keys) {
            let end = key as u32;
            lists[part(end)].push(u64::from(end) << 32 | place as u64);
        }
        lists
    };
    let mut dealt: Vec<Vec<Vec<u64>>> = keys.par_chunks(chunk).enumerate().map(deal).collect();
    let mut lists = vec![Vec::new(); parts];
    for &id in extra {
        lists[part(id)].push(u64::from(id) << 32 | u64::from(NOWHERE));
    }
    dealt.push(lists);
    dealt
}

/// Names the values of one part: the smaller ends of `mine` become ranks within the part, and
/// the ranks of `ends` go to the places of their keys.
fn rank_part(mine: &mut [u64], ends: &[u64], ranks: &[AtomicU32]) -> Vec<u32> {
    let mut names = Vec::with_capacity(mine.len() + ends.len());
    let (mut at, mut end) = (0, 0);
    let value = |word: Option<&u64>| word.map_or(u64::MAX, |word| word >> 32);
    loop {
        let id = value(mine.get(at)).min(value(ends.get(end)));
        if id == u64::MAX {
            return names;
        }
        let rank = names.len() as u32;
        names.push(id as u32);
        while value(mine.get(at)) == id {
            mine[at] = u64::from(rank) << 32 | u64::from(mine[at] as u32);
            at += 1;
        }
        while value(ends.get(end)) == id {
            // Every place is written by one part only, and read when all are done.
            if let Some(slot) = ranks.get(ends[end] as u32 as usize) {
                slot.store(rank, Ordering::Relaxed);
            }
            end += 1;
        }
    }
}

/// Sorts by the lowest `bits` bits of the upper halves; the bits above them are all the same.
fn radix_sorted(mut from: Vec<u64>, bits: u32) -> Vec<u64> {
    let mut to = vec![0u64; from.len()];
    for low in (0..bits).step_by(DIGIT as usize) {
        let digit = |word: u64| (word >> (32 + low)) as usize & ((1 << DIGIT) - 1);
        let mut starts = vec![0u32; (1 << DIGIT) + 1];
        from.iter().for_each(|&word| starts[digit(word) + 1] += 1);
        for place in 0..1 << DIGIT {
            starts[place + 1] += starts[place];
        }
        for &word in &from {
            let start = &mut starts[digit(word)];
            to[*start as usize] = word;
            *start += 1;
        }
        std::mem::swap(&mut from, &mut to);
    }
    from
}

fn cut<'k>(keys: &'k mut [u64], bounds: &[usize]) -> Vec<&'k mut [u64]> {
    let mut rest = keys;
    let mut slices = Vec::with_capacity(bounds.len());
    for two in bounds.windows(2) {
        let (mine, others) = rest.split_at_mut(two[1] - two[0]);
        slices.push(mine);
        rest = others;
    }
    slices
}

#[cfg(test)]
mod tests {
    use super::super::sparse::{key, settle};
    use super::*;
    use proptest::prelude::*;

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
    }

    #[test]
    fn many_keys_over_all_values() {
        let mut state = 9u64;
        let mut next = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 32) as u32
        };
        let mut keys: Vec<u64> = (0..50_000).map(|_| key(next(), next() >> 1)).collect();
        settle(&mut keys);
        let (mut slow, mut fast) = (keys.clone(), keys);
        let names = by_parts(&mut fast, &[u32::MAX, 0, 0], u32::MAX);
        assert!(names.windows(2).all(|two| two[0] < two[1]));
        assert_eq!((names[0], names[names.len() - 1]), (0, u32::MAX));
        for key in &mut slow {
            let place = |id: u32| names.binary_search(&id).unwrap() as u64;
            *key = place((*key >> 32) as u32) << 32 | place(*key as u32);
        }
        assert_eq!(fast, slow);
    }
}
