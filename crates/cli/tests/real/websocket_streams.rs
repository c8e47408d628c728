//! WebSockets as streams of HTTP/2 and HTTP/3: many share a connection, each counts as its own, and every end has its reason.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use serde_json::Value;
use squall_server::{Options, Target, Tls};

use crate::squall::{Ended, run};

/// A server of HTTP/2 in plain TCP, which does on each connection what the test says, once the preface has come.
struct Scripted {
    address: SocketAddr,
}

/// A frame's kind, flags, stream and payload.
type Frame = (u8, u8, u32, Vec<u8>);

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

/// SETTINGS_ENABLE_CONNECT_PROTOCOL = 1.
const OFFER: &[u8] = &[0, 8, 0, 0, 0, 1];
/// `:status: 200`, and `:status: 404`.
const OK: &[u8] = &[0x88];
const NOT_FOUND: &[u8] = &[0x8d];

impl Scripted {
    fn start(serve: impl Fn(&mut TcpStream) -> Option<()> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let serve = Arc::new(serve);
        // It lives as long as the test's process: a connection that nobody makes costs nothing.
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (Ok(mut stream), serve) = (stream, Arc::clone(&serve)) else { continue };
                thread::spawn(move || {
                    let mut preface = [0; 24];
                    stream.read_exact(&mut preface).ok()?;
                    serve(&mut stream)?;
                    // What comes back is of no interest, but a reset would take back what was sent.
                    stream.shutdown(std::net::Shutdown::Write).ok()?;
                    stream.read_to_end(&mut Vec::new()).ok()
                });
            }
        });
        Self { address }
    }

    fn url(&self) -> String {
        format!("ws://{}/", self.address)
    }
}

fn send(stream: &mut TcpStream, kind: u8, flags: u8, id: u32, payload: &[u8]) -> Option<()> {
    let mut frame = (payload.len() as u32).to_be_bytes()[1..].to_vec();
    frame.extend_from_slice(&[kind, flags]);
    frame.extend_from_slice(&id.to_be_bytes());
    frame.extend_from_slice(payload);
    stream.write_all(&frame).ok()
}

fn read(stream: &mut TcpStream) -> Option<Frame> {
    let mut head = [0; 9];
    stream.read_exact(&mut head).ok()?;
    let bytes = u32::from_be_bytes([0, head[0], head[1], head[2]]);
    let mut payload = vec![0; bytes as usize];
    stream.read_exact(&mut payload).ok()?;
    Some((head[3], head[4], u32::from_be_bytes([head[5], head[6], head[7], head[8]]), payload))
}

/// The next frame of this kind.
fn until(stream: &mut TcpStream, kind: u8) -> Option<Frame> {
    loop {
        let frame = read(stream)?;
        if frame.0 == kind {
            return Some(frame);
        }
    }
}

/// Offers extended CONNECT and accepts the first one; its stream.
fn accept(stream: &mut TcpStream) -> Option<u32> {
    send(stream, SETTINGS, 0, 0, OFFER)?;
    let (_, flags, id, _) = until(stream, HEADERS)?;
    assert_eq!(flags & END_STREAM, 0, "the stream goes on");
    send(stream, HEADERS, END_HEADERS, id, OK)?;
    Some(id)
}

/// Failures by cause, phase and count, with the text of the example.
fn failure(ended: &Ended) -> (String, String, u64, String) {
    let json = ended.json();
    let row = &json["errors"][0];
    let text = |key: &str| row[key].as_str().unwrap_or_default().to_owned();
    let example = row.pointer("/example/text").or_else(|| row.get("example")).cloned().unwrap_or_default();
    let example = example.as_str().unwrap_or_default().to_owned();
    (text("cause"), text("phase"), row["count"].as_u64().unwrap_or_default(), example)
}

fn closes(ended: &Ended) -> Vec<(String, u64, String, u64)> {
    let json = ended.json();
    let rows = json.pointer("/totals/websockets/closes").and_then(Value::as_array).unwrap().clone();
    let text = |row: &Value, key: &str| row[key].as_str().unwrap().to_owned();
    let row = |row: &Value| {
        (text(row, "by"), row["code"].as_u64().unwrap(), text(row, "reason"), row["count"].as_u64().unwrap())
    };
    rows.iter().map(row).collect()
}

