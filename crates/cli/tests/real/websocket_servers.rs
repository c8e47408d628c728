//! WebSockets with servers that others have written: Python's `websockets` and Node's `ws`, of Debian's packages, alone and behind proxies, and
//! while they restart. Each server logs its connections and messages, and what squall counts is what is in that log.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

use std::net::SocketAddr;
use std::process::Command;
use std::time::Duration;

use rustix::process::Signal;
use squall_testkit::real::{NginxOptions, Server};
use squall_testkit::{Process, free_port, wait_until};
use tempfile::TempDir;

use crate::squall::{Ended, run, start, with_json};

/// A server that sends back what it gets.
struct Echo {
    process: Process,
    library: Library,
    address: SocketAddr,
    folder: TempDir,
}

#[derive(Debug, Clone, Copy)]
enum Library {
    PythonWebsockets,
    NodeWs,
}

impl Library {
    fn command(self) -> Command {
        let (program, flag, script) = match self {
            Self::PythonWebsockets => ("/usr/bin/python3", "-c", PYTHON_ECHO),
            Self::NodeWs => ("node", "-e", NODE_ECHO),
        };
        let mut command = Command::new(program);
        command.args([flag, script]).env("NODE_PATH", "/usr/share/nodejs");
        command
    }
}

impl Echo {
    fn start(library: Library) -> Self {
        let address = SocketAddr::from(([127, 0, 0, 1], free_port()));
        let folder = TempDir::new().unwrap();
        let process = Self::launch(library, address, &folder);
        Self { process, library, address, folder }
    }

    fn launch(library: Library, address: SocketAddr, folder: &TempDir) -> Process {
        let error_log = folder.path().join("errors.log");
        let errors = std::fs::File::options().append(true).create(true).open(&error_log).unwrap();
        let mut command = library.command();
        command.arg(address.port().to_string()).arg(folder.path().join("log")).stderr(errors);
        let mut process = Process::start(&mut command);
        process.wait_until_accepting(address, &error_log);
        process
    }

    /// Ends the server by a signal and starts it again on the same port.
    fn restart(&mut self, signal: Signal) {
        self.process.signal(signal);
        self.process.wait(Duration::from_secs(20)).unwrap();
        self.process = Self::launch(self.library, self.address, &self.folder);
    }

    fn url(&self) -> String {
        format!("ws://{}/", self.address)
    }

    /// Connections and messages so far.
    fn logged(&self) -> (u64, u64) {
        let log = std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
        let count = |word: &str| log.lines().filter(|line| *line == word).count() as u64;
        (count("connection"), count("message"))
    }

    fn wait_for_connections(&self, count: u64) {
        let limit = Duration::from_secs(30);
        assert!(wait_until(limit, || self.logged().0 >= count), "{:?} of {count}", self.logged());
    }
}

fn websocket_count(ended: &Ended, name: &str) -> u64 {
    ended.count(&format!("/totals/websockets/{name}"))
}

/// How many connections were closed in this way.
fn close_count(ended: &Ended, by: &str, code: u64) -> u64 {
    let json = ended.json();
    let closes = json.pointer("/totals/websockets/closes").unwrap().as_array().unwrap().clone();
    let is_it = |close: &&serde_json::Value| close["by"] == by && close["code"] == code;
    closes.iter().filter(is_it).map(|close| close["count"].as_u64().unwrap()).sum()
}

/// Messages and connections that squall counts for `url`, when each message has its echo.
fn echoed(url: &str, flags: &[&str]) -> (u64, u64) {
    let ended = run(&[&["ws", url], flags].concat());
    let count = |name: &str| websocket_count(&ended, name);
    assert_eq!((count("messages_sent"), count("mismatched")), (count("answered"), 0), "{url} {ended:#?}");
    (ended.count("/totals/idle_connections/opened"), count("messages_sent"))
}

