//! What a chunk computes: its gates, and the layers in which they are evaluated.

use std::ops::Range;

/// Whose bits an input is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// A member of the committee.
    Member(usize),
    /// A silo outside the committee.
    Outside,
}

/// What becomes of the bits.
enum Goal {
    /// The union is XORed with a coin that is one with probability k/2^places, and opened. These
    /// are the digits of k, lowest first.
    Flip(Vec<bool>),
    /// The union is converted to numbers of so many bytes.
    Count(usize),
    /// There are no inputs. The binary digits of noise are drawn and converted.
    Draw(Digits),
}

/// Coins that are digits of numbers: for every number a variable G and then a variable G′, each from
/// its lowest digit on. All digits have the same number of places.
pub struct Digits {
    /// k of every digit, lowest place first.
    coins: Vec<Vec<bool>>,
    /// How many numbers there are.
    count: usize,
    /// Bytes of a number.
    width: usize,
}

/// A chunk's gates.
///
/// *Union*: an AND-tree over negated bits.
///
/// *Coin*: random bits are compared with k, from the lowest place on: less = (bit < digit of k), or
/// equal and less so far. k is odd, so the first place needs no gate: less is the negated bit. A
/// layer has the gates of one level of the tree and the gate of one place; the two have nothing to
/// do with each other.
///
/// *Digits*: the same comparison, but as a tree, whose depth is the logarithm of the places: of two
/// neighbouring groups of places, less = less in the upper one, or equal there and less in the lower
/// one; equal = equal in both. That takes twice the gates, which is nothing beside those of all
/// pairs, and few rounds.
///
/// *Conversion*: two more layers, after those of the gates.
pub struct Circuit {
    owners: Vec<Owner>,
    goal: Goal,
}

impl Circuit {
    /// The noisy union. `None` if there is no silo, or k is not odd and below 2^places.
    pub fn new(owners: Vec<Owner>, coin: Vec<bool>) -> Option<Self> {
        let valid = !owners.is_empty() && coin.first() == Some(&true);
        let goal = Goal::Flip(coin);
        valid.then_some(Self { owners, goal })
    }

    /// The union as numbers of `width` bytes. `None` if there is no silo, or no such number.
    pub fn counting(owners: Vec<Owner>, width: usize) -> Option<Self> {
        let valid = !owners.is_empty() && (1..=8).contains(&width);
        let goal = Goal::Count(width);
        valid.then_some(Self { owners, goal })
    }

    /// Noise: `count` numbers G − G′ of `width` bytes, from the coins of their digits. `None` if there
    /// are no digits or places, or not the same number of places for each.
    pub fn noise(coins: Vec<Vec<bool>>, count: usize, width: usize) -> Option<Self> {
        let places = coins.first().map_or(0, Vec::len);
        let valid = places > 0
            && (1..=64).contains(&coins.len())
            && coins.iter().all(|digit| digit.len() == places)
            && count > 0
            && (1..=8).contains(&width);
        let goal = Goal::Draw(Digits {
            coins,
            count,
            width,
        });
        valid.then_some(Self {
            owners: vec![],
            goal,
        })
    }

    /// The owner of every input.
    pub fn owners(&self) -> &[Owner] {
        &self.owners
    }

    /// The digits of the coin's k, lowest first; none if there is no coin.
    pub fn coin(&self) -> &[bool] {
        match &self.goal {
            Goal::Flip(coin) => coin,
            _ => &[],
        }
    }

    /// The digits that are drawn, if that is what the chunk does.
    pub fn digits(&self) -> Option<&Digits> {
        match &self.goal {
            Goal::Draw(digits) => Some(digits),
            _ => None,
        }
    }

    /// Bytes of a number that bits are converted to, if they are.
    pub fn width(&self) -> Option<usize> {
        match &self.goal {
            Goal::Flip(_) => None,
            Goal::Count(width) => Some(*width),
            Goal::Draw(digits) => Some(digits.width),
        }
    }

    /// Words of bits that the chunk works on, for so many pairs or numbers.
    pub fn words(&self, pairs: usize) -> usize {
        match &self.goal {
            Goal::Draw(digits) => digits.words(),
            _ => pairs.div_ceil(64),
        }
    }

    /// The number of layers.
    pub fn layers(&self) -> usize {
        self.gate_layers() + 2 * usize::from(self.width().is_some())
    }

    /// The number of layers with gates; those of a conversion follow.
    pub fn gate_layers(&self) -> usize {
        let depth = |count: usize| count.next_power_of_two().ilog2() as usize;
        match &self.goal {
            Goal::Flip(coin) => depth(self.owners.len()).max(coin.len() - 1),
            Goal::Count(_) => depth(self.owners.len()),
            Goal::Draw(digits) => depth(digits.places()),
        }
    }

    /// How many nodes of the tree are left before a layer.
    pub fn tree(&self, layer: usize) -> usize {
        let leaves = self.digits().map_or(self.owners.len(), Digits::places);
        (0..layer).fold(leaves, |width, _| width.div_ceil(2))
    }

    /// Whether a layer has a gate of the coin.
    pub fn flips(&self, layer: usize) -> bool {
        layer + 1 < self.coin().len()
    }

    /// The numbers of a layer's gates: those of the tree, then that of the coin.
    pub fn gates(&self, layer: usize) -> Range<usize> {
        let count = |layer| {
            let two = self.tree(layer) / 2;
            match self.goal {
                // The lowest group is compared with no lower one: nobody asks whether it is equal.
                Goal::Draw(_) => (2 * two).saturating_sub(1),
                _ => two + usize::from(self.flips(layer)),
            }
        };
        let first = (0..layer).map(count).sum();
        first..first + count(layer)
    }
}

impl Digits {
    /// The number of places.
    pub fn places(&self) -> usize {
        self.coins[0].len()
    }

    /// How many numbers there are.
    pub fn count(&self) -> usize {
        self.count
    }

    /// The number of digits of G, and of G′.
    pub fn digits(&self) -> usize {
        self.coins.len()
    }

    /// Words of the bits of one digit, of all numbers.
    pub fn digit_words(&self) -> usize {
        self.count.div_ceil(64)
    }

    /// Words of all bits.
    pub fn words(&self) -> usize {
        2 * self.coins.len() * self.digit_words()
    }

    /// What the bits of one place are compared with: all bits of a word are the same.
    pub fn mask(&self, place: usize) -> impl Iterator<Item = u64> {
        let both = self.coins.iter().chain(&self.coins);
        let words = self.digit_words();
        both.flat_map(move |coin| std::iter::repeat_n(u64::from(coin[place]).wrapping_neg(), words))
    }
}
