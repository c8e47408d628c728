//! How the lines of an access log are written: nginx's `log_format`, Apache's `LogFormat`, both mixed, or a format by its name.

use std::str::FromStr;

use super::log_json::JsonFields;
use super::log_line::{Var, header_name};
use super::log_presets::{self, Preset};

/// How to read a line.
#[derive(Debug, Clone)]
pub struct LogPattern {
    pub(super) layout: Layout,
    /// Apache logs when a request began, nginx when it ended.
    pub(super) logs_start: bool,
}

/// Where in a line things are.
#[derive(Debug, Clone)]
pub(super) enum Layout {
    /// Variables between fixed texts.
    Parts(Vec<Part>),
    /// A regular expression with named groups.
    Preset(Preset),
    /// JSON objects.
    Json(JsonFields),
    /// Columns that the file names itself: the W3C's extended format, of IIS and CloudFront.
    W3c,
}

/// A piece of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Part {
    Text(String),
    Var(Var),
}

/// A pattern that cannot be understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct PatternError {
    /// Why.
    pub reason: String,
}

impl LogPattern {
    /// The combined format of both servers.
    pub fn combined() -> Self {
        let text = r#"$remote_addr $_ $remote_user [$time_local] "$request" $status $body_bytes_sent "$http_referer" "$http_user_agent""#;
        text.parse().unwrap_or(Self { layout: Layout::W3c, logs_start: false })
    }

    /// The format of that name.
    fn named(name: &str) -> Option<Self> {
        if let Some((preset, logs_start)) = log_presets::preset(name) {
            return Some(Self { layout: Layout::Preset(preset), logs_start });
        }
        match name {
            "iis" | "cloudfront" | "w3c" => Some(Self { layout: Layout::W3c, logs_start: false }),
            "caddy" | "traefik" => Self::json(name).ok(),
            _ => None,
        }
    }

    /// The format that the first lines of a log look like; what looks like none is combined.
    pub(super) fn of_lines(text: &str) -> Self {
        let name = log_presets::name_of(text.trim_start());
        name.and_then(Self::named).unwrap_or_else(Self::combined)
    }

    /// JSON logs: `ts=time,method=request.method,url=request.uri`, or the name of a server (`caddy`, `traefik`).
    ///
    /// # Errors
    /// When a field is not known, or time or URL are not among them.
    pub fn json(text: &str) -> Result<Self, PatternError> {
        let (fields, logs_start) = JsonFields::parse(text).map_err(|reason| PatternError { reason })?;
        Ok(Self { layout: Layout::Json(fields), logs_start })
    }
}

impl FromStr for LogPattern {
    type Err = PatternError;

    fn from_str(text: &str) -> Result<Self, PatternError> {
        match text {
            "combined" | "main" => return Ok(Self::combined()),
            "common" => return r#"%h %l %u %t "%r" %>s %b"#.parse(),
            name => {
                if let Some(pattern) = Self::named(name) {
                    return Ok(pattern);
                }
            }
        }
        let mut parts = Vec::new();
        let mut rest = text;
        let mut percent_count = 0;
        while let Some(first) = rest.chars().next() {
            let (var, count) = match first {
                '$' => nginx(rest)?,
                '%' => {
                    percent_count += 1;
                    apache(rest)?
                }
                '\\' if rest.starts_with("\\\"") => (Part::Text("\"".to_owned()), 2),
                _ => (Part::Text(first.to_string()), first.len_utf8()),
            };
            push(&mut parts, var);
            rest = &rest[count..];
        }
        check(&parts)?;
        Ok(Self { layout: Layout::Parts(parts), logs_start: percent_count > 0 })
    }
}

fn push(parts: &mut Vec<Part>, part: Part) {
    match (parts.last_mut(), part) {
        (Some(Part::Text(last)), Part::Text(text)) => last.push_str(&text),
        (_, part) => parts.push(part),
    }
}

fn check(parts: &[Part]) -> Result<(), PatternError> {
    let refused = |reason: &str| Err(PatternError { reason: reason.to_owned() });
    if parts.windows(2).any(|pair| matches!(pair, [Part::Var(_), Part::Var(_)])) {
        return refused("two variables follow each other with nothing between them");
    }
    let has =
        |wanted: &[Var]| parts.iter().any(|part| matches!(part, Part::Var(var) if wanted.contains(var)));
    if !has(&[Var::RequestLine, Var::Target]) {
        return refused("no variable for the request: add $request or $request_uri (%r or %U)");
    }
    if !has(&[Var::CommonTime, Var::IsoTime, Var::EpochSeconds, Var::EpochMillis, Var::EpochMicros]) {
        return refused("no variable for the time: add $time_local, $time_iso8601 or $msec (%t)");
    }
    Ok(())
}

