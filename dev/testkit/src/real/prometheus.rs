//! A real Prometheus that scrapes one port of this machine, receives remote write, and answers queries.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::process::Command;

use tempfile::TempDir;

use crate::{Process, free_port, program};

/// A running Prometheus; killed on drop, its folder removed.
#[derive(Debug)]
pub struct Prometheus {
    /// Dropped first: it writes into the folder.
    _process: Process,
    _folder: TempDir,
    address: SocketAddr,
}

impl Prometheus {
    /// Scrapes `/metrics` of `port` once a second, as job `squall`, whether or not anyone listens there yet.
    pub fn scraping(port: u16) -> Self {
        let folder = TempDir::with_prefix("squall-test-").expect("a temporary folder");
        let config = format!(
            "global: {{scrape_interval: 1s}}\nscrape_configs: [{{job_name: squall, static_configs: [{{targets: ['127.0.0.1:{port}']}}]}}]\n"
        );
        fs::write(folder.path().join("config.yml"), config).expect("the temporary folder is writable");
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()));
        let log_path = folder.path().join("log");
        let log = File::create(&log_path).expect("the temporary folder is writable");
        let mut command = Command::new(program("prometheus"));
        command.args([
            "--config.file=config.yml",
            "--storage.tsdb.path=data",
            "--web.enable-remote-write-receiver",
        ]);
        command.arg(format!("--web.listen-address={address}")).current_dir(folder.path());
        command.stdout(log.try_clone().expect("a descriptor")).stderr(log);
        let mut process = Process::start(&mut command);
        process.wait_until_accepting(address, &log_path);
        Self { _process: process, _folder: folder, address }
    }

    /// Its own URL for a path that begins with a slash.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// The value of an instant query's first series; `None` when there is none, or no answer yet.
    pub fn value(&self, query: &str) -> Option<f64> {
        let encoded: String = query.bytes().map(|byte| format!("%{byte:02X}")).collect();
        let mut stream = TcpStream::connect(self.address).ok()?;
        let head = format!("Host: {}\r\nConnection: close", self.address);
        write!(stream, "GET /api/v1/query?query={encoded} HTTP/1.1\r\n{head}\r\n\r\n").ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        // `"value":[1690000000.1,"42"]`: the moment, and the value as text.
        let (_, value) = answer.split_once("\"value\":[")?;
        value.split('"').nth(1)?.parse().ok()
    }
}
