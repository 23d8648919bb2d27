//! The keystream of the masked union: AES-256 in counter mode (NIST SP 800-38A).
//!
//! A silo draws about four bytes of keystream for a pair, so the cipher decides much of its time.
//! ChaCha20 and AES-256 were measured as RustCrypto implements them, on one core with AVX2 and AES-NI
//! (`examples/wire`; the last row with the crate's software alone):
//!
//! | cipher | GB/s |
//! |---|---|
//! | ChaCha20, as a generator of random numbers | 1.9 |
//! | ChaCha20, as a cipher | 2.1 |
//! | AES-256-CTR | 5.6 |
//! | AES-256-CTR without AES instructions | 0.15 |
//!
//! The crate chooses between VAES, AES-NI, ARM's instructions and software when it runs; the bytes
//! are the same. All of them are constant time: the software is bitsliced and has no tables. It is
//! slow, and only needed by processors without AES instructions, which servers have had since 2010.
//! AWS-LC may be faster still, but would bring a build in C.
//!
//! Sixteen-byte blocks under one key never repeat, where random ones might: n blocks are told from
//! random ones with an advantage of n²/2^129 at most. A key serves one chunk: some 2^16 blocks,
//! which makes that 2^-97.

use aes::Aes256;
use aes::cipher::{InnerIvInit, KeyInit, StreamCipher};
use ctr::{Ctr64BE, CtrCore};

/// A key of many streams. The round keys are wiped when it is dropped.
pub struct StreamKey(Aes256);

impl StreamKey {
    /// From a secret seed.
    pub fn new(seed: &[u8; 32]) -> Self {
        Self(Aes256::new(&(*seed).into()))
    }

    /// Stream `number`: the number is the upper half of the counter block, big-endian.
    pub fn stream(&self, number: u64) -> Keystream<'_> {
        let mut first = [0u8; 16];
        first[..8].copy_from_slice(&number.to_be_bytes());
        self.starting_at(first)
    }

    fn starting_at(&self, first: [u8; 16]) -> Keystream<'_> {
        let core = CtrCore::inner_iv_init(&self.0, &first.into());
        Keystream(Ctr64BE::from_core(core))
    }
}

/// One stream of bytes.
pub struct Keystream<'a>(Ctr64BE<&'a Aes256>);

impl<'a> Keystream<'a> {
    /// The next bytes.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        self.0.write_keystream(bytes);
    }

    /// The stream as 64-bit words.
    pub fn words(self) -> Words<'a> {
        Words {
            stream: self,
            drawn: [0; BUFFER],
            used: BUFFER,
        }
    }
}

/// Bytes that [`Words`] draws at once: single words are dear, many together are cheap.
const BUFFER: usize = 1024;

/// One stream of 64-bit words, little-endian.
pub struct Words<'a> {
    stream: Keystream<'a>,
    drawn: [u8; BUFFER],
    used: usize,
}

impl Words<'_> {
    /// The next words.
    pub fn fill(&mut self, words: &mut [u64]) {
        let mut left = words;
        while !left.is_empty() {
            if self.used == BUFFER {
                self.stream.fill(&mut self.drawn);
                self.used = 0;
            }
            let (ready, _) = self.drawn[self.used..].as_chunks::<8>();
            let (now, later) = left.split_at_mut(left.len().min(ready.len()));
            for (word, eight) in now.iter_mut().zip(ready) {
                *word = u64::from_le_bytes(*eight);
            }
            self.used += 8 * now.len();
            left = later;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// NIST SP 800-38A, F.5.5, whose counter blocks start at f0f1…ff: the crates are the function
    /// that the standard means.
    #[test]
    fn sp_800_38a() {
        let hex = |text: &str| -> Vec<u8> {
            let digits = |i| u8::from_str_radix(&text[i..i + 2], 16).unwrap();
            (0..text.len()).step_by(2).map(digits).collect()
        };
        let seed = "603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4";
        let key = StreamKey::new(&hex(seed).try_into().unwrap());
        let mut bytes = hex("6bc1bee22e409f96e93d7e117393172a\
             ae2d8a571e03ac9c9eb76fac45af8e51");
        let first: [u8; 16] = std::array::from_fn(|i| 0xf0 + i as u8);
        key.starting_at(first).0.apply_keystream(&mut bytes);
        let expected = "601ec313775789a5b7a7f504bbf3d228f443e3ca4d62b59aca84e990cacaf5c5";
        assert_eq!(bytes, hex(expected));
    }

    #[test]
    fn streams_differ_and_go_on() {
        let key = StreamKey::new(&[7; 32]);
        let (mut whole, mut parts, mut other) = ([0u8; 300], [0u8; 300], [0u8; 300]);
        key.stream(5).fill(&mut whole);
        let mut stream = key.stream(5);
        for part in parts.chunks_mut(70) {
            stream.fill(part);
        }
        key.stream(6).fill(&mut other);
        assert_eq!(whole, parts);
        assert_ne!(whole, other);
    }
}
