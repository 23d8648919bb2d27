//! Opening a chunk together, 16 cells at a time.
//!
//! Cells c_0 … c_15 are packed as Σ 2^j·c_j, an encryption of the number whose bits are theirs, so
//! one decryption opens 16 of them. A silo forms the packed points itself, from the cells, and
//! proves that its shares are its key times those points.

use curve25519_dalek::constants::RISTRETTO_BASEPOINT_TABLE;
use curve25519_dalek::ristretto::RistrettoPoint;
use curve25519_dalek::scalar::Scalar;
use curve25519_dalek::traits::{Identity, IsIdentity};
use rayon::prelude::*;
use zeroize::Zeroize;

use super::cells::{CELL_BYTES, count_cells, unit};
use super::keys::{JointKey, SecretKey};
use super::proofs::{PROOF_BYTES, prove_shares, verify_shares};
use super::transcript::Transcript;
use super::{Error, POINT_BYTES, Place, Seed, check_length, decode_vartime};

/// Cells in a packed group; the last group of a chunk may have fewer.
pub const PACKED: usize = 16;

/// Groups that a task works on, and that share an inversion.
const GROUPS: usize = 16;

/// The bytes of a silo's decryption shares of `count` cells, with their proof.
pub fn share_bytes(count: usize) -> usize {
    count.div_ceil(PACKED) * POINT_BYTES + PROOF_BYTES
}

/// Runs over groups of cells in parallel; names the first bad one.
fn over_groups<T: Send>(
    cells: &[u8],
    each: impl Fn(usize, &[u8]) -> Result<T, Error> + Sync,
) -> Result<Vec<T>, Error> {
    let made: Vec<Result<T, Error>> = cells
        .par_chunks(PACKED * CELL_BYTES)
        .enumerate()
        .with_min_len(GROUPS)
        .map(|(group, cells)| each(group * PACKED, cells))
        .collect();
    made.into_iter().collect()
}

/// Σ 2^j·c_j of one half of the cells (0: c1, 1: c2), by Horner's rule.
fn pack_half_vartime(cells: &[u8], first: usize, half: usize) -> Result<RistrettoPoint, Error> {
    let (points, _) = cells.as_chunks::<POINT_BYTES>();
    let mut sum = RistrettoPoint::identity();
    for index in (0..points.len() / 2).rev() {
        sum = sum + sum + decode_vartime(&points[2 * index + half], "cell", None, first + index)?;
    }
    Ok(sum)
}

/// The packed c1 of a group. That of honest cells is never the identity, and a share of the
/// identity would prove nothing.
pub(super) fn pack_vartime(cells: &[u8], first: usize) -> Result<RistrettoPoint, Error> {
    let packed = pack_half_vartime(cells, first, 0)?;
    match packed.is_identity() {
        false => Ok(packed),
        true => Err(Error::Identity {
            what: "cell",
            silo: None,
            index: first,
        }),
    }
}

/// A digest of the cells, and so of every packed point.
pub(super) fn digest_cells(cells: &[u8]) -> [u8; 64] {
    Transcript::new("final cells").bytes(cells).digest()
}

/// What a proof of shares is about: the cells, all shares, the key, the run, the silo and the
/// place.
pub(super) fn statement(
    key: &JointKey,
    silo: usize,
    cells: &[u8; 64],
    shares: &[u8],
    place: Place,
) -> [u8; 64] {
    Transcript::new("shares statement")
        .bytes(key.binding())
        .number(silo as u64)
        .bytes(&key.key(silo).to_bytes())
        .number(place.chunk)
        .number(place.hops.into())
        .bytes(cells)
        .bytes(shares)
        .digest()
}

/// A silo's decryption shares of the final cells: sk·c1 of every group, and one proof.
///
/// The caller sees to it that these are the final cells, and that each is opened once.
pub fn share(
    key: &JointKey,
    secret: &SecretKey,
    silo: usize,
    cells: &[u8],
    place: Place,
    seed: &Seed,
) -> Result<Vec<u8>, Error> {
    let count = count_cells(cells)?;
    key.check_member(secret, silo)?;
    let packed = over_groups(cells, |first, cells| pack_vartime(cells, first))?;
    // Doubles are what can be encoded in a batch: 2·(sk/2)·c1 = sk·c1.
    let mut half = secret.scalar() * Scalar::from(2u64).invert();
    let mut out: Vec<u8> = packed
        .par_chunks(GROUPS)
        .flat_map_iter(|packed| {
            let halves: Vec<RistrettoPoint> = packed.iter().map(|point| point * half).collect();
            RistrettoPoint::double_and_compress_batch(&halves)
        })
        .flat_map_iter(|point| point.to_bytes())
        .collect();
    half.zeroize();
    let statement = statement(key, silo, &digest_cells(cells), &out, place);
    out.extend(prove_shares(secret, &statement, &packed, seed));
    debug_assert_eq!(out.len(), share_bytes(count));
    Ok(out)
}

