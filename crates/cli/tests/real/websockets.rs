//! WebSockets: what squall counts is what the server has seen, what a bad peer does has a reason of its own, and latencies are those of a
//! server that knows them.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

use std::collections::HashSet;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use serde_json::Value;
use squall_wire::ws::handshake;
use tempfile::TempDir;

use crate::squall::{Ended, quiet_machine, run, start_alone, with_json};

/// A server of WebSockets that does with each connection what the test says, after the opening handshake.
pub(crate) struct Scripted {
    pub(crate) address: SocketAddr,
    opened_count: Arc<AtomicU64>,
    /// The `Sec-WebSocket-Key` of each opening handshake.
    keys: Arc<Mutex<Vec<String>>>,
    is_over: Arc<AtomicBool>,
}

impl Scripted {
    pub(crate) fn start(serve: impl Fn(&mut TcpStream) + Send + Sync + 'static) -> Self {
        Self::with_fields("", serve)
    }

    /// With more lines in its answer to the opening handshake.
    fn with_fields(fields: &'static str, serve: impl Fn(&mut TcpStream) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (opened_count, is_over) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
        let keys = Arc::new(Mutex::new(Vec::new()));
        let own_keys = Arc::clone(&keys);
        let (opened, over, serve) = (Arc::clone(&opened_count), Arc::clone(&is_over), Arc::new(serve));
        thread::spawn(move || {
            for stream in listener.incoming() {
                if over.load(Ordering::Relaxed) {
                    return;
                }
                let (Ok(mut stream), serve, opened) = (stream, Arc::clone(&serve), Arc::clone(&opened))
                else {
                    continue;
                };
                let keys = Arc::clone(&own_keys);
                thread::spawn(move || {
                    let Some(key) = read_head(&mut stream) else { return };
                    let accepted = accepted(&key).replace("\r\n\r\n", &format!("\r\n{fields}\r\n"));
                    keys.lock().unwrap().push(key);
                    if stream.write_all(accepted.as_bytes()).is_ok() {
                        opened.fetch_add(1, Ordering::Relaxed);
                        serve(&mut stream);
                    }
                });
            }
        });
        Self { address, opened_count, keys, is_over }
    }

    fn url(&self) -> String {
        format!("ws://{}/", self.address)
    }
}

impl Drop for Scripted {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        let _ = TcpStream::connect(self.address);
    }
}

/// The key of an opening handshake.
fn read_head(stream: &mut TcpStream) -> Option<String> {
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte).ok()?;
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).ok()?;
    head.lines().find_map(|line| line.strip_prefix("Sec-WebSocket-Key: ")).map(str::to_owned)
}

/// A masked frame of less than 126 bytes: its first byte, and its payload.
pub(crate) fn read_frame(stream: &mut TcpStream) -> Option<(u8, Vec<u8>)> {
    let mut head = [0; 6];
    stream.read_exact(&mut head).ok()?;
    assert!(head[1] & 0x80 != 0, "a client masks its frames");
    let mut payload = vec![0; usize::from(head[1] & 0x7f)];
    stream.read_exact(&mut payload).ok()?;
    payload.iter_mut().zip(head[2..].iter().cycle()).for_each(|(byte, key)| *byte ^= key);
    Some((head[0], payload))
}

/// An unmasked frame of less than 126 bytes.
pub(crate) fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    [&[first, payload.len() as u8], payload].concat()
}

/// How connections were closed: by whom, with which code, for which reason, how often.
pub(crate) fn closes(ended: &Ended) -> Vec<(String, u64, String, u64)> {
    let json = ended.json();
    let rows = json.pointer("/totals/websockets/closes").and_then(Value::as_array).unwrap().clone();
    let text = |row: &Value, key: &str| row[key].as_str().unwrap().to_owned();
    let row = |row: &Value| {
        (text(row, "by"), row["code"].as_u64().unwrap(), text(row, "reason"), row["count"].as_u64().unwrap())
    };
    rows.iter().map(row).collect()
}

