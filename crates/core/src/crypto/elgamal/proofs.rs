//! Schnorr proofs: that a silo knows its key, and that its decryption shares use that same key.
//!
//! Nonces are hashes of the seed, the secret and everything that the proof is about, so a seed
//! that is used twice by mistake does not show the key.

use curve25519_dalek::constants::RISTRETTO_BASEPOINT_TABLE;
use curve25519_dalek::ristretto::RistrettoPoint;
use curve25519_dalek::scalar::Scalar;
use curve25519_dalek::traits::VartimeMultiscalarMul;
use rand_core::Rng;
use zeroize::{Zeroize, Zeroizing};

use super::keys::{PublicKey, Run, SecretKey};
use super::transcript::{Streams, Transcript};
use super::{Error, POINT_BYTES, Seed, check_length, decode_scalar, decode_vartime};

/// The bytes of either proof.
pub const PROOF_BYTES: usize = 2 * POINT_BYTES;

const POSSESSION: &str = "possession";
const SHARES: &str = "decryption shares";

fn nonce(purpose: &str, secret: &SecretKey, seed: &Seed, statement: &[u8]) -> Scalar {
    let own = Zeroizing::new(secret.scalar().to_bytes());
    Transcript::new(purpose)
        .bytes(seed)
        .bytes(&own[..])
        .bytes(statement)
        .scalar()
}

fn join(first: [u8; POINT_BYTES], second: [u8; POINT_BYTES]) -> [u8; PROOF_BYTES] {
    let mut proof = [0; PROOF_BYTES];
    proof[..POINT_BYTES].copy_from_slice(&first);
    proof[POINT_BYTES..].copy_from_slice(&second);
    proof
}

fn halves(
    proof: &[u8],
    what: &'static str,
    silo: usize,
) -> Result<([u8; POINT_BYTES], [u8; POINT_BYTES]), Error> {
    check_length(what, Some(silo), proof.len(), PROOF_BYTES)?;
    let (parts, _) = proof.as_chunks::<POINT_BYTES>();
    Ok((parts[0], parts[1]))
}

pub(super) fn possession_challenge(
    run: &Run,
    identity: &[u8],
    key: &[u8],
    commitment: &[u8],
) -> Scalar {
    Transcript::new(POSSESSION)
        .bytes(&run.id)
        .bytes(identity)
        .bytes(key)
        .bytes(&run.roster)
        .bytes(commitment)
        .scalar()
}

/// (R, z) with R = kG and z = k + c·sk.
pub(super) fn prove_possession(
    secret: &SecretKey,
    run: &Run,
    identity: &[u8],
    seed: &Seed,
) -> [u8; PROOF_BYTES] {
    let key = secret.public_key().to_bytes();
    let statement = Transcript::new("possession statement")
        .bytes(&run.id)
        .bytes(identity)
        .bytes(&run.roster)
        .digest();
    let mut k = nonce("possession nonce", secret, seed, &statement);
    let commitment = (RISTRETTO_BASEPOINT_TABLE * &k).compress().to_bytes();
    let c = possession_challenge(run, identity, &key, &commitment);
    let z = k + c * secret.scalar();
    k.zeroize();
    join(commitment, z.to_bytes())
}

/// Whether zG = R + c·pk.
pub(super) fn verify_possession(
    key: &PublicKey,
    run: &Run,
    identity: &[u8],
    proof: &[u8],
    silo: usize,
) -> Result<(), Error> {
    let what = "proof of possession";
    let (commitment, z) = halves(proof, what, silo)?;
    let r = decode_vartime(&commitment, what, Some(silo), 0)?;
    let z = decode_scalar(&z, what, silo)?;
    let c = possession_challenge(run, identity, &key.to_bytes(), &commitment);
    match RistrettoPoint::vartime_double_scalar_mul_basepoint(&-c, key.point(), &z) == r {
        true => Ok(()),
        false => Err(Error::Proof {
            what: POSSESSION,
            silo,
        }),
    }
}

