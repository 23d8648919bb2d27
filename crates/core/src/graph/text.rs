//! The bytes of a text file, read as pieces that end with a line.
//!
//! A file is read where its lines are needed, into memory that is used again: fresh memory for
//! all of it would take longer than the reading. Only what is compressed or comes through a pipe
//! is in memory as a whole.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::Path;

use flate2::read::MultiGzDecoder;
use memchr::{memchr, memchr_iter};

/// Pieces are small enough to stay in a core's cache and to share the work evenly.
const PIECE: usize = 1 << 19;
/// Bytes that are read behind a piece, where its last line ends.
const BEHIND: usize = 1 << 10;

/// Why a file could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The system said no.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// Damaged or truncated gzip data.
    #[error("{0}")]
    Gzip(io::Error),
    /// More text than the caller wants, or a stream without an end.
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

enum Source {
    File(File),
    Memory(Vec<u8>),
}

/// A text, unzipped.
pub struct Text {
    source: Source,
    length: usize,
    start: usize,
    gzip: bool,
    magic: Vec<u8>,
}

impl Text {
    /// Opens a text of at most `limit` bytes, also when unzipped; gzip is known by its magic
    /// bytes, not by the name.
    pub fn open(path: &Path, limit: u64) -> Result<Self, OpenError> {
        let file = File::open(path)?;
        let about = file.metadata()?;
        let mut magic = [0; 2];
        // Files of the system may have a length of 0 and text all the same.
        let plain = about.is_file() && about.len() >= 2;
        if plain {
            file.read_exact_at(&mut magic, 0)?;
        }
        if plain && magic != GZIP {
            return match usize::try_from(about.len()) {
                Ok(length) if about.len() <= limit => Ok(Self::new(Source::File(file), length)?),
                _ => Err(OpenError::Large(limit)),
            };
        }
        let bytes = read_within(file, limit, OpenError::Io)?;
        if !bytes.starts_with(&GZIP) {
            return Ok(Self::from_bytes(bytes));
        }
        let bytes = read_within(MultiGzDecoder::new(&bytes[..]), limit, OpenError::Gzip)?;
        Ok(Self {
            gzip: true,
            ..Self::from_bytes(bytes)
        })
    }

    /// Takes a text that is in memory already.
    pub fn from_bytes(bytes: Vec<u8>) -> Self {
        let length = bytes.len();
        Self::new(Source::Memory(bytes), length).expect("memory is read without an error")
    }

    fn new(source: Source, length: usize) -> io::Result<Self> {
        let mut text = Self {
            source,
            length,
            start: 0,
            gzip: false,
            magic: Vec::new(),
        };
        let mut buffer = Vec::new();
        text.magic = text.bytes(0, length.min(4), &mut buffer)?.to_vec();
        if text.magic.starts_with(b"\xef\xbb\xbf") {
            text.start = 3;
        }
        Ok(text)
    }

    /// Whether the file was compressed.
    pub fn gzip(&self) -> bool {
        self.gzip
    }

    /// The first bytes, to know the file's kind by.
    pub fn magic(&self) -> &[u8] {
        &self.magic
    }

    /// Where the first line begins.
    pub fn start(&self) -> usize {
        self.start
    }

    /// The bytes from one place to another, in the buffer unless they are in memory.
    fn bytes<'b>(
        &'b self,
        from: usize,
        to: usize,
        buffer: &'b mut Vec<u8>,
    ) -> io::Result<&'b [u8]> {
        match &self.source {
            Source::Memory(bytes) => Ok(&bytes[from..to]),
            Source::File(file) => {
                buffer.resize(to - from, 0);
                file.read_exact_at(buffer, from as u64)?;
                Ok(buffer)
            }
        }
    }

    /// All lines.
    pub fn all<'b>(&'b self, buffer: &'b mut Vec<u8>) -> io::Result<&'b [u8]> {
        self.bytes(self.start, self.length, buffer)
    }

    /// The lines that end within the first bytes, and whether these are all lines.
    pub fn opening<'b>(
        &'b self,
        size: usize,
        buffer: &'b mut Vec<u8>,
    ) -> io::Result<(&'b [u8], bool)> {
        let stop = self.start.saturating_add(size).min(self.length);
        let bytes = self.bytes(self.start, stop, buffer)?;
        if stop == self.length {
            return Ok((bytes, true));
        }
        let end = memchr::memrchr(b'\n', bytes).map_or(0, |at| at + 1);
        Ok((&bytes[..end], false))
    }

    /// Cuts what follows `from`, where a line begins, into pieces for [`Text::lines`].
    pub fn pieces(&self, from: usize) -> Vec<Piece> {
        let starts = (from..self.length).step_by(PIECE);
        let piece = |start| Piece {
            start,
            stop: self.length.min(start + PIECE),
            first: start == from,
        };
        starts.map(piece).collect()
    }

    /// The lines that begin in a piece, and where the first of them does.
    pub fn lines<'b>(
        &'b self,
        piece: &Piece,
        buffer: &'b mut Vec<u8>,
    ) -> io::Result<(usize, &'b [u8])> {
        let start = piece.start - usize::from(!piece.first);
        let inside = piece.stop - 1 - start;
        let mut stop = self.length.min(piece.stop + BEHIND);
        loop {
            let bytes = self.bytes(start, stop, buffer)?;
            let begin = match memchr(b'\n', &bytes[..inside]) {
                _ if piece.first => 0,
                Some(end) => end + 1,
                None => return Ok((piece.stop, &[])),
            };
            let end = match memchr(b'\n', &bytes[inside..]) {
                Some(end) => inside + end + 1,
                None if stop == self.length => bytes.len(),
                None => {
                    stop = self.length.min(stop + 2 * (stop - start));
                    continue;
                }
            };
            let bytes = match &self.source {
                Source::Memory(bytes) => &bytes[start..stop],
                Source::File(_) => &buffer[..],
            };
            return Ok((start + begin, &bytes[begin..end]));
        }
    }

    /// The number, from 1, of the line in which byte `offset` stands.
    pub fn line_number(&self, offset: usize) -> io::Result<usize> {
        let mut buffer = Vec::new();
        let mut number = 1;
        for start in (0..offset).step_by(PIECE) {
            let bytes = self.bytes(start, offset.min(start + PIECE), &mut buffer)?;
            number += memchr_iter(b'\n', bytes).count();
        }
        Ok(number)
    }
}

