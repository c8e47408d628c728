//! Where requests go, as people type it: `[WEIGHT@]URL` on the command line, `[METHOD ][WEIGHT@]URL` in a file.
//!
//! Pure functions of the text. User information in a URL becomes Basic authorization, and fragments are dropped.

use std::borrow::Cow;
use std::num::NonZeroU32;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use percent_encoding::percent_decode_str;
use url::Url;

use crate::limits::PREPARED_REQUEST_COUNT_MAX;
use crate::units::parse_weight;
use crate::{Header, HttpVersion, InputError};

/// One target of the rotation.
#[derive(Debug, Clone, PartialEq)]
pub struct Target {
    /// Share in the rotation.
    pub weight: NonZeroU32,
    /// Method, where the text named one.
    pub method: Option<String>,
    /// Absolute, `http` or `https`, without user information and fragment.
    pub url: Url,
    /// HTTP version, where the scheme named one: `h2` stands for https, `h2c` for http, both in HTTP/2.
    pub http: Option<HttpVersion>,
    /// The `Authorization` made from the URL's user information.
    pub authorization: Option<Header>,
}

/// An error in a list of URLs.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {}: {}", error.column, error.reason)]
pub struct ListError {
    /// Line, from 1.
    pub line: usize,
    /// What is wrong in that line.
    pub error: InputError,
}

/// Reads `[WEIGHT@]URL`. Without a scheme, `host[:port][/path]` means `http`.
pub fn parse_target(text: &str) -> Result<Target, InputError> {
    let (weight, url_text, columns_before) = split_weight(text)?;
    // Before the scheme is replaced: columns count in the text as it was typed.
    refuse_control(url_text).map_err(|e| e.behind(columns_before))?;
    let (http, url_text) = http_scheme(url_text);
    let url = parse_url(&url_text).map_err(|e| e.behind(columns_before))?;
    let authorization = authorization(&url);
    Ok(Target { weight, method: None, url: bare(url), http, authorization })
}

/// Reads a list, one `[METHOD ][WEIGHT@]URL` a line. Blank lines and lines that start with `#` are skipped.
/// At most [`PREPARED_REQUEST_COUNT_MAX`] targets, and at least one.
pub fn parse_list(text: &str) -> Result<Vec<Target>, ListError> {
    let mut targets = Vec::new();
    for (idx, line) in text.trim_start_matches('\u{feff}').lines().enumerate() {
        if line.trim().is_empty() || line.trim_start().starts_with('#') {
            continue;
        }
        if targets.len() == PREPARED_REQUEST_COUNT_MAX {
            let reason = format!("more than {PREPARED_REQUEST_COUNT_MAX} URLs");
            return Err(ListError {
                line: idx + 1,
                error: InputError::at(line, 0, reason, "split the list"),
            });
        }
        targets.push(parse_line(line).map_err(|error| ListError { line: idx + 1, error })?);
    }
    if targets.is_empty() {
        return Err(ListError { line: 1, error: InputError::at("", 0, "no URL in the list", LINE_HELP) });
    }
    Ok(targets)
}

/// Reads an HTTP method: a token of RFC 9110 5.6.2, in any case, `CONNECT` excepted.
pub fn parse_method(text: &str) -> Result<String, InputError> {
    if !is_token(text) {
        return Err(InputError::at(
            text,
            0,
            "not an HTTP method",
            "a method is a word such as `GET` or `POST`",
        ));
    }
    if text == "CONNECT" {
        return Err(InputError::at(
            text,
            0,
            "`CONNECT` requests a tunnel, not a resource",
            "use `--proxy URL`",
        ));
    }
    Ok(text.to_owned())
}

/// Whether `text` is a token: the only form of methods and header names (RFC 9110 5.6.2).
pub fn is_token(text: &str) -> bool {
    let belongs = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
    !text.is_empty() && text.bytes().all(belongs)
}

/// `Authorization: Basic ...` for a user and a password (RFC 7617, in UTF-8).
pub fn basic_authorization(user: &str, password: &str) -> String {
    basic(user.as_bytes(), password.as_bytes())
}

/// Reads an absolute `http` or `https` URL, or `host[:port][/path]`. User information and fragment stay.
pub fn parse_url(text: &str) -> Result<Url, InputError> {
    refuse_control(text)?;
    let scheme = text.split_once("://").map(|(scheme, _)| scheme).filter(|s| !s.contains(['/', '?', '#']));
    let absolute = if scheme.is_some() { text.to_owned() } else { format!("http://{text}") };
    let bad = |reason: String| InputError::at(text, 0, reason, URL_HELP);
    if scheme.is_none() && text.starts_with(['/', ':', '?', '#', '.', '\\']) {
        return Err(bad("no host".to_owned()));
    }
    let url = Url::parse(&absolute).map_err(|e| bad(e.to_string()))?;
    match url.scheme() {
        "http" | "https" => Ok(url),
        other => Err(bad(format!("unknown scheme `{other}`"))),
    }
}

