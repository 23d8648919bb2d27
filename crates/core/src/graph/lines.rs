//! Lines and fields of a text table: white space, or one delimiter with CSV quotes.

use std::borrow::Cow;

use memchr::memchr;

use super::times::Window;

/// How a text table is laid out, and which two of its fields are the ends of an edge.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    /// One byte between fields, with CSV quotes; `None` is runs of spaces and tabs.
    pub delimiter: Option<u8>,
    /// The number of fields that every row must have.
    pub fields: usize,
    /// The field with one end.
    pub first: usize,
    /// The field with the other end.
    pub second: usize,
    /// Whether the first row holds names.
    pub header: bool,
    /// Which rows are read; all, if there is none.
    pub window: Option<Window>,
}

/// What is wrong with a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// Another number of fields than the first row has.
    Fields {
        /// The number that the first row has.
        expected: usize,
        /// The number that this line has.
        found: usize,
    },
    /// An identifier that the universe does not hold.
    Unknown(String),
    /// An identifier of no characters.
    Empty,
    /// An identifier with white space at an end, where the universe comes from the file.
    Spaced(String),
    /// An identifier with a line break inside (a lone carriage return).
    Control(String),
    /// A quoted field that does not end on its line.
    Unclosed,
    /// Text between a closing quote and the next delimiter.
    AfterQuote,
    /// A time that is neither an ISO date nor a number of seconds.
    Time(String),
    /// Bytes that are not UTF-8.
    NotUtf8,
    /// A NUL byte.
    Binary,
    /// The file could not be read any further.
    Unread(String),
}

impl FaultKind {
    /// A short name, the identifier at fault, and the numbers of fields expected and found.
    pub fn parts(&self) -> (&'static str, &str, usize, usize) {
        match self {
            Self::Fields { expected, found } => ("fields", "", *expected, *found),
            Self::Unknown(id) => ("unknown", id, 0, 0),
            Self::Spaced(id) => ("spaced", id, 0, 0),
            Self::Control(id) => ("control", id, 0, 0),
            Self::Time(text) => ("time", text, 0, 0),
            Self::Unread(text) => ("unread", text, 0, 0),
            Self::Empty => ("empty", "", 0, 0),
            Self::Unclosed => ("unclosed", "", 0, 0),
            Self::AfterQuote => ("after-quote", "", 0, 0),
            Self::NotUtf8 => ("not-utf8", "", 0, 0),
            Self::Binary => ("binary", "", 0, 0),
        }
    }
}

/// A fault and the byte at which its line, or the bad byte, stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Bytes before it.
    pub offset: usize,
    /// What is wrong.
    pub kind: FaultKind,
}

/// The line that begins at `start`, without its line end, and the start of the next line.
#[inline]
pub fn line_at(text: &str, start: usize) -> (&str, usize) {
    let rest = &text[start..];
    let (line, next) = match memchr(b'\n', rest.as_bytes()) {
        Some(end) => (&rest[..end], start + end + 1),
        None => (rest, text.len()),
    };
    (line.strip_suffix('\r').unwrap_or(line), next)
}

/// What kind of line it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineKind {
    /// Nothing on it.
    Blank,
    /// Begins with `#` or `%`, in white-space tables only: in a CSV file these are data.
    Comment,
    /// Fields.
    Row,
}

/// Tells rows from blank lines and comments.
#[inline]
pub fn kind_of(line: &str, delimiter: Option<u8>) -> LineKind {
    let blank = |c: char| c == ' ' || (delimiter.is_none() && c == '\t');
    let line = line.trim_start_matches(blank);
    match line.as_bytes().first() {
        None => LineKind::Blank,
        Some(b'#' | b'%') if delimiter.is_none() => LineKind::Comment,
        Some(_) => LineKind::Row,
    }
}

