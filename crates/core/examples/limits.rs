//! What this machine allows: keystream and memory traffic, in bytes a second, on all threads.
//!
//! Prints two numbers: AES-256-CTR as the masked union draws it, and copying (read and written bytes
//! both counted). Each is the best of several.

use std::time::Instant;

use rayon::prelude::*;
use silograph_core::crypto::keystream::StreamKey;

const BLOCK: usize = 1 << 16;
const DRAWN: usize = 4096;
const STREAM: usize = 1 << 26;
const COPIED: usize = 1 << 27;
const ROUNDS: usize = 9;

/// Bytes a second of the best round.
fn best(bytes: usize, mut round: impl FnMut()) -> f64 {
    let seconds = (0..ROUNDS).map(|_| {
        let start = Instant::now();
        round();
        start.elapsed().as_secs_f64()
    });
    bytes as f64 / seconds.fold(f64::INFINITY, f64::min)
}

fn main() {
    let key = StreamKey::new(&[7; 32]);
    let keystream = best(STREAM, || {
        (0..STREAM / BLOCK).into_par_iter().for_each(|block| {
            let mut stream = key.stream(block as u64);
            let mut drawn = [0u8; DRAWN];
            for _ in 0..BLOCK / DRAWN {
                stream.fill(&mut drawn);
                std::hint::black_box(&drawn);
            }
        });
    });
    let (source, mut target) = (vec![1u8; COPIED], vec![0u8; COPIED]);
    let copy = best(2 * COPIED, || {
        target
            .par_chunks_mut(1 << 22)
            .zip(source.par_chunks(1 << 22))
            .for_each(|(target, source)| target.copy_from_slice(source));
        std::hint::black_box(&target);
    });
    println!("{keystream:.0} {copy:.0}");
}
