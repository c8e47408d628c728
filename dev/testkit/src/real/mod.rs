//! Real servers as children, each plain and with TLS, in its own temporary folder: nginx, h2o, haproxy, caddy, envoy and Go's for
//! HTTP/1.1 and HTTP/2, caddy and envoy for HTTP/3, nghttpd and node for HTTP/2 alone, OpenSSL's for TLS alone. And Prometheus, which receives figures.

mod caddy;
mod envoy;
mod go;
mod h2o;
mod haproxy;
mod nghttpd;
mod nginx;
mod node;
mod openssl;
mod prometheus;

use std::fs::{self, File};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use rustix::process::Signal;
use tempfile::TempDir;

use crate::{Authority, Identity, Process, free_port, program, wait_until};

pub use envoy::EnvoyOptions;
pub use nginx::NginxOptions;
pub use openssl::{OpensslCounts, OpensslServer};
pub use prometheus::Prometheus;

/// A running server; killed on drop, its folder removed. It answers `/` with a few bytes, and nginx and h2o, and caddy over TLS,
/// also `/100k` and `/1m` with 100,000 and 1,000,000 bytes; envoy
/// has these, `/20k` and `/128k`.
#[derive(Debug)]
pub struct Server {
    process: Process,
    recipe: Recipe,
    site: Site,
}

/// Where a server lives: its folder and its ports.
#[derive(Debug)]
struct Site {
    folder: TempDir,
    plain: SocketAddr,
    tls: SocketAddr,
    /// HTTP/2 by prior knowledge, where the plain port does not know it.
    h2c: SocketAddr,
}

/// How a server is started in its site.
#[derive(Debug)]
struct Recipe {
    program: &'static str,
    /// Asks it to finish what is open and end.
    quit: Signal,
    args: Vec<String>,
    config: String,
    /// Which of the ports it listens on.
    ports: Ports,
}

/// Which of a site's ports a server listens on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ports {
    /// Plain, which knows HTTP/2 too, and TLS.
    Two,
    /// Plain, TLS, and one for HTTP/2 by prior knowledge.
    Three,
    /// TLS, and one for HTTP/2 by prior knowledge.
    Http2Only,
}

impl Server {
    /// nginx with one worker and an access log of one line per request.
    pub fn nginx(options: NginxOptions) -> Self {
        let site = Site::new();
        if options.rsa {
            let authority = Authority::new();
            site.write_identity(&authority, &authority.issue_rsa_for_loopback());
        }
        let recipe = nginx::recipe(&site, options);
        Self::start(site, recipe)
    }

    /// h2o with one thread and an access log.
    pub fn h2o() -> Self {
        let site = Site::new();
        let recipe = h2o::recipe(&site);
        Self::start(site, recipe)
    }

    /// haproxy in front of another server.
    pub fn haproxy(behind: SocketAddr) -> Self {
        let site = Site::new();
        let recipe = haproxy::recipe(&site, behind);
        Self::start(site, recipe)
    }

    /// caddy, with a log of its TLS and QUIC port; there it has `/echo`, which answers with the request's body, and `/moved`, which
    /// redirects to `/`. `/ws` is passed on to `behind`, a server of WebSockets.
    pub fn caddy(behind: Option<SocketAddr>) -> Self {
        let site = Site::new();
        let recipe = caddy::recipe(&site, behind);
        Self::start(site, recipe)
    }

    /// envoy with one worker. `/ws` is passed on to a server of WebSockets, where there is one.
    pub fn envoy(options: EnvoyOptions) -> Self {
        let site = Site::new();
        let recipe = envoy::recipe(&site, options);
        Self::start(site, recipe)
    }

    /// Go's `net/http`, with a log that is written at its end.
    pub fn go() -> Self {
        let site = Site::new();
        let recipe = go::recipe(&site);
        Self::start(site, recipe)
    }

    /// nghttpd: HTTP/2 alone.
    pub fn nghttpd() -> Self {
        let site = Site::new();
        let recipe = nghttpd::recipe(&site);
        Self::start(site, recipe)
    }

    /// node's http2 module: HTTP/2 alone.
    pub fn node() -> Self {
        let site = Site::new();
        let recipe = node::recipe(&site);
        Self::start(site, recipe)
    }

    /// Where it listens without TLS.
    pub fn address(&self) -> SocketAddr {
        self.site.plain
    }

