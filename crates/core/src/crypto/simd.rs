//! Loops of the masked union with AVX-512, which a compiler does not find by itself: refusing words
//! of a stream, and summing our own elements and the masks of several streams at once.

use super::packed::{Ring, WORD};
use crate::graph::simd::{Kind, Level};

/// Words that are worked on together.
pub const LANES: usize = 32;

/// Moves the words that are not refused to the front of `kept`, in order; how many there are.
///
/// A word is refused where `power` times the word is below `refused`, modulo 2^16. `kept` is as
/// long as `drawn`, whose length is a multiple of [`LANES`].
#[allow(unsafe_code)]
pub fn keep(
    level: Level,
    drawn: &[[u8; 2]],
    (power, refused): (u16, u16),
    kept: &mut [u16],
) -> usize {
    let (groups, rest) = drawn.as_chunks::<LANES>();
    assert!(rest.is_empty() && kept.len() >= drawn.len());
    match level.kind() {
        // SAFETY: a Level of this kind was made only where the CPU has these features.
        #[cfg(target_arch = "x86_64")]
        Kind::Avx512 => unsafe { compress(groups, power, refused, kept) },
        _ => pick(level, groups.as_flattened(), power, refused, kept),
    }
}

/// Most words are kept: what lies between two that are refused is copied.
fn pick(level: Level, drawn: &[[u8; 2]], power: u16, refused: u16, kept: &mut [u16]) -> usize {
    let mut count = 0;
    for drawn in drawn.chunks(512) {
        let mut bad = [0u8; 512];
        level.run(
            #[inline(always)]
            || {
                for (bad, &word) in bad.iter_mut().zip(drawn) {
                    *bad = u8::from(u16::from_le_bytes(word).wrapping_mul(power) < refused);
                }
            },
        );
        let mut start = 0;
        let mut copy = |end: usize| {
            for (kept, &word) in kept[count..].iter_mut().zip(&drawn[start..end]) {
                *kept = u16::from_le_bytes(word);
            }
            count += end - start;
            start = end + 1;
        };
        // Eight flags at once, most often all zero.
        for (i, eight) in bad.as_chunks::<8>().0.iter().enumerate() {
            let mut flags = u64::from_le_bytes(*eight);
            while flags != 0 {
                copy(8 * i + flags.trailing_zeros() as usize / 8);
                flags &= flags - 1;
            }
        }
        copy(drawn.len());
    }
    count
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi2,popcnt")]
#[allow(unsafe_code)]
fn compress(groups: &[[[u8; 2]; LANES]], power: u16, refused: u16, kept: &mut [u16]) -> usize {
    use std::arch::x86_64::{
        _mm512_cmpge_epu16_mask, _mm512_loadu_si512, _mm512_maskz_compress_epi16,
        _mm512_mullo_epi16, _mm512_set1_epi16, _mm512_storeu_si512,
    };
    let [power, refused] = [power, refused].map(|x| _mm512_set1_epi16(x.cast_signed()));
    let mut count = 0;
    for group in groups {
        // SAFETY: the group is 64 bytes that may be read.
        let words = unsafe { _mm512_loadu_si512(group.as_ptr().cast()) };
        let good = _mm512_cmpge_epu16_mask(_mm512_mullo_epi16(words, power), refused);
        let room: &mut [u16; LANES] = kept[count..].first_chunk_mut().expect("as long as drawn");
        let front = _mm512_maskz_compress_epi16(good, words);
        // SAFETY: the room is 64 bytes that may be written.
        unsafe { _mm512_storeu_si512(room.as_mut_ptr().cast(), front) };
        count += good.count_ones() as usize;
    }
    count
}

/// The masks of one stream: words with digits, which are added or subtracted.
#[derive(Default)]
pub struct Masks {
    /// The words that were kept, at least as many as are needed.
    pub words: Vec<u16>,
    /// Whether their digits are added.
    pub plus: bool,
}

/// Streams, or vectors, that are summed at once.
pub const STREAMS: usize = 4;

/// Whether [`sum`] knows how to sum the masks of so many streams for so many packed words.
pub fn sums_at_once(level: Level, q: u16, streams: usize, words: usize) -> bool {
    let room = u32::from(q) * (1 + streams.min(STREAMS) as u32) <= 1 << 16;
    match level.kind() {
        #[cfg(target_arch = "x86_64")]
        Kind::Avx512 => q > 0 && room && words.is_multiple_of(64),
        _ => false,
    }
}

/// Bit j of every group in row j of `rows`, one bit for each group, a multiple of 64 of them.
#[allow(unsafe_code)]
pub fn places(level: Level, groups: &[u16], rows: &mut [u8]) {
    match level.kind() {
        // SAFETY: a Level of this kind was made only where the CPU has these features.
        #[cfg(target_arch = "x86_64")]
        Kind::Avx512 => unsafe { test_bits(groups, rows) },
        _ => unreachable!("only what `sums_at_once` knows"),
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw")]
#[allow(unsafe_code)]
fn test_bits(groups: &[u16], rows: &mut [u8]) {
    use std::arch::x86_64::{_mm512_loadu_si512, _mm512_set1_epi16, _mm512_test_epi16_mask};
    for (j, row) in rows.chunks_exact_mut(groups.len() / 8).enumerate() {
        let bit = _mm512_set1_epi16(1i16.wrapping_shl(j as u32));
        let (groups, _) = groups.as_chunks::<LANES>();
        for (four, groups) in row.as_chunks_mut().0.iter_mut().zip(groups) {
            // SAFETY: the groups are 64 bytes that may be read.
            let groups = unsafe { _mm512_loadu_si512(groups.as_ptr().cast()) };
            *four = _mm512_test_epi16_mask(groups, bit).to_le_bytes();
        }
    }
}

/// The sums of our own elements, where a bit says so, and of the masks of all streams, in Z_q.
///
/// `own` are words as those of masks, and one bit for each place, with eight bytes more. Digit i of
/// word n goes to place n + i·k, where k words have digits for all places.
#[allow(unsafe_code)]
pub fn sum(
    level: Level,
    (q, digits): (u16, usize),
    own: (&[u16], &[u8]),
    masks: &[Masks],
    sums: &mut [u16],
) {
    match level.kind() {
        // SAFETY: a Level of this kind was made only where the CPU has these features.
        #[cfg(target_arch = "x86_64")]
        Kind::Avx512 => unsafe { sum_wide(q, digits, own, masks, sums) },
        _ => unreachable!("only what `sums_at_once` knows"),
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw")]
fn sum_wide(q: u16, digits: usize, own: (&[u16], &[u8]), masks: &[Masks], sums: &mut [u16]) {
    let mut own = Some(own);
    let mut rest = masks;
    loop {
        let (now, later) = rest.split_at(rest.len().min(STREAMS));
        match now {
            [] => sum_streams(q, digits, own.take(), [], sums),
            [a] => sum_streams(q, digits, own.take(), [a], sums),
            [a, b] => sum_streams(q, digits, own.take(), [a, b], sums),
            [a, b, c] => sum_streams(q, digits, own.take(), [a, b, c], sums),
            [a, b, c, d, ..] => sum_streams(q, digits, own.take(), [a, b, c, d], sums),
        }
        rest = later;
        if rest.is_empty() {
            return;
        }
    }
}

/// Up to four streams on top of our own elements or, without them, of what is there. All together
/// are below five times q, which fits 16 bits, and are reduced once.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw")]
#[allow(unsafe_code)]
fn sum_streams<const COUNT: usize>(
    q: u16,
    digits: usize,
    own: Option<(&[u16], &[u8])>,
    masks: [&Masks; COUNT],
    sums: &mut [u16],
) {
    use std::arch::x86_64::{
        __m512i, _mm512_add_epi16, _mm512_loadu_si512, _mm512_mask_storeu_epi16,
        _mm512_mask_sub_epi16, _mm512_maskz_loadu_epi16, _mm512_maskz_mov_epi16, _mm512_min_epu16,
        _mm512_mullo_epi16, _mm512_set1_epi16, _mm512_setzero_si512, _mm512_sub_epi16,
    };
    let all = |x: u16| _mm512_set1_epi16(x.cast_signed());
    // SAFETY: the words are 64 bytes that may be read.
    let load = |words: &[u16; LANES]| unsafe { _mm512_loadu_si512(words.as_ptr().cast()) };
    let (zero, modulus) = (_mm512_setzero_si512(), all(q));
    let count = sums.len().div_ceil(digits);
    let whole = count.div_ceil(LANES);
    let words = masks.map(|masks| &masks.words.as_chunks::<LANES>().0[..whole]);
    let minus = masks.map(|masks| if masks.plus { 0 } else { u32::MAX });
    // What is taken away is q minus it, added.
    let taken = minus.iter().filter(|&&minus| minus != 0).count();
    let start = all(q * taken as u16);
    let own = own.map(|(own, places)| (&own.as_chunks::<LANES>().0[..whole], places));
    for n in 0..whole {
        let mut fractions: [__m512i; COUNT] = std::array::from_fn(|s| load(&words[s][n]));
        let mut ours = own.map_or(zero, |(own, _)| load(&own[n]));
        for digit in 0..digits {
            let first = digit * count + n * LANES;
            let end = sums.len().min((digit + 1) * count).min(first + LANES);
            let Some(places) = sums.get_mut(first..end) else {
                break; // the last digits are fewer
            };
            let lanes = u32::MAX >> (LANES - places.len().max(1));
            let mut sum = match own {
                Some((_, bits)) => {
                    let eight = bits[first / 8..].first_chunk().expect("eight bytes more");
                    let chosen = (u64::from_le_bytes(*eight) >> (first % 8)) as u32;
                    let element = high_halves(ours, modulus);
                    ours = _mm512_mullo_epi16(ours, modulus);
                    _mm512_maskz_mov_epi16(chosen, element)
                }
                // SAFETY: these lanes are places that may be read.
                None => unsafe { _mm512_maskz_loadu_epi16(lanes, places.as_ptr().cast()) },
            };
            sum = _mm512_add_epi16(sum, start);
            for (fraction, &minus) in fractions.iter_mut().zip(&minus) {
                let mask = high_halves(*fraction, modulus);
                *fraction = _mm512_mullo_epi16(*fraction, modulus);
                sum = _mm512_add_epi16(sum, _mm512_mask_sub_epi16(mask, minus, zero, mask));
            }
            // A difference below zero is large, and then the smaller one is what it was.
            for times in [4, 2, 1] {
                if times <= COUNT {
                    let less = _mm512_sub_epi16(sum, all(q.wrapping_mul(times as u16)));
                    sum = _mm512_min_epu16(sum, less);
                }
            }
            // SAFETY: these lanes are places that may be written.
            unsafe { _mm512_mask_storeu_epi16(places.as_mut_ptr().cast(), lanes, sum) };
        }
    }
}

/// Adds the digits of packed words of some vectors, up to [`STREAMS`], to sums: the lowest ones, the
/// next ones, and so on. False, with nothing done, where there is no code for this level and ring.
#[inline(always)]
#[allow(unsafe_code)]
pub fn add_digits(
    level: Level,
    ring: &Ring,
    vectors: &[&[[u8; WORD]; LANES]],
    sums: &mut [[u16; LANES]],
) -> bool {
    match level.kind() {
        // SAFETY: a Level of this kind was made only where the CPU has these features.
        #[cfg(target_arch = "x86_64")]
        Kind::Avx512 if ring.part > 1 => unsafe {
            match *vectors {
                [] => (),
                [a] => add_wide(ring, [a], sums),
                [a, b] => add_wide(ring, [a, b], sums),
                [a, b, c] => add_wide(ring, [a, b, c], sums),
                [a, b, c, d, ..] => add_wide(ring, [a, b, c, d], sums),
            }
        },
        _ => return false,
    }
    true
}

/// As `Ring::add` does it. Where a part has two digits or more, five times q fits 16 bits.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw")]
#[allow(unsafe_code)]
fn add_wide<const COUNT: usize>(
    ring: &Ring,
    vectors: [&[[u8; WORD]; LANES]; COUNT],
    sums: &mut [[u16; LANES]],
) {
    use std::arch::x86_64::{
        __m512i, _mm512_add_epi16, _mm512_cmplt_epu16_mask, _mm512_loadu_si512,
        _mm512_mask_sub_epi16, _mm512_min_epu16, _mm512_mullo_epi16, _mm512_permutex2var_epi16,
        _mm512_set1_epi16, _mm512_storeu_si512, _mm512_sub_epi16,
    };
    let all = |x: u32| _mm512_set1_epi16((x as u16).cast_signed());
    let (q, unit, inverse) = (all(ring.q), all(ring.unit), ring.inverse_above());
    let (whole, rest, past) = (all(inverse >> 16), all(inverse), all(ring.past));
    // Powers of two divide without a rest.
    let inexact = if ring.q.is_power_of_two() {
        0
    } else {
        u32::MAX
    };
    let low_halves: [u16; LANES] = std::array::from_fn(|i| 2 * i as u16);
    // SAFETY: these are 64 bytes that may be read.
    let low_halves = unsafe { _mm512_loadu_si512(low_halves.as_ptr().cast()) };
    let mut above = vectors.map(|words| {
        let first = words.as_ptr().cast::<__m512i>();
        // SAFETY: these are 128 bytes that may be read.
        unsafe { [_mm512_loadu_si512(first), _mm512_loadu_si512(first.add(1))] }
    });
    let parts = sums.len().div_ceil(ring.part);
    for (number, sums) in sums.chunks_mut(ring.part).enumerate() {
        let last = number + 1 == parts;
        let mut fractions = above.each_mut().map(|above| {
            // What is above the others is the highest part.
            let mut rests = *above;
            if !last {
                let [first, second] = above.map(|numbers| divide(ring, numbers));
                (*above, rests) = ([first.0, second.0], [first.1, second.1]);
            }
            let part = _mm512_permutex2var_epi16(rests[0], low_halves, rests[1]);
            let found = _mm512_add_epi16(_mm512_mullo_epi16(part, whole), high_halves(part, rest));
            let less = _mm512_cmplt_epu16_mask(high_halves(found, unit), part) & inexact;
            let fraction = _mm512_mask_sub_epi16(found, less, found, all(u32::MAX));
            match last {
                true => _mm512_mullo_epi16(fraction, past),
                false => fraction,
            }
        });
        for sums in sums.iter_mut().rev() {
            // SAFETY: the sums are 64 bytes that may be read.
            let mut sum = unsafe { _mm512_loadu_si512(sums.as_ptr().cast()) };
            for fraction in &mut fractions {
                sum = _mm512_add_epi16(sum, high_halves(*fraction, q));
                *fraction = _mm512_mullo_epi16(*fraction, q);
            }
            // A difference below zero is large, and then the smaller one is what it was.
            for times in [4, 2, 1] {
                if times <= COUNT {
                    let less = _mm512_sub_epi16(sum, all(ring.q * times as u32));
                    sum = _mm512_min_epu16(sum, less);
                }
            }
            // SAFETY: the sums are 64 bytes that may be written.
            unsafe { _mm512_storeu_si512(sums.as_mut_ptr().cast(), sum) };
        }
    }
}

/// Quotients and remainders of 32-bit numbers by the unit.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw")]
fn divide(
    ring: &Ring,
    numbers: std::arch::x86_64::__m512i,
) -> (std::arch::x86_64::__m512i, std::arch::x86_64::__m512i) {
    use std::arch::x86_64::{
        _mm512_cmpge_epu32_mask, _mm512_mask_blend_epi32, _mm512_mask_sub_epi32, _mm512_mul_epu32,
        _mm512_mullo_epi32, _mm512_set1_epi32, _mm512_srli_epi64, _mm512_sub_epi32,
    };
    let [unit, inverse] = [ring.unit, ring.inverse].map(|x| _mm512_set1_epi32(x.cast_signed()));
    let even = _mm512_srli_epi64::<32>(_mm512_mul_epu32(numbers, inverse));
    let odd = _mm512_mul_epu32(_mm512_srli_epi64::<32>(numbers), inverse);
    let quotient = _mm512_mask_blend_epi32(0xaaaa, even, odd);
    let rest = _mm512_sub_epi32(numbers, _mm512_mullo_epi32(quotient, unit));
    // One too small at most.
    let more = _mm512_cmpge_epu32_mask(rest, unit);
    let ones = _mm512_set1_epi32(-1);
    (
        _mm512_mask_sub_epi32(quotient, more, quotient, ones),
        _mm512_mask_sub_epi32(rest, more, rest, unit),
    )
}

/// The high halves of 16-bit products. Where one factor stays the same, the compiler makes the
/// intrinsic into products of 32 bits, which take six instructions.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw")]
#[allow(unsafe_code)]
fn high_halves(
    a: std::arch::x86_64::__m512i,
    b: std::arch::x86_64::__m512i,
) -> std::arch::x86_64::__m512i {
    let halves;
    // SAFETY: an instruction between registers, of a feature that is enabled.
    unsafe {
        std::arch::asm!(
            "vpmulhuw {halves}, {a}, {b}",
            halves = lateout(zmm_reg) halves,
            a = in(zmm_reg) a,
            b = in(zmm_reg) b,
            options(pure, nomem, nostack, preserves_flags),
        );
    }
    halves
}