#[test]
fn each_wrong_of_a_server_has_a_reason_of_its_own() {
    let large = |stream: &mut TcpStream| {
        let _ = stream.write_all(&[0x82, 127, 0, 0, 0, 0, 0x10, 0, 0, 0]);
        let part = vec![0; 1 << 20];
        while stream.write_all(&part).is_ok() {}
    };
    type Serve = fn(&mut TcpStream);
    let peers: [(&str, u64, &str, Serve); 8] = [
        ("squall", 1002, "a frame from the server is masked", |stream| {
            send(stream, &[0x81, 0x81, 1, 2, 3, 4, 5]);
        }),
        ("squall", 1007, "text is not valid UTF-8", |stream| send(stream, &frame(0x81, b"\xff\xfe"))),
        ("squall", 1002, "a frame has reserved bits that no extension uses", |stream| {
            send(stream, &frame(0xc1, b"x"));
        }),
        ("squall", 1002, "a frame has the reserved opcode 3", |stream| send(stream, &frame(0x83, b"x"))),
        ("squall", 1002, "a close frame has the invalid code 1005", |stream| {
            send(stream, &frame(0x88, &[3, 0xed]));
        }),
        ("server", 1013, "later", |stream| send(stream, &frame(0x88, b"\x03\xf5later"))),
        ("server", 1005, "", |stream| send(stream, &frame(0x88, b""))),
        ("neither", 1006, "closed without a close frame", |_| {}),
    ];
    for (by, code, reason, serve) in peers {
        let server = Scripted::start(serve);
        let ended = run(&["ws", "-c", "1", "-d", "500ms", "--receive", "--no-reopen", &server.url()]);
        assert_eq!(closes(&ended), [(by.to_owned(), code, reason.to_owned(), 1)], "{ended:#?}");
        assert_eq!(ended.count("/totals/idle_connections/opened"), 1);
    }
    let server = Scripted::start(large);
    let ended = run(&["ws", "-c", "1", "-d", "3s", "--receive", "--no-reopen", &server.url()]);
    let reason = "a message is larger than 67108864 bytes".to_owned();
    assert_eq!(closes(&ended), [("squall".to_owned(), 1009, reason, 1)], "{ended:#?}");
    assert!(ended.rss_bytes < 400 << 20, "bounded memory: {}", ended.rss_bytes);
}

/// What a server can send at next to no cost, or without end, has a reason of its own and a bound in memory.
#[test]
fn what_would_fill_the_memory_is_refused() {
    let mut bomb = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::fast());
    (0..80).for_each(|_| bomb.write_all(&vec![0; 1 << 20]).unwrap());
    let bomb = bomb.finish().unwrap();
    assert!(bomb.len() < 1 << 20, "{}", bomb.len());
    let bomb = [&[0xc2, 127][..], &(bomb.len() as u64).to_be_bytes(), &bomb].concat();
    let endless = |first: Vec<u8>, part: Vec<u8>| {
        move |stream: &mut TcpStream| {
            let _ = stream.write_all(&first);
            while stream.write_all(&part).is_ok() {}
        }
    };
    let fragment = [&[0, 126, 0x40, 0][..], &[b'.'; 1 << 14]].concat();
    let deflate = "Sec-WebSocket-Extensions: permessage-deflate\r\n";
    for (server, reason) in [
        (Scripted::with_fields(deflate, move |stream| send(stream, &bomb)), "67108864"),
        (Scripted::start(endless(frame(2, b""), fragment)), "67108864"),
        // Answers that nobody reads.
        (Scripted::start(endless(Vec::new(), frame(0x89, &[b'.'; 125]).repeat(100))), "65536"),
    ] {
        let args = ["ws", "-c", "1", "-d", "6s", "--receive", "--no-reopen", "--compress", &server.url()];
        let ended = run(&args);
        let reason = format!("a message is larger than {reason} bytes");
        assert_eq!(closes(&ended), [("squall".to_owned(), 1009, reason, 1)], "{ended:#?}");
        assert!(ended.rss_bytes < 400 << 20, "bounded memory: {}", ended.rss_bytes);
    }
}

