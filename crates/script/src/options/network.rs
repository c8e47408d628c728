//! Where connections may go and come from: `hosts`, `blockHostnames`, `blacklistIPs`, `localIPs`, `dns`; and how TLS is spoken on them.

use std::net::IpAddr;

use ipnet::IpNet;
use serde_json::Value as Json;
use squall_plan::TlsVersions;

use super::{Reader, wrong};
use crate::error::ScriptError;

/// A host name, or a pattern of names with `*` as its first part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostPattern {
    /// In lower case; of a pattern what follows the `*`.
    name: String,
    is_suffix: bool,
}

/// `hosts`: fixed addresses by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HostRules(Vec<HostRule>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct HostRule {
    pattern: HostPattern,
    port: Option<u16>,
    address: IpAddr,
    to_port: Option<u16>,
}

/// `dns`: which of a name's addresses are used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Dns {
    /// Which of several addresses.
    pub select: DnsSelect,
    /// Which families of addresses.
    pub policy: DnsPolicy,
}

/// Which of a name's addresses a connection goes to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum DnsSelect {
    /// The first one, always.
    First,
    /// Each in turn. k6 draws at random, which comes to the same load on each.
    #[default]
    Rotate,
}

/// Which families of addresses are used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum DnsPolicy {
    /// IPv4 where there is any.
    #[default]
    PreferIpv4,
    /// IPv6 where there is any.
    PreferIpv6,
    /// IPv4 alone.
    OnlyIpv4,
    /// IPv6 alone.
    OnlyIpv6,
    /// All.
    Any,
}

/// A client certificate, for some domains.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsAuth {
    /// PEM text.
    pub cert: String,
    /// PEM text.
    pub key: String,
    /// Names that it is for; empty: all.
    pub domains: Vec<HostPattern>,
}

impl HostPattern {
    fn parse(text: &str) -> Option<Self> {
        let lower = text.trim().to_ascii_lowercase();
        let (name, is_suffix) = match lower.strip_prefix('*') {
            Some(rest) => (rest.to_owned(), true),
            None => (lower, false),
        };
        let is_name =
            |letter: char| letter.is_ascii_alphanumeric() || "-._[]:".contains(letter) || !letter.is_ascii();
        ((is_suffix || !name.is_empty()) && name.chars().all(is_name)).then_some(Self { name, is_suffix })
    }

    /// Whether a host name, in lower case, is one of these.
    pub fn matches(&self, host: &str) -> bool {
        if self.is_suffix { host.ends_with(&self.name) } else { host == self.name }
    }
}

impl HostRules {
    /// Where to connect to instead of a host and port. A name goes before a pattern, a longer pattern before a shorter one, and a
    /// rule with a port before one without.
    pub fn find(&self, host: &str, port: u16) -> Option<(IpAddr, u16)> {
        let fits = |rule: &&HostRule| rule.port.is_none_or(|own| own == port) && rule.pattern.matches(host);
        let weight =
            |rule: &&HostRule| (!rule.pattern.is_suffix, rule.pattern.name.len(), rule.port.is_some());
        let best = self.0.iter().filter(fits).max_by_key(weight)?;
        Some((best.address, best.to_port.unwrap_or(port)))
    }
}

pub(super) fn hosts(read: &Reader<'_>) -> Result<HostRules, ScriptError> {
    let rule = |(name, target): (String, String)| {
        let (pattern, port) = split_port(&name);
        let (address, to_port) = match target.trim_matches(['[', ']']).parse() {
            Ok(address) => (Some(address), None),
            Err(_) => {
                let (address, port) = split_port(&target);
                (address.trim_matches(['[', ']']).parse().ok(), port)
            }
        };
        match (HostPattern::parse(pattern), address) {
            (Some(pattern), Some(address)) => Ok(HostRule { pattern, port, address, to_port }),
            (None, _) => Err(wrong("hosts", &format!("has the invalid name `{name}`"), HOSTS_HELP)),
            (_, None) => Err(wrong(
                "hosts",
                &format!("sends `{name}` to `{target}`, which is not an address"),
                HOSTS_HELP,
            )),
        }
    };
    read.strings_by_name("hosts")?.into_iter().map(rule).collect::<Result<_, _>>().map(HostRules)
}

/// `host:port`, where a port is given.
fn split_port(text: &str) -> (&str, Option<u16>) {
    match text.rsplit_once(':') {
        Some((host, port)) if !host.contains(':') || host.ends_with(']') => match port.parse() {
            Ok(port) => (host, Some(port)),
            Err(_) => (text, None),
        },
        _ => (text, None),
    }
}

