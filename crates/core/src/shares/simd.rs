//! The innermost loop of a matrix product mod 2^64, written once for each instruction set.
//!
//! A compiler does not find these loops by itself: for AVX-512 it gathers along the wrong side and
//! is fifteen times slower. AVX-512 multiplies 64-bit words (`vpmullq`); the others are given
//! 32-bit halves, whose three products need no shift before the end.

use crate::graph::simd::{Kind, Level};

/// Rows of a block.
pub const ROWS: usize = 8;
/// Columns of a block: three of the widest registers, so that 24 sums stay in registers.
pub const COLUMNS: usize = 24;
/// Rows and columns that the narrower instruction sets keep in registers.
const PART: usize = 4;
const LOW: u64 = u32::MAX as u64;

/// One block of a product: its rows.
pub type Block = [[u64; COLUMNS]; ROWS];

/// Adds Σ_k left[k]ᵀ·right[k] to a block, mod 2^64.
#[inline]
#[allow(unsafe_code)]
pub fn multiply_add(
    level: Level,
    left: &[[u64; ROWS]],
    right: &[[u64; COLUMNS]],
    block: &mut Block,
) {
    match level.kind() {
        // SAFETY: a Level of this kind was made only where the CPU has these features.
        #[cfg(target_arch = "x86_64")]
        Kind::Avx512 => unsafe { wide(left, right, block) },
        #[cfg(target_arch = "x86_64")]
        Kind::Avx2 => level.run(
            #[inline(always)]
            || parts(left, right, block, halves),
        ),
        Kind::Portable => parts(left, right, block, whole),
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vpopcntdq")]
fn wide(left: &[[u64; ROWS]], right: &[[u64; COLUMNS]], block: &mut Block) {
    use std::arch::x86_64::{
        __m512i, _mm512_add_epi64, _mm512_mullo_epi64, _mm512_set_epi64, _mm512_set1_epi64,
    };
    const REGISTERS: usize = COLUMNS / 8;
    // The compiler makes one load of eight neighbours.
    let load = |x: &[u64; 8]| {
        let [a, b, c, d, e, f, g, h] = x.map(u64::cast_signed);
        _mm512_set_epi64(h, g, f, e, d, c, b, a)
    };
    let registers = |row: &[u64; COLUMNS]| -> [__m512i; REGISTERS] {
        let (eights, _) = row.as_chunks::<8>();
        std::array::from_fn(|c| load(&eights[c]))
    };
    let mut sums: [[__m512i; REGISTERS]; ROWS] = std::array::from_fn(|r| registers(&block[r]));
    for (left, right) in left.iter().zip(right) {
        let right = registers(right);
        for (sums, &x) in sums.iter_mut().zip(left) {
            let x = _mm512_set1_epi64(x.cast_signed());
            for (sum, &y) in sums.iter_mut().zip(&right) {
                *sum = _mm512_add_epi64(*sum, _mm512_mullo_epi64(x, y));
            }
        }
    }
    for (row, sums) in block.iter_mut().zip(&sums) {
        let (eights, _) = row.as_chunks_mut::<8>();
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

/// A block in parts that fit into fewer registers.
#[inline(always)]
fn parts(
    left: &[[u64; ROWS]],
    right: &[[u64; COLUMNS]],
    block: &mut Block,
    multiply: impl Fn(&[[u64; ROWS]], usize, &[[u64; COLUMNS]], usize) -> [[u64; PART]; PART],
) {
    for r in 0..ROWS / PART {
        for c in 0..COLUMNS / PART {
            let sums = multiply(left, r, right, c);
            for (row, sums) in block[r * PART..].iter_mut().zip(&sums) {
                for (x, sum) in row[c * PART..].iter_mut().zip(sums) {
                    *x = x.wrapping_add(*sum);
                }
            }
        }
    }
}

#[inline(always)]
fn halves(
    left: &[[u64; ROWS]],
    r: usize,
    right: &[[u64; COLUMNS]],
    c: usize,
) -> [[u64; PART]; PART] {
    let mut low = [[0u64; PART]; PART];
    let mut cross = [[0u64; PART]; PART];
    for (left, right) in left.iter().zip(right) {
        let x = &left.as_chunks::<PART>().0[r];
        let y = &right.as_chunks::<PART>().0[c];
        for i in 0..PART {
            for j in 0..PART {
                low[i][j] = low[i][j].wrapping_add((x[i] & LOW) * (y[j] & LOW));
                cross[i][j] = cross[i][j]
                    .wrapping_add((x[i] & LOW) * (y[j] >> 32))
                    .wrapping_add((x[i] >> 32) * (y[j] & LOW));
            }
        }
    }
    std::array::from_fn(|i| std::array::from_fn(|j| low[i][j].wrapping_add(cross[i][j] << 32)))
}

#[inline(always)]
fn whole(
    left: &[[u64; ROWS]],
    r: usize,
    right: &[[u64; COLUMNS]],
    c: usize,
) -> [[u64; PART]; PART] {
    let mut sums = [[0u64; PART]; PART];
    for (left, right) in left.iter().zip(right) {
        let x = &left.as_chunks::<PART>().0[r];
        let y = &right.as_chunks::<PART>().0[c];
        for i in 0..PART {
            for j in 0..PART {
                sums[i][j] = sums[i][j].wrapping_add(x[i].wrapping_mul(y[j]));
            }
        }
    }
    sums
}
