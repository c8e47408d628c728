//! WebSockets: the opening handshake, and what each route does with messages.

use std::time::Duration;

use hyper::{
    Method, StatusCode,
    ext::Protocol,
    header::{
        CONNECTION, HeaderName, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_EXTENSIONS, SEC_WEBSOCKET_KEY,
        SEC_WEBSOCKET_PROTOCOL, SEC_WEBSOCKET_VERSION, UPGRADE,
    },
};
use squall_wire::ws::{CloseCode, deflate::Params, handshake};

use crate::{
    call::Call,
    channels::Membership,
    limits::SEQUENCE_COUNT_MAX,
    reply::{Refusal, Reply},
    websocket::WebSocketSession,
};

pub(super) fn echo(call: &Call<'_>) -> Result<Reply, Refusal> {
    open(call, None)
}

pub(super) fn broadcast(call: &Call<'_>) -> Result<Reply, Refusal> {
    let name = call.query("channel").unwrap_or_default();
    let join = || call.shared.channels.join(&name);
    open(call, Some(&join))
}

/// Answers the opening handshake. A channel is joined only when all else is valid.
fn open(call: &Call<'_>, join: Option<&dyn Fn() -> Membership>) -> Result<Reply, Refusal> {
    let reply = accept(call)?;
    let offers = all(call, SEC_WEBSOCKET_EXTENSIONS);
    let wants_compression = call.query("compress").as_deref() != Some("false");
    let compression = Params::choose(&offers).filter(|_| wants_compression);
    let session = WebSocketSession {
        compression,
        delay: call.query_duration("delay", Duration::ZERO)?,
        ping: call.query("ping").map(|_| call.query_duration("ping", Duration::ZERO)).transpose()?,
        close: close(call)?,
        membership: None,
    };
    if session.ping == Some(Duration::ZERO) {
        return Err(Refusal::new("`ping` is the time between two pings and must not be 0"));
    }
    let reply = match compression {
        Some(params) => reply.with_asked(SEC_WEBSOCKET_EXTENSIONS, &params.to_string())?,
        None => reply,
    };
    // Of the subprotocols the first is chosen: the server understands all of them equally little.
    let offered = all(call, SEC_WEBSOCKET_PROTOCOL);
    let reply = match offered.split(',').map(str::trim).find(|name| !name.is_empty()) {
        Some(first) => reply.with_asked(SEC_WEBSOCKET_PROTOCOL, first)?,
        None => reply,
    };
    let session = WebSocketSession { membership: join.map(|join| join()), ..session };
    Ok(Reply { upgrade: Some(Box::new(session)), ..reply })
}

/// The head of the answer: of RFC 6455 4.2.2, or in HTTP/2 of RFC 8441 5.
fn accept(call: &Call<'_>) -> Result<Reply, Refusal> {
    let protocol = call.head.extensions.get::<Protocol>().map(Protocol::as_str);
    if call.head.method == Method::CONNECT && protocol == Some("websocket") {
        return Ok(Reply::empty(StatusCode::OK));
    }
    let has = |name: HeaderName, token: &str| {
        all(call, name).split(',').any(|value| value.trim().eq_ignore_ascii_case(token))
    };
    if call.head.method != Method::GET || !has(CONNECTION, "upgrade") || !has(UPGRADE, "websocket") {
        let refusal = Refusal::new("this route speaks WebSocket only: use a ws:// URL");
        return Err(refusal.with_status(StatusCode::UPGRADE_REQUIRED).with_header(UPGRADE, "websocket"));
    }
    if call.header(SEC_WEBSOCKET_VERSION) != Some(handshake::VERSION) {
        let refusal = Refusal::new("the only version of WebSocket is 13 (RFC 6455)");
        return Err(refusal.with_header(SEC_WEBSOCKET_VERSION, handshake::VERSION));
    }
    let key = call.header(SEC_WEBSOCKET_KEY).filter(|key| handshake::is_key(key));
    let key = key.ok_or_else(|| Refusal::new("`Sec-WebSocket-Key` is not 16 bytes in Base64"))?;
    let reply = Reply::empty(StatusCode::SWITCHING_PROTOCOLS);
    reply
        .with(CONNECTION, "upgrade")
        .with(UPGRADE, "websocket")
        .with_asked(SEC_WEBSOCKET_ACCEPT, &handshake::accept(key))
}

/// After how many messages the server closes, and with which code.
fn close(call: &Call<'_>) -> Result<Option<(u64, CloseCode)>, Refusal> {
    if call.query("close-after").is_none() {
        return Ok(None);
    }
    let count = call.query_count("close-after", 0, 1..=SEQUENCE_COUNT_MAX)?;
    let code = CloseCode(call.query_count("code", 1000, 1000..=4999)? as u16);
    if !code.may_be_sent() {
        return Err(Refusal::new(format!("{} is a reserved close code (RFC 6455 7.4)", code.0)));
    }
    Ok(Some((count, code)))
}

/// All fields of this name as one list.
fn all(call: &Call<'_>, name: HeaderName) -> String {
    let values = call.head.headers.get_all(name).iter();
    values.filter_map(|value| value.to_str().ok()).collect::<Vec<_>>().join(",")
}
