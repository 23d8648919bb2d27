//! Σ d² of shared numbers, with dealt random squares.
//!
//! The dealer shares random a and a². The silos open e = d − a, which is uniform as long as one
//! silo's share of a is unknown, and d² = e² + 2e·a + a².

/// A silo's share of what is opened.
pub fn masked(numbers: &[u64], masks: &[u64]) -> Vec<u64> {
    let both = numbers.iter().zip(masks);
    both.map(|(d, a)| d.wrapping_sub(*a)).collect()
}

/// The dealer's step: from a and the sum of all shares of a² but one, that one.
pub fn correction(numbers: &[u64], others: &mut [u64]) {
    for (sum, a) in others.iter_mut().zip(numbers) {
        *sum = a.wrapping_mul(*a).wrapping_sub(*sum);
    }
}

/// A silo's share of Σ d²; the first silo adds what all know.
pub fn share(opened: &[u64], masks: &[u64], squares: &[u64], first: bool) -> u64 {
    let terms = opened.iter().zip(masks).zip(squares);
    terms.fold(0, |sum: u64, ((e, a), square)| {
        let known = if first { e.wrapping_mul(*e) } else { 0 };
        let crossed = e.wrapping_mul(*a).wrapping_mul(2);
        sum.wrapping_add(known)
            .wrapping_add(crossed)
            .wrapping_add(*square)
    })
}