/// Random coefficients of 128 bits, one a share, fixed by a digest of the whole statement.
///
/// Had one share another discrete logarithm than the rest, the two sums below would keep the same
/// one for at most one choice of its coefficient in 2^128.
pub(super) fn coefficients(statement: &[u8; 64], count: usize) -> Vec<Scalar> {
    let streams: Streams = Transcript::new("share coefficients")
        .bytes(statement)
        .streams();
    let mut rng = streams.block(0);
    let mut draw = || u128::from(rng.next_u64()) | u128::from(rng.next_u64()) << 64;
    (0..count).map(|_| Scalar::from(draw())).collect()
}

fn shares_challenge(statement: &[u8; 64], points: [&RistrettoPoint; 4]) -> Scalar {
    points
        .iter()
        .fold(Transcript::new(SHARES).bytes(statement), |all, point| {
            all.bytes(&point.compress().to_bytes())
        })
        .scalar()
}

/// (c, z): that the share of every packed point, and the public key over G, have one discrete
/// logarithm. `statement` must be a digest of all of them.
pub(super) fn prove_shares(
    secret: &SecretKey,
    statement: &[u8; 64],
    packed: &[RistrettoPoint],
    seed: &Seed,
) -> [u8; PROOF_BYTES] {
    let combined =
        RistrettoPoint::vartime_multiscalar_mul(coefficients(statement, packed.len()), packed);
    let share = combined * secret.scalar();
    let mut k = nonce("shares nonce", secret, seed, statement);
    let on_base = RISTRETTO_BASEPOINT_TABLE * &k;
    let on_combined = combined * k;
    let c = shares_challenge(statement, [&combined, &share, &on_base, &on_combined]);
    let z = k + c * secret.scalar();
    k.zeroize();
    join(c.to_bytes(), z.to_bytes())
}

/// Whether the proof holds for these shares of these packed points.
pub(super) fn verify_shares(
    key: &PublicKey,
    statement: &[u8; 64],
    packed: &[RistrettoPoint],
    shares: &[RistrettoPoint],
    proof: &[u8],
    silo: usize,
) -> Result<(), Error> {
    let (c_bytes, z) = halves(proof, "proof of decryption shares", silo)?;
    let c = decode_scalar(&c_bytes, "proof of decryption shares", silo)?;
    let z = decode_scalar(&z, "proof of decryption shares", silo)?;
    let weights = coefficients(statement, packed.len());
    let combined = RistrettoPoint::vartime_multiscalar_mul(&weights, packed);
    let share = RistrettoPoint::vartime_multiscalar_mul(&weights, shares);
    let on_base = RistrettoPoint::vartime_double_scalar_mul_basepoint(&-c, key.point(), &z);
    let on_combined = RistrettoPoint::vartime_multiscalar_mul([z, -c], [combined, share]);
    match shares_challenge(statement, [&combined, &share, &on_base, &on_combined]) == c {
        true => Ok(()),
        false => Err(Error::Proof { what: SHARES, silo }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two proofs under one nonce would show the secret key.
    #[test]
    fn a_nonce_depends_on_seed_key_purpose_and_statement() {
        let (one, other) = (
            SecretKey::from_seed(&[1; 32]),
            SecretKey::from_seed(&[2; 32]),
        );
        let drawn = [
            nonce("a", &one, &[1; 32], b"statement"),
            nonce("b", &one, &[1; 32], b"statement"),
            nonce("a", &other, &[1; 32], b"statement"),
            nonce("a", &one, &[2; 32], b"statement"),
            nonce("a", &one, &[1; 32], b"another"),
        ];
        for (i, k) in drawn.iter().enumerate() {
            assert!(drawn[..i].iter().all(|earlier| earlier != k));
        }
        assert_eq!(drawn[0], nonce("a", &one, &[1; 32], b"statement"));
        let run = |id: &[u8]| Run {
            id: id.to_vec(),
            roster: vec![],
        };
        let proofs = [b"1", b"2"].map(|id| prove_possession(&one, &run(id), b"s", &[1; 32]));
        assert_ne!(proofs[0][..POINT_BYTES], proofs[1][..POINT_BYTES]);
    }
}
