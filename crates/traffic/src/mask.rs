//! Secrets of recorded traffic are replaced before they reach a disk.
//!
//! Each is replaced by a text made of it and of a key that lives only as long as the recorder: the same secret becomes the
//! same text everywhere in one recording. So nothing of it can be told, yet a session cookie that a response sets and later
//! requests send can still be followed, and replay can put the live one in its place.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::ops::Range;

use memchr::memmem;
use squall_plan::mask::is_secret_name;

use crate::decode::decoded;
use crate::{Field, Record};

/// Replaces secrets; one for a whole recording.
#[derive(Debug, Default)]
pub struct Masker {
    key: RandomState,
}

impl Masker {
    /// A masker with a key of its own.
    pub fn new() -> Self {
        Self::default()
    }

    /// Replaces every secret of a record: credentials and cookies, secret parameters of the URL, secret fields of JSON
    /// and form bodies.
    pub fn mask(&self, record: &mut Record) {
        let request = &mut record.request;
        request.target = self.masked_target(&request.target);
        match self.seen_through(&request.body, &request.headers) {
            Seen::Clean => {}
            Seen::Masked(body) => {
                request.body = body;
                request.headers.retain(|field| !field.is("content-encoding"));
            }
            Seen::Opaque => request.body.clear(),
        }
        self.mask_fields(&mut request.headers);
        let Some(response) = &mut record.response else { return };
        match self.seen_through(response.body.as_deref().unwrap_or_default(), &response.headers) {
            Seen::Clean => {}
            Seen::Masked(body) => {
                response.set_body(body);
                response.headers.retain(|field| !field.is("content-encoding"));
            }
            Seen::Opaque => response.drop_body(),
        }
        self.mask_fields(&mut response.headers);
    }

    /// Looks for secrets in a body, below its content coding.
    fn seen_through(&self, body: &[u8], headers: &[Field]) -> Seen {
        let field = |name| headers.iter().find(|field| field.is(name)).map(|field| field.value.as_slice());
        let Some(plain) = decoded(body, field("content-encoding")) else {
            return if body.is_empty() { Seen::Clean } else { Seen::Opaque };
        };
        let masked = self.masked_body(&plain, field("content-type").unwrap_or_default());
        if masked == plain { Seen::Clean } else { Seen::Masked(masked) }
    }

    /// What stands in the place of a secret.
    fn masked(&self, secret: &[u8]) -> String {
        match secret.is_empty() {
            true => String::new(),
            false => format!("masked-{:016x}", self.key.hash_one(secret)),
        }
    }

    fn mask_fields(&self, fields: &mut [Field]) {
        for field in fields {
            let text = String::from_utf8_lossy(&field.value).into_owned();
            field.value = match field.name.to_ascii_lowercase().as_str() {
                "cookie" => self.masked_pairs(&text, "; ").into_bytes(),
                "set-cookie" => self.masked_first_pair(&text).into_bytes(),
                "authorization" | "proxy-authorization" => self.masked_credentials(&text).into_bytes(),
                "location" | "referer" | "content-location" => self.masked_target(&text).into_bytes(),
                name if is_secret_name(name) => self.masked(&field.value).into_bytes(),
                _ => continue,
            };
        }
    }

    /// `Bearer x` keeps its scheme.
    fn masked_credentials(&self, text: &str) -> String {
        match text.split_once(' ') {
            Some((scheme, secret)) => format!("{scheme} {}", self.masked(secret.trim().as_bytes())),
            None => self.masked(text.as_bytes()),
        }
    }

    /// Cookies are secrets whatever their names say.
    fn masked_pairs(&self, text: &str, separator: &str) -> String {
        let pairs: Vec<String> = text.split(separator).map(|pair| self.masked_pair(pair)).collect();
        pairs.join(separator)
    }

    fn masked_first_pair(&self, text: &str) -> String {
        match text.split_once(';') {
            Some((pair, attributes)) => format!("{};{attributes}", self.masked_pair(pair)),
            None => self.masked_pair(text),
        }
    }

    fn masked_pair(&self, pair: &str) -> String {
        match pair.split_once('=') {
            Some((name, value)) => format!("{name}={}", self.masked(value.as_bytes())),
            None => pair.to_owned(),
        }
    }

