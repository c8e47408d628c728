//! WebSockets: what squall counts is what the server has seen, what a bad peer does has a reason of its own, and latencies are those of a
//! server that knows them.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

use crate::squall::{Ended, quiet_machine, run, start_alone, with_json};

/// A server of WebSockets that does with each connection what the test says, after the opening handshake.
struct Scripted {
    address: SocketAddr,
    opened_count: Arc<AtomicU64>,
    is_over: Arc<AtomicBool>,
}

impl Scripted {
    fn start(serve: impl Fn(&mut TcpStream) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (opened_count, is_over) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
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
                thread::spawn(move || {
                    if read_head(&mut stream).is_some() && stream.write_all(ACCEPTED.as_bytes()).is_ok() {
                        opened.fetch_add(1, Ordering::Relaxed);
                        serve(&mut stream);
                    }
                });
            }
        });
        Self { address, opened_count, is_over }
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

fn read_head(stream: &mut TcpStream) -> Option<()> {
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte).ok()?;
        head.push(byte[0]);
    }
    Some(())
}

/// A masked frame of less than 126 bytes: its first byte, and its payload.
fn read_frame(stream: &mut TcpStream) -> Option<(u8, Vec<u8>)> {
    let mut head = [0; 6];
    stream.read_exact(&mut head).ok()?;
    assert!(head[1] & 0x80 != 0, "a client masks its frames");
    let mut payload = vec![0; usize::from(head[1] & 0x7f)];
    stream.read_exact(&mut payload).ok()?;
    payload.iter_mut().zip(head[2..].iter().cycle()).for_each(|(byte, key)| *byte ^= key);
    Some((head[0], payload))
}

/// An unmasked frame of less than 126 bytes.
fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    [&[first, payload.len() as u8], payload].concat()
}

/// How connections were closed: by whom, with which code, for which reason, how often.
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

fn send(stream: &mut TcpStream, bytes: &[u8]) {
    stream.write_all(bytes).unwrap();
    // What comes back is squall's close frame.
    let _ = stream.read_to_end(&mut Vec::new());
}

#[test]
fn a_wrong_answer_to_the_opening_handshake_is_a_failure() {
    for (answer, cause) in [
        ("HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n", "unexpected_status"),
        (&ACCEPTED.replace("lG1", "xG1"), "websocket_protocol"),
        (&ACCEPTED.replace("\r\n\r\n", "\r\nSec-WebSocket-Protocol: chat\r\n\r\n"), "websocket_protocol"),
        (&ACCEPTED.replace("websocket", "h2c"), "websocket_protocol"),
    ] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("ws://{}/", listener.local_addr().unwrap());
        let answer = answer.to_owned();
        thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            read_head(&mut stream);
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

/// Python's `websockets` and Node's `ws`, of Debian's packages, as echo servers that count.
#[test]
fn counts_equal_those_of_real_servers() {
    for (name, program, flag, script) in
        [("websockets", "/usr/bin/python3", "-c", PYTHON_ECHO), ("ws", "node", "-e", NODE_ECHO)]
    {
        let folder = TempDir::new().unwrap();
        let mut child = Command::new(program)
            .args([flag, script])
            .env("NODE_PATH", "/usr/share/nodejs")
            .current_dir(folder.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut out = child.stdout.take().unwrap();
        let mut port = Vec::new();
        let mut byte = [0];
        while out.read_exact(&mut byte).is_ok() && byte[0] != b'\n' {
            port.push(byte[0]);
        }
        assert!(!port.is_empty(), "`{name}` is not installed for {program}: run `make test-deps`");
        let url = format!("ws://127.0.0.1:{}/", String::from_utf8(port).unwrap());
        let mut sent = 0;
        for args in [&["-n", "500", "-c", "5"][..], &["-n", "100", "-c", "2", "--compress", "--size", "5KiB"]]
        {
            let ended = run(&[&["ws", &url], args].concat());
            let count = |name: &str| ended.count(&format!("/totals/websockets/{name}"));
            sent += count("messages_sent");
            assert_eq!(
                (count("messages_sent"), count("mismatched")),
                (count("answered"), 0),
                "{name} {ended:#?}"
            );
        }
        // At the end of its input it says how many messages and connections it had.
        drop(child.stdin.take());
        let mut counted = String::new();
        out.read_to_string(&mut counted).unwrap();
        assert_eq!(counted.trim(), format!("{sent} 7"), "{name}");
        let _ = child.wait();
    }
}

/// The answer to squall's key.
const ACCEPTED: &str = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: lG1/PJgh6RXV6a5buxX7ET4w2Jo=\r\n\r\n";

const PYTHON_ECHO: &str = r#"
import asyncio, sys
from websockets import serve
messages = connections = 0
async def echo(websocket):
    global messages, connections
    connections += 1
    async for message in websocket:
        messages += 1
        await websocket.send(message)
async def main():
    async with serve(echo, "127.0.0.1", 0) as server:
        print(server.sockets[0].getsockname()[1], flush=True)
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    print(messages, connections, flush=True)
asyncio.run(main())
"#;

const NODE_ECHO: &str = r#"
const { WebSocketServer } = require('ws');
let messages = 0, connections = 0;
const server = new WebSocketServer({ port: 0, host: '127.0.0.1', perMessageDeflate: true });
server.on('listening', () => console.log(server.address().port));
server.on('connection', (socket) => {
  connections += 1;
  socket.on('message', (data, isBinary) => { messages += 1; socket.send(data, { binary: isBinary }); });
});
process.stdin.on('end', () => { console.log(messages, connections); process.exit(0); }).resume();
"#;
