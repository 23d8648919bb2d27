//! Reading a text edge list, in parallel over pieces that end with a line.
//!
//! [`EdgeText::keys`] reads over a given universe; [`EdgeText::graph`] takes the universe from
//! the file. Both give the first fault of the file, or all of it; never a part.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use memchr::{memchr, memchr_iter};
use rayon::prelude::*;

use super::ids::{self, IdTable, Interner, Normal};
use super::lines::{Fault, FaultKind, Layout, LineKind, decimal_pair, fields, kind_of, line_at};
use super::settle::Settled;
use super::sinks::{ColumnSink, KeySink, Known, Resolve, Sink, Small, TextSink};
use super::sparse::key;
use super::text::Text;

/// Bytes in which the first rows are looked for at first.
const OPENING: usize = 1 << 14;

/// What was met on the way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Rows with an edge, loops and repeats among them.
    pub rows: usize,
    /// Rows whose time is outside the window.
    pub outside: usize,
    /// Lines that begin with `#` or `%`.
    pub comments: usize,
    /// Rows with the same node at both ends.
    pub loops: usize,
    /// Rows that name an edge which an earlier row named, in either direction.
    pub repeats: usize,
}

/// Edges over the universe of the identifiers that occur in a file.
pub struct Found {
    edges: Settled,
    normal: Normal,
    /// The identifiers, unless the ends of the edges are the identifiers themselves.
    table: Option<IdTable>,
}

impl Found {
    /// The number of edges.
    pub fn count(&self) -> usize {
        self.edges.count()
    }

    /// Writes the pairs of positions, as [`Settled::write`] does; returns the universe.
    pub fn write(self, pairs: &mut [u64]) -> IdTable {
        match self.table {
            Some(table) => {
                self.edges.write(pairs);
                table
            }
            None => IdTable::from_small(self.edges.compact(pairs), self.normal),
        }
    }
}

/// The text of an edge list.
pub struct EdgeText(Text);

impl EdgeText {
    /// Reads edges from a text.
    pub fn new(text: Text) -> Self {
        Self(text)
    }

    /// The text itself.
    pub fn text(&self) -> &Text {
        &self.0
    }

    /// Looks at the first lines, at more and more of them, until `look` says that it is enough.
    fn opening<T>(
        &self,
        mut look: impl FnMut(&[u8]) -> Result<(bool, T), Fault>,
    ) -> Result<T, Fault> {
        let (mut buffer, mut size) = (Vec::new(), OPENING);
        loop {
            let (bytes, whole) = self.0.opening(size, &mut buffer).map_err(unread)?;
            match look(bytes)? {
                (false, _) if !whole => size = size.saturating_mul(8),
                (_, found) => return Ok(found),
            }
        }
    }

    /// The fields of the first `limit` rows, to find a header by.
    pub fn head(&self, delimiter: Option<u8>, limit: usize) -> Result<Vec<Vec<String>>, Fault> {
        self.opening(|bytes| {
            let mut rows = Vec::new();
            let mut start = 0;
            while start < bytes.len() && rows.len() < limit {
                let (line, next) = checked_line(bytes, start).map_err(|fault| self.moved(fault))?;
                if kind_of(line, delimiter) == LineKind::Row {
                    let mut row = Vec::new();
                    let each = |_, field: std::borrow::Cow<str>| row.push(field.into_owned());
                    fields(line, delimiter, each).map_err(|kind| Fault {
                        offset: self.0.start() + start,
                        kind,
                    })?;
                    rows.push(row);
                }
                start = next;
            }
            Ok((rows.len() == limit, rows))
        })
    }

    /// Where the lines below the header begin, and how many comments are above it.
    fn body(&self, layout: &Layout) -> Result<(usize, usize), Fault> {
        if !layout.header {
            return Ok((self.0.start(), 0));
        }
        self.opening(|bytes| {
            let (mut start, mut comments, mut found) = (0, 0, false);
            while start < bytes.len() && !found {
                let (line, next) = checked_line(bytes, start).map_err(|fault| self.moved(fault))?;
                let kind = kind_of(line, layout.delimiter);
                comments += usize::from(kind == LineKind::Comment);
                found = kind == LineKind::Row;
                start = next;
            }
            Ok((found, (self.0.start() + start, comments)))
        })
    }

