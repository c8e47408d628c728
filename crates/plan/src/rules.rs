//! The smaller texts of a plan: header fields, expected statuses, and the rules of where packets go and come from.
//!
//! Pure functions of the text. Whether an address is this machine's own is for the caller to find out.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};

use crate::limits::SOURCE_COUNT_MAX;
use crate::urls::{basic_authorization, is_token, parse_url};
use crate::{ConnectToRule, Header, InputError, Proxy, ResolveRule};

/// Reads `Name: value`. The value may be empty; control characters would end the field, so they are refused.
pub fn parse_header(text: &str) -> Result<Header, InputError> {
    let Some((name, value)) = text.split_once(':') else {
        return Err(InputError::at(text, 0, "no colon", HEADER_HELP));
    };
    if !is_token(name) {
        return Err(InputError::at(
            text,
            0,
            format!("`{}` is not a header name", name.escape_debug()),
            HEADER_HELP,
        ));
    }
    let forbidden = |c: char| c.is_control() && c != '\t';
    if let Some(offset) = value.find(forbidden) {
        return Err(InputError::at(
            text,
            name.len() + 1 + offset,
            "a control character in the value",
            HEADER_HELP,
        ));
    }
    Ok(Header { name: name.to_owned(), value: value.trim().to_owned() })
}

/// Reads statuses and inclusive ranges: `200,301-399,4xx`.
pub fn parse_statuses(text: &str) -> Result<Vec<(u16, u16)>, InputError> {
    let mut offset = 0;
    let mut ranges = Vec::new();
    for part in text.split(',') {
        let range = status_range(part.trim())
            .ok_or_else(|| InputError::at(text, offset, format!("`{part}` is not a status"), STATUS_HELP))?;
        ranges.push(range);
        offset += part.len() + 1;
    }
    Ok(ranges)
}

/// Reads `HOST:PORT:ADDRESS[,ADDRESS]` as curl's `--resolve` does; `*` matches any host or port.
pub fn parse_resolve(text: &str) -> Result<ResolveRule, InputError> {
    let bad = |reason: &str| InputError::at(text, 0, reason, RESOLVE_HELP);
    let (host, rest) = split_host(text).ok_or_else(|| bad("no port"))?;
    let (port, addresses) = rest.split_once(':').ok_or_else(|| bad("no address"))?;
    let address = |part: &str| {
        unbracketed(part.trim()).parse().map_err(|_| bad(&format!("`{part}` is not an IP address")))
    };
    Ok(ResolveRule {
        host: (host != "*").then(|| host.to_ascii_lowercase()).filter(|h| !h.is_empty()),
        port: if port == "*" { None } else { Some(port_of(port).ok_or_else(|| bad("not a port"))?) },
        addresses: addresses.split(',').map(address).collect::<Result<_, _>>()?,
    })
}

/// Reads `HOST:PORT:HOST:PORT` as curl's `--connect-to` does; an empty part matches, or keeps, anything.
pub fn parse_connect_to(text: &str) -> Result<ConnectToRule, InputError> {
    let bad = |reason: &str| InputError::at(text, 0, reason, CONNECT_TO_HELP);
    let missing = || bad("four parts are needed");
    let (from_host, rest) = split_host(text).ok_or_else(missing)?;
    let (from_port, rest) = rest.split_once(':').ok_or_else(missing)?;
    let (to_host, to_port) = split_host(rest).ok_or_else(missing)?;
    let host = |text: &str| (!text.is_empty()).then(|| text.to_ascii_lowercase());
    let port = |text: &str| match text {
        "" => Ok(None),
        _ => port_of(text).map(Some).ok_or_else(|| bad(&format!("`{text}` is not a port"))),
    };
    Ok(ConnectToRule {
        from_host: host(from_host),
        from_port: port(from_port)?,
        to_host: host(to_host),
        to_port: port(to_port)?,
    })
}

/// Reads `[http://][USER:PASSWORD@]HOST[:PORT]`; the port is 80 unless given.
pub fn parse_proxy(text: &str) -> Result<Proxy, InputError> {
    let url = parse_url(text).map_err(|e| InputError { help: PROXY_HELP.into(), ..e })?;
    let bad = |reason: &str| InputError::at(text, 0, reason, PROXY_HELP);
    if url.scheme() != "http" {
        return Err(bad("only `http` proxies are supported"));
    }
    if url.path() != "/" || url.query().is_some() {
        return Err(bad("a proxy has no path"));
    }
    let host = url.host_str().ok_or_else(|| bad("no host"))?;
    Ok(Proxy {
        host: unbracketed(host).to_owned(),
        port: url.port_or_known_default().ok_or_else(|| bad("no port"))?,
        authorization: user_information(url.username(), url.password()),
    })
}

/// Local addresses as typed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// One address or several in a row, of one family, inclusive.
    Addresses(RangeInclusive<IpAddr>),
    /// The addresses of all interfaces whose name matches this pattern (`*` stands for anything).
    Interfaces(String),
}

