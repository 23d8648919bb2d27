//! From XOR-shared bits to shares mod 2^64, with dealt daBits.
//!
//! D. Rotaru, T. Wood, MArBled circuits, INDOCRYPT 2019. A daBit is a random bit r that is shared
//! both ways. The silos open c = x ⊕ r, which is uniform as long as one silo's share of r is
//! unknown, and x = c + r − 2cr is r where c is 0, and 1 − r where it is 1.

/// The dealer's step: from the bits r and the sum of all shares of them but one, that one.
pub fn correction(bits: &[u64], others: &mut [u64]) {
    for (k, sum) in others.iter_mut().enumerate() {
        let r = bits[k / 64] >> (k % 64) & 1;
        *sum = r.wrapping_sub(*sum);
    }
}

/// Turns a silo's shares of r into shares of x = c + r − 2cr; the first silo adds what all know.
pub fn arithmetic(opened: &[u64], shares: &mut [u64], first: bool) {
    for (words, c) in shares.chunks_mut(64).zip(opened) {
        for (k, share) in words.iter_mut().enumerate() {
            let c = c >> k & 1;
            let known = if first { c } else { 0 };
            *share = known.wrapping_add(share.wrapping_mul(1u64.wrapping_sub(2 * c)));
        }
    }
}
