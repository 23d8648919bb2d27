//! Signatures, run keys and encrypted payloads.

use proptest::prelude::*;
use proptest::sample::Index;
use silograph_core::crypto::aead::{AeadKey, TAG};
use silograph_core::crypto::agreement::RunSecret;
use silograph_core::crypto::identity::{self, Identity};

use super::{bytes, cases, changed, changes};

proptest! {
    #![proptest_config(cases(96))]

    #[test]
    fn signatures(
        secret: [u8; 32], message in bytes(300), public: [u8; 32], noise: [[u8; 32]; 2],
        at in changes(),
    ) {
        let own = Identity::from_secret(&secret);
        let signature = own.sign(&message);
        prop_assert!(identity::is_public_key(&own.public()));
        prop_assert!(identity::verify(&own.public(), &message, &signature));
        let mut any = [0; 64];
        any.copy_from_slice(noise.as_flattened());
        prop_assert!(!identity::verify(&public, &message, &any));
        prop_assert!(!identity::verify(&own.public(), &message, &any));
        let other: [u8; 64] = changed(&signature, &at).try_into().unwrap();
        prop_assume!(other != signature);
        prop_assert!(!identity::verify(&own.public(), &message, &other));
        let key: [u8; 32] = changed(&own.public(), &at).try_into().unwrap();
        prop_assert!(key == own.public() || !identity::verify(&key, &message, &signature));
        identity::is_public_key(&public);
        identity::is_public_key(&key);
    }

    #[test]
    fn run_keys(secret: [u8; 32], other: [u8; 32], context in bytes(80)) {
        let (one, two) = (RunSecret::new(secret), RunSecret::new(other));
        let shared = one.agree(&two.public(), &context).unwrap();
        let back = two.agree(&one.public(), &context).unwrap();
        prop_assert_eq!(shared.chunk_seed(1), back.chunk_seed(1));
        // Any 32 bytes are a key of X25519, unless they are one of the few of small order.
        prop_assert!(one.agree(&other, &context).is_some());
    }

    #[test]
    fn sealed_payloads(
        key: [u8; 32], nonce: [u8; 12], header in bytes(60), message in bytes(3000),
        noise in bytes(3000), at in changes(), cut: Index,
    ) {
        let key = AeadKey::new(&key);
        let sealed = key.seal(nonce, &header, &message);
        prop_assert_eq!(sealed.len(), message.len() + TAG);
        prop_assert_eq!(key.open(nonce, &header, &sealed), Some(message));
        let other = changed(&sealed, &at);
        prop_assert!(other == sealed || key.open(nonce, &header, &other).is_none());
        prop_assert!(key.open(nonce, &header, &sealed[..cut.index(sealed.len())]).is_none());
        prop_assert!(key.open(nonce, &header, &noise).is_none());
    }
}
