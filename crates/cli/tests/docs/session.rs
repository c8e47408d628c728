//! Runs the commands of a page as a reader would, in a folder and on ports that no other page uses.

use std::fs;
use std::net::{Ipv4Addr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use squall_testkit::{Process, free_port, wait_until};

use crate::page::Page;

/// Where the commands of one page run.
pub(crate) struct Session {
    folder: PathBuf,
    /// Ports as the pages have them, and those used instead.
    ports: Vec<(&'static str, String)>,
    /// What runs until the end of the page, and is then killed.
    background: Vec<Process>,
}

impl Session {
    /// Copies the files of the examples, and starts a server on port 8080 if the page starts none.
    pub(crate) fn new(page: &Page) -> Self {
        let ports = PORTS.iter().map(|port| (*port, free_port().to_string())).collect();
        let mut session = Self { folder: crate::scratch(&page.name()), ports, background: Vec::new() };
        for entry in fs::read_dir(crate::docs().join("examples")).unwrap() {
            let path = entry.unwrap().path();
            let text = session.with_free_ports(&fs::read_to_string(&path).unwrap());
            fs::write(session.folder.join(path.file_name().unwrap()), text).unwrap();
        }
        let is_target = |command: &str| command.ends_with('&') && command.contains("--port 8080");
        if !page.examples.iter().any(|example| is_target(&example.command)) {
            session.run("squall target --port 8080 &");
        }
        session
    }

    /// Runs a command; gives the lines of its stdout, or of its stderr if there are none.
    pub(crate) fn run(&mut self, command: &str) -> Vec<String> {
        let free = self.with_free_ports(command);
        if let Some(background) = free.strip_suffix('&') {
            self.start(background);
            return Vec::new();
        }
        let output = self.command("timeout").args(["60", "sh", "-c", &free]).output().unwrap();
        let bytes = if output.stdout.is_empty() { output.stderr } else { output.stdout };
        let text = String::from_utf8_lossy(&bytes).replace(self.folder.to_str().unwrap(), "~");
        let text = self.ports.iter().fold(text, |text, (documented, free)| text.replace(free, documented));
        text.trim_end().lines().map(str::to_owned).collect()
    }

    /// Starts a command, and waits until something listens on each port that it names.
    fn start(&mut self, command: &str) {
        let mut shell = self.command("sh");
        shell.args(["-c", command]).stdout(Stdio::null()).stderr(Stdio::null());
        self.background.push(Process::start(&mut shell));
        for (_, port) in self.ports.iter().filter(|(_, port)| command.contains(port.as_str())) {
            let address = (Ipv4Addr::LOCALHOST, port.parse().unwrap());
            wait_until(Duration::from_secs(20), || TcpStream::connect(address).is_ok());
        }
    }

    fn command(&self, program: &str) -> Command {
        let binary = Path::new(env!("CARGO_BIN_EXE_squall"));
        let path = format!("{}:{}", binary.parent().unwrap().display(), std::env::var("PATH").unwrap());
        let mut command = Command::new(program);
        command.current_dir(&self.folder).stdin(Stdio::null()).env("PATH", path).env("HOME", &self.folder);
        for name in ["XDG_STATE_HOME", "XDG_CACHE_HOME", "COLUMNS", "CLICOLOR_FORCE"] {
            command.env_remove(name);
        }
        command.env("LC_ALL", "C.UTF-8").env("NO_COLOR", "1");
        command
    }

    /// Replaces all ports in one pass: a free one may contain the digits of another that is documented.
    fn with_free_ports(&self, mut text: &str) -> String {
        let mut replaced = String::with_capacity(text.len());
        let first = |text: &str| {
            let places = self.ports.iter().filter_map(|port| Some((text.find(port.0)?, port)));
            places.min_by_key(|(at, _)| *at)
        };
        while let Some((at, (documented, free))) = first(text) {
            replaced.push_str(&text[..at]);
            replaced.push_str(free);
            text = &text[at + documented.len()..];
        }
        replaced + text
    }
}

/// The ports of the pages.
const PORTS: [&str; 6] = ["8080", "8081", "8443", "9090", "9100", "5665"];
