//! Commands as they are in the wild, and the requests that curl sends for them.

use super::super::files::Files;
use super::super::tests::{all, good};
use super::super::{Format, ReadOptions, Source, open_bytes};
use super::*;
use crate::input::of_bytes;

fn one(command: &str) -> Request {
    let records = good(Format::Curl, command.into());
    let [record] = records.as_slice() else { panic!("{command}: {records:?}") };
    record.request.clone()
}

/// Method, URL, and body; then header fields that must be there.
fn check(command: &str, method: &str, url: &str, body: &str, fields: &[(&str, &str)]) {
    let request = one(command);
    let found =
        (request.method.as_str(), request.url(), String::from_utf8_lossy(&request.body).replace("\r\n", "|"));
    assert_eq!(found, (method, url.to_owned(), body.to_owned()), "{command}");
    for (name, value) in fields {
        let found = request.header(name).map(String::from_utf8_lossy);
        assert_eq!(found.as_deref().unwrap_or("(none)"), *value, "{command}: {name}");
    }
}

/// A command; method, URL and body of its request; header fields that it has.
type Case = (&'static str, &'static str, &'static str, &'static str, &'static [(&'static str, &'static str)]);

const FORM: &str = "application/x-www-form-urlencoded";
const JSON: &str = "application/json";

#[test]
fn commands_are_the_requests_that_curl_sends() {
    let cases: &[Case] = &[
        ("curl x", "GET", "http://x/", "", &[]),
        ("$ curl -sSL https://x/a?b=c -o /dev/null", "GET", "https://x/a?b=c", "", &[]),
        ("curl --sil --request-tar /y x", "GET", "http://x/y", "", &[]),
        ("curl -I x", "HEAD", "http://x/", "", &[]),
        ("curl x -d a=1 -d b=2", "POST", "http://x/", "a=1&b=2", &[("content-type", FORM)]),
        ("curl -G x?q=0 -d a=1 --data-urlencode 'b=c d'", "GET", "http://x/?q=0&a=1&b=c%20d", "", &[]),
        ("curl x --url-query 'q=a b' --url-query +r=%20", "GET", "http://x/?q=a%20b&r=%20", "", &[]),
        (
            "curl x --json '{\"a\":' --json '1}'",
            "POST",
            "http://x/",
            "{\"a\":1}",
            &[("content-type", JSON), ("accept", JSON)],
        ),
        (
            "curl x --json {} -H 'content-type: a/b' -H accept:",
            "POST",
            "http://x/",
            "{}",
            &[("content-type", "a/b"), ("accept", "(none)")],
        ),
        ("curl x --data-raw @a -XPUT", "PUT", "http://x/", "@a", &[]),
        ("curl x -u me", "GET", "http://x/", "", &[("authorization", "Basic bWU6")]),
        ("curl x -u me:pw --digest", "GET", "http://x/", "", &[("authorization", "(none)")]),
        (
            "curl x -r 0-9 -e 'r;auto' -A '' -b a=1 -H 'X;'",
            "GET",
            "http://x/",
            "",
            &[("range", "bytes=0-9"), ("referer", "r"), ("user-agent", "(none)"), ("x", "")],
        ),
        ("curl x/a --request-target '*' -X OPTIONS", "OPTIONS", "http://x*", "", &[]),
        (
            "curl ^\"https://x/?a=1^&b=^%^20^\" ^\n  -H ^\"a: ^\\^\"q^\\^\"^\" ^\n  --data-raw ^\"l1^\n\nl2^\"",
            "POST",
            "https://x/?a=1&b=%20",
            "l1\nl2",
            &[("a", "\"q\"")],
        ),
        (
            "curl 'https://x/' \\\n  --data-raw $'a=\\u0041\\'b' \\\n  --compressed",
            "POST",
            "https://x/",
            "a=A'b",
            &[("accept-encoding", "gzip, deflate, br")],
        ),
    ];
    for (command, method, url, body, fields) in cases {
        check(command, method, url, body, fields);
    }
}

#[test]
fn forms_become_multipart_bodies() {
    let part = |head: &str, content: &str| {
        format!("--squall-0f3a9c51d27e|Content-Disposition: form-data; {head}||{content}|")
    };
    for (flags, parts) in [
        ("-F a=1 -F 'b=x;y'", part("name=\"a\"", "1") + &part("name=\"b\"", "x;y")),
        ("-F 'a={};type=application/json'", part("name=\"a\"|Content-Type: application/json", "{}")),
        ("-F 'a=\"x;type=y\"'", part("name=\"a\"", "x;type=y")),
        ("--form-string 'a=@b;type=c'", part("name=\"a\"", "@b;type=c")),
    ] {
        let request = one(&format!("curl x -H 'Content-Type: multipart/form-data' {flags}"));
        let body = String::from_utf8(request.body).unwrap().replace("\r\n", "|");
        assert_eq!(body, parts + "--squall-0f3a9c51d27e--|", "{flags}");
        assert_eq!(request.method, "POST");
        assert_eq!(request.headers.len(), 1, "{flags}");
    }
}

#[test]
fn several_urls_and_commands_are_several_requests() {
    let text = "curl x/1 x/2 -d a --next -I x/3\ncurl x/4 && curl --url x/5 | jq .x\n";
    let records = good(Format::Curl, text.into());
    let found: Vec<String> =
        records.iter().map(|record| format!("{} {}", record.request.method, record.request.target)).collect();
    assert_eq!(found, ["POST /1", "POST /2", "HEAD /3", "GET /4", "GET /5"]);
    assert!(records.windows(2).all(|pair| pair[0].time_ns < pair[1].time_ns));
}

#[test]
fn bodies_come_from_here_documents_here_strings_and_pipes() {
    let cases: &[Case] = &[
        (
            "curl -d @- x <<EOF\n{\"a\": 1,\n \"b\": \"it's\"}\nEOF",
            "POST",
            "http://x/",
            "{\"a\": 1, \"b\": \"it's\"}",
            &[("content-type", FORM)],
        ),
        ("curl --json @- x <<'EOF'\n{\"a\":\"$b\"}\nEOF", "POST", "http://x/", "{\"a\":\"$b\"}\n", &[]),
        ("curl --data-binary @- \\\n  x <<-END\n\ta\n\tb\n\tEND", "POST", "http://x/", "a\nb\n", &[]),
        ("curl x/up/f -T - <<< 'a b'", "PUT", "http://x/up/f", "a b\n", &[]),
        ("curl x --data-urlencode n@- <<<'a b'", "POST", "http://x/", "n=a%20b%0A", &[]),
        ("cat <<EOF | curl -XPUT x -d @-\na=1\nEOF", "PUT", "http://x/", "a=1", &[]),
        ("echo '{}' | curl x --json @-", "POST", "http://x/", "{}\n", &[("content-type", JSON)]),
        ("echo -n a b | curl x --data-binary @-", "POST", "http://x/", "a b", &[]),
    ];
    for (command, method, url, body, fields) in cases {
        check(command, method, url, body, fields);
    }
}

#[test]
fn what_follows_a_here_document_is_read_by_itself() {
    let text = "curl -d @- x/1 <<EOF\ncurl x/no\nEOF\necho done\ncat <<EOF >f\ncurl x/no\nEOF\ncurl x/2 --digest -u a:b\n";
    let mut source = open_bytes(Format::Curl, text.into(), &ReadOptions::default()).unwrap();
    let targets: Vec<String> =
        std::iter::from_fn(|| source.next().unwrap()).map(|record| record.request.target).collect();
    assert_eq!(targets, ["/1", "/2"]);
    let noted: Vec<_> = source.notes().iter().map(|(text, count, _)| (text.to_owned(), count)).collect();
    let expected = [("`--digest`: answers a challenge of the server; sent without", 1), (NO_COMMAND, 1)];
    assert_eq!(noted, expected.map(|(text, count)| (text.to_owned(), count)));
}

#[test]
fn files_are_read_next_to_the_recording() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("f.txt"), "a=1\r\nb c\n").unwrap();
    std::fs::write(folder.path().join("h"), "X-A: 1\n\nX-B: 2\n").unwrap();
    let read = |flags: &str| {
        let files = Files::next_to(&folder.path().join("commands.sh"));
        let mut curl = Curl::new(of_bytes(format!("curl x/up/ {flags}").as_bytes()), files);
        curl.next().map(|record| record.unwrap().request)
    };
    for (flags, method, target, body) in [
        ("-d @f.txt", "POST", "/up/", "a=1b c"),
        ("--data-binary @f.txt", "POST", "/up/", "a=1\r\nb c\n"),
        ("--json @f.txt", "POST", "/up/", "a=1\r\nb c\n"),
        ("--data-urlencode n@f.txt", "POST", "/up/", "n=a%3D1%0D%0Ab%20c%0A"),
        ("-T f.txt", "PUT", "/up/f.txt", "a=1\r\nb c\n"),
        ("--url-query n@f.txt", "GET", "/up/?n=a%3D1%0D%0Ab%20c%0A", ""),
        ("--url-query @f.txt", "GET", "/up/?a%3D1%0D%0Ab%20c%0A", ""),
    ] {
        let request = read(flags).unwrap();
        let found =
            (request.method.as_str(), request.target.as_str(), String::from_utf8_lossy(&request.body));
        assert_eq!(found, (method, target, body.into()), "{flags}");
    }
    let form = String::from_utf8(read("-F 'f=@f.txt;filename=n'").unwrap().body).unwrap();
    assert!(
        form.contains("name=\"f\"; filename=\"n\"\r\nContent-Type: text/plain\r\n\r\na=1\r\nb c\n"),
        "{form}"
    );
    assert_eq!(read("-H @h").unwrap().header("x-b"), Some(&b"2"[..]));
    for (flags, reason) in [("-d @none", "cannot read the file"), ("-d @-", "standard input")] {
        assert!(read(flags).unwrap_err().reason.contains(reason), "{flags}");
    }
}

