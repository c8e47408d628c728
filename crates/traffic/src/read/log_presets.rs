//! Access logs whose format has a name: load balancers and servers with one format of their own.
//!
//! Owns: how their lines are read, and how each is recognised.

use std::sync::OnceLock;

use regex::Regex;

use super::log_line::{Line, Var};
use super::time;

/// A format by a regular expression whose groups are named after what they hold.
#[derive(Debug, Clone, Copy)]
pub(super) struct Preset {
    name: &'static str,
    regex: fn() -> &'static Regex,
}

impl Preset {
    pub(super) fn read(&self, text: &str, line: &mut Line) -> Result<(), String> {
        let regex = (self.regex)();
        let found = regex.captures(text).ok_or_else(|| {
            format!("column 1: not a line of the format {}: `{}`", self.name, time::cut(text))
        })?;
        for name in regex.capture_names().flatten() {
            if let (Some(value), Some(var)) = (found.name(name), var(name)) {
                let value = value.as_str();
                line.set(&var, if name == ESCAPED { unescaped(value) } else { value.to_owned() })?;
            }
        }
        Ok(())
    }
}

/// HAProxy writes `#22` for a quote, and `#23` for its own sign.
fn unescaped(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('#') {
        bytes.extend_from_slice(&rest.as_bytes()[..at]);
        let byte = rest.get(at + 1..at + 3).and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.push(byte.unwrap_or(b'#'));
        rest = &rest[at + if byte.is_some() { 3 } else { 1 }..];
    }
    bytes.extend_from_slice(rest.as_bytes());
    String::from_utf8_lossy(&bytes).into_owned()
}

/// What a group holds. Several groups may add up to one variable: digits at the end tell them apart.
fn var(group: &str) -> Option<Var> {
    Some(match group.trim_end_matches(|c: char| c.is_ascii_digit()) {
        "client_port" => Var::ClientPort,
        "time" => Var::IsoTime,
        "local_time" => Var::LocalTime,
        "millis" => Var::Millis,
        "seconds" => Var::SecondsMore,
        "status" => Var::Status,
        "bytes" => Var::Bytes,
        "request" | ESCAPED => Var::RequestLine,
        "agent" => Var::Header("User-Agent".to_owned()),
        "scheme" => Var::Scheme,
        _ => return None,
    })
}

/// The format of that name, and whether its times are those of the request.
pub(super) fn preset(name: &str) -> Option<(Preset, bool)> {
    let (name, regex, logs_start): (_, fn() -> &'static Regex, _) = match name {
        "alb" => ("alb", alb, false),
        "elb" => ("elb", elb, true),
        "haproxy" => ("haproxy", haproxy, true),
        _ => return None,
    };
    Some((Preset { name, regex }, logs_start))
}

/// The name of the format whose first lines these look like, which may be one of JSON or of columns.
pub(super) fn name_of(text: &str) -> Option<&'static str> {
    let lines = || text.lines().take(LINES_LOOKED_AT);
    let matches = |regex: &Regex| lines().any(|line| regex.is_match(line));
    Some(match () {
        () if lines().any(|line| line.starts_with("#Fields:")) => "w3c",
        () if text.starts_with('{') && text.contains("\"http.log.access") => "caddy",
        () if text.starts_with('{')
            && text.contains("\"RequestMethod\"")
            && text.contains("\"ClientHost\"") =>
        {
            "traefik"
        }
        () if text.starts_with('{') => return None,
        () if matches(alb()) => "alb",
        () if matches(elb()) => "elb",
        () if matches(haproxy()) => "haproxy",
        () => return None,
    })
}

fn compiled(cell: &'static OnceLock<Regex>, pattern: &str) -> &'static Regex {
    #[expect(clippy::expect_used, reason = "the patterns are those below, and tests compile each")]
    cell.get_or_init(|| Regex::new(pattern).expect("it compiles"))
}

/// Application load balancers of AWS. The time is that of the response.
fn alb() -> &'static Regex {
    static CELL: OnceLock<Regex> = OnceLock::new();
    const PATTERN: &str = r#"^(?<scheme>https?|h2|grpcs?|wss?) (?<time>[^ ]+T[^ ]+Z) [^ ]+ (?<client_port>[^ ]+:[0-9]+) [^ ]+ (?<seconds1>[-0-9.]+) (?<seconds2>[-0-9.]+) (?<seconds3>[-0-9.]+) (?<status>[-0-9]+) [-0-9]+ [-0-9]+ (?<bytes>[-0-9]+) "(?<request>(?:[^"\\]|\\.)*)" "(?<agent>(?:[^"\\]|\\.)*)""#;
    compiled(&CELL, PATTERN)
}

