//! Multipart form bodies (RFC 7578), made of the parts that a recording lists.

use crate::Field;

/// One part of a form.
#[derive(Debug, Clone, Default)]
pub(super) struct Part {
    pub(super) name: String,
    pub(super) file_name: Option<String>,
    pub(super) content_type: Option<String>,
    pub(super) content: Vec<u8>,
}

/// The body with these parts.
pub(super) fn body(parts: &[Part]) -> Vec<u8> {
    let mut body = Vec::new();
    for part in parts {
        let file_name = part.file_name.as_deref().map(|name| format!("; filename=\"{}\"", quoted(name)));
        let content_type =
            part.content_type.as_deref().map(|kind| format!("Content-Type: {}\r\n", quoted(kind)));
        let head = format!(
            "--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"{}\"{}\r\n{}\r\n",
            quoted(&part.name),
            file_name.unwrap_or_default(),
            content_type.unwrap_or_default()
        );
        body.extend_from_slice(head.as_bytes());
        body.extend_from_slice(&part.content);
        body.extend_from_slice(b"\r\n");
    }
    body.extend_from_slice(format!("--{BOUNDARY}--\r\n").as_bytes());
    body
}

/// Replaces the content type: a recorded one names the boundary of the body as it was.
pub(super) fn set_content_type(headers: &mut Vec<Field>) {
    headers.retain(|field| !field.is("content-type"));
    headers.push(Field::new("Content-Type", format!("multipart/form-data; boundary={BOUNDARY}")));
}

fn quoted(text: &str) -> String {
    text.replace('"', "%22").replace(['\r', '\n'], " ")
}

/// Separates the parts.
const BOUNDARY: &str = "squall-0f3a9c51d27e";