/// Reads `IP`, `IP-IP`, `IP/PREFIX` (an IPv4 network without its first and last address) or `nic:PATTERN`.
pub fn parse_source(text: &str) -> Result<Source, InputError> {
    let bad = |reason: &str| InputError::at(text, 0, reason, SOURCE_HELP);
    if let Some(pattern) = text.strip_prefix("nic:") {
        return if pattern.is_empty() {
            Err(bad("no interface"))
        } else {
            Ok(Source::Interfaces(pattern.to_owned()))
        };
    }
    let range = match (text.split_once('/'), text.split_once('-')) {
        (Some((address, prefix)), _) => network(address, prefix),
        (None, Some((first, last))) => first.parse().ok().zip(last.parse().ok()),
        (None, None) => text.parse().ok().map(|address| (address, address)),
    };
    let (first, last): (IpAddr, IpAddr) = range.ok_or_else(|| bad("not an IP address, range or network"))?;
    match address_count(first, last) {
        Some(count) if count <= SOURCE_COUNT_MAX as u128 => Ok(Source::Addresses(first..=last)),
        Some(_) => Err(bad(&format!("more than {SOURCE_COUNT_MAX} addresses"))),
        None => Err(bad("the range ends before it starts, or mixes IPv4 and IPv6")),
    }
}

/// All addresses of a range, in order.
pub fn addresses_of(range: &RangeInclusive<IpAddr>) -> Vec<IpAddr> {
    match (range.start(), range.end()) {
        (IpAddr::V4(first), IpAddr::V4(last)) => {
            (first.to_bits()..=last.to_bits()).map(|bits| Ipv4Addr::from_bits(bits).into()).collect()
        }
        (IpAddr::V6(first), IpAddr::V6(last)) => {
            (first.to_bits()..=last.to_bits()).map(|bits| Ipv6Addr::from_bits(bits).into()).collect()
        }
        _ => Vec::new(),
    }
}

fn status_range(text: &str) -> Option<(u16, u16)> {
    let status = |text: &str| text.parse().ok().filter(|s| (100..=599).contains(s));
    if let Some(class) = text.strip_suffix("xx").and_then(|class| class.parse::<u16>().ok()) {
        return (1..=5).contains(&class).then(|| (class * 100, class * 100 + 99));
    }
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let (first, last) = (status(first)?, status(last)?);
    (first <= last).then_some((first, last))
}

/// Splits `host:rest` or `[v6]:rest`; the brackets go.
fn split_host(text: &str) -> Option<(&str, &str)> {
    match text.strip_prefix('[') {
        Some(rest) => rest.split_once("]:"),
        None => text.split_once(':'),
    }
}

fn unbracketed(host: &str) -> &str {
    host.strip_prefix('[').and_then(|h| h.strip_suffix(']')).unwrap_or(host)
}

fn port_of(text: &str) -> Option<u16> {
    text.parse().ok().filter(|&port| port != 0)
}

fn user_information(user: &str, password: Option<&str>) -> Option<String> {
    let decoded = |text: &str| percent_encoding::percent_decode_str(text).decode_utf8_lossy().into_owned();
    (!user.is_empty() || password.is_some())
        .then(|| basic_authorization(&decoded(user), &decoded(password.unwrap_or_default())))
}

/// First and last usable address of a network.
fn network(address: &str, prefix: &str) -> Option<(IpAddr, IpAddr)> {
    let prefix: u32 = prefix.parse().ok()?;
    match address.parse().ok()? {
        IpAddr::V4(address) => {
            let host_bits = 32u32.checked_sub(prefix)?;
            let hosts = u32::MAX.checked_shr(prefix).unwrap_or(0);
            let edge = u32::from(host_bits >= 2);
            let (first, last) = (address.to_bits() & !hosts, address.to_bits() | hosts);
            Some((Ipv4Addr::from_bits(first + edge).into(), Ipv4Addr::from_bits(last - edge).into()))
        }
        IpAddr::V6(address) => {
            128u32.checked_sub(prefix)?;
            let hosts = u128::MAX.checked_shr(prefix).unwrap_or(0);
            let (first, last) = (address.to_bits() & !hosts, address.to_bits() | hosts);
            Some((Ipv6Addr::from_bits(first).into(), Ipv6Addr::from_bits(last).into()))
        }
    }
}

/// How many addresses a range has; `None` when it runs backwards or mixes families.
fn address_count(first: IpAddr, last: IpAddr) -> Option<u128> {
    let distance = match (first, last) {
        (IpAddr::V4(first), IpAddr::V4(last)) => u128::from(last.to_bits().checked_sub(first.to_bits())?),
        (IpAddr::V6(first), IpAddr::V6(last)) => last.to_bits().checked_sub(first.to_bits())?,
        _ => return None,
    };
    Some(distance.saturating_add(1))
}