#[test]
fn counts_equal_those_of_real_servers() {
    for library in [Library::PythonWebsockets, Library::NodeWs] {
        let server = Echo::start(library);
        let before = server.logged();
        let small = echoed(&server.url(), &["-n", "500", "-c", "5"]);
        let large = echoed(&server.url(), &["-n", "100", "-c", "2", "--compress", "--size", "5KiB"]);
        assert_eq!((small, large), ((5, 500), (2, 100)), "{library:?}");
        assert_eq!(server.logged(), (before.0 + 7, 600), "{library:?}");
    }
}

#[test]
fn counts_equal_those_of_servers_behind_proxies() {
    let server = Echo::start(Library::NodeWs);
    let behind = Some(server.address);
    let proxies = [
        Server::nginx(NginxOptions { behind, ..NginxOptions::default() }),
        Server::haproxy(server.address),
        Server::caddy(behind),
    ];
    let (mut connections, mut messages) = server.logged();
    for proxy in &proxies {
        let ca_file = proxy.ca_file();
        let cacert = ["--cacert", ca_file.to_str().unwrap()];
        for (url, trust) in [(proxy.url("/ws"), &[][..]), (proxy.tls_url("/ws"), &cacert[..])] {
            let url = url.replacen("http", "ws", 1);
            for flags in
                [&["-n", "300", "-c", "3"][..], &["-n", "20", "-c", "2", "--compress", "--size", "1MiB"]]
            {
                let (opened, sent) = echoed(&url, &[flags, trust].concat());
                (connections, messages) = (connections + opened, messages + sent);
                assert_eq!(server.logged(), (connections, messages), "{url}");
            }
        }
    }
}

/// A server that crashes, and later one that says goodbye: each connection that was lost has its reason, and is opened again.
#[test]
fn restarts_of_a_server_are_accounted_for() {
    const COUNT: u64 = 20;
    let mut server = Echo::start(Library::PythonWebsockets);
    let url = server.url();
    let running = start(&with_json(&["ws", "-c", "20", "-d", "5m", "--pause", "5ms", &url]));
    server.wait_for_connections(COUNT);
    server.restart(Signal::KILL);
    server.wait_for_connections(2 * COUNT);
    server.restart(Signal::TERM);
    server.wait_for_connections(3 * COUNT);
    running.process.signal(Signal::INT);
    let ended = running.wait();
    assert_eq!(ended.count("/totals/idle_connections/opened"), 3 * COUNT, "{ended:#?}");
    assert_eq!(ended.count("/totals/idle_connections/reopened"), 2 * COUNT, "{ended:#?}");
    assert_eq!(close_count(&ended, "server", 1001), COUNT, "{ended:#?}");
    assert_eq!(close_count(&ended, "squall", 1000), COUNT, "{ended:#?}");
    let lost = close_count(&ended, "neither", 1006);
    assert_eq!(lost, COUNT, "{ended:#?}");
    let count = |name: &str| websocket_count(&ended, name);
    assert_eq!(count("messages_sent"), count("answered") + count("unanswered"), "{ended:#?}");
    let (connections, messages) = server.logged();
    assert_eq!(connections, 3 * COUNT);
    assert!((count("answered")..=count("messages_sent")).contains(&messages), "{messages} {ended:#?}");
}

const PYTHON_ECHO: &str = r#"
import asyncio, os, signal, sys
from websockets import serve
log = os.open(sys.argv[2], os.O_CREAT | os.O_APPEND | os.O_WRONLY)
async def echo(websocket):
    os.write(log, b"connection\n")
    async for message in websocket:
        os.write(log, b"message\n")
        await websocket.send(message)
async def main():
    end = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, end.set)
    async with serve(echo, "127.0.0.1", int(sys.argv[1])):
        await end.wait()
asyncio.run(main())
"#;

const NODE_ECHO: &str = r#"
const { WebSocketServer } = require('ws');
const fs = require('fs');
const log = fs.openSync(process.argv[2], 'a');
const server = new WebSocketServer({ port: Number(process.argv[1]), host: '127.0.0.1', perMessageDeflate: true });
server.on('connection', (socket) => {
  fs.writeSync(log, 'connection\n');
  socket.on('message', (data, isBinary) => { fs.writeSync(log, 'message\n'); socket.send(data, { binary: isBinary }); });
});
"#;
