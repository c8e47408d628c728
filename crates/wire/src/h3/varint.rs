//! QUIC's variable-length integers (RFC 9000 16).

/// Takes an integer from the front of `input`; `None`: it is not there in whole.
pub(super) fn take(input: &mut &[u8]) -> Option<u64> {
    let (&first, _) = input.split_first()?;
    if first < 0x40 {
        *input = &input[1..];
        return Some(first.into());
    }
    let (bytes, rest) = input.split_at_checked(1 << (first >> 6))?;
    *input = rest;
    Some(bytes[1..].iter().fold(u64::from(first & 0x3f), |value, byte| value << 8 | u64::from(*byte)))
}

/// Appends an integer of at most 62 bits in its shortest form.
pub(super) fn put(value: u64, out: &mut Vec<u8>) {
    match value {
        0..0x40 => out.push(value as u8),
        0x40..0x4000 => out.extend_from_slice(&(value as u16 | 0x4000).to_be_bytes()),
        0x4000..0x4000_0000 => out.extend_from_slice(&(value as u32 | 0x8000_0000).to_be_bytes()),
        _ => out.extend_from_slice(&(value | 0xc000_0000_0000_0000).to_be_bytes()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 9000 A.1, and the bounds of each length.
    #[test]
    fn integers_come_back() {
        for (value, coded) in [
            (151_288_809_941_952_652, &[0xc2, 0x19, 0x7c, 0x5e, 0xff, 0x14, 0xe8, 0x8c][..]),
            (494_878_333, &[0x9d, 0x7f, 0x3e, 0x7d]),
            (15_293, &[0x7b, 0xbd]),
            (37, &[0x25]),
            (63, &[0x3f]),
            (64, &[0x40, 0x40]),
            (16_383, &[0x7f, 0xff]),
            (16_384, &[0x80, 0, 0x40, 0]),
            ((1 << 62) - 1, &[0xff; 8]),
        ] {
            let mut out = Vec::new();
            put(value, &mut out);
            assert_eq!(out, coded);
            let mut rest = &out[..];
            assert_eq!((take(&mut rest), rest), (Some(value), &[][..]));
            assert!((0..coded.len()).all(|bytes| take(&mut &coded[..bytes]).is_none()), "{value}");
        }
        assert_eq!(take(&mut &[0x40, 0x25][..]), Some(37));
    }
}
