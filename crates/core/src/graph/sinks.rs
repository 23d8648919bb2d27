//! Where the rows of an edge list go: into keys over a known universe, into integers as they
//! are, or into texts that are told apart.

use std::sync::atomic::{AtomicBool, Ordering};

use super::ids::{self, IdTable, Interner, NONE, Normal};
use super::lines::FaultKind;
use super::sparse::key;

/// Where the two ends of each row go.
pub(super) trait Sink {
    /// Whether `decimals` is of use.
    const DECIMALS: bool;

    fn decimals(&mut self, a: u64, b: u64) -> Result<(), FaultKind>;

    fn texts(&mut self, a: &str, b: &str) -> Result<(), FaultKind>;
}

/// How the ends of a row become a key.
pub(super) trait Resolve {
    fn decimals(&self, a: u64, b: u64) -> Result<u64, FaultKind>;

    fn texts(&self, a: &str, b: &str) -> Result<u64, FaultKind>;
}

/// A key for every row of one piece.
pub(super) struct KeySink<R> {
    pub resolve: R,
    pub keys: Vec<u64>,
}

impl<R: Resolve> Sink for KeySink<R> {
    const DECIMALS: bool = true;

    #[inline]
    fn decimals(&mut self, a: u64, b: u64) -> Result<(), FaultKind> {
        self.resolve.decimals(a, b).map(|key| self.keys.push(key))
    }

    fn texts(&mut self, a: &str, b: &str) -> Result<(), FaultKind> {
        self.resolve.texts(a, b).map(|key| self.keys.push(key))
    }
}

/// Positions in a universe.
#[derive(Clone, Copy)]
pub(super) struct Known<'t> {
    pub table: &'t IdTable,
}

impl Known<'_> {
    fn find(&self, id: &str) -> Result<u32, FaultKind> {
        match self.table.get(id) {
            NONE if self.table.normal().apply(id).is_empty() => Err(FaultKind::Empty),
            NONE => Err(FaultKind::Unknown(id.to_owned())),
            position => Ok(position),
        }
    }
}

impl Resolve for Known<'_> {
    #[inline]
    fn decimals(&self, a: u64, b: u64) -> Result<u64, FaultKind> {
        let (u, v) = (self.table.get_int(a), self.table.get_int(b));
        if u == NONE || v == NONE {
            return Err(FaultKind::Unknown(
                if u == NONE { a } else { b }.to_string(),
            ));
        }
        Ok(key(u, v))
    }

    fn texts(&self, a: &str, b: &str) -> Result<u64, FaultKind> {
        Ok(key(self.find(a)?, self.find(b)?))
    }
}

/// Integers below 2^32 as they are; anything else raises the flag, and the reading is wasted.
#[derive(Clone, Copy)]
pub(super) struct Small<'f> {
    pub normal: Normal,
    pub odd: &'f AtomicBool,
}

impl Resolve for Small<'_> {
    #[inline]
    fn decimals(&self, a: u64, b: u64) -> Result<u64, FaultKind> {
        if (a | b) >> 32 != 0 {
            self.odd.store(true, Ordering::Relaxed);
            return Err(FaultKind::Empty);
        }
        Ok(key(a as u32, b as u32))
    }

    fn texts(&self, a: &str, b: &str) -> Result<u64, FaultKind> {
        let value = |id| ids::decimal(&self.normal.apply(id)).unwrap_or(u64::MAX);
        self.decimals(value(a), value(b))
    }
}

pub(super) struct TextSink {
    pub normal: Normal,
    pub ids: Interner,
    pub pairs: Vec<[u32; 2]>,
}

impl TextSink {
    fn place(&mut self, id: &str) -> Result<u32, FaultKind> {
        let id = self.normal.apply(id);
        if id.is_empty() {
            return Err(FaultKind::Empty);
        }
        if id.contains('\r') {
            return Err(FaultKind::Control(id.into_owned()));
        }
        // "1, 2" without `strip` would quietly make " 2" another node than "2".
        if id.trim().len() != id.len() {
            return Err(FaultKind::Spaced(id.into_owned()));
        }
        Ok(self.ids.insert(&id))
    }
}

impl Sink for TextSink {
    const DECIMALS: bool = false;

    fn decimals(&mut self, a: u64, b: u64) -> Result<(), FaultKind> {
        self.texts(&a.to_string(), &b.to_string())
    }

    fn texts(&mut self, a: &str, b: &str) -> Result<(), FaultKind> {
        let pair = [self.place(a)?, self.place(b)?];
        self.pairs.push(pair);
        Ok(())
    }
}

/// Keeps the first end alone.
pub(super) struct ColumnSink(pub Vec<String>);

impl Sink for ColumnSink {
    const DECIMALS: bool = false;

    fn decimals(&mut self, a: u64, b: u64) -> Result<(), FaultKind> {
        self.texts(&a.to_string(), &b.to_string())
    }

    fn texts(&mut self, a: &str, _: &str) -> Result<(), FaultKind> {
        self.0.push(a.to_owned());
        Ok(())
    }
}
