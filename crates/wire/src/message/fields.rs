//! Request heads as lists of fields (RFC 9113 8.3.1, RFC 9114 4.3.1).

use crate::h1::{EncodeError, RequestHead, check_head};

/// Gives `push` the fields of a request, in their order: `scheme` is `http` or `https`, `protocol` that of an extended CONNECT (RFC 8441 4),
/// the rest as in HTTP/1.1. Fields that only an HTTP/1.1 connection has (RFC 9113 8.2.2, RFC 9114 4.2) are left out, and `Host` becomes
/// `:authority`.
///
/// # Errors
///
/// As [`crate::h1::encode_head`].
pub(crate) fn request_fields(
    head: &RequestHead<'_>,
    (scheme, protocol): (&str, Option<&str>),
    mut push: impl FnMut(&str, &str),
) -> Result<(), EncodeError> {
    check_head(head)?;
    push(":method", head.method);
    if let Some(protocol) = protocol {
        push(":protocol", protocol);
    }
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
    Ok(())
}

fn is(name: &str, lower: &str) -> bool {
    name.eq_ignore_ascii_case(lower)
}

/// Fields about an HTTP/1.1 connection, and `Host`.
fn is_dropped(name: &str, value: &str) -> bool {
    let names = ["connection", "host", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade"];
    names.iter().any(|one| is(name, one)) || is(name, "te") && !is(value, "trailers")
}