/// `$name`
fn nginx(text: &str) -> Result<(Part, usize), PatternError> {
    let name_len = text[1..].find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(text.len() - 1);
    let name = &text[1..=name_len];
    let var = match name {
        "" => return Err(PatternError { reason: "a `$` without a name behind it".to_owned() }),
        "remote_addr" | "http_x_forwarded_for" | "realip_remote_addr" => Var::Client,
        "time_local" => Var::CommonTime,
        "time_iso8601" => Var::IsoTime,
        "msec" => Var::EpochSeconds,
        "request" => Var::RequestLine,
        "request_method" => Var::Method,
        "request_uri" | "uri" | "document_uri" => Var::Target,
        "args" | "query_string" => Var::Query,
        "server_protocol" => Var::Protocol,
        "status" => Var::Status,
        "body_bytes_sent" => Var::Bytes,
        "scheme" => Var::Scheme,
        "host" | "http_host" | "server_name" => Var::Host,
        "server_port" => Var::Port,
        "request_time" => Var::Seconds,
        "connection" => Var::Connection,
        "request_body" => Var::Body,
        _ => match (name.strip_prefix("http_"), name.strip_prefix("cookie_")) {
            (Some(header), _) => Var::Header(header_name(header)),
            (_, Some(cookie)) => Var::Cookie(cookie.to_owned()),
            _ => Var::Ignored,
        },
    };
    Ok((Part::Var(var), name_len + 1))
}

/// `%h`, `%>s`, `%{Referer}i`
fn apache(text: &str) -> Result<(Part, usize), PatternError> {
    let refused = |reason: String| PatternError { reason };
    let mut at = 1;
    at += text[at..].find(|c: char| !matches!(c, '<' | '>' | '!' | ',') && !c.is_ascii_digit()).unwrap_or(0);
    let argument = match text[at..].strip_prefix('{') {
        Some(rest) => {
            let end = rest.find('}').ok_or_else(|| refused(format!("`{text}` has no closing brace")))?;
            at += end + 2;
            Some(&rest[..end])
        }
        None => None,
    };
    let letter = text[at..].chars().next().ok_or_else(|| refused(format!("`{text}` has no letter")))?;
    let var = match (letter, argument) {
        ('%', _) => return Ok((Part::Text("%".to_owned()), at + 1)),
        ('h' | 'a', _) => Var::Client,
        ('t', None) => Var::CommonTime,
        ('t', Some("sec")) => Var::EpochSeconds,
        ('t', Some("msec")) => Var::EpochMillis,
        ('t', Some("usec")) => Var::EpochMicros,
        ('r', _) => Var::RequestLine,
        ('m', _) => Var::Method,
        ('U', _) => Var::Target,
        ('q', _) => Var::Query,
        ('H', _) => Var::Protocol,
        ('s', _) => Var::Status,
        ('b' | 'B' | 'O', _) => Var::Bytes,
        ('v' | 'V', _) => Var::Host,
        ('p', _) => Var::Port,
        ('D', _) | ('T', Some("us")) => Var::Micros,
        ('T', Some("ms")) => Var::Millis,
        ('T', _) => Var::Seconds,
        ('k', _) => Var::Ignored,
        ('i', Some(name)) if name.eq_ignore_ascii_case("host") => Var::Host,
        ('i', Some(name)) => Var::Header(name.to_owned()),
        ('C', Some(name)) => Var::Cookie(name.to_owned()),
        _ => Var::Ignored,
    };
    Ok((Part::Var(var), at + letter.len_utf8()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_servers_patterns_are_understood() {
        let apache: LogPattern =
            r#"%h %l %u %t "%r" %>s %b "%{Referer}i" "%{User-agent}i" %D"#.parse().unwrap();
        let Layout::Parts(parts) = &apache.layout else { panic!("{apache:?}") };
        assert!(apache.logs_start && parts.contains(&Part::Var(Var::Micros)));
        assert!(parts.contains(&Part::Var(Var::Header("User-agent".into()))));
        assert!(!LogPattern::combined().logs_start);
        assert_eq!(header_name("user_agent"), "User-Agent");
    }

    #[test]
    fn patterns_without_what_replay_needs_are_refused() {
        for text in ["", "$status", "$request", "$time_local$request", "%{Referer", "%", "$"] {
            assert!(text.parse::<LogPattern>().is_err(), "{text}");
        }
    }
}
