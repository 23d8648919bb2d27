//! The innermost loop of a matrix product mod 2^64, written once for each instruction set.
//!
//! Two products cost one multiplication (Winograd, 1968): in every commutative ring
//!
//! x₀y₀ + x₁y₁ = (x₀ + y₁)(x₁ + y₀) − x₀x₁ − y₀y₁,
//!
//! and what is subtracted belongs to one row or to one column alone, so that it is made once for
//! all products that the row or the column has part in. The loops here make the sums of the first
//! term; [`paired`] and [`add_paired`] make the others.
//!
//! A compiler does not find these loops by itself. AVX-512 multiplies 64-bit words (`vpmullq`).
//! AVX2 multiplies 32-bit halves: with u = u₀ + 2³²u₁ a product is u₀v₀ + 2³²(u₀v₁ + u₁v₀). The
//! first term is one `vpmuludq`. Of the others only 32 bits matter, so one `vpmulld` of u by v with
//! its halves swapped makes both; they are summed apart, in 32 bits, and joined at the end.

use std::hint::black_box;

use super::matrix::{COLUMNS, Line};
use crate::graph::simd::{Kind, Level};

/// The order in which the 32-bit halves of each word are exchanged.
#[cfg(target_arch = "x86_64")]
const SWAPPED: i32 = 0b10_11_00_01;

