//! What each route answers.

use std::io::Read;

use data_encoding::{BASE64, HEXLOWER};
use serde_json::{Value, json};
use squall_server::route_docs;

use crate::client::{Client, Response, start};

/// Pattern, request, status, and a piece of the head or the body.
const ANSWERS: &[(&str, &str, u16, &str)] = &[
    ("/", "GET /", 200, "squall target\n"),
    ("/", "OPTIONS /", 200, "squall target\n"),
    ("/health", "GET /health", 200, "ok\n"),
    ("/stats", "GET /stats", 200, "\"tls_handshakes\":0"),
    ("/bytes/{n}", "GET /bytes/0", 200, "content-length: 0\r\n"),
    ("/bytes/{n}", "GET /bytes/10k", 200, "content-length: 10000\r\n"),
    ("/bytes/{n}", "GET /bytes/64KiB", 200, "content-length: 65536\r\n"),
    ("/bytes/{n}", "GET /bytes/65536", 200, "content-length: 65536\r\n"),
    ("/bytes/{n}", "GET /bytes/200000?seed=7", 200, "content-length: 200000\r\n"),
    ("/bytes/{n}", "POST /bytes/3", 200, "content-length: 3\r\n"),
    ("/bytes/{n}", "HEAD /bytes/1073741824", 200, "content-length: 1073741824\r\n"),
    ("/stream-bytes/{n}", "GET /stream-bytes/200000", 200, "transfer-encoding: chunked\r\n"),
    ("/stream-bytes/{n}", "GET /stream-bytes/0", 200, "transfer-encoding: chunked\r\n"),
    ("/stream/{n}", "GET /stream/3?a=b", 200, "\"url\":\"http://squall.test/stream/3?a=b\",\"id\":2}\n"),
    ("/range/{n}", "GET /range/30", 200, "xyzabcd"),
    ("/drip", "GET /drip?numbytes=5&duration=1&code=503", 503, "*****"),
    ("/upload", "POST /upload", 200, "{\"bytes\":0}"),
    ("/delay/{duration}", "GET /delay/1ms", 200, "\"method\":\"GET\""),
    ("/delay/uniform/{a}/{b}", "GET /delay/uniform/0/1", 200, "delay_us"),
    ("/latency", "GET /latency?p50=0&p99=2ms", 200, "delay_us"),
    ("/status/{codes}", "GET /status/204", 204, ""),
    ("/status/{codes}", "GET /status/418", 418, ""),
    ("/status/{codes}", "GET /status/302", 302, "location: /redirect/1\r\n"),
    ("/status/{codes}", "GET /status/401", 401, "www-authenticate: Basic"),
    ("/status/{codes}", "GET /status/429:1", 429, ""),
    ("/get", "GET /get?a=1&a=2&b=%20", 200, "\"args\":{\"a\":[\"1\",\"2\"],\"b\":\" \"}"),
    ("/get", "HEAD /get", 200, "content-type: application/json"),
    ("/post", "POST /post", 200, "\"json\":null"),
    ("/put", "PUT /put", 200, "\"url\":\"http://squall.test/put\""),
    ("/patch", "PATCH /patch", 200, "\"form\":{}"),
    ("/delete", "DELETE /delete", 200, "\"files\":{}"),
    ("/anything", "PURGE /anything", 200, "\"method\":\"PURGE\""),
    ("/anything/{...}", "PUT /anything/a/b?c", 200, "\"url\":\"http://squall.test/anything/a/b?c\""),
    ("/headers", "GET /headers", 200, "{\"headers\":{\"Host\":\"squall.test\"}}"),
    ("/ip", "GET /ip", 200, "{\"origin\":\"127.0.0.1\"}"),
    ("/user-agent", "GET /user-agent", 200, "{\"user-agent\":null}"),
    ("/gzip", "GET /gzip", 200, "content-encoding: gzip\r\n"),
    ("/deflate", "GET /deflate", 200, "content-encoding: deflate\r\n"),
    ("/brotli", "GET /brotli", 200, "content-encoding: br\r\n"),
    ("/zstd", "GET /zstd", 200, "content-encoding: zstd\r\n"),
    ("/encoding/utf8", "GET /encoding/utf8", 200, "∮ E⋅da = Q"),
    ("/redirect/{n}", "GET /redirect/1", 302, "location: /get\r\n"),
    ("/redirect/{n}", "GET /redirect/3", 302, "location: /relative-redirect/2\r\n"),
    (
        "/redirect/{n}",
        "GET /redirect/3?absolute=True",
        302,
        "location: http://squall.test/absolute-redirect/2\r\n",
    ),
    ("/relative-redirect/{n}", "GET /relative-redirect/2", 302, "location: /relative-redirect/1\r\n"),
    ("/absolute-redirect/{n}", "GET /absolute-redirect/1", 302, "location: http://squall.test/get\r\n"),
    ("/redirect-to", "GET /redirect-to?url=http%3A%2F%2Fa%2F", 302, "location: http://a/\r\n"),
    ("/redirect-to", "PUT /redirect-to?url=/x&status_code=307", 307, "location: /x\r\n"),
    ("/cookies", "GET /cookies", 200, "{\"cookies\":{}}"),
    (
        "/cookies/set",
        "GET /cookies/set?a=1&b=2",
        302,
        "set-cookie: a=1; Path=/\r\nset-cookie: b=2; Path=/\r\n",
    ),
    ("/cookies/set/{name}/{value}", "GET /cookies/set/a/1", 302, "set-cookie: a=1; Path=/\r\n"),
    (
        "/cookies/delete",
        "GET /cookies/delete?a",
        302,
        "set-cookie: a=; Path=/; Max-Age=0; Expires=Thu, 01 Jan 1970",
    ),
    (
        "/basic-auth/{user}/{password}",
        "GET /basic-auth/u/p",
        401,
        "www-authenticate: Basic realm=\"squall\"\r\n",
    ),
    ("/hidden-basic-auth/{user}/{password}", "GET /hidden-basic-auth/u/p", 404, ""),
    ("/bearer", "GET /bearer", 401, "www-authenticate: Bearer\r\n"),
    (
        "/digest-auth/{qop}/{user}/{password}",
        "GET /digest-auth/auth/u/p",
        401,
        "qop=\"auth\", opaque=\"squall\", algorithm=MD5\r\n",
    ),
    (
        "/digest-auth/{qop}/{user}/{password}/{algorithm}",
        "GET /digest-auth/auth/u/p/sha-256",
        401,
        "algorithm=SHA-256\r\n",
    ),
    ("/response-headers", "GET /response-headers?X-A=1&X-A=2", 200, "x-a: 1\r\nx-a: 2\r\n"),
    ("/response-headers", "GET /response-headers?Content-Type=text/x", 200, "content-type: text/x\r\n"),
    ("/cache", "GET /cache", 200, "etag: \"squall\"\r\n"),
    ("/cache/{seconds}", "GET /cache/60", 200, "cache-control: public, max-age=60\r\n"),
    ("/etag/{etag}", "GET /etag/abc", 200, "etag: \"abc\"\r\n"),
    ("/html", "GET /html", 200, "<h1>Herman Melville - Moby-Dick</h1>"),
    ("/json", "GET /json", 200, "\"title\": \"Sample Slide Show\""),
    ("/xml", "GET /xml", 200, "<slideshow title=\"Sample Slide Show\""),
    ("/robots.txt", "GET /robots.txt", 200, "Disallow: /deny"),
    ("/deny", "GET /deny", 200, "should not be here"),
    ("/forms/post", "GET /forms/post", 200, "<form method=\"post\" action=\"/post\">"),
    ("/links/{n}", "GET /links/3", 302, "location: /links/3/0\r\n"),
    (
        "/links/{n}/{i}",
        "GET /links/3/1",
        200,
        "<a href=\"/links/3/0\">0</a>\n1\n<a href=\"/links/3/2\">2</a>",
    ),
    ("/image/png", "GET /image/png", 200, "PNG"),
    ("/image/jpeg", "GET /image/jpeg", 200, "JFIF"),
    ("/image/webp", "GET /image/webp", 200, "WEBP"),
    ("/image/svg", "GET /image/svg", 200, "<svg"),
    ("/base64/{value}", "GET /base64/aGk_", 200, "hi?"),
    ("/base64/{value}", "GET /base64/aGk%3D", 200, "hi"),
    ("/uuid", "GET /uuid", 200, "00000000-0000-8000-8000-000000000001"),
    ("/sse", "GET /sse?count=2&interval=0", 200, "\nid: 1\ndata: {\"id\":1,"),
    ("/close", "GET /close", 200, "connection: close\r\n"),
];

