//! Where connections go, as people type it: `[WEIGHT@]HOST[:PORT]`, and paths of the requests made there.
//!
//! Pure functions of the text.

use crate::units::parse_weight;
use crate::{Endpoint, InputError, Weighted};

/// Reads `[WEIGHT@]HOST[:PORT]`; an IPv6 address with a port is in brackets. Without a port it is `port`.
pub fn parse_endpoint(text: &str, port: u16) -> Result<Weighted<Endpoint>, InputError> {
    let Weighted { weight, value } = parse_weighted(text)?;
    let begin = text.len() - value.len();
    let (host, port_text) = split_port(&value);
    let bad = |reason: String| InputError::at(text, begin, reason, ENDPOINT_HELP);
    if value.contains("://") || value.contains('/') {
        return Err(bad("a connection has no scheme and no path".to_owned()));
    }
    let is_host = |host: &str| {
        !host.is_empty() && host.chars().all(|c| c.is_ascii_alphanumeric() || "-._:".contains(c))
    };
    if !is_host(host) {
        return Err(bad(format!("`{}` is not a host", host.escape_debug())));
    }
    let port = match port_text {
        None => port,
        Some(digits) => {
            let port = digits.parse().ok().filter(|&port| port != 0);
            port.ok_or_else(|| bad(format!("`{}` is not a port", digits.escape_debug())))?
        }
    };
    Ok(Weighted { weight, value: Endpoint { host: host.to_owned(), port } })
}

/// Reads `[WEIGHT@]TEXT`.
pub fn parse_weighted(text: &str) -> Result<Weighted<String>, InputError> {
    match text.split_once('@') {
        None => Ok(Weighted::once(text.to_owned())),
        Some((weight, value)) => Ok(Weighted { weight: parse_weight(weight)?, value: value.to_owned() }),
    }
}

/// Reads a path with its query, such as `/health?full=1`.
pub fn parse_path(text: &str) -> Result<String, InputError> {
    let bad = |offset, reason: &str| InputError::at(text, offset, reason, PATH_HELP);
    if !text.starts_with('/') {
        return Err(bad(0, "a path begins with `/`"));
    }
    match text.find(|c: char| !c.is_ascii_graphic() || c == '#') {
        Some(offset) => Err(bad(offset, "a character that must be percent-encoded in a path")),
        None => Ok(text.to_owned()),
    }
}

/// `[v6]:port`, `[v6]`, `host:port`, `host`, or a bare IPv6 address.
fn split_port(text: &str) -> (&str, Option<&str>) {
    if let Some((host, rest)) = text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        return (host, rest.strip_prefix(':').or_else(|| (!rest.is_empty()).then_some(rest)));
    }
    match text.split_once(':') {
        Some((_, rest)) if rest.contains(':') => (text, None),
        Some((host, port)) => (host, Some(port)),
        None => (text, None),
    }
}

const ENDPOINT_HELP: &str = "write it as `HOST:PORT`, such as `example.org:443` or `[2001:db8::1]:443`";
const PATH_HELP: &str = "write a path such as `/health`, with other characters encoded as in `%20`";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_have_a_host_and_maybe_weight_and_port() {
        for (text, weight, host, port) in [
            ("example.org", 1, "example.org", 443),
            ("example.org:8443", 1, "example.org", 8443),
            ("3@10.0.0.1:1", 3, "10.0.0.1", 1),
            ("[::1]:8443", 1, "::1", 8443),
            ("::1", 1, "::1", 443),
            ("[::1]", 1, "::1", 443),
        ] {
            let parsed = parse_endpoint(text, 443).unwrap();
            assert_eq!(
                (parsed.weight.get(), parsed.value.host.as_str(), parsed.value.port),
                (weight, host, port),
                "{text}"
            );
        }
    }

    #[test]
    fn what_is_no_endpoint_is_reported_where() {
        for (text, column) in [
            ("", 1),
            ("https://x", 1),
            ("x:0", 1),
            ("x:99999", 1),
            ("x:y", 1),
            ("2@:443", 3),
            ("a b", 1),
            ("x@y", 1),
            ("[::1]x", 1),
        ] {
            assert_eq!(parse_endpoint(text, 443).unwrap_err().column, column, "{text}");
        }
    }

    #[test]
    fn paths_are_sent_as_they_are() {
        assert_eq!(parse_path("/a?b=%20c").as_deref(), Ok("/a?b=%20c"));
        for (text, column) in [("", 1), ("a", 1), ("/a b", 3), ("/é", 2), ("/a#b", 3)] {
            assert_eq!(parse_path(text).unwrap_err().column, column, "{text}");
        }
    }
}
