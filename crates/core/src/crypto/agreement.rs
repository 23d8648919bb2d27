//! Seeds that two silos share and nobody else: X25519 (RFC 7748) and HKDF-SHA256 (RFC 5869).
//!
//! A silo has one secret a run; its run key and the seeds of its own contributions come from it,
//! so that a chunk can be made again byte for byte, and only so.

use hkdf::Hkdf;
use sha2::Sha256;
use x25519_dalek::{PublicKey, StaticSecret};
use zeroize::{Zeroize, ZeroizeOnDrop};

/// One silo's secret of one run. It is wiped when dropped, and never shown.
#[derive(Zeroize, ZeroizeOnDrop)]
pub struct RunSecret([u8; 32]);

impl RunSecret {
    /// From 32 fresh random bytes.
    pub fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// 32 bytes for one use, named by a label and a context.
    pub fn derive(&self, label: &[u8], context: &[u8]) -> [u8; 32] {
        expand(&self.0, label, context)
    }

    fn key(&self) -> StaticSecret {
        StaticSecret::from(self.derive(b"silograph/run-key/v1", b""))
    }

    /// The public run key.
    pub fn public(&self) -> [u8; 32] {
        PublicKey::from(&self.key()).to_bytes()
    }

    /// The secret shared with the owner of another run key, bound to a context that both know.
    ///
    /// `None` where the other key is of small order, so that the result would not be secret.
    pub fn agree(&self, other: &[u8; 32], context: &[u8]) -> Option<SharedSecret> {
        let shared = self.key().diffie_hellman(&PublicKey::from(*other));
        shared
            .was_contributory()
            .then(|| SharedSecret(expand(shared.as_bytes(), b"silograph/pair/v1", context)))
    }
}

/// What two silos share in one run.
#[derive(Zeroize, ZeroizeOnDrop)]
pub struct SharedSecret([u8; 32]);

impl SharedSecret {
    /// The seed of one chunk's masks.
    pub fn chunk_seed(&self, chunk: u64) -> [u8; 32] {
        expand(&self.0, b"silograph/mask/v2", &chunk.to_le_bytes())
    }

    /// 32 bytes for another use, named by a label and a context.
    pub fn derive(&self, label: &[u8], context: &[u8]) -> [u8; 32] {
        expand(&self.0, label, context)
    }
}

/// 32 bytes from a secret, for the use that a label and a context name.
pub(crate) fn expand(secret: &[u8], label: &[u8], context: &[u8]) -> [u8; 32] {
    let mut out = [0u8; 32];
    let length = (label.len() as u64).to_le_bytes();
    Hkdf::<Sha256>::new(None, secret)
        .expand_multi_info(&[&length, label, context], &mut out)
        .expect("32 bytes are a valid length");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_sides_agree_and_nobody_else() {
        let (a, b, c) = (
            RunSecret::new([1; 32]),
            RunSecret::new([2; 32]),
            RunSecret::new([3; 32]),
        );
        let ab = a.agree(&b.public(), b"run").unwrap();
        let ba = b.agree(&a.public(), b"run").unwrap();
        assert_eq!(ab.chunk_seed(5), ba.chunk_seed(5));
        assert_ne!(ab.chunk_seed(5), ab.chunk_seed(6));
        assert_ne!(
            ab.chunk_seed(5),
            a.agree(&b.public(), b"other").unwrap().chunk_seed(5)
        );
        assert_ne!(
            ab.chunk_seed(5),
            c.agree(&b.public(), b"run").unwrap().chunk_seed(5)
        );
    }

    #[test]
    fn labels_cannot_run_into_contexts() {
        let secret = RunSecret::new([9; 32]);
        assert_ne!(secret.derive(b"ab", b"c"), secret.derive(b"a", b"bc"));
    }

    #[test]
    fn small_order_keys_are_refused() {
        let mut one = [0u8; 32];
        one[0] = 1;
        for weak in [[0u8; 32], one] {
            assert!(RunSecret::new([1; 32]).agree(&weak, b"run").is_none());
        }
    }

    /// RFC 7748, §6.1: the crate is the function that the RFC means.
    #[test]
    fn rfc_7748() {
        let hex = |text: &str| -> [u8; 32] {
            std::array::from_fn(|i| u8::from_str_radix(&text[2 * i..2 * i + 2], 16).unwrap())
        };
        let bob = StaticSecret::from(hex(
            "5dab087e624a8a4b79e17f8b83800ee66f3bb1292618b6fd1c2f8b27ff88e0eb",
        ));
        let alice = hex("8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a");
        assert_eq!(
            bob.diffie_hellman(&PublicKey::from(alice)).to_bytes(),
            hex("4a5d9d5ba4ce2de1728e3bf480350f25e07e21c947d19e3376f09b3c1e161742")
        );
    }
}