    /// A fault whose place was counted from the first line.
    fn moved(&self, fault: Fault) -> Fault {
        Fault {
            offset: self.0.start() + fault.offset,
            ..fault
        }
    }

    /// Every line as it stands, blank ones too.
    pub fn lines(&self) -> Result<Vec<String>, Fault> {
        let mut buffer = Vec::new();
        let bytes = self.0.all(&mut buffer).map_err(unread)?;
        let mut lines = Vec::new();
        let mut start = 0;
        while start < bytes.len() {
            let (line, next) = checked_line(bytes, start).map_err(|fault| self.moved(fault))?;
            lines.push(line.to_owned());
            start = next;
        }
        Ok(lines)
    }

    /// The field `layout.first` of every row.
    pub fn column(&self, layout: &Layout) -> Result<Vec<String>, Fault> {
        let (sinks, _) = self.scan(layout, |_| ColumnSink(Vec::new()))?;
        Ok(sinks.into_iter().flat_map(|sink| sink.0).collect())
    }

    /// The edges, over a universe that is given.
    pub fn keys(&self, table: &IdTable, layout: &Layout) -> Result<(Settled, Tally), Fault> {
        self.settle(layout, Known { table })
    }

    /// The edges, over the universe of the identifiers that occur (those of loops too):
    /// integers in the order of their values, anything else in the order of code points.
    pub fn graph(&self, normal: Normal, layout: &Layout) -> Result<(Found, Tally), Fault> {
        // Most files hold small integers, and it takes one odd identifier to know otherwise.
        let odd = AtomicBool::new(false);
        let small = self.settle(layout, Small { normal, odd: &odd });
        if odd.load(Ordering::Relaxed) {
            return self.text_graph(normal, layout);
        }
        let (edges, tally) = small?;
        let found = Found {
            edges,
            normal,
            table: None,
        };
        Ok((found, tally))
    }

    fn text_graph(&self, normal: Normal, layout: &Layout) -> Result<(Found, Tally), Fault> {
        let (sinks, mut tally) = self.scan(layout, |_| TextSink {
            normal,
            ids: Interner::default(),
            pairs: Vec::new(),
        })?;
        let mut all = Interner::default();
        let places = sinks.iter().map(|sink| {
            (0..sink.ids.len())
                .map(|position| all.insert(sink.ids.text(position)))
                .collect()
        });
        let places: Vec<Vec<u32>> = places.collect();
        let integers = (0..all.len()).all(|position| ids::is_integer(all.text(position)));
        let mut order: Vec<u32> = (0..all.len() as u32).collect();
        order.par_sort_unstable_by(|&a, &b| {
            let (a, b) = (all.text(a as usize), all.text(b as usize));
            if integers {
                ids::integer_order(a, b)
            } else {
                a.cmp(b)
            }
        });
        let mut rank = vec![0u32; order.len()];
        let mut sorted = Interner::default();
        for &position in &order {
            rank[position as usize] = sorted.insert(all.text(position as usize));
        }
        let keys = sinks.par_iter().zip(&places).map(|(sink, place)| {
            let rank = |id: u32| rank[place[id as usize] as usize];
            sink.pairs
                .iter()
                .map(|&[a, b]| key(rank(a), rank(b)))
                .collect()
        });
        let edges = Settled::new(keys.collect());
        (tally.loops, tally.repeats) = (edges.loops(), edges.repeats());
        let found = Found {
            edges,
            normal,
            table: Some(IdTable::from_interner(sorted, normal)),
        };
        Ok((found, tally))
    }

    /// Reads and settles keys.
    fn settle<R: Resolve + Copy + Send + Sync>(
        &self,
        layout: &Layout,
        resolve: R,
    ) -> Result<(Settled, Tally), Fault> {
        let (sinks, mut tally) = self.scan(layout, |lines| KeySink {
            resolve,
            // Room for a row on every line: memory that grows is touched twice.
            keys: Vec::with_capacity(memchr_iter(b'\n', lines).count() + 1),
        })?;
        let edges = Settled::new(sinks.into_iter().map(|sink| sink.keys).collect());
        (tally.loops, tally.repeats) = (edges.loops(), edges.repeats());
        Ok((edges, tally))
    }

