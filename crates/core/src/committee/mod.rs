//! The committee of four: shares of a union that none of its members holds.
//!
//! A secret bit is the sum (XOR) of four *components*; member i holds every component but number i.
//! So one member lacks a component of every secret, and two members together have all of them.
//!
//! Sums are local. A product of two secrets has, besides products within one component, one term for
//! each two components a and b: it is known to exactly the two members other than a and b. It
//! reaches a third member as a *joint message*: the `sender` sends it, hidden by a mask, and the
//! `hasher`, who computes the same bytes, sends their hash. **The receiver uses a message only after
//! the hash has come and matches.** Protocols that compare hashes later, many at once, let a member
//! that cheats learn the others' bits from whether later hashes match.
//!
//! The same holds for numbers mod 2^w, with sums in place of XOR: [`Conversion`] makes numbers from
//! bits. Everything of degree three or less is then known to the members in parts, without a message:
//! [`Count`].
//!
//! [`Seeds`] makes everything that members draw in common, [`Circuit`] says which gates there are
//! and in which order, [`Chunk`] is one member's part of one chunk of pairs or of noise.

mod chunk;
mod circuit;
mod count;
mod numbers;
mod opening;
mod parts;
mod seeds;
#[cfg(test)]
mod tests;

pub use chunk::{Chunk, Fault, Layer, Shares, opened};
pub use circuit::{Circuit, Digits, Owner};
pub use count::{Count, Types};
pub use numbers::{Conversion, Numbers, opened_numbers};
pub use parts::Parts;
pub use seeds::{Purpose, Seeds};

/// The members of a committee.
pub const MEMBERS: usize = 4;

/// Who hashes what `sender` sends to `receiver`, by [sender][receiver].
const HASHERS: [[usize; MEMBERS]; MEMBERS] =
    [[0, 3, 1, 2], [2, 1, 3, 0], [3, 0, 2, 1], [1, 2, 0, 3]];
/// In which gates `sender` sends to `receiver`, by [sender][receiver]: those with an even number (0)
/// or an odd one (1). So two gates in a row use every direction once.
const PARITIES: [[usize; MEMBERS]; MEMBERS] =
    [[0, 0, 0, 1], [0, 0, 1, 1], [0, 0, 0, 1], [0, 1, 1, 0]];

/// The parts of the four members in one joint message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// Sends the masked value.
    pub sender: usize,
    /// Sends its hash.
    pub hasher: usize,
    /// Compares the two.
    pub receiver: usize,
    /// The member that takes no part; it knows the mask, which hides the message from the receiver.
    pub other: usize,
    /// The gates of the message: those with an even number (0) or an odd one (1).
    pub parity: usize,
}

impl Route {
    /// The message from `sender` to `receiver`, two different members.
    pub fn new(sender: usize, receiver: usize) -> Self {
        let hasher = HASHERS[sender][receiver];
        Self {
            sender,
            hasher,
            receiver,
            other: 6 - sender - hasher - receiver,
            parity: PARITIES[sender][receiver],
        }
    }

    /// All twelve.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..MEMBERS)
            .flat_map(|sender| others(sender).map(move |receiver| Self::new(sender, receiver)))
    }
}

/// The members besides one.
pub fn others(member: usize) -> impl Iterator<Item = usize> {
    (0..MEMBERS).filter(move |other| *other != member)
}

/// The component of a silo's bits that travels as a vector; the others come from seeds. `owner` is
/// the silo's number in the committee, or, for a silo outside it, among all silos.
pub fn vector_component(owner: Owner, silo: usize) -> usize {
    match owner {
        Owner::Member(member) => (member + 1) % MEMBERS,
        Owner::Outside => silo % MEMBERS,
    }
}
