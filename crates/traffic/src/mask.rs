//! Secrets of recorded traffic are replaced before they reach a disk.
//!
//! Each is replaced by a text made of it and of a key that lives only as long as the recorder: the same secret becomes the
//! same text everywhere in one recording. So nothing of it can be told, yet a session cookie that a response sets and later
//! requests send can still be followed, and replay can put the live one in its place.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::ops::Range;

use squall_plan::mask::is_secret_name;

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
        let kind = request.header("content-type").unwrap_or_default().to_ascii_lowercase();
        request.body = self.masked_body(&request.body, &kind);
        self.mask_fields(&mut request.headers);
        let Some(response) = &mut record.response else { return };
        let kind = response.header("content-type").unwrap_or_default().to_ascii_lowercase();
        self.mask_fields(&mut response.headers);
        if let Some(body) = &response.body {
            let masked = self.masked_body(body, &kind);
            if masked != *body {
                response.set_body(masked);
            }
        }
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
        let Ok(text) = std::str::from_utf8(body) else { return body.to_vec() };
        if content_type.starts_with(b"application/x-www-form-urlencoded") {
            return self.masked_form(text).into_bytes();
        }
        let is_json = memchr::memmem::find(content_type, b"json").is_some()
            || text.trim_start().starts_with(['{', '[']);
        if is_json { self.masked_json(text).into_bytes() } else { body.to_vec() }
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
    use super::*;
    use crate::{Request, Response};

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
            !shown.contains("S3CRET")
                && bodies.iter().all(|body| memchr::memmem::find(body, b"S3CRET").is_none())
        );
        let cookie = String::from_utf8_lossy(record.request.header("cookie").unwrap()).into_owned();
        let set = String::from_utf8_lossy(record.response.as_ref().unwrap().header("set-cookie").unwrap())
            .into_owned();
        assert!(cookie.starts_with("sid=masked-") && set.starts_with(cookie.split(';').next().unwrap()));
        assert!(record.request.target.ends_with("&q=1"));
        assert!(String::from_utf8_lossy(bodies[1]).contains(r#""name":"ok""#));
    }
}
