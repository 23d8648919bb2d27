//! What a member counts on the numbers that it holds, without a message.
//!
//! X is the matrix of the union, x₀ + x₁ + x₂ + x₃ its components. Member i holds u, v and c, the
//! components i+2, i+3 and i+1 (mod 4). Every product of three components is known to some member:
//!
//! tr(X³) = Σ_a tr(a³) + 3·Σ_{a≠b} ⟨a², b⟩ + 6·Σ_{a<b<c} tr(abc)
//!        = Σ_i 3·⟨(u+v)², c⟩ + ⟨u², u + 3v⟩.
//!
//! In the first terms 6·tr(uvc) is that of the only member that holds all three, and ⟨u², c⟩ and
//! ⟨v², c⟩ are eight of the twelve ⟨a², b⟩: those with b = a + 2 and b = a + 3 … the other four, with
//! b = a + 1, are in the last. So it takes eight symmetric squares, two a member. Similarly
//! Σd² = Σ_i u² + 2uv, and 2cv for members 0 and 1.
//!
//! Folded nodes: X is the matrix of cells, each the number of its + bucket less that of its −
//! bucket, times a public weight. All of that is linear, so components are made of components. The
//! degrees of rows count the buckets of both signs that they share with groups (not with hubs).
//!
//! A public partition of the nodes: every pair has a type, the groups of its two ends, and the
//! numbers of edges of each type are sums of numbers, as the degrees are.

use std::ops::Range;

use super::chunk::{Shares, zeros};
use super::numbers::{Numbers, low};
use super::seeds::{Purpose, Seeds};
use super::{MEMBERS, others};
use crate::graph::fold::Layout;
use crate::graph::simd::Level;
use crate::symmetric::matrix::{Triangle, add_to_nodes, pair_count, row_start, runs};
use crate::symmetric::square;

/// The types of pairs: the two groups of their ends, as in the upper triangle of a matrix.
pub struct Types {
    labels: Vec<u32>,
    groups: usize,
}

impl Types {
    /// `None` if a label is not below the number of groups.
    pub fn new(labels: Vec<u32>, groups: usize) -> Option<Self> {
        let known = labels.iter().all(|label| (*label as usize) < groups);
        known.then_some(Self { labels, groups })
    }

    /// The number of types.
    #[expect(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.groups * (self.groups + 1) / 2
    }

    /// The number of the type of two groups, in either order.
    fn place(&self, a: u32, b: u32) -> usize {
        let (low, high) = (a.min(b) as usize, a.max(b) as usize);
        row_start(self.groups + 1, low) + high - low
    }

    /// Adds the words of a range of pairs to the sums of their types.
    fn add(&self, pairs: Range<usize>, words: &[u64], sums: &mut [u64]) {
        let mut words = words.iter();
        for (i, j, length) in runs(self.labels.len(), pairs) {
            for (other, word) in self.labels[j..j + length].iter().zip(&mut words) {
                let sum = &mut sums[self.place(self.labels[i], *other)];
                *sum = sum.wrapping_add(*word);
            }
        }
    }
}

/// One member's numbers of all pairs, summed or kept as they come.
pub struct Count {
    place: usize,
    n: usize,
    width: usize,
    /// What the numbers stand for, if not for pairs.
    layout: Option<Layout>,
    /// Components of the degrees.
    degrees: Shares,
    /// Components of the number of edges.
    edges: [u64; MEMBERS],
    /// The types of pairs, and components of the number of edges of each, if they are counted.
    types: Option<(Types, Shares)>,
    /// u, u + v and c, if triangles are counted.
    matrices: Option<[Vec<u64>; 3]>,
    /// Twice the sum over the pairs i < j that were contracted.
    cubes: u64,
}

impl Count {
    /// Nothing was added yet.
    pub fn new(place: usize, n: usize, width: usize, triangles: bool) -> Self {
        let pairs = pair_count(n);
        Self {
            place,
            n,
            width,
            layout: None,
            degrees: zeros(place, n),
            edges: [0; MEMBERS],
            types: None,
            matrices: triangles.then(|| std::array::from_fn(|_| vec![0; pairs])),
            cubes: 0,
        }
    }

