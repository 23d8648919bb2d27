//! m-of-m ElGamal on ristretto255: encrypted bits that silos pass on, and open together.
//!
//! *Cells.* A cell is Enc(x) = (rG, x·U + r·pk) in 64 bytes, where pk is the sum of all silos'
//! public keys and U the unit of the plaintext. A chunk is cells one after the other.
//!
//! *Units.* Encoding a ristretto point costs an inverse square root, but the doubles of many
//! points can be encoded with one inversion for all. So every hop emits 2·c where it means c: the
//! unit is public and, after h hops, U = 2^h·G. It is accounted for where a hop adds to a
//! plaintext and where the table of plaintexts is made; [`Place::hops`] says how many hops the
//! cells that come in have made.
//!
//! *Why that is sound.* A hop turns c into c + Enc(0; r) with r uniform, which is uniform over all
//! encryptions of the plaintext of c, whatever c was. The group has prime order, which is odd, so
//! doubling is a bijection of it: it takes the encryptions of x·U one to one onto those of x·2U,
//! and the uniform distribution to the uniform distribution. Nobody sees anything but 2·c.
//!
//! *Time.* Everything that touches a secret (keys, bits, masks, coins, randomisers) does the same
//! operations whatever its value. What depends on public data alone says `vartime`; decoding the
//! points that others sent is such a case, and so is the lookup of what a release shows anyway.
//!
//! *Randomness.* Coins come from the seed, the run, the chunk and the hop. Randomisers come from
//! these **and** all inputs of the step, so that a seed which is used twice by mistake never
//! encrypts two different things under one randomiser, nor draws a coin again.
//!
//! *Memory.* Keys, seeds of streams, coins, randomisers and the points made from them are wiped
//! after use. What the curve crate holds meanwhile, and copies that the compiler makes, are not.

mod cells;
mod decrypt;
mod hops;
mod keys;
mod proofs;
mod transcript;

#[cfg(test)]
mod tests;

pub use cells::{CELL_BYTES, encrypt, flip, overwrite};
pub use decrypt::{Decoder, PACKED, combine, share, share_bytes};
pub use hops::{Variant, first_hop, flip_hop, hop};
pub use keys::{JointKey, Member, PublicKey, Run, SecretKey};
pub use proofs::PROOF_BYTES;

use curve25519_dalek::ristretto::{CompressedRistretto, RistrettoPoint};
use curve25519_dalek::scalar::Scalar;

/// 32 bytes of entropy, chosen by the caller.
pub type Seed = [u8; 32];

/// The bytes of an encoded point or scalar.
pub const POINT_BYTES: usize = 32;

/// Where in a run a chunk of cells stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Which chunk of the pairs it is.
    pub chunk: u64,
    /// How many hops the cells have made; their unit is 2^hops·G.
    pub hops: u16,
}