/// Routes whose answer is not a response; `faults.rs` and `websocket.rs` have them.
const UNANSWERED: &[&str] = &["/hang", "/abort", "/ws/echo", "/ws/broadcast"];

#[test]
fn every_route_answers() {
    let target = start();
    for (pattern, request, status, piece) in ANSWERS {
        let response = Client::connect(target.address()).send(request, "", b"");
        let text = response.head.clone() + &response.text();
        assert_eq!(response.status, *status, "{request} on {pattern}: {text}");
        assert!(text.contains(piece), "{request} on {pattern}: no `{piece}` in {text}");
    }
}

#[test]
fn every_route_is_tested() {
    let tested: Vec<&str> = ANSWERS.iter().map(|answer| answer.0).chain(UNANSWERED.iter().copied()).collect();
    for route in route_docs() {
        assert!(tested.contains(&route.pattern), "{} has no test", route.pattern);
    }
}

/// Request, status, and a piece of the text that explains it.
const REFUSALS: &[(&str, u16, &str)] = &[
    ("GET /nowhere", 404, "/bytes/{n}"),
    ("GET /bytes", 404, "the routes are"),
    ("GET /getter", 404, "the routes are"),
    ("GET /get/", 404, "the routes are"),
    ("GET //", 404, "the routes are"),
    ("OPTIONS *", 404, "the routes are"),
    ("POST /get", 405, "/get accepts only GET"),
    ("GET /post", 405, "allow: POST\r\n"),
    ("GET /bytes/", 400, "`` is not a whole number from 0 to 1073741824"),
    ("GET /bytes/-1", 400, "not a whole number"),
    ("GET /bytes/1.5", 400, "not a whole number"),
    ("GET /bytes/1073741825", 400, "not a whole number"),
    ("GET /bytes/99999999999999999999999", 400, "not a whole number"),
    ("GET /bytes/2GiB", 400, "such a size with a unit"),
    ("GET /bytes/1?seed=x", 400, "`x` is not a whole number"),
    ("GET /stream/10001", 400, "from 0 to 10000"),
    ("GET /delay/soon", 400, "write milliseconds, or a unit"),
    ("GET /delay/-1", 400, "not a duration"),
    ("GET /delay/2000m", 400, "longer than 3600 s"),
    ("GET /delay/uniform/2/1", 400, "must not be shorter"),
    ("GET /latency", 400, "give percentiles"),
    ("GET /latency?p101=5", 400, "not a percentile"),
    ("GET /latency?p50=5&p90=1", 400, "must not be shorter"),
    ("GET /latency?p50=5&p50=6", 400, "each is given once"),
    ("GET /drip?numbytes=many", 400, "not a whole number"),
    ("GET /drip?code=1", 400, "not a status"),
    ("GET /status/99", 400, "not a status from 200 to 599"),
    ("GET /status/101", 400, "not a status"),
    ("GET /status/200:x", 400, "not a weight"),
    ("GET /redirect/0", 400, "from 1 to 10000"),
    ("GET /redirect-to", 400, "give a `url`"),
    ("GET /redirect-to?url=%0A", 400, "cannot be a value of the header location"),
    ("GET /redirect-to?url=/&status_code=200", 400, "from 300 to 399"),
    ("GET /cookies/set?a%3B=1", 400, "not a cookie"),
    ("GET /cookies/set/a/%0D%0AX", 400, "cannot be a value"),
    ("GET /basic-auth/%FF/p", 400, "not UTF-8"),
    ("GET /digest-auth/none/u/p", 400, "not auth or auth-int"),
    ("GET /digest-auth/auth/u/p/MD4", 400, "not MD5 or SHA-256"),
    ("GET /response-headers?a%20b=1", 400, "not a header name"),
    ("GET /response-headers?Content-Length=1", 400, "is set by the server"),
    ("GET /links/3/3", 400, "from 0 to 2"),
    ("GET /base64/%21", 400, "not base64"),
    ("GET /abort?how=gently", 400, "`reset` or `close`"),
    ("GET /abort?after=-1", 400, "not a whole number"),
];

