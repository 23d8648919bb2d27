//! Reading a text edge list, in parallel over pieces that end with a line.
//!
//! [`EdgeText::keys`] reads over a given universe; [`EdgeText::graph`] takes the universe from
//! the file. Both give the first fault of the file, or all of it; never a part.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use flate2::read::MultiGzDecoder;
use memchr::{memchr, memchr_iter, memrchr};
use rayon::prelude::*;

use super::compact::compact;
use super::ids::{self, IdTable, Interner, Normal};
use super::lines::{Fault, FaultKind, Layout, LineKind, decimal_pair, fields, kind_of, line_at};
use super::sinks::{ColumnSink, KeySink, Known, Resolve, Sink, Small, TextSink};
use super::sparse::{self, key};

/// Pieces are small enough to stay in a core's cache and to share the work evenly.
const PIECE: usize = 1 << 18;

/// The first byte of a piece, the first after it, and whether it is the header.
type Piece = (usize, usize, bool);

/// Why a file could not be taken into memory.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The system said no.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// Damaged or truncated gzip data.
    #[error("{0}")]
    Gzip(io::Error),
    /// More text than the caller wants in memory, or a stream without an end.
    #[error("more than {0} bytes of text")]
    Large(u64),
}

/// All that a reader has, unless that is more than `limit` bytes.
fn read_within(
    reader: impl Read,
    limit: u64,
    fault: fn(io::Error) -> OpenError,
) -> Result<Vec<u8>, OpenError> {
    let mut bytes = Vec::new();
    let mut limited = reader.take(limit.saturating_add(1));
    limited.read_to_end(&mut bytes).map_err(fault)?;
    if bytes.len() as u64 > limit {
        return Err(OpenError::Large(limit));
    }
    Ok(bytes)
}

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

/// The text of an edge list in memory, unzipped.
pub struct EdgeText {
    bytes: Vec<u8>,
    start: usize,
    /// Whether the file was compressed.
    pub gzip: bool,
}

impl EdgeText {
    /// Reads a whole file of at most `limit` bytes, also when unzipped; gzip is known by its magic
    /// bytes, not by the name.
    pub fn open(path: &Path, limit: u64) -> Result<Self, OpenError> {
        let bytes = read_within(File::open(path)?, limit, OpenError::Io)?;
        if !bytes.starts_with(&[0x1f, 0x8b]) {
            return Ok(Self::from_bytes(bytes, false));
        }
        let text = read_within(MultiGzDecoder::new(&bytes[..]), limit, OpenError::Gzip)?;
        Ok(Self::from_bytes(text, true))
    }

    /// Takes text that is in memory already.
    pub fn from_bytes(bytes: Vec<u8>, gzip: bool) -> Self {
        let start = if bytes.starts_with(b"\xef\xbb\xbf") {
            3
        } else {
            0
        };
        Self { bytes, start, gzip }
    }

    /// The first bytes, to know the file's kind by.
    pub fn magic(&self) -> &[u8] {
        &self.bytes[..self.bytes.len().min(4)]
    }

    /// The number, from 1, of the line in which byte `offset` stands.
    pub fn line_number(&self, offset: usize) -> usize {
        1 + memchr_iter(b'\n', &self.bytes[..offset]).count()
    }

    /// The fields of the first `limit` rows, to find a header by.
    pub fn head(&self, delimiter: Option<u8>, limit: usize) -> Result<Vec<Vec<String>>, Fault> {
        let mut rows = Vec::new();
        let mut start = self.start;
        while start < self.bytes.len() && rows.len() < limit {
            let stop = self.line_end(start);
            let text = checked(&self.bytes[start..stop], start)?;
            let (line, _) = line_at(text, 0);
            if kind_of(line, delimiter) == LineKind::Row {
                let mut row = Vec::new();
                fields(line, delimiter, |_, field| row.push(field.into_owned())).map_err(
                    |kind| Fault {
                        offset: start,
                        kind,
                    },
                )?;
                rows.push(row);
            }
            start = stop;
        }
        Ok(rows)
    }

