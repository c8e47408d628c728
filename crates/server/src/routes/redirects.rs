//! Redirects, chains of them, and to anywhere.

use hyper::{StatusCode, header::LOCATION};

use crate::{
    call::Call,
    limits::ITEM_COUNT_MAX,
    reply::{Refusal, Reply},
};

pub(super) fn redirect(call: &Call<'_>) -> Result<Reply, Refusal> {
    if call.query("absolute").is_some_and(|value| value.eq_ignore_ascii_case("true")) {
        return absolute(call);
    }
    relative(call)
}

pub(super) fn relative(call: &Call<'_>) -> Result<Reply, Refusal> {
    found(&next(call, "relative-redirect")?)
}

pub(super) fn absolute(call: &Call<'_>) -> Result<Reply, Refusal> {
    found(&(call.origin() + &next(call, "absolute-redirect")?))
}

pub(super) fn redirect_to(call: &Call<'_>) -> Result<Reply, Refusal> {
    let url = call.query("url").ok_or_else(|| Refusal::new("give a `url`, as in /redirect-to?url=/get"))?;
    let code = call.query_count("status_code", 302, 300..=399)?;
    let status = StatusCode::from_u16(code as u16).unwrap_or(StatusCode::FOUND);
    Ok(found(&url)?.with_status(status))
}

/// 302 to this place.
pub(super) fn found(location: &str) -> Result<Reply, Refusal> {
    Reply::empty(StatusCode::FOUND).with_asked(LOCATION, location)
}

fn next(call: &Call<'_>, route: &str) -> Result<String, Refusal> {
    match call.count(0, 1..=ITEM_COUNT_MAX)? {
        1 => Ok("/get".to_owned()),
        left => Ok(format!("/{route}/{}", left - 1)),
    }
}
