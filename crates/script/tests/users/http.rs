//! `k6/http`.

use squall_plan::Body;
use squall_script::{Outcome, Reply, ReplyFailure, Request, Runtime};

use crate::drive::{iterate, iterate_with, reply};

fn header<'a>(request: &'a Request, name: &str) -> &'a str {
    let found = request.spec.plan.headers.iter().find(|field| field.name.eq_ignore_ascii_case(name));
    found.map_or("", |field| &field.value)
}

fn body(request: &Request) -> String {
    match &request.spec.plan.body {
        Body::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        Body::Empty => String::new(),
        Body::File { path, .. } => path.display().to_string(),
    }
}

fn script(body: &str) -> String {
    format!(
        "import http from 'k6/http'; import {{ check }} from 'k6';\nexport default function () {{ {body} }}"
    )
}

#[test]
fn verbs_send_what_they_are_given() {
    let mut sent = Vec::new();
    let source = script(
        "http.get('http://t/a', { headers: { 'X-A': '1' } });
         http.post('http://t/b', 'text');
         http.put('http://t/c', { z: 'a b', a: [1, 2] });
         http.del('http://t/d', null, { tags: { name: 'D' } });
         http.request('patch', 'http://t/e', new Uint8Array([65, 66]).buffer);
         http.head('http://t/f');
         http.options('http://t/g', 'o');
         http.get(http.url`http://t/h/${7}`);",
    );
    let run = iterate(&source, 1, |request| {
        sent.push(format!(
            "{} {} {} {}",
            request.spec.plan.method,
            request.spec.name,
            header(request, "content-type"),
            body(request)
        ));
        reply(200, &[], "")
    });
    assert_eq!(run.outcome, Outcome::Done(None));
    assert_eq!(
        sent,
        [
            "GET http://t/a  ",
            "POST http://t/b  text",
            "PUT http://t/c application/x-www-form-urlencoded a=1&a=2&z=a+b",
            "DELETE D  ",
            "PATCH http://t/e  AB",
            "HEAD http://t/f  ",
            "OPTIONS http://t/g  o",
            "GET http://t/h/${}  ",
        ]
    );
}

#[test]
fn a_response_has_the_url_that_was_given() {
    let source = script(
        "const r = http.get('http://T:80?a=b c'), s = http.get('http://u:secret@t'), t = http.get('http://t/old');
         console.log(r.url, r.request.url, s.url, t.url);",
    );
    let run = iterate(&source, 1, |request| match request.spec.plan.url.path() {
        "/old" => reply(302, &[("Location", "/new")], ""),
        _ => reply(200, &[], ""),
    });
    assert_eq!(run.outcome, Outcome::Done(None));
    assert_eq!(run.said.trim_end(), "http://T:80?a=b c http://T:80?a=b c http://****:****@t/ http://t/new");
}

#[test]
fn a_response_has_the_request_that_was_asked_for() {
    let source = script(
        "const r = http.post('http://u:p@t/old', { a: 1 }, { headers: { 'x-own': '2' }, cookies: { c: '3' } }), q = r.request;
         console.log(r.url, q.method, q.url, q.body, Object.keys(q.headers).sort(), q.cookies.c[0].value);",
    );
    let run = iterate(&source, 1, |request| match request.spec.plan.url.path() {
        "/old" => reply(303, &[("Location", "/new")], ""),
        _ => reply(200, &[], ""),
    });
    assert_eq!(run.seen.requests, ["POST http://t/old", "GET http://t/new"]);
    let expected = "http://t/new POST http://****:****@t/old a=1 [ \"Content-Type\", \"Cookie\", \"User-Agent\", \"X-Own\" ] 3";
    assert_eq!(run.said.trim_end(), expected);
}

