//! The symmetric square: a line with the wall and processor seconds of each instruction set, on all
//! threads.

use std::hint::black_box;
use std::time::Instant;

use silograph_core::graph::simd::Level;
use silograph_core::symmetric::matrix::{Triangle, pair_count, row_start};
use silograph_core::symmetric::square::{BAND, contract};

fn main() {
    let n = std::env::args().nth(1).and_then(|x| x.parse().ok());
    let n = n.expect("the number of nodes");
    for level in Level::available() {
        let (wall, work) = seconds(n, level);
        println!("{} {wall:.4} {work:.4}", level.name());
    }
}

/// Wall and processor seconds for the whole contraction of an n×n matrix, the best of two.
fn seconds(n: usize, level: Level) -> (f64, f64) {
    let words: Vec<u64> = (0..pair_count(n) as u64)
        .map(|k| k.wrapping_mul(k | 1) << 7)
        .collect();
    let matrix = Triangle::new(n, &words).expect("one word per pair");
    let run = || {
        let (start, before) = (Instant::now(), processor_seconds());
        let bands = (0..n).step_by(BAND).map(|i| i..(i + BAND).min(n));
        let sum = bands.fold(0u64, |sum, rows| {
            let pairs = row_start(n, rows.start)..row_start(n, rows.end);
            sum.wrapping_add(contract(matrix, rows, &words[pairs], level))
        });
        black_box(sum);
        let wall = start.elapsed().as_secs_f64();
        (wall, processor_seconds() - before)
    };
    let (one, other) = (run(), run());
    (one.0.min(other.0), one.1.min(other.1))
}

/// Of all threads, as Linux counts them, in hundredths.
fn processor_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").expect("a Linux");
    let after_name = stat.rsplit(')').next().expect("fields");
    let ticks = after_name.split_whitespace().skip(11).take(2);
    ticks
        .map(|x| x.parse::<f64>().expect("a number"))
        .sum::<f64>()
        / 100.0
}
