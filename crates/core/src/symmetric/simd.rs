//! The innermost loop of a matrix product mod 2^64, written once for each instruction set.
//!
//! A compiler does not find these loops by itself: for AVX-512 it gathers along the wrong side and
//! is fifteen times slower. AVX-512 multiplies 64-bit words (`vpmullq`), AVX2 only 32-bit halves
//! (`vpmuludq`, three times).

use crate::graph::simd::{Kind, Level};

/// Rows of a block.
pub const ROWS: usize = 8;
/// Columns of a block: three of the widest registers, so that 24 sums stay in registers.
pub const COLUMNS: usize = 24;
/// Rows and columns that the narrower instruction sets keep in registers.
const PART: usize = 4;

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
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        Kind::Avx2 => unsafe { halves(left, right, block) },
        Kind::Portable => whole(left, right, block),
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

/// In parts of four rows and one register, from 32-bit halves: with x = x₀ + 2³²x₁ the product is
/// x₀y₀ + 2³²(x₀y₁ + x₁y₀), and the two kinds of terms are summed apart.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,popcnt")]
fn halves(left: &[[u64; ROWS]], right: &[[u64; COLUMNS]], block: &mut Block) {
    use std::arch::x86_64::{
        _mm256_add_epi64, _mm256_extract_epi64, _mm256_mul_epu32, _mm256_set_epi64x,
        _mm256_set1_epi64x, _mm256_setzero_si256, _mm256_slli_epi64, _mm256_srli_epi64,
    };
    for c in 0..COLUMNS / PART {
        for r in 0..ROWS / PART {
            let mut low = [_mm256_setzero_si256(); PART];
            let mut cross = low;
            for (left, right) in left.iter().zip(right) {
                let [a, b, c, d] = right.as_chunks::<PART>().0[c].map(u64::cast_signed);
                let y = _mm256_set_epi64x(d, c, b, a);
                let upper = _mm256_srli_epi64::<32>(y);
                let left = &left.as_chunks::<PART>().0[r];
                for ((low, cross), &x) in low.iter_mut().zip(&mut cross).zip(left) {
                    let x = _mm256_set1_epi64x(x.cast_signed());
                    *low = _mm256_add_epi64(*low, _mm256_mul_epu32(x, y));
                    *cross = _mm256_add_epi64(*cross, _mm256_mul_epu32(x, upper));
                    let x = _mm256_srli_epi64::<32>(x);
                    *cross = _mm256_add_epi64(*cross, _mm256_mul_epu32(x, y));
                }
            }
            let sums = low.iter().zip(&cross);
            for (row, (low, cross)) in block[r * PART..].iter_mut().zip(sums) {
                let sum = _mm256_add_epi64(*low, _mm256_slli_epi64::<32>(*cross));
                let words = [
                    _mm256_extract_epi64::<0>(sum),
                    _mm256_extract_epi64::<1>(sum),
                    _mm256_extract_epi64::<2>(sum),
                    _mm256_extract_epi64::<3>(sum),
                ];
                for (x, word) in row[c * PART..].iter_mut().zip(words) {
                    *x = x.wrapping_add(word.cast_unsigned());
                }
            }
        }
    }
}

/// In parts of four rows and columns.
fn whole(left: &[[u64; ROWS]], right: &[[u64; COLUMNS]], block: &mut Block) {
    for r in 0..ROWS / PART {
        for c in 0..COLUMNS / PART {
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
            for (row, sums) in block[r * PART..].iter_mut().zip(&sums) {
                for (x, sum) in row[c * PART..].iter_mut().zip(sums) {
                    *x = x.wrapping_add(*sum);
                }
            }
        }
    }
}
