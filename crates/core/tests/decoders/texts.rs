//! Files of edges and of identifiers, their lines and their fields.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use proptest::prelude::*;
use proptest::sample::Index;
use silograph_core::graph::edgelist::EdgeText;
use silograph_core::graph::ids::{self, Case, IdTable, NONE, Normal};
use silograph_core::graph::lines::{self, Layout, LineKind};
use silograph_core::graph::sparse::as_pair;
use silograph_core::graph::text::{OpenError, Text};
use silograph_core::graph::times::Window;

use super::{bytes, cases, changed, changes};

/// Pieces that tables are made of, and pieces that spoil them.
const PIECES: [&[u8]; 24] = [
    b"0",
    b"1",
    b"7",
    b"42",
    b"007",
    b"-3",
    b"4294967296",
    b"999999999999999999",
    b"99999999999999999999",
    b" ",
    b"\t",
    b",",
    b"\n",
    b"\n",
    b"\r\n",
    b"\r",
    b"\"",
    b"#",
    b"%",
    b"node",
    b"\xc3\xa9",
    b"\xef\xbb\xbf",
    b"\xff",
    b"\0",
];

fn table() -> impl Strategy<Value = Vec<u8>> {
    let pieces = prop::collection::vec(prop::sample::select(&PIECES[..]), 0..120);
    let lines = prop::collection::vec((0u32..60, 0u32..60), 0..60);
    let plain = lines.prop_map(|rows| {
        let rows: Vec<String> = rows.iter().map(|(a, b)| format!("{a} {b}\n")).collect();
        rows.concat().into_bytes()
    });
    // Short forms of the pieces that make many rows of few bytes.
    let short = prop::collection::vec(prop::sample::select(&[b',', b'\n', b'1', b' '][..]), 0..200);
    let dirty = (plain.clone(), changes()).prop_map(|(text, at)| match text.is_empty() {
        true => text,
        false => changed(&text, &at),
    });
    prop_oneof![
        bytes(2000),
        pieces.prop_map(|parts| parts.concat()),
        plain,
        short,
        dirty
    ]
}

fn normal() -> impl Strategy<Value = Normal> {
    let case = prop::sample::select(vec![None, Some(Case::Lower), Some(Case::Upper)]);
    (any::<bool>(), case).prop_map(|(strip, case)| Normal { strip, case })
}

fn layout() -> impl Strategy<Value = Layout> {
    // A delimiter is one byte of ASCII, whatever byte that is.
    let delimiter = prop_oneof![
        Just(None),
        Just(Some(b',')),
        Just(Some(b'\t')),
        (0u8..128).prop_map(Some)
    ];
    let window = prop::option::of(
        (0usize..4, any::<bool>()).prop_map(|(field, dates)| Window {
            field,
            since: 0,
            until: i64::MAX,
            dates,
        }),
    );
    (
        delimiter,
        1usize..4,
        0usize..4,
        0usize..4,
        any::<bool>(),
        window,
    )
        .prop_map(
            |(delimiter, fields, first, second, header, window)| Layout {
                delimiter,
                fields,
                first,
                second,
                header,
                window,
            },
        )
}

/// The keys of pairs that were written.
fn keys<T>(count: usize, write: impl FnOnce(&mut [u64]) -> T) -> (T, Vec<u64>) {
    let mut pairs = vec![0; count];
    let made = write(&mut pairs);
    (made, pairs.into_iter().map(as_pair).collect())
}

/// Keys of distinct edges between nodes that there are.
fn are_edges(keys: &[u64], nodes: usize) -> bool {
    let ends = |key: &u64| ((key >> 32) as usize, *key as u32 as usize);
    keys.windows(2).all(|two| two[0] < two[1])
        && keys.iter().map(ends).all(|(u, v)| u < v && v < nodes)
}

