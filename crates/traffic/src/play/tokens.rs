//! The values in a request that may have come from an earlier response: each as the client had it, before it was encoded.

use memchr::memmem;
use serde_json::Value;
use squall_plan::cookies::cookie_pairs;

use crate::Request;
use crate::redact::PLACEHOLDER;

/// Calls `give` with each.
pub(crate) fn each(request: &Request, give: &mut dyn FnMut(&[u8])) {
    target(&request.target, give);
    for field in &request.headers {
        match field.name.to_ascii_lowercase().as_str() {
            "cookie" => cookie_pairs(&field.value).for_each(|(_, value)| give(value)),
            "accept" | "accept-encoding" | "accept-language" | "user-agent" | "content-type" | "origin" => {}
            "referer" => target(&String::from_utf8_lossy(&field.value), give),
            _ => {
                give(&field.value);
                // `Bearer x`, `Token token=x`
                field.value.split(|byte| b" =\"".contains(byte)).skip(1).for_each(&mut *give);
            }
        }
    }
    each_of_body(&request.body, give);
    redacted(request.target.as_bytes(), give);
    request.headers.iter().for_each(|field| redacted(&field.value, give));
}

/// The same of a body, or of a message of a WebSocket.
pub(crate) fn each_of_body(bytes: &[u8], give: &mut dyn FnMut(&[u8])) {
    body(bytes, give);
    redacted(bytes, give);
}

/// Placeholders of secrets can be distinguished wherever they occur, such as in a text within JSON.
pub(crate) fn redacted(text: &[u8], give: &mut dyn FnMut(&[u8])) {
    for begin in memmem::find_iter(text, PLACEHOLDER) {
        let is_part = |byte: &&u8| byte.is_ascii_alphanumeric() || **byte == b'-';
        let end = begin + text[begin..].iter().take_while(is_part).count();
        // The header and claims of a token stand before its signature.
        let is_token_part = |byte: &&u8| byte.is_ascii_alphanumeric() || b"._-".contains(byte);
        let is_token = text[..begin].ends_with(b".");
        let before = if is_token { text[..begin].iter().rev().take_while(is_token_part).count() } else { 0 };
        give(&text[begin - before..end]);
        if text.get(end) == Some(&b'=') {
            give(&text[begin - before..=end]);
        }
    }
}

fn target(target: &str, give: &mut dyn FnMut(&[u8])) {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    for segment in path.split('/').filter(|segment| !segment.is_empty()) {
        let decoded = |part: &str| percent_encoding::percent_decode_str(part).collect::<Vec<u8>>();
        give(&decoded(segment));
        let parameters = segment.split(';').skip(1).filter_map(|parameter| parameter.split_once('='));
        parameters.for_each(|(_, value)| give(&decoded(value)));
    }
    form(query.as_bytes(), give);
}

fn form(text: &[u8], give: &mut dyn FnMut(&[u8])) {
    form_urlencoded::parse(text).for_each(|(_, value)| give(value.as_bytes()));
}

fn body(body: &[u8], give: &mut dyn FnMut(&[u8])) {
    let trimmed = body.trim_ascii_start();
    if trimmed.starts_with(b"{") || trimmed.starts_with(b"[") {
        if let Ok(json) = serde_json::from_slice(trimmed) {
            json_values(&json, give);
        }
    } else if body.len() <= FORM_BYTES_MAX {
        form(body, give);
        // The parts of a multipart body are lines of their own.
        body.split(|byte| *byte == b'\n').for_each(|line| give(line.trim_ascii()));
    }
}

fn json_values(value: &Value, give: &mut dyn FnMut(&[u8])) {
    match value {
        Value::String(text) => give(text.as_bytes()),
        Value::Number(number) => give(number.to_string().as_bytes()),
        Value::Array(items) => items.iter().for_each(|item| json_values(item, give)),
        Value::Object(fields) => fields.values().for_each(|field| json_values(field, give)),
        Value::Null | Value::Bool(_) => {}
    }
}

/// A body larger than this is no form.
const FORM_BYTES_MAX: usize = 1 << 20;
