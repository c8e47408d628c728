//! HTTP/1.1 messages as recorded bytes: head by `httparse`, the transfer coding taken off the body.

use url::{Position, Url};

use super::time;
use crate::limits::{FIELD_COUNT_MAX, HEAD_BYTES_MAX};
use crate::{Field, Request, Response, Scheme, Version};

/// Reads a request as sent. The scheme is not in the bytes: an absolute target or the port decides, else it is http.
pub(super) fn request(bytes: &[u8]) -> Result<Request, String> {
    let mut fields = vec![httparse::EMPTY_HEADER; FIELD_COUNT_MAX];
    let mut parsed = httparse::Request::new(&mut fields);
    let head_bytes = match parsed.parse(bytes) {
        Ok(httparse::Status::Complete(count)) if count <= HEAD_BYTES_MAX => count,
        Ok(httparse::Status::Complete(_)) => return Err(too_large()),
        Ok(httparse::Status::Partial) => return Err("the request head is incomplete".to_owned()),
        Err(error) => return Err(format!("malformed request: {error}")),
    };
    let headers = own(parsed.headers);
    let body = body(&headers, &bytes[head_bytes..])?;
    let mut request = Request {
        method: parsed.method.unwrap_or_default().to_owned(),
        version: if parsed.version == Some(0) { Version::Http10 } else { Version::Http11 },
        headers,
        body,
        ..Request::default()
    };
    let host = request.header("host").map(|host| String::from_utf8_lossy(host).trim().to_owned());
    request.authority = host.unwrap_or_default();
    set_target(&mut request, parsed.path.unwrap_or("/"));
    request.drop_connection_fields();
    Ok(request)
}

/// Reads a response as sent.
pub(super) fn response(bytes: &[u8]) -> Result<Response, String> {
    let mut fields = vec![httparse::EMPTY_HEADER; FIELD_COUNT_MAX];
    let mut parsed = httparse::Response::new(&mut fields);
    let head_bytes = match parsed.parse(bytes) {
        Ok(httparse::Status::Complete(count)) if count <= HEAD_BYTES_MAX => count,
        Ok(httparse::Status::Complete(_)) => return Err(too_large()),
        Ok(httparse::Status::Partial) => return Err("the response head is incomplete".to_owned()),
        Err(error) => return Err(format!("malformed response: {error}")),
    };
    let headers = own(parsed.headers);
    let body = body(&headers, &bytes[head_bytes..])?;
    let version = if parsed.version == Some(0) { Version::Http10 } else { Version::Http11 };
    let mut response = Response { status: parsed.code.unwrap_or(0), version, headers, ..Response::default() };
    response.set_body(body);
    Ok(response)
}

/// Absolute form (RFC 9112 3.2.2) names the origin itself.
pub(super) fn set_target(request: &mut Request, target: &str) {
    let Some((scheme, rest)) = target.split_once("://").and_then(|(s, rest)| Some((Scheme::of(s)?, rest)))
    else {
        request.target = target.to_owned();
        return;
    };
    let path_at = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(path_at);
    request.scheme = scheme;
    request.authority = authority.rsplit('@').next().unwrap_or_default().to_owned();
    request.target = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
}

/// Sets scheme, authority and target by a URL as recorded. Path and query stay as they are written where they can be sent so.
pub(crate) fn set_url(request: &mut Request, text: &str) -> Result<(), String> {
    let url = Url::parse(text).map_err(|error| format!("bad URL `{}`: {error}", time::cut(text)))?;
    request.scheme =
        Scheme::of(url.scheme()).ok_or_else(|| format!("cannot send to {}: URLs", url.scheme()))?;
    request.authority = url[Position::BeforeHost..Position::AfterPort].to_owned();
    request.target = url[Position::BeforePath..Position::AfterQuery].to_owned();
    let written = text.split_once("://").and_then(|(_, rest)| Some(&rest[rest.find(['/', '?', '#'])?..]));
    let written = written.and_then(|rest| rest.split('#').next()).unwrap_or_default();
    let has_dots = written.split(['/', '?']).any(|part| matches!(part, "." | ".."));
    if written.starts_with('/') && !has_dots && written.bytes().all(|byte| byte.is_ascii_graphic()) {
        request.target = written.to_owned();
    }
    Ok(())
}