/// A server that reads nothing: what the schedule asks for is not put together before its socket takes it.
#[test]
fn messages_for_a_server_that_does_not_read_take_no_memory() {
    let server = Scripted::start(|_| thread::sleep(Duration::from_secs(60)));
    let load = ["-c", "2", "-d", "2s", "-r", "1000/s", "--size", "1MiB", "--timeout", "500ms"];
    let ended = run(&[&["ws", &server.url()], &load[..]].concat());
    let count = |name: &str| ended.count(&format!("/totals/websockets/{name}"));
    assert_eq!((count("answered"), count("messages_asked")), (0, count("unanswered")), "{ended:#?}");
    let closed_count: u64 = closes(&ended).iter().map(|(.., count)| count).sum();
    assert_eq!(closed_count, ended.count("/totals/idle_connections/opened"), "{ended:#?}");
    assert!(ended.rss_bytes < 200 << 20, "bounded memory: {}", ended.rss_bytes);
}

fn send(stream: &mut TcpStream, bytes: &[u8]) {
    stream.write_all(bytes).unwrap();
    // What comes back is squall's close frame.
    let _ = stream.read_to_end(&mut Vec::new());
}

#[test]
fn a_wrong_answer_to_the_opening_handshake_is_a_failure() {
    for (answer, cause) in [
        ("HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n", "unexpected_status"),
        (&accepted("dGhlIHNhbXBsZSBub25jZQ=="), "websocket_protocol"),
        (
            &accepted("KEY").replace("\r\n\r\n", "\r\nSec-WebSocket-Protocol: chat\r\n\r\n"),
            "websocket_protocol",
        ),
        (&accepted("KEY").replace("websocket", "h2c"), "websocket_protocol"),
        (&accepted("KEY").replace("Connection: Upgrade\r\n", ""), "websocket_protocol"),
        (
            &accepted("KEY").replace("Connection: Upgrade", "Connection: upgraded, keep-alive"),
            "websocket_protocol",
        ),
    ] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("ws://{}/", listener.local_addr().unwrap());
        let answer = answer.to_owned();
        thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let key = read_head(&mut stream).unwrap();
            let answer = answer.replace(&handshake::accept("KEY"), &handshake::accept(&key));
            stream.write_all(answer.as_bytes()).unwrap();
            thread::sleep(Duration::from_secs(2));
        });
        let ended = run(&["ws", "-c", "1", "-d", "300ms", "--no-reopen", &url]);
        let (found, _, _) = &ended.errors()[0];
        assert_eq!(found, cause, "{ended:#?}");
        assert_eq!(ended.count("/totals/ok"), 0);
    }
}

#[test]
fn messages_are_templates_and_an_echo_is_that_of_what_was_sent() {
    let folder = TempDir::new().unwrap();
    let table = folder.path().join("users.csv");
    std::fs::write(&table, "name\nann\nbob\ncleo\n").unwrap();
    let heard = Arc::new(Mutex::new(Vec::new()));
    let own = Arc::clone(&heard);
    let server = Scripted::start(move |stream| {
        while let Some((0x81, payload)) = read_frame(stream) {
            own.lock().unwrap().push(serde_json::from_slice::<Value>(&payload).unwrap());
            stream.write_all(&frame(0x81, &payload)).unwrap();
        }
    });
    let message = r#"{"user":{user},"name":"{csv.name}","id":{unique},"at":"{stamp}"}"#;
    let args = ["ws", "-c", "3", "-n", "30", "--threads", "2", "--message", message, "--csv"];
    let ended = run(&[&args[..], &[table.to_str().unwrap(), &server.url()]].concat());
    let count = |name: &str| ended.count(&format!("/totals/websockets/{name}"));
    assert_eq!((count("answered"), count("mismatched")), (30, 0), "{ended:#?}");
    assert!(!ended.stdout.contains("cleo"), "a table may have secrets: {ended:#?}");
    let heard = heard.lock().unwrap().clone();
    let bytes: usize = heard.iter().map(|one| one.to_string().len()).sum();
    assert_eq!((heard.len(), bytes as u64), (30, count("bytes_sent")), "{heard:?}");
    assert_eq!(heard.iter().map(|one| one["id"].as_u64().unwrap()).collect::<HashSet<_>>().len(), 30);
    for one in &heard {
        let user = one["user"].as_u64().unwrap() as usize;
        assert_eq!(one["name"], ["ann", "bob", "cleo"][user - 1], "{one}");
        assert_eq!(one["at"].as_str().unwrap().len(), 24, "{one}");
    }
}