/// Classic load balancers of AWS. The time is that of the request.
fn elb() -> &'static Regex {
    static CELL: OnceLock<Regex> = OnceLock::new();
    const PATTERN: &str = r#"^(?<time>[0-9]{4}-[^ ]+T[^ ]+Z) [^ ]+ (?<client_port>[^ ]+:[0-9]+) [^ ]+ (?<seconds1>[-0-9.]+) (?<seconds2>[-0-9.]+) (?<seconds3>[-0-9.]+) (?<status>[-0-9]+) [-0-9]+ [-0-9]+ (?<bytes>[-0-9]+) "(?<request>(?:[^"\\]|\\.)*)"(?: "(?<agent>(?:[^"\\]|\\.)*)")?"#;
    compiled(&CELL, PATTERN)
}

/// HAProxy's `option httplog`, with or without what syslog puts before it. The time is that of the request.
fn haproxy() -> &'static Regex {
    static CELL: OnceLock<Regex> = OnceLock::new();
    const PATTERN: &str = r#"(?:^| )(?<client_port>[^ ]+:[0-9]+) \[(?<local_time>[0-9]{2}/[^\]]+)\] [^ ]+ [^ ]+ (?:-?[0-9]+/)+\+?(?<millis>-?[0-9]+) (?<status>-?[0-9]+) \+?(?<bytes>[0-9]+) [^ ]+ [^ ]+ [^ ]+ [0-9/+]+ [0-9/]+(?: \{[^}]*\})* "(?<escaped_request>[^"]*)"#;
    compiled(&CELL, PATTERN)
}

/// The group that is a request line with escapes.
const ESCAPED: &str = "escaped_request";

const LINES_LOOKED_AT: usize = 20;

#[cfg(test)]
mod tests {
    use super::super::LogPattern;
    use super::super::tests::good;
    use super::super::{Format, ReadOptions, open_bytes};
    use crate::Record;

    /// Time in ms since 2020, method, URL, status, latency in ms, and header fields.
    fn shown(record: &Record) -> String {
        let request = &record.request;
        let fields: Vec<String> = request
            .headers
            .iter()
            .map(|field| format!("{}={}", field.name, String::from_utf8_lossy(&field.value)))
            .collect();
        let response = record.response.as_ref().unwrap();
        let time_ms = record.time_ns / 1_000_000 - 1_577_836_800_000;
        let latency_ms = response.latency_ns / 1_000_000;
        format!(
            "{time_ms} {} {} {} {latency_ms} {}",
            request.method,
            request.url(),
            response.status,
            fields.join(",")
        )
    }

    fn check(name: &str, text: &str, expected: &[&str]) {
        let detected = good(Format::AccessLog, text.into());
        assert_eq!(detected.iter().map(shown).collect::<Vec<_>>(), expected, "{name}");
        let log_pattern = Some(name.parse().unwrap());
        let options = ReadOptions { log_pattern, ..ReadOptions::default() };
        let mut source = open_bytes(Format::AccessLog, text.into(), &options).unwrap();
        let named: Vec<Record> = std::iter::from_fn(|| source.next().unwrap()).collect();
        assert_eq!(named, detected, "{name}");
    }

