//! Six times the number of triangles, tr(X³), from shares of the matrix X.
//!
//! The dealer shares a random symmetric R with a zero diagonal, R² right of the diagonal, and
//! tr(R³). The silos open D = X − R, uniform as long as one silo's share of R is unknown. Then
//!
//! tr(X³) = tr(D³) + 3⟨D², R⟩ + 3⟨D, R²⟩ + tr(R³),
//!
//! since D and R are symmetric; D² is public to the silos, and each computes it for itself. All
//! inner products are twice the sum over the pairs i < j, the diagonals of D and R being zero.

use crate::graph::simd::Level;
use crate::symmetric::matrix::Triangle;
use crate::symmetric::square;
use std::ops::Range;

/// A silo's shares of X become its shares of D = X − R.
pub fn difference(shares: &mut [u64], masks: &[u64]) {
    for (x, r) in shares.iter_mut().zip(masks) {
        *x = x.wrapping_sub(*r);
    }
}

/// Σ x·y over some pairs.
pub fn inner(x: &[u64], y: &[u64]) -> u64 {
    let products = x.iter().zip(y);
    products.fold(0, |sum, (x, y)| sum.wrapping_add(x.wrapping_mul(*y)))
}

/// What a silo sums D² against: 3R, and for the first silo D too; in place of its shares of R.
pub fn weights(masks: &mut [u64], opened: &[u64], first: bool) {
    for (r, d) in masks.iter_mut().zip(opened) {
        let known = if first { *d } else { 0 };
        *r = r.wrapping_mul(3).wrapping_add(known);
    }
}

/// Σ (D²)_ij·w_ij over the pairs i < j of some rows; `weights` are those of these rows.
pub fn contract(opened: Triangle<'_>, rows: Range<usize>, weights: &[u64]) -> u64 {
    square::contract(opened, rows, weights, Level::best())
}

/// A silo's share of tr(X³) from its sums over all pairs i < j, and its share of tr(R³).
pub fn share(contracted: u64, inner: u64, trace: u64) -> u64 {
    let squares = contracted.wrapping_mul(2);
    squares
        .wrapping_add(inner.wrapping_mul(6))
        .wrapping_add(trace)
}

/// The dealer's tr(R³), from Σ (R²)_ij·R_ij over all pairs i < j.
pub fn trace(contracted: u64) -> u64 {
    contracted.wrapping_mul(2)
}
