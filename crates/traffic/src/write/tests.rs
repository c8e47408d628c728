//! What is written is read back the same, as far as the format has a place for it.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::*;
use crate::read::tests::good;
use crate::{Field, Format, Request, Response, Scheme, Version};

fn record(nth: u64) -> Record {
    let mut response = Response {
        status: 201,
        headers: vec![Field::new("X-Y", "z")],
        latency_ns: 5_000_000,
        ..Response::default()
    };
    response.set_body(vec![0xff, 0, b'a' + nth as u8]);
    Record {
        time_ns: 1_700_000_000_000_000_000 + nth * 1_000_000,
        connection: 0xabcd + nth % 2,
        session: 1,
        request: Request {
            method: "POST".into(),
            scheme: Scheme::Http,
            authority: "x.example:81".into(),
            target: format!("/a/{nth}?b='c\\d"),
            version: Version::Http11,
            headers: vec![Field::new("Accept", "a/b"), Field::new("X-Q", "it's \"quoted\"")],
            body: format!("line {nth}\nand 'quote' \\").into_bytes(),
            spooled: None,
            lost_body_bytes: 0,
        },
        response: Some(response),
        ..Record::default()
    }
}

fn written(format: SinkFormat) -> Vec<u8> {
    let mut out = Vec::new();
    let mut writer = sink(format, &mut out);
    (0..3).for_each(|nth| writer.write(&record(nth)).unwrap());
    writer.finish().unwrap();
    out
}

fn sent(record: &Record) -> (String, String, Vec<Field>, Vec<u8>) {
    let mut headers = record.request.headers.clone();
    headers.retain(|field| !field.is("content-type"));
    (record.request.method.clone(), record.request.url(), headers, record.request.body.clone())
}

#[test]
fn requests_survive_every_format_that_has_them_whole() {
    let formats = [
        (SinkFormat::Har, Format::Har),
        (SinkFormat::Gor, Format::Gor),
        (SinkFormat::Rrpair, Format::RrpairJson),
        (SinkFormat::Curl, Format::Curl),
    ];
    for (sink, format) in formats {
        let records = good(format, written(sink));
        assert_eq!(records.len(), 3, "{format:?}");
        for (nth, read) in (0..).zip(&records) {
            assert_eq!(sent(read), sent(&record(nth)), "{format:?}");
            if format != Format::Curl {
                assert_eq!(read.time_ns, record(nth).time_ns, "{format:?}");
                let (response, expected) = (read.response.as_ref().unwrap(), record(nth).response.unwrap());
                assert_eq!((response.status, &response.body), (201, &expected.body), "{format:?}");
                assert_eq!(response.latency_ns, expected.latency_ns, "{format:?}");
            }
        }
        if matches!(format, Format::Gor | Format::Har) {
            assert!(
                records[0].connection == records[2].connection
                    && records[0].connection != records[1].connection
            );
        }
    }
}

