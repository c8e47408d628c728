//! Cookies: the server stores none, it only says what the client should store (RFC 6265).

use hyper::header::{COOKIE, SET_COOKIE};
use serde_json::{Map, Value, json};
use squall_plan::cookies::cookie_pairs;

use super::redirects::found;
use crate::{
    call::Call,
    reply::{Refusal, Reply},
};

pub(super) fn list(call: &Call<'_>) -> Result<Reply, Refusal> {
    let fields = call.head.headers.get_all(COOKIE).iter();
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    let pairs = fields.flat_map(|field| cookie_pairs(field.as_bytes()));
    let cookies: Map<String, Value> = pairs.map(|(name, value)| (text(name), text(value).into())).collect();
    Ok(Reply::json(&json!({ "cookies": cookies })))
}

pub(super) fn set(call: &Call<'_>) -> Result<Reply, Refusal> {
    call.query_pairs()
        .try_fold(found("/cookies")?, |reply, (name, value)| set_cookie(reply, &name, &value, ""))
}

pub(super) fn set_one(call: &Call<'_>) -> Result<Reply, Refusal> {
    set_cookie(found("/cookies")?, &call.arg(0)?, &call.arg(1)?, "")
}

pub(super) fn delete(call: &Call<'_>) -> Result<Reply, Refusal> {
    let gone = "; Max-Age=0; Expires=Thu, 01 Jan 1970 00:00:00 GMT";
    call.query_pairs().try_fold(found("/cookies")?, |reply, (name, _)| set_cookie(reply, &name, "", gone))
}

fn set_cookie(reply: Reply, name: &str, value: &str, attributes: &str) -> Result<Reply, Refusal> {
    if name.is_empty() || name.contains(['=', ';', ' ']) || value.contains(';') {
        return Err(Refusal::new(format!("`{name}={value}` is not a cookie")));
    }
    reply.with_asked(SET_COOKIE, &format!("{name}={value}; Path=/{attributes}"))
}
