//! Recorded WebSockets that are replayed: what the client said is said again, in the recorded order, and what the server does otherwise is a
//! failure with its cause.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::squall::{self, Ended};
use crate::traffic::{Serving, path};
use crate::websockets::{Scripted, closes, frame, read_frame};

/// Writes a HAR with one WebSocket: milliseconds after its opening, who sent it, and the text of each message.
fn write_har(path: &str, messages: &[(u64, &str, &str)]) {
    let message = |(at_ms, by, text): &(u64, &str, &str)| {
        let time = 1_714_557_600.0 + *at_ms as f64 / 1000.0;
        json!({"type": by, "time": time, "opcode": 1, "data": text})
    };
    let messages: Vec<Value> = messages.iter().map(message).collect();
    let entry = json!({
        "startedDateTime": "2024-05-01T10:00:00.000Z",
        "time": 0,
        "request": {"method": "GET", "url": "ws://chat.example/room", "httpVersion": "HTTP/1.1", "headers": [
            {"name": "Sec-WebSocket-Key", "value": "k"},
            {"name": "Sec-WebSocket-Protocol", "value": "chat, superchat"},
            {"name": "Cookie", "value": "sid=1"},
        ]},
        "response": {"status": 101, "headers": []},
        "_webSocketMessages": messages,
    });
    fs::write(path, json!({"log": {"entries": [entry]}}).to_string()).unwrap();
}

fn messages(ended: &Ended, name: &str) -> u64 {
    ended.count(&format!("/totals/websockets/{name}"))
}