#[test]
fn har_has_messages_and_events_with_their_times() {
    use crate::{Peer, RecordedKind, RecordedMessage};
    let message = |at_us: u64, by, kind, bytes: &[u8]| RecordedMessage {
        at_ns: at_us * 1000,
        by,
        kind,
        bytes: bytes.to_vec(),
    };
    let mut socket = record(0);
    socket.request.body.clear();
    let messages = vec![
        message(10, Peer::Client, RecordedKind::Text, "grüße".as_bytes()),
        message(2_000_020, Peer::Server, RecordedKind::Binary, &[0, 0xff, b'x']),
        RecordedMessage::close(3_000_000_000, Peer::Server, Some(1001), "going away"),
        RecordedMessage::close(3_000_000_000, Peer::Client, None, ""),
    ];
    socket.response =
        Some(Response { status: 101, messages, latency_ns: 3_000_000_000, ..Response::default() });
    let mut stream = record(1);
    let answer = stream.response.as_mut().unwrap();
    answer.set_body(b"data: a\n\nevent: b\ndata: c\n\n".to_vec());
    answer.event_times_ns = vec![5_000_000, 7_000_000];
    let mut out = Vec::new();
    let mut writer = sink(SinkFormat::Har, &mut out);
    [&socket, &stream].iter().for_each(|record| writer.write(record).unwrap());
    writer.finish().unwrap();
    let text = String::from_utf8(out.clone()).unwrap();
    assert!(
        text.contains(r#""url":"ws://x.example:81/a/0"#) && text.contains(r#""eventName":"b""#),
        "{text}"
    );
    let read = good(Format::Har, out);
    for (read, written) in read.iter().zip([&socket, &stream]) {
        let (read, written) = (read.response.as_ref().unwrap(), written.response.as_ref().unwrap());
        assert_eq!((read.status, &read.messages), (written.status, &written.messages));
        assert_eq!(read.event_times_ns, written.event_times_ns);
    }
    assert_eq!((read.len(), read[0].request.url()), (2, socket.request.url()));
}

#[test]
fn an_access_log_keeps_what_it_has_a_place_for() {
    let records = good(Format::AccessLog, written(SinkFormat::Log));
    assert_eq!(records[1].request.target, record(1).request.target);
    assert_eq!(records[2].response.as_ref().unwrap().status, 201);
}

#[test]
fn a_k6_script_has_every_request() {
    let script = String::from_utf8(written(SinkFormat::K6)).unwrap();
    assert_eq!(script.matches("send(\"POST\"").count(), 3);
    assert!(script.contains("\"POST /a/{id} is 201\"") && script.ends_with("  });\n}\n"), "{script}");
}

/// A request with these fields, and a response with those; both have a body.
fn step(target: &str, fields: &[(&str, &str)], body: &str, answer: (&[(&str, &str)], &str)) -> Record {
    let of = |pairs: &[(&str, &str)]| pairs.iter().map(|(name, value)| Field::new(*name, *value)).collect();
    let mut response = Response { status: 200, headers: of(answer.0), ..Response::default() };
    response.set_body(answer.1.into());
    let request = Request {
        method: "POST".into(),
        authority: "x".into(),
        target: target.into(),
        headers: of(fields),
        body: body.into(),
        ..Request::default()
    };
    Record { session: 1, request, response: Some(response), ..Record::default() }
}

#[test]
fn a_k6_script_does_what_was_learned() {
    let form = [("Cookie", "sid=first-session"), ("Content-Type", "application/x-www-form-urlencoded")];
    let page = r#"<input name="csrf" value="tok/en+1">"#;
    let records = [
        step("/login", &[], "", (&[("Set-Cookie", "sid=first-session; Path=/")], page)),
        step("/login", &form, "user=`a${b}\\&csrf=tok%2Fen%2B1", (&[], r#"{"jwt":"ey.a.b","id":4711}"#)),
        step("/orders/4711?x=1", &[("Authorization", "Bearer ey.a.b")], r#"{"id":4711}"#, (&[], "")),
    ];
    let mut learner = crate::play::Learner::default();
    (0..).zip(&records).for_each(|(nth, record)| learner.add(nth, 0, record));
    let mut out = Vec::new();
    let mut writer: Box<dyn Sink> = Box::new(K6::new(&mut out, learner.finish(), Vec::new()));
    records.iter().for_each(|record| writer.write(record).unwrap());
    writer.finish().unwrap();
    let script = String::from_utf8(out).unwrap();
    for line in [
        r#"let sid_1 = "first-session"; // cookie sid of POST http://x/login"#,
        r#"csrf_2 = element(res, 'input', "csrf", 'value') ?? csrf_2;"#,
        r#"jwt_4 = json(res, "/jwt") ?? jwt_4;"#,
        r#"`user=\`a\${b}\\&csrf=${encodeURIComponent(csrf_2)}`, { "Content-Type":"application/x-www-form-urlencoded", "Cookie": `sid=${sid_1}` });"#,
        r#"res = send("POST", `http://x/orders/${encodeURIComponent(id_3)}?x=1`, `{"id":${JSON.stringify(id_3).slice(1, -1)}}`, { "Authorization": `Bearer ${jwt_4}` }, "http://x/orders/{id}");"#,
        r#"check(res, { "POST /orders/{id} is 200": (r) => r.status === 200 });"#,
        r#"group("01 POST /login", function () {"#,
    ] {
        assert!(script.contains(line), "{line}\n{script}");
    }
    assert!(!script.contains("function header"), "only what is used is written");
}

#[test]
fn a_head_request_waits_for_no_body() {
    let mut out = Vec::new();
    let mut writer = sink(SinkFormat::Curl, &mut out);
    let mut head = record(0);
    (head.request.method, head.request.body) = ("HEAD".to_owned(), Vec::new());
    writer.write(&head).unwrap();
    writer.finish().unwrap();
    assert!(out.starts_with(b"curl -I 'http://x.example:81/a/0"), "{}", String::from_utf8_lossy(&out));
    assert_eq!(sent(&good(Format::Curl, out)[0]), sent(&head));
}

#[test]
fn pauses_of_a_k6_script_begin_with_the_answer() {
    let mut out = Vec::new();
    let mut writer = sink(SinkFormat::K6, &mut out);
    // Begin and length in milliseconds: a pause of 100, none while the former is not answered, and three of 2 together.
    for (begin_ms, took_ms) in [(0, 400), (500, 300), (600, 1), (603, 1), (606, 1), (609, 0)] {
        let mut one = record(0);
        one.time_ns += begin_ms * 1_000_000;
        one.response.as_mut().unwrap().latency_ns = took_ms * 1_000_000;
        writer.write(&one).unwrap();
    }
    writer.finish().unwrap();
    let script = String::from_utf8(out).unwrap();
    let pauses: Vec<&str> = script.lines().map(str::trim).filter(|line| line.starts_with("sleep(")).collect();
    assert_eq!(pauses, ["sleep(0.1);", "sleep(0.006);"], "{script}");
}

#[test]
fn the_text_of_har_is_decoded() {
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(b"plain text").unwrap();
    let coded = gzip.finish().unwrap();
    for (body, coding, text, encoding) in [
        (coded.clone(), "gzip", "plain text".to_owned(), None),
        (coded[..12].to_vec(), "gzip", STANDARD.encode(&coded[..12]), Some("base64")),
        (coded.clone(), "dcb", STANDARD.encode(&coded), Some("base64")),
        (b"as it is".to_vec(), "identity", "as it is".to_owned(), None),
    ] {
        let mut one = record(0);
        let response = one.response.as_mut().unwrap();
        response.headers.push(Field::new("Content-Encoding", coding));
        response.set_body(body);
        let mut out = Vec::new();
        let mut writer = sink(SinkFormat::Har, &mut out);
        writer.write(&one).unwrap();
        writer.finish().unwrap();
        let har: serde_json::Value = serde_json::from_slice(&out).unwrap();
        let content = &har["log"]["entries"][0]["response"]["content"];
        assert_eq!((content["text"].as_str(), content["encoding"].as_str()), (Some(text.as_str()), encoding));
    }
}

/// Recordings are written by others, and the output may go to a terminal. Those of GoReplay and curl have to keep bytes as they are.
#[test]
fn no_format_of_text_drives_a_terminal() {
    let hostile = "a\u{9b}31m\u{202e}b\u{7f}\u{85}";
    let mut one = record(0);
    one.request.headers.push(Field::new("User-Agent", hostile));
    one.request.headers.push(Field::new("Content-Type", hostile));
    one.request.target = "/a\u{202e}b".into();
    one.request.body = format!("{hostile}\u{1b}]0;title\u{7}").into_bytes();
    let response = one.response.as_mut().unwrap();
    response.headers.push(Field::new("Server", hostile));
    response.set_body(hostile.into());
    let as_they_are = [SinkFormat::Gor, SinkFormat::Curl];
    for (format, name, _) in SinkFormat::ALL.into_iter().filter(|(format, ..)| !as_they_are.contains(format))
    {
        let mut out = Vec::new();
        let mut writer = sink(format, &mut out);
        writer.write(&one).unwrap();
        writer.finish().unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(text.contains("31m"), "{name}: {text}");
        assert_eq!(
            text.chars().find(|c| *c != '\r' && squall_plan::printable::is_unsafe(*c)),
            None,
            "{name}: {text:?}"
        );
    }
}

/// A `curl` that writes each argument and its standard input with a NUL behind, and what a command that ran would leave.
const FAKE_CURL: &str = r#"
curl() {
    for word in "$@"; do printf '%s\000' "$word"; done
    case " $* " in *" @- "*) cat; printf '\000' ;; esac
}
. "$1"
"#;

fn run_by(shell: &str, script: &std::path::Path) -> Option<Vec<u8>> {
    let words: Vec<&str> = shell.split(' ').collect();
    let mut command = std::process::Command::new(words[0]);
    command.args(&words[1..]).args(["-c", FAKE_CURL, "test"]).arg(script);
    let output = command.current_dir(script.parent().unwrap()).output().ok()?;
    assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{shell}");
    Some(output.stdout)
}

#[test]
fn no_shell_runs_what_a_recording_says() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("commands.sh");
    let run = "touch ran";
    let words: Vec<String> = [
        "`R`",
        "$(R)",
        "';R;'",
        "\"$(R)\"",
        "\\';R;#",
        "a;R",
        "a&R",
        "$'\\'';R;'",
        "!R",
        "a\\",
        "%s\\n",
        "é",
    ]
    .iter()
    .map(|word| word.replace('R', run))
    .collect();
    let bodies: Vec<Vec<u8>> = (0..=255_u8)
        .map(|byte| vec![byte, b'\'', byte, b'\n', b'\\', byte])
        .chain(words.iter().map(|word| word.clone().into_bytes()))
        .chain([Vec::new(), vec![b'x'; 200_000], b"\r\n\r\n".to_vec()])
        .collect();
    let (mut expected, mut out) = (Vec::new(), Vec::new());
    let mut writer = sink(SinkFormat::Curl, &mut out);
    for (nth, body) in bodies.iter().enumerate() {
        let mut one = record(0);
        let word = &words[nth % words.len()];
        one.request.method = if nth % 2 == 0 { "`id`|$x&!".to_owned() } else { "PUT".to_owned() };
        one.request.target = format!("/{}[1-3]{{a,b}}", word.replace(' ', "+"));
        one.request.headers = vec![Field::new("User-Agent", word.as_str()), Field::new("X-Empty", "")];
        one.request.body.clone_from(body);
        writer.write(&one).unwrap();
        let [agent, empty] = [format!("User-Agent: {word}"), "X-Empty;".to_owned()];
        let url = one.request.url();
        for word in ["-X", &one.request.method, "-g", &url, "-H", &agent, "-H", &empty] {
            expected.extend([word.as_bytes(), b"\0"].concat());
        }
        let option = if curl::can_be_argument(body) { &b"--data-raw\0"[..] } else { b"--data-binary\0@-\0" };
        if !body.is_empty() {
            expected.extend([option, body, b"\0"].concat());
        }
    }
    writer.finish().unwrap();
    std::fs::write(&script, &out).unwrap();
    for shell in ["sh", "bash", "bash --posix", "dash", "busybox sh", "zsh -f"] {
        let Some(seen) = run_by(shell, &script) else { continue };
        let at = seen.iter().zip(&expected).take_while(|(one, other)| one == other).count();
        assert!(seen == expected, "{shell} differs at byte {at}");
        assert!(!folder.path().join("ran").exists(), "{shell} ran it");
    }
    let read: Vec<Vec<u8>> = good(Format::Curl, out).into_iter().map(|record| record.request.body).collect();
    assert!(read == bodies);
}

#[test]
fn a_record_that_would_break_out_of_its_line_is_refused_by_every_writer() {
    type Spoil = fn(&mut Request);
    let spoils: [(&str, Spoil); 5] = [
        ("method", |request| request.method = "GET / HTTP/1.1\r\nX: y\r\n\r\nPUT".to_owned()),
        ("method", |request| request.method = String::new()),
        ("path", |request| request.target = "/ HTTP/1.1\r\nX: y".to_owned()),
        ("host", |request| request.authority = "a\nb".to_owned()),
        ("header", |request| request.headers.push(Field::new("a", "b\r\nc: d"))),
    ];
    for (_, name, _) in SinkFormat::ALL {
        let format = SinkFormat::ALL.iter().find(|one| one.1 == name).unwrap().0;
        for (what, spoil) in spoils {
            let mut one = record(0);
            spoil(&mut one.request);
            let error = sink(format, Vec::new()).write(&one).unwrap_err();
            assert!(error.to_string().contains(what), "{name}: {error}");
        }
    }
}