/// Reads `http://host:port`, with a prefix of the path where there is one.
///
/// # Errors
/// When it is more than the beginning of an `http` or `https` URL.
pub fn parse_base(text: &str) -> Result<Url, InputError> {
    let help = "write scheme, host and port, such as http://localhost:8080, and optionally a path prefix";
    let url = Url::parse(text).map_err(|error| InputError::at(text, 0, error.to_string(), help))?;
    let is_base = matches!(url.scheme(), "http" | "https")
        && url.has_host()
        && url.query().is_none()
        && url.fragment().is_none()
        && url.username().is_empty();
    match is_base {
        true => Ok(url),
        false => Err(InputError::at(text, 0, "not the beginning of an http or https URL", help)),
    }
}

fn refuse_control(text: &str) -> Result<(), InputError> {
    match text.char_indices().find(|(_, c)| c.is_control()) {
        Some((offset, _)) => Err(InputError::at(text, offset, "a control character", URL_HELP)),
        None => Ok(()),
    }
}

fn parse_line(line: &str) -> Result<Target, InputError> {
    let words: Vec<(usize, &str)> = words(line);
    match words[..] {
        [(offset, url)] => parse_target(url).map_err(|e| e.behind(columns(line, offset))),
        [(at, method), (offset, url)] => {
            let method = parse_method(method).map_err(|e| e.behind(columns(line, at)))?;
            let target = parse_target(url).map_err(|e| e.behind(columns(line, offset)))?;
            Ok(Target { method: Some(method), ..target })
        }
        [_, _, (offset, _), ..] => {
            Err(InputError::at(line, offset, "more than a method and a URL", LINE_HELP))
        }
        [] => Err(InputError::at(line, 0, "no URL", LINE_HELP)),
    }
}

/// The words of a line with their byte offsets.
fn words(line: &str) -> Vec<(usize, &str)> {
    let offset_of = |word: &str| word.as_ptr().addr() - line.as_ptr().addr();
    line.split_whitespace().map(|word| (offset_of(word), word)).collect()
}

fn columns(line: &str, offset: usize) -> usize {
    line[..offset].chars().count()
}

/// `h2://` and `h3://` are `https://`, and `h2c://` is `http://`, each in its version of HTTP.
fn http_scheme(text: &str) -> (Option<HttpVersion>, Cow<'_, str>) {
    let known = [
        ("h2", HttpVersion::Http2, "https"),
        ("h2c", HttpVersion::Http2, "http"),
        ("h3", HttpVersion::Http3, "https"),
    ];
    let split = text.split_once("://");
    let replaced = split.and_then(|(given, rest)| {
        let (_, version, scheme) = known.iter().find(|(name, ..)| given.eq_ignore_ascii_case(name))?;
        Some((Some(*version), format!("{scheme}://{rest}").into()))
    });
    replaced.unwrap_or_else(|| (None, text.into()))
}

/// `3@URL`: digits before the first `@`, or anything before a scheme. Anything else there is user information.
fn split_weight(text: &str) -> Result<(NonZeroU32, &str, usize), InputError> {
    match text.split_once('@') {
        Some((weight, url)) if is_weight(weight) || has_scheme(url) && !weight.contains(['/', '?', '#']) => {
            Ok((parse_weight(weight)?, url, weight.len() + 1))
        }
        _ => Ok((NonZeroU32::MIN, text, 0)),
    }
}

