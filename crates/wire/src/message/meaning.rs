//! What a field of a response means to its framing, and what may not be in one (RFC 9113 8.2 and 8.3, RFC 9114 4.2 and 4.3).

use crate::h1::is_token_byte;

/// What a field means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Meaning {
    /// `:status`.
    Status(u16),
    /// `content-length`.
    Length(u64),
    /// Nothing to the framing.
    Plain,
    /// It makes the response malformed, and why.
    Wrong(&'static str),
}

impl Meaning {
    pub(crate) fn of(name: &[u8], value: &[u8]) -> Self {
        if let Some(&byte) = name.first()
            && byte == b':'
        {
            return Self::of_pseudo(name, value);
        }
        if !is_lower_token(name) {
            return Self::Wrong("invalid byte in a field name");
        }
        if !is_value(value) {
            return Self::Wrong("invalid byte in a field value");
        }
        match name {
            b"content-length" => length(value),
            b"connection" | b"keep-alive" | b"proxy-connection" | b"transfer-encoding" | b"upgrade" => {
                CONNECTION_SPECIFIC
            }
            b"te" if value != b"trailers" => CONNECTION_SPECIFIC,
            _ => Self::Plain,
        }
    }

    /// The meaning of an entry of HPACK's static table.
    pub(crate) const fn of_static(index: usize) -> Self {
        match index {
            1..=7 => NOT_IN_RESPONSES,
            8 => Self::Status(200),
            9 => Self::Status(204),
            10 => Self::Status(206),
            11 => Self::Status(304),
            12 => Self::Status(400),
            13 => Self::Status(404),
            14 => Self::Status(500),
            28 => NO_LENGTH,
            57 => CONNECTION_SPECIFIC,
            _ => Self::Plain,
        }
    }

    fn of_pseudo(name: &[u8], value: &[u8]) -> Self {
        if name != b":status" {
            return NOT_IN_RESPONSES;
        }
        Self::of_status(value)
    }

    /// The meaning of `:status`.
    pub(crate) const fn of_status(value: &[u8]) -> Self {
        match value {
            [a @ b'1'..=b'9', b @ b'0'..=b'9', c @ b'0'..=b'9'] => {
                Self::Status((*a - b'0') as u16 * 100 + (*b - b'0') as u16 * 10 + (*c - b'0') as u16)
            }
            _ => Self::Wrong(":status that is not three digits"),
        }
    }
}

pub(crate) const NOT_IN_RESPONSES: Meaning = Meaning::Wrong("pseudo-header field that responses do not have");
const CONNECTION_SPECIFIC: Meaning = Meaning::Wrong("connection-specific field");
const NO_LENGTH: Meaning = Meaning::Wrong("content-length is not a number");

fn length(value: &[u8]) -> Meaning {
    if value.is_empty() || !value.iter().all(u8::is_ascii_digit) {
        return NO_LENGTH;
    }
    let add = |sum: u64, byte: &u8| sum.checked_mul(10)?.checked_add(u64::from(byte - b'0'));
    value.iter().try_fold(0, add).map_or(NO_LENGTH, Meaning::Length)
}

fn is_lower_token(name: &[u8]) -> bool {
    !name.is_empty() && name.iter().all(|byte| is_token_byte(*byte) && !byte.is_ascii_uppercase())
}

/// RFC 9113 8.2.1: no NUL, CR or LF; no space or tab at either end.
fn is_value(value: &[u8]) -> bool {
    let is_space = |byte: Option<&u8>| matches!(byte, Some(b' ' | b'\t'));
    !value.iter().any(|byte| matches!(byte, 0 | b'\r' | b'\n'))
        && !is_space(value.first())
        && !is_space(value.last())
}