#[test]
fn bad_input_is_refused_with_a_reason() {
    let target = start();
    let mut client = Client::connect(target.address());
    for (request, status, piece) in REFUSALS {
        let response = client.send(request, "", b"");
        let text = response.head.clone() + &response.text();
        assert_eq!(response.status, *status, "{request}: {text}");
        assert!(text.contains(piece), "{request}: no `{piece}` in {text}");
    }
}

#[test]
fn bytes_are_the_documented_noise() {
    let target = start();
    let mut client = Client::connect(target.address());
    let long = client.get("/bytes/150000").body;
    assert_eq!(
        HEXLOWER.encode(&long[..8]),
        "afcd1d7b39a820e2",
        "SplitMix64 of 0 starts with e220a8397b1dcdaf"
    );
    assert_eq!(long[..65536], long[65536..131_072]);
    assert_eq!(client.get("/bytes/100").body, long[..100]);
    assert_eq!(client.get("/stream-bytes/150000").body, long);
    assert_ne!(client.get("/bytes/100?seed=1").body, long[..100]);
}

#[test]
fn ranges_are_answered_in_part() {
    let target = start();
    let mut client = Client::connect(target.address());
    let mut ask = |range: &str| client.send("GET /range/100000", &format!("Range: {range}\r\n"), b"");
    let part = ask("bytes=26-28");
    assert_eq!((part.status, part.text().as_str()), (206, "abc"));
    assert_eq!(part.header("content-range"), Some("bytes 26-28/100000"));
    assert_eq!(ask("bytes=-60000").body.len(), 60_000);
    assert_eq!(ask("bytes=100000-").status, 416);
    assert_eq!(ask("lines=1-2").status, 200);
}