#[test]
fn an_echo_of_another_message_is_a_mismatch_where_each_differs() {
    let server = Scripted::start(|stream| {
        while let Some((0x81, _)) = read_frame(stream) {
            stream.write_all(&frame(0x81, b"m1")).unwrap();
        }
    });
    let ended = run(&["ws", "-c", "1", "-n", "5", "--message", "m{unique}", &server.url()]);
    let count = |name: &str| ended.count(&format!("/totals/websockets/{name}"));
    assert_eq!((count("answered"), count("mismatched")), (5, 4), "{ended:#?}");
}

#[test]
fn each_connection_has_a_key_of_its_own() {
    let server = Scripted::start(|stream| {
        let _ = read_frame(stream);
    });
    // Each closes after a message, and is opened again.
    let ended = run(&["ws", "-c", "3", "-d", "500ms", "--receive", "--storm", "100ms", &server.url()]);
    let keys = server.keys.lock().unwrap().clone();
    assert!(keys.len() > 6, "{ended:#?}");
    assert!(keys.iter().all(|key| handshake::is_key(key)), "{keys:?}");
    assert_eq!(keys.iter().collect::<HashSet<_>>().len(), keys.len(), "{keys:?}");
    let row = ended.json();
    let url = row.pointer("/rows/0/url").and_then(Value::as_str).unwrap_or_default();
    assert!(url.starts_with("ws://127.0.0.1:"), "{url}: {ended:#?}");
}

/// A server that opens one of its connections late.
#[test]
fn what_is_published_reaches_also_who_is_opened_last() {
    let members = Arc::new(Mutex::new(Vec::<TcpStream>::new()));
    let late = Arc::new(AtomicBool::new(true));
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("ws://{}/", listener.local_addr().unwrap());
    thread::spawn(move || {
        for stream in listener.incoming() {
            let (Ok(mut stream), members, late) = (stream, Arc::clone(&members), Arc::clone(&late)) else {
                return;
            };
            thread::spawn(move || {
                let Some(key) = read_head(&mut stream) else { return };
                if late.swap(false, Ordering::Relaxed) {
                    thread::sleep(Duration::from_millis(400));
                }
                members.lock().unwrap().push(stream.try_clone().unwrap());
                stream.write_all(accepted(&key).as_bytes()).unwrap();
                while let Some((0x81, payload)) = read_frame(&mut stream) {
                    for member in members.lock().unwrap().iter_mut() {
                        let _ = member.write_all(&frame(0x81, &payload));
                    }
                }
            });
        }
    });
    let load =
        ["--publish", "1", "--subscribe", "3", "--threads", "2", "-n", "20", "-r", "200/s", "-d", "30s"];
    let ended = run(&[&["ws", &url], &load[..]].concat());
    let count = |name: &str| ended.count(&format!("/totals/websockets/{name}"));
    assert_eq!((count("messages_sent"), count("messages_received")), (20, 80), "{ended:#?}");
    let seconds = ended.number("/duration_s");
    assert!(seconds < 30.0, "the last message ends the load: {seconds}");
}

