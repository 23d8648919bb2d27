//! Openings: what two members know in common is sent by one of them and confirmed by the other.

use sha2::Digest;
use subtle::ConstantTimeEq;

use super::MEMBERS;
use super::chunk::{Fault, Hash, labelled};

/// What is opened to the coordinator: a sum of two components, of bits or of numbers.
pub(super) const BITS: &[u8] = b"silograph/committee/open/v1";
pub(super) const NUMBERS: &[u8] = b"silograph/committee/open-numbers/v1";
/// What is told to a member: the component of numbers that it lacks.
pub(super) const TELL: &[u8] = b"silograph/committee/tell-numbers/v1";

/// Which two components a member opens, and whether it sends their sum or its hash. The halves are
/// those that two members know in common; under the next number the two change places.
pub(super) fn part(number: u64, place: usize) -> ([usize; 2], bool) {
    let half = if place < 2 { [2, 3] } else { [0, 1] };
    (half, (place as u64 + number).is_multiple_of(2))
}

/// The hash that goes with something opened.
pub(super) fn digest(
    label: &[u8],
    view: &Hash,
    number: u64,
    components: &[usize],
    bytes: &[u8],
) -> Hash {
    let mut hash = labelled(label, view, number, components);
    hash.update(bytes);
    hash.finalize().into()
}

/// What a member that knows the sum of its half tells the coordinator: the sum, or its hash.
pub(super) fn said(label: &[u8], view: &Hash, number: u64, place: usize, sum: Vec<u8>) -> Vec<u8> {
    let (half, sends) = part(number, place);
    match sends {
        true => sum,
        false => digest(label, view, number, &half, &sum).to_vec(),
    }
}

/// The coordinator's side: the sums of both halves, of `size` bytes, after each was compared with
/// its hash.
pub(super) fn halves<'a>(
    label: &[u8],
    view: &Hash,
    number: u64,
    size: usize,
    came: [&'a [u8]; MEMBERS],
) -> Result<[&'a [u8]; 2], Fault> {
    let pairs = [[0, 1], [2, 3]].map(|two| match part(number, two[0]).1 {
        true => two,
        false => [two[1], two[0]],
    });
    for [sender, hasher] in pairs {
        if came[sender].len() != size || came[hasher].len() != 32 {
            return Err(Fault::Size);
        }
    }
    for [sender, hasher] in pairs {
        let expected = digest(label, view, number, &part(number, sender).0, came[sender]);
        if !bool::from(expected.ct_eq(came[hasher])) {
            return Err(Fault::Mismatch(sender, hasher));
        }
    }
    Ok(pairs.map(|[sender, _]| came[sender]))
}