#[test]
fn files_outside_the_folder_of_the_recording_are_not_read() {
    let above = tempfile::tempdir().unwrap();
    let folder = above.path().join("recordings");
    std::fs::create_dir_all(folder.join("bodies")).unwrap();
    std::fs::write(above.path().join("secret"), "s").unwrap();
    std::fs::write(folder.join("bodies/own"), "o").unwrap();
    std::os::unix::fs::symlink("../secret", folder.join("link")).unwrap();
    std::os::unix::fs::symlink("bodies/own", folder.join("inner")).unwrap();
    let read = |flags: &str| {
        let files = Files::next_to(&folder.join("commands.sh"));
        let text = format!("#!/bin/sh\ncurl x {flags}");
        Curl::new(of_bytes(text.as_bytes()), files).next().map(|record| record.unwrap().request)
    };
    let secret = above.path().join("secret").display().to_string();
    for flags in [
        "-d @../secret",
        "-d @bodies/../../secret",
        &format!("--data-binary @{secret}"),
        &format!("--json @{secret}"),
        &format!("--data-urlencode a@{secret}"),
        &format!("--url-query a@{secret}"),
        "-T ../secret",
        "-F 'f=@../secret'",
        "-F 'f=<../secret'",
        "-H @../secret",
        "-d @link",
    ] {
        let problem = read(flags).unwrap_err();
        assert!(problem.reason.contains("is outside the recording's folder"), "{flags}: {problem}");
        assert_eq!(problem.place.line, 2, "{flags}");
    }
    for flags in ["-d @bodies/own", "-d @./bodies/own", "-d @inner"] {
        assert_eq!(read(flags).unwrap().body, b"o", "{flags}");
    }
}

