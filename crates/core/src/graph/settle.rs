//! Rows that are keys become sorted distinct pairs, and ids that are integers become positions.
//!
//! Nothing is compared that can be dealt: keys are cut into parts by the top bits of their
//! smaller ends, and whatever is done with one part stays in a core's cache. Nothing is copied
//! to fresh memory that fits where it is: the system takes longer to hand out a page than it
//! takes to fill it.

use rayon::prelude::*;

use super::sparse::{as_pair, is_loop};

/// Values are cut into at most 2 to this power parts by their top bits.
const PART_BITS: u32 = 10;
/// A part has about 2 to this power keys at least.
const KEY_BITS: u32 = 10;
/// Below 2 to this power, a table by value stays in the cache, too; it is made where values are
/// not much more than keys.
const TABLE_BITS: u32 = 20;
/// Where values are as rare as one in 2 to this power, a bitmap of them is not worth its while.
const RARE_BITS: u32 = 11;
/// About 2 to this power keys at a time are left to a sort that compares.
const GROUP_BITS: u32 = 3;
/// Bits by which the keys of one part are dealt at most.
const DIGIT: u32 = 12;

/// Puts items in the order of their parts, those of one part in the order in which they came;
/// returns where the parts begin, and the end of the last.
fn deal(
    items: &mut [u64],
    spare: &mut Vec<u64>,
    parts: usize,
    part: impl Fn(u64) -> usize,
) -> Vec<u32> {
    assert!(u32::try_from(items.len()).is_ok(), "more than 2^32 at once");
    let mut starts = vec![0u32; parts + 1];
    items.iter().for_each(|&item| starts[part(item) + 1] += 1);
    for number in 0..parts {
        starts[number + 1] += starts[number];
    }
    let mut next = starts.clone();
    spare.clear();
    spare.extend_from_slice(items);
    for &item in spare.iter() {
        let place = &mut next[part(item)];
        items[*place as usize] = item;
        *place += 1;
    }
    starts
}

/// The slices of every part, from lists that were dealt.
fn by_part<'a>(
    lists: impl Iterator<Item = &'a mut [u64]>,
    starts: &[Vec<u32>],
    parts: usize,
) -> Vec<Vec<&'a mut [u64]>> {
    let mut slices: Vec<Vec<&mut [u64]>> = (0..parts).map(|_| Vec::new()).collect();
    for (mut rest, starts) in lists.zip(starts) {
        for (number, slices) in slices.iter_mut().enumerate() {
            let (mine, others) = rest.split_at_mut((starts[number + 1] - starts[number]) as usize);
            if !mine.is_empty() {
                slices.push(mine);
            }
            rest = others;
        }
    }
    slices
}

/// Cuts a slice into slices of the given lengths.
fn cut<T>(mut rest: &mut [T], lengths: impl Iterator<Item = usize>) -> Vec<&mut [T]> {
    let mut slices = Vec::with_capacity(lengths.size_hint().0);
    for length in lengths {
        let (mine, others) = rest.split_at_mut(length);
        slices.push(mine);
        rest = others;
    }
    slices
}

/// Distinct keys in order, and what was met on the way to them.
pub struct Settled {
    /// The largest end, of loops too.
    top: u32,
    /// Where the number of an end's part begins.
    shift: u32,
    /// The keys as they came, but dealt; every key is in the part of its smaller end, and those
    /// of a part are sorted from its first slice on. What is behind `counts` of them is of no use.
    pieces: Vec<Vec<u64>>,
    starts: Vec<Vec<u32>>,
    counts: Vec<usize>,
    /// The node of every loop.
    loops: Vec<u32>,
    repeats: usize,
}