#[test]
fn websockets_share_connections_and_each_counts_as_its_own() {
    let tls = Some(Tls::SelfMade { names: Vec::new() });
    let target = Target::start(&Options { tls, http3: true, ..Options::default() }).unwrap();
    let url = format!("wss://{}/ws/echo", target.address());
    let mut messages = 0;
    for (http, extra) in [
        ("2", &[][..]),
        ("3", &[]),
        ("2", &["--compress", "--size", "20KiB"]),
        ("3", &["--compress", "--size", "20KiB"]),
        ("2", &["--size", "1MiB", "--window", "64KiB", "--close", "rst"]),
        ("3", &["--size", "1MiB"]),
    ] {
        let args =
            ["ws", "--insecure", "--http", http, "-c", "10", "--streams", "4", "-n", "50", "--threads", "1"];
        let ended = run(&[&args[..], extra, &[&url]].concat());
        let count = |name: &str| ended.count(&format!("/totals/{name}"));
        let what = format!("HTTP/{http} {extra:?} {ended:#?}");
        assert_eq!((count("websockets/messages_sent"), count("websockets/answered")), (50, 50), "{what}");
        assert_eq!((count("websockets/mismatched"), count("failed")), (0, 0), "{what}");
        assert_eq!((count("idle_connections/opened"), count("connections_opened")), (10, 3), "{what}");
        let figures = if http == "2" { "http2" } else { "http3" };
        assert_eq!((count(&format!("{figures}/connections")), count(&format!("{figures}/streams"))), (3, 10));
        assert_eq!(closes(&ended), [("squall".to_owned(), 1000, String::new(), 10)], "{what}");
        messages += 50;
        let stats = target.stats();
        assert_eq!((stats.messages_received, stats.messages_sent), (messages, messages), "{what}");
    }
}

#[test]
fn a_storm_and_closes_of_the_server_are_counted_as_over_http1() {
    let tls = Some(Tls::SelfMade { names: Vec::new() });
    let target = Target::start(&Options { tls, http3: true, ..Options::default() }).unwrap();
    for http in ["1.1", "2", "3"] {
        let streams: &[&str] = if http == "1.1" { &[] } else { &["--streams", "3"] };
        let url = format!("wss://{}/ws/echo?close-after=2&code=4000", target.address());
        let args = ["ws", "--insecure", "--http", http, "-c", "4", "-n", "40", "--threads", "1", &url];
        let ended = run(&[&args[..], streams].concat());
        let count = |name: &str| ended.count(&format!("/totals/{name}"));
        assert_eq!((count("websockets/messages_sent"), count("failed")), (40, 0), "HTTP/{http} {ended:#?}");
        let by_server: u64 = closes(&ended)
            .iter()
            .filter(|(by, code, ..)| by == "server" && *code == 4000)
            .map(|row| row.3)
            .sum();
        assert_eq!(by_server, count("idle_connections/closed_by_server"), "HTTP/{http} {ended:#?}");
        assert!((18..=20).contains(&by_server), "HTTP/{http} {ended:#?}");
        let url = format!("wss://{}/ws/echo", target.address());
        let args = [
            "ws",
            "--insecure",
            "--http",
            http,
            "-c",
            "6",
            "--idle",
            "--storm",
            "200ms",
            "-d",
            "900ms",
            &url,
        ];
        let ended = run(&[&args[..], streams].concat());
        let count = |name: &str| ended.count(&format!("/totals/{name}"));
        let reopened = count("idle_connections/reopened");
        assert!(reopened > 0 && reopened.is_multiple_of(6), "HTTP/{http} {ended:#?}");
        assert_eq!(count("idle_connections/opened"), reopened + 6, "HTTP/{http}");
        assert_eq!(count("idle_connections/closed_by_us"), reopened + 6, "HTTP/{http} {ended:#?}");
    }
    let stats = target.stats();
    assert_eq!((stats.requests_cut, stats.requests), (0, stats.requests_finished));
}

