//! Bodies that the peer begins to read late.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

use std::fs::File;
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use rustls::{ServerConfig, ServerConnection, StreamOwned};
use squall_testkit::Authority;
use tempfile::TempDir;

use crate::squall::{Ended, assert_none_complains, run};

/// Less than a TLS session holds back when the socket takes no more.
const STEP_BYTES: u64 = 16 * 1024;

#[test]
fn an_upload_over_tls_goes_out_to_its_last_byte() {
    let folder = TempDir::new().unwrap();
    let url = read_late();
    // What goes out while the peer does not read, and what the session holds back then.
    let stuck = upload(&url, folder.path(), 256 << 20, "300ms").count("/totals/bytes_sent");
    assert!(stuck < 200 << 20, "{stuck} bytes went to a peer that did not read");
    let sizes: Vec<u64> = (0..12).map(|nth| stuck + 2 * STEP_BYTES - nth * STEP_BYTES).collect();
    assert_none_complains(&sizes, |bytes| {
        let ended = upload(&url, folder.path(), *bytes, "5s");
        (ended.count("/totals/ok") != 1).then(|| format!("{bytes} bytes: {:?}", ended.errors()))
    });
}

fn upload(url: &str, folder: &Path, bytes: u64, timeout: &str) -> Ended {
    let body = folder.join(bytes.to_string());
    File::create(&body).and_then(|file| file.set_len(bytes)).unwrap();
    let body = body.to_str().unwrap();
    let flags = ["--insecure", "--http", "2", "-c1", "-n1", "-X", "POST", "--timeout", timeout];
    run(&[&flags[..], &["--body-file", body, url]].concat())
}

/// An HTTP/2 peer with windows for everything, which is silent from its settings to the end of the request.
fn read_late() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("https://{}/", listener.local_addr().unwrap());
    let mut config = Authority::new().issue_for_loopback().server_config(rustls::ALL_VERSIONS);
    config.alpn_protocols = vec![b"h2".to_vec()];
    let config = Arc::new(config);
    thread::spawn(move || {
        for socket in listener.incoming().map_while(Result::ok) {
            let config = Arc::clone(&config);
            // A client that gives up ends its connection.
            thread::spawn(move || answer_late(socket, config));
        }
    });
    url
}

fn answer_late(socket: TcpStream, config: Arc<ServerConfig>) -> io::Result<()> {
    let session = ServerConnection::new(config).map_err(io::Error::other)?;
    let mut stream = StreamOwned::new(session, socket);
    stream.write_all(SETTINGS)?;
    thread::sleep(Duration::from_millis(600));
    stream.read_exact(&mut [0; PREFACE_BYTES])?;
    loop {
        let mut head = [0; 9];
        stream.read_exact(&mut head)?;
        let [a, b, c, kind, flags, stream_id @ ..] = head;
        let length = u64::from(u32::from_be_bytes([0, a, b, c]));
        io::copy(&mut (&mut stream).take(length), &mut io::sink())?;
        if matches!(kind, DATA | HEADERS) && flags & END_STREAM != 0 {
            // `:status: 200` alone, and the end of the stream.
            stream.write_all(&[&[0, 0, 1, HEADERS, 5][..], &stream_id, &[0x88]].concat())?;
        }
    }
}

const PREFACE_BYTES: usize = 24;
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const END_STREAM: u8 = 1;

/// SETTINGS_INITIAL_WINDOW_SIZE and a WINDOW_UPDATE of the connection, 2^30 both; and the acknowledgement of the client's SETTINGS.
const SETTINGS: &[u8] = &[
    0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 4, 64, 0, 0, 0, 0, 0, 4, 8, 0, 0, 0, 0, 0, 64, 0, 0, 0, 0, 0, 0, 4, 1, 0,
    0, 0, 0,
];
