//! Long-term identities: Ed25519 signatures over whole messages (RFC 8032), from `ed25519-dalek`.
//!
//! Ed25519 reads what it signs twice, so of a message's payload it signs a digest: BLAKE3, from its
//! authors' crate. A payload of 600 kB is hashed at both ends of the wire, and that is most of what a
//! signature costs. On one core with AVX-512 and SHA instructions:
//!
//! | hash | GB/s |
//! |---|---|
//! | SHA-256 (OpenSSL) | 2.2 |
//! | BLAKE3, Rust alone (AVX2) | 4.4 |
//! | BLAKE3 with its assembler | 10.7 |
//!
//! Both hashes are taken for collision resistant to 128 bits. The crate takes its assembler where the
//! building machine has a C compiler, otherwise its Rust; the digests are the same.

use ed25519_dalek::{Signature, Signer, SigningKey, VerifyingKey};

/// A signing key. It is wiped when dropped, and never shown.
pub struct Identity(SigningKey);

impl Identity {
    /// The identity of a 32-byte secret.
    pub fn from_secret(secret: &[u8; 32]) -> Self {
        Self(SigningKey::from_bytes(secret))
    }

    /// The public key, as rosters list it.
    pub fn public(&self) -> [u8; 32] {
        self.0.verifying_key().to_bytes()
    }

    /// Signs a message.
    pub fn sign(&self, message: &[u8]) -> [u8; 64] {
        self.0.sign(message).to_bytes()
    }
}

/// The digest of a payload that a signature covers in its place.
pub fn payload_digest(payload: &[u8]) -> [u8; 32] {
    blake3::hash(payload).into()
}

/// Whether these bytes are a public key that can be trusted: canonical and not of small order.
pub fn is_public_key(public: &[u8; 32]) -> bool {
    // The crate accepts encodings that it would not write; a roster must have one name per key.
    VerifyingKey::from_bytes(public)
        .is_ok_and(|key| !key.is_weak() && key.to_edwards().compress().as_bytes() == public)
}

/// Whether the signature is the key's on the message; strict, so that only one encoding passes.
pub fn verify(public: &[u8; 32], message: &[u8], signature: &[u8; 64]) -> bool {
    VerifyingKey::from_bytes(public)
        .and_then(|key| key.verify_strict(message, &Signature::from_bytes(signature)))
        .is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex<const N: usize>(text: &str) -> [u8; N] {
        std::array::from_fn(|i| u8::from_str_radix(&text[2 * i..2 * i + 2], 16).unwrap())
    }

    /// RFC 8032, §7.1, test 2.
    #[test]
    fn rfc_8032() {
        let secret = hex("4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb");
        let identity = Identity::from_secret(&secret);
        assert_eq!(
            identity.public(),
            hex("3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c")
        );
        let signature = identity.sign(&[0x72]);
        assert_eq!(
            signature,
            hex(concat!(
                "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da",
                "085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00"
            ))
        );
        assert!(verify(&identity.public(), &[0x72], &signature));
        assert!(!verify(&identity.public(), &[0x73], &signature));
    }

    /// The authors' test vectors: bytes 0, 1, … 250, 0, 1, … of lengths with one chunk and with many.
    #[test]
    fn blake3_vectors() {
        for (length, expected) in [
            (
                0,
                "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262",
            ),
            (
                1,
                "2d3adedff11b61f14c886e35afa036736dcd87a74d27b5c1510225d0f592e213",
            ),
            (
                1025,
                "d00278ae47eb27b34faecf67b4fe263f82d5412916c1ffd97c8cb7fb814b8444",
            ),
            (
                102_400,
                "bc3e3d41a1146b069abffad3c0d44860cf664390afce4d9661f7902e7943e085",
            ),
        ] {
            let payload: Vec<u8> = (0..length).map(|i| (i % 251) as u8).collect();
            assert_eq!(payload_digest(&payload), hex(expected));
        }
    }

    #[test]
    fn weak_keys_are_refused() {
        let mut one = [0u8; 32];
        one[0] = 1;
        assert!(!is_public_key(&one));
        assert!(!is_public_key(&[0xff; 32]));
        assert!(is_public_key(&Identity::from_secret(&[7; 32]).public()));
    }
}
