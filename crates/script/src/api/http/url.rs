//! Which URLs can be requested, by the rules of Go's client: what it refuses, in its words, and whether the refusal counts as a request.

use url::{ParseError, Url};

use crate::step::ReplyFailure;

/// Why a URL cannot be requested.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Unusable {
    /// It is no URL: nothing is counted.
    Malformed(String),
    /// A request that fails before anything is sent: it is counted.
    Unsent(ReplyFailure),
}

impl Unusable {
    /// The reason alone.
    pub(crate) fn into_text(self) -> String {
        let (Self::Malformed(text) | Self::Unsent(ReplyFailure { text, .. })) = self;
        text
    }

    fn unsent(code: u16, text: String) -> Self {
        Self::Unsent(ReplyFailure { code, text })
    }
}

/// Parses the URL of a request.
pub(super) fn parse(text: &str) -> Result<Url, Unusable> {
    let malformed = |why: &str| Unusable::Malformed(format!("parse {text:?}: {why}"));
    if let Some(why) = flaw(text) {
        return Err(malformed(&why));
    }
    let scheme = text.split_once(':').map_or("", |(scheme, _)| scheme);
    let is_http = ["http", "https"].iter().any(|known| scheme.eq_ignore_ascii_case(known));
    let authority = text.split_once("://").map(|(_, rest)| rest.split(['/', '?', '#']).next().unwrap_or(""));
    if is_http && authority.is_none_or(str::is_empty) {
        return Err(Unusable::unsent(OTHER_CODE, "http: no Host in request URL".to_owned()));
    }
    let port = authority.and_then(|authority| authority.rsplit_once(':')).map_or("", |(_, port)| port);
    match Url::parse(&path_as_typed(text)) {
        Ok(url) if is_http => Ok(url),
        Ok(url) => Err(unsupported(url.scheme())),
        Err(ParseError::RelativeUrlWithoutBase) => Err(unsupported("")),
        Err(ParseError::InvalidPort) if port.bytes().all(|byte| byte.is_ascii_digit()) => {
            Err(Unusable::unsent(DIAL_CODE, format!("dial tcp: address {port}: invalid port")))
        }
        Err(ParseError::InvalidPort) => Err(malformed(&format!("invalid port \":{port}\" after host"))),
        Err(ParseError::InvalidIpv6Address) => Err(malformed("missing ']' in host")),
        Err(error) => Err(malformed(&error.to_string())),
    }
}

fn unsupported(scheme: &str) -> Unusable {
    Unusable::unsent(OTHER_CODE, format!("unsupported protocol scheme \"{scheme}\""))
}

/// What Go refuses, and browsers correct.
pub(crate) fn flaw(text: &str) -> Option<String> {
    if text.bytes().any(|byte| byte.is_ascii_control()) {
        return Some("net/url: invalid control character in URL".to_owned());
    }
    let (whole, fragment) = text.split_once('#').unwrap_or((text, ""));
    let (scheme, rest) = match scheme_of(whole) {
        Some(parts) => parts,
        None if whole.starts_with(':') => return Some("missing protocol scheme".to_owned()),
        None => ("", whole),
    };
    let rest = rest.split('?').next().unwrap_or_default();
    let mut path = rest;
    if !rest.starts_with('/') {
        if scheme.is_empty() && rest.split('/').next().is_some_and(|segment| segment.contains(':')) {
            return Some("first path segment in URL cannot contain colon".to_owned());
        }
    } else if let Some(rest) =
        rest.strip_prefix("//").filter(|_| !scheme.is_empty() || !rest.starts_with("///"))
    {
        let end = rest.find('/').unwrap_or(rest.len());
        if let Some(flaw) = authority_flaw(&rest[..end]) {
            return Some(flaw);
        }
        path = &rest[end..];
    }
    let is_opaque = !scheme.is_empty() && !rest.starts_with('/');
    let escape = bad_escape(path).filter(|_| !is_opaque).or_else(|| bad_escape(fragment))?;
    Some(format!("invalid URL escape \"{escape}\""))
}

/// The scheme and what follows it.
pub(crate) fn scheme_of(text: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = text.split_once(':')?;
    let is_scheme = scheme.starts_with(|first: char| first.is_ascii_alphabetic())
        && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte));
    is_scheme.then_some((scheme, rest))
}

/// What is wrong with `user@host:port`.
fn authority_flaw(authority: &str) -> Option<String> {
    let (user, host) = authority.rsplit_once('@').unwrap_or(("", authority));
    if !user.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._:~!$&'()*+,;=%@".contains(&byte)) {
        return Some("net/url: invalid userinfo".to_owned());
    }
    let port_at = match (host.starts_with('['), host.rfind(']')) {
        (true, None) => return Some("missing ']' in host".to_owned()),
        (true, Some(end)) => end + 1,
        (false, _) => host.rfind(':').unwrap_or(host.len()),
    };
    let (name, port) = host.split_at(port_at);
    let digits = port.strip_prefix(':').unwrap_or_default();
    if !port.is_empty() && (!port.starts_with(':') || !digits.bytes().all(|byte| byte.is_ascii_digit())) {
        return Some(format!("invalid port {port:?} after host"));
    }
    let is_bad = |letter: &char| {
        letter.is_ascii() && !letter.is_ascii_alphanumeric() && !"-_.~!$&'()*+,;=:[]<>\"%".contains(*letter)
    };
    if let Some(letter) = name.chars().find(is_bad) {
        return Some(format!("invalid character {:?} in host name", letter.to_string()));
    }
    if let Some(escape) = bad_escape(name) {
        return Some(format!("invalid URL escape \"{escape}\""));
    }
    let at = name.match_indices('%').map(|(at, _)| at);
    let is_plain = |at: &usize| name[*at + 1..].starts_with(|digit: char| ('0'..'8').contains(&digit));
    let at = at.into_iter().find(|at| is_plain(at) && !name[*at..].starts_with("%25"))?;
    Some(format!("invalid URL escape \"{}\"", name[at..].chars().take(3).collect::<String>()))
}

