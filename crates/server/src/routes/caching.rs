//! Headers chosen by the request, validators and lifetimes (RFC 9110 13, RFC 9111).

use hyper::{
    StatusCode,
    header::{
        CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE, ETAG, HeaderName, IF_MATCH, IF_MODIFIED_SINCE,
        IF_NONE_MATCH, LAST_MODIFIED, TRANSFER_ENCODING,
    },
};

use super::echo;
use crate::{
    call::Call,
    reply::{Refusal, Reply},
};

/// The body holds the same fields as JSON.
pub(super) fn response_headers(call: &Call<'_>) -> Result<Reply, Refusal> {
    call.query_pairs().try_fold(Reply::json(&echo::args(call)), |mut reply, (name, value)| {
        let name: HeaderName = name
            .parse()
            .map_err(|_| Refusal::new(format!("`{}` is not a header name", name.escape_debug())))?;
        if FRAMING.contains(&name) {
            return Err(Refusal::new(format!("{name} is set by the server")));
        }
        if name == CONTENT_TYPE {
            reply.headers.remove(CONTENT_TYPE);
        }
        reply.with_asked(name, &value)
    })
}

/// A wrong one of these would make the response unreadable.
const FRAMING: [HeaderName; 2] = [CONTENT_LENGTH, TRANSFER_ENCODING];

pub(super) fn cache(call: &Call<'_>) -> Result<Reply, Refusal> {
    let headers = &call.head.headers;
    if headers.contains_key(IF_NONE_MATCH) || headers.contains_key(IF_MODIFIED_SINCE) {
        return Ok(Reply::empty(StatusCode::NOT_MODIFIED));
    }
    Ok(echo::without_body(call)?
        .with(LAST_MODIFIED, "Thu, 01 Jan 2026 00:00:00 GMT")
        .with(ETAG, "\"squall\""))
}

pub(super) fn cache_for(call: &Call<'_>) -> Result<Reply, Refusal> {
    let seconds = call.count(0, 0..=u64::from(u32::MAX))?;
    echo::without_body(call)?.with_asked(CACHE_CONTROL, &format!("public, max-age={seconds}"))
}

pub(super) fn etag(call: &Call<'_>) -> Result<Reply, Refusal> {
    let ours = call.arg(0)?;
    let is_listed = |name| call.header(name).map(|list| lists(list, &ours));
    let reply = match (is_listed(IF_MATCH), is_listed(IF_NONE_MATCH)) {
        (Some(false), _) => Reply::empty(StatusCode::PRECONDITION_FAILED),
        (_, Some(true)) => Reply::empty(StatusCode::NOT_MODIFIED),
        _ => echo::without_body(call)?,
    };
    reply.with_asked(ETAG, &format!("\"{ours}\""))
}

/// Whether a list of entity tags holds this one; weak ones count, as in RFC 9110 13.1.2.
fn lists(list: &str, tag: &str) -> bool {
    list.split(',')
        .map(|item| item.trim().trim_start_matches("W/"))
        .any(|item| item == "*" || item.trim_matches('"') == tag)
}
