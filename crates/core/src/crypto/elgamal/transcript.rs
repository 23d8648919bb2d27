//! Hashes of things in order, each with its length; challenges, and seeds of streams.

use chacha20::ChaCha20Rng;
use curve25519_dalek::scalar::Scalar;
use rand_core::{Rng, SeedableRng};
use sha2::{Digest, Sha512};
use zeroize::{Zeroize, Zeroizing};

/// SHA-512 over a domain and a list of fields, each preceded by its length: two different lists
/// never give the same input.
pub(super) struct Transcript(Sha512);

impl Transcript {
    /// Begins with the purpose of the hash.
    pub(super) fn new(purpose: &str) -> Self {
        Self(Sha512::new())
            .bytes(b"silograph/elgamal/v1")
            .bytes(purpose.as_bytes())
    }

    pub(super) fn bytes(mut self, field: &[u8]) -> Self {
        self.0.update((field.len() as u64).to_le_bytes());
        self.0.update(field);
        self
    }

    pub(super) fn number(self, value: u64) -> Self {
        self.bytes(&value.to_le_bytes())
    }

    pub(super) fn digest(self) -> [u8; 64] {
        self.0.finalize().into()
    }

    /// Uniform to within 2^-250: 512 bits reduced modulo the group order of 253 bits.
    pub(super) fn scalar(self) -> Scalar {
        let wide = Zeroizing::new(self.digest());
        Scalar::from_bytes_mod_order_wide(&wide)
    }

    /// A source of as many ChaCha20 streams as are needed.
    pub(super) fn streams(self) -> Streams {
        let wide = Zeroizing::new(self.digest());
        let mut key = Zeroizing::new([0; 32]);
        key.copy_from_slice(&wide[..32]);
        Streams(key)
    }
}

/// One ChaCha20 key; blocks of cells draw from streams of their own, in any order.
pub(super) struct Streams(Zeroizing<[u8; 32]>);

impl Streams {
    pub(super) fn block(&self, block: usize) -> ChaCha20Rng {
        let mut rng = ChaCha20Rng::from_seed(*self.0);
        rng.set_stream(block as u64);
        rng
    }
}

/// A scalar that is uniform to within 2^-250, from 64 bytes of the stream.
pub(super) fn draw_scalar(rng: &mut ChaCha20Rng) -> Scalar {
    let mut wide = [0; 64];
    rng.fill_bytes(&mut wide);
    let scalar = Scalar::from_bytes_mod_order_wide(&wide);
    wide.zeroize();
    scalar
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_do_not_run_into_each_other() {
        let joined = |fields: &[&[u8]]| {
            fields
                .iter()
                .fold(Transcript::new("t"), |t, f| t.bytes(f))
                .digest()
        };
        assert_ne!(joined(&[b"ab", b"c"]), joined(&[b"a", b"bc"]));
        assert_ne!(joined(&[b"abc"]), joined(&[b"abc", b""]));
        assert_ne!(Transcript::new("a").digest(), Transcript::new("b").digest());
    }

    #[test]
    fn streams_differ_by_block_and_repeat_by_seed() {
        let streams = || Transcript::new("t").bytes(&[7; 32]).streams();
        let draw = |block| draw_scalar(&mut streams().block(block));
        assert_eq!(draw(0), draw(0));
        assert_ne!(draw(0), draw(1));
    }
}