/// What was refused. Silos, keys, cells and shares are counted from 0.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Bytes that are too few or too many.
    #[error("{what}{} has {found} bytes where {expected} are due", of(*silo))]
    Length {
        /// What the bytes should have been.
        what: &'static str,
        /// Whose bytes, where they belong to one silo.
        silo: Option<usize>,
        /// The length that was due.
        expected: usize,
        /// The length that came.
        found: usize,
    },
    /// Not the canonical encoding of a point or scalar.
    #[error("{what} {index}{} is not a canonical encoding", of(*silo))]
    Encoding {
        /// What should have been encoded.
        what: &'static str,
        /// Whose, where it belongs to one silo.
        silo: Option<usize>,
        /// Which cell, share or key.
        index: usize,
    },
    /// The identity element, which no honest party sends.
    #[error("{what} {index}{} is the identity element", of(*silo))]
    Identity {
        /// What was the identity.
        what: &'static str,
        /// Whose, where it belongs to one silo.
        silo: Option<usize>,
        /// Which cell, share or key.
        index: usize,
    },
    /// A proof that does not hold.
    #[error("the proof of {what} of silo {silo} does not hold for this run")]
    Proof {
        /// What was to be proved.
        what: &'static str,
        /// Who proved it.
        silo: usize,
    },
    /// Two silos sent the same public key.
    #[error("silo {silo} has the public key of silo {first}")]
    RepeatedKey {
        /// The later silo.
        silo: usize,
        /// The earlier silo.
        first: usize,
    },
    /// The public keys sum to the identity element.
    #[error("the public keys sum to the identity element")]
    IdentitySum,
    /// A joint key of nobody.
    #[error("a joint key needs at least one silo")]
    NoSilo,
    /// The secret key is not the one of that silo's public key.
    #[error("the secret key is not the one behind the public key of silo {silo}")]
    NotAMember {
        /// The silo that was named.
        silo: usize,
    },
    /// Not one message of shares from every silo.
    #[error("{found} silos sent shares where all {expected} must")]
    Shares {
        /// The number of silos.
        expected: usize,
        /// The number of messages.
        found: usize,
    },
    /// A decrypted group of cells that is no sum of bits.
    #[error("the {PACKED} cells from cell {cell} do not decrypt to bits")]
    Plaintext {
        /// The first cell of the group.
        cell: usize,
    },
    /// Cells have made as many hops as can be counted.
    #[error("cells cannot make more than {} hops", u16::MAX)]
    Hops,
}

impl Error {
    /// The kind of refusal, for bindings.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Identity {
                what: "public key", ..
            } => "key",
            Self::Length { .. } | Self::Encoding { .. } | Self::Identity { .. } => "encoding",
            Self::Shares { .. } => "encoding",
            Self::RepeatedKey { .. } | Self::IdentitySum | Self::NoSilo => "key",
            Self::NotAMember { .. } => "key",
            Self::Proof { .. } => "proof",
            Self::Plaintext { .. } => "plaintext",
            Self::Hops => "hops",
        }
    }

    /// The silo at fault, where one is.
    pub fn silo(&self) -> Option<usize> {
        match *self {
            Self::Length { silo, .. }
            | Self::Encoding { silo, .. }
            | Self::Identity { silo, .. } => silo,
            Self::Proof { silo, .. }
            | Self::RepeatedKey { silo, .. }
            | Self::NotAMember { silo } => Some(silo),
            _ => None,
        }
    }

    /// The cell, share or key at fault, where one is.
    pub fn index(&self) -> Option<usize> {
        match *self {
            Self::Encoding { index, .. } | Self::Identity { index, .. } => Some(index),
            Self::Plaintext { cell } => Some(cell),
            _ => None,
        }
    }
}

fn of(silo: Option<usize>) -> String {
    silo.map_or_else(String::new, |silo| format!(" of silo {silo}"))
}

/// Decodes a point that someone else sent: canonical, and not the identity.
///
/// Leaves early on a bad encoding: variable time in public bytes.
fn decode_vartime(
    bytes: &[u8; POINT_BYTES],
    what: &'static str,
    silo: Option<usize>,
    index: usize,
) -> Result<RistrettoPoint, Error> {
    if bytes == &[0; POINT_BYTES] {
        return Err(Error::Identity { what, silo, index });
    }
    CompressedRistretto(*bytes)
        .decompress()
        .ok_or(Error::Encoding { what, silo, index })
}

/// Decodes a public scalar, which must be reduced.
fn decode_scalar(
    bytes: &[u8; POINT_BYTES],
    what: &'static str,
    silo: usize,
) -> Result<Scalar, Error> {
    Option::from(Scalar::from_canonical_bytes(*bytes)).ok_or(Error::Encoding {
        what,
        silo: Some(silo),
        index: 0,
    })
}

/// Refuses a message that has not the length due.
fn check_length(
    what: &'static str,
    silo: Option<usize>,
    found: usize,
    expected: usize,
) -> Result<(), Error> {
    match found == expected {
        true => Ok(()),
        false => Err(Error::Length {
            what,
            silo,
            expected,
            found,
        }),
    }
}