/// How many messages a target has received and sent.
fn target_counts(target: &Serving) -> (u64, u64) {
    let mut stream = TcpStream::connect(target.url.trim_start_matches("http://")).unwrap();
    stream.write_all(b"GET /stats HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let stats: Value = serde_json::from_str(answer.split("\r\n\r\n").nth(1).unwrap()).unwrap();
    let of = |name: &str| stats[name].as_u64().unwrap();
    (of("messages_received"), of("messages_sent"))
}

#[test]
fn recorded_websockets_say_again_what_their_clients_said() {
    let folder = TempDir::new().unwrap();
    let recording = path(&folder, "r.squall");
    let target = Serving::start(&["target"], folder.path());
    let proxy = Serving::start(&["record", &recording, "--to", &target.url], folder.path());
    let url = format!("{}/ws/echo", proxy.url.replace("http://", "ws://"));
    let sent = squall::run(&["ws", "-c", "3", "-n", "30", "--message", "hi", "--compress", &url]);
    assert_eq!(messages(&sent, "answered"), 30, "{sent:#?}");
    proxy.stop();
    assert_eq!(target_counts(&target), (30, 30));
    let played = squall::run(&["replay", &recording, "--users", "2", "--user-shift", "10ms"]);
    assert_eq!(target_counts(&target), (90, 90), "{played:#?}");
    for name in ["messages_asked", "messages_sent", "messages_received", "answered"] {
        assert_eq!(messages(&played, name), 60, "{name}: {played:#?}");
    }
    assert_eq!((messages(&played, "unanswered"), played.count("/totals/ok")), (0, 6));
    assert_eq!(closes(&played), [("squall".to_owned(), 1000, String::new(), 6)]);
    assert_eq!(played.count("/totals/websockets/latency_us/count"), 60);
    assert_eq!(played.count("/totals/replay/same"), 6);
    // All at once: nothing but answers is waited for.
    let played = squall::run(&["replay", &recording, "--asap", "-c", "1"]);
    assert_eq!((messages(&played, "answered"), played.count("/totals/ok")), (30, 3), "{played:#?}");
    assert_eq!(target_counts(&target), (120, 120));
    assert!(played.json().pointer("/totals/websockets/service_us").unwrap().is_null());
}

#[test]
fn messages_of_a_har_wait_for_the_answers_that_came_before_them() {
    let folder = TempDir::new().unwrap();
    let har = path(&folder, "chat.har");
    let talk = [
        (10, "receive", "welcome"),
        (20, "send", "login"),
        (21, "send", "join"),
        (30, "receive", "ok"),
        (40, "send", "{\"text\":\"secret-1\"}"),
        (41, "receive", "sent"),
    ];
    write_har(&har, &talk);
    let heard = Arc::new(Mutex::new(Vec::new()));
    let own = Arc::clone(&heard);
    let server = Scripted::start(move |stream| {
        let hear = |stream: &mut TcpStream| {
            let (first, payload) = read_frame(stream).unwrap();
            own.lock().unwrap().push((first, String::from_utf8_lossy(&payload).into_owned()));
        };
        // Nothing may come before the greeting, nor more than two messages before their answer.
        stream.set_read_timeout(Some(std::time::Duration::from_millis(200))).unwrap();
        assert!(stream.read(&mut [0]).is_err(), "a message came before the greeting");
        stream.set_read_timeout(None).unwrap();
        stream.write_all(&frame(0x81, b"welcome")).unwrap();
        hear(stream);
        hear(stream);
        stream.write_all(&frame(0x81, b"ok")).unwrap();
        hear(stream);
        stream.write_all(&frame(0x81, b"sent")).unwrap();
        hear(stream);
        stream.write_all(&frame(0x88, b"\x03\xe8")).unwrap();
    });
    let to = format!("http://{}", server.address);
    let played = squall::run(&["replay", &har, "--to", &to, "--set-json", "/text=user {user}"]);
    let heard = heard.lock().unwrap().clone();
    let text = |text: &str| (0x81, text.to_owned());
    assert_eq!(heard[..3], [text("login"), text("join"), text("{\"text\":\"user 1\"}")], "{played:#?}");
    assert_eq!(heard[3], (0x88, "\u{3}\u{fffd}".to_owned()));
    assert_eq!((messages(&played, "messages_received"), messages(&played, "answered")), (3, 2));
    assert_eq!(played.count("/totals/ok"), 1);
}

#[test]
fn what_a_server_does_otherwise_is_a_failure_with_its_cause() {
    let folder = TempDir::new().unwrap();
    let har = path(&folder, "chat.har");
    write_har(&har, &[(10, "send", "a"), (11, "receive", "b"), (20, "send", "c"), (21, "receive", "d")]);
    type Serve = fn(&mut TcpStream);
    let peers: [(&str, &str, u64, Serve); 4] = [
        ("timeout", "squall", 1, |stream| drop(stream.read_to_end(&mut Vec::new()))),
        ("ended_early", "server", 1, |stream| {
            read_frame(stream).unwrap();
            stream.write_all(&frame(0x88, b"\x03\xf5later")).unwrap();
            let _ = stream.read_to_end(&mut Vec::new());
        }),
        ("connection_closed", "neither", 1, |stream| drop(read_frame(stream))),
        ("websocket_protocol", "neither", 1, |stream| {
            read_frame(stream).unwrap();
            stream.write_all(&frame(0x81, b"\xff\xfe")).unwrap();
            let _ = stream.read_to_end(&mut Vec::new());
        }),
    ];
    for (cause, by, sent_count, serve) in peers {
        let server = Scripted::start(serve);
        let to = format!("http://{}", server.address);
        let played = squall::run(&["replay", &har, "--to", &to, "--timeout", "300ms"]);
        let errors: Vec<_> = played.errors().into_iter().map(|(cause, _, count)| (cause, count)).collect();
        assert_eq!(errors, [(cause.to_owned(), 1)], "{played:#?}");
        assert_eq!(closes(&played)[0].0, by, "{played:#?}");
        let counts = ["messages_asked", "messages_sent", "unanswered"].map(|name| messages(&played, name));
        assert_eq!(counts, [2, sent_count, 1], "{played:#?}");
        assert_eq!((played.count("/totals/ok"), played.count("/totals/failed")), (0, 1));
    }
}

#[test]
fn a_mock_passes_websockets_on_that_are_not_recorded() {
    let folder = TempDir::new().unwrap();
    let har = path(&folder, "chat.har");
    write_har(&har, &[(10, "send", "a")]);
    let target = Serving::start(&["target"], folder.path());
    let pass = format!("--pass-through={}", target.url);
    let mock = Serving::start(&["mock", &har, &pass], folder.path());
    let url = format!("{}/ws/echo", mock.url.replace("http://", "ws://"));
    let sent = squall::run(&["ws", "-c", "2", "-n", "20", "--compress", &url]);
    assert_eq!((messages(&sent, "answered"), messages(&sent, "mismatched")), (20, 0), "{sent:#?}");
    assert_eq!(target_counts(&target), (20, 20));
}

#[test]
fn a_mock_names_the_version_of_websockets_that_it_speaks() {
    let folder = TempDir::new().unwrap();
    let har = path(&folder, "chat.har");
    write_har(&har, &[(10, "send", "a")]);
    let mock = Serving::start(&["mock", &har], folder.path());
    for (version, status, named) in [
        ("Sec-WebSocket-Version: 8\r\n", "426", true),
        ("", "426", true),
        ("Sec-WebSocket-Version: 13\r\n", "101", false),
    ] {
        let mut stream = TcpStream::connect(mock.url.trim_start_matches("http://")).unwrap();
        let key =
            "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
        write!(stream, "GET /room HTTP/1.1\r\nHost: chat.example\r\n{key}{version}\r\n").unwrap();
        let mut lines =
            BufReader::new(stream).lines().map(Result::unwrap).take_while(|line| !line.is_empty());
        let first = lines.next().unwrap();
        assert!(first.starts_with(&format!("HTTP/1.1 {status} ")), "{version:?}: {first}");
        assert_eq!(lines.any(|line| line == "sec-websocket-version: 13"), named, "{version:?}");
    }
}

#[test]
fn placeholders_in_messages_are_named_and_flawed_messages_refused() {
    let folder = TempDir::new().unwrap();
    let (har, masked) = (path(&folder, "chat.har"), path(&folder, "masked.squall"));
    write_har(&har, &[(10, "send", "{\"password\":\"hunter2hunter2\"}")]);
    let args = ["convert", &har, &masked, "--mask"];
    let converted = squall::start(&args).wait();
    assert_eq!(converted.code, Some(0), "{converted:#?}");
    let target = Serving::start(&["target"], folder.path());
    let replay = ["replay", &masked, "--to", &target.url, "--no-save", "--compare", "nothing"];
    let played = squall::start(&replay).wait();
    let place =
        "/password in the JSON of GET http://chat.example/room, in 1 request: --set-json '/password=VALUE'";
    assert!(played.stderr.contains(place), "{played:#?}");
    let set = [&replay[..], &["--set-json", "/password=x"]].concat();
    let played = squall::start(&set).wait();
    assert!(!played.stderr.contains("redacted"), "{played:#?}");
    let text = fs::read_to_string(&har).unwrap().replace("\"opcode\":1", "\"opcode\":3");
    fs::write(&har, text).unwrap();
    let refused = squall::start(&["replay", &har, "--to", &target.url]).wait();
    assert_eq!(refused.code, Some(2), "{refused:#?}");
    assert!(refused.stderr.contains("a WebSocket message with the opcode 3"), "{refused:#?}");
}
