//! One kernel source, three machine codes: the compiler vectorises the same safe loop for
//! AVX-512 (with its population count), for AVX2, and for whatever the build target is.
//!
//! Files of this name are the only ones in the crate that say `unsafe`: calling code compiled for a
//! CPU feature is sound because a [`Level`] other than `Portable` exists only where the CPU has it.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Portable,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

/// An instruction set that this CPU has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Level(Kind);

impl Level {
    /// Every level that this CPU can run, slowest first.
    pub fn available() -> Vec<Self> {
        let mut levels = vec![Self(Kind::Portable)];
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("popcnt") {
                levels.push(Self(Kind::Avx2));
            }
            if is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512dq")
                && is_x86_feature_detected!("avx512vl")
                && is_x86_feature_detected!("avx512vbmi2")
                && is_x86_feature_detected!("avx512vpopcntdq")
                && is_x86_feature_detected!("popcnt")
            {
                levels.push(Self(Kind::Avx512));
            }
        }
        levels
    }

    /// The fastest level of this CPU.
    pub fn best() -> Self {
        *Self::available().last().expect("portable is always there")
    }

    /// What it is, for code that is written for one instruction set.
    pub(crate) fn kind(self) -> Kind {
        self.0
    }

    /// Whether it has an instruction that counts the ones of every word of a register.
    #[inline(always)]
    pub(crate) fn counts_words(self) -> bool {
        match self.0 {
            #[cfg(target_arch = "x86_64")]
            Kind::Avx512 => true,
            _ => false,
        }
    }

    /// Its name, as [`Level::named`] takes it.
    pub fn name(self) -> &'static str {
        match self.0 {
            Kind::Portable => "portable",
            #[cfg(target_arch = "x86_64")]
            Kind::Avx2 => "avx2",
            #[cfg(target_arch = "x86_64")]
            Kind::Avx512 => "avx512",
        }
    }

    /// The level of that name, where this CPU has it.
    pub fn named(name: &str) -> Option<Self> {
        Self::available().into_iter().find(|l| l.name() == name)
    }

    /// Runs `kernel` compiled for this level. The closure and what it calls must be
    /// `#[inline(always)]`: what is not inlined keeps the build target's instructions.
    #[inline(always)]
    #[allow(unsafe_code)]
    pub fn run<R>(self, kernel: impl FnOnce() -> R) -> R {
        match self.0 {
            Kind::Portable => kernel(),
            // SAFETY: a Level of this kind was made only where the CPU has these features.
            #[cfg(target_arch = "x86_64")]
            Kind::Avx2 => unsafe { avx2(kernel) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Kind::Avx512 => unsafe { avx512(kernel) },
        }
    }
}

/// Asks for words that will be read soon.
#[inline(always)]
#[allow(unsafe_code)]
pub(crate) fn fetch(words: &[u64]) {
    #[cfg(target_arch = "x86_64")]
    for line in words.chunks(8) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: every x86-64 has it, it changes nothing, and the words are there.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(line.as_ptr().cast()) };
    }
}

/// Words in a column strip: 512 bytes of a row, eight of the widest registers, in which
/// [`common_ones`] keeps it.
pub(crate) const STRIP: usize = 64;

/// All ones that the first `len` words of a row have in common with each of those others whose bit is
/// set; None where there is no code for this level. A compiler fetches the row again for each of
/// them, and adds up every count by itself.
#[inline(always)]
#[allow(unsafe_code)]
pub(crate) fn common_ones(
    level: Level,
    (row, len): (&[u64; STRIP], usize),
    bits: &[u64],
    others: &[[u64; STRIP]],
) -> Option<u64> {
    match level.0 {
        // SAFETY: a Level of this kind was made only where the CPU has these features.
        #[cfg(target_arch = "x86_64")]
        Kind::Avx512 => Some(unsafe {
            match len.div_ceil(8) {
                0 => 0,
                1 => common_wide::<1>(row, bits, others),
                2 => common_wide::<2>(row, bits, others),
                3 => common_wide::<3>(row, bits, others),
                4 => common_wide::<4>(row, bits, others),
                5 => common_wide::<5>(row, bits, others),
                6 => common_wide::<6>(row, bits, others),
                7 => common_wide::<7>(row, bits, others),
                _ => common_wide::<8>(row, bits, others),
            }
        }),
        _ => None,
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512dq,avx512vpopcntdq,popcnt")]
#[allow(unsafe_code)]
fn common_wide<const REGISTERS: usize>(
    row: &[u64; STRIP],
    bits: &[u64],
    others: &[[u64; STRIP]],
) -> u64 {
    use std::arch::x86_64::{
        __m512i, _mm512_add_epi64, _mm512_and_si512, _mm512_loadu_si512, _mm512_popcnt_epi64,
        _mm512_reduce_add_epi64, _mm512_setzero_si512,
    };
    const { assert!(8 * REGISTERS <= STRIP) };
    let load = |row: &[u64; STRIP]| -> [__m512i; REGISTERS] {
        let first = row.as_ptr().cast::<__m512i>();
        // SAFETY: a register is eight words of the row that may be read.
        std::array::from_fn(|i| unsafe { _mm512_loadu_si512(first.add(i)) })
    };
    let (row, mut counts) = (load(row), [_mm512_setzero_si512(); REGISTERS]);
    for (word, &bits) in bits.iter().enumerate() {
        let mut bits = bits;
        while bits != 0 {
            let other = load(&others[64 * word + bits.trailing_zeros() as usize]);
            bits &= bits - 1;
            for i in 0..REGISTERS {
                let ones = _mm512_popcnt_epi64(_mm512_and_si512(row[i], other[i]));
                counts[i] = _mm512_add_epi64(counts[i], ones);
            }
        }
    }
    let sum = counts
        .into_iter()
        .fold(_mm512_setzero_si512(), |a, b| _mm512_add_epi64(a, b));
    _mm512_reduce_add_epi64(sum).cast_unsigned()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,popcnt")]
fn avx2<R>(kernel: impl FnOnce() -> R) -> R {
    kernel()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi2,avx512vpopcntdq")]
fn avx512<R>(kernel: impl FnOnce() -> R) -> R {
    kernel()
}
