//! What one core of this machine allows: a line for each, with its rate a second.
//!
//! `keystream`: bytes of AES-256-CTR as the masked union draws them. `BLAKE3`: bytes that are hashed as
//! payloads are. `memory`: bytes that copying reads and writes. `popcount LEVEL`: words whose ones are counted, those that four rows have in
//! common with one, in the first cache. `products LEVEL`: products of 64 bits on registers. Each is
//! the best of many rounds that are short: on a busy machine some of them are not interrupted.

use std::hint::black_box;
use std::time::Instant;

use silograph_core::crypto::identity::payload_digest;
use silograph_core::crypto::keystream::StreamKey;
use silograph_core::graph::simd::Level;
use silograph_core::symmetric::simd::on_registers;

const ROUNDS: usize = 300;
const DRAWN: usize = 4096;
const STREAM: usize = 1 << 20;
const PAYLOAD: usize = 600_000;
const COPIED: usize = 1 << 26;
/// Words of a row in the first cache, and how often they are counted in a round.
const WORDS: usize = 256;
const COUNTED: usize = 4096;
const PRODUCTS: usize = 1 << 16;

/// Amount a second of the best round.
fn best(rounds: usize, mut round: impl FnMut() -> usize) -> f64 {
    let rate = |_| {
        let start = Instant::now();
        let amount = round();
        amount as f64 / start.elapsed().as_secs_f64()
    };
    (0..rounds).map(rate).fold(0.0, f64::max)
}

fn popcount(level: Level) -> f64 {
    let (four, one) = (vec![[0x5555_u64; WORDS]; 4], vec![u64::MAX; WORDS]);
    best(ROUNDS, || {
        let count = level.run(
            #[inline(always)]
            || {
                let mut counts = [0u64; 4];
                for _ in 0..COUNTED / 4 {
                    let (four, one) = (black_box(&four), black_box(&one));
                    let rows = four[0].iter().zip(&four[1]).zip(&four[2]).zip(&four[3]);
                    for ((((a, b), c), d), x) in rows.zip(one) {
                        counts[0] += u64::from((a & x).count_ones());
                        counts[1] += u64::from((b & x).count_ones());
                        counts[2] += u64::from((c & x).count_ones());
                        counts[3] += u64::from((d & x).count_ones());
                    }
                }
                counts
            },
        );
        black_box(count);
        WORDS * COUNTED
    })
}

fn main() {
    let key = StreamKey::new(&[7; 32]);
    let mut drawn = [0u8; DRAWN];
    let keystream = best(ROUNDS, || {
        let mut stream = key.stream(0);
        for _ in 0..STREAM / DRAWN {
            stream.fill(&mut drawn);
            black_box(&drawn);
        }
        STREAM
    });
    println!("keystream {keystream:.0}");
    let payload = vec![7u8; PAYLOAD];
    let hashed = best(ROUNDS, || {
        black_box(payload_digest(black_box(&payload)));
        PAYLOAD
    });
    println!("BLAKE3 {hashed:.0}");
    let (source, mut target) = (vec![1u8; COPIED], vec![0u8; COPIED]);
    let copy = best(ROUNDS / 10, || {
        target.copy_from_slice(black_box(&source));
        black_box(&target);
        2 * COPIED
    });
    println!("memory {copy:.0}");
    for level in Level::available() {
        println!("popcount {} {:.0}", level.name(), popcount(level));
        // Chains of multiplications alone wait for each other on some machines, and additions
        // between them on others.
        let products = f64::max(
            best(ROUNDS, || on_registers::<true>(level, PRODUCTS)),
            best(ROUNDS, || on_registers::<false>(level, PRODUCTS)),
        );
        println!("products {} {products:.0}", level.name());
    }
}
