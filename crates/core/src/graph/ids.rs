//! Node identifiers: normalisation, interning, and the table from identifier to position.
//!
//! Every identifier is text, and two identifiers are the same when their normalised texts are
//! equal. Tables whose identifiers are all plain decimals keep them as integers, which is only a
//! faster representation of the same texts: `007` is not `7`.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::hash::Hasher;
use std::sync::OnceLock;

use rustc_hash::{FxHashMap, FxHasher};

/// The position that no node has: universes hold at most `u32::MAX` nodes.
pub const NONE: u32 = u32::MAX;

/// Letter case that a universe gives to all of its identifiers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Case {
    /// Unicode lower case.
    Lower,
    /// Unicode upper case.
    Upper,
}

/// What is done to an identifier, from whatever source, before it is compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Normal {
    /// Remove white space at both ends.
    pub strip: bool,
    /// Change the letter case.
    pub case: Option<Case>,
}

impl Normal {
    /// The normalised form of `id`; borrows where nothing changes.
    pub fn apply<'a>(&self, id: &'a str) -> Cow<'a, str> {
        let id = if self.strip { id.trim() } else { id };
        match self.case {
            None => Cow::Borrowed(id),
            Some(_) if id.bytes().all(|b| b.is_ascii_digit()) => Cow::Borrowed(id),
            Some(Case::Lower) => Cow::Owned(id.to_lowercase()),
            Some(Case::Upper) => Cow::Owned(id.to_uppercase()),
        }
    }
}

/// The value of a plain decimal (`0`, or digits without a leading zero, at most 18 of them).
#[inline]
pub fn decimal(text: &str) -> Option<u64> {
    let bytes = text.as_bytes();
    if bytes.is_empty() || bytes.len() > 18 || (bytes[0] == b'0' && bytes.len() > 1) {
        return None;
    }
    bytes.iter().try_fold(0u64, |value, byte| {
        let digit = byte.wrapping_sub(b'0');
        (digit < 10).then(|| value * 10 + u64::from(digit))
    })
}

/// Whether `text` is an integer of any size in its one usual spelling.
pub fn is_integer(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text).as_bytes();
    match digits {
        [b'0'] => text.len() == 1,
        [b'1'..=b'9', rest @ ..] => rest.iter().all(u8::is_ascii_digit),
        _ => false,
    }
}

/// Numeric order of two texts for which [`is_integer`] holds.
pub fn integer_order(a: &str, b: &str) -> Ordering {
    match (a.strip_prefix('-'), b.strip_prefix('-')) {
        (None, None) => a.len().cmp(&b.len()).then_with(|| a.cmp(b)),
        (Some(a), Some(b)) => b.len().cmp(&a.len()).then_with(|| b.cmp(a)),
        (None, Some(_)) => Ordering::Greater,
        (Some(_), None) => Ordering::Less,
    }
}

/// Distinct texts in the order of their arrival, each with a position.
#[derive(Default)]
pub struct Interner {
    text: String,
    ends: Vec<usize>,
    slots: Vec<u32>,
}

impl Interner {
    /// How many distinct texts there are.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The text at `position`.
    pub fn text(&self, position: usize) -> &str {
        let start = if position == 0 {
            0
        } else {
            self.ends[position - 1]
        };
        &self.text[start..self.ends[position]]
    }

    /// The position of `text`, or [`NONE`].
    pub fn get(&self, text: &str) -> u32 {
        if self.slots.is_empty() {
            NONE
        } else {
            self.slots[self.slot(text)]
        }
    }

    /// The position of `text`, which is added if it is new.
    pub fn insert(&mut self, text: &str) -> u32 {
        if (self.len() + 1) * 2 > self.slots.len() {
            self.grow();
        }
        let slot = self.slot(text);
        if self.slots[slot] == NONE {
            self.slots[slot] = u32::try_from(self.len()).expect("fewer than 2^32 identifiers");
            self.text.push_str(text);
            self.ends.push(self.text.len());
        }
        self.slots[slot]
    }

    fn slot(&self, text: &str) -> usize {
        let mask = self.slots.len() - 1;
        let mut hasher = FxHasher::default();
        hasher.write(text.as_bytes());
        // A table that is at most half full always has the empty slot that ends this walk.
        let mut slot = hasher.finish() as usize & mask;
        while self.slots[slot] != NONE && self.text(self.slots[slot] as usize) != text {
            slot = (slot + 1) & mask;
        }
        slot
    }

    fn grow(&mut self) {
        self.slots = vec![NONE; (self.slots.len() * 2).max(16)];
        for position in 0..self.len() {
            let slot = self.slot(self.text(position));
            self.slots[slot] = position as u32;
        }
    }
}

/// Why a list of identifiers makes no table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdFault {
    /// The same identifier as an earlier one.
    Repeated {
        /// Position of the earlier one.
        first: usize,
        /// Position of the later one.
        second: usize,
    },
    /// Nothing is left of the identifier.
    Empty(usize),
    /// A line break or a NUL is in the identifier.
    Control(usize),
}