#[test]
fn what_is_not_understood_is_named() {
    for (command, reason) in [
        ("curl", "no URL"),
        ("curl x --frobnicate", "`--frobnicate` is not known"),
        ("curl x -sZq?", "`-?` is not known"),
        ("curl x -X", "`-X` has no value"),
        ("curl ftp://x", "ftp"),
        ("curl 'open", "a quote is not closed"),
        ("curl x -H nonsense", "`nonsense` is not a header"),
        ("curl x -F a", "has no `=`"),
        ("curl x -d @f", "cannot be read from here"),
    ] {
        let (_, problems) = all(Format::Curl, format!("{command}\ncurl http://ok").into());
        assert!(problems.iter().any(|problem| problem.reason.contains(reason)), "{command}: {problems:?}");
    }
}

#[test]
fn what_is_left_out_is_noted() {
    for (command, note) in [
        ("#!/bin/sh\nset -e\ncurl x", "lines that are no curl command left out"),
        ("curl -k x", "`-k`: not recorded"),
        ("curl -u a:b --ntlm x", "`--ntlm`: answers a challenge"),
        ("curl -H \"A: $TOKEN\" x", "shell variables"),
        ("curl wss://h/s x", "WebSocket connections to h"),
        ("curl -K conf x", "`-K`: sent without"),
        ("curl 'x/{a,b}'", "sent as they are written"),
    ] {
        let mut curl = Curl::new(of_bytes(command.as_bytes()), Files::default());
        while let Ok(Some(_)) = curl.next() {}
        assert!(
            curl.notes().iter().any(|(text, count, _)| text.contains(note) && count > 0),
            "{command}: {:?}",
            curl.notes()
        );
    }
}