#[test]
fn bodies_are_echoed_in_the_shape_of_httpbin() {
    let target = start();
    let mut client = Client::connect(target.address());
    let mut echo = |content_type: &str, body: &[u8]| {
        let echoed = client.send("POST /post", &format!("Content-Type: {content_type}\r\n"), body).json();
        json!([echoed["data"], echoed["files"], echoed["form"], echoed["json"]])
    };
    assert_eq!(echo("application/json", b"{\"a\":1}"), json!(["{\"a\":1}", {}, {}, { "a": 1 }]));
    assert_eq!(echo("text/plain", b"hi"), json!(["hi", {}, {}, null]));
    assert_eq!(echo("a/b", b"\xff"), json!(["data:a/b;base64,/w==", {}, {}, null]));
    assert_eq!(
        echo("application/x-www-form-urlencoded", b"a=1&a=2&b=%C3%A4"),
        json!(["", {}, { "a": ["1", "2"], "b": "ä" }, null])
    );
    let form = b"--X\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n1\r\n--X\r\n\
        Content-Disposition: form-data; name=\"f\"; filename=\"f.txt\"\r\n\r\nfile\r\n--X--\r\n";
    assert_eq!(
        echo("multipart/form-data; boundary=X", form),
        json!(["", { "f": "file" }, { "a": "1" }, null])
    );
}

#[test]
fn broken_multipart_bodies_are_refused() {
    let target = start();
    let content_type = "Content-Type: multipart/form-data; boundary=X\r\n";
    let response = Client::connect(target.address()).send("POST /post", content_type, b"--X\r\n");
    assert_eq!((response.status, response.text().as_str()), (400, "the multipart body ends within a part\n"));
}

#[test]
fn long_bodies_are_counted_but_not_echoed() {
    let target = start();
    let mut client = Client::connect(target.address());
    let body = vec![b'x'; 17 << 20];
    assert_eq!(client.send("POST /upload", "", &body).json(), json!({ "bytes": 17 << 20 }));
    let refused = client.send("PUT /anything", "", &body);
    assert_eq!(refused.status, 413, "{}", refused.text());
    client.write("POST /upload HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n3\r\ncde\r\n0\r\n\r\n");
    assert_eq!(client.read(false).json(), json!({ "bytes": 5 }), "the connection outlives a refused body");
}

