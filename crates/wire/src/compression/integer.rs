//! Integers: a prefix within a byte, then seven bits a byte (RFC 7541 5.1, RFC 9204 4.1.1).

use super::CodingError;

/// Takes an integer with a prefix of `prefix_bits` from the front of `input`.
pub(crate) fn take(input: &mut &[u8], prefix_bits: u32) -> Result<usize, CodingError> {
    let (&first, mut rest) = input.split_first().ok_or(CodingError::Incomplete)?;
    let prefix_max = (1_u64 << prefix_bits) - 1;
    let mut value = u64::from(first) & prefix_max;
    if value == prefix_max {
        let mut shift = 0;
        loop {
            let (&byte, after) = rest.split_first().ok_or(CodingError::Incomplete)?;
            rest = after;
            value += (u64::from(byte) & 0x7f) << shift;
            if byte & 0x80 == 0 {
                break;
            }
            shift += 7;
            // RFC 9204 4.1.1: up to 62 bits.
            if shift > 56 {
                return Err(TOO_LARGE);
            }
        }
    }
    *input = rest;
    usize::try_from(value).map_err(|_| TOO_LARGE)
}

/// Appends an integer; `pattern` is what the first byte says besides.
pub(crate) fn put(value: u64, prefix_bits: u32, pattern: u8, out: &mut Vec<u8>) {
    let prefix_max = (1_u64 << prefix_bits) - 1;
    if value < prefix_max {
        return out.push(pattern | value as u8);
    }
    out.push(pattern | prefix_max as u8);
    let mut rest = value - prefix_max;
    while rest >= 0x80 {
        out.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}

const TOO_LARGE: CodingError = CodingError::Invalid("integer in a header block is too large");

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 7541 C.1, and the bounds of each byte.
    #[test]
    fn integers_come_back() {
        for (value, bits, coded) in [
            (10, 5, &[0x0a][..]),
            (1337, 5, &[0x1f, 0x9a, 0x0a]),
            (42, 8, &[0x2a]),
            (31, 5, &[0x1f, 0x00]),
            ((1 << 62) - 1, 7, &[0x7f, 0x80, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x3f]),
        ] {
            let mut out = Vec::new();
            put(value, bits, 0, &mut out);
            assert_eq!(out, coded);
            assert_eq!(take(&mut &out[..], bits), Ok(value as usize));
        }
        assert_eq!(take(&mut &[0x1f, 0x80][..], 5), Err(CodingError::Incomplete));
        assert_eq!(take(&mut &[&[0x1f][..], &[0xff; 10]].concat()[..], 5), Err(TOO_LARGE));
    }
}