    /// Every line as it stands, blank ones too.
    pub fn lines(&self) -> Result<Vec<String>, Fault> {
        let text = checked(&self.bytes[self.start..], self.start)?;
        let mut lines = Vec::new();
        let mut start = 0;
        while start < text.len() {
            let (line, next) = line_at(text, start);
            lines.push(line.to_owned());
            start = next;
        }
        Ok(lines)
    }

    /// The field `layout.first` of every row.
    pub fn column(&self, layout: &Layout) -> Result<Vec<String>, Fault> {
        let mut sink = ColumnSink(Vec::new());
        for piece in self.pieces(layout)? {
            self.read(piece, layout, &mut sink)?;
        }
        Ok(sink.0)
    }

    /// The edges, over a universe that is given.
    pub fn keys(&self, table: &IdTable, layout: &Layout) -> Result<(Vec<u64>, Tally), Fault> {
        let (mut keys, mut tally) = self.fill(layout, Known { table })?;
        (tally.loops, tally.repeats) = sparse::settle(&mut keys);
        Ok((keys, tally))
    }

    /// The edges, over the universe of the identifiers that occur (those of loops too):
    /// integers in the order of their values, anything else in the order of code points.
    pub fn graph(
        &self,
        normal: Normal,
        layout: &Layout,
    ) -> Result<(IdTable, Vec<u64>, Tally), Fault> {
        // Most files hold small integers, and it takes one odd identifier to know otherwise.
        let odd = AtomicBool::new(false);
        let small = self.fill(layout, Small { normal, odd: &odd });
        if odd.load(Ordering::Relaxed) {
            return self.text_graph(normal, layout);
        }
        let (mut keys, mut tally) = small?;
        let looped = keys.par_iter().filter(|&&key| sparse::is_loop(key));
        let looped: Vec<u32> = looped.map(|&key| key as u32).collect();
        (tally.loops, tally.repeats) = sparse::settle(&mut keys);
        let ids = compact(&mut keys, &looped);
        Ok((IdTable::from_small(ids, normal), keys, tally))
    }

    fn text_graph(
        &self,
        normal: Normal,
        layout: &Layout,
    ) -> Result<(IdTable, Vec<u64>, Tally), Fault> {
        let new = || TextSink {
            normal,
            ids: Interner::default(),
            pairs: Vec::new(),
        };
        let jobs = self
            .pieces(layout)?
            .into_iter()
            .map(|piece| (piece, new()))
            .collect();
        let (sinks, mut tally) = self.scan(layout, jobs)?;
        let mut all = Interner::default();
        let mut keys = Vec::with_capacity(tally.rows);
        for sink in sinks {
            let place: Vec<u32> = (0..sink.ids.len())
                .map(|position| all.insert(sink.ids.text(position)))
                .collect();
            keys.extend(
                sink.pairs
                    .iter()
                    .map(|&[a, b]| [place[a as usize], place[b as usize]]),
            );
        }
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
        let mut keys: Vec<u64> = keys
            .iter()
            .map(|&[a, b]| key(rank[a as usize], rank[b as usize]))
            .collect();
        (tally.loops, tally.repeats) = sparse::settle(&mut keys);
        Ok((IdTable::from_interner(sorted, normal), keys, tally))
    }

    /// Reads keys into one list that is taken once, with room for a row on every line: fresh
    /// memory costs more than counting lines does.
    fn fill<R: Resolve + Copy + Send>(
        &self,
        layout: &Layout,
        resolve: R,
    ) -> Result<(Vec<u64>, Tally), Fault> {
        let pieces = self.pieces(layout)?;
        let rooms: Vec<usize> = pieces.par_iter().map(|&piece| self.room(piece)).collect();
        let mut keys = vec![0u64; rooms.iter().sum()];
        let mut rest = &mut keys[..];
        let mut jobs = Vec::with_capacity(pieces.len());
        for (&piece, &room) in pieces.iter().zip(&rooms) {
            let (mine, others) = rest.split_at_mut(room);
            let sink = KeySink {
                resolve,
                keys: mine,
                used: 0,
            };
            jobs.push((piece, sink));
            rest = others;
        }
        let (sinks, tally) = self.scan(layout, jobs)?;
        let used: Vec<usize> = sinks.into_iter().map(|sink| sink.used).collect();
        let (mut from, mut to) = (0, 0);
        for (room, used) in rooms.into_iter().zip(used) {
            keys.copy_within(from..from + used, to);
            from += room;
            to += used;
        }
        keys.truncate(to);
        Ok((keys, tally))
    }