fn is_weight(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

fn has_scheme(text: &str) -> bool {
    let is_scheme = |scheme: &str| !scheme.is_empty() && scheme.bytes().all(|b| b.is_ascii_alphanumeric());
    text.split_once("://").is_some_and(|(scheme, _)| is_scheme(scheme))
}

fn authorization(url: &Url) -> Option<Header> {
    if url.username().is_empty() && url.password().is_none() {
        return None;
    }
    let user: Vec<u8> = percent_decode_str(url.username()).collect();
    let password: Vec<u8> = percent_decode_str(url.password().unwrap_or_default()).collect();
    Some(Header { name: "Authorization".to_owned(), value: basic(&user, &password) })
}

fn basic(user: &[u8], password: &[u8]) -> String {
    format!("Basic {}", BASE64.encode([user, b":", password].concat()))
}

/// Without user information and fragment.
fn bare(mut url: Url) -> Url {
    url.set_fragment(None);
    // Both fail only for URLs without a host; `parse_url` lets none through.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url
}

const URL_HELP: &str = "write a URL such as `http://localhost:8080/path` or `https://example.org`";
const LINE_HELP: &str =
    "write one `[METHOD ][WEIGHT@]URL` per line, such as `POST 3@http://localhost:8080/pay`";

#[cfg(test)]
mod tests {
    use super::*;

    fn url_of(text: &str) -> String {
        parse_target(text).unwrap().url.to_string()
    }

    #[test]
    fn hosts_without_a_scheme_mean_http() {
        for (text, url) in [
            ("localhost:8080", "http://localhost:8080/"),
            ("localhost:8080/a?b=http://c", "http://localhost:8080/a?b=http://c"),
            ("example.org", "http://example.org/"),
            ("[::1]:80/x", "http://[::1]/x"),
            ("127.0.0.1:1", "http://127.0.0.1:1/"),
            ("HTTPS://Example.ORG", "https://example.org/"),
            ("https://bücher.example/", "https://xn--bcher-kva.example/"),
            ("http://x/#part", "http://x/"),
        ] {
            assert_eq!(url_of(text), url, "{text}");
        }
    }

    #[test]
    fn bad_urls_are_refused_with_help() {
        for text in [
            "",
            "ftp://x/",
            "http://",
            "/path",
            ":8080",
            "http://x:99999/",
            "http://a b/",
            "x\ny",
            "mailto:x",
        ] {
            let error = parse_target(text).unwrap_err();
            assert!(error.help.contains("http://"), "{text}: {error:?}");
        }
        assert_eq!(parse_target("ftp://x/").unwrap_err().reason, "unknown scheme `ftp`");
    }

    #[test]
    fn the_schemes_h2_and_h2c_ask_for_http2() {
        for (text, url, http) in [
            ("h2://x/a", "https://x/a", Some(HttpVersion::Http2)),
            ("h3://x/a", "https://x/a", Some(HttpVersion::Http3)),
            ("2@H2C://x:81", "http://x:81/", Some(HttpVersion::Http2)),
            ("https://x/", "https://x/", None),
            ("h2:81/", "http://h2:81/", None),
        ] {
            let target = parse_target(text).unwrap();
            assert_eq!((target.url.as_str(), target.http), (url, http), "{text}");
        }
    }

    #[test]
    fn digits_before_an_at_sign_are_a_weight() {
        let target = parse_target("3@http://x/").unwrap();
        assert_eq!((target.weight.get(), target.url.as_str()), (3, "http://x/"));
        assert_eq!(parse_target("0@http://x/").unwrap_err().column, 1);
        assert_eq!(parse_target("3@ftp://x/").unwrap_err().column, 3);
        for text in ["-1@http://x/", "1.5@http://x/", "@http://x/"] {
            let error = parse_target(text).unwrap_err();
            assert_eq!((error.column, error.reason.as_str()), (1, "not a weight"), "{text}");
            assert!(error.help.contains("a whole number from 1"), "{text}");
        }
        assert_eq!(url_of("http://x/@http://y"), "http://x/@http://y");
        assert_eq!(url_of("user:a@x/?to=http://y"), "http://x/?to=http://y");
    }

    #[test]
    fn user_information_becomes_basic_authorization() {
        for (text, value) in [
            ("http://user:pa%3Ass@x/", "Basic dXNlcjpwYTpzcw=="),
            ("user@x", "Basic dXNlcjo="),
            ("http://5@x/", "Basic NTo="),
        ] {
            let target = parse_target(text).unwrap();
            assert_eq!(target.authorization.unwrap().value, value, "{text}");
            assert_eq!(target.url.as_str(), "http://x/");
        }
        assert_eq!(parse_target("http://x/").unwrap().authorization, None);
    }

    #[test]
    fn lists_take_methods_weights_comments_and_blank_lines() {
        let list = "\u{feff}# all of it\n\nGET 3@http://x/a\r\n  http://x/b  \nPOST\tlocalhost:1/c\n";
        let targets = parse_list(list).unwrap();
        let seen: Vec<_> =
            targets.iter().map(|t| (t.method.as_deref(), t.weight.get(), t.url.path())).collect();
        assert_eq!(seen, [(Some("GET"), 3, "/a"), (None, 1, "/b"), (Some("POST"), 1, "/c")]);
    }

    #[test]
    fn list_errors_name_line_and_column() {
        for (text, line, column) in [
            ("http://x/\nftp://y/", 2, 1),
            ("h2://2\u{1}", 1, 7),
            ("3@h2c://2\u{1}", 1, 10),
            ("  GET ftp://y/", 1, 7),
            ("GET http://x/ again", 1, 15),
            ("G@T http://x/", 1, 1),
            ("# nothing\n", 1, 1),
            ("", 1, 1),
        ] {
            let error = parse_list(text).unwrap_err();
            assert_eq!((error.line, error.error.column), (line, column), "{text:?}");
        }
    }
}