#[test]
fn encoded_answers_decode_to_json() {
    let target = start();
    let mut client = Client::connect(target.address());
    let mut check = |path: &str, flag: &str, decode: fn(&[u8]) -> Vec<u8>| {
        let echo: Value = serde_json::from_slice(&decode(&client.get(path).body)).unwrap();
        assert_eq!(echo[flag], true, "{path}");
        assert_eq!(echo["headers"]["Host"], "squall.test", "{path}");
    };
    check("/gzip", "gzipped", |bytes| read_all(flate2::read::GzDecoder::new(bytes)));
    check("/deflate", "deflated", |bytes| read_all(flate2::read::ZlibDecoder::new(bytes)));
    check("/brotli", "brotli", |bytes| read_all(brotli::Decompressor::new(bytes, 4096)));
    check("/zstd", "zstd", |bytes| read_all(ruzstd::decoding::StreamingDecoder::new(bytes).unwrap()));
}

fn read_all(mut reader: impl Read) -> Vec<u8> {
    let mut bytes = Vec::new();
    reader.read_to_end(&mut bytes).unwrap();
    bytes
}

#[test]
fn cookies_come_back() {
    let target = start();
    let response =
        Client::connect(target.address()).send("GET /cookies", "Cookie: a=1; b=x=y\r\nCookie: c=\r\n", b"");
    assert_eq!(response.json(), json!({ "cookies": { "a": "1", "b": "x=y", "c": "" } }));
}

#[test]
fn validators_are_compared() {
    let target = start();
    let mut client = Client::connect(target.address());
    let mut check = |path: &str, header: &str, status| {
        let response = client.send(&format!("GET {path}"), &format!("{header}\r\n"), b"");
        assert_eq!(response.status, status, "{path} with {header}");
    };
    check("/cache", "If-None-Match: \"x\"", 304);
    check("/cache", "If-Modified-Since: Thu, 01 Jan 2026 00:00:00 GMT", 304);
    check("/etag/abc", "If-None-Match: \"x\", W/\"abc\"", 304);
    check("/etag/abc", "If-None-Match: *", 304);
    check("/etag/abc", "If-None-Match: \"x\"", 200);
    check("/etag/abc", "If-Match: \"x\"", 412);
    check("/etag/abc", "If-Match: \"abc\"", 200);
}

#[test]
fn credentials_are_checked() {
    let target = start();
    let mut client = Client::connect(target.address());
    let mut check = |path: &str, authorization: &str, status| {
        let response =
            client.send(&format!("GET {path}"), &format!("Authorization: {authorization}\r\n"), b"");
        assert_eq!(response.status, status, "{path} with {authorization}");
    };
    let right = format!("Basic {}", BASE64.encode(b"u:p w"));
    check("/basic-auth/u/p%20w", &right, 200);
    check("/basic-auth/u/other", &right, 401);
    check("/basic-auth/u/p%20w", "Basic !", 401);
    check("/hidden-basic-auth/u/p%20w", &right, 200);
    check("/bearer", "Bearer abc", 200);
    check("/bearer", "Bearer", 401);
}

#[test]
fn digest_answers_are_verified() {
    let target = start();
    let mut client = Client::connect(target.address());
    let challenge = client.get("/digest-auth/auth/u/p");
    let nonce = quoted(&challenge, "nonce");
    let mut answer = |path: &str, password: &str| {
        let secret = md5(&format!("u:squall:{password}"));
        let response = md5(&format!("{secret}:{nonce}:00000001:abc:auth:{}", md5(&format!("GET:{path}"))));
        let fields =
            format!(r#"username="u", nonce="{nonce}", nc=00000001, cnonce="abc", response="{response}""#);
        client.send(&format!("GET {path}"), &format!("Authorization: Digest {fields}\r\n"), b"").status
    };
    assert_eq!(answer("/digest-auth/auth/u/p", "p"), 200);
    assert_eq!(answer("/digest-auth/auth/u/p?x=1", "p"), 200);
    assert_eq!(answer("/digest-auth/auth/u/p", "wrong"), 401);
}

fn quoted(response: &Response, name: &str) -> String {
    let (_, after) = response.head.split_once(&format!("{name}=\"")).unwrap();
    after.split_once('"').unwrap().0.to_owned()
}

fn md5(text: &str) -> String {
    use md5::Digest;
    HEXLOWER.encode(&md5::Md5::digest(text))
}
