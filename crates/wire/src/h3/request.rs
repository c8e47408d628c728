//! Request heads as HEADERS frames (RFC 9114 4.3.1).

use super::frame;
use super::qpack::SectionWriter;
use crate::h1::{EncodeError, RequestHead};
use crate::message::request_fields;

/// The fields of one request, encoded once: the same bytes on every connection.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FieldSection {
    /// The whole HEADERS frame.
    frame: Box<[u8]>,
    /// Names and values alone.
    bytes: usize,
    field_count: usize,
}

impl FieldSection {
    /// The HEADERS frame.
    pub(crate) fn frame(&self) -> &[u8] {
        &self.frame
    }

    /// Length of names and values, before compression.
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Size of the section as a peer's `SETTINGS_MAX_FIELD_SECTION_SIZE` counts it (RFC 9114 4.2.2).
    pub const fn list_bytes(&self) -> usize {
        self.bytes + self.field_count * FIELD_OVERHEAD
    }
}

/// Prepares a request: `scheme` is `http` or `https`, the rest as in HTTP/1.1. Fields that HTTP/3 does not have (RFC 9114 4.2) are left out,
/// and `Host` becomes `:authority`.
///
/// # Errors
///
/// As [`crate::h1::encode_head`].
pub fn prepare(head: &RequestHead<'_>, scheme: &str) -> Result<FieldSection, EncodeError> {
    prepare_fields(head, (scheme, None))
}

/// The same for a `CONNECT` that opens a stream of another protocol (RFC 9220 3).
///
/// # Errors
///
/// As [`crate::h1::encode_head`].
pub fn prepare_extended(
    head: &RequestHead<'_>,
    (scheme, protocol): (&str, &str),
) -> Result<FieldSection, EncodeError> {
    prepare_fields(head, (scheme, Some(protocol)))
}

fn prepare_fields(head: &RequestHead<'_>, to: (&str, Option<&str>)) -> Result<FieldSection, EncodeError> {
    let mut section = SectionWriter::default();
    let (mut bytes, mut field_count) = (0, 0);
    request_fields(head, to, |name, value| {
        section.push(name.as_bytes(), value.as_bytes());
        bytes += name.len() + value.len();
        field_count += 1;
    })?;
    let mut frame = Vec::with_capacity(section.as_bytes().len() + frame::HEAD_BYTES_MAX);
    frame::put(frame::HEADERS, section.as_bytes(), &mut frame);
    Ok(FieldSection { frame: frame.into_boxed_slice(), bytes, field_count })
}

/// RFC 9114 4.2.2.
const FIELD_OVERHEAD: usize = 32;
