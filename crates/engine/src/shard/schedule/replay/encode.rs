//! A record as a request on the wire: as recorded, or changed first.
//!
//! Nothing is allocated for a record that goes out as it was recorded, over HTTP/1.1: its bytes are written to the buffer of an
//! earlier request.

use std::borrow::Cow;
use std::sync::Arc;

use squall_plan::HttpVersion;
use squall_traffic::play::Live;
use squall_traffic::store::RecordView;
use squall_traffic::{Field, Spooled};
use squall_wire::h1::{RequestHead, RequestKind};
use squall_wire::{h2, h3};

use super::Meta;
use crate::prepare::{FileBody, IDEMPOTENT_METHODS, Offer, PreparedRequest};
use crate::prepare::{PreparedReplay, ReplayOrigin};

/// Writes a record to `out`; whether a live value is in it.
pub(super) fn request(
    replay: &PreparedReplay,
    meta: &Meta,
    view: &RecordView<'_>,
    live: Option<&Live>,
    (unique, offer): (u64, Option<&Offer>),
    out: &mut PreparedRequest,
) -> bool {
    let origins = if offer.is_some() { &replay.websocket_origins } else { &replay.origins };
    let origin = &origins[usize::from(meta.frame.origin).min(origins.len() - 1)];
    let live = live.filter(|live| !live.is_empty());
    let reads_response = replay.reads_response(meta.ordinal, meta.frame.row);
    let spooled = replay.recording.spooled(view, meta.offset);
    let follows = replay.redirect.is_some() && names_origin(view);
    if replay.changes.is_empty() && live.is_none() && !reads_response && !follows && offer.is_none() {
        let body = body(replay, view, view.body, spooled.as_ref(), out);
        write(origin, view.method, view.target, view.headers(), body, out);
        finish(replay, meta, origin, view.method, out);
        return false;
    }
    let mut request = view.record(&meta.frame).request;
    request.spooled = spooled;
    if let Some(redirect) = replay.redirect.as_ref().filter(|_| follows) {
        for field in &mut request.headers {
            if let Some(value) =
                redirect.followed(&field.name, &field.value, &|origin| replay.is_left(origin))
            {
                field.value = value;
            }
        }
    }
    if reads_response {
        // What is read must not be packed in a way that only a browser can undo.
        request.headers.retain(|field| !field.is("accept-encoding"));
    }
    let is_corrected = live.is_some_and(|live| live.correct(&mut request));
    if !replay.changes.is_empty() {
        let context = PreparedReplay::context(meta, unique, crate::prepare::now_ns(), live);
        replay.changes.apply(&mut request, &context);
    }
    if let Some(offer) = offer {
        request.headers.retain(|field| !is_of_handshake(&field.name));
        let fields = offer.fields(false).into_iter().map(|field| Field::new(field.name, field.value));
        request.headers.splice(0..0, fields);
    }
    let headers = request.headers.iter().map(|field| (field.name.as_str(), field.value.as_slice()));
    let body = body(replay, view, &request.body, request.spooled.as_ref(), out);
    write(origin, &request.method, &request.target, headers, body, out);
    finish(replay, meta, origin, &request.method, out);
    if offer.is_some() {
        out.kind = RequestKind::Upgrade;
    }
    is_corrected
}

/// Fields that the two ends of a WebSocket agree on anew.
fn is_of_handshake(name: &str) -> bool {
    name.get(..HANDSHAKE_PREFIX.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(HANDSHAKE_PREFIX))
}

const HANDSHAKE_PREFIX: &str = "sec-websocket-";

/// What of a body is in memory, up to what is on disk: its spooled part, or as many zeros as it had bytes where it was not kept.
fn body<'b>(
    replay: &PreparedReplay,
    view: &RecordView<'_>,
    body: &'b [u8],
    spooled: Option<&Spooled>,
    out: &mut PreparedRequest,
) -> &'b [u8] {
    let zeros = replay.zeros.as_ref().filter(|_| view.lost_body_bytes > 0);
    let Some(file) = spooled else {
        out.file = zeros.map(|zeros| FileBody::of(Arc::clone(zeros), view.lost_body_bytes));
        return body;
    };
    let (head, tail) = body.split_at(file.at.min(body.len()));
    out.file = Some(FileBody { file: file.clone(), tail: tail.into() });
    head
}

/// Whether a field names the origin from which the client came.
fn names_origin(view: &RecordView<'_>) -> bool {
    view.headers()
        .any(|(name, _)| name.eq_ignore_ascii_case("origin") || name.eq_ignore_ascii_case("referer"))
}