/// The encodings of 2·v·U for all v below 2^16, and the way back to v. Made once a run.
pub struct Decoder {
    hops: u16,
    encodings: Vec<[u8; POINT_BYTES]>,
    slots: Vec<u32>,
}

const VALUES: usize = 1 << PACKED;
const SLOTS: usize = 2 * VALUES;
const EMPTY: u32 = u32::MAX;

impl Decoder {
    /// The table for cells that have made `hops` hops.
    pub fn new(hops: u16) -> Self {
        let unit = unit(hops);
        let row = 1 << (PACKED / 2);
        let scale = (0..hops).fold(Scalar::ONE, |scale, _| scale + scale);
        let encodings: Vec<[u8; POINT_BYTES]> = (0..VALUES / row)
            .into_par_iter()
            .flat_map_iter(|start| {
                let first =
                    RISTRETTO_BASEPOINT_TABLE * &(scale * Scalar::from((start * row) as u64));
                let points: Vec<RistrettoPoint> =
                    std::iter::successors(Some(first), |point| Some(point + unit))
                        .take(row)
                        .collect();
                RistrettoPoint::double_and_compress_batch(&points)
            })
            .map(|point| point.to_bytes())
            .collect();
        let mut slots = vec![EMPTY; SLOTS];
        for (value, encoding) in encodings.iter().enumerate() {
            let mut slot = start_of(encoding);
            while slots[slot] != EMPTY {
                slot = (slot + 1) % SLOTS;
            }
            slots[slot] = value as u32;
        }
        Self {
            hops,
            encodings,
            slots,
        }
    }

    /// The hops of the cells that this table decodes.
    pub fn hops(&self) -> u16 {
        self.hops
    }

    /// The number whose double is encoded, compared in full.
    fn lookup_vartime(&self, encoding: &[u8; POINT_BYTES]) -> Option<u16> {
        let mut slot = start_of(encoding);
        while self.slots[slot] != EMPTY {
            let value = self.slots[slot];
            if &self.encodings[value as usize] == encoding {
                return Some(value as u16);
            }
            slot = (slot + 1) % SLOTS;
        }
        None
    }
}

/// Encodings look uniform: any of their bits serve as a hash.
fn start_of(encoding: &[u8; POINT_BYTES]) -> usize {
    let [a, b, c, ..] = *encoding;
    u32::from_le_bytes([a, b, c, 0]) as usize % SLOTS
}

/// One silo's shares, decoded and proved.
fn accept_shares(
    key: &JointKey,
    silo: usize,
    cells: &[u8; 64],
    packed: &[RistrettoPoint],
    message: &[u8],
    place: Place,
) -> Result<Vec<RistrettoPoint>, Error> {
    let expected = packed.len() * POINT_BYTES + PROOF_BYTES;
    check_length("shares", Some(silo), message.len(), expected)?;
    let (shares, proof) = message.split_at(packed.len() * POINT_BYTES);
    let (encoded, _) = shares.as_chunks::<POINT_BYTES>();
    let points = encoded
        .iter()
        .enumerate()
        .map(|(group, bytes)| decode_vartime(bytes, "share", Some(silo), group))
        .collect::<Result<Vec<_>, _>>()?;
    let statement = statement(key, silo, cells, shares, place);
    verify_shares(key.key(silo), &statement, packed, &points, proof, silo)?;
    Ok(points)
}

/// Checks all silos' shares of a chunk, in silo order, and opens it: one bit per cell, packed as
/// everywhere.
pub fn combine(
    key: &JointKey,
    decoder: &Decoder,
    cells: &[u8],
    shares: &[&[u8]],
    chunk: u64,
) -> Result<Vec<u8>, Error> {
    let count = count_cells(cells)?;
    if shares.len() != key.silos() {
        return Err(Error::Shares {
            expected: key.silos(),
            found: shares.len(),
        });
    }
    let hops = decoder.hops;
    let packed = over_groups(cells, |first, cells| {
        Ok((
            pack_vartime(cells, first)?,
            pack_half_vartime(cells, first, 1)?,
        ))
    })?;
    let (first, mut plain): (Vec<_>, Vec<_>) = packed.into_iter().unzip();
    let digest = digest_cells(cells);
    let accepted: Vec<Result<Vec<RistrettoPoint>, Error>> = shares
        .par_iter()
        .enumerate()
        .map(|(silo, message)| {
            accept_shares(key, silo, &digest, &first, message, Place { chunk, hops })
        })
        .collect();
    for points in accepted {
        for (plain, point) in plain.iter_mut().zip(points?) {
            *plain -= point;
        }
    }
    let encoded = RistrettoPoint::double_and_compress_batch(&plain);
    let mut bits = Vec::with_capacity(2 * encoded.len());
    for (group, point) in encoded.iter().enumerate() {
        let cell = group * PACKED;
        let here = PACKED.min(count - cell);
        let value = decoder
            .lookup_vartime(&point.to_bytes())
            .filter(|&value| u32::from(value) >> here == 0)
            .ok_or(Error::Plaintext { cell })?;
        bits.extend(value.to_le_bytes());
    }
    bits.truncate(count.div_ceil(8));
    Ok(bits)
}
