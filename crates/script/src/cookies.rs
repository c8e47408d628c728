//! Cookie jars (RFC 6265): which cookies a response sets, and which ones a request carries.

use std::time::{SystemTime, UNIX_EPOCH};

use url::{Host, Url};

/// The cookies of one user, or of one `CookieJar` object.
#[derive(Debug, Clone, Default)]
pub(crate) struct Jar(Vec<Cookie>);

/// A cookie.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Cookie {
    pub(crate) name: String,
    pub(crate) value: String,
    /// As given; empty: the host that set it, alone.
    pub(crate) domain: String,
    pub(crate) path: String,
    pub(crate) secure: bool,
    pub(crate) http_only: bool,
    /// Seconds; 0: not given, negative: at once.
    pub(crate) max_age: i64,
    /// Milliseconds since 1970.
    pub(crate) expires_ms: Option<i64>,
    /// Host that it belongs to.
    host: String,
    /// It goes to that host alone.
    is_host_only: bool,
    /// When it ends, in milliseconds since 1970.
    ends_ms: Option<i64>,
}

impl Jar {
    /// Writes all that a request's `Cookie` depends on in addition to its URL; false where it depends on the time as well.
    pub(crate) fn write_words(&self, words: &mut Vec<u8>) -> bool {
        words.extend((self.0.len() as u32).to_ne_bytes());
        for cookie in &self.0 {
            for text in [&cookie.name, &cookie.value, &cookie.host, &cookie.path] {
                words.extend(text.as_bytes());
                words.push(0);
            }
            words.extend([u8::from(cookie.secure), u8::from(cookie.is_host_only)]);
        }
        self.0.iter().all(|cookie| cookie.ends_ms.is_none())
    }

    /// Forgets all.
    pub(crate) fn clear_all(&mut self) {
        self.0.clear();
    }

    /// Takes a cookie that a response or a script sets at `url`.
    pub(crate) fn set(&mut self, url: &Url, mut cookie: Cookie) {
        let host = url.host_str().unwrap_or_default().to_ascii_lowercase();
        let domain = cookie.domain.trim_start_matches('.').to_ascii_lowercase();
        if !domain.is_empty() && !is_within(&host, &domain) {
            return;
        }
        cookie.is_host_only = domain.is_empty();
        cookie.host = if domain.is_empty() { host } else { domain };
        if !cookie.path.starts_with('/') {
            cookie.path = default_path(url);
        }
        let now_ms = now_ms();
        cookie.ends_ms = match cookie.max_age {
            0 => cookie.expires_ms,
            age => Some(now_ms.saturating_add(age.saturating_mul(1000))),
        };
        self.0.retain(|known| {
            (&known.name, &known.host, &known.path) != (&cookie.name, &cookie.host, &cookie.path)
        });
        let is_over = cookie.ends_ms.is_some_and(|ends_ms| ends_ms <= now_ms);
        if !is_over && self.0.len() < COOKIE_COUNT_MAX {
            self.0.push(cookie);
        }
    }

    /// Name and value of the cookies for a request, longest path first (RFC 6265 5.4).
    pub(crate) fn for_url(&self, url: &Url) -> Vec<(&str, &str)> {
        if self.0.is_empty() {
            return Vec::new();
        }
        let host = url.host_str().unwrap_or_default().to_ascii_lowercase();
        let (is_secure, now_ms) = (url.scheme() == "https" || is_own_machine(url), now_ms());
        let mut fitting: Vec<&Cookie> = self
            .0
            .iter()
            .filter(|cookie| {
                let fits_host =
                    if cookie.is_host_only { cookie.host == host } else { is_within(&host, &cookie.host) };
                fits_host
                    && (is_secure || !cookie.secure)
                    && fits_path(url.path(), &cookie.path)
                    && cookie.ends_ms.is_none_or(|ends_ms| ends_ms > now_ms)
            })
            .collect();
        fitting.sort_by_key(|cookie| std::cmp::Reverse(cookie.path.len()));
        fitting.into_iter().map(|cookie| (cookie.name.as_str(), cookie.value.as_str())).collect()
    }

    /// Forgets what would go to `url`: all of it, or one name.
    pub(crate) fn remove(&mut self, url: &Url, name: Option<&str>) {
        let doomed: Vec<String> = self.for_url(url).into_iter().map(|(known, _)| known.to_owned()).collect();
        self.0
            .retain(|cookie| !doomed.contains(&cookie.name) || name.is_some_and(|name| name != cookie.name));
    }
}

