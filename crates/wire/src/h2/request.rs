//! Request heads, encoded (RFC 9113 8.3.1).

use super::hpack::{FieldBlock, FieldTable};
use crate::h1::{EncodeError, RequestHead};
use crate::message::request_fields;

/// Prepares a request: `scheme` is `http` or `https`, the rest as in HTTP/1.1. Fields that HTTP/2 does not have (RFC 9113 8.2.2) are
/// left out, and `Host` becomes `:authority`. With a `table`, its fields are shared with the other requests to the same origin;
/// without one, the block is good for any connection.
///
/// # Errors
///
/// As [`crate::h1::encode_head`].
pub fn prepare(
    head: &RequestHead<'_>,
    scheme: &str,
    table: Option<&mut FieldTable>,
) -> Result<FieldBlock, EncodeError> {
    prepare_fields(head, (scheme, None), table)
}

/// The same for a `CONNECT` that opens a stream of another protocol (RFC 8441 4).
///
/// # Errors
///
/// As [`crate::h1::encode_head`].
pub fn prepare_extended(
    head: &RequestHead<'_>,
    (scheme, protocol): (&str, &str),
    table: Option<&mut FieldTable>,
) -> Result<FieldBlock, EncodeError> {
    prepare_fields(head, (scheme, Some(protocol)), table)
}

fn prepare_fields(
    head: &RequestHead<'_>,
    to: (&str, Option<&str>),
    mut table: Option<&mut FieldTable>,
) -> Result<FieldBlock, EncodeError> {
    let mut block = FieldBlock::default();
    request_fields(head, to, |name, value| match &mut table {
        Some(table) => block.push_shared(name, value, table),
        None => block.push(name, value),
    })?;
    Ok(block)
}
