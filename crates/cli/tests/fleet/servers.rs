//! nginx and h2o on the lab's target, and what they count for each client: plain HTTP on 8080, HTTP/2 by prior knowledge on 8081,
//! TLS on 8443 (for requests), 8444 (for handshakes) and 8445 (for idle connections).

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use squall_testkit::lab::Lab;
use squall_testkit::{Authority, Process, Validity};

/// Which server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Logs each request, and each connection that ends without one.
    Nginx,
    /// Logs each request; its connections are counted by the kernel, as they are asked for.
    H2o,
}

/// A server that runs.
pub(crate) struct Server<'lab> {
    lab: &'lab Lab,
    kind: Kind,
    process: Process,
}

/// What a server counted.
pub(crate) struct Log {
    requests: String,
    silent: BTreeMap<u16, BTreeMap<String, u64>>,
}

impl<'lab> Server<'lab> {
    pub(crate) fn start(lab: &'lab Lab, kind: Kind) -> Self {
        let folder = lab.path("server");
        fs::create_dir(&folder).unwrap();
        let identity = Authority::new().issue(&["localhost"], Validity::Current);
        fs::write(folder.join("cert.pem"), identity.cert_pem).unwrap();
        fs::write(folder.join("key.pem"), identity.key_pem).unwrap();
        let mut command = match kind {
            Kind::Nginx => nginx(lab, &folder),
            Kind::H2o => h2o(lab, &folder),
        };
        let process = Process::start(command.stdout(Stdio::null()).stderr(Stdio::null()));
        lab.wait_for_port("target", 8445);
        Self { lab, kind, process }
    }

    /// What it counted, complete.
    pub(crate) fn log(mut self) -> Log {
        let signal = if self.kind == Kind::Nginx { "-QUIT" } else { "-TERM" };
        let _ = Command::new("kill").args([signal, &self.process.pid().to_string()]).status();
        self.process.wait(Duration::from_secs(20)).unwrap();
        let read = |name: &str| fs::read_to_string(self.lab.path("server").join(name)).unwrap();
        let count: &dyn Fn(u16) -> BTreeMap<String, u64> = match self.kind {
            Kind::Nginx => &|port| ended_in_silence(&read("connections.log"), port),
            Kind::H2o => &|port| asked_for(self.lab, port),
        };
        Log { requests: read("requests.log"), silent: SILENT_PORTS.map(|port| (port, count(port))).into() }
    }
}

impl Log {
    /// Requests for a path by the address of their client.
    pub(crate) fn requests(&self, path: &str) -> BTreeMap<String, u64> {
        count(self.requests.lines().filter_map(|line| {
            let mut words = line.split(' ');
            let client = words.next()?;
            (words.next()? == path).then_some(client)
        }))
    }

    /// Versions of HTTP of the requests for a path.
    pub(crate) fn versions(&self, path: &str) -> Vec<String> {
        let own = self.requests.lines().map(|line| line.split(' ').collect::<Vec<_>>());
        let own = own.filter(|words| words.get(1) == Some(&path));
        let mut versions: Vec<String> = own.map(|words| words[2].trim_end_matches(".0").to_owned()).collect();
        versions.sort();
        versions.dedup();
        versions
    }

    /// Connections to one of the ports for handshakes and idle connections, none of which carried a request, by the address of their
    /// client.
    pub(crate) fn silent(&self, port: u16) -> &BTreeMap<String, u64> {
        &self.silent[&port]
    }
}

fn nginx(lab: &Lab, folder: &Path) -> Command {
    let config = "daemon off; user root; worker_processes 1; pid nginx.pid; error_log connections.log info;\n\
        events { worker_connections 4096; }\nhttp {\n\
        log_format each '$remote_addr $uri $server_protocol';\n access_log requests.log each;\n\
        keepalive_timeout 60s; keepalive_requests 10000000; client_header_timeout 60s;\n\
        ssl_certificate cert.pem; ssl_certificate_key key.pem; ssl_protocols TLSv1.2 TLSv1.3;\n\
        server { listen 8080; listen 8081 http2; listen 8443 ssl http2; listen 8444 ssl; listen 8445 ssl;\n\
        location / { return 200 'ok'; } } }\n";
    fs::write(folder.join("config"), config).unwrap();
    let mut command = lab.command("target", "nginx");
    command.arg("-p").arg(folder).args(["-c", "config", "-e", "connections.log"]);
    command
}

/// Connections whose handshakes were complete, and that ended without a request, by nginx's log of errors.
fn ended_in_silence(log: &str, port: u16) -> BTreeMap<String, u64> {
    let end = format!(":{port}");
    let own = log.lines().filter(|line| line.contains("while waiting for request") && line.ends_with(&end));
    count(own.filter_map(|line| line.split("client: ").nth(1)?.split(',').next()))
}

fn h2o(lab: &Lab, folder: &Path) -> Command {
    let www = folder.join("www");
    fs::create_dir(&www).unwrap();
    for name in ["wrk", "h2load", "k6"] {
        fs::write(www.join(name), "ok").unwrap();
    }
    let folder = folder.display();
    let mut config = format!(
        "user: root\nnum-threads: 1\nhttp1-request-timeout: 60\nhttp2-idle-timeout: 60\n\
         access-log: {{ path: {folder}/requests.log, format: '%h %U %H' }}\nlisten: 8080\nlisten: 8081\n"
    );
    for port in [8443, 8444, 8445] {
        let ssl = format!("certificate-file: {folder}/cert.pem, key-file: {folder}/key.pem");
        writeln!(config, "listen: {{ port: {port}, ssl: {{ {ssl} }} }}").unwrap();
    }
    writeln!(config, "hosts: {{ default: {{ paths: {{ /: {{ file.dir: {folder}/www }} }} }} }}").unwrap();
    fs::write(lab.path("server").join("config"), config).unwrap();
    for (port, host) in SILENT_PORTS.iter().flat_map(|port| ["g1", "g2", "g3"].map(|host| (port, host))) {
        let mut rule = lab.command("target", "iptables");
        rule.args([
            "-A",
            "INPUT",
            "-p",
            "tcp",
            "--syn",
            "-s",
            &Lab::address(host),
            "--dport",
            &port.to_string(),
        ]);
        assert!(rule.args(["-j", "ACCEPT"]).status().unwrap().success());
    }
    let mut command = lab.command("target", "h2o");
    command.arg("-c").arg(lab.path("server").join("config"));
    command
}

/// Connections to a port by the kernel's count of packets that ask for one: `20 1200 ACCEPT 6 -- * * 10.88.2.11 0.0.0.0/0 tcp dpt:8445 ..`.
fn asked_for(lab: &Lab, port: u16) -> BTreeMap<String, u64> {
    let output = lab.command("target", "iptables").args(["-nvxL", "INPUT"]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let own = text.lines().filter(|line| line.contains(&format!("dpt:{port} ")));
    let counts = own.filter_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let client = words.iter().find(|word| word.starts_with("10.88."))?;
        Some(((*client).to_owned(), words[0].parse().ok()?))
    });
    counts.collect()
}

fn count<'a>(names: impl Iterator<Item = &'a str>) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    names.for_each(|name| *counts.entry(name.to_owned()).or_default() += 1);
    counts
}

/// Ports for connections without requests.
const SILENT_PORTS: [u16; 2] = [8444, 8445];
