//! Long-term identities: Ed25519 signatures over whole messages (RFC 8032), from `ed25519-dalek`.

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

    #[test]
    fn weak_keys_are_refused() {
        let mut one = [0u8; 32];
        one[0] = 1;
        assert!(!is_public_key(&one));
        assert!(!is_public_key(&[0xff; 32]));
        assert!(is_public_key(&Identity::from_secret(&[7; 32]).public()));
    }
}
