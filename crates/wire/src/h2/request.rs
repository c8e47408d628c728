//! Request heads as lists of fields (RFC 9113 8.3.1).

use super::hpack::{FieldBlock, FieldTable};
use crate::h1::{EncodeError, RequestHead, check_head};

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
    mut table: Option<&mut FieldTable>,
) -> Result<FieldBlock, EncodeError> {
    check_head(head)?;
    let mut block = FieldBlock::default();
    let mut push = |name: &str, value: &str| match &mut table {
        Some(table) => block.push_shared(name, value, table),
        None => block.push(name, value),
    };
    push(":method", head.method);
    push(":scheme", scheme);
    if let Some(authority) =
        head.headers.iter().find(|(name, _)| is(name, "host")).map(|(_, value)| *value).or(head.host)
    {
        push(":authority", authority);
    }
    push(":path", head.target);
    for (name, value) in head.headers.iter().filter(|(name, value)| !is_dropped(name, value)) {
        push(&name.to_ascii_lowercase(), value.trim_matches([' ', '\t']));
    }
    let is_framed = head.headers.iter().any(|(name, _)| is(name, "content-length"));
    if let Some(bytes) = head.content_length.filter(|_| !is_framed) {
        push("content-length", &bytes.to_string());
    }
    Ok(block)
}

fn is(name: &str, lower: &str) -> bool {
    name.eq_ignore_ascii_case(lower)
}

/// Fields about an HTTP/1.1 connection, and `Host`.
fn is_dropped(name: &str, value: &str) -> bool {
    let names = ["connection", "host", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade"];
    names.iter().any(|one| is(name, one)) || is(name, "te") && !is(value, "trailers")
}