    /// The most rows that a piece can have: one a line, and four bytes each at least.
    fn room(&self, (start, stop, _): Piece) -> usize {
        let lines = memchr_iter(b'\n', &self.bytes[start..stop]).count();
        (lines + 1).min((stop - start) / 4 + 1)
    }

    /// Reads all pieces at once, each into a sink of its own.
    fn scan<S: Sink + Send>(
        &self,
        layout: &Layout,
        jobs: Vec<(Piece, S)>,
    ) -> Result<(Vec<S>, Tally), Fault> {
        // Results are looked at in the order of the file, so the first fault is the one told.
        let done: Vec<Result<(S, Tally), Fault>> = jobs
            .into_par_iter()
            .map(|(piece, mut sink)| {
                let tally = self.read(piece, layout, &mut sink)?;
                Ok((sink, tally))
            })
            .collect();
        let mut sinks = Vec::with_capacity(done.len());
        let mut total = Tally::default();
        for result in done {
            let (sink, tally) = result?;
            total.rows += tally.rows;
            total.outside += tally.outside;
            total.comments += tally.comments;
            sinks.push(sink);
        }
        Ok((sinks, total))
    }

    /// Byte ranges that begin and end with a line. A header stands alone in the first.
    fn pieces(&self, layout: &Layout) -> Result<Vec<Piece>, Fault> {
        let mut pieces = Vec::with_capacity(self.bytes.len() / PIECE + 2);
        let mut start = self.start;
        while layout.header && start < self.bytes.len() {
            let stop = self.line_end(start);
            let (line, _) = line_at(checked(&self.bytes[start..stop], start)?, 0);
            let row = kind_of(line, layout.delimiter) == LineKind::Row;
            pieces.push((start, stop, row));
            start = stop;
            if row {
                break;
            }
        }
        while start < self.bytes.len() {
            let stop = self.line_end((start + PIECE).min(self.bytes.len() - 1));
            pieces.push((start, stop, false));
            start = stop;
        }
        Ok(pieces)
    }

    /// The start of the line after the one in which `offset` stands.
    fn line_end(&self, offset: usize) -> usize {
        memchr(b'\n', &self.bytes[offset..]).map_or(self.bytes.len(), |end| offset + end + 1)
    }

    fn read<S: Sink>(
        &self,
        (start, stop, header): Piece,
        layout: &Layout,
        sink: &mut S,
    ) -> Result<Tally, Fault> {
        if header {
            return Ok(Tally::default());
        }
        let bytes = &self.bytes[start..stop];
        let (text, bad) = match checked(bytes, start) {
            Ok(text) => (text, None),
            Err(fault) => {
                // A fault on an earlier line is the first fault all the same.
                let end = memrchr(b'\n', &bytes[..fault.offset - start]).map_or(0, |at| at + 1);
                (
                    std::str::from_utf8(&bytes[..end]).unwrap_or_default(),
                    Some(fault),
                )
            }
        };
        let tally = read_rows(text, layout, sink).map_err(|fault| Fault {
            offset: start + fault.offset,
            ..fault
        })?;
        bad.map_or(Ok(tally), Err)
    }
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

fn read_rows<S: Sink>(text: &str, layout: &Layout, sink: &mut S) -> Result<Tally, Fault> {
    let fast = S::DECIMALS && layout.fields == 2 && layout.window.is_none();
    let timed = layout.window.map_or(usize::MAX, |window| window.field);
    let bytes = text.as_bytes();
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
        let (line, next) = line_at(text, start);
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
        EdgeText::from_bytes(content.into(), false)
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
        (text.line_number(fault.offset), fault.kind)
    }