const HEADER_HELP: &str = "write a header as `Name: value`";
const STATUS_HELP: &str = "write statuses such as `200`, `200-299` or `2xx`, separated by commas";
const RESOLVE_HELP: &str = "write `HOST:PORT:ADDRESS`, such as `example.org:443:127.0.0.1`";
const CONNECT_TO_HELP: &str = "write `HOST:PORT:HOST:PORT`, such as `example.org:443:localhost:8443`";
const PROXY_HELP: &str = "write a proxy such as `http://proxy.example:3128`";
const SOURCE_HELP: &str =
    "write local addresses such as `10.0.0.1`, `10.0.0.1-10.0.0.20`, `10.0.0.0/24` or `nic:eth*`";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_have_a_name_and_a_colon() {
        let header = |name: &str, value: &str| Header { name: name.into(), value: value.into() };
        assert_eq!(parse_header("Accept:  a:b "), Ok(header("Accept", "a:b")));
        assert_eq!(parse_header("X-Empty:"), Ok(header("X-Empty", "")));
        for (text, column) in [("no colon", 1), (": x", 1), ("a b: x", 1), ("A: x\r\nB: y", 5), ("A: \0", 4)]
        {
            assert_eq!(parse_header(text).unwrap_err().column, column, "{text:?}");
        }
    }

    #[test]
    fn statuses_are_numbers_ranges_and_classes() {
        assert_eq!(parse_statuses("200, 301-399,4xx"), Ok(vec![(200, 200), (301, 399), (400, 499)]));
        for (text, column) in [
            ("", 1),
            ("200,", 5),
            ("99", 1),
            ("600", 1),
            ("300-200", 1),
            ("200,6xx", 5),
            ("5439xx", 1),
            ("xx", 1),
        ] {
            assert_eq!(parse_statuses(text).unwrap_err().column, column, "{text}");
        }
    }

    #[test]
    fn resolve_rules_are_curls() {
        let rule = parse_resolve("Example.org:443:127.0.0.1,[::1]").unwrap();
        assert_eq!((rule.host.as_deref(), rule.port), (Some("example.org"), Some(443)));
        assert_eq!(rule.addresses, ["127.0.0.1".parse::<IpAddr>().unwrap(), "::1".parse().unwrap()]);
        let any = parse_resolve("*:*:::1").unwrap();
        assert_eq!((any.host, any.port, any.addresses.len()), (None, None, 1));
        for text in ["", "x", "x:1", "x:0:::1", "x:99999:::1", "x:1:localhost", "x:1:"] {
            assert!(parse_resolve(text).is_err(), "{text}");
        }
    }

    #[test]
    fn connect_to_rules_are_curls() {
        let rule = parse_connect_to("a:1:[::1]:2").unwrap();
        assert_eq!((rule.from_host.as_deref(), rule.from_port), (Some("a"), Some(1)));
        assert_eq!((rule.to_host.as_deref(), rule.to_port), (Some("::1"), Some(2)));
        let any = parse_connect_to("::localhost:").unwrap();
        assert_eq!((any.from_host, any.from_port, any.to_port), (None, None, None));
        for text in ["", "a:1", "a:1:b", "a:x:b:1", "a:1:b:0"] {
            assert!(parse_connect_to(text).is_err(), "{text}");
        }
    }

    #[test]
    fn proxies_are_http_with_user_information() {
        let proxy = parse_proxy("http://u:p%40@proxy:3128").unwrap();
        assert_eq!((proxy.host.as_str(), proxy.port), ("proxy", 3128));
        assert_eq!(proxy.authorization.as_deref(), Some("Basic dTpwQA=="));
        assert_eq!(
            parse_proxy("[::1]").unwrap(),
            Proxy { host: "::1".into(), port: 80, authorization: None }
        );
        for text in ["", "https://x", "socks5://x", "http://x/path", "http://x?q"] {
            assert!(parse_proxy(text).is_err(), "{text}");
        }
    }

    #[test]
    fn sources_are_addresses_ranges_networks_and_interfaces() {
        for (text, first, last) in [
            ("10.0.0.1", "10.0.0.1", "10.0.0.1"),
            ("10.0.0.1-10.0.0.20", "10.0.0.1", "10.0.0.20"),
            ("10.0.0.77/24", "10.0.0.1", "10.0.0.254"),
            ("10.0.0.4/31", "10.0.0.4", "10.0.0.5"),
            ("10.0.0.4/32", "10.0.0.4", "10.0.0.4"),
            ("::1", "::1", "::1"),
            ("fd00::/126", "fd00::", "fd00::3"),
        ] {
            let range: RangeInclusive<IpAddr> = first.parse().unwrap()..=last.parse().unwrap();
            assert_eq!(parse_source(text), Ok(Source::Addresses(range)), "{text}");
        }
        assert_eq!(parse_source("nic:eth*"), Ok(Source::Interfaces("eth*".into())));
        for text in [
            "",
            "nic:",
            "x",
            "10.0.0.2-10.0.0.1",
            "::1-10.0.0.1",
            "10.0.0.0/33",
            "10.0.0.0/8",
            "0.0.0.0/0",
            "::/0",
        ] {
            assert!(parse_source(text).is_err(), "{text}");
        }
    }

    #[test]
    fn ranges_list_their_addresses() {
        let range = "10.0.0.254".parse().unwrap()..="10.0.1.1".parse().unwrap();
        assert_eq!(addresses_of(&range).len(), 4);
        assert_eq!(addresses_of(&("::1".parse().unwrap()..="::3".parse().unwrap())).len(), 3);
    }
}
