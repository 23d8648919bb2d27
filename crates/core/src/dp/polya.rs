//! Shares of discrete Laplace noise: h of them, drawn by h parties apart, sum to one whole.
//!
//! A share is the difference of two independent Pólya variables (negative binomial of shape 1/h),
//! P(k) ∝ p^k·Π_{j≤k} ((j−1)·h+1)/(j·h), p = e^(−den/num). Shapes add, so the sum of h of them has
//! shape 1, which is the geometric law; and the difference of two geometric variables is discrete
//! Laplace. (S. Goryczka, L. Xiong, A comprehensive comparison of multiparty secure additions with
//! differential privacy, 2017.)
//!
//! # The sampler
//!
//! A negative binomial variable is a compound Poisson sum: from ((1−p)/(1−pz))^r =
//! exp(Σ_l (r·p^l/l)·(z^l − 1)) it is Σ l·N_l with independent N_l ~ Poisson(r·p^l/l), l ≥ 1. These
//! are the points of one Poisson process on the integers, drawn by thinning a simpler one:
//!
//! - Let 2^i be the least power of two with 2^i ≥ num/den. For each block [2^j, 2^(j+1)) below it,
//!   Poisson(r) points fall uniformly: r/2^j at each l. A point stays with probability
//!   (2^j/l)·p^l ≤ 1, which leaves r·p^l/l.
//! - From 2^i on, Poisson(r) points fall: each on a level c ≥ 0 with probability 2^−(c+1), and
//!   uniformly within the block [2^(i+c), 2^(i+c+1)). It stays with probability
//!   (2^(i+c)/l)·2^(c+1)·p^l, which again leaves r·p^l/l. It is a probability since l·den/num ≥ 2^c ≥
//!   c+1: the coin of 2^(c+1)·p^l is c+1 coins of 2/e, 2^c − (c+1) coins of 1/e, and one of
//!   e^(−(l·den/num − 2^c)).
//!
//! Every coin is rational or a rational power of e, so the law is exact, and a draw takes
//! O(log scale) coins. (Proposing a geometric k and accepting it with the product above is exact as
//! well, but accepts with probability (1−p)^(1−1/h) only: once in a million at scale 10^7, h = 8.)

use chacha20::ChaCha20Rng;
use rand_core::SeedableRng;

use super::coins::Draws;
use super::laplace::{Scale, geometric, until};

/// The most shares.
pub const MOST_SHARES: u64 = 64;

/// Poisson of mean 1/h, h ≥ 2.
///
/// n heads of a fair coin, accepted with Π_{j≤n} 2/(h·j): P(n) ∝ 2^−n·(2/h)^n/n! = (1/h)^n/n!.
fn poisson(draws: &mut impl Draws, h: u64) -> u32 {
    until(|| try_poisson(draws, h))
}

fn try_poisson(draws: &mut impl Draws, h: u64) -> Option<u32> {
    let mut n = 0;
    while draws.toss(1, 2) {
        n += 1;
        if !draws.toss(2, h * u64::from(n)) {
            return None;
        }
    }
    Some(n)
}

/// A point of the block [2^j, 2^(j+1)) that coins of 2^j/l and e^(−(l·den/num − whole)) keep.
fn in_block(draws: &mut impl Draws, scale: Scale, j: u32, whole: u64) -> Option<u64> {
    let l = (1 << j) + draws.below(1 << j);
    (draws.toss(1 << j, l) && scale.decay(draws, l, whole)).then_some(l)
}

/// A point from 2^i on, thinned.
fn in_tail(draws: &mut impl Draws, scale: Scale, i: u32) -> Result<Option<u64>, Overflow> {
    let mut c = 0;
    while draws.toss(1, 2) {
        c += 1;
    }
    // 2^c, or more coins than ever come up in a row.
    let whole = 1u64.checked_shl(c).unwrap_or(u64::MAX);
    let levels = u64::from(c) + 1;
    let stays =
        (0..levels).all(|_| draws.two_over_e()) && (levels..whole).all(|_| draws.one_over_e());
    if !stays {
        return Ok(None);
    }
    if i + c > 61 {
        return Err(Overflow);
    }
    Ok(in_block(draws, scale, i + c, whole))
}

/// A value that does not fit. It takes a point that 2^c ≥ 2^12 coins have kept, or a sum of many:
/// see [`Scale`].
struct Overflow;

fn add(sum: i64, point: Option<u64>) -> Result<i64, Overflow> {
    sum.checked_add_unsigned(point.unwrap_or(0)).ok_or(Overflow)
}