/// A server that reads nothing: a script is told what waits, and a message too many ends its connection.
#[test]
fn messages_that_a_server_does_not_read_have_a_bound() {
    let server = Scripted::start(|_| thread::sleep(Duration::from_secs(60)));
    let folder = TempDir::new().unwrap();
    let script = folder.path().join("script.js");
    std::fs::write(&script, FLOOD.replace("URL", &server.url())).unwrap();
    let ended = run(&["run", script.to_str().unwrap()]);
    let text = format!("{}{}", ended.stdout, ended.stderr);
    assert!(text.contains("waits=true"), "{ended:#?}");
    assert!(text.contains("error=more than 67108864 bytes of messages wait to be sent"), "{ended:#?}");
    assert!(ended.rss_bytes < 400 << 20, "bounded memory: {}", ended.rss_bytes);
}

#[test]
fn latencies_are_those_of_a_server_that_knows_them() {
    let _quiet = quiet_machine();
    let server = Scripted::start(|stream| {
        stream.set_nodelay(true).unwrap();
        while let Some((0x81, payload)) = read_frame(stream) {
            thread::sleep(Duration::from_millis(20));
            if stream.write_all(&frame(0x81, &payload)).is_err() {
                return;
            }
        }
    });
    let ended = start_alone(&with_json(&["ws", "-c", "4", "-n", "200", &server.url()])).wait();
    let count = |name: &str| ended.count(&format!("/totals/websockets/{name}"));
    assert_eq!((count("messages_sent"), count("answered"), count("unanswered")), (200, 200, 0), "{ended:#?}");
    assert_eq!(server.opened_count.load(Ordering::Relaxed), 4);
    let [min, p50] =
        ["min", "p50"].map(|name| ended.number(&format!("/totals/websockets/latency_us/{name}")));
    assert!((20_000.0..21_000.0).contains(&min) && (20_000.0..25_000.0).contains(&p50), "{min} {p50}");
}

#[test]
fn a_server_that_stalls_shows_in_the_open_model() {
    let _quiet = quiet_machine();
    let server = Scripted::start(|stream| {
        let mut count = 0;
        while let Some((0x81, payload)) = read_frame(stream) {
            count += 1;
            if count == 20 {
                thread::sleep(Duration::from_millis(500));
            }
            if stream.write_all(&frame(0x81, &payload)).is_err() {
                return;
            }
        }
    });
    let ended = start_alone(&with_json(&["ws", "-c", "1", "-r", "100/s", "-n", "100", &server.url()])).wait();
    let of = |name: &str| ended.number(&format!("/totals/websockets/latency_us/{name}"));
    // Half of the messages were to be sent while it stalled.
    assert!(of("max") > 480_000.0 && of("p90") > 300_000.0, "{ended:#?}");
    assert_eq!(ended.count("/totals/websockets/answered"), 100);
}

/// The answer to the opening handshake with this key.
fn accepted(key: &str) -> String {
    format!(
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: {}\r\n\r\n",
        handshake::accept(key)
    )
}

/// Sends 8 MB at a time until an error comes.
const FLOOD: &str = r#"
import { WebSocket } from 'k6/websockets';
export const options = { iterations: 1 };
export default function () {
  const socket = new WebSocket('URL');
  const part = 'x'.repeat(8 << 20);
  socket.onopen = () => {
    let sentBytes = 0;
    const timer = setInterval(() => {
      if (socket.readyState !== 1) return clearInterval(timer);
      if (sentBytes === 3 * part.length) {
        console.log(`waits=${socket.bufferedAmount > 0 && socket.bufferedAmount <= sentBytes && socket.bufferedAmount % part.length === 0}`);
      }
      socket.send(part);
      sentBytes += part.length;
    }, 10);
  };
  socket.onerror = (event) => console.log(`error=${event.error}`);
}
"#;