    /// The same for the buckets of folded nodes.
    pub fn folded(place: usize, layout: Layout, width: usize, triangles: bool) -> Self {
        Self {
            layout: Some(layout),
            ..Self::new(place, layout.rows(), width, triangles)
        }
    }

    /// Counts the edges of each type, too. `None` if there is not one label for each node.
    pub fn by_type(&mut self, types: Types) -> Option<()> {
        if self.layout.is_some() || types.labels.len() != self.n {
            return None;
        }
        let sums = zeros(self.place, types.len());
        self.types = Some((types, sums));
        Some(())
    }

    /// The components that this member holds: c, u and v.
    fn held(&self) -> [usize; 3] {
        [1, 2, 3].map(|step| (self.place + step) % MEMBERS)
    }

    /// Adds the numbers of the pairs, or buckets, from `start` on. `None` if there are not so many.
    pub fn add(&mut self, start: usize, count: usize, numbers: &Numbers) -> Option<()> {
        let pairs = start..start.checked_add(count)?;
        let all = self
            .layout
            .map_or_else(|| pair_count(self.n), |l| l.buckets());
        if pairs.end > all || numbers.len() < count || numbers.place != self.place {
            return None;
        }
        if let Some(layout) = self.layout {
            self.add_buckets(layout, pairs, numbers);
            return Some(());
        }
        for component in others(self.place) {
            let words = &numbers.components[component][..count];
            add_to_nodes(pairs.clone(), words, &mut self.degrees[component]);
            let sum = &mut self.edges[component];
            *sum = words.iter().fold(*sum, |sum, word| sum.wrapping_add(*word));
            if let Some((types, sums)) = &mut self.types {
                types.add(pairs.clone(), words, &mut sums[component]);
            }
        }
        let [c, u, v] = self.held().map(|component| &numbers.components[component]);
        if let Some([first, both, last]) = &mut self.matrices {
            first[pairs.clone()].copy_from_slice(&u[..count]);
            last[pairs.clone()].copy_from_slice(&c[..count]);
            for (sum, (u, v)) in both[pairs].iter_mut().zip(u.iter().zip(v)) {
                *sum = u.wrapping_add(*v);
            }
        }
        Some(())
    }

    fn add_buckets(&mut self, layout: Layout, buckets: Range<usize>, numbers: &Numbers) {
        let groups = layout.hubs()..layout.rows();
        for component in others(self.place) {
            let words = &numbers.components[component][..buckets.len()];
            let (sums, sum) = (&mut self.degrees[component], &mut self.edges[component]);
            for ((low, high, _), word) in layout.places(buckets.start).zip(words) {
                *sum = sum.wrapping_add(*word);
                if groups.contains(&high) {
                    sums[low] = sums[low].wrapping_add(*word);
                }
                if groups.contains(&low) {
                    sums[high] = sums[high].wrapping_add(*word);
                }
            }
        }
        let [c, u, v] = self.held().map(|component| &numbers.components[component]);
        let Some([first, both, last]) = &mut self.matrices else {
            return;
        };
        let words = u.iter().zip(v).zip(c).take(buckets.len());
        for ((low, high, minus), ((u, v), c)) in layout.places(buckets.start).zip(words) {
            let cell = row_start(self.n, low) + high - low - 1;
            let sign = if minus { u64::MAX } else { 1 };
            let both_words = u.wrapping_add(*v);
            first[cell] = first[cell].wrapping_add(u.wrapping_mul(sign));
            both[cell] = both[cell].wrapping_add(both_words.wrapping_mul(sign));
            last[cell] = last[cell].wrapping_add(c.wrapping_mul(sign));
        }
    }

    /// Multiplies the entries of a row right of the diagonal by public weights.
    pub fn weigh(&mut self, row: usize, weights: &[u64]) -> Option<()> {
        if row >= self.n || weights.len() != self.n - 1 - row {
            return None;
        }
        let pairs = row_start(self.n, row)..row_start(self.n, row + 1);
        for matrix in self.matrices.as_mut()? {
            for (word, weight) in matrix[pairs.clone()].iter_mut().zip(weights) {
                *word = word.wrapping_mul(*weight);
            }
        }
        Some(())
    }

