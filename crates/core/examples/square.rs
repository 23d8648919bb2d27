//! The symmetric square: products a second at every instruction set, and what the multiplier of
//! this machine allows.

use std::hint::black_box;
use std::time::Instant;

use silograph_core::graph::simd::Level;
use silograph_core::symmetric::matrix::{COLUMNS, Line, Triangle, pair_count, row_start};
use silograph_core::symmetric::simd::multiply_add;
use silograph_core::symmetric::square::{BAND, contract};

fn main() {
    let sizes: Vec<usize> = std::env::args()
        .skip(1)
        .filter_map(|x| x.parse().ok())
        .collect();
    for level in Level::available() {
        println!("{} limit {:.3e}", level.name(), limit(level));
        for &n in &sizes {
            println!("{} {n} {:.4}", level.name(), seconds(n, level));
        }
    }
}

/// Products a second that the innermost loop reaches on operands in the first cache, all threads.
fn limit(level: Level) -> f64 {
    const DEPTH: usize = 64;
    const ROWS: usize = 8;
    let tasks = 2000;
    let run = || {
        rayon::broadcast(|_| {
            let left = [3u64; DEPTH * ROWS];
            let right = [Line([5u64; COLUMNS]); DEPTH];
            let mut block = [Line::ZERO; ROWS];
            for _ in 0..tasks {
                multiply_add(level, black_box(&left), black_box(&right), &mut block);
            }
            black_box(block);
        });
    };
    let best = (0..9).map(|_| timed(run)).fold(f64::MAX, f64::min);
    (rayon::current_num_threads() * tasks * DEPTH * ROWS * COLUMNS) as f64 / best
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