    /// A path or URL: its secret parameters, and user information.
    fn masked_target(&self, target: &str) -> String {
        let (path, query) =
            target.split_once('?').map_or((target, None), |(path, query)| (path, Some(query)));
        let path = match path.split_once("://") {
            Some((scheme, rest)) => {
                let authority_end = rest.find('/').unwrap_or(rest.len());
                let user_end = rest[..authority_end].rfind('@').map_or(0, |at| at + 1);
                format!("{scheme}://{}", &rest[user_end..])
            }
            None => path.to_owned(),
        };
        match query {
            Some(query) => format!("{path}?{}", self.masked_form(query)),
            None => path,
        }
    }

    /// `a=1&token=x`
    fn masked_form(&self, form: &str) -> String {
        let masked = |pair: &str| match pair.split_once('=') {
            Some((name, _)) if is_secret_name(name) => self.masked_pair(pair),
            _ => pair.to_owned(),
        };
        form.split('&').map(masked).collect::<Vec<_>>().join("&")
    }

    fn masked_body(&self, body: &[u8], content_type: &[u8]) -> Vec<u8> {
        if let Some(boundary) = multipart_boundary(content_type) {
            return self.masked_parts(body, &boundary);
        }
        let Ok(text) = std::str::from_utf8(body) else { return body.to_vec() };
        let content_type = content_type.to_ascii_lowercase();
        if content_type.starts_with(b"application/x-www-form-urlencoded") {
            return self.masked_form(text).into_bytes();
        }
        let is_json =
            memmem::find(&content_type, b"json").is_some() || text.trim_start().starts_with(['{', '[']);
        if is_json { self.masked_json(text).into_bytes() } else { body.to_vec() }
    }

    /// The parts of a form ([RFC 7578]), whose values may be anything.
    ///
    /// [RFC 7578]: https://www.rfc-editor.org/rfc/rfc7578
    fn masked_parts(&self, body: &[u8], boundary: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(body.len());
        let mut rest = body;
        while let Some(head_end) = memmem::find(rest, b"\r\n\r\n").map(|at| at + 4) {
            let (head, behind) = rest.split_at(head_end);
            let value_end = memmem::find(behind, boundary).unwrap_or(behind.len());
            let (value, next) = behind.split_at(value_end);
            out.extend_from_slice(head);
            match part_name(head).filter(|name| is_secret_name(name)) {
                Some(_) => out.extend_from_slice(self.masked(value).as_bytes()),
                None => out.extend_from_slice(value),
            }
            rest = next;
        }
        out.extend_from_slice(rest);
        out
    }

    /// Replaces strings behind secret names; everything else stays byte for byte.
    fn masked_json(&self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        let mut done = 0;
        let mut rest = 0;
        while let Some(name) = next_string(text, rest) {
            rest = name.end + 1;
            let behind = text[rest..].trim_start();
            let Some(value) = behind.strip_prefix(':') else { continue };
            let value_at = text.len() - value.trim_start().len();
            if is_secret_name(&text[name]) && text[value_at..].starts_with('"') {
                let Some(value) = next_string(text, value_at) else { break };
                out.push_str(&text[done..value.start]);
                out.push_str(&self.masked(&text.as_bytes()[value.clone()]));
                done = value.end;
                rest = value.end + 1;
            }
        }
        out + &text[done..]
    }
}

/// What a look into a body has found.
enum Seen {
    /// No secret.
    Clean,
    /// This stands in its place, without a content coding.
    Masked(Vec<u8>),
    /// It cannot be looked into.
    Opaque,
}

/// What stands between the value of a part and the next part.
fn multipart_boundary(content_type: &[u8]) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(content_type).ok()?;
    let lower = text.to_ascii_lowercase();
    let at = lower.starts_with("multipart/").then(|| lower.find("boundary="))?? + "boundary=".len();
    let boundary = text[at..].split(';').next()?.trim().trim_matches('"');
    (!boundary.is_empty()).then(|| format!("\r\n--{boundary}").into_bytes())
}

/// The name of a part, of the lines before its value.
fn part_name(head: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(head);
    let (_, behind) = text.rsplit_once(" name=\"")?;
    Some(behind.split('"').next()?.to_owned())
}