pub(super) fn block_hostnames(read: &Reader<'_>) -> Result<Vec<HostPattern>, ScriptError> {
    let pattern = |text: String| {
        HostPattern::parse(&text).ok_or_else(|| {
            let help = "write names such as test.example.com, or *.example.com";
            wrong("blockHostnames", &format!("has `{text}`, which is not a host name"), help)
        })
    };
    read.list("blockHostnames")?.into_iter().map(pattern).collect()
}

pub(super) fn blacklist_ips(read: &Reader<'_>) -> Result<Vec<IpNet>, ScriptError> {
    let net = |text: String| {
        text.parse().or_else(|_| text.parse::<IpAddr>().map(IpNet::from)).map_err(|_error| {
            wrong(
                "blacklistIPs",
                &format!("has `{text}`, which is not a range of addresses"),
                "write 10.0.0.0/8",
            )
        })
    };
    read.list("blacklistIPs")?.into_iter().map(net).collect()
}

/// Addresses, `from-to` ranges and CIDR ranges, as a list.
pub(super) fn local_ips(read: &Reader<'_>) -> Result<Vec<IpAddr>, ScriptError> {
    let mut all = Vec::new();
    for part in read.list("localIPs")? {
        let known = all.len();
        let space = LOCAL_IP_COUNT_MAX - known;
        if let Ok(address) = part.parse() {
            all.push(address);
        } else if let Ok(net) = part.parse::<IpNet>() {
            all.extend(net.hosts().take(space + 1));
        } else if let Some((Ok(first), Ok(last))) =
            part.split_once('-').map(|(first, last)| (first.trim().parse(), last.trim().parse()))
        {
            all.extend(between(first, last).take(space + 1));
        }
        let problem = match all.len() {
            count if count == known => format!("has `{part}`, which is neither an address nor a range"),
            count if count > LOCAL_IP_COUNT_MAX => format!("names more than {LOCAL_IP_COUNT_MAX} addresses"),
            _ => continue,
        };
        return Err(wrong("localIPs", &problem, "write 192.0.2.1, 192.0.2.1-192.0.2.20 or 192.0.2.0/24"));
    }
    Ok(all)
}

/// The addresses from one to another of the same family.
fn between(first: IpAddr, last: IpAddr) -> Box<dyn Iterator<Item = IpAddr>> {
    match (first, last) {
        (IpAddr::V4(first), IpAddr::V4(last)) => {
            Box::new((u32::from(first)..=u32::from(last)).map(|bits| IpAddr::V4(bits.into())))
        }
        (IpAddr::V6(first), IpAddr::V6(last)) => {
            Box::new((u128::from(first)..=u128::from(last)).map(|bits| IpAddr::V6(bits.into())))
        }
        _ => Box::new(std::iter::empty()),
    }
}

/// `{ttl, select, policy}`, or `ttl=5m,select=first,policy=onlyIPv4`.
pub(super) fn dns(read: &Reader<'_>, warnings: &mut Vec<String>) -> Result<Dns, ScriptError> {
    let mut dns = Dns::default();
    for (name, value) in dns_pairs(read)? {
        let known = match name.as_str() {
            "ttl" => {
                let is_for_ever = matches!(value.as_str(), "inf" | "");
                let is_time = super::duration(&value).is_some();
                if is_time && !is_for_ever {
                    warnings.push("`dns.ttl` has no effect in squall: a name is looked up once".to_owned());
                }
                is_for_ever || is_time
            }
            "select" => match value.as_str() {
                "first" => {
                    dns.select = DnsSelect::First;
                    true
                }
                other => matches!(other, "random" | "roundRobin" | ""),
            },
            "policy" => {
                let policy = POLICIES.iter().find(|(known, _)| *known == value);
                dns.policy = policy.map_or(dns.policy, |(_, policy)| *policy);
                policy.is_some() || value.is_empty()
            }
            _ => false,
        };
        if !known {
            let help = "use ttl=5m, select=first|random|roundRobin, policy=preferIPv4|preferIPv6|onlyIPv4|onlyIPv6|any";
            return Err(wrong("dns", &format!("has `{name}` = `{value}`"), help));
        }
    }
    Ok(dns)
}

