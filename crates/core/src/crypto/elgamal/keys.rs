//! Keys: one secret a silo and run, proofs that it is known, and the joint key of all silos.

use std::fmt;

use curve25519_dalek::constants::RISTRETTO_BASEPOINT_TABLE;
use curve25519_dalek::ristretto::{RistrettoBasepointTable, RistrettoPoint};
use curve25519_dalek::scalar::Scalar;
use curve25519_dalek::traits::IsIdentity;
use subtle::ConstantTimeEq;
use zeroize::{Zeroize, ZeroizeOnDrop};

use super::proofs::{PROOF_BYTES, prove_possession, verify_possession};
use super::transcript::Transcript;
use super::{Error, POINT_BYTES, Seed, check_length, decode_vartime};

/// What a proof of possession is bound to, beside the silo's identity and key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// The run's name, never used twice.
    pub id: Vec<u8>,
    /// A digest of the roster: who takes part, in which order, with which identities.
    pub roster: Vec<u8>,
}

/// A silo's secret key of one run. Wiped when dropped; shows nothing; cannot be written out (a
/// silo that must restart keeps the seed).
pub struct SecretKey {
    scalar: Scalar,
}

impl Drop for SecretKey {
    fn drop(&mut self) {
        self.scalar.zeroize();
    }
}

impl ZeroizeOnDrop for SecretKey {}

impl SecretKey {
    /// The key of a seed, which must be fresh for every run.
    pub fn from_seed(seed: &Seed) -> Self {
        Self {
            scalar: Transcript::new("secret key").bytes(seed).scalar(),
        }
    }

    /// The public key sk·G.
    pub fn public_key(&self) -> PublicKey {
        let point = RISTRETTO_BASEPOINT_TABLE * &self.scalar;
        PublicKey {
            bytes: point.compress().to_bytes(),
            point,
        }
    }

    /// Proves that this key is known, to whoever takes part in the run.
    pub fn prove(&self, run: &Run, identity: &[u8], seed: &Seed) -> [u8; PROOF_BYTES] {
        prove_possession(self, run, identity, seed)
    }

    pub(super) fn scalar(&self) -> &Scalar {
        &self.scalar
    }

    /// The key that cancels this one.
    #[cfg(test)]
    pub(super) fn negated(&self) -> Self {
        Self {
            scalar: -self.scalar,
        }
    }
}

impl fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretKey(…)")
    }
}

/// A silo's public key: a canonical encoding of a point that is not the identity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicKey {
    bytes: [u8; POINT_BYTES],
    point: RistrettoPoint,
}

impl PublicKey {
    /// Decodes what silo `silo` sent.
    pub fn decode(bytes: &[u8], silo: usize) -> Result<Self, Error> {
        check_length("public key", Some(silo), bytes.len(), POINT_BYTES)?;
        let mut fixed = [0; POINT_BYTES];
        fixed.copy_from_slice(bytes);
        let point = decode_vartime(&fixed, "public key", Some(silo), 0)?;
        Ok(Self {
            bytes: fixed,
            point,
        })
    }

    /// The canonical encoding.
    pub fn to_bytes(&self) -> [u8; POINT_BYTES] {
        self.bytes
    }

    pub(super) fn point(&self) -> &RistrettoPoint {
        &self.point
    }
}

/// What a silo sends before a run: who it is, its key, and the proof that it knows the secret.
#[derive(Clone, Copy, Debug)]
pub struct Member<'a> {
    /// The silo's long-term identity.
    pub identity: &'a [u8],
    /// Its public key of this run.
    pub key: &'a [u8],
    /// Its proof of possession.
    pub proof: &'a [u8],
}

/// The sum of all public keys, with what every step needs of it: a table of its multiples, made
/// once a run, and a digest that ties steps and proofs to this run, roster and set of keys.
pub struct JointKey {
    keys: Vec<PublicKey>,
    table: RistrettoBasepointTable,
    binding: [u8; 64],
}

impl JointKey {
    /// Checks every key and proof, in silo order, and sums the keys.
    ///
    /// Refuses a key that is not canonical, is the identity or repeats, a proof that does not
    /// hold for this run, roster and identity, and keys that sum to the identity.
    pub fn agree(run: &Run, members: &[Member<'_>]) -> Result<Self, Error> {
        let mut keys: Vec<PublicKey> = Vec::with_capacity(members.len());
        for (silo, member) in members.iter().enumerate() {
            let key = PublicKey::decode(member.key, silo)?;
            if let Some(first) = keys.iter().position(|earlier| earlier.bytes == key.bytes) {
                return Err(Error::RepeatedKey { silo, first });
            }
            verify_possession(&key, run, member.identity, member.proof, silo)?;
            keys.push(key);
        }
        Self::sum(run, keys, members)
    }

    fn sum(run: &Run, keys: Vec<PublicKey>, members: &[Member<'_>]) -> Result<Self, Error> {
        if keys.is_empty() {
            return Err(Error::NoSilo);
        }
        let joint: RistrettoPoint = keys.iter().map(|key| key.point).sum();
        if joint.is_identity() {
            return Err(Error::IdentitySum);
        }
        let start = Transcript::new("joint key")
            .bytes(&run.id)
            .bytes(&run.roster)
            .number(keys.len() as u64);
        let binding = keys
            .iter()
            .zip(members)
            .fold(start, |all, (key, member)| {
                all.bytes(member.identity).bytes(&key.bytes)
            })
            .digest();
        Ok(Self {
            table: RistrettoBasepointTable::create(&joint),
            keys,
            binding,
        })
    }

    /// The number of silos.
    pub fn silos(&self) -> usize {
        self.keys.len()
    }

    /// The encoding of the sum of the public keys.
    pub fn to_bytes(&self) -> [u8; POINT_BYTES] {
        self.table.basepoint().compress().to_bytes()
    }

    /// The digest of run, roster, identities and keys that all later proofs are bound to.
    pub fn binding(&self) -> &[u8; 64] {
        &self.binding
    }

    pub(super) fn table(&self) -> &RistrettoBasepointTable {
        &self.table
    }

    pub(super) fn key(&self, silo: usize) -> &PublicKey {
        &self.keys[silo]
    }

    /// Refuses a secret key that is not the one of the named silo.
    pub(super) fn check_member(&self, secret: &SecretKey, silo: usize) -> Result<(), Error> {
        let own = secret.public_key();
        match self.keys.get(silo) {
            Some(key) if bool::from(key.bytes.ct_eq(&own.bytes)) => Ok(()),
            _ => Err(Error::NotAMember { silo }),
        }
    }
}

impl fmt::Debug for JointKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "JointKey(silos={})", self.keys.len())
    }
}
