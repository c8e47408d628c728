//! Basic and bearer authentication (RFC 7617, RFC 6750).

use data_encoding::BASE64;
use hyper::{
    StatusCode,
    header::{AUTHORIZATION, WWW_AUTHENTICATE},
};
use serde_json::json;

use crate::{
    call::Call,
    reply::{Refusal, Reply},
};

pub(super) fn basic(call: &Call<'_>) -> Result<Reply, Refusal> {
    let challenge = Reply::empty(StatusCode::UNAUTHORIZED).with(WWW_AUTHENTICATE, "Basic realm=\"squall\"");
    Ok(check_basic(call)?.unwrap_or(challenge))
}

pub(super) fn hidden_basic(call: &Call<'_>) -> Result<Reply, Refusal> {
    Ok(check_basic(call)?.unwrap_or_else(|| Reply::empty(StatusCode::NOT_FOUND)))
}

fn check_basic(call: &Call<'_>) -> Result<Option<Reply>, Refusal> {
    let (user, password) = (call.arg(0)?, call.arg(1)?);
    let given = credentials(call, "basic").and_then(|text| BASE64.decode(text.as_bytes()).ok());
    let is_right = given == Some(format!("{user}:{password}").into_bytes());
    Ok(is_right.then(|| welcome(&user)))
}

pub(super) fn bearer(call: &Call<'_>) -> Result<Reply, Refusal> {
    let challenge = || Reply::empty(StatusCode::UNAUTHORIZED).with(WWW_AUTHENTICATE, "Bearer");
    let token = credentials(call, "bearer").filter(|token| !token.is_empty());
    Ok(token.map_or_else(challenge, |token| Reply::json(&json!({ "authenticated": true, "token": token }))))
}

/// What follows the scheme's name in the `Authorization` header.
pub(super) fn credentials<'a>(call: &'a Call<'_>, scheme: &str) -> Option<&'a str> {
    let (given, rest) = call.header(AUTHORIZATION)?.split_once(' ')?;
    given.eq_ignore_ascii_case(scheme).then(|| rest.trim())
}

pub(super) fn welcome(user: &str) -> Reply {
    Reply::json(&json!({ "authenticated": true, "user": user }))
}
