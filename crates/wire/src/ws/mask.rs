//! The masking of RFC 6455 5.3: each byte combined with one of the four bytes of the key, in turn.

/// Masks, or unmasks, `bytes`, which begin at `offset` of the payload.
///
/// The loop over words is one that the compiler turns into vector instructions; the key is rotated instead of indexed.
pub(super) fn apply(key: [u8; 4], offset: u64, bytes: &mut [u8]) {
    let key = rotated(key, offset);
    let mut wide = [0; 16];
    wide.chunks_exact_mut(4).for_each(|part| part.copy_from_slice(&key));
    let wide = u128::from_ne_bytes(wide);
    let (words, rest) = bytes.as_chunks_mut::<16>();
    for word in words {
        *word = (u128::from_ne_bytes(*word) ^ wide).to_ne_bytes();
    }
    for (byte, key) in rest.iter_mut().zip(key.iter().cycle()) {
        *byte ^= key;
    }
}

/// The key as it applies from `offset` on.
fn rotated(key: [u8; 4], offset: u64) -> [u8; 4] {
    let by = (offset % 4) as usize;
    std::array::from_fn(|idx| key[(idx + by) % 4])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masking_in_pieces_equals_masking_byte_by_byte() {
        let key = [0x37, 0xfa, 0x21, 0x3d];
        let payload: Vec<u8> = (0..100).collect();
        let expected: Vec<u8> =
            payload.iter().zip(key.iter().cycle()).map(|(byte, key)| byte ^ key).collect();
        for cut in 0..payload.len() {
            let mut bytes = payload.clone();
            let (first, second) = bytes.split_at_mut(cut);
            apply(key, 0, first);
            apply(key, cut as u64, second);
            assert_eq!(bytes, expected, "cut at {cut}");
        }
    }
}
