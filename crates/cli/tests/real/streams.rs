//! Streams: times and counts are those of a server that knows them.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use squall_server::{Options, Target, Tls};
use tempfile::TempDir;

use crate::squall::{quiet_machine, run, start_alone, with_json};
use crate::traffic::{Serving, path};

/// Serves each request with `serve` on a connection of its own; the heads of the requests, and their bodies' first line.
fn serve(serve: impl Fn(&mut TcpStream, usize) + Send + Sync + 'static) -> (String, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let (heads, received) = channel();
    let serve = std::sync::Arc::new(serve);
    thread::spawn(move || {
        for (nth, stream) in listener.incoming().enumerate() {
            let (Ok(mut stream), heads, serve) = (stream, heads.clone(), std::sync::Arc::clone(&serve))
            else {
                return;
            };
            thread::spawn(move || {
                stream.set_nodelay(true).unwrap();
                let mut head = String::new();
                let mut reader = BufReader::new(stream.try_clone().unwrap());
                while !head.ends_with("\r\n\r\n") && reader.read_line(&mut head).is_ok_and(|count| count > 0)
                {
                }
                if heads.send(head).is_ok() {
                    serve(&mut stream, nth);
                }
            });
        }
    });
    (url, received)
}

fn event_stream(stream: &mut TcpStream) {
    stream
        .write_all(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n")
        .unwrap();
}

#[test]
fn first_events_and_gaps_are_those_of_the_server() {
    let _quiet = quiet_machine();
    let (url, _heads) = serve(|stream, _| {
        event_stream(stream);
        thread::sleep(Duration::from_millis(50));
        for nth in 0..5 {
            let _ = write!(stream, "data: {nth}\n\n");
            thread::sleep(Duration::from_millis(20));
        }
        let _ = stream.write_all(b"data: [DONE]\n\n");
    });
    let args =
        ["stream", "-n", "20", "-c", "2", "--done", "[DONE]", "--slo", "first<60ms,gap:max<15ms", &url];
    let ended = start_alone(&with_json(&args)).wait();
    let count = |name: &str| ended.count(&format!("/totals/streams/{name}"));
    assert_eq!((count("opened"), count("events"), count("ended_early")), (20, 120, 0), "{ended:#?}");
    assert_eq!((count("judged"), count("good")), (20, 0), "{ended:#?}");
    let time = |name: &str| ended.number(&format!("/totals/streams/{name}"));
    assert!((50_000.0..53_000.0).contains(&time("first_event_us/min")), "{ended:#?}");
    assert!((20_000.0..22_000.0).contains(&time("event_gap_us/p50")), "{ended:#?}");
    ended.assert_all_counted();
}

#[test]
fn streams_that_end_early_fall_silent_or_send_too_much_fail_with_a_cause() {
    let (url, _heads) = serve(|stream, nth| {
        event_stream(stream);
        let _ = stream.write_all(b"data: 1\n\n");
        if nth == 1 {
            thread::sleep(Duration::from_secs(5));
        }
    });
    let ended = run(&["stream", "-n", "2", "-c", "1", "--done", "[DONE]", "--timeout", "300ms", &url]);
    let mut causes: Vec<String> = ended.errors().into_iter().map(|(cause, _, _)| cause).collect();
    causes.sort();
    assert_eq!(causes, ["ended_early", "timeout"], "{ended:#?}");
    assert_eq!(ended.count("/totals/streams/ended_early"), 2);
    let (url, _heads) = serve(|stream, _| {
        event_stream(stream);
        let part = vec![b'x'; 1 << 20];
        while stream.write_all(&part).is_ok() {}
    });
    let ended = run(&["stream", "-n", "1", "-c", "1", &url]);
    assert_eq!(ended.errors()[0].0, "message_too_large", "{ended:#?}");
    assert!(ended.rss_bytes < 300 << 20, "bounded memory: {}", ended.rss_bytes);
}

#[test]
fn a_stream_that_ends_is_opened_again_where_it_ended() {
    let (url, heads) = serve(|stream, nth| {
        event_stream(stream);
        let _ = write!(stream, "retry: 100\n\nid: {nth}\ndata: x\n\n");
    });
    let ended = run(&["stream", "-c", "1", "-d", "1s", "--reconnect", &url]);
    let heads: Vec<String> = heads.try_iter().collect();
    let opened = ended.count("/totals/streams/opened");
    assert!((5..=10).contains(&opened) && opened == heads.len() as u64, "{ended:#?}");
    assert_eq!(ended.count("/totals/streams/reconnects"), opened - 1);
    assert!(!heads[0].contains("Last-Event-ID"), "{heads:?}");
    for (nth, head) in heads.iter().enumerate().skip(1) {
        assert!(head.contains(&format!("Last-Event-ID: {}\r\n", nth - 1)), "{head}");
    }
}

#[test]
fn the_last_id_and_the_retry_time_outlive_streams_and_failures() {
    let (url, heads) = serve(|stream, nth| match nth {
        0 => {
            event_stream(stream);
            let _ = write!(stream, "retry: 50\n\nid: 42\ndata: x\n\n");
        }
        // This one closes the connection before the head.
        2 => {}
        3 => drop(stream.write_all(b"HTTP/1.1 503 \r\nContent-Length: 0\r\nConnection: close\r\n\r\n")),
        _ => {
            event_stream(stream);
            let _ = write!(stream, "data: x\n\n");
        }
    });
    let ended = run(&["stream", "-c", "1", "-n", "6", "--reconnect", &url]);
    let heads: Vec<String> = heads.try_iter().collect();
    assert_eq!(ended.assert_all_counted(), 6, "{ended:#?}");
    assert_eq!(ended.count("/totals/streams/reconnects"), 5);
    for head in &heads[1..] {
        assert!(head.contains("Last-Event-ID: 42\r\n"), "{head}");
    }
    let took_s = ended.number("/duration_s");
    assert!((0.25..2.5).contains(&took_s), "five pauses of 50 ms each: {took_s} s");
}

#[test]
fn an_answer_that_is_no_stream_fails_and_has_not_ended_early() {
    for status in ["500 Internal Server Error", "302 Found\r\nLocation: /elsewhere"] {
        let answer = format!("HTTP/1.1 {status}\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno");
        let (url, _heads) = serve(move |stream, _| drop(stream.write_all(answer.as_bytes())));
        let ended = run(&["stream", "-n", "6", "-c", "2", &url]);
        assert_eq!(ended.errors()[0].0, "unexpected_status", "{ended:#?}");
        assert_eq!((ended.assert_all_counted(), ended.count("/totals/failed")), (6, 6), "{ended:#?}");
        let count = |name: &str| ended.count(&format!("/totals/streams/{name}"));
        assert_eq!((count("opened"), count("ended_early")), (0, 0), "{ended:#?}");
        let ended = run(&["stream", "-n", "2", "-c", "1", "--expect-status", "302,500", &url]);
        assert_eq!(ended.count("/totals/ok"), 2, "{ended:#?}");
    }
}

#[test]
fn a_stream_with_a_content_coding_is_none_whose_events_can_be_read() {
    for rest in ["Content-Length: 4\r\n", ""] {
        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Encoding: gzip\r\n";
        let answer = format!("{head}{rest}Connection: close\r\n\r\n\x1f\x08..");
        let (url, _heads) = serve(move |stream, _| {
            let _ = stream.write_all(answer.as_bytes());
            // It ends when the client leaves.
            let _ = stream.read_to_end(&mut Vec::new());
        });
        let ended = run(&["stream", "-n", "2", "-c", "1", "--timeout", "20s", &url]);
        let json = ended.json();
        let example = json.pointer("/errors/0/example").and_then(|text| text.as_str().map(str::to_owned));
        assert_eq!((ended.assert_all_counted(), ended.count("/totals/failed")), (2, 2), "{ended:#?}");
        assert!(example.is_some_and(|text| text.contains("`Content-Encoding`")), "{ended:#?}");
        let count = |name: &str| ended.count(&format!("/totals/streams/{name}"));
        assert_eq!((count("opened"), count("ended_early"), count("events")), (0, 0, 0), "{ended:#?}");
        let ended = run(&["stream", "-n", "2", "-c", "1", "--events", "pieces", "--hold", "100ms", &url]);
        assert_eq!((ended.count("/totals/ok"), ended.count("/totals/streams/opened")), (2, 2), "{ended:#?}");
    }
}

#[test]
fn streams_open_at_the_end_are_closed_and_held_ones_are_whole() {
    let endless = |stream: &mut TcpStream, _| {
        event_stream(stream);
        while stream.write_all(b"data: x\n\n").is_ok() {
            thread::sleep(Duration::from_millis(10));
        }
    };
    let (url, _heads) = serve(endless);
    let ended = run(&["stream", "-c", "3", "-d", "500ms", &url]);
    assert_eq!((ended.assert_all_counted(), ended.count("/totals/interrupted")), (3, 3), "{ended:#?}");
    assert_eq!(ended.count("/totals/streams/closed_by_us"), 3);
    let ended = run(&["stream", "-c", "3", "-n", "6", "--hold", "200ms", &url]);
    assert_eq!((ended.assert_all_counted(), ended.count("/totals/ok")), (6, 6), "{ended:#?}");
}

#[test]
fn a_stream_whose_first_event_comes_after_the_end_of_the_load_is_closed_then() {
    let (url, _heads) = serve(|stream, _| {
        event_stream(stream);
        thread::sleep(Duration::from_millis(600));
        while stream.write_all(b"data: 1\n\n").is_ok() {
            thread::sleep(Duration::from_millis(20));
        }
    });
    let ended = run(&["stream", "-c", "2", "-d", "300ms", "--timeout", "20s", &url]);
    let count = |name: &str| ended.count(&format!("/totals/streams/{name}"));
    assert_eq!((count("opened"), count("closed_by_us"), count("ended_early")), (2, 2, 0), "{ended:#?}");
    ended.assert_all_counted();
}

/// Loads with a name of the version, and what makes four streams share a connection.
const VERSIONS: [(&str, &[&str]); 3] = [("1.1", &[]), ("2", &["--streams", "4"]), ("3", &["--streams", "4"])];

fn secure_target() -> Target {
    let tls = Some(Tls::SelfMade { names: Vec::new() });
    Target::start(&Options { tls, http3: true, ..Options::default() }).unwrap()
}

#[test]
fn streams_count_the_same_over_each_version_and_share_connections() {
    let target = secure_target();
    let url = format!("https://{}/sse?count=5&interval=5ms&end=[DONE]", target.address());
    for (http, streams) in VERSIONS {
        let args = ["stream", "--insecure", "--http", http, "-c", "2", "-n", "24", "--threads", "1"];
        let judged = ["--done", "[DONE]", "--slo", "first<20s,events>=6", &url];
        let ended = run(&[&args[..], streams, &judged].concat());
        let counts = ["opened", "events", "ended_early", "judged", "good"]
            .map(|name| ended.count(&format!("/totals/streams/{name}")));
        assert_eq!(counts, [24, 24 * 6, 0, 24, 24], "HTTP/{http} {ended:#?}");
        assert_eq!(
            (ended.assert_all_counted(), ended.count("/totals/ok")),
            (24, 24),
            "HTTP/{http} {ended:#?}"
        );
        assert_eq!(ended.count("/totals/connections_opened"), 2, "HTTP/{http} {ended:#?}");
    }
}

#[test]
fn streams_go_on_where_they_were_over_each_version() {
    let target = secure_target();
    let url = format!("https://{}/sse?count=3&interval=1ms&retry=20ms", target.address());
    for (http, _) in VERSIONS {
        let args = ["stream", "--insecure", "--http", http, "-c", "1", "-n", "4", "--reconnect", &url];
        let ended = run(&args);
        let counts =
            ["opened", "events", "reconnects"].map(|name| ended.count(&format!("/totals/streams/{name}")));
        // The first one gets all events: the target sends what follows the last id, which none of the others replaces.
        assert_eq!(counts, [4, 3, 3], "HTTP/{http} {ended:#?}");
    }
}

#[test]
fn a_stream_that_is_held_ends_alone_where_others_share_its_connection() {
    let target = secure_target();
    let url = format!("https://{}/sse?count=100000&interval=10ms", target.address());
    for (http, streams) in &VERSIONS[1..] {
        let args = ["stream", "--insecure", "--http", http, "-c", "1", "-n", "8", "--threads", "1"];
        let ended = run(&[&args[..], streams, &["--hold", "100ms", &url]].concat());
        assert_eq!((ended.assert_all_counted(), ended.count("/totals/ok")), (8, 8), "HTTP/{http} {ended:#?}");
        assert_eq!(ended.count("/totals/connections_opened"), 1, "HTTP/{http} {ended:#?}");
    }
}

#[test]
fn a_recorded_stream_that_its_client_left_is_left_again() {
    let folder = TempDir::new().unwrap();
    let recording = path(&folder, "r.squall");
    let target = Serving::start(&["target"], folder.path());
    let proxy = Serving::start(&["record", &recording, "--to", &target.url], folder.path());
    let endless = format!("{}/sse?count=100000&interval=20ms", proxy.url);
    let whole = format!("{}/sse?count=3&interval=5ms", proxy.url);
    let sent = run(&["stream", "-n", "2", "-c", "2", "--hold", "400ms", &endless, &whole]);
    assert_eq!(sent.count("/totals/ok"), 2, "{sent:#?}");
    let event_count = sent.count("/totals/streams/events");
    proxy.stop();
    for pace in [&[][..], &["--asap", "-c", "1"]] {
        let played = run(&[&["replay", &recording, "--timeout", "20s"], pace].concat());
        let count = |name: &str| played.count(&format!("/totals/{name}"));
        assert_eq!((count("ok"), count("failed"), count("replay/same")), (2, 0, 2), "{played:#?}");
        assert_eq!((count("streams/opened"), count("streams/ended_early")), (2, 0), "{played:#?}");
        assert!(count("streams/events") >= event_count, "{event_count} {played:#?}");
    }
}