fn write<'a>(
    origin: &ReplayOrigin,
    method: &str,
    target: &str,
    headers: impl Iterator<Item = (&'a str, &'a [u8])> + Clone,
    body: &[u8],
    out: &mut PreparedRequest,
) {
    out.bytes.clear();
    (out.fields, out.section) = (None, None);
    if matches!(origin.http, HttpVersion::Http11 | HttpVersion::Auto) {
        let length = body.len() as u64 + out.file.as_ref().map_or(0, FileBody::bytes);
        write_h1(origin, method, target, headers.clone(), length, &mut out.bytes);
    }
    out.body_at = out.bytes.len();
    out.bytes.extend_from_slice(body);
    if origin.http != HttpVersion::Http11 {
        write_h2(origin, method, target, headers, body, out);
    }
}

fn write_h1<'a>(
    origin: &ReplayOrigin,
    method: &str,
    target: &str,
    headers: impl Iterator<Item = (&'a str, &'a [u8])>,
    body_bytes: u64,
    bytes: &mut Vec<u8>,
) {
    put_clean(bytes, method.as_bytes(), true);
    bytes.push(b' ');
    if origin.is_forwarded {
        for part in [origin.scheme, "://", &origin.host] {
            bytes.extend_from_slice(part.as_bytes());
        }
    }
    if target.starts_with('/') {
        bytes.extend_from_slice(origin.prefix.as_bytes());
    }
    put_clean(bytes, target.as_bytes(), true);
    bytes.extend_from_slice(b" HTTP/1.1\r\nHost: ");
    bytes.extend_from_slice(origin.host.as_bytes());
    bytes.extend_from_slice(b"\r\n");
    for (name, value) in headers {
        put_clean(bytes, name.as_bytes(), true);
        bytes.extend_from_slice(b": ");
        put_clean(bytes, value, false);
        bytes.extend_from_slice(b"\r\n");
    }
    if body_bytes > 0 || matches!(method, "POST" | "PUT" | "PATCH") {
        let mut digits = [0; 20];
        bytes.extend_from_slice(b"Content-Length: ");
        bytes.extend_from_slice(decimal(body_bytes, &mut digits));
        bytes.extend_from_slice(b"\r\n");
    }
    bytes.extend_from_slice(b"\r\n");
}

/// Readers let nothing pass that breaks a message; a file made by hand might, and is held to the syntax here.
fn put_clean(bytes: &mut Vec<u8>, part: &[u8], is_word: bool) {
    let begin = bytes.len();
    bytes.extend_from_slice(part);
    let is_bad = |byte: &u8| matches!(byte, b'\r' | b'\n' | 0) || is_word && *byte <= b' ';
    if bytes[begin..].iter().any(is_bad) {
        bytes[begin..].iter_mut().filter(|byte| is_bad(byte)).for_each(|byte| *byte = b'_');
    }
}

fn decimal(mut number: u64, digits: &mut [u8; 20]) -> &[u8] {
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            return &digits[at..];
        }
    }
}

/// For the versions that compress fields.
fn write_h2<'a>(
    origin: &ReplayOrigin,
    method: &str,
    target: &str,
    headers: impl Iterator<Item = (&'a str, &'a [u8])>,
    body: &[u8],
    out: &mut PreparedRequest,
) {
    let owned: Vec<(&str, String)> =
        headers.map(|(name, value)| (name, String::from_utf8_lossy(value).into_owned())).collect();
    let body_bytes = body.len() as u64 + out.file.as_ref().map_or(0, FileBody::bytes);
    let target = match target.starts_with('/') && !origin.prefix.is_empty() {
        true => Cow::Owned(format!("{}{target}", origin.prefix)),
        false => Cow::Borrowed(target),
    };
    let fields: Vec<(&str, &str)> = owned.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let head = RequestHead {
        method,
        target: &target,
        host: Some(&origin.host),
        headers: &fields,
        content_length: (body_bytes > 0).then_some(body_bytes),
    };
    // A head that HTTP/2 cannot carry goes out with no fields but those it must have: the server says what it thinks of it.
    let bare = RequestHead { headers: &[], target: "/", method: "GET", ..head };
    if origin.http == HttpVersion::Http3 {
        let section = h3::prepare(&head, origin.scheme).or_else(|_| h3::prepare(&bare, origin.scheme));
        out.section = section.ok();
    } else {
        let fields = h2::prepare(&head, origin.scheme, None);
        out.fields = fields.or_else(|_| h2::prepare(&bare, origin.scheme, None)).ok();
    }
}

fn finish(
    replay: &PreparedReplay,
    meta: &Meta,
    origin: &ReplayOrigin,
    method: &str,
    out: &mut PreparedRequest,
) {
    out.kind = if method == "HEAD" { RequestKind::Head } else { RequestKind::Other };
    out.origin_idx = origin.origin_idx;
    out.rows = replay.rows_of(meta.frame.row);
    out.is_idempotent = IDEMPOTENT_METHODS.contains(&method);
}
