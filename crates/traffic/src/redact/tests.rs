//! Where secrets are found, that no copy of them is left, and what stays as it is.

use std::io::Read;

use memchr::memmem;

use super::*;
use crate::Response;

/// A secret that no person types.
const SECRET: &str = "S3CRETvalue01";

fn redactor(rules: &str) -> Redactor {
    let mut own = Rules::default();
    own.read(rules).unwrap();
    Redactor::new(own)
}

fn record(target: &str, headers: &[(&str, &str)], body: &str, response: (&[(&str, &str)], &str)) -> Record {
    let fields =
        |pairs: &[(&str, &str)]| pairs.iter().map(|(name, value)| Field::new(*name, *value)).collect();
    let mut record = Record::default();
    record.request.target = target.into();
    record.request.headers = fields(headers);
    record.request.body = body.into();
    let mut answer = Response { status: 200, headers: fields(response.0), ..Response::default() };
    answer.set_body(response.1.into());
    record.response = Some(answer);
    record
}

/// All that a record says.
fn text(record: &Record) -> String {
    let response = record.response.as_ref().unwrap();
    let mut text = record.request.target.clone();
    for field in record.request.headers.iter().chain(&response.headers) {
        text += &format!("\n{}: {}", field.name, String::from_utf8_lossy(&field.value));
    }
    let bodies = [record.request.body.as_slice(), response.body.as_deref().unwrap_or_default()];
    bodies.iter().fold(text, |text, body| text + "\n" + &String::from_utf8_lossy(body))
}

fn redacted(rules: &str, mut record: Record) -> String {
    redactor(rules).redact(&mut record);
    text(&record)
}

const JSON: &[(&str, &str)] = &[("Content-Type", "application/json")];