/// Whether a URL leads to this machine, which needs no TLS to be trusted: as in browsers, and in k6.
fn is_own_machine(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

/// Reads a `Set-Cookie` value (RFC 6265 5.2).
pub(crate) fn parse(text: &str) -> Option<Cookie> {
    let mut parts = text.split(';');
    let (name, value) = parts.next()?.split_once('=')?;
    let value = value.trim();
    let value = value.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(value);
    let mut cookie = Cookie { name: name.trim().to_owned(), value: value.to_owned(), ..Cookie::default() };
    if cookie.name.is_empty() {
        return None;
    }
    for part in parts {
        let (key, value) = part.split_once('=').unwrap_or((part, ""));
        let value = value.trim();
        match key.trim().to_ascii_lowercase().as_str() {
            "domain" => value.clone_into(&mut cookie.domain),
            "path" => value.clone_into(&mut cookie.path),
            "secure" => cookie.secure = true,
            "httponly" => cookie.http_only = true,
            "max-age" => cookie.max_age = value.parse().map_or(0, |age: i64| if age <= 0 { -1 } else { age }),
            "expires" => cookie.expires_ms = date_ms(value),
            _ => {}
        }
    }
    Some(cookie)
}

/// Milliseconds since 1970 of a date in any form of RFC 6265 5.1.1.
pub(crate) fn date_ms(text: &str) -> Option<i64> {
    let (mut day, mut month, mut year, mut time) = (None, None, None, None);
    let is_delimiter = |letter: char| !(letter.is_ascii_alphanumeric() || letter == ':');
    for token in text.split(is_delimiter).filter(|token| !token.is_empty()) {
        let number = token.parse::<i64>().ok();
        if time.is_none() && token.contains(':') {
            time = clock(token);
        } else if let Some(number) = number {
            match (day, token.len()) {
                (None, 1 | 2) => day = Some(number),
                _ => year = year.or(Some(number)),
            }
        } else if month.is_none() {
            let prefix = token.get(..3).map(str::to_ascii_lowercase);
            month = prefix.and_then(|prefix| MONTHS.iter().position(|known| *known == prefix));
        }
    }
    let year = match year? {
        short @ 0..=69 => short + 2000,
        short @ 70..=99 => short + 1900,
        year => year,
    };
    let days = days_from_civil(year, month? as i64 + 1, day?);
    Some((days * 86_400 + time?) * 1000)
}

fn clock(token: &str) -> Option<i64> {
    let mut parts = token.split(':').map(|part| part.parse::<i64>().ok());
    let (hour, minute, second) = (parts.next()??, parts.next()??, parts.next().flatten().unwrap_or(0));
    Some(hour * 3600 + minute * 60 + second)
}

/// Days since 1970, by Howard Hinnant's algorithm of that name.
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let day_of_year = (153 * (month + if month > 2 { -3 } else { 9 }) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + day_of_year - 719_468
}

/// RFC 6265 5.1.3.
fn is_within(host: &str, domain: &str) -> bool {
    host == domain
        || host.strip_suffix(domain).is_some_and(|rest| rest.ends_with('.'))
            && host.parse::<std::net::IpAddr>().is_err()
}

/// RFC 6265 5.1.4.
fn fits_path(path: &str, wanted: &str) -> bool {
    path.strip_prefix(wanted)
        .is_some_and(|rest| rest.is_empty() || wanted.ends_with('/') || rest.starts_with('/'))
}

/// RFC 6265 5.1.4: up to the last slash of the request's path.
fn default_path(url: &Url) -> String {
    match url.path().rfind('/') {
        None | Some(0) => "/".to_owned(),
        Some(end) => url.path()[..end].to_owned(),
    }
}

fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];

/// Most cookies of one jar.
const COOKIE_COUNT_MAX: usize = 3000;

#[cfg(test)]
mod tests {
    use super::*;

    fn jar(sets: &[(&str, &str)]) -> Jar {
        let mut jar = Jar::default();
        for (url, text) in sets {
            jar.set(&Url::parse(url).unwrap(), parse(text).unwrap());
        }
        jar
    }

    fn sent(jar: &Jar, url: &str) -> String {
        let pairs = jar.for_url(&Url::parse(url).unwrap());
        pairs.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join("; ")
    }

    #[test]
    fn cookies_go_where_they_belong() {
        let jar = jar(&[
            ("http://a.example/x/y", "host=1"),
            ("http://a.example/", "wide=2; Domain=example"),
            ("http://a.example/", "deep=3; Path=/x/y"),
            ("http://a.example/", "safe=4; Secure"),
            ("http://a.example/", "foreign=5; Domain=other.org"),
        ]);
        assert_eq!(sent(&jar, "http://a.example/x/y"), "deep=3; host=1; wide=2");
        assert_eq!(sent(&jar, "http://a.example/"), "wide=2");
        assert_eq!(sent(&jar, "https://a.example/"), "wide=2; safe=4");
        assert_eq!(sent(&jar, "http://b.example/x"), "wide=2");
        assert_eq!(sent(&jar, "http://a.example/xy"), "wide=2");
    }

    #[test]
    fn this_machine_is_as_safe_as_tls() {
        for (url, expected) in [
            ("http://localhost:8080/", "safe=1"),
            ("http://shop.localhost/", "safe=1"),
            ("http://127.0.0.1/", "safe=1"),
            ("http://[::1]/", "safe=1"),
            ("http://10.0.0.1/", ""),
            ("http://notlocalhost/", ""),
        ] {
            assert_eq!(sent(&jar(&[(url, "safe=1; Secure")]), url), expected, "{url}");
        }
    }

    #[test]
    fn a_cookie_that_is_over_is_forgotten() {
        let mut jar = jar(&[("http://a.example/", "a=1"), ("http://a.example/", "b=2")]);
        let url = Url::parse("http://a.example/").unwrap();
        jar.set(&url, parse("a=x; Max-Age=0").unwrap());
        jar.set(&url, parse("b=x; Expires=Thu, 01 Jan 1970 00:00:00 GMT").unwrap());
        assert_eq!(sent(&jar, "http://a.example/"), "");
    }

    #[test]
    fn dates_are_read_in_every_form() {
        for text in
            ["Wed, 09 Jun 2021 10:18:14 GMT", "Wednesday, 09-Jun-21 10:18:14 GMT", "Wed Jun  9 10:18:14 2021"]
        {
            assert_eq!(date_ms(text), Some(1_623_233_894_000), "{text}");
        }
        assert_eq!(date_ms("soon"), None);
    }
}