/// Calls `each` with the number and the text of every field; returns how many there are.
pub fn fields<'a>(
    line: &'a str,
    delimiter: Option<u8>,
    mut each: impl FnMut(usize, Cow<'a, str>),
) -> Result<usize, FaultKind> {
    let Some(delimiter) = delimiter else {
        let mut count = 0;
        for field in line.split([' ', '\t']).filter(|field| !field.is_empty()) {
            each(count, Cow::Borrowed(field));
            count += 1;
        }
        return Ok(count);
    };
    let mut rest = line;
    let mut count = 0;
    loop {
        let (field, after) = if let Some(inner) = rest.strip_prefix('"') {
            quoted(inner)?
        } else {
            let end = memchr(delimiter, rest.as_bytes()).unwrap_or(rest.len());
            (Cow::Borrowed(&rest[..end]), &rest[end..])
        };
        each(count, field);
        count += 1;
        match after.as_bytes().first() {
            None => return Ok(count),
            Some(byte) if *byte == delimiter => rest = &after[1..],
            Some(_) => return Err(FaultKind::AfterQuote),
        }
    }
}

/// The field whose opening quote was just passed, and what follows its closing quote.
fn quoted(text: &str) -> Result<(Cow<'_, str>, &str), FaultKind> {
    let mut owned = String::new();
    let mut rest = text;
    loop {
        let end = memchr(b'"', rest.as_bytes()).ok_or(FaultKind::Unclosed)?;
        let (part, after) = (&rest[..end], &rest[end + 1..]);
        if let Some(again) = after.strip_prefix('"') {
            owned.push_str(part);
            owned.push('"');
            rest = again;
        } else if owned.is_empty() {
            return Ok((Cow::Borrowed(part), after));
        } else {
            owned.push_str(part);
            return Ok((Cow::Owned(owned), after));
        }
    }
}

/// Two plain decimals alone on the line that begins at `start`, and the start of the next line.
///
/// This is the fast road for the commonest file; `None` means only that the careful reader has
/// to look at the line.
#[inline]
pub fn decimal_pair(
    bytes: &[u8],
    start: usize,
    delimiter: Option<u8>,
) -> Option<(u64, u64, usize)> {
    let mut at = start;
    let a = digits(bytes, &mut at)?;
    match (delimiter, bytes.get(at)?) {
        (None, b' ' | b'\t') => {
            at += 1;
            while matches!(bytes.get(at), Some(b' ' | b'\t')) {
                at += 1;
            }
        }
        (Some(delimiter), byte) if *byte == delimiter => at += 1,
        _ => return None,
    }
    let b = digits(bytes, &mut at)?;
    if bytes.get(at) == Some(&b'\r') {
        at += 1;
    }
    match bytes.get(at) {
        Some(b'\n') => Some((a, b, at + 1)),
        None => Some((a, b, at)),
        Some(_) => None,
    }
}

/// The value of the digits from `at` on, which is moved behind them.
#[inline]
fn digits(bytes: &[u8], at: &mut usize) -> Option<u64> {
    let start = *at;
    let (mut value, mut count) = (0u64, 8);
    if let Some((word, _)) = bytes[start..].split_first_chunk() {
        (value, count) = leading_digits(u64::from_le_bytes(*word));
        *at += count;
    }
    if count == 8 {
        while let Some(digit @ b'0'..=b'9') = bytes.get(*at) {
            value = value.wrapping_mul(10).wrapping_add(u64::from(digit - b'0'));
            *at += 1;
        }
    }
    usual(bytes, start, *at).then_some(value)
}

/// Whether the digits between two places are a number that fits, without a leading zero.
#[inline]
fn usual(bytes: &[u8], start: usize, stop: usize) -> bool {
    let length = stop - start;
    length == 1 || (length > 1 && length <= 18 && bytes[start] != b'0')
}

