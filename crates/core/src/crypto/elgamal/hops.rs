//! What a silo does with a chunk in each variant of the paper's Algorithm 3, coins included.
//!
//! Coins are exact (`dp::bernoulli`) and drawn for every cell, whatever the silo holds. One code
//! path serves all variants: they differ in the bits and masks that are fed into it.

use zeroize::Zeroizing;

use super::cells::{count_cells, encrypt, flip, overwrite};
use super::keys::JointKey;
use super::transcript::Transcript;
use super::{Error, Place, Seed, check_length};
use crate::dp::bernoulli::{Probability, coupled};

/// How the union is made noisy.
#[derive(Clone, Debug)]
pub enum Variant {
    /// Algorithm 3 line by line, RR flipping with probability p. An edge with k holders costs
    /// k·ε: for reproduction only.
    Printed(Probability),
    /// The paper's prose: a later holder overwrites with Enc(RR(1)). One RR reaches the output.
    Replace(Probability),
    /// Pass 1 of `blinded`: the union exactly. The noise is [`flip_hop`]'s, in pass 2.
    Blinded,
}

/// Exact coins, one a cell; the random words depend on seed, run and place alone.
fn coins(
    step: &str,
    key: &JointKey,
    p: &Probability,
    count: usize,
    place: Place,
    seed: &Seed,
) -> Zeroizing<Vec<u8>> {
    let mut rng = Transcript::new("coins")
        .bytes(step.as_bytes())
        .bytes(key.binding())
        .number(place.chunk)
        .number(place.hops.into())
        .bytes(seed)
        .streams()
        .block(0);
    let mut out = Zeroizing::new(vec![0; count.div_ceil(8)]);
    for bytes in out.chunks_mut(8) {
        let (word, _) = coupled(&mut rng, p, p);
        bytes.copy_from_slice(&word.to_le_bytes()[..bytes.len()]);
    }
    out
}

/// RR(bit): the bit, flipped where the coin is set.
fn respond(bits: &[u8], coins: &[u8]) -> Zeroizing<Vec<u8>> {
    Zeroizing::new(bits.iter().zip(coins).map(|(x, coin)| x ^ coin).collect())
}

fn ones(count: usize) -> Vec<u8> {
    vec![u8::MAX; count.div_ceil(8)]
}

/// The first silo's step: cells from nothing.
pub fn first_hop(
    key: &JointKey,
    bits: &[u8],
    count: usize,
    variant: &Variant,
    chunk: u64,
    seed: &Seed,
) -> Result<Vec<u8>, Error> {
    check_length("bits", None, bits.len(), count.div_ceil(8))?;
    let place = Place { chunk, hops: 0 };
    match variant {
        // Paper, Algorithm 3, line 5: Y_j = 1 where E_j ∈ E_1, else 0. (`bits` is Y.)
        // Paper, Algorithm 3, line 6: Y'_j = Y_j w.p. e^ε/(1+e^ε), 1 − Y_j w.p. 1/(1+e^ε).
        // Paper, Algorithm 3, line 7: encrypt Y' with pk; send Enc(Y') to client C_2.
        Variant::Printed(p) | Variant::Replace(p) => {
            let flips = coins("first hop", key, p, count, place, seed);
            encrypt(key, &respond(bits, &flips), count, chunk, seed)
        }
        Variant::Blinded => encrypt(key, bits, count, chunk, seed),
    }
}

/// A later silo's step: the cells that came in, with this silo's pairs put over them.
pub fn hop(
    key: &JointKey,
    cells: &[u8],
    bits: &[u8],
    variant: &Variant,
    place: Place,
    seed: &Seed,
) -> Result<Vec<u8>, Error> {
    let count = count_cells(cells)?;
    check_length("bits", None, bits.len(), count.div_ceil(8))?;
    match variant {
        // Paper, Algorithm 3, lines 8 and 9: for each client C_i, i ∈ [2, m]; for each bit Y'_j.
        // Paper, Algorithm 3, line 10: if E_j ∈ E_i
        // Paper, Algorithm 3, line 11:   if RR(1) = 1 then Enc(Y'_j) ← Enc(1)
        // Paper, Algorithm 3, line 12:   else if RR(1) = 0 then Enc(Y'_j) ← Enc(Y'_j)
        // Paper, Algorithm 3, line 13: else if E_j ∉ E_i
        // Paper, Algorithm 3, line 14:   if RR(0) = 1 then Enc(Y'_j) ← Enc(1)
        // Paper, Algorithm 3, line 15:   else if RR(0) = 0 then Enc(Y'_j) ← Enc(Y'_j)
        // (Where it keeps a cell, the paper passes it on unchanged; here it is re-randomised.)
        Variant::Printed(p) => {
            let flips = coins("hop", key, p, count, place, seed);
            let mask = respond(bits, &flips);
            overwrite(key, cells, &mask, &ones(count), place, seed)
        }
        // Paper, section III-C: "flip '1' with RR and then replace Enc(Y'_j) with Enc(RR(1))".
        Variant::Replace(p) => {
            let flips = coins("hop", key, p, count, place, seed);
            let values = respond(&ones(count), &flips);
            overwrite(key, cells, bits, &values, place, seed)
        }
        Variant::Blinded => overwrite(key, cells, bits, &ones(count), place, seed),
    }
}

/// Pass 2 of `blinded`: every cell is flipped with probability b, by a coin of this silo alone.
pub fn flip_hop(
    key: &JointKey,
    cells: &[u8],
    b: &Probability,
    place: Place,
    seed: &Seed,
) -> Result<Vec<u8>, Error> {
    let count = count_cells(cells)?;
    let flips = coins("flip", key, b, count, place, seed);
    flip(key, cells, &flips, place, seed)
}

#[cfg(test)]
mod tests {
    use super::super::tests::party;
    use super::*;

    /// Many more coins than can be decrypted in a test, enough to see a bias of 0.2 %.
    #[test]
    fn coins_have_their_probability_in_every_lane() {
        let (key, _) = party(1);
        let (words, place) = (1 << 17, Place { chunk: 0, hops: 1 });
        for (num, den) in [(3, 10), (1, 21)] {
            let p = Probability::ratio(num, den).unwrap();
            let drawn = coins("hop", &key, &p, 64 * words, place, &[1; 32]);
            let mut lanes = [0u64; 64];
            for word in drawn.as_chunks::<8>().0 {
                let word = u64::from_le_bytes(*word);
                for (lane, ones) in lanes.iter_mut().enumerate() {
                    *ones += word >> lane & 1;
                }
            }
            // Seven standard deviations: a false alarm in 10^10 runs for all lanes together.
            let (p, n) = (num as f64 / den as f64, words as f64);
            let far =
                |ones: u64, n: f64| (ones as f64 - n * p).abs() > 7.0 * (n * p * (1.0 - p)).sqrt();
            assert!(!lanes.iter().any(|&ones| far(ones, n)), "{lanes:?}");
            assert!(!far(lanes.iter().sum(), 64.0 * n), "{lanes:?}");
        }
    }

    #[test]
    fn the_last_coins_of_any_count_are_drawn() {
        let (key, _) = party(1);
        let (one, place) = (
            Probability::ratio(1, 1).unwrap(),
            Place { chunk: 0, hops: 1 },
        );
        for count in 1..200 {
            let drawn = coins("hop", &key, &one, count, place, &[1; 32]);
            assert_eq!(drawn.len(), count.div_ceil(8));
            assert!(drawn.iter().all(|&byte| byte == u8::MAX));
        }
    }
}
