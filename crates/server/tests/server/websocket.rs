//! WebSockets and event streams as a client sees them.

use std::io::{BufRead, Read, Write};
use std::time::{Duration, Instant};

use squall_server::Target;
use squall_wire::ws::{
    CloseCode, Decoder, Event, Inbox, MessageKind, Outbox, WebSocketRole, deflate::Params, handshake,
};

use crate::client::{Client, start};

const KEY: &str = "dGhlIHNhbXBsZSBub25jZQ==";
const MASK: [u8; 4] = [1, 2, 3, 4];

/// A client's end of a WebSocket.
struct Socket {
    client: Client,
    head: String,
    decoder: Decoder,
    inbox: Inbox,
    outbox: Outbox,
    /// Bytes that were read and not decoded.
    input: Vec<u8>,
}

impl Socket {
    fn open(target: &Target, path: &str, headers: &str) -> Self {
        let mut client = Client::connect(target.address());
        client.write(opening(path, headers));
        let head = client.read_head().unwrap();
        assert!(head.starts_with("HTTP/1.1 101 "), "{head}");
        assert!(head.contains(&format!("sec-websocket-accept: {}", handshake::accept(KEY))), "{head}");
        let answer = head.lines().find_map(|line| line.strip_prefix("sec-websocket-extensions: "));
        let params = answer.map(|answer| Params::agreed(answer, false).unwrap());
        Self {
            client,
            head,
            decoder: Decoder::new(WebSocketRole::Client, params.is_some()),
            inbox: Inbox::new(64 << 20, params.map(|params| params.inflater(WebSocketRole::Client))),
            outbox: Outbox::new(params.map(|params| params.deflater(WebSocketRole::Client))),
            input: Vec::new(),
        }
    }

    fn send(&mut self, write: impl FnOnce(&mut Outbox, &mut Vec<u8>)) {
        let mut out = Vec::new();
        write(&mut self.outbox, &mut out);
        self.client.write(out);
    }

    fn send_text(&mut self, text: &str) {
        self.send(|outbox, out| outbox.message(MessageKind::Text, text.as_bytes(), Some(MASK), out));
    }

    /// What comes next, in words; the end of the connection too.
    fn next(&mut self) -> String {
        loop {
            let decoded = self.decoder.decode(&mut self.input).unwrap();
            let consumed = decoded.consumed;
            let said = match decoded.event {
                Some(Event::Part(part)) => self.inbox.push(part).unwrap().map(|message| {
                    let text = String::from_utf8_lossy(message.bytes);
                    format!("{:?} {text}", message.kind)
                }),
                Some(Event::Ping(payload)) => Some(format!("ping {payload:?}")),
                Some(Event::Pong(payload)) => Some(format!("pong {payload:?}")),
                Some(Event::Close(code, reason)) => Some(format!("close {} {reason}", code.0)),
                None => {
                    self.input.clear();
                    let bytes = self.client.stream.fill_buf().unwrap().to_vec();
                    if bytes.is_empty() {
                        return "end".to_owned();
                    }
                    self.client.stream.consume(bytes.len());
                    self.input = bytes;
                    continue;
                }
            };
            self.input.drain(..consumed);
            if let Some(said) = said {
                return said;
            }
        }
    }
}

fn opening(path: &str, headers: &str) -> String {
    format!(
        "GET {path} HTTP/1.1\r\nHost: squall.test\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {KEY}\r\n{headers}\r\n"
    )
}

#[test]
fn messages_are_echoed_pings_answered_and_the_close_too() {
    for extensions in ["", "Sec-WebSocket-Extensions: permessage-deflate; server_max_window_bits=10\r\n"] {
        let target = start();
        let mut socket = Socket::open(&target, "/ws/echo", extensions);
        assert_eq!(socket.head.contains("server_max_window_bits=10"), !extensions.is_empty());
        let long = "x".repeat(300_000);
        for text in ["", "Hello", &long] {
            socket.send_text(text);
            assert_eq!(socket.next(), format!("Text {text}"));
        }
        socket.send(|outbox, out| outbox.ping(b"1", Some(MASK), out));
        assert_eq!(socket.next(), "pong [49]");
        socket.send(|outbox, out| outbox.close(CloseCode::GOING_AWAY, "bye", Some(MASK), out));
        assert_eq!(socket.next(), "close 1001 bye");
        assert_eq!(socket.next(), "end");
        let stats = target.stop();
        assert_eq!((stats.messages_received, stats.messages_sent), (3, 3));
        assert_eq!((stats.requests, stats.requests_finished, stats.requests_cut), (1, 1, 0));
    }
}

#[test]
fn the_server_closes_delays_and_pings_when_asked_to() {
    let target = start();
    let path = "/ws/echo?close-after=2&code=4000&delay=20ms&ping=10s";
    let mut socket = Socket::open(&target, path, "Sec-WebSocket-Protocol: chat, v2\r\n");
    assert!(socket.head.contains("sec-websocket-protocol: chat\r\n"), "{}", socket.head);
    let begun = Instant::now();
    socket.send_text("a");
    socket.send_text("b");
    for expected in ["Text a", "Text b", "close 4000 "] {
        assert_eq!(socket.next(), expected);
    }
    assert!(begun.elapsed() >= Duration::from_millis(40), "two delays of 20 ms");
    socket.send(|outbox, out| outbox.close(CloseCode(4000), "", Some(MASK), out));
    assert_eq!(socket.next(), "end");
    let mut pinged = Socket::open(&target, "/ws/echo?ping=5ms", "");
    assert_eq!(pinged.next(), "ping []");
    assert_eq!(pinged.next(), "ping []");
}

