//! The values in a request that may have come from an earlier response: each as the client had it, before it was encoded.

use serde_json::Value;

use crate::Request;

/// Calls `give` with each.
pub(super) fn each(request: &Request, give: &mut dyn FnMut(&[u8])) {
    target(&request.target, give);
    for field in &request.headers {
        match field.name.to_ascii_lowercase().as_str() {
            "cookie" => {
                let pairs = field
                    .value
                    .split(|byte| *byte == b';')
                    .filter_map(|pair| pair.splitn(2, |byte| *byte == b'=').nth(1));
                pairs.for_each(|value| give(value.trim_ascii()));
            }
            "accept" | "accept-encoding" | "accept-language" | "user-agent" | "content-type" | "origin" => {}
            "referer" => target(&String::from_utf8_lossy(&field.value), give),
            _ => {
                give(&field.value);
                // `Bearer x`, `Token token=x`
                field.value.split(|byte| b" =\"".contains(byte)).skip(1).for_each(&mut *give);
            }
        }
    }
    body(&request.body, give);
}

fn target(target: &str, give: &mut dyn FnMut(&[u8])) {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    for segment in path.split('/').filter(|segment| !segment.is_empty()) {
        let decoded: Vec<u8> = percent_encoding::percent_decode_str(segment).collect();
        give(&decoded);
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