#[test]
fn params_that_cannot_be_used_fail_their_request_alone() {
    for params in
        ["{ timeout: 'soon' }", "{ responseType: 'xml' }", "{ tags: { a: {} } }", "{ responseCallback: 5 }"]
    {
        let calls = format!(
            "const r = http.get('http://t/', {params});
             console.log(r.status, r.error_code, r.url === '', r.body, r.timings.duration, r.request.method === '');
             try {{ http.get('http://t/', Object.assign({params}, {{ throw: true }})); }} catch (e) {{ console.log('thrown'); }}"
        );
        let throwing = Runtime { throws: true, ..Runtime::default() };
        let run = iterate_with(&script(&calls), 1, throwing, |_| panic!("nothing is sent: {params}"));
        assert!(matches!(run.outcome, Outcome::Failed(_)), "{params}: {:?}", run.outcome);
        let run = iterate(&script(&calls), 1, |_| panic!("nothing is sent: {params}"));
        assert_eq!(run.outcome, Outcome::Done(None), "{params}");
        let lines: Vec<&str> = run.said.lines().collect();
        let [first, seen, second] = lines[..] else { panic!("{params}: {}", run.said) };
        assert!([first, second].iter().all(|line| line.contains("Request Failed")), "{params}: {}", run.said);
        assert_eq!(seen, "0 0 true null 0 true", "{params}");
    }
}

#[test]
fn a_body_that_cannot_be_sent_fails_its_request_alone() {
    for call in [
        "http.post('http://t/', 5)",
        "http.put('http://t/', [1])",
        "http.post('http://t/', 'x', { compression: 'lz' })",
    ] {
        let source = script(&format!("const r = {call}; console.log(r.status, r.error !== '');"));
        let run = iterate(&source, 1, |_| panic!("nothing is sent: {call}"));
        assert_eq!(run.outcome, Outcome::Done(None), "{call}");
        assert!(
            run.said.contains("Request Failed") && run.said.ends_with("0 true\n"),
            "{call}: {}",
            run.said
        );
    }
}

