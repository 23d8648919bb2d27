//! The wire of the masked union beside the one that it replaced, and keystreams to choose from, on
//! one thread.
//!
//! Prints a line for each: a name and a number. Peers take turns; each number is the best of many
//! short rounds. `make bench-union` reads this.

mod former;

use std::hint::black_box;
use std::time::Instant;

use chacha20::cipher::{KeyIvInit, StreamCipher};
use chacha20::{ChaCha20, ChaCha20Rng};
use rand_core::{Rng, SeedableRng};
use silograph_core::crypto::keystream::StreamKey;
use silograph_core::crypto::masked::{self, SharedSeed};
use silograph_core::crypto::packed::{Ring, Sum};
use silograph_core::dp::bernoulli::Probability;

const Q: u32 = 21;
const SILOS: usize = 4;
const PAIRS: usize = 1 << 18;
const STREAM: usize = 1 << 16;
const ROUNDS: usize = 200;

fn seconds(work: impl FnOnce()) -> f64 {
    let start = Instant::now();
    work();
    start.elapsed().as_secs_f64()
}

/// The best time of each contestant.
fn best(contestants: &mut [(&str, &mut dyn FnMut())]) -> Vec<f64> {
    let mut times = vec![f64::INFINITY; contestants.len()];
    for _ in 0..ROUNDS {
        for (time, (_, work)) in times.iter_mut().zip(&mut *contestants) {
            *time = time.min(seconds(work));
        }
    }
    times
}

fn show(unit: f64, contestants: &mut [(&str, &mut dyn FnMut())], rate: bool) {
    let times = best(contestants);
    for ((name, _), time) in contestants.iter().zip(times) {
        let number = if rate { unit / time } else { time * unit };
        println!("{name}: {number:.3}");
    }
}

fn wires() {
    let ring = Ring::new(Q).expect("a modulus");
    // b at epsilon 3, t = 1.
    let b = Probability::ratio(217, 10_000).expect("a probability");
    let bits: Vec<u64> = (0..PAIRS as u64 / 64)
        .map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15))
        .collect();
    let nothing = vec![0u64; bits.len()];
    let shared: Vec<SharedSeed> = (1..SILOS as u8)
        .map(|peer| SharedSeed {
            seed: [peer; 32],
            add: peer > 1,
        })
        .collect();
    let size = ring.bytes(PAIRS);
    let mut bytes = vec![0; PAIRS];
    let (mut words, mut other) = (vec![0; size], vec![0; size]);
    former::contribute(Q as u8, &b, &bits, &mut bytes, [9; 32], &shared);
    masked::contribute(ring, &b, (&bits, PAIRS), &mut words, [9; 32], &shared);
    let (sent_bytes, sent_words) = (bytes.clone(), words.clone());
    println!(
        "bytes a pair, former: {:.3}",
        bytes.len() as f64 / PAIRS as f64
    );
    println!(
        "bytes a pair, packed: {:.3}",
        words.len() as f64 / PAIRS as f64
    );
    show(
        1e9 / PAIRS as f64,
        &mut [
            ("ns a pair, contributions, former", &mut || {
                former::contribute(Q as u8, &b, &bits, &mut bytes, [9; 32], &shared);
            }),
            ("ns a pair, contributions, packed", &mut || {
                masked::contribute(ring, &b, (&bits, PAIRS), &mut words, [9; 32], &shared);
            }),
            (
                "ns a pair, contributions, packed, nothing held",
                &mut || {
                    masked::contribute(ring, &b, (&nothing, PAIRS), &mut other, [9; 32], &shared);
                },
            ),
            ("ns a pair, four added and opened, former", &mut || {
                let mut total = vec![0; PAIRS];
                for _ in 0..SILOS {
                    former::accumulate(Q as u8, &mut total, &sent_bytes);
                }
                black_box(former::open(&total));
            }),
            ("ns a pair, four added and opened, packed", &mut || {
                let mut total = Sum::new(ring, PAIRS);
                for _ in 0..SILOS {
                    total.add(&sent_words).expect("a vector");
                }
                black_box(total.nonzero());
            }),
        ],
        false,
    );
}

fn keystreams() {
    let mut buffers = [const { [0u8; STREAM] }; 3];
    let [a, b, c] = &mut buffers;
    let mut rng = ChaCha20Rng::from_seed([7; 32]);
    let mut chacha = ChaCha20::new(&[7; 32].into(), &[0; 12].into());
    let key = StreamKey::new(&[7; 32]);
    let mut aes = key.stream(0);
    show(
        STREAM as f64 / 1e9,
        &mut [
            ("GB/s, ChaCha20 as a generator", &mut || {
                rng.fill_bytes(a);
                black_box(&a);
            }),
            ("GB/s, ChaCha20 as a cipher", &mut || {
                chacha.write_keystream(b);
                black_box(&b);
            }),
            ("GB/s, AES-256-CTR", &mut || {
                aes.fill(c);
                black_box(&c);
            }),
        ],
        true,
    );
}

fn main() {
    rayon::ThreadPoolBuilder::new()
        .num_threads(1)
        .use_current_thread()
        .build_global()
        .expect("the first pool");
    keystreams();
    wires();
}