impl IdFault {
    /// A short name, the position at fault, and the earlier position where there is one.
    pub fn parts(&self) -> (&'static str, usize, usize) {
        match *self {
            Self::Repeated { first, second } => ("repeated", second, first),
            Self::Empty(position) => ("empty", position, position),
            Self::Control(position) => ("control", position, position),
        }
    }
}

enum Kind {
    Range(u32),
    Ints {
        ids: Ints,
        index: OnceLock<IntIndex>,
    },
    Texts(Interner),
}

/// Integers in as many bytes as they need.
enum Ints {
    Small(Vec<u32>),
    Wide(Vec<u64>),
}

impl Ints {
    fn len(&self) -> usize {
        match self {
            Self::Small(ids) => ids.len(),
            Self::Wide(ids) => ids.len(),
        }
    }

    fn at(&self, position: usize) -> u64 {
        match self {
            Self::Small(ids) => u64::from(ids[position]),
            Self::Wide(ids) => ids[position],
        }
    }

    fn iter(&self) -> impl Iterator<Item = u64> {
        (0..self.len()).map(|position| self.at(position))
    }
}

enum IntIndex {
    Dense(Vec<u32>),
    Hashed(FxHashMap<u64, u32>),
}

impl IntIndex {
    fn new(ids: &Ints) -> Self {
        let top = ids.iter().max().unwrap_or(0);
        // The table's size is bounded by the number of identifiers, never by their values.
        if top < 8 * ids.len() as u64 + 4096 {
            let mut table = vec![NONE; top as usize + 1];
            for (position, id) in ids.iter().enumerate() {
                table[id as usize] = position as u32;
            }
            return Self::Dense(table);
        }
        Self::Hashed(
            ids.iter()
                .enumerate()
                .map(|(position, id)| (id, position as u32))
                .collect(),
        )
    }

    #[inline]
    fn get(&self, id: u64) -> u32 {
        match self {
            Self::Dense(table) => table.get(id as usize).copied().unwrap_or(NONE),
            Self::Hashed(map) => map.get(&id).copied().unwrap_or(NONE),
        }
    }
}

/// Identifiers in order, with the way back from an identifier to its position.
pub struct IdTable {
    normal: Normal,
    kind: Kind,
}

impl IdTable {
    /// The identifiers `0`, `1`, … `n-1`; costs nothing, whatever `n`.
    pub fn range(n: u32, normal: Normal) -> Self {
        Self {
            normal,
            kind: Kind::Range(n),
        }
    }

    /// A table of distinct integers below 10^18, in the given order.
    pub fn from_ints(ids: Vec<u64>, normal: Normal) -> Self {
        Self::from_any(Ints::Wide(ids), normal)
    }

    /// A table of distinct small integers, in the given order.
    pub fn from_small(ids: Vec<u32>, normal: Normal) -> Self {
        Self::from_any(Ints::Small(ids), normal)
    }

    fn from_any(ids: Ints, normal: Normal) -> Self {
        let kind = if ids
            .iter()
            .enumerate()
            .all(|(position, id)| id == position as u64)
        {
            Kind::Range(ids.len() as u32)
        } else {
            Kind::Ints {
                ids,
                index: OnceLock::new(),
            }
        };
        Self { normal, kind }
    }

    /// A table of the normalised `ids`, which must stay distinct and not empty.
    pub fn from_texts<S: AsRef<str>>(ids: &[S], normal: Normal) -> Result<Self, IdFault> {
        let mut texts = Interner::default();
        for (position, id) in ids.iter().enumerate() {
            let id = normal.apply(id.as_ref());
            if id.is_empty() {
                return Err(IdFault::Empty(position));
            }
            if id.contains(['\n', '\r', '\0']) {
                return Err(IdFault::Control(position));
            }
            let first = texts.insert(&id) as usize;
            if first != position {
                return Err(IdFault::Repeated {
                    first,
                    second: position,
                });
            }
        }
        Ok(Self::from_interner(texts, normal))
    }

    /// A table of texts that are already normalised.
    pub fn from_interner(texts: Interner, normal: Normal) -> Self {
        match (0..texts.len())
            .map(|position| decimal(texts.text(position)))
            .collect()
        {
            Some(ids) => Self::from_ints(ids, normal),
            None => Self {
                normal,
                kind: Kind::Texts(texts),
            },
        }
    }

