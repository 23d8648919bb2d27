//! Words as they travel: 64 bits each, little-endian, one after the other.

/// Exactly `count` words, or `None`. The length is compared before anything is allocated.
pub fn read(bytes: &[u8], count: usize) -> Option<Vec<u64>> {
    let (words, rest) = bytes.as_chunks::<8>();
    (words.len() == count && rest.is_empty())
        .then(|| words.iter().map(|word| u64::from_le_bytes(*word)).collect())
}
