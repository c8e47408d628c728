//! The header field Alt-Svc (RFC 7838): where else an origin can be reached, in another protocol.
//!
//! Never: remembers or connects; what an announcement is worth is the caller's business.

/// What one value of the field says of HTTP/3.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Announcement {
    /// HTTP/3 is spoken there. Of several places, it is the first, which the server prefers (RFC 7838 3).
    Http3(Alternative),
    /// Nothing is any more: `clear`, or alternatives in other protocols alone. Each value replaces the one before (RFC 7838 3).
    Nothing,
}

/// Where an origin can be reached as well.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Alternative {
    /// A name or an address, IPv6 in brackets; `None`: that of the origin.
    pub host: Option<String>,
    /// UDP port.
    pub port: u16,
    /// For so many seconds after the response.
    pub max_age_s: u64,
}

/// Reads a value; `None`: it is malformed, and says nothing.
pub fn parse(value: &[u8]) -> Option<Announcement> {
    if value.trim_ascii() == b"clear" {
        return Some(Announcement::Nothing);
    }
    let mut rest = Rest(value);
    let (mut found, mut count) = (None, 0);
    loop {
        rest.skip_space();
        // RFC 9110 5.6.1: elements of a list may be empty.
        if rest.take(b',') {
            continue;
        }
        if rest.0.is_empty() {
            break;
        }
        let (protocol, alternative) = rest.alternative()?;
        count += 1;
        if found.is_none() && protocol == b"h3" {
            found = Some(alternative);
        }
        rest.skip_space();
        if !rest.0.is_empty() && !rest.take(b',') {
            return None;
        }
    }
    (count > 0).then(|| found.map_or(Announcement::Nothing, Announcement::Http3))
}

/// What has not been read of a value.
struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    /// `protocol="host:port"; parameter=value`, and the protocol's name.
    fn alternative(&mut self) -> Option<(&'a [u8], Alternative)> {
        let protocol = self.token()?;
        let authority = self.take(b'=').then(|| self.quoted())??;
        let (host, port) = authority.rsplit_once(':')?;
        let host = match host {
            "" => None,
            host => Some(host.to_owned()).filter(|host| is_host(host)).map(Some)?,
        };
        let max_age_s = self.parameters()?;
        Some((protocol, Alternative { host, port: port_of(port)?, max_age_s }))
    }

    /// The parameters of an alternative; of interest is how long it is fresh. Unknown ones are ignored (RFC 7838 3).
    fn parameters(&mut self) -> Option<u64> {
        let mut max_age_s = MAX_AGE_S_DEFAULT;
        loop {
            let before = self.0;
            self.skip_space();
            if !self.take(b';') {
                self.0 = before;
                return Some(max_age_s);
            }
            self.skip_space();
            let name = self.token()?;
            if !self.take(b'=') {
                return None;
            }
            let value = match self.0.first() {
                Some(b'"') => self.quoted()?,
                _ => String::from_utf8_lossy(self.token()?).into_owned(),
            };
            if name.eq_ignore_ascii_case(b"ma") {
                max_age_s = seconds(&value)?;
            }
        }
    }

    fn skip_space(&mut self) {
        self.0 = self.0.trim_ascii_start();
    }

    fn take(&mut self, byte: u8) -> bool {
        let is_next = self.0.first() == Some(&byte);
        self.0 = &self.0[usize::from(is_next)..];
        is_next
    }

    fn token(&mut self) -> Option<&'a [u8]> {
        let len = self.0.iter().take_while(|byte| is_token(**byte)).count();
        let (token, rest) = self.0.split_at(len);
        self.0 = rest;
        (len > 0).then_some(token)
    }

    /// A quoted string (RFC 9110 5.6.4), without its quotes and escapes.
    fn quoted(&mut self) -> Option<String> {
        let mut text = Vec::new();
        let mut bytes = self.0.strip_prefix(b"\"")?.iter();
        loop {
            match bytes.next()? {
                b'"' => break,
                b'\\' => text.push(*bytes.next()?),
                byte => text.push(*byte),
            }
        }
        self.0 = bytes.as_slice();
        String::from_utf8(text).ok()
    }
}

/// RFC 9110 5.6.2.
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

fn is_host(host: &str) -> bool {
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    let is_address = |byte: u8| byte.is_ascii_hexdigit() || b":.".contains(&byte);
    host.len() <= HOST_BYTES_MAX
        && match host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            Some(address) => !address.is_empty() && address.bytes().all(is_address),
            None => host.bytes().all(is_name),
        }
}

fn port_of(text: &str) -> Option<u16> {
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|port| is_number && *port > 0)
}

/// More than a number can hold is for ever (RFC 9111 1.2.2).
fn seconds(text: &str) -> Option<u64> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().unwrap_or(u64::MAX))
}

/// RFC 7838 3.1: a day.
const MAX_AGE_S_DEFAULT: u64 = 24 * 60 * 60;

/// The longest name of the DNS in text (RFC 1035 2.3.4).
const HOST_BYTES_MAX: usize = 253;

#[cfg(test)]
mod tests {
    use super::*;

    fn check(value: &str, expected: &Option<Announcement>) {
        assert_eq!(&parse(value.as_bytes()), expected, "{value}");
    }

    #[test]
    fn http3_is_found_among_alternatives() {
        let at = |host: Option<&str>, port, max_age_s| {
            Some(Announcement::Http3(Alternative { host: host.map(str::to_owned), port, max_age_s }))
        };
        check(r#"h3=":443"; ma=2592000"#, &at(None, 443, 2_592_000));
        check(r#"h3=":8443""#, &at(None, 8443, 86_400));
        check(
            r#"h2=":443", h3-29=":1";ma=1 , h3="b.example:2" ;persist=1; ma="7", h3=":3""#,
            &at(Some("b.example"), 2, 7),
        );
        check(
            r#",, h3="[::1]:65535";x=",;h3";ma=99999999999999999999,"#,
            &at(Some("[::1]"), 65_535, u64::MAX),
        );
        check(r#"h3="\:4\43"; MA=0"#, &at(None, 443, 0));
    }

    #[test]
    fn other_protocols_and_clear_take_http3_back() {
        for value in ["clear", " clear ", r#"h2=":443""#, r#"h3-29=":443"; ma=1"#, r#"H3=":443""#] {
            check(value, &Some(Announcement::Nothing));
        }
    }

    #[test]
    fn malformed_values_say_nothing() {
        for value in [
            "",
            " , ",
            "h3",
            "h3=:443",
            r#"h3=":443"#,
            r#"h3="443""#,
            r#"h3=":0""#,
            r#"h3=":65536""#,
            r#"h3=":+1""#,
            r#"h3=":""#,
            r#"h3="a b:443""#,
            r#"h3="[]:443""#,
            r#"h3="[::1:443""#,
            r#"h3=":443"; ma"#,
            r#"h3=":443"; ma="#,
            r#"h3=":443"; ma=-1"#,
            r#"h3=":443"; ma=1.5"#,
            r#"h3=":443";"#,
            r#"h3=":443" h2=":443""#,
            r#"h3=":443", CLEAR"#,
            r#"clear, h3=":443""#,
            "h3=\":443\\",
        ] {
            check(value, &None);
        }
        assert_eq!(parse(b"h3=\"\xff:443\""), None);
        check(&format!(r#"h3="{}:443""#, "a".repeat(254)), &None);
    }
}