/// The inside of the next JSON string at or after byte `from`.
fn next_string(text: &str, from: usize) -> Option<Range<usize>> {
    let begin = from + text.get(from..)?.find('"')? + 1;
    let mut is_escaped = false;
    for (at, byte) in text.as_bytes()[begin..].iter().enumerate() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'"' => return Some(begin..begin + at),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;
    use crate::{Request, Response};

    #[test]
    fn secrets_are_found_below_codings_and_in_parts() {
        let json = br#"{"password":"S3CRET","q":1}"#;
        let mut packed = Vec::new();
        flate2::read::GzEncoder::new(&json[..], flate2::Compression::fast())
            .read_to_end(&mut packed)
            .unwrap();
        let form = b"--Xy\r\nContent-Disposition: form-data; name=\"q\"\r\n\r\n1\r\n--Xy\r\nContent-Disposition: form-data; \
            name=\"password\"\r\n\r\nS3CRET\r\n--\r\nS3CRET\xff\r\n--Xy--\r\n";
        let masked = |kind: &str, coding: &str, body: &[u8]| {
            let headers = vec![Field::new("Content-Type", kind), Field::new("Content-Encoding", coding)];
            let mut record = Record::default();
            (record.request.headers, record.request.body) = (headers.clone(), body.to_vec());
            let mut response = Response { headers, ..Response::default() };
            response.set_body(body.to_vec());
            record.response = Some(response);
            Masker::new().mask(&mut record);
            let response = record.response.unwrap();
            assert_eq!(response.body.unwrap_or_default(), record.request.body, "{kind} {coding}");
            (record.request.body.clone(), record.request.header("content-encoding").is_some())
        };
        let (body, is_coded) = masked("application/json", "gzip", &packed);
        assert!(body.starts_with(br#"{"password":"masked-"#) && !is_coded, "{body:?}");
        let (body, _) = masked("multipart/form-data; Boundary=\"Xy\"", "identity", form);
        assert!(memmem::find(&body, b"S3CRET").is_none() && body.ends_with(b"\r\n--Xy--\r\n"), "{body:?}");
        assert!(memmem::find(&body, b"\r\n\r\n1\r\n").is_some(), "{body:?}");
        // What holds no secret stays as it came; what cannot be looked into is left out.
        assert_eq!(masked("text/html", "identity", b"<p>"), (b"<p>".to_vec(), true));
        assert_eq!(masked("application/json", "unknown", b"\x01").0, b"");
    }

    #[test]
    fn no_secret_is_left_and_equal_ones_stay_equal() {
        let mut response = Response {
            headers: vec![
                Field::new("Set-Cookie", "sid=S3CRET; Path=/"),
                Field::new("Content-Type", "application/json"),
            ],
            ..Response::default()
        };
        response
            .set_body(br#"{"access_token": "S3CRET\"x", "name":"ok", "n":[{"password":"S3CRET"}]}"#.to_vec());
        let mut record = Record {
            request: Request {
                target: "/a?token=S3CRET&q=1".into(),
                headers: vec![
                    Field::new("Cookie", "sid=S3CRET; b=S3CRET"),
                    Field::new("Authorization", "Bearer S3CRET"),
                    Field::new("X-Api-Key", "S3CRET"),
                    Field::new("Accept", "*/*"),
                    Field::new("Content-Type", "application/x-www-form-urlencoded"),
                ],
                body: b"user=u&password=S3CRET".to_vec(),
                ..Request::default()
            },
            response: Some(response),
            ..Record::default()
        };
        Masker::new().mask(&mut record);
        let shown = format!("{record:?}")
            + &String::from_utf8_lossy(record.response.as_ref().unwrap().body.as_ref().unwrap());
        let bodies = [&record.request.body, record.response.as_ref().unwrap().body.as_ref().unwrap()];
        assert!(
            !shown.contains("S3CRET") && bodies.iter().all(|body| memmem::find(body, b"S3CRET").is_none())
        );
        let cookie = String::from_utf8_lossy(record.request.header("cookie").unwrap()).into_owned();
        let set = String::from_utf8_lossy(record.response.as_ref().unwrap().header("set-cookie").unwrap())
            .into_owned();
        assert!(cookie.starts_with("sid=masked-") && set.starts_with(cookie.split(';').next().unwrap()));
        assert!(record.request.target.ends_with("&q=1"));
        assert!(String::from_utf8_lossy(bodies[1]).contains(r#""name":"ok""#));
    }
}