    /// Counts the triangles of some rows.
    pub fn contract(&mut self, rows: Range<usize>) -> Option<()> {
        let [first, both, last] = self.matrices.as_ref()?;
        if rows.start > rows.end || rows.end > self.n {
            return None;
        }
        let pairs = row_start(self.n, rows.start)..row_start(self.n, rows.end);
        let cube = |matrix: &[u64], weights: Vec<u64>| {
            let matrix = Triangle::new(self.n, matrix).expect("one word per pair");
            square::contract(matrix, rows.clone(), &weights, Level::best())
        };
        let across = last[pairs.clone()].iter().map(|c| c.wrapping_mul(3));
        let across = cube(both, across.collect());
        // u + 3v = 3(u + v) − 2u.
        let own = first[pairs.clone()].iter().zip(&both[pairs]);
        let own = own.map(|(u, both)| both.wrapping_mul(3).wrapping_sub(u.wrapping_mul(2)));
        let own = cube(first, own.collect());
        let sum = across.wrapping_add(own);
        self.cubes = self.cubes.wrapping_add(sum.wrapping_mul(2));
        Some(())
    }

    /// The components of the number of edges.
    pub fn edges(&self) -> Shares {
        std::array::from_fn(|component| match component == self.place {
            true => vec![],
            false => vec![self.edges[component]],
        })
    }

    /// The components of the degrees.
    pub fn degrees(&self) -> &Shares {
        &self.degrees
    }

    /// The components of the numbers of edges of each type.
    pub fn mixing(&self) -> Option<&Shares> {
        self.types.as_ref().map(|(_, sums)| sums)
    }

    /// This member's summand of 2·S₂ = Σd² − Σd.
    pub fn two_stars(&self) -> u64 {
        let [c, u, v] = self.held().map(|component| &self.degrees[component]);
        let mut sum = 0u64;
        for ((c, u), v) in c.iter().zip(u).zip(v) {
            let across = if self.place < 2 { *c } else { 0 };
            let own = u.wrapping_mul(*u);
            let twice = v.wrapping_mul(u.wrapping_add(across)).wrapping_mul(2);
            sum = sum.wrapping_add(own).wrapping_add(twice);
        }
        let [c, ..] = self.held();
        sum.wrapping_sub(self.edges[c].wrapping_mul(2))
    }

    /// This member's summand of 6T, of the rows that were contracted.
    pub fn triangles(&self) -> u64 {
        self.cubes
    }

    /// Frees what was kept to count triangles.
    pub fn forget(&mut self) {
        self.matrices = None;
    }

    /// What this member publishes of a sum: its summand, its component of the noise `factor` times,
    /// and a share of zero; reduced mod 2^w, so that it tells nothing but the sum.
    pub fn published(
        &self,
        seeds: &Seeds,
        output: u64,
        summand: u64,
        factor: u64,
        noise: &Numbers,
    ) -> u64 {
        let [c, ..] = self.held();
        let noise = noise.components[c][0].wrapping_mul(factor);
        let sum = summand.wrapping_add(noise);
        sum.wrapping_add(zero(seeds, self.place, output)) & low(self.width)
    }
}

/// A member's share of zero. For each component its three holders add F, H − F and −H, of which the
/// member that lacks it knows none: the three summands are uniform to it, but for their sum.
pub fn zero(seeds: &Seeds, place: usize, output: u64) -> u64 {
    let mut sum = 0u64;
    for component in others(place) {
        let drawn = seeds.words(component, output, Purpose::Zero, 2);
        let part = match (place + MEMBERS - component) % MEMBERS {
            1 => drawn[0],
            2 => drawn[1].wrapping_sub(drawn[0]),
            _ => drawn[1].wrapping_neg(),
        };
        sum = sum.wrapping_add(part);
    }
    sum
}