    #[test]
    fn each_named_format_is_read_and_recognised_by_its_looks() {
        check(
            "alb",
            r#"https 2020-01-02T00:00:01.500000Z app/lb/1 10.0.0.1:2817 10.0.0.2:80 0.1 0.2 0.2 200 200 34 366 "GET https://www.example.com:443/a?b=c HTTP/1.1" "curl/7 \"x\"" ECDHE TLSv1.2 arn "Root=1" "www.example.com" "arn" 0 2020-01-02T00:00:00.9Z "forward" "-" "-" "10.0.0.2:80" "200" "-" "-"
http 2020-01-02T00:00:02.000000Z app/lb/1 10.0.0.1:2818 - -1 -1 -1 400 - 0 272 "- http://x:80- -" "-" - - - "-" "-" "-" - 2020-01-02T00:00:02Z "-" "-" "-" "-" "-" "-" "-"
wss 2020-01-02T00:00:03.000000Z app/lb/1 10.0.0.1:2819 10.0.0.2:80 0 0 0 101 101 1 1 "GET https://ws.example:443/s HTTP/1.1" "-" - - arn "-" "-" "-" 0 2020-01-02T00:00:03Z "forward" "-" "-" "-" "101" "-" "-"
"#,
            &["86401000 GET https://www.example.com/a?b=c 200 500 User-Agent=curl/7 \\\"x\\\""],
        );
        check(
            "elb",
            "2020-01-02T00:00:01.500000Z lb 10.0.0.1:2817 10.0.0.2:80 0.1 0.2 0.2 200 200 0 29 \"GET http://x.example:80/ HTTP/1.1\" \"curl/7\" - -\n",
            &["86401500 GET http://x.example/ 200 500 User-Agent=curl/7"],
        );
        check(
            "haproxy",
            "Feb  6 12:14:14 localhost haproxy[14389]: 10.0.1.2:33317 [02/Jan/2020:00:00:01.655] http-in static/srv1 10/0/30/69/109 200 2750 - - ---- 1/1/1/1/0 0/0 {1wt.eu} {} \"GET /index.html?q=#22a#22#23&b=#z HTTP/1.1\"\n10.0.1.2:33318 [02/Jan/2020:00:00:02.000] in in/<NOSRV> -1/-1/-1/-1/0 400 187 - - PR-- 1/1/0/0/0 0/0 \"<BADREQ>\"\n",
            &["86401655 GET /index.html?q=\"a\"#&b=#z 200 109 "],
        );
        check(
            "iis",
            "#Software: Microsoft Internet Information Services 10.0\n#Fields: date time s-ip cs-method cs-uri-stem cs-uri-query s-port cs-username c-ip cs(User-Agent) cs(Referer) sc-status sc-substatus sc-win32-status time-taken\n2020-01-02 00:00:01 10.0.0.1 GET /a.aspx x=1&y=a+b 443 - 10.9.9.9 Mozilla/5.0+(X11) - 200 0 0 250\n",
            &["86401250 GET /a.aspx?x=1&y=a+b 200 250 User-Agent=Mozilla/5.0 (X11)"],
        );
        check(
            "cloudfront",
            "#Version: 1.0\n#Fields: date time x-edge-location sc-bytes c-ip cs-method cs(Host) cs-uri-stem sc-status cs(Referer) cs(User-Agent) cs-uri-query cs(Cookie) x-host-header cs-protocol time-taken\n2020-01-02\t00:00:01\tLHR5\t900\t1.2.3.4\tGET\td1.cloudfront.net\t/v%20w\t200\t-\tMozilla/5.0%2520(X)\tq=1\t-\twww.example.com\thttps\t0.250\n2020-01-02\t00:00:01\tLHR5\t900\t1.2.3.4\tGET\td1.cloudfront.net\t/s\t101\t-\t-\t-\t-\tws.example.com\twss\t0.250\n",
            &["86401250 GET https://www.example.com/v%20w?q=1 200 250 User-Agent=Mozilla/5.0 (X)"],
        );
        check(
            "caddy",
            r#"{"level":"info","ts":1577923201.5,"logger":"http.log.access.log0","msg":"handled request","request":{"remote_ip":"127.0.0.1","remote_port":"41342","client_ip":"127.0.0.1","proto":"HTTP/2.0","method":"GET","host":"x.example","uri":"/a?b=c","headers":{"User-Agent":["curl/7"],"Accept":["*/*"],"Content-Length":["0"]},"tls":{"resumed":false}},"bytes_read":0,"duration":0.25,"size":10,"status":200,"resp_headers":{"Server":["Caddy"]}}"#,
            &["86401250 GET https://x.example/a?b=c 200 250 User-Agent=curl/7,Accept=*/*"],
        );
        check(
            "traefik",
            r#"{"ClientAddr":"10.0.0.1:5000","ClientHost":"10.0.0.1","DownstreamContentSize":5,"DownstreamStatus":200,"Duration":250000000,"RequestAddr":"x.example","RequestHost":"x.example","RequestMethod":"GET","RequestPath":"/a?b=c","RequestProtocol":"HTTP/1.1","RequestScheme":"https","StartUTC":"2020-01-02T00:00:01.5Z","request_User-Agent":"curl/7","level":"info","time":"2020-01-02T00:00:02Z"}"#,
            &["86401500 GET https://x.example/a?b=c 200 250 User-Agent=curl/7"],
        );
    }

