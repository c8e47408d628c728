//! HPACK's integers: a prefix within a byte, then seven bits a byte (RFC 7541 5.1).

use super::super::Error;
use super::super::error::compression;

/// Takes an integer with a prefix of `prefix_bits` from the front of `input`.
pub(super) fn take(input: &mut &[u8], prefix_bits: u32) -> Result<usize, Error> {
    let (&first, mut rest) = input.split_first().ok_or(INCOMPLETE)?;
    let prefix_max = (1_usize << prefix_bits) - 1;
    let mut value = usize::from(first) & prefix_max;
    if value == prefix_max {
        let mut shift = 0;
        loop {
            let (&byte, after) = rest.split_first().ok_or(INCOMPLETE)?;
            rest = after;
            value += (usize::from(byte) & 0x7f) << shift;
            if byte & 0x80 == 0 {
                break;
            }
            shift += 7;
            // Nothing in a header block is larger than four such bytes can say.
            if shift > 21 {
                return Err(compression("integer in a header block is too large"));
            }
        }
    }
    *input = rest;
    Ok(value)
}

/// Appends an integer; `pattern` is what the first byte says besides.
pub(super) fn put(value: usize, prefix_bits: u32, pattern: u8, out: &mut Vec<u8>) {
    let prefix_max = (1_usize << prefix_bits) - 1;
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

pub(super) const INCOMPLETE: Error = compression("header block ends within a field");

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 7541 C.1, and the bounds of each byte.
    #[test]
    fn integers_come_back() {
        for (value, bits, coded) in
            [(10, 5, &[0x0a][..]), (1337, 5, &[0x1f, 0x9a, 0x0a]), (42, 8, &[0x2a]), (31, 5, &[0x1f, 0x00])]
        {
            let mut out = Vec::new();
            put(value, bits, 0, &mut out);
            assert_eq!(out, coded);
            assert_eq!(take(&mut &out[..], bits), Ok(value));
        }
        assert_eq!(take(&mut &[0x1f, 0x80][..], 5), Err(INCOMPLETE));
        assert!(take(&mut &[0x1f, 0xff, 0xff, 0xff, 0xff, 0xff][..], 5).is_err());
    }
}