/// Adds Σ (x₀ + y₁)(x₁ + y₀) over the pairs of neighbours along the depth to the sums of each row.
///
/// `left` is rows of as many words as `right` has lines, an even number; there is a sum for each.
#[inline]
#[allow(unsafe_code)]
pub fn multiply_add(level: Level, left: &[u64], right: &[Line], sums: &mut [Line]) {
    let (right, odd) = right.as_chunks::<2>();
    let (left, rest) = left.as_chunks::<2>();
    assert!(odd.is_empty() && rest.is_empty() && left.len() == right.len() * sums.len());
    if right.is_empty() {
        return;
    }
    match level.kind() {
        // SAFETY: a Level of this kind was made only where the CPU has these features.
        #[cfg(target_arch = "x86_64")]
        Kind::Avx512 => unsafe { wide(left, right, sums) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        Kind::Avx2 => unsafe { halves(left, right, sums) },
        Kind::Portable => whole(left, right, sums),
    }
}

/// Σ x₀x₁ over the pairs of a row.
pub fn paired(row: &[u64]) -> u64 {
    let pairs = row.as_chunks::<2>().0.iter();
    pairs.fold(0, |sum, [x, y]| sum.wrapping_add(x.wrapping_mul(*y)))
}

/// Adds Σ y₀y₁ over the pairs of each column of a panel to its sum.
pub fn add_paired(level: Level, panel: &[Line], sums: &mut Line) {
    level.run(
        #[inline(always)]
        || {
            for [first, second] in panel.as_chunks::<2>().0 {
                for (sum, (x, y)) in sums.0.iter_mut().zip(first.0.iter().zip(&second.0)) {
                    *sum = sum.wrapping_add(x.wrapping_mul(*y));
                }
            }
        },
    );
}

/// Four rows at a time, so that each line is loaded once for all of them.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vpopcntdq")]
fn wide(left: &[[u64; 2]], right: &[[Line; 2]], sums: &mut [Line]) {
    const ROWS: usize = 4;
    let (fours, rest) = sums.as_chunks_mut::<ROWS>();
    let (upper, lower) = left.split_at(fours.len() * ROWS * right.len());
    for (left, sums) in upper.chunks_exact(ROWS * right.len()).zip(fours) {
        wide_rows(left, right, sums);
    }
    for (left, sum) in lower.chunks_exact(right.len()).zip(rest) {
        wide_rows(left, right, std::array::from_mut(sum));
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vpopcntdq")]
fn wide_rows<const ROWS: usize>(left: &[[u64; 2]], right: &[[Line; 2]], lines: &mut [Line; ROWS]) {
    use std::arch::x86_64::{
        __m512i, _mm512_add_epi64, _mm512_mullo_epi64, _mm512_set_epi64, _mm512_set1_epi64,
    };
    const REGISTERS: usize = COLUMNS / 8;
    // The compiler makes one load of eight neighbours.
    let load = |x: &[u64; 8]| {
        let [a, b, c, d, e, f, g, h] = x.map(u64::cast_signed);
        _mm512_set_epi64(h, g, f, e, d, c, b, a)
    };
    let registers = |line: &Line| -> [__m512i; REGISTERS] {
        let (eights, _) = line.0.as_chunks::<8>();
        std::array::from_fn(|c| load(&eights[c]))
    };
    let rows: [&[[u64; 2]]; ROWS] =
        std::array::from_fn(|r| &left[r * right.len()..][..right.len()]);
    let mut sums: [[__m512i; REGISTERS]; ROWS] = std::array::from_fn(|r| registers(&lines[r]));
    for (k, [first, second]) in right.iter().enumerate() {
        let (first, second) = (registers(first), registers(second));
        for (sums, row) in sums.iter_mut().zip(rows) {
            let [x, y] = row[k].map(|x| _mm512_set1_epi64(x.cast_signed()));
            for (sum, (&first, &second)) in sums.iter_mut().zip(first.iter().zip(&second)) {
                let (u, v) = (_mm512_add_epi64(x, second), _mm512_add_epi64(y, first));
                *sum = _mm512_add_epi64(*sum, _mm512_mullo_epi64(u, v));
            }
        }
    }
    for (line, sums) in lines.iter_mut().zip(&sums) {
        let (eights, _) = line.0.as_chunks_mut::<8>();
        for (eight, sum) in eights.iter_mut().zip(sums) {
            store(eight, *sum);
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
#[allow(unsafe_code)]
fn store(words: &mut [u64; 8], register: std::arch::x86_64::__m512i) {
    // SAFETY: the eight words are 64 bytes that may be written.
    unsafe { std::arch::x86_64::_mm512_storeu_si512(words.as_mut_ptr().cast(), register) }
}

/// One row at a time: eight sums and the row's two words leave room for what is between, and words
/// of the panel are used straight from the first cache. With more rows and fewer columns at a time
/// there are as many loads, but of their own; they cost a tenth.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,popcnt")]
fn halves(left: &[[u64; 2]], right: &[[Line; 2]], lines: &mut [Line]) {
    use std::arch::x86_64::{
        __m256i, _mm256_add_epi32, _mm256_add_epi64, _mm256_extract_epi64, _mm256_mul_epu32,
        _mm256_mullo_epi32, _mm256_set_epi64x, _mm256_set1_epi64x, _mm256_setzero_si256,
        _mm256_shuffle_epi32, _mm256_slli_epi64,
    };
    const REGISTERS: usize = COLUMNS / 4;
    // The compiler makes one load of four neighbours.
    let load = |line: &Line, c: usize| -> __m256i {
        let [a, b, c, d] = line.0.as_chunks::<4>().0[c].map(u64::cast_signed);
        _mm256_set_epi64x(d, c, b, a)
    };
    for (row, line) in left.chunks_exact(right.len()).zip(lines) {
        let mut low = [_mm256_setzero_si256(); REGISTERS];
        let mut cross = low;
        for (x, [first, second]) in row.iter().zip(right) {
            let [x, y] = x.map(|x| _mm256_set1_epi64x(x.cast_signed()));
            for (c, (low, cross)) in low.iter_mut().zip(&mut cross).enumerate() {
                let u = _mm256_add_epi64(x, load(second, c));
                let v = _mm256_add_epi64(y, load(first, c));
                *low = _mm256_add_epi64(*low, _mm256_mul_epu32(u, v));
                let v = _mm256_shuffle_epi32::<SWAPPED>(v);
                *cross = _mm256_add_epi32(*cross, _mm256_mullo_epi32(u, v));
            }
        }
        let words = line.0.as_chunks_mut::<4>().0.iter_mut();
        for (words, (low, cross)) in words.zip(low.iter().zip(&cross)) {
            let other = _mm256_shuffle_epi32::<SWAPPED>(*cross);
            let cross = _mm256_slli_epi64::<32>(_mm256_add_epi32(*cross, other));
            let sum = _mm256_add_epi64(*low, cross);
            let made = [
                _mm256_extract_epi64::<0>(sum),
                _mm256_extract_epi64::<1>(sum),
                _mm256_extract_epi64::<2>(sum),
                _mm256_extract_epi64::<3>(sum),
            ];
            for (word, made) in words.iter_mut().zip(made) {
                *word = word.wrapping_add(made.cast_unsigned());
            }
        }
    }
}

/// Four columns at a time.
fn whole(left: &[[u64; 2]], right: &[[Line; 2]], lines: &mut [Line]) {
    const PART: usize = 4;
    for (row, line) in left.chunks_exact(right.len()).zip(lines) {
        for (c, words) in line.0.as_chunks_mut::<PART>().0.iter_mut().enumerate() {
            let mut sums = *words;
            for ([x, y], lines) in row.iter().zip(right) {
                let [first, second] = lines.each_ref().map(|l| &l.0.as_chunks::<PART>().0[c]);
                for (sum, (first, second)) in sums.iter_mut().zip(first.iter().zip(second)) {
                    let (u, v) = (x.wrapping_add(*second), y.wrapping_add(*first));
                    *sum = sum.wrapping_add(u.wrapping_mul(v));
                }
            }
            *words = sums;
        }
    }
}

/// What one thread could make at most: `rounds` of the instructions of [`multiply_add`] on
/// registers alone, without a load; or, with `ADDS` off, of its multiplications alone. Returns the
/// number of products that this stands for.
#[allow(unsafe_code)]
pub fn on_registers<const ADDS: bool>(level: Level, rounds: usize) -> usize {
    match level.kind() {
        // SAFETY: a Level of this kind was made only where the CPU has these features.
        #[cfg(target_arch = "x86_64")]
        Kind::Avx512 => unsafe { wide_on_registers::<ADDS>(rounds) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        Kind::Avx2 => unsafe { halves_on_registers::<ADDS>(rounds) },
        Kind::Portable => whole_on_registers::<ADDS>(rounds),
    }
}

// Each sum is a chain of its own, and there are enough of them to hide how long an instruction
// takes. Most depend on themselves, so that a compiler can leave nothing out.

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vpopcntdq")]
fn wide_on_registers<const ADDS: bool>(rounds: usize) -> usize {
    use std::arch::x86_64::{_mm512_add_epi64, _mm512_mullo_epi64, _mm512_set1_epi64};
    const CHAINS: usize = 16;
    let [x, y] = black_box([3, 5]).map(|x| _mm512_set1_epi64(x));
    let mut sums = [y; CHAINS];
    for _ in 0..rounds {
        for sum in &mut sums {
            *sum = if ADDS {
                let (u, v) = (_mm512_add_epi64(*sum, x), _mm512_add_epi64(*sum, y));
                _mm512_add_epi64(*sum, _mm512_mullo_epi64(u, v))
            } else {
                _mm512_mullo_epi64(*sum, *sum)
            };
        }
    }
    black_box(sums);
    2 * 8 * CHAINS * rounds
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,popcnt")]
#[allow(unsafe_code)]
fn halves_on_registers<const ADDS: bool>(rounds: usize) -> usize {
    use std::arch::x86_64::{
        _mm256_add_epi32, _mm256_add_epi64, _mm256_mul_epu32, _mm256_mullo_epi32,
        _mm256_set1_epi64x, _mm256_shuffle_epi32, _mm256_sub_epi64,
    };
    const CHAINS: usize = COLUMNS / 4;
    let [mut x, mut y] = [3, 5].map(|x| _mm256_set1_epi64x(x));
    let mut sums = [(x, y); CHAINS];
    for _ in 0..rounds {
        for (low, cross) in &mut sums {
            if ADDS {
                // Chains through the sums would be slower than the loop itself, whose operands
                // come from elsewhere. The compiler takes it that they change here.
                // SAFETY: there is no instruction in it.
                unsafe {
                    std::arch::asm!("/* {0} {1} */", inout(ymm_reg) x, inout(ymm_reg) y,
                        options(pure, nomem, nostack, preserves_flags));
                }
                let (u, v) = (_mm256_add_epi64(x, y), _mm256_sub_epi64(x, y));
                *low = _mm256_add_epi64(*low, _mm256_mul_epu32(u, v));
                let v = _mm256_shuffle_epi32::<SWAPPED>(v);
                *cross = _mm256_add_epi32(*cross, _mm256_mullo_epi32(u, v));
            } else {
                let (x, y) = (*low, *cross);
                (*low, *cross) = (_mm256_mul_epu32(x, y), _mm256_mullo_epi32(x, y));
            }
        }
    }
    black_box(sums);
    2 * 4 * CHAINS * rounds
}

fn whole_on_registers<const ADDS: bool>(rounds: usize) -> usize {
    const CHAINS: usize = 8;
    let [x, y] = black_box([3u64, 5]);
    let mut sums = [x; CHAINS];
    for _ in 0..rounds {
        for sum in &mut sums {
            *sum = if ADDS {
                let (u, v) = (sum.wrapping_add(x), sum.wrapping_add(y));
                sum.wrapping_add(u.wrapping_mul(v))
            } else {
                sum.wrapping_mul(*sum)
            };
        }
    }
    black_box(sums);
    2 * CHAINS * rounds
}
