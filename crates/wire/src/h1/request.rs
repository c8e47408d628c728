//! Encodes request heads (RFC 9112 3 and 5). Bodies are the caller's.

use super::field::is_token;
use super::limits::REQUEST_HEAD_BYTES_MAX;

/// A request head to be encoded.
#[derive(Debug, Clone, Copy)]
pub struct RequestHead<'a> {
    /// Method: a token, sent as it is (methods are case-sensitive).
    pub method: &'a str,
    /// Request target in origin-, absolute-, authority-, or asterisk-form, percent-encoded.
    pub target: &'a str,
    /// Value of `Host`, which is sent first; not sent when `headers` has a `Host`.
    pub host: Option<&'a str>,
    /// Further fields, in the order in which they are sent.
    pub headers: &'a [(&'a str, &'a str)],
    /// Length of the body in bytes, sent last as `Content-Length`; not sent when `headers` has one, or a `Transfer-Encoding`
    /// (RFC 9112 6.2 forbids both in one message).
    pub content_length: Option<u64>,
}

/// Why a request head cannot be sent. Values are not repeated: they may be secrets.
#[derive(thiserror::Error, Debug, Clone, PartialEq, Eq)]
pub enum EncodeError {
    /// RFC 9110 9.1: a method is a token.
    #[error("method {method:?} is not a token")]
    MethodInvalid {
        /// The method.
        method: String,
    },
    /// RFC 9112 3.2: no whitespace, control characters, or bytes beyond ASCII; those are percent-encoded.
    #[error("byte {byte:#04x} in the request target, at index {index}")]
    TargetInvalid {
        /// Its place in the target, from 0.
        index: usize,
        /// The byte.
        byte: u8,
    },
    /// RFC 9112 3.2: there is a target.
    #[error("the request target is empty")]
    TargetMissing,
    /// RFC 9110 7.2: `Host` is a host and a port, so it has no whitespace, control characters, or bytes beyond ASCII.
    #[error("byte {byte:#04x} in the Host value, at index {index}")]
    HostInvalid {
        /// Its place in the value, from 0.
        index: usize,
        /// The byte.
        byte: u8,
    },
    /// RFC 9110 5.1: a field name is a token.
    #[error("header name {name:?} is not a token")]
    FieldNameInvalid {
        /// The name.
        name: String,
    },
    /// RFC 9110 5.5: a field value has no control characters but tabs.
    #[error("byte {byte:#04x} in the value of header {name:?}, at index {index}")]
    FieldValueInvalid {
        /// The field's name.
        name: String,
        /// Its place in the value, from 0.
        index: usize,
        /// The byte.
        byte: u8,
    },
    /// Larger than [`REQUEST_HEAD_BYTES_MAX`].
    #[error("the request head has {bytes} bytes, more than {bytes_max}")]
    HeadTooLarge {
        /// Its length.
        bytes: usize,
        /// The limit.
        bytes_max: usize,
    },
}

/// Appends the head of a request, the empty line included, to `out`.
///
/// # Errors
///
/// When a part would break the head's syntax, such as a line end in a value; `out` is then as it was.
pub fn encode_head(head: &RequestHead<'_>, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    check(head)?;
    let bytes_before = out.len();
    write(head, out);
    let bytes = out.len() - bytes_before;
    if bytes > REQUEST_HEAD_BYTES_MAX {
        out.truncate(bytes_before);
        return Err(EncodeError::HeadTooLarge { bytes, bytes_max: REQUEST_HEAD_BYTES_MAX });
    }
    Ok(())
}

/// Whether every part of a head can be sent.
pub(crate) fn check(head: &RequestHead<'_>) -> Result<(), EncodeError> {
    if !is_token(head.method.as_bytes()) {
        return Err(EncodeError::MethodInvalid { method: head.method.to_owned() });
    }
    if head.target.is_empty() {
        return Err(EncodeError::TargetMissing);
    }
    if let Some((index, byte)) = first_invisible_byte(head.target) {
        return Err(EncodeError::TargetInvalid { index, byte });
    }
    if let Some((index, byte)) = head.host.and_then(first_invisible_byte) {
        return Err(EncodeError::HostInvalid { index, byte });
    }
    head.headers.iter().try_for_each(|(name, value)| check_field(name, value))
}

fn check_field(name: &str, value: &str) -> Result<(), EncodeError> {
    if !is_token(name.as_bytes()) {
        return Err(EncodeError::FieldNameInvalid { name: name.to_owned() });
    }
    match value.bytes().enumerate().find(|(_, byte)| byte.is_ascii_control() && *byte != b'\t') {
        Some((index, byte)) => Err(EncodeError::FieldValueInvalid { name: name.to_owned(), index, byte }),
        None => Ok(()),
    }
}

fn first_invisible_byte(text: &str) -> Option<(usize, u8)> {
    text.bytes().enumerate().find(|(_, byte)| !byte.is_ascii_graphic())
}

fn write(head: &RequestHead<'_>, out: &mut Vec<u8>) {
    for part in [head.method, " ", head.target, " HTTP/1.1\r\n"] {
        out.extend_from_slice(part.as_bytes());
    }
    if let Some(host) = head.host.filter(|_| !head.has_field("host")) {
        write_field("Host", host, out);
    }
    for (name, value) in head.headers {
        write_field(name, value, out);
    }
    let is_framed = head.has_field("content-length") || head.has_field("transfer-encoding");
    if let Some(bytes) = head.content_length.filter(|_| !is_framed) {
        write_field("Content-Length", &bytes.to_string(), out);
    }
    out.extend_from_slice(b"\r\n");
}

fn write_field(name: &str, value: &str, out: &mut Vec<u8>) {
    for part in [name, ": ", value, "\r\n"] {
        out.extend_from_slice(part.as_bytes());
    }
}

impl RequestHead<'_> {
    fn has_field(&self, name: &str) -> bool {
        self.headers.iter().any(|(it, _)| it.eq_ignore_ascii_case(name))
    }
}
