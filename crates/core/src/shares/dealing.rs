//! The dealer: it has every silo's seed, and makes the last silo's shares so that all add up.
//!
//! It never has an opening, and this file has no function that takes one.

use std::ops::Range;

use super::stream::{Label, Seed};
use super::{bits, dabits, squares, triangles};
use crate::graph::simd::Level;
use crate::symmetric::matrix::{Triangle, pair_count, row_of, row_start};
use crate::symmetric::square;

/// The seeds of all silos of one run.
pub struct Dealing {
    seeds: Vec<Seed>,
}

impl Dealing {
    /// From one fresh seed a silo.
    pub fn new(seeds: Vec<Seed>) -> Self {
        Self { seeds }
    }

    /// All silos' words of a label together.
    fn all(&self, label: Label, at: Range<usize>, join: fn(u64, u64) -> u64) -> Vec<u64> {
        joined(&self.seeds, label, at, join)
    }

    /// The words of a label of all silos but the last, whose share is a correction.
    fn others(&self, label: Label, at: Range<usize>, join: fn(u64, u64) -> u64) -> Vec<u64> {
        joined(&self.seeds[..self.seeds.len() - 1], label, at, join)
    }

    /// The corrections of one chunk: a product for each gate, then a word for each daBit.
    pub fn chunk(&self, pairs: Range<usize>) -> Vec<u64> {
        let words = pairs.start / 64..pairs.end.div_ceil(64);
        let xor = |a, b| a ^ b;
        let mut corrections = vec![];
        for gate in 0..self.seeds.len() - 1 {
            let left = self.all(Label::Left(gate), words.clone(), xor);
            let right = self.all(Label::Right(gate), words.clone(), xor);
            let mut product = self.others(Label::Product(gate), words.clone(), xor);
            bits::correction(&left, &right, &mut product);
            corrections.extend(product);
        }
        let random = self.all(Label::Bit, words, xor);
        let mut shares = self.others(Label::Word, pairs, u64::wrapping_add);
        dabits::correction(&random, &mut shares);
        corrections.extend(shares);
        corrections
    }

    /// The corrections of n Beaver squares.
    pub fn squares(&self, n: usize) -> Vec<u64> {
        let numbers = self.all(Label::Node, 0..n, u64::wrapping_add);
        let mut shares = self.others(Label::NodeSquare, 0..n, u64::wrapping_add);
        squares::correction(&numbers, &mut shares);
        shares
    }

    /// The matrix R, to be squared.
    pub fn matrix(&self, n: usize) -> DealtMatrix {
        let words = self.all(Label::Matrix, 0..pair_count(n), u64::wrapping_add);
        DealtMatrix {
            n,
            words,
            rows: 0..0,
            square: vec![],
            contracted: 0,
        }
    }

    /// The corrections of R² for some pairs. Bands of R² are made as they are needed, in order.
    pub fn matrix_squares(&self, matrix: &mut DealtMatrix, pairs: Range<usize>) -> Vec<u64> {
        let mut shares = self.others(Label::MatrixSquare, pairs.clone(), u64::wrapping_add);
        matrix.subtract_from(pairs, &mut shares);
        shares
    }

    /// The correction of tr(R³), when all of R² has been made.
    pub fn trace(&self, matrix: &DealtMatrix) -> Option<u64> {
        let others = self.others(Label::Trace, 0..1, u64::wrapping_add)[0];
        let whole = row_start(matrix.n, matrix.rows.end) == matrix.words.len();
        whole.then(|| triangles::trace(matrix.contracted).wrapping_sub(others))
    }
}

fn joined(seeds: &[Seed], label: Label, at: Range<usize>, join: fn(u64, u64) -> u64) -> Vec<u64> {
    let mut words = vec![0; at.len()];
    for seed in seeds {
        seed.combine(label, at.start, &mut words, join);
    }
    words
}

/// R, and the band of R² that was made last.
pub struct DealtMatrix {
    n: usize,
    words: Vec<u64>,
    rows: Range<usize>,
    square: Vec<u64>,
    contracted: u64,
}

impl DealtMatrix {
    /// Replaces each sum of others' shares by what is missing to R².
    fn subtract_from(&mut self, pairs: Range<usize>, shares: &mut [u64]) {
        let mut next = pairs.start;
        let mut rest = shares;
        while !rest.is_empty() {
            self.make(row_of(self.n, next));
            let band = row_start(self.n, self.rows.start)..row_start(self.n, self.rows.end);
            let length = rest.len().min(band.end - next);
            let (own, others) = rest.split_at_mut(length);
            for (sum, x) in own.iter_mut().zip(&self.square[next - band.start..]) {
                *sum = x.wrapping_sub(*sum);
            }
            rest = others;
            next += length;
        }
    }

    /// Makes the bands up to that of a row; one that is behind is made again from the first on.
    fn make(&mut self, row: usize) {
        if row < self.rows.start {
            (self.rows, self.contracted) = (0..0, 0);
        }
        while row >= self.rows.end {
            let rows = self.rows.end..(self.rows.end + square::BAND).min(self.n);
            let matrix = Triangle::new(self.n, &self.words).expect("one word per pair");
            self.square = square::rows_of_square(matrix, rows.clone(), Level::best());
            let own = &self.words[row_start(self.n, rows.start)..];
            let sum = triangles::inner(&self.square, own);
            self.contracted = self.contracted.wrapping_add(sum);
            self.rows = rows;
        }
    }
}