impl Settled {
    /// Drops loops, sorts, merges repeats.
    pub fn new(mut pieces: Vec<Vec<u64>>) -> Self {
        let ends = |piece: &Vec<u64>| piece.iter().map(|&key| key as u32).max().unwrap_or(0);
        let top = pieces.par_iter().map(ends).max().unwrap_or(0);
        let bits = u32::BITS - top.leading_zeros();
        let rows: usize = pieces.iter().map(Vec::len).sum();
        let cuts = rows.max(1).ilog2().saturating_sub(KEY_BITS).min(PART_BITS);
        let shift = bits.saturating_sub(cuts);
        let parts = (u64::from(top) >> shift) as usize + 1;
        let deal_piece = |spare: &mut Vec<u64>, piece: &mut Vec<u64>| {
            deal(piece, spare, parts, |key| (key >> 32 >> shift) as usize)
        };
        let dealt = pieces.par_iter_mut().map_init(Vec::new, deal_piece);
        let starts: Vec<Vec<u32>> = dealt.collect();
        let slices = by_part(pieces.iter_mut().map(Vec::as_mut_slice), &starts, parts);
        let settle = |(keys, spare): &mut (Vec<u64>, Vec<u64>), slices: Vec<&mut [u64]>| {
            keys.clear();
            slices
                .iter()
                .for_each(|slice| keys.extend_from_slice(slice));
            let looped = keys.iter().filter(|&&key| is_loop(key));
            let loops: Vec<u32> = looped.map(|&key| key as u32).collect();
            if !loops.is_empty() {
                keys.retain(|&key| !is_loop(key));
            }
            sort(keys, spare, shift, bits);
            let edges = keys.len();
            keys.dedup();
            let mut rest = &keys[..];
            for slice in slices {
                let (mine, others) = rest.split_at(rest.len().min(slice.len()));
                slice[..mine.len()].copy_from_slice(mine);
                rest = others;
            }
            (keys.len(), loops, edges - keys.len())
        };
        let settled = slices.into_par_iter().map_init(Default::default, settle);
        let settled: Vec<(usize, Vec<u32>, usize)> = settled.collect();
        Self {
            top,
            shift,
            starts,
            counts: settled.iter().map(|(count, ..)| *count).collect(),
            repeats: settled.iter().map(|(.., repeats)| repeats).sum(),
            loops: settled
                .into_iter()
                .flat_map(|(_, loops, _)| loops)
                .collect(),
            pieces,
        }
    }

    /// How many distinct keys there are.
    pub fn count(&self) -> usize {
        self.counts.iter().sum()
    }

    /// How many loops there were.
    pub fn loops(&self) -> usize {
        self.loops.len()
    }

    /// How many keys were equal to an earlier one.
    pub fn repeats(&self) -> usize {
        self.repeats
    }