#[test]
fn a_response_has_k6s_fields() {
    let source = script(
        "const r = http.get('http://t/');
         console.log(r.status, r.status_text, r.body, r.headers['Content-Type'], r.headers['X-Twice'], r.json().a, r.json('b.#.c'));
         console.log(r.url, r.proto, r.timings.waiting, r.timings.duration, r.error, r.error_code, r.cookies.k[0].value, r.request.method);
         console.log(JSON.stringify(r).length > 100, r.headers === r.headers);",
    );
    let run = iterate(&source, 1, |_| {
        let fields = [
            ("content-type", "application/json"),
            ("x-twice", "1"),
            ("X-Twice", "2"),
            ("Set-Cookie", "k=v; Path=/"),
        ];
        reply(200, &fields, r#"{"a": 1, "b": [{"c": 2}, {"c": 3}]}"#)
    });
    assert_eq!(
        run.said,
        "200 200 OK {\"a\": 1, \"b\": [{\"c\": 2}, {\"c\": 3}]} application/json 1, 2 1 [ 2, 3 ]\n\
         http://t/ HTTP/1.1 1 1  0 v GET\ntrue true\n"
    );
}

#[test]
fn redirects_are_followed_as_go_does() {
    let source = script(
        "const r = http.post('http://t/start', 'body', { headers: { 'Content-Type': 'text/plain' } });
         console.log(r.status, r.url);
         console.log(http.get('http://t/start', { redirects: 0 }).status);",
    );
    let run = iterate(&source, 1, |request| match request.spec.plan.url.path() {
        "/start" => reply(302, &[("Location", "/end"), ("Set-Cookie", "seen=1")], ""),
        _ => reply(if header(request, "cookie") == "seen=1" { 200 } else { 400 }, &[], ""),
    });
    assert_eq!(run.said, "200 http://t/end\n302\n");
    assert_eq!(run.seen.requests, ["POST http://t/start", "GET http://t/end", "GET http://t/start"]);
    assert_eq!(run.seen.http[0]["expected_response"], "true");
}

#[test]
fn redirects_share_the_time_of_the_request_that_led_to_them() {
    let mut timeouts_ms = Vec::new();
    let source = script("http.get('http://t/1', { timeout: 500 });");
    iterate(&source, 1, |request| {
        timeouts_ms.push(request.timeout.as_millis());
        let mut reply = match request.spec.plan.url.path() {
            "/1" => reply(302, &[("Location", "/2")], ""),
            "/2" => reply(302, &[("Location", "/3")], ""),
            _ => reply(200, &[], ""),
        };
        reply.timing.receiving_ns = 200_000_000;
        reply
    });
    assert_eq!(timeouts_ms, [500, 300, 100]);
}

#[test]
fn redirects_that_are_not_followed_are_reported_where_nobody_asked_for_it() {
    let again = |request: &Request| match request.spec.plan.url.path() {
        "/nowhere" => reply(302, &[("Location", "")], ""),
        _ => reply(302, &[("Location", "/again")], ""),
    };
    let source = script("console.log(http.get('http://t/').status, http.get('http://t/nowhere').status);");
    for (max_redirects, count, warnings) in [(None, 12, 1), (Some(3), 5, 0)] {
        let run = iterate_with(&source, 1, Runtime { max_redirects, ..Runtime::default() }, again);
        assert_eq!(run.seen.requests.len(), count);
        assert_eq!(run.said.matches("Stopped after 11 redirects").count(), warnings, "{}", run.said);
        assert!(run.said.ends_with("302 302\n"), "{}", run.said);
    }
}

#[test]
fn cookies_last_for_an_iteration() {
    let source = script(
        "const jar = http.cookieJar(); jar.set('http://t/', 'mine', '1');
        http.get('http://t/', { cookies: { extra: 'e' } });
        console.log(jar.cookiesForURL('http://t/').set[0]);
        http.get('http://t/');",
    );
    let mut sent = Vec::new();
    let run = iterate(&source, 2, |request| {
        sent.push(header(request, "cookie").to_owned());
        reply(200, &[("Set-Cookie", "set=by-server")], "")
    });
    assert_eq!(
        sent,
        ["extra=e; mine=1", "mine=1; set=by-server", "extra=e; mine=1", "mine=1; set=by-server"]
    );
    assert_eq!(run.said, "by-server\nby-server\n");
}

#[test]
fn the_jar_of_the_user_may_be_named_in_params() {
    let source = script(
        "const jar = http.cookieJar(); jar.set('http://t/', 'mine', '1');
        http.get('http://t/', { jar });
        console.log(jar.cookiesForURL('http://t/').set[0]);",
    );
    let mut sent = Vec::new();
    let run = iterate(&source, 1, |request| {
        sent.push(header(request, "cookie").to_owned());
        reply(200, &[("Set-Cookie", "set=by-server")], "")
    });
    assert_eq!((sent, run.said.as_str()), (vec!["mine=1".to_owned()], "by-server\n"));
}

#[test]
fn cookies_of_headers_params_and_jar_go_together() {
    let source = script(
        "http.cookieJar().set('http://t/', 'j', '1');
        http.get('http://t/old', { headers: { cookie: 'h=0' }, cookies: { p: '2', j: { value: '3', replace: true } } });",
    );
    let mut sent = Vec::new();
    iterate(&source, 1, |request| {
        sent.push(header(request, "cookie").to_owned());
        match request.spec.plan.url.path() {
            "/old" => reply(302, &[("Location", "/new"), ("Set-Cookie", "s=4; Path=/")], ""),
            _ => reply(200, &[], ""),
        }
    });
    assert_eq!(sent, ["h=0; p=2; j=3", "p=2; j=3; s=4"]);
}

#[test]
fn failures_are_responses_or_exceptions() {
    let source = script(
        "const r = http.get('http://t/'); console.log(r.status, r.error_code, r.error, r.body);
        http.get('nonsense');
        try { http.get('http://t/', { throw: true }); } catch (e) { console.log('caught', e.message); }",
    );
    let failure = ReplyFailure { code: 1212, text: "dial: connection refused".to_owned() };
    let run = iterate(&source, 1, |_| Reply { failure: Some(failure.clone()), ..Reply::default() });
    assert_eq!(run.outcome, Outcome::Done(None), "{}", run.said);
    assert!(run.said.contains("0 1212 dial: connection refused null\n"), "{}", run.said);
    assert!(run.said.contains("caught Get \"http://t/\": dial: connection refused\n"), "{}", run.said);
    assert_eq!(run.seen.http[0]["error_code"], "1212");
}

#[test]
fn a_path_leads_nowhere_in_a_body_that_is_no_json() {
    let source = script(
        "const r = http.get('http://t/'); console.log(r.json('a.b'));
        try { r.json(); } catch (e) { console.log(e.message.slice(0, 17)); }
        try { http.get('http://t/', { responseType: 'none' }).json('a'); } catch (e) { console.log(e.message.slice(0, 16)); }",
    );
    let run = iterate(&source, 1, |_| reply(502, &[], "<html>"));
    assert_eq!(run.said, "undefined\ncannot parse json\nthe body is null\n");
}

#[test]
fn requests_without_a_scheme_of_http_are_counted_as_failed() {
    let source = script(
        "for (const url of ['undefined/login', 'ftp://t/', 'http://[::1', undefined, 5]) { const r = http.get(url); console.log(r.status, r.error_code); }",
    );
    let run = iterate(&source, 1, |_| panic!("nothing is sent"));
    let codes: Vec<&str> = run.said.lines().filter(|line| line.starts_with("0 ")).collect();
    assert_eq!(codes, ["0 1000", "0 1000", "0 1020", "0 1020", "0 1020"], "{}", run.said);
    let names: Vec<&str> = run.seen.http.iter().map(|tags| tags["name"].as_str()).collect();
    assert_eq!(names, ["undefined/login", "ftp://t/"]);
    assert_eq!(run.seen.http[0]["error"], "unsupported protocol scheme \"\"");
}

#[test]
fn a_request_that_no_transport_takes_fails_as_in_k6() {
    let refused = |url: &str, why: &str, code: u16| (url.to_owned(), why.to_owned(), code);
    for (url, why, code) in [
        refused("http://t:99999/", "dial tcp: address 99999: invalid port", 1210),
        refused("ftp://t/", "unsupported protocol scheme \"ftp\"", 1000),
        refused("nothing", "unsupported protocol scheme \"\"", 1000),
        refused("http://", "http: no Host in request URL", 1000),
    ] {
        let source = script(&format!(
            "const calls = [() => http.get('{url}'), () => http.batch(['{url}'])[0], () => http.get('http://t/?{url}')];
             for (const call of calls) {{ const r = call(); console.log(r.url, r.error, r.error_code, r.request.method, r.request.url); }}
             http.asyncRequest('GET', '{url}').then((r) => console.log('async', r.error_code));
             try {{ http.get('{url}', {{ throw: true }}); }} catch (e) {{ console.log(e.message); }}"
        ));
        let location = if url == "nothing" { "x:y" } else { &url };
        let run = iterate(&source, 1, |_| reply(302, &[("Location", location)], ""));
        assert_eq!(run.outcome, Outcome::Done(None), "{url}");
        let lines: Vec<&str> = run.said.lines().filter(|line| !line.contains("Request Failed")).collect();
        let direct = format!("{url} {why} {code} GET {url}");
        assert_eq!(lines[..2], [&direct, &direct], "{url}: {}", run.said);
        let redirected = lines[2].strip_suffix(&format!(" {code} GET http://t/?{url}"));
        assert!(redirected.is_some_and(|line| line.starts_with(location)), "{url}: {}", lines[2]);
        assert_eq!(lines[3..], [&format!("Get \"{url}\": {why}"), &format!("async {code}")], "{url}");
        assert_eq!((run.seen.http.len(), run.seen.requests.len()), (6, 1), "{url}");
    }
}

#[test]
fn headers_that_say_how_the_body_is_sent_are_not_the_scripts() {
    let source = script(
        "http.post('http://t/', 'x', { headers: { 'Transfer-Encoding': 'chunked', trailer: 'a', 'content-length': '9', 'User-Agent': '', 'X-A': '1' } });",
    );
    let mut sent = Vec::new();
    iterate(&source, 1, |request| {
        sent.extend(request.spec.plan.headers.iter().map(|field| field.name.clone()));
        reply(200, &[], "")
    });
    assert_eq!(sent, ["X-A"]);
}

#[test]
fn a_get_has_a_body_where_the_script_gives_one() {
    let source = script(
        "http.request('GET', 'http://t/', 'query'); http.request('', 'http://t/', null); http.get('http://t/', 'no params');
         http.batch([['GET', 'http://t/', 'none']]);",
    );
    let mut sent = Vec::new();
    iterate(&source, 1, |request| {
        sent.push(format!("{} {}", request.spec.plan.method, body(request)));
        reply(200, &[], "")
    });
    assert_eq!(sent, ["GET query", "GET ", "GET ", "GET "]);
}

#[test]
fn a_redirect_says_where_it_comes_from() {
    for (params, referers) in
        [("{}", ["", "http://t/1", "http://t/2"]), ("{ headers: { referer: 'me' } }", ["me", "me", "me"])]
    {
        let mut sent = Vec::new();
        iterate(&script(&format!("http.get('http://t/1', {params});")), 1, |request| {
            sent.push(header(request, "referer").to_owned());
            let next = match request.spec.plan.url.path() {
                "/1" => "/2",
                "/2" => "/3",
                _ => return reply(200, &[], ""),
            };
            reply(302, &[("Location", next)], "")
        });
        assert_eq!(sent, referers);
    }
}

#[test]
fn a_name_is_that_of_every_hop() {
    let source = script(
        "http.get(http.url`http://t/${1}`); http.get('http://t/1', { tags: { name: 'N' } }); http.get('http://t/1');",
    );
    let run = iterate(&source, 1, |request| match request.spec.plan.url.path() {
        "/1" => reply(302, &[("Location", "/2")], ""),
        _ => reply(200, &[], ""),
    });
    let names: Vec<&str> = run.seen.http.iter().map(|tags| tags["name"].as_str()).collect();
    assert_eq!(names, ["http://t/${}", "http://t/${}", "N", "N", "http://t/1", "http://t/2"]);
}

#[test]
fn batches_keep_their_shape_and_their_limit() {
    let source = script("const list = http.batch(['http://t/1', ['POST', 'http://t/2', 'b'], { method: 'PUT', url: 'http://t/3' }]);
        console.log(list.map((r) => r.status));
        const named = http.batch({ a: 'http://t/4', b: 'http://t/5' });
        console.log(Object.keys(named), named.b.status);");
    let run = iterate_with(&source, 1, Runtime { batch: 2, ..Runtime::default() }, |request| {
        reply(200 + request.spec.plan.url.path()[1..].parse::<u16>().unwrap(), &[], "")
    });
    assert_eq!(run.said, "[ 201, 202, 203 ]\n[ \"a\", \"b\" ] 205\n");
}

#[test]
fn async_requests_are_promises() {
    let run = iterate(
        "import http from 'k6/http';
         export default async function () {
           const both = await Promise.all([http.asyncRequest('GET', 'http://t/1'), http.asyncRequest('POST', 'http://t/2', 'x')]);
           console.log(both.map((r) => r.status));
         }",
        1,
        |_| reply(201, &[], ""),
    );
    assert_eq!((run.outcome, run.said.as_str()), (Outcome::Done(None), "[ 201, 201 ]\n"));
}

#[test]
fn authentication_is_proved() {
    let source = script(
        "http.get('http://user:p%40ss@t/basic'); console.log(http.get('http://u:p@t/digest', { auth: 'digest' }).status);",
    );
    let mut sent = Vec::new();
    let run = iterate(&source, 1, |request| {
        let proof = header(request, "authorization").to_owned();
        sent.push(proof.clone());
        match request.spec.plan.url.path() {
            "/digest" if proof.is_empty() => reply(
                401,
                &[("WWW-Authenticate", "Digest realm=\"r\", nonce=\"n\", qop=\"auth\", algorithm=MD5")],
                "",
            ),
            _ => reply(200, &[], ""),
        }
    });
    assert_eq!(sent[0], "Basic dXNlcjpwQHNz");
    assert!(
        sent[2].starts_with("Digest username=\"u\", realm=\"r\", nonce=\"n\", uri=\"/digest\""),
        "{}",
        sent[2]
    );
    assert_eq!(run.said, "200\n");
    let names: Vec<&str> = run.seen.http.iter().map(|tags| tags["name"].as_str()).collect();
    assert_eq!(names, ["http://****:****@t/basic", "http://t/digest", "http://t/digest"]);
}

#[test]
fn ntlm_is_refused_by_name() {
    let run = iterate(&script("http.get('http://u:p@t/', { auth: 'ntlm' });"), 1, |_| reply(200, &[], ""));
    let Outcome::Failed(error) = run.outcome else { panic!("{:?}", run.outcome) };
    let expected = "Error: `auth: 'ntlm'` is not supported: use 'basic' or 'digest'";
    assert_eq!(error.message.lines().next(), Some(expected));
    assert_eq!(run.seen.requests, [""; 0]);
}

#[test]
fn bodies_are_unpacked_when_they_are_read() {
    use std::io::Write;
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    packed.write_all(b"{\"x\": 1}").unwrap();
    let packed = packed.finish().unwrap();
    let run =
        iterate(&script("const r = http.get('http://t/'); console.log(r.body, r.json('x'));"), 1, |_| {
            Reply { body: packed.clone(), ..reply(200, &[("Content-Encoding", "gzip")], "") }
        });
    assert_eq!(run.said, "{\"x\": 1} 1\n");
}

#[test]
fn files_make_a_multipart_form() {
    let mut seen = String::new();
    iterate(
        &script("http.post('http://t/', { field: 'v', file: http.file('data', 'a.txt', 'text/plain') });"),
        1,
        |request| {
            seen = format!("{}\n{}", header(request, "content-type"), body(request));
            reply(200, &[], "")
        },
    );
    assert!(seen.starts_with("multipart/form-data; boundary="), "{seen}");
    assert!(
        seen.contains("name=\"file\"; filename=\"a.txt\"\r\nContent-Type: text/plain\r\n\r\ndata\r\n"),
        "{seen}"
    );
}

#[test]
fn expectations_decide_what_fails() {
    let source = script(
        "http.get('http://t/'); http.get('http://t/', { responseCallback: http.expectedStatuses(404) }); http.get('http://t/', { responseCallback: null });",
    );
    let run = iterate(&source, 1, |_| reply(404, &[], ""));
    let expected: Vec<_> =
        run.seen.http.iter().map(|tags| tags.get("expected_response").map(String::as_str)).collect();
    assert_eq!(expected, [Some("false"), Some("true"), None]);
}

#[test]
fn a_request_names_its_version_of_http() {
    let mut sent = Vec::new();
    let source = script(
        "for (const http_ of [undefined, '1.1', '2', 'auto']) http.get('http://t/', { http: http_ });
         http.get('http://t/', { http: 'h2' });",
    );
    let run = iterate(&source, 1, |request| {
        sent.push(request.spec.plan.http);
        reply(200, &[], "")
    });
    use squall_plan::HttpVersion::{Auto, Http2, Http11};
    assert_eq!(sent, [Auto, Http11, Http2, Auto]);
    let Outcome::Failed(error) = run.outcome else { panic!("{:?}", run.outcome) };
    let expected = "Error: invalid `http: 'h2'` in the params: use '1.1', '2', '3' or 'auto'";
    assert_eq!(error.message.lines().next(), Some(expected));
}

#[test]
fn cookies_of_params_are_written_as_k6_writes_them() {
    let source = script(
        "const jar = http.cookieJar(); jar.set('http://t/', 's', '1');
         http.get('http://t/', { cookies: { a: ['x', 'y'], b: null, c: undefined, d: 1, e: true, f: { value: 'q' }, g: { value: null }, h: {}, i: [] } });
         http.get('http://u/', { cookies: jar.cookiesForURL('http://t/') });",
    );
    let mut sent = Vec::new();
    iterate(&source, 1, |request| {
        sent.push(header(request, "cookie").to_owned());
        reply(200, &[], "")
    });
    assert_eq!(sent, ["a=\"x,y\"; d=1; e=true; f=q; g=null; h=; i=; s=1", "s=1"]);
}

#[test]
fn redirects_that_cannot_be_followed_fail_as_in_k6() {
    let source = script(
        "for (const path of ['ftp', 'bad', 'none']) { const res = http.get('http://t/' + path); console.log(res.status, res.error_code, res.error, res.url); }",
    );
    let run = iterate(&source, 1, |request| match request.spec.plan.url.path() {
        "/ftp" => reply(302, &[("Location", "ftp://x/y")], ""),
        "/bad" => reply(302, &[("Location", "/%zz")], ""),
        _ => reply(302, &[], ""),
    });
    assert!(run.said.contains("0 1000 unsupported protocol scheme \"ftp\" ftp://x/y\n"), "{}", run.said);
    assert!(
        run.said.contains("0 1000 failed to parse Location header \"/%zz\": parse \"/%zz\": invalid URL escape \"%zz\" http://t/bad\n"),
        "{}",
        run.said
    );
    assert!(run.said.contains("302 0  http://t/none\n"), "{}", run.said);
    let counted: Vec<&str> = run.seen.http.iter().map(|tags| tags["status"].as_str()).collect();
    assert_eq!(counted, ["302", "0", "0", "302"]);
}