/// The value of the digits with which eight bytes begin, the first of them lowest, and how many
/// they are.
#[inline]
fn leading_digits(word: u64) -> (u64, usize) {
    const EACH: u64 = 0x0101_0101_0101_0101;
    let word = word ^ (EACH * 0x30);
    // Above 9, a byte or its sum with 0x76 has the highest bit; what it carries over reaches only
    // bytes behind it.
    let others = (word | word.wrapping_add(EACH * 0x76)) & (EACH * 0x80);
    let count = others.trailing_zeros() / 8;
    // As if zeros stood before the digits: pairs, fours and eights are then added up.
    let ones = word.unbounded_shl(64 - 8 * count);
    let twos = (ones.wrapping_mul(10 << 8 | 1) >> 8) & 0x00ff_00ff_00ff_00ff;
    let fours = (twos.wrapping_mul(100 << 16 | 1) >> 16) & 0x0000_ffff_0000_ffff;
    let eight = fours.wrapping_mul(10_000 << 32 | 1) >> 32;
    (eight, count as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(line: &str, delimiter: Option<u8>) -> Result<Vec<String>, FaultKind> {
        let mut all = Vec::new();
        let count = fields(line, delimiter, |_, field| all.push(field.into_owned()))?;
        assert_eq!(count, all.len());
        Ok(all)
    }

    #[test]
    fn white_space_runs_are_one_separator() {
        assert_eq!(split("  a \t b  ", None).unwrap(), ["a", "b"]);
        assert_eq!(split("\"a b\"", None).unwrap(), ["\"a", "b\""]);
    }

    #[test]
    fn csv_quotes() {
        let csv = |line| split(line, Some(b','));
        assert_eq!(csv("a,b").unwrap(), ["a", "b"]);
        assert_eq!(csv("\"a,b\",c").unwrap(), ["a,b", "c"]);
        assert_eq!(csv("\"a \"\"b\"\"\",\"\"").unwrap(), ["a \"b\"", ""]);
        assert_eq!(csv("a\"b,c").unwrap(), ["a\"b", "c"]);
        assert_eq!(csv("a,").unwrap(), ["a", ""]);
        assert_eq!(csv("\"\"\"\",x").unwrap(), ["\"", "x"]);
        assert_eq!(csv("\"a,b"), Err(FaultKind::Unclosed));
        assert_eq!(csv("\"a\"b,c"), Err(FaultKind::AfterQuote));
    }

    #[test]
    fn decimal_pairs_take_only_the_plain_form() {
        assert_eq!(decimal_pair(b"1 2\n3", 0, None), Some((1, 2, 4)));
        assert_eq!(decimal_pair(b"1\t \t20\r\n", 0, None), Some((1, 20, 8)));
        assert_eq!(decimal_pair(b"x\n1,2", 2, Some(b',')), Some((1, 2, 5)));
        for bytes in [
            "1 2 3\n", "01 2\n", "1\n", "1,2\n", "a 2\n", "1 2x\n", "1 2 \n", "",
        ] {
            assert_eq!(decimal_pair(bytes.as_bytes(), 0, None), None, "{bytes:?}");
        }
        assert_eq!(decimal_pair(b"1, 2\n", 0, Some(b',')), None);
        assert_eq!(decimal_pair(b"1 1000000000000000000\n", 0, None), None);
    }

    #[test]
    fn digits_are_read_alike_in_words_and_one_by_one() {
        for width in 0..20 {
            let number = &"98765432101234567890"[..width];
            for next in ["\t", "/", ":", "a", "\u{e9}", "\u{ff10}", "\0"] {
                for tail in ["", "1", "12345678", "\u{ff}\u{ff}\u{ff}\u{ff}99999999"] {
                    let text = format!("{number}{next}{tail}");
                    let mut at = 0;
                    let value = digits(text.as_bytes(), &mut at);
                    assert_eq!(at, width, "{text:?}");
                    let expected = number.parse().ok().filter(|_| width <= 18);
                    assert_eq!(value, expected, "{text:?}");
                }
            }
        }
    }

    #[test]
    fn lines_and_kinds() {
        assert_eq!(line_at("a\r\nb", 0), ("a", 3));
        assert_eq!(line_at("a\r\nb", 3), ("b", 4));
        assert_eq!(kind_of(" \t", None), LineKind::Blank);
        assert_eq!(kind_of("\t", Some(b'\t')), LineKind::Row);
        assert_eq!(kind_of(" % x", None), LineKind::Comment);
        assert_eq!(kind_of("#x,y", Some(b',')), LineKind::Row);
    }
}
