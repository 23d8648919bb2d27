//! Two loops of the masked union with AVX-512, which a compiler does not find by itself: refusing
//! words of a stream, and adding the masks of several streams at once.

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

/// Adds or subtracts the digits of as many words as it can; how many words these are.
///
/// Digit i of word n goes to place n + i·k, where k words have digits for all places. q is 0 for
/// 2^16; every sum is below q.
#[allow(unsafe_code)]
pub fn mask(level: Level, q: u16, digits: usize, masks: &[Masks], sums: &mut [u16]) -> usize {
    match level.kind() {
        // SAFETY: a Level of this kind was made only where the CPU has these features.
        #[cfg(target_arch = "x86_64")]
        Kind::Avx512 => unsafe { mask_wide(q, digits, masks, sums) },
        _ => 0,
    }
}

/// Up to four streams at a time: sums are loaded and stored once for all of them.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw")]
fn mask_wide(q: u16, digits: usize, masks: &[Masks], sums: &mut [u16]) -> usize {
    let count = sums.len().div_ceil(digits);
    // The last digits may be fewer.
    let whole = sums.len().saturating_sub((digits - 1) * count) / LANES;
    for masks in masks.chunks(4) {
        match masks {
            [a] => mask_streams(q, (digits, count), whole, [a], sums),
            [a, b] => mask_streams(q, (digits, count), whole, [a, b], sums),
            [a, b, c] => mask_streams(q, (digits, count), whole, [a, b, c], sums),
            [a, b, c, d] => mask_streams(q, (digits, count), whole, [a, b, c, d], sums),
            _ => unreachable!("chunks of one to four"),
        }
    }
    whole * LANES
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw")]
#[allow(unsafe_code)]
fn mask_streams<const STREAMS: usize>(
    q: u16,
    (digits, count): (usize, usize),
    whole: usize,
    masks: [&Masks; STREAMS],
    sums: &mut [u16],
) {
    use std::arch::x86_64::{
        __m512i, _mm512_cmplt_epu16_mask, _mm512_loadu_si512, _mm512_mask_add_epi16,
        _mm512_mask_sub_epi16, _mm512_mullo_epi16, _mm512_set1_epi16, _mm512_storeu_si512,
        _mm512_sub_epi16,
    };
    // SAFETY: the words are 64 bytes that may be read.
    let load = |words: &[u16; LANES]| unsafe { _mm512_loadu_si512(words.as_ptr().cast()) };
    let modulus = _mm512_set1_epi16(q.cast_signed());
    let words = masks.map(|masks| &masks.words.as_chunks::<LANES>().0[..whole]);
    let plus = masks.map(|masks| if masks.plus { u32::MAX } else { 0 });
    for n in 0..whole {
        let mut fractions: [__m512i; STREAMS] = std::array::from_fn(|s| load(&words[s][n]));
        for digit in 0..digits {
            let places = sums[digit * count + n * LANES..]
                .first_chunk_mut()
                .expect("whole");
            let mut sum = load(places);
            for (fraction, &plus) in fractions.iter_mut().zip(&plus) {
                // As in `less`: q minus the mask, or the mask, is taken away.
                let mask = match q {
                    0 => *fraction,
                    _ => high_halves(*fraction, modulus),
                };
                let taken = _mm512_mask_sub_epi16(mask, plus, modulus, mask);
                let below = _mm512_cmplt_epu16_mask(sum, taken);
                sum = _mm512_sub_epi16(sum, taken);
                sum = _mm512_mask_add_epi16(sum, below, sum, modulus);
                *fraction = _mm512_mullo_epi16(*fraction, modulus);
            }
            // SAFETY: the places are 64 bytes that may be written.
            unsafe { _mm512_storeu_si512(places.as_mut_ptr().cast(), sum) };
        }
    }
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