#[test]
fn each_wrong_answer_to_an_extended_connect_has_its_cause() {
    type Serve = fn(&mut TcpStream) -> Option<()>;
    let no_offer = "the server does not offer WebSockets over HTTP/2";
    let peers: [(&str, Serve, (&str, &str), &str); 7] = [
        (
            "no offer",
            |t| {
                send(t, SETTINGS, 0, 0, &[])?;
                t.read_to_end(&mut Vec::new()).ok()?;
                Some(())
            },
            ("websocket_protocol", "waiting"),
            no_offer,
        ),
        (
            "an offer of 0",
            |t| {
                send(t, SETTINGS, 0, 0, &[0, 8, 0, 0, 0, 0])?;
                t.read_to_end(&mut Vec::new()).ok()?;
                Some(())
            },
            ("websocket_protocol", "waiting"),
            no_offer,
        ),
        (
            "a refusal",
            |t| {
                send(t, SETTINGS, 0, 0, OFFER)?;
                let id = until(t, HEADERS)?.2;
                send(t, HEADERS, END_HEADERS | END_STREAM, id, NOT_FOUND)
            },
            ("unexpected_status", "receiving"),
            "",
        ),
        (
            "an end at once",
            |t| {
                send(t, SETTINGS, 0, 0, OFFER)?;
                let id = until(t, HEADERS)?.2;
                send(t, HEADERS, END_HEADERS | END_STREAM, id, OK)
            },
            ("http_protocol", "waiting"),
            "tunnel that ends at once",
        ),
        (
            "a reset",
            |t| {
                send(t, SETTINGS, 0, 0, OFFER)?;
                let id = until(t, HEADERS)?.2;
                send(t, RST_STREAM, 0, id, &[0, 0, 0, 2])
            },
            ("stream_reset", "waiting"),
            "INTERNAL_ERROR",
        ),
        (
            "a subprotocol that was not offered",
            |t| {
                send(t, SETTINGS, 0, 0, OFFER)?;
                let id = until(t, HEADERS)?.2;
                let block = [OK, &[0, 22], b"sec-websocket-protocol", &[1, b'x']].concat();
                send(t, HEADERS, END_HEADERS, id, &block)?;
                t.read_to_end(&mut Vec::new()).ok()?;
                Some(())
            },
            ("websocket_protocol", "receiving"),
            "the subprotocol `x`",
        ),
        (
            "a close of the connection",
            |t| {
                send(t, SETTINGS, 0, 0, OFFER)?;
                until(t, HEADERS).map(drop)
            },
            ("connection_closed", "waiting"),
            "",
        ),
    ];
    for (what, serve, (cause, phase), text) in peers {
        let server = Scripted::start(serve);
        // Attempts go on to the end, each after a longer pause; all end in the same way.
        let ended =
            run(&["ws", "--http", "2", "-c", "1", "-d", "1s", "--receive", "--no-reopen", &server.url()]);
        let (own_cause, own_phase, count, example) = failure(&ended);
        assert_eq!((own_cause.as_str(), own_phase.as_str()), (cause, phase), "{what}: {ended:#?}");
        assert!(count >= 1 && example.contains(text), "{what}: `{example}` {ended:#?}");
        assert_eq!(ended.count("/totals/idle_connections/opened"), 0, "{what}");
    }
}

#[test]
fn each_end_of_an_open_stream_has_its_reason() {
    type Serve = fn(&mut TcpStream) -> Option<()>;
    let peers: [(&str, u64, &str, &str, Serve); 5] = [
        ("neither", 1006, "closed without a close frame", "closed_by_server", |t| {
            let id = accept(t)?;
            send(t, DATA, END_STREAM, id, &[])?;
            until(t, RST_STREAM).map(drop)
        }),
        ("neither", 1006, "the server reset the stream (CANCEL)", "reset", |t| {
            let id = accept(t)?;
            send(t, RST_STREAM, 0, id, &[0, 0, 0, 8])
        }),
        ("server", 1013, "later", "closed_by_server", |t| {
            let id = accept(t)?;
            send(t, DATA, 0, id, b"\x88\x07\x03\xf5later")?;
            // The answer, and the end of the stream behind it.
            let (_, mut flags, _, close) = until(t, DATA)?;
            assert_eq!((close[0], close.len()), (0x88, 8));
            while flags & END_STREAM == 0 {
                flags = until(t, DATA)?.1;
            }
            send(t, DATA, END_STREAM, id, &[])
        }),
        ("squall", 1002, "a frame from the server is masked", "broken", |t| {
            let id = accept(t)?;
            send(t, DATA, 0, id, &[0x81, 0x81, 1, 2, 3, 4, 5])?;
            until(t, DATA).map(drop)
        }),
        // A frame in pieces of all sizes, with the end of the connection behind it.
        ("neither", 1006, "the server closed the connection", "closed_by_server", |t| {
            let id = accept(t)?;
            for byte in b"\x81\x05hello" {
                send(t, DATA, 0, id, &[*byte])?;
            }
            Some(())
        }),
    ];
    for (by, code, reason, counter, serve) in peers {
        let server = Scripted::start(serve);
        let ended =
            run(&["ws", "--http", "2", "-c", "1", "-d", "500ms", "--receive", "--no-reopen", &server.url()]);
        assert_eq!(closes(&ended), [(by.to_owned(), code, reason.to_owned(), 1)], "{ended:#?}");
        assert_eq!(ended.count("/totals/idle_connections/opened"), 1);
        assert_eq!(ended.count(&format!("/totals/idle_connections/{counter}")), 1, "{ended:#?}");
    }
}

