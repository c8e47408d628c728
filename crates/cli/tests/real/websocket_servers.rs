//! `squall ws` against Python's `websockets` and Node's `ws`, directly and through proxies: counts are theirs, and every connection that was
//! opened has an end.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

use std::fs;
use std::net::SocketAddr;
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;
use squall_testkit::real::{EnvoyOptions, NginxOptions, Server};
use squall_testkit::{Process, free_port, wait_until};
use tempfile::TempDir;

use crate::squall::{Ended, run, start, with_json};

/// An echo server that logs each connection and each message.
struct EchoServer {
    folder: TempDir,
    port: u16,
    kind: Kind,
    process: Process,
}

#[derive(Debug, Clone, Copy)]
enum Kind {
    Python,
    Node,
}

impl EchoServer {
    fn start(kind: Kind) -> Self {
        let (folder, port) = (TempDir::new().unwrap(), free_port());
        fs::write(folder.path().join("log"), "").unwrap();
        let process = Self::process(&folder, port, kind);
        Self { folder, port, kind, process }
    }

    fn process(folder: &TempDir, port: u16, kind: Kind) -> Process {
        let (program, flag, script) = match kind {
            Kind::Python => ("/usr/bin/python3", "-c", PYTHON_ECHO),
            Kind::Node => ("node", "-e", NODE_ECHO),
        };
        let mut command = Command::new(program);
        command.args([flag, script]).env("NODE_PATH", "/usr/share/nodejs").env("PORT", port.to_string());
        listening(command, folder, port)
    }

    /// Starts it again on its port.
    fn restart(&mut self) {
        self.process = Self::process(&self.folder, self.port, self.kind);
    }

    /// It closes all connections in order, and ends.
    fn end(&mut self) {
        self.process.signal(Signal::TERM);
        assert!(self.process.wait(PATIENCE).is_some(), "the server does not end");
    }

    /// Connections and messages that it has had.
    fn logged(&self) -> (u64, u64) {
        let log = fs::read(self.folder.path().join("log")).unwrap();
        let count = |sign| log.iter().filter(|byte| **byte == sign).count() as u64;
        (count(b'o'), count(b'm'))
    }

    fn wait_for_connections(&self, count: u64) {
        assert!(wait_until(PATIENCE, || self.logged().0 >= count), "{count} of {:?}", self.logged());
    }
}