proptest! {
    #![proptest_config(cases(512))]

    #[test]
    fn edge_lists(bytes in table(), layout in layout(), normal in normal(), known in 0u32..50) {
        let length = bytes.len();
        let text = EdgeText::new(Text::from_bytes(bytes));
        let number = |offset| text.text().line_number(offset).unwrap();
        let within = |offset: usize| offset <= length && number(offset) <= length + 1;
        let (universe, magic) = (IdTable::range(known, normal), text.text().magic().len());
        prop_assert_eq!(magic, length.min(4));
        match text.graph(normal, &layout) {
            Ok((found, tally)) => {
                let (table, keys) = keys(found.count(), |pairs| found.write(pairs));
                prop_assert!(are_edges(&keys, table.len()));
                prop_assert_eq!(tally.rows, keys.len() + tally.loops + tally.repeats);
                for position in 0..table.len() {
                    prop_assert_eq!(table.get(&table.id(position)), position as u32);
                }
            }
            Err(fault) => prop_assert!(within(fault.offset)),
        }
        match text.keys(&universe, &layout) {
            Ok((edges, _)) => {
                let ((), keys) = keys(edges.count(), |pairs| edges.write(pairs));
                prop_assert!(are_edges(&keys, universe.len()));
            }
            Err(fault) => prop_assert!(within(fault.offset)),
        }
        for fault in [
            text.head(layout.delimiter, 100).err(),
            text.lines().err(),
            text.column(&layout).err(),
        ] {
            prop_assert!(fault.is_none_or(|fault| within(fault.offset)));
        }
    }

    /// The fast road and the careful reader read the same, and every line has an end.
    #[test]
    fn fields(bytes in table(), delimiter in layout().prop_map(|layout| layout.delimiter)) {
        let text = String::from_utf8_lossy(&bytes);
        let mut start = 0;
        while start < text.len() {
            let (line, next) = lines::line_at(&text, start);
            prop_assert!(next > start);
            let mut all = vec![];
            let count = lines::fields(line, delimiter, |_, field| all.push(field.into_owned()));
            prop_assert!(count.is_err() || count == Ok(all.len()));
            let usual = matches!(delimiter, None | Some(b',' | b'\t'));
            if let Some((a, b, after)) = lines::decimal_pair(text.as_bytes(), start, delimiter)
                && usual
            {
                prop_assert_eq!(after, next);
                prop_assert_eq!(all, [a.to_string(), b.to_string()]);
                prop_assert_eq!(lines::kind_of(line, delimiter), LineKind::Row);
            }
            start = next;
        }
    }

    #[test]
    fn identifiers(
        texts in prop::collection::vec(prop_oneof!["\\PC{0,6}", "-?[0-9]{0,22}", any::<String>()], 0..40),
        normal in normal(), other: String,
    ) {
        for (a, b) in texts.iter().zip(texts.iter().skip(1)) {
            ids::decimal(a);
            if ids::is_integer(a) && ids::is_integer(b) {
                prop_assert_eq!(ids::integer_order(a, b), ids::integer_order(b, a).reverse());
            }
        }
        match IdTable::from_texts(&texts, normal) {
            Ok(table) => {
                prop_assert_eq!(table.len(), texts.len());
                for (position, id) in texts.iter().enumerate() {
                    prop_assert_eq!(table.get(id), position as u32);
                    prop_assert_eq!(table.id(position), normal.apply(id));
                }
                let found = table.get(&other);
                prop_assert!(found == NONE || table.id(found as usize) == normal.apply(&other));
                prop_assert!(table.encode(0, table.len()).len() >= 4 * table.len());
            }
            Err(fault) => prop_assert!(fault.parts().1 < texts.len()),
        }
    }
}

proptest! {
    #![proptest_config(cases(64))]

    /// Damaged gzip is one error, and what it claims of its length is not believed.
    #[test]
    fn compressed(text in table(), noise in bytes(200), at in changes(), cut: Index) {
        let mut encoder = GzEncoder::new(vec![], Compression::fast());
        encoder.write_all(&text).unwrap();
        let whole = encoder.finish().unwrap();
        let file = std::env::temp_dir().join(format!("silograph-decoders-{}", std::process::id()));
        let open = |content: &[u8]| {
            std::fs::write(&file, content).unwrap();
            let opened = Text::open(&file, u64::MAX);
            std::fs::remove_file(&file).unwrap();
            opened
        };
        prop_assert!(open(&whole).is_ok_and(|text| text.gzip()));
        let mut claims = whole.clone();
        let length = claims.len();
        claims[length - 4..].copy_from_slice(&u32::MAX.to_le_bytes());
        prop_assert!(matches!(open(&claims), Err(OpenError::Gzip(_))));
        let cut = &whole[..2 + cut.index(whole.len() - 2)];
        prop_assert!(matches!(open(cut), Err(OpenError::Gzip(_))));
        let foreign = [&[0x1f, 0x8b][..], &noise].concat();
        prop_assert!(matches!(open(&foreign), Err(OpenError::Gzip(_))));
        // Some bytes of a header mean nothing, so that a change may pass.
        prop_assert!(!matches!(open(&changed(&whole, &at)), Err(OpenError::Io(_))));
    }
}

/// An integer's size does not decide how much memory a table of it takes.
#[test]
fn large_identifiers_take_no_memory() {
    let text = b"999999999999999999 999999999999999998\n".to_vec();
    let blank = Layout {
        delimiter: None,
        fields: 2,
        first: 0,
        second: 1,
        header: false,
        window: None,
    };
    for text in [text, b"4294967295 0\n".to_vec()] {
        let text = EdgeText::new(Text::from_bytes(text));
        let (found, _) = text.graph(Normal::default(), &blank).ok().unwrap();
        let (table, keys) = keys(found.count(), |pairs| found.write(pairs));
        assert_eq!((table.len(), keys), (2, vec![1]));
        assert!(text.keys(&table, &blank).is_ok());
        assert!(
            text.keys(&IdTable::range(u32::MAX, Normal::default()), &blank)
                .is_err()
        );
    }
}
