//! The symmetric square: products a second at every instruction set, beside what this machine
//! allows: `limit` is the loop's own instructions on registers alone, `multiplier` only those of
//! them that multiply.

use std::hint::black_box;
use std::time::Instant;

use silograph_core::graph::simd::Level;
use silograph_core::symmetric::matrix::{Triangle, pair_count, row_start};
use silograph_core::symmetric::simd::on_registers;
use silograph_core::symmetric::square::{BAND, contract};

fn main() {
    let sizes: Vec<usize> = std::env::args()
        .skip(1)
        .filter_map(|x| x.parse().ok())
        .collect();
    for level in Level::available() {
        println!("{} limit {:.3e}", level.name(), limit::<true>(level));
        println!("{} multiplier {:.3e}", level.name(), limit::<false>(level));
        for &n in &sizes {
            println!("{} {n} {:.4}", level.name(), seconds(n, level));
        }
    }
}

/// Products a second that all threads could make if no word had to be loaded.
fn limit<const ADDS: bool>(level: Level) -> f64 {
    const ROUNDS: usize = 1 << 16;
    // Each thread's best of short runs: on a busy machine some of them are not interrupted.
    let rates = rayon::broadcast(|_| {
        let rate = |_| {
            let start = Instant::now();
            let products = on_registers::<ADDS>(level, ROUNDS);
            products as f64 / start.elapsed().as_secs_f64()
        };
        (0..500).map(rate).fold(0.0, f64::max)
    });
    rates.iter().sum()
}

/// Seconds for the whole contraction of an n×n matrix.
fn seconds(n: usize, level: Level) -> f64 {
    let words: Vec<u64> = (0..pair_count(n) as u64)
        .map(|k| k.wrapping_mul(k | 1) << 7)
        .collect();
    let matrix = Triangle::new(n, &words).expect("one word per pair");
    let run = || {
        let bands = (0..n).step_by(BAND).map(|i| i..(i + BAND).min(n));
        let sum = bands.fold(0u64, |sum, rows| {
            let pairs = row_start(n, rows.start)..row_start(n, rows.end);
            sum.wrapping_add(contract(matrix, rows, &words[pairs], level))
        });
        black_box(sum);
    };
    (0..2).map(|_| timed(run)).fold(f64::MAX, f64::min)
}

fn timed(run: impl Fn()) -> f64 {
    let start = Instant::now();
    run();
    start.elapsed().as_secs_f64()
}