    /// `http://127.0.0.1:PORT` and `path`, which begins with a slash.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.site.plain)
    }

    /// `https://127.0.0.1:PORT` and `path`, which begins with a slash.
    pub fn tls_url(&self, path: &str) -> String {
        format!("https://{}{path}", self.site.tls)
    }

    /// `h2c://127.0.0.1:PORT` and `path`: HTTP/2 by prior knowledge.
    pub fn h2c_url(&self, path: &str) -> String {
        let address = if self.recipe.ports == Ports::Two { self.site.plain } else { self.site.h2c };
        format!("h2c://{address}{path}")
    }

    /// `h2://127.0.0.1:PORT` and `path`: HTTP/2 over TLS.
    pub fn h2_url(&self, path: &str) -> String {
        format!("h2://{}{path}", self.site.tls)
    }

    /// `h3://127.0.0.1:PORT` and `path`: HTTP/3.
    pub fn h3_url(&self, path: &str) -> String {
        format!("h3://{}{path}", self.site.tls)
    }

    /// `127.0.0.1:PORT` of its TLS port, which is its QUIC port as well.
    pub fn tls_address(&self) -> String {
        self.site.tls.to_string()
    }

    /// The PEM file of the authority that signed its certificate.
    pub fn ca_file(&self) -> PathBuf {
        self.site.path("ca.pem")
    }

    /// The process that was started; nginx and haproxy work in a child of it.
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// Kills all its processes at once, as a crash would, and returns when its ports are closed. [`Server::restart`]
    /// starts it again.
    pub fn kill(&mut self) {
        self.process.kill();
        // A worker holds the listening socket too, and is not ours to wait for.
        let closed = wait_until(Duration::from_secs(10), || TcpStream::connect(self.site.plain).is_err());
        assert!(closed, "{} was killed and still listens", self.recipe.program);
    }

    /// Starts it again on the same ports, its logs kept.
    pub fn restart(&mut self) {
        self.kill();
        self.process = self.site.start(&self.recipe);
    }

    /// Requests in the access log so far.
    pub fn logged_count(&self) -> usize {
        fs::read(self.site.path("access.log"))
            .map_or(0, |log| log.iter().filter(|byte| **byte == b'\n').count())
    }

    /// What it said on its output so far; nginx writes its errors there.
    pub fn output(&self) -> String {
        fs::read_to_string(self.site.path("output.log")).expect("the log of its output")
    }

    /// Ends the server gracefully, so that its access log is whole, and reads the log's lines.
    pub fn into_access_log(mut self) -> Vec<String> {
        self.process.signal(self.recipe.quit);
        if self.process.wait(Duration::from_secs(10)).is_none() {
            panic!("{} does not end when asked to", self.recipe.program);
        }
        let text = fs::read_to_string(self.site.path("access.log")).expect("the access log");
        text.lines().map(str::to_owned).collect()
    }

    fn start(site: Site, recipe: Recipe) -> Self {
        site.write("config", &recipe.config);
        Self { process: site.start(&recipe), recipe, site }
    }
}

impl Site {
    fn new() -> Self {
        let folder = TempDir::with_prefix("squall-test-").expect("a temporary folder");
        let loopback_port = || SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()));
        let site = Self { folder, plain: loopback_port(), tls: loopback_port(), h2c: loopback_port() };
        let authority = Authority::new();
        site.write_identity(&authority, &authority.issue_for_loopback());
        site.write_pages();
        site
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn folder(&self) -> &Path {
        self.folder.path()
    }

    fn write(&self, name: &str, content: &str) {
        fs::write(self.path(name), content).expect("the temporary folder is writable");
    }

    fn write_identity(&self, authority: &Authority, identity: &Identity) {
        self.write("ca.pem", &authority.pem());
        self.write("cert.pem", &identity.cert_pem);
        self.write("key.pem", &identity.key_pem);
        self.write("both.pem", &format!("{}{}", identity.cert_pem, identity.key_pem));
    }

    fn write_pages(&self) {
        fs::create_dir(self.path("www")).expect("the temporary folder is writable");
        self.write("www/index.html", "hello\n");
        for (name, bytes) in [("20k", 20_000), ("100k", 100_000), ("128k", 128_000), ("1m", 1_000_000)] {
            self.write(&format!("www/{name}"), &".".repeat(bytes));
        }
    }

    fn start(&self, recipe: &Recipe) -> Process {
        let (mut command, log_path) = self.command(recipe.program);
        let mut process = Process::start(command.args(&recipe.args));
        if recipe.ports != Ports::Http2Only {
            process.wait_until_accepting(self.plain, &log_path);
        }
        if recipe.ports != Ports::Two {
            process.wait_until_accepting(self.h2c, &log_path);
        }
        process.wait_until_accepting(self.tls, &log_path);
        process
    }

    /// A program that lives in this folder, and the log of what it says.
    fn command(&self, name: &str) -> (Command, PathBuf) {
        let log_path = self.path("output.log");
        let log = File::options().append(true).create(true).open(&log_path).expect("a log file");
        let mut command = Command::new(program(name));
        command.current_dir(self.folder()).env("HOME", self.folder());
        command.stdout(log.try_clone().expect("a descriptor")).stderr(log);
        (command, log_path)
    }
}

/// Whether servers must be configured to stay root: with less they could not reach their folder.
fn runs_as_root() -> bool {
    rustix::process::geteuid().is_root()
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};

    use super::*;

    fn get(server: &Server, path: &str) -> String {
        let mut stream = TcpStream::connect(server.site.plain).unwrap();
        let request =
            format!("GET {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", server.site.plain);
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    #[test]
    fn nginx_answers_logs_and_survives_a_crash() {
        let mut server = Server::nginx(NginxOptions::default());
        assert!(get(&server, "/").ends_with("hello\n"));
        server.kill();
        assert!(TcpStream::connect(server.site.plain).is_err());
        server.restart();
        assert!(get(&server, "/100k").ends_with("..."));
        let folder = server.site.folder().to_owned();
        assert_eq!(server.into_access_log().len(), 2);
        assert!(!folder.exists());
    }

    #[test]
    fn h2o_answers_and_logs() {
        let server = Server::h2o();
        assert!(get(&server, "/").ends_with("hello\n"));
        assert_eq!(get(&server, "/1m").len() / 1_000_000, 1);
        assert_eq!(server.into_access_log().len(), 2);
    }

    #[test]
    fn haproxy_passes_requests_on() {
        let behind = Server::nginx(NginxOptions::default());
        assert!(get(&Server::haproxy(behind.address()), "/").ends_with("hello\n"));
        assert_eq!(behind.into_access_log().len(), 1);
    }

    #[test]
    fn go_answers_and_logs() {
        let server = Server::go();
        assert!(get(&server, "/").ends_with("hello\n"));
        assert_eq!(server.into_access_log().len(), 1);
    }

    #[test]
    fn caddy_answers() {
        assert!(get(&Server::caddy(None), "/").ends_with("hello\n"));
    }
}
