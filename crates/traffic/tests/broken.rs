//! Files that are broken in every way that files are: each problem has its place and its reason, and the rest is read all the same.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

use std::io::Write;

use squall_traffic::read::open_bytes;
use squall_traffic::store::{Recording, Writer};
use squall_traffic::{Field, Format, ImportOptions, Problem, ReadOptions, Record, Request, Response, import};

/// What came of a file: its good records, and its problems.
fn read(format: Format, bytes: Vec<u8>) -> (Vec<Record>, Vec<Problem>) {
    let mut source = open_bytes(format, bytes, &ReadOptions::default()).unwrap();
    let (mut records, mut problems) = (Vec::new(), Vec::new());
    loop {
        match source.next() {
            Ok(Some(record)) => records.push(record),
            Ok(None) => return (records, problems),
            Err(problem) => {
                let is_fatal = problem.is_fatal;
                problems.push(problem);
                if is_fatal {
                    return (records, problems);
                }
            }
        }
    }
}

const SEPARATOR: &str = "\n\u{1f435}\u{1f648}\u{1f649}\n";

fn har_entry(time: &str, extra: &str) -> String {
    format!(
        r#"{{"startedDateTime":"{time}","time":5,"request":{{"method":"GET","url":"http://x/a","httpVersion":"HTTP/1.1","headers":[{extra}]}},"response":{{"status":200,"headers":[],"content":{{"size":0}}}}}}"#
    )
}