    /// The keys of a part, gathered in `keys`.
    fn gather<'k>(&self, number: usize, keys: &'k mut Vec<u64>) -> &'k [u64] {
        keys.clear();
        for (piece, starts) in self.pieces.iter().zip(&self.starts) {
            keys.extend_from_slice(&piece[starts[number] as usize..starts[number + 1] as usize]);
        }
        &keys[..self.counts[number]]
    }

    /// Room for all pairs, cut into the room of each part.
    fn rooms<'p>(&self, pairs: &'p mut [u64]) -> Vec<&'p mut [u64]> {
        cut(pairs, self.counts.iter().copied())
    }

    fn write_with(&self, pairs: &mut [u64], change: impl Fn(u64) -> u64 + Sync) {
        let rooms = self.rooms(pairs).into_par_iter().enumerate();
        rooms.for_each_init(Vec::new, |keys, (number, room)| {
            for (pair, &key) in room.iter_mut().zip(self.gather(number, keys)) {
                *pair = as_pair(change(key));
            }
        });
    }

    /// Writes the keys as pairs into room for [`Settled::count`] of them.
    pub fn write(&self, pairs: &mut [u64]) {
        self.write_with(pairs, |key| key);
    }

    /// Writes the pairs with ends that are renamed to 0, 1, … in the order of their values;
    /// returns the old names in order, those of loops too. Pairs stay sorted, because the renaming
    /// is monotone.
    pub fn compact(&self, pairs: &mut [u64]) -> Vec<u32> {
        if self.count() == 0 && self.loops.is_empty() {
            Vec::new()
        } else if (self.top as usize) < (8 * self.count() + 4096).min(1 << TABLE_BITS) {
            self.by_table(pairs)
        } else {
            self.by_bitmaps(pairs)
        }
    }

    fn by_table(&self, pairs: &mut [u64]) -> Vec<u32> {
        let size = self.top as usize + 1;
        let none = || (vec![false; size], Vec::new());
        let see = |(mut seen, mut keys): (Vec<bool>, Vec<u64>), number| {
            for &key in self.gather(number, &mut keys) {
                seen[(key >> 32) as usize] = true;
                seen[key as u32 as usize] = true;
            }
            (seen, keys)
        };
        let join = |(mut seen, keys): (Vec<bool>, Vec<u64>), (others, _): (Vec<bool>, _)| {
            let both = seen.iter_mut().zip(others);
            both.for_each(|(seen, other)| *seen |= other);
            (seen, keys)
        };
        let parts = (0..self.counts.len()).into_par_iter();
        let (mut seen, _) = parts.fold(none, see).reduce(none, join);
        self.loops.iter().for_each(|&id| seen[id as usize] = true);
        let names: Vec<u32> = (0..=self.top).filter(|&id| seen[id as usize]).collect();
        let mut rank = vec![0u32; size];
        let ranked = names.iter().zip(0..);
        ranked.for_each(|(&id, place)| rank[id as usize] = place);
        self.write_with(pairs, |key| {
            let (u, v) = (rank[(key >> 32) as usize], rank[key as u32 as usize]);
            u64::from(u) << 32 | u64::from(v)
        });
        names
    }

    /// Deals the larger ends by their parts, ranks the values of a part in a bitmap of its own, and
    /// takes the ranks back in the order in which the ends were dealt: no lookup leaves the cache.
    fn by_bitmaps(&self, pairs: &mut [u64]) -> Vec<u32> {
        let larger = |key: u64| u64::from(key as u32);
        let part = |id: u64| (id >> self.shift) as usize;
        let parts = self.counts.len();
        let deal_ends = |(keys, spare): &mut (Vec<u64>, Vec<u64>),
                         (number, room): (usize, &mut [u64])| {
            for (end, &key) in room.iter_mut().zip(self.gather(number, keys)) {
                *end = larger(key);
            }
            deal(room, spare, parts, part)
        };
        let rooms = self.rooms(pairs).into_par_iter().enumerate();
        let starts: Vec<Vec<u32>> = rooms.map_init(Default::default, deal_ends).collect();
        let mut loops: Vec<u64> = self.loops.iter().map(|&id| u64::from(id)).collect();
        let looped = deal(&mut loops, &mut Vec::new(), parts, part);
        let ends = by_part(self.rooms(pairs).into_iter(), &starts, parts);
        let rank = |(values, keys): &mut (Values, Vec<u64>),
                    (number, mut ends): (usize, Vec<&mut [u64]>)| {
            let looped = &loops[looped[number] as usize..looped[number + 1] as usize];
            let keys = self.gather(number, keys);
            let count = keys.len() + looped.len() + ends.iter().map(|e| e.len()).sum::<usize>();
            let few = count << RARE_BITS < 1 << self.shift;
            let others = ends.iter().flat_map(|ends| ends.iter()).chain(looped);
            let ids = keys.iter().map(|key| key >> 32).chain(others.copied());
            let names = if few {
                let mut names: Vec<u32> = ids.map(|id| id as u32).collect();
                names.sort_unstable();
                names.dedup();
                names
            } else {
                values.clear(number, self.shift);
                ids.for_each(|id| values.add(id));
                values.rank(count)
            };
            for end in ends.iter_mut().flat_map(|ends| ends.iter_mut()) {
                *end = match few {
                    true => names.partition_point(|&id| u64::from(id) < *end) as u64,
                    false => u64::from(values.get(*end)),
                };
            }
            names
        };
        let ranked = ends.into_par_iter().enumerate();
        let names: Vec<Vec<u32>> = ranked.map_init(Default::default, rank).collect();
        let mut before = vec![0u64];
        for names in &names {
            before.push(before[before.len() - 1] + names.len() as u64);
        }
        let rename = |(keys, ranks): &mut (Vec<u64>, Vec<u64>),
                      (number, room): (usize, &mut [u64])| {
            ranks.clear();
            ranks.extend_from_slice(room);
            let mut next = starts[number].clone();
            let (names, mut at) = (&names[number], 0);
            for (pair, &key) in room.iter_mut().zip(self.gather(number, keys)) {
                while u64::from(names[at]) != key >> 32 {
                    at += 1;
                }
                let other = part(larger(key));
                let place = &mut next[other];
                let v = before[other] + ranks[*place as usize];
                *place += 1;
                *pair = as_pair((before[number] + at as u64) << 32 | v);
            }
        };
        let rooms = self.rooms(pairs).into_par_iter().enumerate();
        rooms.for_each_init(Default::default, rename);
        let mut joined = vec![0; before[parts] as usize];
        let rooms = cut(&mut joined, names.iter().map(Vec::len));
        let copies = rooms.into_par_iter().zip(names);
        copies.for_each(|(room, names)| room.copy_from_slice(&names));
        joined
    }
}

/// Sorts keys whose smaller ends differ in their lowest `shift` bits, and whose larger ends have
/// `bits` bits.
fn sort(keys: &mut [u64], spare: &mut Vec<u64>, shift: u32, bits: u32) {
    let digit = keys.len().max(1).ilog2().saturating_sub(GROUP_BITS);
    let digit = digit.min(DIGIT).min(shift + bits);
    if digit == 0 {
        return keys.sort_unstable();
    }
    let (low, mask) = (shift + bits - digit, (1u64 << shift) - 1);
    let packed = |key: u64| (key >> 32 & mask) << bits | u64::from(key as u32);
    let group = |key: u64| (packed(key) >> low) as usize;
    for two in deal(keys, spare, 1 << digit, group).windows(2) {
        keys[two[0] as usize..two[1] as usize].sort_unstable();
    }
}

