//! OpenSSL's own TLS server, which counts what its library does.

use std::io::Write;
use std::net::SocketAddr;
use std::process::{Command, Stdio};

use super::Site;
use crate::{Process, program};

/// `openssl s_server`, which serves one connection at a time; killed on drop, its folder removed.
#[derive(Debug)]
pub struct OpensslServer {
    /// Dropped first: it writes into the folder.
    _process: Process,
    site: Site,
    question_count: u64,
}

/// What the library says of the server's handshakes so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpensslCounts {
    /// Handshakes that came to their end, full or resumed.
    pub finished: u64,
    /// Those that resumed a session.
    pub resumed: u64,
}

impl OpensslServer {
    /// Starts it; it speaks TLS 1.2 and 1.3.
    pub fn start() -> Self {
        let site = Site::new();
        let address = site.tls.to_string();
        let args =
            ["s_server", "-www", "-quiet", "-accept", &address, "-cert", "cert.pem", "-key", "key.pem"];
        let (mut command, log_path) = site.command("openssl");
        let mut process = Process::start(command.args(args));
        process.wait_until_accepting(site.tls, &log_path);
        Self { _process: process, site, question_count: 0 }
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.site.tls
    }

    /// Asks it. The questions, each of which takes a full handshake, are left out.
    pub fn counts(&mut self) -> OpensslCounts {
        self.question_count += 1;
        let page = self.ask();
        let count = |what: &str| {
            let line = page.lines().find(|line| line.trim_end().ends_with(what));
            let number = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
            number.unwrap_or_else(|| panic!("openssl s_server does not count `{what}`:\n{page}"))
        };
        OpensslCounts {
            finished: count("server accepts that finished") - self.question_count,
            resumed: count("session cache hits"),
        }
    }

    fn ask(&self) -> String {
        let address = self.address().to_string();
        let mut command = Command::new(program("openssl"));
        command.args(["s_client", "-quiet", "-connect", &address]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut client = command.spawn().expect("openssl starts");
        let mut stdin = client.stdin.take().expect("it is piped");
        stdin.write_all(b"GET / HTTP/1.0\r\n\r\n").expect("openssl reads");
        drop(stdin);
        let output = client.wait_with_output().expect("openssl ends when the server closes");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}