/// Starts a server in its folder, and waits until it listens.
fn listening(mut command: Command, folder: &TempDir, port: u16) -> Process {
    command.current_dir(folder.path()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut process = Process::start(&mut command);
    let address = format!("127.0.0.1:{port}").parse().unwrap();
    process.wait_until_accepting(address, &folder.path().join("log"));
    process
}

fn messages(ended: &Ended, name: &str) -> u64 {
    ended.count(&format!("/totals/websockets/{name}"))
}

fn kept(ended: &Ended, name: &str) -> u64 {
    ended.count(&format!("/totals/idle_connections/{name}"))
}

/// How many connections were closed by one side with a code.
fn closed(ended: &Ended, is_counted: impl Fn(&str, u64) -> bool) -> u64 {
    let json = ended.json();
    let rows = json.pointer("/totals/websockets/closes").and_then(Value::as_array).unwrap();
    let own =
        rows.iter().filter(|row| is_counted(row["by"].as_str().unwrap(), row["code"].as_u64().unwrap()));
    own.map(|row| row["count"].as_u64().unwrap()).sum()
}

/// Loads of small, compressed and large messages, each of which must have its echo; how many connections and messages they had.
fn echo(url: &str, trust: &[&str]) -> (u64, u64) {
    let loads = [
        &["-n", "300", "-c", "5"][..],
        &["-n", "100", "-c", "2", "--compress", "--size", "5KiB"],
        &["-n", "1", "-c", "1", "--binary", "--size", "16MiB"],
    ];
    let (mut opened, mut sent) = (0, 0);
    for load in loads {
        let ended = run(&[&["ws", url], load, trust].concat());
        let counts = ["answered", "mismatched", "unanswered"].map(|name| messages(&ended, name));
        assert_eq!(counts, [load[1].parse().unwrap(), 0, 0], "{url} {load:?} {ended:#?}");
        assert_eq!(closed(&ended, |_, _| true), kept(&ended, "opened"), "{ended:#?}");
        (opened, sent) = (opened + kept(&ended, "opened"), sent + messages(&ended, "messages_sent"));
    }
    (opened, sent)
}

#[test]
fn counts_equal_those_of_real_servers() {
    for kind in [Kind::Python, Kind::Node] {
        let server = EchoServer::start(kind);
        let echoed = echo(&format!("ws://127.0.0.1:{}/", server.port), &[]);
        assert_eq!(echoed, (8, 401), "{kind:?}");
        assert_eq!(server.logged(), echoed, "{kind:?}");
    }
}

#[test]
fn counts_equal_those_of_servers_behind_proxies() {
    let server = EchoServer::start(Kind::Node);
    let address = SocketAddr::from(([127, 0, 0, 1], server.port));
    let proxies = [
        Server::nginx(NginxOptions { behind: Some(address), ..NginxOptions::default() }),
        Server::haproxy(address),
        Server::caddy(Some(address)),
        Server::envoy(EnvoyOptions { behind: Some(address), ..EnvoyOptions::default() }),
    ];
    let (mut connections, mut messages) = server.logged();
    for proxy in &proxies {
        let ca_file = proxy.ca_file();
        let trust = ["--cacert", ca_file.to_str().unwrap()];
        for (url, trust) in [(proxy.url("/ws"), &[][..]), (proxy.tls_url("/ws"), &trust)] {
            let (opened, sent) = echo(&url.replacen("http", "ws", 1), trust);
            (connections, messages) = (connections + opened, messages + sent);
            assert_eq!(server.logged(), (connections, messages), "{url}");
        }
    }
}

#[test]
fn envoy_carries_websockets_of_http2_to_a_server_of_http1() {
    let server = EchoServer::start(Kind::Node);
    let behind = Some(SocketAddr::from(([127, 0, 0, 1], server.port)));
    let proxy = Server::envoy(EnvoyOptions { behind, ..EnvoyOptions::default() });
    let ca_file = proxy.ca_file();
    // Envoy passes the key on, and makes none.
    let key = ["--http", "2", "--streams", "2", "-H", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="];
    let trust = [&key[..], &["--cacert", ca_file.to_str().unwrap()]].concat();
    assert_eq!(echo(&proxy.tls_url("/ws").replacen("http", "ws", 1), &trust), (8, 401));
    assert_eq!(server.logged(), (8, 401));
}

#[test]
fn every_connection_of_a_server_that_restarts_is_accounted_for() {
    for (kind, load) in [
        (Kind::Python, &["--idle"][..]),
        (Kind::Node, &["--idle", "--ping", "50ms"]),
        (Kind::Python, &["--pause", "20ms", "--storm", "400ms"]),
        (Kind::Node, &["-r", "500/s", "--storm", "300ms"]),
    ] {
        let mut server = EchoServer::start(kind);
        let url = format!("ws://127.0.0.1:{}/", server.port);
        let running = start(&with_json(&[&["ws", &url, "-c", "20", "-d", "60s"], load].concat()));
        server.wait_for_connections(if load.contains(&"--storm") { 60 } else { 20 });
        server.end();
        server.restart();
        server.wait_for_connections(server.logged().0 + 20);
        server.process.kill();
        server.restart();
        server.wait_for_connections(server.logged().0 + 20);
        running.process.signal(Signal::INT);
        let ended = running.wait();
        let opened = kept(&ended, "opened");
        assert_eq!(opened - kept(&ended, "reopened"), 20, "{load:?} {ended:#?}");
        assert_eq!(closed(&ended, |_, _| true), opened, "{load:?} {ended:#?}");
        let ends = ["closed_by_server", "reset", "broken", "closed_by_us"].map(|name| kept(&ended, name));
        assert_eq!(ends.iter().sum::<u64>(), opened, "{load:?} {ended:#?}");
        // The first server says goodbye, the second one is killed, and what is open with the third one is closed.
        let code = if matches!(kind, Kind::Python) { 1001 } else { 1012 };
        for end in [("server", code), ("neither", 1006), ("squall", 1000)] {
            assert!(closed(&ended, |by, code| (by, code) == end) > 0, "{end:?} {load:?} {ended:#?}");
        }
        let counts = ["answered", "mismatched", "unanswered"].map(|name| messages(&ended, name));
        assert_eq!(messages(&ended, "messages_asked"), counts.iter().sum::<u64>(), "{load:?} {ended:#?}");
        let (connection_count, message_count) = server.logged();
        assert!(opened <= connection_count, "{load:?}: {connection_count} {ended:#?}");
        let (answered, sent) = (messages(&ended, "answered"), messages(&ended, "messages_sent"));
        assert!((answered..=sent).contains(&message_count), "{load:?}: {message_count} {ended:#?}");
    }
}

const PATIENCE: Duration = Duration::from_secs(30);

const PYTHON_ECHO: &str = r#"
import asyncio, os, signal
from websockets import serve
log = os.open("log", os.O_WRONLY | os.O_APPEND)
async def echo(websocket):
    os.write(log, b"o")
    async for message in websocket:
        os.write(log, b"m")
        await websocket.send(message)
async def main():
    end = asyncio.get_running_loop().create_future()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, end.set_result, None)
    async with serve(echo, "127.0.0.1", int(os.environ["PORT"]), max_size=None):
        await end
asyncio.run(main())
"#;

const NODE_ECHO: &str = r#"
const fs = require('fs');
const { WebSocketServer } = require('ws');
const log = fs.openSync('log', 'a');
const server = new WebSocketServer({ port: Number(process.env.PORT), host: '127.0.0.1', perMessageDeflate: true });
server.on('connection', (socket) => {
  fs.writeSync(log, 'o');
  socket.on('error', () => {});
  socket.on('message', (data, isBinary) => { fs.writeSync(log, 'm'); socket.send(data, { binary: isBinary }); });
});
process.on('SIGTERM', () => {
  server.close(() => process.exit(0));
  for (const socket of server.clients) socket.close(1012, 'restart');
});
"#;