/// A server that goes away: what it has not processed is opened on another connection, the WebSockets that are open stay.
#[test]
fn a_server_that_goes_away_keeps_what_it_has_accepted() {
    let connection_count = AtomicU64::new(0);
    let server = Scripted::start(move |t| {
        let first = accept(t)?;
        if connection_count.fetch_add(1, Ordering::Relaxed) == 0 {
            let second = until(t, HEADERS)?.2;
            assert!(second > first);
            send(t, GOAWAY, 0, 0, &[first.to_be_bytes(), [0; 4]].concat())?;
        }
        loop {
            let (kind, _, id, payload) = read(t)?;
            if kind == DATA && !payload.is_empty() {
                // Unmasked: the same letters.
                let key = [payload[2], payload[3], payload[4], payload[5]];
                let text: Vec<u8> =
                    payload[6..].iter().zip(key.iter().cycle()).map(|(byte, key)| byte ^ key).collect();
                send(t, DATA, 0, id, &[&[0x81, text.len() as u8], &text[..]].concat())?;
            }
        }
    });
    let url = server.url();
    let args = [
        "ws",
        "--http",
        "2",
        "-c",
        "2",
        "--streams",
        "2",
        "--threads",
        "1",
        "--message",
        "ab",
        "-n",
        "20",
        "-d",
        "10s",
        &url,
    ];
    let ended = run(&args);
    let count = |name: &str| ended.count(&format!("/totals/{name}"));
    assert_eq!((count("failed"), count("idle_connections/opened")), (0, 2), "{ended:#?}");
    assert_eq!((count("connections_opened"), count("retries")), (2, 1), "{ended:#?}");
    assert_eq!((count("websockets/answered"), count("websockets/unanswered")), (20, 0), "{ended:#?}");
}

/// The server's windows hold messages back, as the buffer of a socket does.
#[test]
fn messages_wait_where_the_windows_are_closed() {
    let server = Scripted::start(|t| {
        // SETTINGS_INITIAL_WINDOW_SIZE = 1000.
        send(t, SETTINGS, 0, 0, &[OFFER, &[0, 4, 0, 0, 3, 0xe8]].concat())?;
        let id = until(t, HEADERS)?.2;
        send(t, HEADERS, END_HEADERS, id, OK)?;
        let mut bytes = 0;
        while bytes < 1000 {
            bytes += until(t, DATA)?.3.len();
        }
        assert_eq!(bytes, 1000, "no more than the window");
        send(t, WINDOW_UPDATE, 0, id, &500_u32.to_be_bytes())?;
        while bytes < 1500 {
            bytes += until(t, DATA)?.3.len();
        }
        assert_eq!(bytes, 1500, "no more than the window");
        send(t, DATA, END_STREAM, id, b"\x88\x05\x03\xe9gut")?;
        until(t, RST_STREAM).map(drop)
    });
    let url = server.url();
    let args = ["ws", "--http", "2", "-c", "1", "--size", "1MiB", "--no-reopen", "-d", "500ms", &url];
    let ended = run(&args);
    assert_eq!(closes(&ended), [("server".to_owned(), 1001, "gut".to_owned(), 1)], "{ended:#?}");
    assert_eq!(ended.count("/totals/websockets/unanswered"), 1, "{ended:#?}");
}