    /// Reads all pieces at once, each into a sink of its own that is made for its lines.
    fn scan<S: Sink + Send>(
        &self,
        layout: &Layout,
        new: impl Fn(&[u8]) -> S + Sync,
    ) -> Result<(Vec<S>, Tally), Fault> {
        let (start, comments) = self.body(layout)?;
        let pieces = self.0.pieces(start);
        // Results are looked at in the order of the file, so the first fault is the one told.
        let done: Vec<Result<(S, Tally), Fault>> = pieces
            .par_iter()
            .map_init(Vec::new, |buffer, piece| {
                let (base, lines) = self.0.lines(piece, buffer).map_err(unread)?;
                let mut sink = new(lines);
                let tally = read_rows(lines, layout, &mut sink).map_err(|fault| Fault {
                    offset: base + fault.offset,
                    ..fault
                })?;
                Ok((sink, tally))
            })
            .collect();
        let mut sinks = Vec::with_capacity(done.len());
        let mut total = Tally {
            comments,
            ..Tally::default()
        };
        for result in done {
            let (sink, tally) = result?;
            total.rows += tally.rows;
            total.outside += tally.outside;
            total.comments += tally.comments;
            sinks.push(sink);
        }
        Ok((sinks, total))
    }
}

/// The system's word on a file that could be opened, but not read.
fn unread(error: io::Error) -> Fault {
    Fault {
        offset: 0,
        kind: FaultKind::Unread(error.to_string()),
    }
}

/// The line that begins at `start`, if it is text, and the start of the next line.
fn checked_line(bytes: &[u8], start: usize) -> Result<(&str, usize), Fault> {
    let next = memchr(b'\n', &bytes[start..]).map_or(bytes.len(), |end| start + end + 1);
    let (line, _) = line_at(checked(&bytes[start..next], start)?, 0);
    Ok((line, next))
}

/// The bytes as text, if they are text.
fn checked(bytes: &[u8], base: usize) -> Result<&str, Fault> {
    let fault = |offset, kind| Fault {
        offset: base + offset,
        kind,
    };
    let nul = memchr(0, bytes);
    match std::str::from_utf8(bytes) {
        Err(error) if nul.is_none_or(|at| at > error.valid_up_to()) => {
            Err(fault(error.valid_up_to(), FaultKind::NotUtf8))
        }
        Ok(text) if nul.is_none() => Ok(text),
        _ => Err(fault(nul.unwrap_or_default(), FaultKind::Binary)),
    }
}

fn read_rows<S: Sink>(bytes: &[u8], layout: &Layout, sink: &mut S) -> Result<Tally, Fault> {
    let fast = S::DECIMALS && layout.fields == 2 && layout.window.is_none();
    let timed = layout.window.map_or(usize::MAX, |window| window.field);
    let mut tally = Tally::default();
    let mut start = 0;
    while start < bytes.len() {
        let fail = |kind| Fault {
            offset: start,
            kind,
        };
        if fast && let Some((a, b, next)) = decimal_pair(bytes, start, layout.delimiter) {
            sink.decimals(a, b).map_err(fail)?;
            tally.rows += 1;
            start = next;
            continue;
        }
        let (line, next) = checked_line(bytes, start)?;
        match kind_of(line, layout.delimiter) {
            LineKind::Blank => {}
            LineKind::Comment => tally.comments += 1,
            LineKind::Row => {
                let (mut a, mut b, mut time) = (None, None, None);
                let found = fields(line, layout.delimiter, |number, field| {
                    if number == layout.first {
                        a = Some(field);
                    } else if number == layout.second {
                        b = Some(field);
                    } else if number == timed {
                        time = Some(field);
                    }
                })
                .map_err(fail)?;
                if found != layout.fields {
                    return Err(fail(FaultKind::Fields {
                        expected: layout.fields,
                        found,
                    }));
                }
                let (a, b) = (a.unwrap_or_default(), b.unwrap_or_default());
                let inside = layout.window.map_or(Ok(true), |window| {
                    let time = time.unwrap_or_default();
                    window
                        .holds(&time)
                        .ok_or_else(|| FaultKind::Time(time.into_owned()))
                });
                if inside.map_err(fail)? {
                    sink.texts(&a, &b).map_err(fail)?;
                    tally.rows += 1;
                } else {
                    tally.outside += 1;
                }
            }
        }
        start = next;
    }
    Ok(tally)
}

