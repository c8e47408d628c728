//! Field lines: `name: value` (RFC 9110 5, RFC 9112 5), in both directions.

use memchr::memchr;

use super::DecodeError;

/// One field line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field<'a> {
    /// Field name as sent; a token, so it is ASCII.
    pub name: &'a [u8],
    /// Field value without the whitespace around it.
    pub value: &'a [u8],
}

/// The fields of a section in the order in which they came. Repeated names are not joined.
#[derive(Debug, Clone)]
pub struct Fields<'a> {
    /// Whole, valid field lines, then the empty line.
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    /// `lines`: field lines that were parsed before and the empty line after them.
    pub(super) const fn new(lines: &'a [u8]) -> Self {
        Self { rest: lines }
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Field<'a>;

    fn next(&mut self) -> Option<Field<'a>> {
        let line_end = memchr(b'\n', self.rest)?;
        let (name, value) = split_at_colon(strip_cr(&self.rest[..line_end]))?;
        self.rest = &self.rest[line_end + 1..];
        Some(Field { name, value })
    }
}

/// Parses one whole field line. `number` names it in errors, counting from 1.
pub(super) fn parse_field(line: &[u8], number: usize) -> Result<Field<'_>, DecodeError> {
    let Some((name, value)) = split_at_colon(line) else {
        return Err(DecodeError::FieldColonMissing { number });
    };
    if let Some(byte) = first_non_token_byte(name) {
        return Err(DecodeError::FieldNameInvalid { number, byte });
    }
    if has_nul_or_cr(value) {
        return Err(DecodeError::FieldValueInvalid { number });
    }
    Ok(Field { name, value })
}

/// The members of a comma-separated list (RFC 9110 5.6.1), empty ones included. A comma within a quoted string separates nothing.
pub(super) fn list_members(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut in_quotes = false;
    let mut escaped = false;
    value
        .split(move |&byte| {
            match byte {
                _ if escaped => escaped = false,
                b'\\' if in_quotes => escaped = true,
                b'"' => in_quotes = !in_quotes,
                _ => {}
            }
            byte == b',' && !in_quotes
        })
        .map(trim_whitespace)
}

/// The line without the CR that precedes its LF.
pub(super) fn strip_cr(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// Without optional whitespace (RFC 9110 5.6.3: spaces and tabs, nothing else) at both ends.
pub(super) fn trim_whitespace(mut bytes: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] | [rest @ .., b' ' | b'\t'] = bytes {
        bytes = rest;
    }
    bytes
}

/// The first byte that keeps `bytes` from being a token (RFC 9110 5.6.2); of an empty name that is the colon after it.
pub(super) fn first_non_token_byte(bytes: &[u8]) -> Option<u8> {
    if bytes.is_empty() {
        return Some(b':');
    }
    bytes.iter().copied().find(|&byte| !IS_TOKEN[usize::from(byte)])
}

/// Whether a value has one of the bytes that RFC 9110 5.5 calls dangerous. Branchless, so that it is vectorised.
pub(super) fn has_nul_or_cr(value: &[u8]) -> bool {
    value.iter().fold(false, |found, &byte| found | (byte == 0) | (byte == b'\r'))
}

fn split_at_colon(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let colon = memchr(b':', line)?;
    Some((&line[..colon], trim_whitespace(&line[colon + 1..])))
}

/// Whether a byte is a `tchar` (RFC 9110 5.6.2).
static IS_TOKEN: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = matches!(
            byte as u8,
            b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z'
                | b'!' | b'#' | b'$' | b'%' | b'&' | b'\'' | b'*' | b'+' | b'-' | b'.' | b'^' | b'_' | b'`' | b'|' | b'~'
        );
        byte += 1;
    }
    table
};
