//! Secrets of TLS sessions in NSS key-log format, appended to a file that Wireshark reads (SSLKEYLOGFILE, RFC 9850).

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use rustls::KeyLog;
use squall_plan::files::open_private;

use crate::Error;

/// A file that secrets are appended to, one line each.
#[derive(Debug)]
pub(crate) struct KeyLogFile(Mutex<File>);

impl KeyLogFile {
    /// Opens the file, or makes one. Only its owner may read it, even if others could before.
    pub(crate) fn open(path: &Path) -> Result<Self, Error> {
        let file = open_private(path, OpenOptions::new().append(true).create(true));
        let file =
            file.map_err(|source| Error::LogFile { what: "key log", path: path.to_owned(), source })?;
        Ok(Self(Mutex::new(file)))
    }
}

impl KeyLog for KeyLogFile {
    fn log(&self, label: &str, client_random: &[u8], secret: &[u8]) {
        let line = format!("{label} {} {}\n", hex(client_random), hex(secret));
        let mut file = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // A full disk costs the log, not the run.
        let _ = file.write_all(line.as_bytes());
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