/// Which values of one part there are, and how many are below each.
#[derive(Default)]
struct Values {
    first: u64,
    words: Vec<u64>,
    below: Vec<u32>,
    names: Vec<u32>,
}

impl Values {
    fn clear(&mut self, part: usize, shift: u32) {
        self.first = (part as u64) << shift;
        self.words.clear();
        self.words.resize((1usize << shift).div_ceil(64), 0);
    }

    fn add(&mut self, id: u64) {
        let place = id - self.first;
        self.words[place as usize / 64] |= 1 << (place % 64);
    }

    /// Counts, and lists the values in order; they are `most` at most.
    fn rank(&mut self, most: usize) -> Vec<u32> {
        self.names.resize(self.names.len().max(most + 1), 0);
        self.below.clear();
        let mut count = 0;
        for (&word, first) in self.words.iter().zip((self.first..).step_by(64)) {
            self.below.push(count as u32);
            let mut rest = word;
            // Two at a time: how many values a word has is not foreseen by a branch.
            loop {
                for _ in 0..2 {
                    self.names[count] = (first as u32).wrapping_add(rest.trailing_zeros());
                    count += usize::from(rest != 0);
                    rest &= rest.wrapping_sub(1);
                }
                if rest == 0 {
                    break;
                }
            }
        }
        self.names[..count].to_vec()
    }

    fn get(&self, id: u64) -> u32 {
        let place = id - self.first;
        let (word, bit) = (place as usize / 64, place % 64);
        self.below[word] + (self.words[word] & ((1 << bit) - 1)).count_ones()
    }
}

#[cfg(test)]
mod tests {
    use super::super::sparse::key;
    use super::*;
    use proptest::prelude::*;

    /// What [`Settled`] finds, by definition.
    fn check(pieces: &[Vec<u64>]) {
        let settled = Settled::new(pieces.to_vec());
        let rows: Vec<u64> = pieces.concat();
        let mut all: Vec<u64> = rows
            .iter()
            .flat_map(|&key| [key >> 32, key & 0xffff_ffff])
            .collect();
        all.sort_unstable();
        all.dedup();
        let mut keys: Vec<u64> = rows.iter().copied().filter(|&key| !is_loop(key)).collect();
        let edges = keys.len();
        keys.sort_unstable();
        keys.dedup();
        let written = |write: &dyn Fn(&mut [u64]) -> Vec<u32>| {
            let mut pairs = vec![0; settled.count()];
            let names = write(&mut pairs);
            (names, pairs.into_iter().map(as_pair).collect::<Vec<u64>>())
        };
        let plain = written(&|pairs| {
            settled.write(pairs);
            Vec::new()
        });
        assert_eq!(plain.1, keys);
        assert_eq!(settled.loops(), rows.len() - edges);
        assert_eq!(settled.repeats(), edges - keys.len());
        let place = |id: u64| all.binary_search(&id).unwrap() as u32;
        for word in &mut keys {
            *word = key(place(*word >> 32), place(*word & 0xffff_ffff));
        }
        let names: Vec<u32> = all.iter().map(|&id| id as u32).collect();
        let found = (names, keys);
        assert_eq!(written(&|pairs| settled.compact(pairs)), found);
        if !rows.is_empty() {
            assert_eq!(written(&|pairs| settled.by_bitmaps(pairs)), found);
        }
    }

    proptest! {
        #[test]
        fn settling_is_sorting_and_compacting_is_ranking(
            pairs in prop::collection::vec((any::<u32>(), any::<u32>()), 0..60),
            cut in 0usize..60,
            shift in 0u32..32,
        ) {
            let keys: Vec<u64> =
                pairs.iter().map(|&(a, b)| key(a >> shift, b >> shift)).collect();
            let (first, second) = keys.split_at(cut.min(keys.len()));
            check(&[first.to_vec(), Vec::new(), second.to_vec()]);
        }
    }

    #[test]
    fn many_keys_of_every_width() {
        let mut state = 9u64;
        let mut next = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 32) as u32
        };
        for shift in [0, 2, 9, 12, 20] {
            let mut piece = || {
                (0..20_000)
                    .map(|_| key(next() >> shift, next() >> 1 >> shift))
                    .collect()
            };
            let mut pieces: Vec<Vec<u64>> = vec![piece(), piece()];
            // A hub, a loop at either end, and rows that come again.
            pieces[1].extend((0..5000).map(|v| key(7, v)));
            pieces[1].extend([
                key(0, 0),
                key(u32::MAX >> shift, u32::MAX >> shift),
                key(3, 3),
                key(3, 3),
            ]);
            let again = pieces[0][..100].to_vec();
            pieces.push(again);
            check(&pieces);
        }
    }
}