fn har(entries: &[String]) -> Vec<u8> {
    format!(r#"{{"log":{{"version":"1.2","entries":[{}]}}}}"#, entries.join(",")).into_bytes()
}

fn gor(time: &str, message: &str) -> String {
    format!("1 aeb496b6165db3fad05c89b8 {time} 0\n{message}")
}

fn log(time: &str, request: &str) -> String {
    format!("1.2.3.4 - - [{time}] \"{request}\" 200 1 \"-\" \"x\"\n")
}

fn pair(ts: &str, url: &str) -> String {
    format!(
        r#"{{"msgType":"rrpair","l7protocol":"http","direction":"IN","ts":"{ts}","http":{{"req":{{"method":"GET","url":"{url}","host":"x"}},"res":{{"statusCode":200}}}}}}"#
    )
}

const NOW: &str = "2024-05-01T10:00:00.000Z";
const LOG_NOW: &str = "01/May/2024:10:00:00 +0000";
const GOR_NOW: &str = "1714557600000000000";
const GOOD: &str = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";

/// A good record before and behind each bad one of the text formats.
fn bad_files() -> Vec<(&'static str, Format, Vec<u8>, &'static str)> {
    let long = "a".repeat(2 << 20);
    let in_gor = |bad: String| [gor(GOR_NOW, GOOD), bad, gor(GOR_NOW, GOOD)].join(SEPARATOR).into_bytes();
    let in_log = |bad: String| format!("{0}{bad}\n{0}", log(LOG_NOW, "GET /a HTTP/1.1")).into_bytes();
    let in_pairs = |bad: String| format!("{0}\n{bad}\n{0}\n", pair(NOW, "/a")).into_bytes();
    let in_curl = |bad: &str| format!("curl http://x/1\n{bad}\ncurl http://x/2\n").into_bytes();
    let latin = |mut bytes: Vec<u8>, at: &str| {
        let at = bytes.windows(at.len()).position(|window| window == at.as_bytes()).unwrap();
        bytes[at] = 0xe4;
        bytes
    };
    vec![
        ("gor: no header line", Format::Gor, in_gor("nonsense".into()), "not a header"),
        ("gor: absurd time", Format::Gor, in_gor(gor("99999999999999999999", GOOD)), "time"),
        ("gor: cut message", Format::Gor, in_gor(gor(GOR_NOW, "GET / HT")), ""),
        ("gor: binary message", Format::Gor, in_gor(gor(GOR_NOW, "\0\u{1}\u{2}\r\n\r\n")), ""),
        ("gor: 50 MB head", Format::Gor, in_gor(gor(GOR_NOW, &big_head())), "head"),
        ("log: nonsense", Format::AccessLog, in_log("nonsense".into()), "column 1"),
        (
            "log: absurd time",
            Format::AccessLog,
            in_log(log("01/May/0024:10:00:00 +0000", "GET / HTTP/1.1")),
            "1990",
        ),
        (
            "log: no such month",
            Format::AccessLog,
            in_log(log("01/Mai/2024:10:00:00 +0000", "GET / HTTP/1.1")),
            "not a time",
        ),
        (
            "log: gigantic line",
            Format::AccessLog,
            in_log(log(LOG_NOW, &format!("GET /{long} HTTP/1.1"))),
            "larger",
        ),
        ("log: Latin-1", Format::AccessLog, latin(in_log(log(LOG_NOW, "GET /Q HTTP/1.1")), "Q"), "UTF-8"),
        ("rrpair: no JSON", Format::RrpairJson, in_pairs("{".into()), "not an RRPair"),
        ("rrpair: absurd time", Format::RrpairJson, in_pairs(pair("0001-01-01T00:00:00Z", "/a")), "1990"),
        ("rrpair: Latin-1", Format::RrpairJson, latin(in_pairs(pair(NOW, "/Q")), "Q"), ""),
        (
            "rrpair: no base64",
            Format::RrpairJson,
            in_pairs(pair(NOW, r#"/a","bodyBase64":"2YQ=="#)),
            "base64",
        ),
        ("curl: a header over two lines", Format::Curl, in_curl("curl http://x/ -H 'a\nb'"), "not a header"),
        ("curl: CR in a query", Format::Curl, in_curl("curl -G http://x/ -d $'a\\rb'"), "cannot be sent"),
        ("curl: open quote", Format::Curl, b"curl http://x/1\ncurl 'http://x".to_vec(), "quote"),
        ("curl: no URL", Format::Curl, in_curl("curl -X POST"), "no URL"),
        ("curl: Latin-1", Format::Curl, latin(in_curl("curl http://x/Q"), "Q"), "UTF-8"),
    ]
}

fn big_head() -> String {
    format!(
        "GET / HTTP/1.1\r\nHost: x\r\n{}\r\n",
        "A: 0123456789012345678901234567890123456789\r\n".repeat(1_200_000)
    )
}

#[test]
fn each_problem_has_its_place_and_the_rest_is_read() {
    for (name, format, bytes, reason) in bad_files() {
        let (records, problems) = read(format, bytes);
        assert!(!problems.is_empty(), "{name}: nothing was wrong");
        let problem = &problems[0];
        assert!(problem.reason.contains(reason), "{name}: {problem}");
        assert!(problem.place.record == 2 || problem.place.line == 2, "{name}: {problem:?}");
        assert!(problem.reason.len() < 400 && !problem.reason.contains('\n'), "{name}: {problem}");
        assert!(!problem.reason.ends_with('.'), "{name}: {problem}");
        let rest = if problem.is_fatal || format == Format::Curl && problems.len() > 1 { 1 } else { 2 };
        let open = usize::from(name == "curl: open quote");
        assert_eq!(records.len(), rest - open.min(rest - 1), "{name}: {problems:?}");
    }
}

/// Browsers and servers write entries that stand for no request: they are noted, and the others are used.
#[test]
fn what_stands_for_no_request_is_left_out_with_a_note() {
    let field = format!(r#"{{"name":"A","value":"{}"}}"#, "a".repeat(2 << 20));
    let in_har = |bad: String| (Format::Har, har(&[har_entry(NOW, ""), bad, har_entry(NOW, "")]));
    let in_log = |bad: &str| {
        let good = log(LOG_NOW, "GET /a HTTP/1.1");
        (Format::AccessLog, format!("{good}{}{good}", log(LOG_NOW, bad)).into_bytes())
    };
    for ((format, bytes), note) in [
        (in_har(r#"{"startedDateTime": }"#.into()), "expected value"),
        (in_har(har_entry("2999-12-31T00:00:00Z", "")), "1990"),
        (in_har(har_entry("yesterday", "")), "ISO 8601"),
        (in_har(har_entry(NOW, &field)), "head"),
        (in_har(har_entry(NOW, "").replace("GET", "G T")), "bad method"),
        (in_log(r"\x16\x03\x01"), "not HTTP"),
        (in_log("-"), "without a request"),
    ] {
        let mut source = open_bytes(format, bytes, &ReadOptions::default()).unwrap();
        let count = std::iter::from_fn(|| source.next().unwrap()).count();
        assert_eq!(count, 2, "{note}");
        let found: Vec<_> = source.notes().iter().filter(|(text, ..)| text.contains(note)).collect();
        assert!(
            matches!(found.as_slice(), [(_, 1, place)] if place.record == 2),
            "{note}: {:?}",
            source.notes()
        );
    }
}

/// A sample of each format, as our own writers make it or as its tools do.
fn samples() -> Vec<(Format, Vec<u8>)> {
    let mut dump = Vec::new();
    for part in ["4:type;4:http;", "7:request;0:}"] {
        dump.extend_from_slice(part.as_bytes());
    }
    vec![
        (Format::Har, har(&[har_entry(NOW, r#"{"name":"A","value":"\u00fc"}"#), har_entry(NOW, "")])),
        (Format::Gor, [gor(GOR_NOW, GOOD), gor(GOR_NOW, GOOD)].join(SEPARATOR).into_bytes()),
        (Format::AccessLog, log(LOG_NOW, "GET /a HTTP/1.1").repeat(2).into_bytes()),
        (Format::RrpairJson, format!("{0}\n{0}\n", pair(NOW, "/a")).into_bytes()),
        (Format::RrpairText, b"### REQUEST ###\n```\nGET http://x/a HTTP/1.1\nA: b\n```\n```\nbody\n```\n### RESPONSE ###\n```\nHTTP/1.1 200 OK\n```\n### METADATA ###\n```\ndirection: IN\nts: 2024-05-01T10:00:00Z\nduration: 5ms\n```\n".to_vec()),
        (Format::Mitmproxy, [format!("{}:", dump.len()).into_bytes(), dump, b"}".to_vec()].concat()),
        (Format::Curl, b"curl 'http://x/1' -H 'A: b' --data-raw $'a\\u0041'\ncurl http://x/2\n".to_vec()),
        (Format::Postman, br#"{"info":{"_postman_id":"1"},"item":[{"name":"a","request":{"method":"GET","url":"http://x/a"}}]}"#.to_vec()),
        (Format::Squall, squall_file()),
    ]
}

/// Places at which each sample is cut and changed.
const CUT_COUNT: usize = 150;

fn squall_file() -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.squall");
    let mut writer = Writer::create(&path).unwrap();
    for nth in 0..3_u8 {
        let mut response = Response { status: 200, ..Response::default() };
        response.set_body((0..=255).collect());
        let request = Request {
            method: "POST".into(),
            target: format!("/{nth}"),
            headers: vec![Field::new("A", vec![0xff, nth + 32])],
            body: (0..=255).rev().collect(),
            ..Request::default()
        };
        let time_ns = 1_714_557_600_000_000_000 + u64::from(nth);
        writer.write(&Record { time_ns, request, response: Some(response), ..Record::default() }).unwrap();
    }
    writer.finish().unwrap();
    std::fs::read(&path).unwrap()
}

#[test]
fn a_file_cut_anywhere_or_with_any_byte_changed_is_read_to_its_end() {
    for (format, bytes) in samples() {
        let whole = read(format, bytes.clone()).0.len();
        for at in (0..bytes.len()).step_by(1 + bytes.len() / CUT_COUNT) {
            let (records, _) = read(format, bytes[..at].to_vec());
            assert!(records.len() <= whole, "{format:?} cut at {at}");
            let mut changed = bytes.clone();
            changed[at] ^= 0x55;
            let _ = read(format, changed);
        }
    }
}

fn gzip(parts: impl Iterator<Item = Vec<u8>>) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    parts.for_each(|part| encoder.write_all(&part).unwrap());
    encoder.finish().unwrap()
}

#[test]
fn what_unpacks_without_end_is_left_at_its_bound() {
    // 160 MB without the end of a record, in less than a MB.
    let endless = |begin: &str, byte: u8| {
        let part = vec![byte; 1 << 20];
        gzip([begin.as_bytes().to_vec()].into_iter().chain(std::iter::repeat_n(part, 160)))
    };
    for (format, begin) in [
        (Format::Har, r#"{"log":{"entries":[{"startedDateTime":""#),
        (Format::Gor, "1 aeb496b6165db3fad05c89b8 1714557600000000000\n"),
        (Format::AccessLog, "1.2.3.4 - - ["),
        (Format::RrpairJson, "{\"msgType\":\""),
        (Format::RrpairText, "### REQUEST ###\n```\n"),
        (Format::Curl, "curl http://x/"),
        (Format::Postman, r#"{"info":{"name":""#),
        (Format::Mitmproxy, ""),
        (Format::Squall, "SQUALLTR"),
    ] {
        let byte = if format == Format::Mitmproxy { b'9' } else { b'a' };
        let (records, problems) = read(format, endless(begin, byte));
        assert!(records.is_empty() && !problems.is_empty(), "{format:?}: {records:?}");
    }
}

#[test]
fn records_out_of_order_by_hours_are_put_in_order() {
    let hours = [9, 3, 12, 3, 1];
    let entries: Vec<String> =
        hours.iter().map(|hour| har_entry(&format!("2024-05-01T{hour:02}:00:00Z"), "")).collect();
    let mut source = open_bytes(Format::Har, har(&entries), &ReadOptions::default()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.squall");
    let writer = Writer::create(&path).unwrap();
    let options = ImportOptions { skip_bad: false };
    let imported = import(source.as_mut(), writer, options, &mut |_| true, &mut |_| {}).unwrap();
    assert_eq!(imported.out_of_order_count, 3);
    let mut cursor = Recording::open(&path).unwrap().cursor(4096);
    let mut times = Vec::new();
    while let Some(frame) = cursor.peek().unwrap() {
        times.push(frame.time_ns);
        cursor.skip(frame.bytes());
    }
    assert!(times.is_sorted() && times.len() == 5, "{times:?}");
}