fn dns_pairs(read: &Reader<'_>) -> Result<Vec<(String, String)>, ScriptError> {
    let Some(Json::String(text)) = read.get("dns") else { return read.strings_by_name("dns") };
    let pair = |part: &str| {
        let (name, value) = part.split_once('=').unwrap_or((part, ""));
        (name.trim().to_owned(), value.trim().to_owned())
    };
    Ok(text.split(',').filter(|part| !part.trim().is_empty()).map(pair).collect())
}

const POLICIES: &[(&str, DnsPolicy)] = &[
    ("preferIPv4", DnsPolicy::PreferIpv4),
    ("preferIPv6", DnsPolicy::PreferIpv6),
    ("onlyIPv4", DnsPolicy::OnlyIpv4),
    ("onlyIPv6", DnsPolicy::OnlyIpv6),
    ("any", DnsPolicy::Any),
];

pub(super) fn tls_auth(read: &Reader<'_>) -> Result<Vec<TlsAuth>, ScriptError> {
    let Some(value) = read.get("tlsAuth") else { return Ok(Vec::new()) };
    let items = value
        .as_array()
        .ok_or_else(|| wrong("tlsAuth", "is not a list", "write [{ cert, key, domains }]"))?;
    let text = |item: &Json, name: &str| item.get(name).and_then(Json::as_str).map(str::to_owned);
    let one = |item: &Json| {
        let missing =
            || wrong("tlsAuth", "lacks `cert` or `key`", "give both as PEM text, for example with open()");
        if text(item, "password").is_some_and(|password| !password.is_empty()) {
            let help = "decrypt the key first: openssl pkey -in key.pem -out plain.pem";
            return Err(wrong("tlsAuth", "has a key with a password, which is not supported", help));
        }
        let domains = item.get("domains").and_then(Json::as_array).cloned().unwrap_or_default();
        let domains = domains.iter().filter_map(Json::as_str).filter_map(HostPattern::parse).collect();
        let (cert, key) = (text(item, "cert").ok_or_else(missing)?, text(item, "key").ok_or_else(missing)?);
        Ok(TlsAuth { cert, key, domains })
    };
    items.iter().map(one).collect()
}

pub(super) fn tls_versions(read: &Reader<'_>) -> Result<TlsVersions, ScriptError> {
    let (min, max) = match read.get("tlsVersion") {
        None => return Ok(TlsVersions::Any),
        Some(Json::String(version)) => (version.clone(), version.clone()),
        Some(other) => {
            let bound = |name: &str| other.get(name).and_then(Json::as_str).unwrap_or_default().to_owned();
            (bound("min"), bound("max"))
        }
    };
    let place = |version: &str, otherwise: usize| match version {
        "" => Some(otherwise),
        version => VERSIONS.iter().position(|known| *known == version),
    };
    match (place(&min, 0), place(&max, 3)) {
        (Some(min), Some(max)) if min > max => {
            Err(wrong("tlsVersion", "has a `min` above its `max`", "use { min: 'tls1.2', max: 'tls1.3' }"))
        }
        (Some(3), Some(3)) => Ok(TlsVersions::Tls13),
        (Some(_), Some(2)) => Ok(TlsVersions::Tls12),
        (Some(_), Some(3)) => Ok(TlsVersions::Any),
        (Some(_), Some(_)) => {
            Err(wrong("tlsVersion", "is too old: TLS 1.0 and 1.1 are not supported", "use tls1.2 or tls1.3"))
        }
        _ => Err(wrong("tlsVersion", "names an unknown version", "use tls1.2 or tls1.3")),
    }
}

const VERSIONS: &[&str] = &["tls1.0", "tls1.1", "tls1.2", "tls1.3"];

/// Suites by their IANA names, which are Go's. Those of TLS 1.3 cannot be chosen, as in Go.
pub(super) fn cipher_suites(read: &Reader<'_>) -> Result<Vec<String>, ScriptError> {
    let mut names = read.list("tlsCipherSuites")?;
    if names.is_empty() {
        return Ok(names);
    }
    // Go's older names of the two ChaCha20 suites lack the hash.
    names
        .iter_mut()
        .filter(|name| name.ends_with("_CHACHA20_POLY1305"))
        .for_each(|name| name.push_str("_SHA256"));
    if let Some(name) = names.iter().find(|name| !KNOWN_SUITES.contains(&name.as_str())) {
        let problem = format!("has `{name}`, which is not supported");
        let help = format!("use some of {}", KNOWN_SUITES.join(", "));
        return Err(wrong("tlsCipherSuites", &problem, &help));
    }
    names.retain(|name| !TLS13_SUITES.contains(&name.as_str()));
    names.extend(TLS13_SUITES.iter().map(|name| (*name).to_owned()));
    Ok(names)
}

