//! Payloads that only their receivers can read: ChaCha20-Poly1305 (RFC 8439).
//!
//! A key encrypts one message under each nonce. Callers count: a nonce is a round and a number
//! within it, and a message is made again only byte for byte.

use chacha20poly1305::aead::{AeadInOut, KeyInit};
use chacha20poly1305::{ChaCha20Poly1305, Key, Nonce};

/// Bytes that encryption adds.
pub const TAG: usize = 16;

/// A key. It is wiped when dropped, and never shown.
pub struct AeadKey(ChaCha20Poly1305);

impl AeadKey {
    /// From 32 secret bytes that have no other use.
    pub fn new(key: &[u8; 32]) -> Self {
        Self(ChaCha20Poly1305::new(&Key::from(*key)))
    }

    /// The message and its tag; `header` is authenticated with it.
    pub fn seal(&self, nonce: [u8; 12], header: &[u8], message: &[u8]) -> Vec<u8> {
        let mut sealed = Vec::with_capacity(message.len() + TAG);
        sealed.extend_from_slice(message);
        self.0
            .encrypt_in_place(&Nonce::from(nonce), header, &mut sealed)
            .expect("messages are far shorter than 2^32 blocks");
        sealed
    }

    /// The message, or `None` where key, nonce, header or content are not those of the sender.
    pub fn open(&self, nonce: [u8; 12], header: &[u8], sealed: &[u8]) -> Option<Vec<u8>> {
        let mut message = sealed.to_vec();
        let opened = self
            .0
            .decrypt_in_place(&Nonce::from(nonce), header, &mut message);
        opened.ok().map(|()| message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(text: &str) -> Vec<u8> {
        let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
        let byte = |two: &[u8]| u8::from_str_radix(std::str::from_utf8(two).unwrap(), 16).unwrap();
        digits.chunks(2).map(byte).collect()
    }

    /// RFC 8439, §2.8.2: the crate is the function that the RFC means.
    #[test]
    fn rfc_8439() {
        let key: [u8; 32] = std::array::from_fn(|i| 0x80 + i as u8);
        let nonce = [7, 0, 0, 0, 0x40, 0x41, 0x42, 0x43, 0x44, 0x45, 0x46, 0x47];
        let header = hex("50515253c0c1c2c3c4c5c6c7");
        let message = b"Ladies and Gentlemen of the class of '99: If I could offer you only one \
                        tip for the future, sunscreen would be it.";
        let sealed = AeadKey::new(&key).seal(nonce, &header, message);
        assert_eq!(sealed[..8], hex("d31a8d34648e60db"));
        assert_eq!(
            sealed[message.len()..],
            hex("1ae10b594f09e26a7e902ecbd0600691")
        );
        let opened = AeadKey::new(&key).open(nonce, &header, &sealed);
        assert_eq!(opened.unwrap(), message);
    }

    #[test]
    fn any_change_is_refused() {
        let (key, nonce) = (AeadKey::new(&[1; 32]), [2; 12]);
        let sealed = key.seal(nonce, b"header", b"message");
        for position in 0..sealed.len() {
            let mut changed = sealed.clone();
            changed[position] ^= 1;
            assert!(key.open(nonce, b"header", &changed).is_none());
        }
        assert!(key.open([3; 12], b"header", &sealed).is_none());
        assert!(key.open(nonce, b"Header", &sealed).is_none());
        assert!(
            AeadKey::new(&[2; 32])
                .open(nonce, b"header", &sealed)
                .is_none()
        );
        assert!(key.open(nonce, b"header", &sealed[..TAG - 1]).is_none());
    }
}