#[test]
fn secrets_of_requests_are_found_by_their_places() {
    let s = SECRET;
    let json = |body: String| record("/", JSON, &body, (&[], ""));
    let untyped = |body: String| record("/", &[], &body, (&[], ""));
    let target = |target: String| record(&target, &[], "", (&[], ""));
    let header = |name: &str, value: String| record("/", &[(name, value.as_str())], "", (&[], ""));
    for record in [
        json(format!(r#"{{"jwt":"{s}"}}"#)),
        json(format!(r#"{{"passphrase":"{s}","n":1}}"#)),
        json(format!(r#"{{"credentials":{{"user":"u","word":"{s}"}}}}"#)),
        json(format!(r#"{{"credentials":["u","{s}"]}}"#)),
        json(format!(r#"{{"secret":{{"a":{{"b":["{s}"]}}}},"tokens":["x"]}}"#)),
        json(format!(r#"{{"query":"mutation {{ login(user: \"u\", password: \"{s}\") {{ id }} }}"}}"#)),
        json(format!(r#"{{"next":"https://x/a?token={s}&b=1"}}"#)),
        json(format!(r#"{{"inner":"{{\"password\":\"{s}\"}}"}}"#)),
        json(format!("{{\"a\":1}}\n{{\"pwd\":\"{s}\"}}\n")),
        untyped(format!("user=u&pass={s}")),
        untyped(format!("user[password]={s}")),
        untyped(format!("data=%7B%22password%22%3A%22{s}%22%7D")),
        untyped(format!("<Login><User>u</User><ns:Password>{s}</ns:Password></Login>")),
        untyped(format!("<login password='{s}'/>")),
        target(format!("/cb?code={s}&state=1")),
        target(format!("/a?sig={s}")),
        target(format!("/a?jwt={s}")),
        target(format!("/a?pass={s}#x")),
        target(format!("/a?next=%2Fb%3Ftoken%3D{s}%26c%3D1")),
        target(format!("/a?next=https%3A%2F%2Fx%2Fb%3Fnext%3D%252Fc%253Ftoken%253D{s}")),
        target(format!("/login;jsessionid={s}?x=1")),
        header("Authorization", format!("Bearer {s}")),
        header("Authorization", format!("Token token=\"{s}\"")),
        header("Authorization", s.to_owned()),
        header("X-CSRF-Token", s.to_owned()),
        header("Cookie", format!("a={s}; b=1")),
        header("Referer", format!("http://x/?token={s}")),
    ] {
        let before = text(&record);
        let after = redacted("", record);
        assert!(
            before.contains(s) && !after.contains(s) && after.contains(PLACEHOLDER),
            "{before} became {after}"
        );
    }
}

#[test]
fn secrets_of_responses_are_found_by_their_places() {
    let s = SECRET;
    let body = |body: String| record("/", &[], "", (&[], body.as_str()));
    let header = |name: &str, value: String| record("/", &[], "", (&[(name, value.as_str())], ""));
    for record in [
        body(format!("<form><input type=hidden name=\"authenticity_token\" value=\"{s}\"></form>")),
        body(format!("<html><meta name=\"csrf-token\" content=\"{s}\">")),
        body(format!("<script>window.csrfToken = '{s}';</script>")),
        body(format!("<script>var app = {{ csrf_token: \"{s}\" }}</script>")),
        body(format!("<a href=\"/reset?a=1&amp;token={s}\">reset</a>")),
        body(format!("<r><token>{s}</token></r>")),
        body(format!("{{\"data\":{{\"access_token\":\"{s}\"}}}}")),
        body(format!("{{\"html\":\"<input name='_csrf' value='{s}'>\"}}")),
        header("Location", format!("https://x/cb?code={s}")),
        header("Location", format!("https://x/cb#access_token={s}&x=1")),
        header("Location", format!("https://u:{s}@x/")),
        header("Set-Cookie", format!("sid={s}; Path=/")),
        header("X-CSRF-Token", s.to_owned()),
    ] {
        let before = text(&record);
        let after = redacted("", record);
        assert!(before.contains(s) && !after.contains(s), "{before} became {after}");
    }
}

#[test]
fn messages_of_websockets_lose_their_secrets() {
    use crate::{Peer, RecordedMessage};
    let message = |by, kind, text: String| RecordedMessage { at_ns: 1, by, kind, bytes: text.into_bytes() };
    let s = SECRET;
    let mut record = record("/", &[], "", (&[], ""));
    record.response.as_mut().unwrap().messages = vec![
        message(Peer::Client, RecordedKind::Text, format!(r#"{{"type":"auth","token":"{s}"}}"#)),
        message(Peer::Client, RecordedKind::Text, format!(r#"42["login",{{"password":"{s}"}}]"#)),
        message(Peer::Server, RecordedKind::Text, format!("welcome {s}, you are in")),
        message(Peer::Server, RecordedKind::Binary, format!("\0{s}\0")),
        message(Peer::Server, RecordedKind::Text, "[1,2]".to_owned()),
        message(
            Peer::Client,
            RecordedKind::Text,
            "CONNECT\nlogin:bob\npasscode:st0mp-passc0de\n\n\0".to_owned(),
        ),
        message(
            Peer::Client,
            RecordedKind::Text,
            format!("SEND\r\nauth-token:{s}\r\n\r\n{{\"password\":\"other-passw0rd\"}}\0"),
        ),
    ];
    let redactor = redactor("");
    redactor.redact(&mut record);
    let said: Vec<_> = record.response.unwrap().messages.into_iter().map(|message| message.bytes).collect();
    assert!(said.iter().all(|bytes| memmem::find(bytes, s.as_bytes()).is_none()), "{said:?}");
    assert!(said[1].starts_with(br#"42["login",{"password":"redacted-"#), "{said:?}");
    assert_eq!(said[4], b"[1,2]");
    let stomp = String::from_utf8_lossy(&said[5]);
    assert!(
        stomp.starts_with("CONNECT\nlogin:bob\npasscode:redacted-") && stomp.ends_with("\n\n\0"),
        "{stomp}"
    );
    let stomp = String::from_utf8_lossy(&said[6]);
    assert!(stomp.contains("\r\n\r\n{\"password\":\"redacted-"), "{stomp}");
}

#[test]
fn small_secrets_are_replaced_in_place() {
    for (body, expected) in [
        (
            r#"{"pin":1234,"otp":"123","n":1234}"#,
            vec![r#""pin":"redacted-number-"#, r#""otp":"redacted-"#, r#""n":1234"#],
        ),
        (r#"{"card":"4111 1111 1111 1111","cvv":"123","ssn":"078-05-1120"}"#, vec![r#"{"card":"redacted-"#]),
        (
            r#"{"max_tokens":100,"password":null,"key":"created_at","author":"x"}"#,
            vec![r#"{"max_tokens":100,"password":null,"key":"created_at","author":"x"}"#],
        ),
    ] {
        let after = redacted("", record("/", JSON, body, (&[], "")));
        assert!(expected.iter().all(|part| after.contains(part)), "{body} became {after}");
        assert!(
            !after.contains("4111 1111") && !after.contains(r#"":"123""#) && !after.contains("05-1120"),
            "{after}"
        );
    }
}

#[test]
fn a_value_is_replaced_wherever_it_occurs() {
    let token = "toke/n+1==";
    let page = record(
        "/",
        &[],
        "",
        (&[], "<p data-x='toke&#x2F;n&#43;1==' title='7'><input name=csrf_token value='toke/n+1=='>"),
    );
    let form = record(
        "/toke%2Fn%2B1%3D%3D",
        &[("X-Own", token)],
        "x=toke%2Fn%2B1%3D%3D",
        (&[], r#"{"x":"toke\/n+1=="}"#),
    );
    let (early, redactor) = (record(&format!("/{token}"), &[], "", (&[], token)), redactor(""));
    let mut records = [early, page, form];
    records.iter_mut().for_each(|record| {
        redactor.redact(record);
    });
    assert!(text(&records[0]).contains(token), "nothing said yet that it is a secret");
    assert!(redactor.sweep(&mut records[0]) && !redactor.sweep(&mut records[1]));
    let all: String = records.iter().map(text).collect();
    assert!(!all.contains("n+1") && !all.contains("n%2B1") && !all.contains("n&#43;1"), "{all}");
    let placeholder = records[0].request.target[1..].trim_end_matches('=');
    assert_eq!(all.matches(placeholder).count(), 8, "the same everywhere: {all}");
}

#[test]
fn a_cookie_and_the_header_that_repeats_it_decoded_stay_apart() {
    let given = record("/", &[], "", (&[("Set-Cookie", "XSRF-TOKEN=eyJpdiI6Ik1%3D; Path=/")], ""));
    let sent = record(
        "/",
        &[("Cookie", "XSRF-TOKEN=eyJpdiI6Ik1%3D"), ("X-XSRF-TOKEN", "eyJpdiI6Ik1=")],
        "",
        (&[], ""),
    );
    let redactor = redactor("");
    let texts = [given, sent].map(|mut record| {
        redactor.redact(&mut record);
        text(&record)
    });
    let placeholder = &texts[0][texts[0].find(PLACEHOLDER).unwrap()..][..PLACEHOLDER.len() + 16];
    assert!(texts[0].contains(&format!("XSRF-TOKEN={placeholder}%3D; Path=/")), "{texts:?}");
    assert!(
        texts[1].contains(&format!("Cookie: XSRF-TOKEN={placeholder}%3D\nX-XSRF-TOKEN: {placeholder}=")),
        "{texts:?}"
    );
}

#[test]
fn tokens_keep_their_claims_and_lose_their_signature() {
    let token = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJ1IiwiZXhwIjoxNzE0NTYxMjAwfQ.c2lnbmF0dXJl";
    let given = format!(r#"{{"data":"{token}"}}"#);
    let after =
        redacted("", record("/", &[("Authorization", &format!("Bearer {token}"))], "", (JSON, &given)));
    assert_eq!(
        after.matches("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJ1IiwiZXhwIjoxNzE0NTYxMjAwfQ.redacted-").count(),
        2,
        "{after}"
    );
    assert!(!after.contains("c2lnbmF0dXJl"));
}

#[test]
fn own_rules_add_and_spare() {
    let body = r#"{"order":{"ref":"A-1"},"theme":"dark-mode","token":"abcdefgh1","note":"acct-123456"}"#;
    let rules = "redact /order/*\nredact acct-(\\d+)\nredact nick\nkeep token";
    let after = redacted(rules, record("/?nick=bob", JSON, body, (&[], "")));
    assert!(
        after.contains(r#""ref":"redacted-"#)
            && after.contains("acct-redacted-")
            && after.contains("?nick=redacted-"),
        "{after}"
    );
    assert!(after.contains(r#""theme":"dark-mode","token":"abcdefgh1""#), "{after}");
}

#[test]
fn what_holds_no_secret_stays_byte_for_byte() {
    for (target, headers, body, response) in [
        (
            "/a?page=1&q=a+b&sort_key=x",
            &[("Content-Type", "text/plain"), ("Accept", "*/*")][..],
            "é <b> {\"",
            "<html><p>key: \"x\"</p>",
        ),
        ("/a//b?x#f", &[("Cookie", "a=1; lang=en")], "a=1&b", "{\"password\":\"\",\"token\":null"),
        ("*", &[("Content-Type", "multipart/form-data; boundary=x")], "--x\r\n\r\n1\r\n--x--", "\u{0}\u{1}"),
    ] {
        let record = record(target, headers, body, (&[], response));
        let mut after = record.clone();
        assert!(!redactor("").redact(&mut after));
        assert_eq!(after, record, "{target}");
    }
}

#[test]
fn redacting_twice_changes_nothing_more() {
    let body = format!("user=u&password={SECRET}&pin=1234");
    let mut record = record(
        &format!("/?token={SECRET}"),
        &[("Cookie", "sid=abcdefgh1")],
        &body,
        (JSON, r#"{"otp":1234}"#),
    );
    redactor("").redact(&mut record);
    let once = record.clone();
    redactor("").redact(&mut record);
    assert_eq!(record, once);
}

#[test]
fn secrets_are_found_below_codings_and_in_parts() {
    let json = br#"{"password":"S3CRET","q":1}"#;
    let mut packed = Vec::new();
    flate2::read::GzEncoder::new(&json[..], flate2::Compression::fast()).read_to_end(&mut packed).unwrap();
    let form = b"--Xy\r\nContent-Disposition: form-data; name=\"q\"\r\n\r\n1\r\n--Xy\r\nContent-Disposition: form-data; \
        name=\"password\"\r\n\r\nS3CRET\r\n--\r\nS3CRET\xff\r\n--Xy--\r\n";
    let redacted = |kind: &str, coding: &str, body: &[u8]| {
        let mut record = record("/", &[("Content-Type", kind), ("Content-Encoding", coding)], "", (&[], ""));
        record.request.body = body.to_vec();
        let is_opaque = redactor("").redact(&mut record);
        (record.request.body.clone(), record.request.header("content-encoding").is_some(), is_opaque)
    };
    let (body, is_coded, _) = redacted("application/json", "gzip", &packed);
    assert!(body.starts_with(br#"{"password":"redacted-"#) && !is_coded, "{body:?}");
    let (body, ..) = redacted("multipart/form-data; Boundary=\"Xy\"", "identity", form);
    assert!(memmem::find(&body, b"S3CRET").is_none() && body.ends_with(b"\r\n--Xy--\r\n"), "{body:?}");
    assert!(memmem::find(&body, b"\r\n\r\n1\r\n").is_some(), "{body:?}");
    // What cannot be looked into is left out, and that is said.
    assert_eq!(redacted("application/json", "unknown", b"\x01"), (Vec::new(), true, true));
}

#[test]
fn a_spooled_body_is_searched_by_name_at_its_ends_and_by_value_everywhere() {
    let file = tempfile::tempfile().unwrap();
    let mut middle = vec![b'.'; 5 << 20];
    // At the borders of the windows, too.
    for at in
        (0..40).map(|nth| nth * (128 << 10) + nth * 3).chain([(2 << 20) - 6, (2 << 20) - (128 << 10) - 6])
    {
        middle[at..at + SECRET.len()].copy_from_slice(SECRET.as_bytes());
    }
    std::os::unix::fs::FileExt::write_all_at(&file, &middle, 0).unwrap();
    let redactor = redactor("");
    let part = |name: &str| format!("--B\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n");
    let before = format!("{}{SECRET}\r\n{}x", part("csrf_token"), part("file"));
    let behind = format!("y\r\n{}0ther-SECRET77\r\n--B--\r\n", part("password"));
    let content_type = [("Content-Type", "multipart/form-data; boundary=B")];
    let mut record = record("/", &content_type, &format!("{before}{behind}"), (&[], ""));
    let spooled = crate::Spooled::plain(std::sync::Arc::new(file), 0, middle.len() as u64, before.len());
    record.request.spooled = Some(spooled);
    redactor.redact(&mut record);
    let body = record.into_loaded().unwrap().request.body;
    let has = |text: &str| memmem::find(&body, text.as_bytes()).is_some();
    assert!(!has(SECRET) && !has("0ther-SECRET77"));
    assert!(has("x.") || has("xredacted-"), "the middle keeps its place");
    assert!(has(".y\r\n--B"), "the end keeps its place");
    assert_eq!(memmem::find_iter(&body, PLACEHOLDER.as_bytes()).count(), 42 + 2);
}

#[test]
fn a_spooled_body_that_cannot_be_searched_is_left_out() {
    let redactor = redactor("");
    let mut record = record("/", &[("Content-Encoding", "gzip")], "ab", (&[], ""));
    let file = std::sync::Arc::new(tempfile::tempfile().unwrap());
    record.request.spooled = Some(crate::Spooled::plain(file, 0, 1000, 1));
    redactor.redact(&mut record);
    let Request { body, spooled, lost_body_bytes, .. } = record.request;
    assert_eq!((body, spooled, lost_body_bytes), (Vec::new(), None, 1002));
}