    /// The records that a log of this format has, and why other lines are none.
    fn read(name: &str, text: &str) -> (Vec<String>, Vec<String>) {
        let log_pattern = Some(name.parse().unwrap());
        let options = ReadOptions { log_pattern, ..ReadOptions::default() };
        let mut source = open_bytes(Format::AccessLog, text.into(), &options).unwrap();
        let (mut records, mut problems) = (Vec::new(), Vec::new());
        loop {
            match source.next() {
                Ok(Some(record)) => records.push(shown(&record)),
                Ok(None) => return (records, problems),
                Err(problem) => problems.push(problem.reason),
            }
        }
    }

    #[test]
    fn lines_that_collectors_have_shortened_are_read_as_far_as_they_say_enough() {
        let iis = "2020-01-02 00:00:01 10.0.0.1 GET /a - 80 - 10.9.9.9 - - 200 0 0 250\n2020-01-02 00:00:01 GET /a\n";
        let (records, problems) = read("iis", iis);
        assert_eq!(records, ["86401250 GET /a 200 250 "]);
        assert!(problems[0].starts_with("4 values for 15 columns of IIS"), "{problems:?}");
        let line = |rest: &str| {
            format!(
                r#"{{"RequestMethod":"GET","RequestPath":"/a","DownstreamStatus":200,"Duration":1000000{rest}}}"#
            )
        };
        let traefik = format!("{}\n{}\n", line(r#","StartLocal":"2020-01-02T01:00:01.5+01:00""#), line(""));
        let (records, problems) = read("traefik", &traefik);
        assert_eq!(records, ["86401500 GET /a 200 1 "]);
        assert_eq!(problems, ["the line has no time"]);
    }

    #[test]
    fn json_logs_are_read_by_the_names_of_their_fields() {
        let line = r#"{"@timestamp":"2020-01-02T00:00:01.5Z","http":{"method":"POST","path":"/a","http.status":"201"},"took":"250","ip":"1.2.3.4","ua":"x","q":"?b=c","body":{"k":1},"user.id":7}"#;
        let pattern = "ts=@timestamp, method=http.method, url=http.path, query=q, status=http.http.status, duration_ms=took, client=ip, user_agent=ua, body=body, session=user.id, header.X-A=none";
        let log_pattern = Some(LogPattern::json(pattern).unwrap());
        let options = ReadOptions { log_pattern, ..ReadOptions::default() };
        let mut source = open_bytes(Format::AccessLog, format!("{line}\n[1]\n").into(), &options).unwrap();
        let record = source.next().unwrap().unwrap();
        assert_eq!(shown(&record), "86401250 POST /a?b=c 201 250 User-Agent=x");
        assert_eq!(record.request.body, br#"{"k":1}"#);
        assert_eq!(record.session, crate::key_of(b"7"));
        let problem = source.next().unwrap_err();
        assert!(problem.reason.contains("not a JSON object"), "{problem}");
        for (text, reason) in [
            ("ts=a", "no field for the URL"),
            ("url=a", "no field for the time"),
            ("ts=a,url=b,verb=c", "`verb`"),
            ("ts=a,url", "has no `=`"),
        ] {
            let error = LogPattern::json(text).unwrap_err();
            assert!(error.reason.contains(reason), "{text}: {error}");
        }
    }
}