const TLS13_SUITES: &[&str] =
    &["TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"];

const KNOWN_SUITES: &[&str] = &[
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
    "TLS_AES_128_GCM_SHA256",
    "TLS_AES_256_GCM_SHA384",
    "TLS_CHACHA20_POLY1305_SHA256",
];

const HOSTS_HELP: &str = "write { 'api.example.com': '192.0.2.1', '*.example.com:443': '192.0.2.2:8443' }";

/// Most local addresses: a /16.
const LOCAL_IP_COUNT_MAX: usize = 65_536;

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read<T>(options: &Json, of: impl FnOnce(&Reader<'_>) -> T) -> T {
        of(&Reader(options.as_object().unwrap()))
    }

    #[test]
    fn hosts_are_found_by_name_pattern_and_port() {
        let options = json!({ "hosts": {
            "a.example": "192.0.2.1", "a.example:443": "192.0.2.2:8443", "*.example": "192.0.2.3", "six.example": "[::1]:80", "seven.example": "::2",
        } });
        let rules = read(&options, hosts).unwrap();
        for (host, port, found) in [
            ("a.example", 80, Some("192.0.2.1:80")),
            ("a.example", 443, Some("192.0.2.2:8443")),
            ("b.example", 443, Some("192.0.2.3:443")),
            ("six.example", 81, Some("[::1]:80")),
            ("seven.example", 81, Some("[::2]:81")),
            ("example", 80, None),
        ] {
            let at = rules.find(host, port).map(|at| std::net::SocketAddr::from(at).to_string());
            assert_eq!(at.as_deref(), found, "{host}:{port}");
        }
        assert!(read(&json!({ "hosts": { "a": "b" } }), hosts).is_err());
    }

    #[test]
    fn local_addresses_are_spread_out() {
        for (list, expected) in [
            ("192.0.2.1", "192.0.2.1"),
            ("192.0.2.1-192.0.2.3,::1", "192.0.2.1 192.0.2.2 192.0.2.3 ::1"),
            ("192.0.2.0/30", "192.0.2.1 192.0.2.2"),
        ] {
            let all = read(&json!({ "localIPs": list }), local_ips).unwrap();
            let all: Vec<String> = all.iter().map(IpAddr::to_string).collect();
            assert_eq!(all.join(" "), expected);
        }
        for list in ["x", "192.0.2.9-192.0.2.1", "10.0.0.0/8", "::/0", "192.0.2.1-::1"] {
            assert!(read(&json!({ "localIPs": list }), local_ips).is_err(), "{list}");
        }
    }

    #[test]
    fn dns_and_tls_are_read_in_every_form() {
        let mut warnings = Vec::new();
        let read_dns = |options: &Json, warnings: &mut Vec<String>| read(options, |read| dns(read, warnings));
        let one = read_dns(&json!({ "dns": "ttl=1m,select=first,policy=onlyIPv6" }), &mut warnings).unwrap();
        assert_eq!(one, Dns { select: DnsSelect::First, policy: DnsPolicy::OnlyIpv6 });
        assert_eq!(warnings.len(), 1);
        let two = read_dns(&json!({ "dns": { "ttl": "inf", "policy": "any" } }), &mut warnings).unwrap();
        assert_eq!((two.policy, warnings.len()), (DnsPolicy::Any, 1));
        assert!(read_dns(&json!({ "dns": { "policy": "x" } }), &mut warnings).is_err());
        for (value, versions) in [
            (json!("tls1.3"), Some(TlsVersions::Tls13)),
            (json!({ "min": "tls1.0", "max": "tls1.2" }), Some(TlsVersions::Tls12)),
            (json!({ "min": "tls1.2" }), Some(TlsVersions::Any)),
            (json!("tls1.1"), None),
            (json!({ "min": "tls1.3", "max": "tls1.2" }), None),
        ] {
            assert_eq!(read(&json!({ "tlsVersion": value }), tls_versions).ok(), versions);
        }
        let suites = json!({ "tlsCipherSuites": ["TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"] });
        assert_eq!(read(&suites, cipher_suites).unwrap().len(), 4);
        assert!(read(&json!({ "tlsCipherSuites": ["TLS_RSA_WITH_RC4_128_SHA"] }), cipher_suites).is_err());
    }
}
