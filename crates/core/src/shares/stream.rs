//! Seeds and what they expand to: one stream of words for each label, from any position on.
//!
//! Equal (seed, label, position) give equal words, and no two labels or positions share keystream:
//! each label has a ChaCha20 key of its own, and each block of positions a stream of its own.

use chacha20::ChaCha20Rng;
use rand_core::{Rng, SeedableRng};
use rayon::prelude::*;
use zeroize::{Zeroize, ZeroizeOnDrop};

use crate::crypto::agreement::expand;

/// Words in a block: 32 KiB.
const BLOCK: usize = 1 << 12;

/// What a stream is for. Gates of the AND-tree have a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Label {
    /// The left factor of a bit triple.
    Left(usize),
    /// Its right factor.
    Right(usize),
    /// Shares of its product.
    Product(usize),
    /// The bits of daBits.
    Bit,
    /// Shares of them mod 2^64.
    Word,
    /// The matrix R.
    Matrix,
    /// Shares of R².
    MatrixSquare,
    /// Shares of tr(R³).
    Trace,
    /// The numbers of Beaver squares, one a node.
    Node,
    /// Shares of their squares.
    NodeSquare,
    /// What two silos add and subtract before a share leaves them.
    Zero,
}

impl Label {
    fn bytes(self) -> [u8; 9] {
        let (kind, number) = match self {
            Self::Left(gate) => (0, gate),
            Self::Right(gate) => (1, gate),
            Self::Product(gate) => (2, gate),
            Self::Bit => (3, 0),
            Self::Word => (4, 0),
            Self::Matrix => (5, 0),
            Self::MatrixSquare => (6, 0),
            Self::Trace => (7, 0),
            Self::Node => (8, 0),
            Self::NodeSquare => (9, 0),
            Self::Zero => (10, 0),
        };
        let mut bytes = [kind; 9];
        bytes[1..].copy_from_slice(&(number as u64).to_le_bytes());
        bytes
    }
}

/// 32 secret bytes. They are wiped when dropped, and never shown.
#[derive(Zeroize, ZeroizeOnDrop)]
pub struct Seed([u8; 32]);

impl Seed {
    /// From 32 fresh random bytes, or bytes derived for this.
    pub fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The words of a label from position `start` on.
    pub fn words(&self, label: Label, start: usize, count: usize) -> Vec<u64> {
        let mut words = vec![0; count];
        self.combine(label, start, &mut words, |_, drawn| drawn);
        words
    }

    /// Replaces each word w by f(w, drawn), drawn from position `start` on.
    pub fn combine(
        &self,
        label: Label,
        start: usize,
        words: &mut [u64],
        f: impl Fn(u64, u64) -> u64 + Sync,
    ) {
        let key = expand(&self.0, b"silograph/share-stream/v1", &label.bytes());
        let skipped = start % BLOCK;
        let head = words.len().min(BLOCK - skipped);
        let (head, rest) = words.split_at_mut(head);
        let first = start / BLOCK;
        let blocks = rest.par_chunks_mut(BLOCK).enumerate();
        blocks.for_each(|(i, words)| draw(&key, (first + 1 + i) as u64, 0, words, &f));
        draw(&key, first as u64, skipped, head, &f);
    }
}

fn draw(
    key: &[u8; 32],
    block: u64,
    skipped: usize,
    words: &mut [u64],
    f: &impl Fn(u64, u64) -> u64,
) {
    let mut rng = ChaCha20Rng::from_seed(*key);
    rng.set_stream(block);
    let mut bytes = vec![0u8; 8 * (skipped + words.len())];
    rng.fill_bytes(&mut bytes);
    let (eights, _) = bytes.as_chunks::<8>();
    for (word, eight) in words.iter_mut().zip(&eights[skipped..]) {
        *word = f(*word, u64::from_le_bytes(*eight));
    }
    bytes.zeroize();
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn any_part_is_a_part_of_the_whole() {
        let seed = Seed::new([4; 32]);
        let whole = seed.words(Label::Matrix, 0, 3 * BLOCK);
        for (start, count) in [
            (0, 1),
            (1, 7),
            (BLOCK - 1, 2),
            (BLOCK, BLOCK),
            (9, 2 * BLOCK),
        ] {
            let part = seed.words(Label::Matrix, start, count);
            assert_eq!(part, whole[start..start + count]);
        }
        assert!(seed.words(Label::Matrix, 5, 0).is_empty());
    }

    /// No word comes twice, over labels, gates, blocks and seeds.
    #[test]
    fn streams_are_apart() {
        let labels = [
            Label::Left(0),
            Label::Left(1),
            Label::Right(0),
            Label::Product(0),
            Label::Bit,
            Label::Word,
            Label::Matrix,
            Label::MatrixSquare,
            Label::Trace,
            Label::Node,
            Label::NodeSquare,
            Label::Zero,
        ];
        let mut seen = HashSet::new();
        for seed in [[1; 32], [2; 32]] {
            for label in labels {
                seen.extend(Seed::new(seed).words(label, 0, 2 * BLOCK));
            }
        }
        assert_eq!(seen.len(), 2 * labels.len() * 2 * BLOCK);
    }
}