/// The first `%` that two hexadecimal digits do not follow, with what follows.
fn bad_escape(part: &str) -> Option<&str> {
    part.match_indices('%').find_map(|(at, _)| {
        let digits: Vec<char> = part[at + 1..].chars().take(2).collect();
        let is_good = digits.len() == 2 && digits.iter().all(char::is_ascii_hexdigit);
        let bytes: usize = digits.iter().map(|letter| letter.len_utf8()).sum();
        (!is_good).then(|| &part[at..=at + bytes])
    })
}

/// Backslashes and a last space are part of the path, and no slashes or margins, as they are to browsers.
fn path_as_typed(text: &str) -> std::borrow::Cow<'_, str> {
    if !text.contains('\\') && !text.ends_with(' ') {
        return text.into();
    }
    let end = text.find(['?', '#']).unwrap_or(text.len());
    let (path, rest) = text.split_at(end);
    let rest = if rest.ends_with(' ') { rest.replace(' ', "%20") } else { rest.to_owned() };
    format!("{}{rest}", path.replace('\\', "%5C").replace(' ', "%20")).into()
}

/// k6's `error_code` of an address that cannot be dialled.
const DIAL_CODE: u16 = 1210;

/// k6's `error_code` for errors without a specific code.
pub(super) const OTHER_CODE: u16 = 1000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_taken_and_refused_as_gos_client_does() {
        let unsent = |why: &str| Err(Unusable::unsent(OTHER_CODE, why.to_owned()));
        let malformed = |text: &str, why: &str| Err(Unusable::Malformed(format!("parse {text:?}: {why}")));
        for (text, expected) in [
            ("http://h/a ", "http://h/a%20"),
            ("http://h/a\\b", "http://h/a%5Cb"),
            ("http://h/a?x=%zz", "http://h/a?x=%zz"),
            ("HTTP://h:80/%20", "http://h/%20"),
        ] {
            assert_eq!(parse(text).map(String::from), Ok(expected.to_owned()), "{text}");
        }
        for (text, expected) in [
            ("", unsent("unsupported protocol scheme \"\"")),
            ("/x", unsent("unsupported protocol scheme \"\"")),
            ("ftp://h/", unsent("unsupported protocol scheme \"ftp\"")),
            ("localhost:80/x", unsent("unsupported protocol scheme \"localhost\"")),
            ("http://", unsent("http: no Host in request URL")),
            ("http:///x", unsent("http: no Host in request URL")),
            (
                "http://h:99999/",
                Err(Unusable::unsent(DIAL_CODE, "dial tcp: address 99999: invalid port".to_owned())),
            ),
            ("http://h:x/", malformed("http://h:x/", "invalid port \":x\" after host")),
            ("http://h/a\nb", malformed("http://h/a\nb", "net/url: invalid control character in URL")),
            ("%zz", malformed("%zz", "invalid URL escape \"%zz\"")),
            ("http://h/%zz", malformed("http://h/%zz", "invalid URL escape \"%zz\"")),
            ("http://h/#%", malformed("http://h/#%", "invalid URL escape \"%\"")),
            ("ht tp://x/", malformed("ht tp://x/", "first path segment in URL cannot contain colon")),
            ("a,https://b/", malformed("a,https://b/", "first path segment in URL cannot contain colon")),
            ("127.0.0.1:80", malformed("127.0.0.1:80", "first path segment in URL cannot contain colon")),
            (":x", malformed(":x", "missing protocol scheme")),
            ("x:y", unsent("unsupported protocol scheme \"x\"")),
            ("//x/", unsent("unsupported protocol scheme \"\"")),
            ("http://a b/", malformed("http://a b/", "invalid character \" \" in host name")),
            ("http://h:1 /", malformed("http://h:1 /", "invalid port \":1 \" after host")),
            ("http://u r@h/", malformed("http://u r@h/", "net/url: invalid userinfo")),
            ("http://%zz/", malformed("http://%zz/", "invalid URL escape \"%zz\"")),
            ("http://a%41/", malformed("http://a%41/", "invalid URL escape \"%41\"")),
            (" http://h/", malformed(" http://h/", "first path segment in URL cannot contain colon")),
            ("http://[::1", malformed("http://[::1", "missing ']' in host")),
        ] {
            assert_eq!(parse(text), expected, "{text}");
        }
    }
}