#[test]
fn what_a_client_sent_before_it_saw_the_close_is_read_to_its_end() {
    let target = start();
    let mut socket = Socket::open(&target, "/ws/echo?close-after=1", "");
    let mut frames = Vec::new();
    for text in ["a", "b", "ccc"] {
        socket.outbox.message(MessageKind::Text, text.as_bytes(), Some(MASK), &mut frames);
    }
    let (first, rest) = frames.split_at(frames.len() - 2);
    socket.client.write(first);
    assert_eq!([socket.next(), socket.next()], ["Text a", "close 1000 "]);
    socket.client.write(rest);
    socket.send(|outbox, out| outbox.close(CloseCode::NORMAL, "", Some(MASK), out));
    assert_eq!(socket.next(), "end");
    let stats = target.stop();
    assert_eq!((stats.messages_received, stats.requests_cut), (1, 0));
}

#[test]
fn a_channel_has_all_of_its_messages_and_no_others() {
    let target = start();
    let mut sockets =
        ["a", "a", "b"].map(|name| Socket::open(&target, &format!("/ws/broadcast?channel={name}"), ""));
    // The answer to the ping says that the server has joined it to its channel.
    for socket in &mut sockets {
        socket.send(|outbox, out| outbox.ping(b"", Some(MASK), out));
        assert_eq!(socket.next(), "pong []");
    }
    sockets[0].send_text("first");
    sockets[2].send_text("other");
    let [one, two, three] = &mut sockets;
    assert_eq!([one.next(), two.next()], ["Text first", "Text first"]);
    assert_eq!(three.next(), "Text other");
    two.send_text("second");
    assert_eq!([one.next(), two.next()], ["Text second", "Text second"]);
}

#[test]
fn violations_close_the_connection_with_their_code() {
    let target = start();
    for (bytes, expected) in [
        (&[0x81, 0x01, b'a'][..], "close 1002 a frame from the client is not masked"),
        (&[0x81, 0x81, 0, 0, 0, 0, 0xff], "close 1007 text is not valid UTF-8"),
        (&[0x82, 0xff, 0, 0, 0, 0, 0x10, 0, 0, 0, 0, 0, 0, 0], ""),
    ] {
        let mut socket = Socket::open(&target, "/ws/echo", "");
        socket.client.write(bytes);
        if expected.is_empty() {
            // 256 MiB are announced; the limit is met when they come.
            while socket.client.stream.get_mut().write_all(&[0; 1 << 16]).is_ok() {}
        } else {
            assert_eq!(socket.next(), expected);
        }
    }
}

#[test]
fn what_is_no_handshake_is_refused() {
    let target = start();
    let valid = opening("/ws/echo", "");
    for (request, status, text) in [
        ("GET /ws/echo HTTP/1.1\r\nHost: squall.test\r\n\r\n".to_owned(), 426, "use a ws:// URL"),
        (valid.replace("Version: 13", "Version: 8"), 400, "version of WebSocket is 13"),
        (valid.replace(KEY, "c2hvcnQ="), 400, "not 16 bytes"),
        (valid.replace("/ws/echo", "/ws/echo?ping=0"), 400, "must not be 0"),
        (valid.replace("/ws/echo", "/ws/echo?close-after=1&code=1005"), 400, "reserved close code"),
    ] {
        let mut client = Client::connect(target.address());
        client.write(request);
        let response = client.read(false);
        assert_eq!(response.status, status);
        assert!(String::from_utf8_lossy(&response.body).contains(text), "{response:?}");
    }
}

#[test]
fn events_come_in_order_and_a_reconnect_goes_on() {
    let target = start();
    let mut client = Client::connect(target.address());
    let response = client.get("/sse?count=3&interval=5ms&size=100&event=tick&retry=250ms&end=%5BDONE%5D");
    let text = String::from_utf8(response.body).unwrap();
    let blocks: Vec<&str> = text.trim_end().split("\n\n").collect();
    assert_eq!(blocks.len(), 5, "{text}");
    assert_eq!([blocks[0], blocks[4]], ["retry: 250", "data: [DONE]"]);
    for (id, block) in blocks[1..4].iter().enumerate() {
        let (head, data) = block.split_once("data: ").unwrap();
        assert_eq!(head, format!("id: {id}\nevent: tick\n"));
        assert_eq!(data.len(), 100, "{data}");
        assert!(data.starts_with(&format!("{{\"id\":{id},\"time_us\":1")), "{data}");
    }
    let rest = client.send("GET /sse?count=3&interval=1ms", "Last-Event-ID: 1\r\n", b"");
    let text = String::from_utf8(rest.body).unwrap();
    assert!(text.starts_with("id: 2\n") && text.matches("id: ").count() == 1, "{text}");
    assert_eq!(client.get("/sse?event=a%0Ab").status, 400);
    let mut bytes = [0; 1];
    client.stream.get_mut().set_read_timeout(Some(Duration::from_millis(1))).unwrap();
    assert!(client.stream.read(&mut bytes).is_err(), "nothing follows a response");
}