#[cfg(test)]
mod tests {
    use super::super::times::Window;
    use super::*;
    use std::fmt::Write;

    const SPACES: Layout = Layout {
        delimiter: None,
        fields: 2,
        first: 0,
        second: 1,
        header: false,
        window: None,
    };
    const COMMAS: Layout = Layout {
        delimiter: Some(b','),
        ..SPACES
    };

    fn text(content: impl Into<Vec<u8>>) -> EdgeText {
        EdgeText::new(Text::from_bytes(content.into()))
    }

    /// Keys of pairs, as they were written.
    fn unwritten(pairs: Vec<u64>) -> Vec<u64> {
        pairs
            .into_iter()
            .map(super::super::sparse::as_pair)
            .collect()
    }

    fn graph(file: &EdgeText, layout: &Layout) -> (IdTable, Vec<u64>, Tally) {
        let (found, tally) = file.graph(Normal::default(), layout).ok().unwrap();
        let mut pairs = vec![0; found.count()];
        let table = found.write(&mut pairs);
        (table, unwritten(pairs), tally)
    }

    fn keys(file: &EdgeText, table: &IdTable, layout: &Layout) -> (Vec<u64>, Tally) {
        let (edges, tally) = file.keys(table, layout).ok().unwrap();
        let mut pairs = vec![0; edges.count()];
        edges.write(&mut pairs);
        (unwritten(pairs), tally)
    }

    fn ids(table: &IdTable) -> Vec<String> {
        (0..table.len())
            .map(|position| table.id(position).into_owned())
            .collect()
    }

    fn fault(content: &[u8], layout: &Layout) -> (usize, FaultKind) {
        let text = text(content);
        let fault = text
            .graph(Normal::default(), layout)
            .err()
            .expect("a fault");
        (text.0.line_number(fault.offset).unwrap(), fault.kind)
    }

    #[test]
    fn a_snap_file() {
        let file = text("\u{feff}# nodes\r\n10 2\r\n\r\n2\t10\n% x\n7 7\n 2  100 \n");
        let (table, first, tally) = graph(&file, &SPACES);
        assert_eq!(ids(&table), ["2", "7", "10", "100"]);
        assert_eq!(first, [key(0, 2), key(0, 3)]);
        assert_eq!(
            tally,
            Tally {
                rows: 4,
                outside: 0,
                comments: 2,
                loops: 1,
                repeats: 1
            }
        );
        let known = IdTable::from_texts(&["100", "10", "7", "2"], Normal::default()).unwrap();
        let (found, again) = keys(&file, &known, &SPACES);
        assert_eq!(found, [key(0, 3), key(1, 3)]);
        assert_eq!(again, tally);
    }

    #[test]
    fn texts_and_wide_integers() {
        let (table, keys, _) = graph(&text("b,é\né,a\n\"7\",b"), &COMMAS);
        assert_eq!(ids(&table), ["7", "a", "b", "é"]);
        assert_eq!(keys, [key(0, 2), key(1, 3), key(2, 3)]);
        let wide = text("99999999999 -3\n5 99999999999\n12345678901234567890123 5\n");
        let (table, ..) = graph(&wide, &SPACES);
        assert_eq!(
            ids(&table),
            ["-3", "5", "99999999999", "12345678901234567890123"]
        );
    }

    #[test]
    fn many_pieces_read_like_one() {
        let mut content = String::new();
        let mut state = 1u64;
        let mut expected = std::collections::BTreeSet::new();
        for _ in 0..100_000 {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let (a, b) = ((state >> 33) as u32 % 5000, (state >> 11) as u32 % 5000);
            writeln!(content, "{a} {b}").unwrap();
            if a != b {
                expected.insert(key(a, b));
            }
        }
        let table = IdTable::range(5000, Normal::default());
        let (found, tally) = keys(&text(content.clone()), &table, &SPACES);
        assert_eq!(found, expected.into_iter().collect::<Vec<_>>());
        assert_eq!(tally.rows, 100_000);
        assert_eq!(tally.rows, found.len() + tally.loops + tally.repeats);
        let (named, found, _) = graph(&text(content.clone()), &SPACES);
        let names: IdTable = IdTable::from_texts(&ids(&named), Normal::default()).unwrap();
        assert_eq!(found, keys(&text(content.clone()), &names, &SPACES).0);
        // The first fault of the file is told, whichever piece finishes first.
        let broken = content.clone() + "1\n" + &content + "2\n";
        assert_eq!(
            fault(broken.as_bytes(), &SPACES),
            (
                100_001,
                FaultKind::Fields {
                    expected: 2,
                    found: 1
                }
            )
        );
    }

