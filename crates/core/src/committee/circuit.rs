//! The gates of a union and of a coin, and the layers in which they are evaluated.

use std::ops::Range;

/// Whose bits an input is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// A member of the committee.
    Member(usize),
    /// A silo outside the committee.
    Outside,
}

/// The union of all silos' bits, XORed with a coin that is one with probability k/2^places.
///
/// The union is an AND-tree over negated bits. The coin compares random bits with k, from the lowest
/// place on: less = (bit < digit of k), or equal and less so far. k is odd, so the first place
/// needs no gate: less is the negated bit. A layer has the gates of one level of the tree and the
/// gate of one place; the two have nothing to do with each other.
pub struct Circuit {
    owners: Vec<Owner>,
    /// The digits of k, lowest first.
    coin: Vec<bool>,
}

impl Circuit {
    /// `None` if there is no silo, or k is not odd and below 2^places.
    pub fn new(owners: Vec<Owner>, coin: Vec<bool>) -> Option<Self> {
        let valid = !owners.is_empty() && coin.first() == Some(&true);
        valid.then_some(Self { owners, coin })
    }

    /// The owner of every input.
    pub fn owners(&self) -> &[Owner] {
        &self.owners
    }

    /// The digits of k, lowest first.
    pub fn coin(&self) -> &[bool] {
        &self.coin
    }

    /// The number of layers.
    pub fn layers(&self) -> usize {
        let depth = self.owners.len().next_power_of_two().ilog2() as usize;
        depth.max(self.coin.len() - 1)
    }

    /// How many nodes of the tree are left before a layer.
    pub fn width(&self, layer: usize) -> usize {
        (0..layer).fold(self.owners.len(), |width, _| width.div_ceil(2))
    }

    /// Whether a layer has a gate of the coin.
    pub fn flips(&self, layer: usize) -> bool {
        layer + 1 < self.coin.len()
    }

    /// The numbers of a layer's gates: those of the tree, then that of the coin.
    pub fn gates(&self, layer: usize) -> Range<usize> {
        let count = |layer| self.width(layer) / 2 + usize::from(self.flips(layer));
        let first = (0..layer).map(count).sum();
        first..first + count(layer)
    }
}