    #[test]
    fn a_snap_file() {
        let file = text("\u{feff}# nodes\r\n10 2\r\n\r\n2\t10\n% x\n7 7\n 2  100 \n");
        let (table, keys, tally) = file.graph(Normal::default(), &SPACES).unwrap();
        assert_eq!(ids(&table), ["2", "7", "10", "100"]);
        assert_eq!(keys, [key(0, 2), key(0, 3)]);
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
        let (keys, again) = file.keys(&known, &SPACES).unwrap();
        assert_eq!(keys, [key(0, 3), key(1, 3)]);
        assert_eq!(again, tally);
    }

    #[test]
    fn texts_and_wide_integers() {
        let (table, keys, _) = text("b,é\né,a\n\"7\",b")
            .graph(Normal::default(), &COMMAS)
            .unwrap();
        assert_eq!(ids(&table), ["7", "a", "b", "é"]);
        assert_eq!(keys, [key(0, 2), key(1, 3), key(2, 3)]);
        let wide = text("99999999999 -3\n5 99999999999\n12345678901234567890123 5\n");
        let (table, ..) = wide.graph(Normal::default(), &SPACES).unwrap();
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
        let (keys, tally) = text(content.clone()).keys(&table, &SPACES).unwrap();
        assert_eq!(keys, expected.into_iter().collect::<Vec<_>>());
        assert_eq!(tally.rows, 100_000);
        assert_eq!(tally.rows, keys.len() + tally.loops + tally.repeats);
        let (named, keys, _) = text(content.clone())
            .graph(Normal::default(), &SPACES)
            .unwrap();
        let names: IdTable = IdTable::from_texts(&ids(&named), Normal::default()).unwrap();
        assert_eq!(keys, text(content.clone()).keys(&names, &SPACES).unwrap().0);
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
        let unknown = |content: &str, layout| text(content).keys(&table, layout).unwrap_err().kind;
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
        let (table, keys, tally) = file.graph(Normal::default(), &window(0, 2 * day)).unwrap();
        assert_eq!(ids(&table), ["1", "2", "3"]);
        assert_eq!((keys.len(), tally.rows, tally.outside), (2, 2, 1));
        let range = IdTable::range(4, Normal::default());
        let (_, tally) = file.keys(&range, &window(day, 2 * day)).unwrap();
        assert_eq!((tally.rows, tally.outside), (1, 2));
        let bad = text("a,b,day\n1,2,1970-01-01\n2,3,yesterday\n");
        let fault = bad.keys(&range, &window(0, day)).unwrap_err();
        assert_eq!(bad.line_number(fault.offset), 3);
        assert_eq!(fault.kind, FaultKind::Time("yesterday".into()));
    }

    #[test]
    fn a_file_has_a_largest_size() {
        use std::io::Write;
        let place = std::env::temp_dir().join(format!("silograph-large-{}", std::process::id()));
        let open = |content: &[u8], limit| {
            std::fs::write(&place, content).unwrap();
            let opened = EdgeText::open(&place, limit);
            std::fs::remove_file(&place).unwrap();
            opened.map(|text| text.bytes.len())
        };
        assert_eq!(open(b"1 2\n", 4).unwrap(), 4);
        assert!(matches!(open(b"1 2\n3", 4), Err(OpenError::Large(4))));
        let mut zip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        zip.write_all(&[b'1'; 1 << 20]).unwrap();
        let zip = zip.finish().unwrap();
        assert_eq!(open(&zip, 1 << 20).unwrap(), 1 << 20);
        assert!(matches!(
            open(&zip, (1 << 20) - 1),
            Err(OpenError::Large(_))
        ));
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
        let (table, keys, tally) = file.graph(Normal::default(), &layout).unwrap();
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