const GZIP: [u8; 2] = [0x1f, 0x8b];

/// Bytes of a text; the lines that begin among them belong to it.
#[derive(Clone, Copy, Debug)]
pub struct Piece {
    start: usize,
    stop: usize,
    first: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Opens a file with this content, which is gone when it is open.
    fn opened(content: &[u8], limit: u64) -> Result<Text, OpenError> {
        use std::sync::atomic::{AtomicUsize, Ordering};
        static FILES: AtomicUsize = AtomicUsize::new(0);
        let number = FILES.fetch_add(1, Ordering::Relaxed);
        let name = format!("silograph-text-{}-{number}", std::process::id());
        let place = std::env::temp_dir().join(name);
        std::fs::write(&place, content).unwrap();
        let text = Text::open(&place, limit);
        std::fs::remove_file(&place).unwrap();
        text
    }

    #[test]
    fn a_text_has_a_largest_size() {
        use std::io::Write;
        let length = |content: &[u8], limit| opened(content, limit).map(|text| text.length);
        assert_eq!(length(b"1 2\n", 4).unwrap(), 4);
        assert_eq!(length(b"", 4).unwrap(), 0);
        assert!(matches!(length(b"1 2\n3", 4), Err(OpenError::Large(4))));
        let mut zip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        zip.write_all(&[b'1'; 1 << 20]).unwrap();
        let zip = zip.finish().unwrap();
        assert_eq!(length(&zip, 1 << 20).unwrap(), 1 << 20);
        assert!(matches!(
            length(&zip, (1 << 20) - 1),
            Err(OpenError::Large(_))
        ));
    }

    #[test]
    fn every_line_is_in_one_piece() {
        // Lines of all lengths around a piece's end, one over several pieces, with and without
        // a line break at the end of the text.
        for (length, last) in [
            (7, ""),
            (PIECE - 1, "x"),
            (PIECE, ""),
            (3 * PIECE + 5, "x\n"),
        ] {
            let mut content = vec![b'\n'; 5];
            for width in [length, 3, length / 2, 0, 40, PIECE - 60, 17] {
                content.extend(std::iter::repeat_n(b'a' + (width % 26) as u8, width));
                content.push(b'\n');
            }
            content.extend(last.as_bytes());
            for text in [
                Text::from_bytes(content.clone()),
                opened(&content, u64::MAX).unwrap(),
            ] {
                let mut joined = b"\n\n".to_vec();
                for piece in text.pieces(2) {
                    let mut buffer = Vec::new();
                    let (offset, lines) = text.lines(&piece, &mut buffer).unwrap();
                    assert!(lines.is_empty() || offset == joined.len());
                    assert!(lines.is_empty() || content[offset - 1] == b'\n');
                    joined.extend(lines);
                }
                assert_eq!(joined, content);
                let ends = memchr_iter(b'\n', &content).count();
                assert_eq!(text.line_number(content.len()).unwrap(), 1 + ends);
            }
        }
    }

    #[test]
    fn a_file_that_was_cut_is_an_error() {
        let name = format!("silograph-cut-{}", std::process::id());
        let place = std::env::temp_dir().join(name);
        std::fs::write(&place, b"1 2\n3 4\n").unwrap();
        let text = Text::open(&place, u64::MAX).unwrap();
        std::fs::write(&place, b"1 2\n").unwrap();
        let mut buffer = Vec::new();
        assert!(text.lines(&text.pieces(0)[0], &mut buffer).is_err());
        std::fs::remove_file(&place).unwrap();
    }
}