    /// The number of identifiers.
    pub fn len(&self) -> usize {
        match &self.kind {
            Kind::Range(n) => *n as usize,
            Kind::Ints { ids, .. } => ids.len(),
            Kind::Texts(texts) => texts.len(),
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The normalisation that every lookup applies.
    pub fn normal(&self) -> Normal {
        self.normal
    }

    /// The identifier at `position`.
    pub fn id(&self, position: usize) -> Cow<'_, str> {
        match &self.kind {
            Kind::Range(_) => Cow::Owned(position.to_string()),
            Kind::Ints { ids, .. } => Cow::Owned(ids.at(position).to_string()),
            Kind::Texts(texts) => Cow::Borrowed(texts.text(position)),
        }
    }

    /// The position of the integer `id`, or [`NONE`].
    #[inline]
    pub fn get_int(&self, id: u64) -> u32 {
        match &self.kind {
            Kind::Range(n) if id < u64::from(*n) => id as u32,
            Kind::Range(_) => NONE,
            Kind::Ints { ids, index } => index.get_or_init(|| IntIndex::new(ids)).get(id),
            Kind::Texts(texts) => texts.get(&id.to_string()),
        }
    }

    /// The position of `id` after normalisation, or [`NONE`].
    pub fn get(&self, id: &str) -> u32 {
        let id = self.normal.apply(id);
        match &self.kind {
            Kind::Texts(texts) => texts.get(&id),
            _ => decimal(&id).map_or(NONE, |id| self.get_int(id)),
        }
    }

    /// Identifiers `start..stop`, each as a little-endian `u32` length and its UTF-8 bytes: what
    /// the digest of a universe is taken of.
    pub fn encode(&self, start: usize, stop: usize) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(12 * (stop - start));
        for position in start..stop {
            let id = self.id(position);
            let length = u32::try_from(id.len()).expect("an identifier is shorter than 4 GiB");
            bytes.extend_from_slice(&length.to_le_bytes());
            bytes.extend_from_slice(id.as_bytes());
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Normal = Normal {
        strip: false,
        case: None,
    };

    #[test]
    fn decimals_have_one_spelling() {
        assert_eq!(decimal("0"), Some(0));
        assert_eq!(decimal("907"), Some(907));
        assert_eq!(decimal("999999999999999999"), Some(999_999_999_999_999_999));
        for text in [
            "",
            "00",
            "007",
            "+7",
            "-7",
            "7 ",
            "1e3",
            "٣",
            "1000000000000000000",
        ] {
            assert_eq!(decimal(text), None, "{text}");
        }
    }

    #[test]
    fn integers_sort_by_value() {
        let mut ids = vec!["10", "-2", "9", "0", "-10", "100000000000000000000", "-1"];
        assert!(ids.iter().all(|id| is_integer(id)));
        assert!(!["-0", "01", "", "-", "1a"].iter().any(|id| is_integer(id)));
        ids.sort_by(|a, b| integer_order(a, b));
        assert_eq!(
            ids,
            ["-10", "-2", "-1", "0", "9", "10", "100000000000000000000"]
        );
    }

    #[test]
    fn every_kind_finds_what_it_holds() {
        let lists: [&[&str]; 4] = [
            &["0", "1", "2"],
            &["5", "3", "900000000"],
            &["a", "7", "007"],
            &["3", "1", "2"],
        ];
        for ids in lists {
            let table = IdTable::from_texts(ids, PLAIN).unwrap();
            for (position, id) in ids.iter().enumerate() {
                assert_eq!(table.get(id), position as u32);
                assert_eq!(table.id(position), *id);
            }
            assert_eq!(table.get("4"), NONE);
            assert_eq!(table.get("01"), NONE);
            assert_eq!(table.get(""), NONE);
        }
    }

    #[test]
    fn normalisation_is_applied_to_lookups() {
        let normal = Normal {
            strip: true,
            case: Some(Case::Lower),
        };
        let table = IdTable::from_texts(&[" Ada ", "BOB"], normal).unwrap();
        assert_eq!(table.get("ADA"), 0);
        assert_eq!(table.get("\tbob"), 1);
        assert_eq!(table.id(0), "ada");
    }

    #[test]
    fn bad_lists_are_refused() {
        let lower = Normal {
            strip: true,
            case: Some(Case::Lower),
        };
        let fault = |ids: &[&str], normal| IdTable::from_texts(ids, normal).err();
        let repeated = Some(IdFault::Repeated {
            first: 0,
            second: 2,
        });
        assert_eq!(fault(&["a", "b", "a"], PLAIN), repeated);
        assert_eq!(fault(&["a", "b", "A"], lower), repeated);
        assert_eq!(fault(&["a", "b", "A"], PLAIN), None);
        assert_eq!(fault(&["a", ""], PLAIN), Some(IdFault::Empty(1)));
        assert_eq!(fault(&["a", "  "], lower), Some(IdFault::Empty(1)));
        assert_eq!(fault(&["a\nb"], PLAIN), Some(IdFault::Control(0)));
    }

    #[test]
    fn a_range_encodes_like_its_list() {
        let ids: Vec<String> = (0..1000).map(|id| id.to_string()).collect();
        let listed = IdTable::from_texts(&ids, PLAIN).unwrap();
        assert_eq!(
            listed.encode(0, 1000),
            IdTable::range(1000, PLAIN).encode(0, 1000)
        );
        assert_eq!(listed.encode(10, 11), b"\x02\0\0\x0010");
    }
}
