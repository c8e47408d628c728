//! `squall target` as a process: its first line is its URL, and Ctrl-C ends it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

use crate::command;

#[test]
fn target_prints_its_url_answers_and_ends_on_a_signal() {
    for signal in ["-INT", "-TERM"] {
        let mut child = command(&["target"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let url = first_line(&mut child);
        let address = url.strip_prefix("http://").unwrap().trim_end_matches('/');
        assert!(get(address, "/bytes/10").starts_with("HTTP/1.1 200"));
        kill(signal, &child);
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{signal}: {:?}", output.status);
        assert_eq!(String::from_utf8(output.stderr).unwrap(), "answered 1 request on 1 connection\n");
    }
}

#[test]
fn target_writes_its_certificate() {
    let path = crate::folder().join("target.pem");
    let args = ["target", "--tls", "--write-cert", path.to_str().unwrap()];
    let mut child = command(&args).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    assert!(first_line(&mut child).starts_with("https://127.0.0.1:"));
    kill("-TERM", &child);
    assert!(child.wait().unwrap().success());
    assert!(std::fs::read_to_string(path).unwrap().starts_with("-----BEGIN CERTIFICATE-----"));
}

fn first_line(child: &mut Child) -> String {
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    line.trim_end().to_owned()
}

fn get(address: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    String::from_utf8_lossy(&answer).into_owned()
}

fn kill(signal: &str, child: &Child) {
    let kill = format!("kill {signal} {}", child.id());
    let status = Command::new("sh").args(["-c", &kill]).status().unwrap();
    assert!(status.success());
}