fn own(fields: &[httparse::Header<'_>]) -> Vec<Field> {
    fields.iter().map(|field| Field::new(field.name, field.value)).collect()
}

fn too_large() -> String {
    format!("the head is larger than {HEAD_BYTES_MAX} bytes")
}

/// The body without its transfer coding. A recording may have been cut off: then what is there is the body.
fn body(headers: &[Field], bytes: &[u8]) -> Result<Vec<u8>, String> {
    let value = |name: &str| headers.iter().find(|field| field.is(name)).map(|field| field.value.as_slice());
    if value("transfer-encoding").is_some_and(|value| value.to_ascii_lowercase().ends_with(b"chunked")) {
        return unchunk(bytes);
    }
    let length =
        value("content-length").and_then(|value| std::str::from_utf8(value).ok()?.trim().parse().ok());
    let length: usize = length.unwrap_or(bytes.len());
    Ok(bytes[..length.min(bytes.len())].to_vec())
}

fn unchunk(mut bytes: &[u8]) -> Result<Vec<u8>, String> {
    let mut body = Vec::new();
    loop {
        match httparse::parse_chunk_size(bytes) {
            Ok(httparse::Status::Complete((_, 0))) => return Ok(body),
            Ok(httparse::Status::Complete((begin, size))) => {
                let data = &bytes[begin..];
                let size = usize::try_from(size).unwrap_or(usize::MAX).min(data.len());
                body.extend_from_slice(&data[..size]);
                let rest = &data[size..];
                bytes = rest.strip_prefix(b"\r\n").unwrap_or(rest);
            }
            Ok(httparse::Status::Partial) => return Ok(body),
            Err(_) => return Err("malformed chunk size in the body".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_loses_what_belongs_to_its_connection() {
        let bytes = b"POST /a?b=1 HTTP/1.1\r\nHost: x:81\r\nConnection: close\r\nTransfer-Encoding: chunked\r\nX-A: 1\r\nX-A: 2\r\n\r\n3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n";
        let request = request(bytes).unwrap();
        assert_eq!((request.method.as_str(), request.url().as_str()), ("POST", "http://x:81/a?b=1"));
        assert_eq!(request.headers, [Field::new("X-A", "1"), Field::new("X-A", "2")]);
        assert_eq!(request.body, b"abcde");
    }

    #[test]
    fn absolute_targets_name_their_origin() {
        let request = request(b"GET https://u@y?q HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
        assert_eq!(request.url(), "https://y/?q");
    }

    #[test]
    fn urls_keep_their_spelling_where_it_can_be_sent() {
        for (text, url) in [
            ("https://X.example:443/a?b='c|{}#f", "https://x.example/a?b='c|{}"),
            ("http://x", "http://x/"),
            ("http://x?q=a/b", "http://x/?q=a/b"),
            ("http://x/a/../b c", "http://x/b%20c"),
            ("http://u:p@x/%7e", "http://x/%7e"),
        ] {
            let mut request = Request::default();
            set_url(&mut request, text).unwrap();
            assert_eq!(request.url(), url, "{text}");
        }
    }

    #[test]
    fn malformed_heads_say_why() {
        for bytes in [&b"GET"[..], b"\x00\x01", b"GET / HTTP/1.1\r\nA", b"GET / HTTP/1.1\r\n: x\r\n\r\n"] {
            assert!(request(bytes).is_err(), "{bytes:?}");
        }
        assert!(response(b"HTTP/1.1 999999 X\r\n\r\n").is_err());
    }
}
