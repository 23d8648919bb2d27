//! AND of two XOR-shared bit vectors with a dealt Beaver triple, 64 bits to a word.
//!
//! D. Beaver, Efficient multiparty protocols using circuit randomization, CRYPTO 1991. With dealt
//! shares of random a, b and of c = ab the silos open d = x ⊕ a and e = y ⊕ b, and
//! xy = c ⊕ d·b ⊕ e·a ⊕ d·e, which is linear in what is shared. d and e are uniform as long as one
//! silo's shares of a and b are unknown, so opening them shows nothing.

/// One silo's shares of two random vectors and of their product.
pub struct Triple {
    /// Its share of a.
    pub left: Vec<u64>,
    /// Its share of b.
    pub right: Vec<u64>,
    /// Its share of ab.
    pub product: Vec<u64>,
}

/// The dealer's step: from a, b and the XOR of all shares of ab but one, that one.
pub fn correction(a: &[u64], b: &[u64], others: &mut [u64]) {
    for ((c, a), b) in others.iter_mut().zip(a).zip(b) {
        *c ^= a & b;
    }
}

/// A silo's share of what is opened: x ⊕ a, or y ⊕ b.
pub fn masked(share: &[u64], mask: &[u64]) -> Vec<u64> {
    share.iter().zip(mask).map(|(x, a)| x ^ a).collect()
}

/// A silo's share of xy from the opened d and e. The first silo adds what all know.
pub fn and(d: &[u64], e: &[u64], triple: &Triple, first: bool) -> Vec<u64> {
    let known = if first { u64::MAX } else { 0 };
    let shares = triple.left.iter().zip(&triple.right).zip(&triple.product);
    let opened = d.iter().zip(e);
    shares
        .zip(opened)
        .map(|(((a, b), c), (d, e))| c ^ (d & b) ^ (e & a) ^ (d & e & known))
        .collect()
}
