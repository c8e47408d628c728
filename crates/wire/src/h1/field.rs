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
    pub(crate) const fn new(lines: &'a [u8]) -> Self {
        Self { rest: lines }
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Field<'a>;

    fn next(&mut self) -> Option<Field<'a>> {
        let line_end = memchr(b'\n', self.rest)?;
        let line = strip_cr(&self.rest[..line_end]);
        let colon = memchr(b':', line)?;
        self.rest = &self.rest[line_end + 1..];
        Some(Field { name: &line[..colon], value: trim_whitespace(&line[colon + 1..]) })
    }
}

/// Parses one whole field line. `number` names it in errors, counting from 1. The bytes of its value are not judged.
pub(super) fn parse_field(line: &[u8], number: usize) -> Result<Field<'_>, DecodeError> {
    let name_end = token_bytes(line);
    match line.get(name_end) {
        Some(b':') if name_end > 0 => {
            Ok(Field { name: &line[..name_end], value: trim_whitespace(&line[name_end + 1..]) })
        }
        Some(&byte) if line.contains(&b':') => Err(DecodeError::FieldNameInvalid { number, byte }),
        _ => Err(DecodeError::FieldColonMissing { number }),
    }
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

/// Whether `bytes` are a token (RFC 9110 5.6.2).
pub(super) fn is_token(bytes: &[u8]) -> bool {
    !bytes.is_empty() && token_bytes(bytes) == bytes.len()
}

/// Whether a byte may be in a token.
pub(crate) fn is_token_byte(byte: u8) -> bool {
    IS_TOKEN[usize::from(byte)]
}

/// How many bytes at the beginning could be in a token.
fn token_bytes(bytes: &[u8]) -> usize {
    bytes.iter().position(|&byte| !IS_TOKEN[usize::from(byte)]).unwrap_or(bytes.len())
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
