//! The union bit of every pair, shared: x = 1 − Π (1 − bit of silo i).
//!
//! A silo's own vector is trivially shared: it has the vector, the others have zeros. A tree of
//! ANDs over the silos, ⌈log2 m⌉ deep and m − 1 gates in all, makes the product.

use super::bits::{Triple, and, masked};

/// Levels of the tree.
pub fn depth(silos: usize) -> usize {
    silos.next_power_of_two().ilog2() as usize
}

/// The gates of a level, by number.
pub fn gates(silos: usize, level: usize) -> std::ops::Range<usize> {
    let (mut left, mut first) = (silos, 0);
    for _ in 0..level {
        first += left / 2;
        left = left.div_ceil(2);
    }
    first..first + left / 2
}

/// One silo's shares of the vectors that are still to be multiplied.
pub struct Union {
    factors: Vec<Vec<u64>>,
    first: bool,
}

impl Union {
    /// From the silo's own bits. Lanes behind the last pair count as pairs that nobody holds.
    pub fn new(place: usize, silos: usize, bits: &[u64]) -> Self {
        let mut factors = vec![vec![0; bits.len()]; silos];
        factors[place] = bits.iter().map(|word| !word).collect();
        Self {
            factors,
            first: place == 0,
        }
    }

    /// This silo's share of what the next level opens: two vectors a gate.
    pub fn open(&self, triples: &[Triple]) -> Vec<u64> {
        let pairs = self.factors.chunks_exact(2).zip(triples);
        let opened = pairs.flat_map(|(pair, triple)| {
            [
                masked(&pair[0], &triple.left),
                masked(&pair[1], &triple.right),
            ]
        });
        opened.flatten().collect()
    }

    /// Multiplies, from what all silos opened together.
    pub fn close(&mut self, opened: &[u64], triples: &[Triple]) {
        let words = self.factors[0].len();
        let odd = (self.factors.len() % 2 == 1)
            .then(|| self.factors.pop())
            .flatten();
        let gates = opened.chunks_exact(2 * words).zip(triples);
        let products = gates.map(|(opened, triple)| {
            let (d, e) = opened.split_at(words);
            and(d, e, triple, self.first)
        });
        self.factors = products.chain(odd).collect();
    }

    /// This silo's share of the union bits, when one factor is left.
    pub fn share(mut self) -> Vec<u64> {
        let mut product = self.factors.swap_remove(0);
        if self.first {
            product.iter_mut().for_each(|word| *word = !*word);
        }
        product
    }
}