    #[test]
    fn faults_name_the_line() {
        let three = FaultKind::Fields {
            expected: 2,
            found: 3,
        };
        assert_eq!(fault(b"1 2\n1 2 3\n", &SPACES), (2, three));
        assert_eq!(fault(b"a,b\n\"c,d\n", &COMMAS), (2, FaultKind::Unclosed));
        assert_eq!(
            fault(b"a,b\n\"c\"d,e\n", &COMMAS),
            (2, FaultKind::AfterQuote)
        );
        assert_eq!(fault(b"a,b\n,e\n", &COMMAS), (2, FaultKind::Empty));
        assert_eq!(
            fault(b"1, 2\n", &COMMAS),
            (1, FaultKind::Spaced(" 2".into()))
        );
        assert_eq!(fault(b"1 2\n\n\xff 3\n", &SPACES), (3, FaultKind::NotUtf8));
        assert_eq!(fault(b"1 2\n3 \0\n", &SPACES), (2, FaultKind::Binary));
        let short = FaultKind::Fields {
            expected: 2,
            found: 1,
        };
        assert_eq!(fault(b"1 2\n3\n\xff 3\n", &SPACES), (2, short));
        let table = IdTable::range(3, Normal::default());
        let unknown =
            |content: &str, layout| text(content).keys(&table, layout).err().unwrap().kind;
        assert_eq!(
            unknown("1 2\n2 3\n", &SPACES),
            FaultKind::Unknown("3".into())
        );
        assert_eq!(
            unknown("1,2\n2, 1\n", &COMMAS),
            FaultKind::Unknown(" 1".into())
        );
        assert_eq!(unknown("1 02\n", &SPACES), FaultKind::Unknown("02".into()));
    }

    #[test]
    fn a_window_of_time() {
        let window = |since, until| Layout {
            fields: 3,
            header: true,
            window: Some(Window {
                field: 2,
                since,
                until,
                dates: true,
            }),
            ..COMMAS
        };
        let file = text("a,b,day\n1,2,1970-01-01\n2,3,1970-01-02\nx,3,1970-01-03\n");
        let day = 86_400_000_000;
        let (table, found, tally) = graph(&file, &window(0, 2 * day));
        assert_eq!(ids(&table), ["1", "2", "3"]);
        assert_eq!((found.len(), tally.rows, tally.outside), (2, 2, 1));
        let range = IdTable::range(4, Normal::default());
        let (_, tally) = keys(&file, &range, &window(day, 2 * day));
        assert_eq!((tally.rows, tally.outside), (1, 2));
        let bad = text("a,b,day\n1,2,1970-01-01\n2,3,yesterday\n");
        let fault = bad.keys(&range, &window(0, day)).err().unwrap();
        assert_eq!(bad.0.line_number(fault.offset).unwrap(), 3);
        assert_eq!(fault.kind, FaultKind::Time("yesterday".into()));
    }

    #[test]
    fn columns_headers_and_heads() {
        let file = text("id,src,dst\n1,a,b\n2,b,c\n");
        let layout = Layout {
            fields: 3,
            first: 2,
            second: 1,
            header: true,
            ..COMMAS
        };
        let (table, keys, tally) = graph(&file, &layout);
        assert_eq!(ids(&table), ["a", "b", "c"]);
        assert_eq!(keys, [key(0, 1), key(1, 2)]);
        assert_eq!(tally.rows, 2);
        assert_eq!(file.column(&layout).unwrap(), ["b", "c"]);
        assert_eq!(
            file.head(Some(b','), 2).unwrap(),
            [["id", "src", "dst"], ["1", "a", "b"]]
        );
        assert!(text("").head(None, 5).unwrap().is_empty());
        assert_eq!(
            text("# x\r\n\n a \"b").lines().unwrap(),
            ["# x", "", " a \"b"]
        );
    }
}