fn points(draws: &mut impl Draws, scale: Scale, h: u64) -> Result<i64, Overflow> {
    let (mut sum, i) = (0i64, scale.level());
    for j in 0..i {
        for _ in 0..poisson(draws, h) {
            sum = add(sum, in_block(draws, scale, j, 0))?;
        }
    }
    for _ in 0..poisson(draws, h) {
        sum = add(sum, in_tail(draws, scale, i)?)?;
    }
    Ok(sum)
}

/// The Pólya law of shape 1/h; for h = 1 the geometric law.
///
/// A draw that does not fit is made again (see [`Scale`] for how seldom that is).
pub fn polya(draws: &mut impl Draws, scale: Scale, h: u64) -> i64 {
    assert!((1..=MOST_SHARES).contains(&h), "1 to 64 shares");
    if h == 1 {
        return geometric(draws, scale);
    }
    until(|| points(draws, scale, h).ok())
}

/// One of h shares of discrete Laplace noise.
pub fn polya_difference(draws: &mut impl Draws, scale: Scale, h: u64) -> i64 {
    polya(draws, scale, h) - polya(draws, scale, h)
}

/// So many independent shares. Deterministic in the seed.
pub fn share_noise(count: usize, scale: Scale, h: u64, seed: [u8; 32]) -> Vec<i64> {
    let mut rng = ChaCha20Rng::from_seed(seed);
    (0..count)
        .map(|_| polya_difference(&mut rng, scale, h))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::coins::tree::{assert_law, walk};
    use super::*;

    /// P(k) of the Pólya law of shape r.
    fn law(num: u64, den: u64, r: f64) -> impl Fn(i64) -> f64 {
        let p = (-(den as f64) / num as f64).exp();
        move |k| {
            (1..=k).fold((1.0 - p).powf(r), |all, j| {
                all * p * (j as f64 - 1.0 + r) / j as f64
            })
        }
    }

    const SCALES: [(u64, u64); 6] = [(1, 5), (1, 1), (3, 2), (2, 1), (9, 2), (16, 1)];

    #[test]
    fn every_path_together_is_the_poisson_law() {
        for h in [2u64, 3, 7, 64] {
            let r = 1.0 / h as f64;
            // An attempt succeeds with probability e^r/2.
            let each = |n: u32| (1..=n).fold(0.5, |all, j| all * r / f64::from(j));
            let law = |n: Option<u32>| n.map_or(1.0 - r.exp() / 2.0, each);
            assert_law(walk(1e-14, |d| try_poisson(d, h)), 1e-11, law);
        }
    }

    /// Poisson(r) points, each of which stays at l with probability p^l/l: r·p^l/l at every l.
    #[test]
    fn every_path_of_a_point_leaves_the_right_intensity() {
        for (num, den) in SCALES {
            let scale = Scale::new(num, den).unwrap();
            let (p, i) = ((-(den as f64) / num as f64).exp(), scale.level());
            let at = |l: u64| p.powi(l as i32) / l as f64;
            let lost = |from: u64, to: u64| 1.0 - (from..to).map(at).sum::<f64>();
            for j in 0..i {
                let law = |l: Option<u64>| l.map_or_else(|| lost(1 << j, 2 << j), at);
                assert_law(walk(1e-14, |d| in_block(d, scale, j, 0)), 1e-9, law);
            }
            let tail = walk(1e-12, |d| in_tail(d, scale, i).ok().flatten());
            let law = |l: Option<u64>| l.map_or_else(|| lost(1 << i, 4096 << i), at);
            assert_law(tail, 1e-9, law);
        }
    }

    /// The points all together, as far as paths of 10^−7 and more go.
    #[test]
    fn every_path_together_is_the_polya_law() {
        for (num, den) in [(1, 3), (1, 1), (3, 2)] {
            for h in [2, 7] {
                let scale = Scale::new(num, den).unwrap();
                let found = walk(1e-7, |d| polya(d, scale, h));
                assert_law(found, 5e-2, law(num, den, 1.0 / h as f64));
            }
        }
    }

    #[test]
    fn one_share_is_the_whole() {
        let scale = Scale::new(3, 2).unwrap();
        assert_law(walk(1e-7, |d| polya(d, scale, 1)), 5e-3, law(3, 2, 1.0));
    }

    #[test]
    fn the_largest_scale_fits() {
        let mut rng = ChaCha20Rng::from_seed([5; 32]);
        let scale = Scale::new(1 << 50, 1).unwrap();
        let drawn: Vec<i64> = (0..20_000).map(|_| polya(&mut rng, scale, 2)).collect();
        // Mean scale/2, standard deviation scale/√2: seven deviations of the mean of 20,000.
        let mean = drawn.iter().map(|&k| k as f64).sum::<f64>() / 20_000.0 / 2f64.powi(50);
        assert!((mean - 0.5).abs() < 7.0 / 40_000f64.sqrt(), "{mean}");
    }
}
