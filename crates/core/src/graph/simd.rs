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
