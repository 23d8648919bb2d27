//! Whole chunks of cells: encrypt, overwrite, flip. Every cell that comes out has a fresh
//! randomiser.
//!
//! Bits, masks and coins are packed eight a byte, least significant first, as many bytes as the
//! cells need; spare bits of the last byte are ignored.

use curve25519_dalek::constants::{RISTRETTO_BASEPOINT_POINT, RISTRETTO_BASEPOINT_TABLE};
use curve25519_dalek::ristretto::RistrettoPoint;
use curve25519_dalek::traits::Identity;
use rayon::prelude::*;
use subtle::{Choice, ConditionallyNegatable, ConditionallySelectable};
use zeroize::Zeroize;

use super::keys::JointKey;
use super::transcript::{Streams, Transcript, draw_scalar};
use super::{Error, POINT_BYTES, Place, Seed, check_length, decode_vartime};

/// The bytes of a cell on the wire.
pub const CELL_BYTES: usize = 2 * POINT_BYTES;

/// Cells that share a random stream and an inversion.
pub(super) const BLOCK: usize = 64;

/// A decoded cell (c1, c2).
#[derive(Clone, Copy)]
struct Cell {
    c1: RistrettoPoint,
    c2: RistrettoPoint,
}

impl Cell {
    /// An encryption of the plaintext x without a randomiser: only the start of a fresh one.
    fn bare(x: RistrettoPoint) -> Self {
        Self {
            c1: RistrettoPoint::identity(),
            c2: x,
        }
    }

    fn decode_vartime(cells: &[u8], index: usize) -> Result<Self, Error> {
        let (points, _) = cells[index * CELL_BYTES..].as_chunks::<POINT_BYTES>();
        Ok(Self {
            c1: decode_vartime(&points[0], "cell", None, index)?,
            c2: decode_vartime(&points[1], "cell", None, index)?,
        })
    }
}

/// The number of cells in a chunk.
pub(super) fn count_cells(cells: &[u8]) -> Result<usize, Error> {
    let count = cells.len() / CELL_BYTES;
    check_length("chunk", None, cells.len(), count * CELL_BYTES)?;
    Ok(count)
}

/// One bit, as what `subtle` selects by.
fn bit(bits: &[u8], index: usize) -> Choice {
    Choice::from(bits[index / 8] >> (index % 8) & 1)
}

/// The plaintext unit 2^hops·G.
pub(super) fn unit(hops: u16) -> RistrettoPoint {
    (0..hops).fold(RISTRETTO_BASEPOINT_POINT, |point, _| point + point)
}

/// Randomisers that depend on the seed, the place and all inputs of a step.
fn randomisers(
    step: &str,
    key: &JointKey,
    place: Place,
    seed: &Seed,
    inputs: [&[u8]; 3],
) -> Streams {
    let start = Transcript::new("randomisers")
        .bytes(step.as_bytes())
        .bytes(key.binding())
        .number(place.chunk)
        .number(place.hops.into())
        .bytes(seed);
    inputs
        .iter()
        .fold(start, |all, input| all.bytes(input))
        .streams()
}

/// Re-randomises `count` cells and encodes their doubles (see the module above for why).
fn renew(
    key: &JointKey,
    count: usize,
    streams: &Streams,
    base: impl Fn(usize) -> Result<Cell, Error> + Sync,
) -> Result<Vec<u8>, Error> {
    let mut out = vec![0; count * CELL_BYTES];
    let blocks: Vec<Result<(), Error>> = out
        .par_chunks_mut(BLOCK * CELL_BYTES)
        .enumerate()
        .map(|(block, out)| {
            let mut rng = streams.block(block);
            let mut points = Vec::with_capacity(2 * BLOCK);
            for index in block * BLOCK..block * BLOCK + out.len() / CELL_BYTES {
                let cell = base(index)?;
                let mut r = draw_scalar(&mut rng);
                points.push(cell.c1 + RISTRETTO_BASEPOINT_TABLE * &r);
                points.push(cell.c2 + key.table() * &r);
                r.zeroize();
            }
            let encoded = RistrettoPoint::double_and_compress_batch(&points);
            let (places, _) = out.as_chunks_mut::<POINT_BYTES>();
            for (place, point) in places.iter_mut().zip(&encoded) {
                *place = point.to_bytes();
            }
            points.zeroize();
            Ok(())
        })
        .collect();
    // The first bad cell is named, whichever thread met one first.
    blocks.into_iter().collect::<Result<(), Error>>()?;
    Ok(out)
}

/// Fresh encryptions of bits: the first hop of a chunk, out of which cells come with hops = 1.
pub fn encrypt(
    key: &JointKey,
    bits: &[u8],
    count: usize,
    chunk: u64,
    seed: &Seed,
) -> Result<Vec<u8>, Error> {
    check_length("bits", None, bits.len(), count.div_ceil(8))?;
    let place = Place { chunk, hops: 0 };
    let streams = randomisers("encrypt", key, place, seed, [bits, &[], &[]]);
    let (zero, one) = (RistrettoPoint::identity(), unit(0));
    renew(key, count, &streams, |i| {
        let x = RistrettoPoint::conditional_select(&zero, &one, bit(bits, i));
        Ok(Cell::bare(x))
    })
}

/// Where the mask is set, a fresh encryption of the value; elsewhere the cell, re-randomised.
pub fn overwrite(
    key: &JointKey,
    cells: &[u8],
    mask: &[u8],
    values: &[u8],
    place: Place,
    seed: &Seed,
) -> Result<Vec<u8>, Error> {
    let count = count_cells(cells)?;
    check_length("mask", None, mask.len(), count.div_ceil(8))?;
    check_length("values", None, values.len(), count.div_ceil(8))?;
    check_hops(place)?;
    let streams = randomisers("overwrite", key, place, seed, [cells, mask, values]);
    let (zero, one) = (RistrettoPoint::identity(), unit(place.hops));
    renew(key, count, &streams, |i| {
        let old = Cell::decode_vartime(cells, i)?;
        let x = RistrettoPoint::conditional_select(&zero, &one, bit(values, i));
        let (new, chosen) = (Cell::bare(x), bit(mask, i));
        Ok(Cell {
            c1: RistrettoPoint::conditional_select(&old.c1, &new.c1, chosen),
            c2: RistrettoPoint::conditional_select(&old.c2, &new.c2, chosen),
        })
    })
}

/// Where the coin is set, Enc(1) − c; elsewhere c; re-randomised either way.
pub fn flip(
    key: &JointKey,
    cells: &[u8],
    coins: &[u8],
    place: Place,
    seed: &Seed,
) -> Result<Vec<u8>, Error> {
    let count = count_cells(cells)?;
    check_length("coins", None, coins.len(), count.div_ceil(8))?;
    check_hops(place)?;
    let streams = randomisers("flip", key, place, seed, [cells, coins, &[]]);
    let (zero, one) = (RistrettoPoint::identity(), unit(place.hops));
    renew(key, count, &streams, |i| {
        let (mut cell, coin) = (Cell::decode_vartime(cells, i)?, bit(coins, i));
        cell.c1.conditional_negate(coin);
        cell.c2.conditional_negate(coin);
        cell.c2 += RistrettoPoint::conditional_select(&zero, &one, coin);
        Ok(cell)
    })
}

fn check_hops(place: Place) -> Result<(), Error> {
    match place.hops {
        u16::MAX => Err(Error::Hops),
        _ => Ok(()),
    }
}
