//! The log: one line for each finished request, so that a test can compare the server's count with a client's.
//!
//! Each worker writes through its own buffer into the same file, opened for appending; a buffer holds whole lines only,
//! so lines of two workers never mix. The order of lines is therefore that of the flushes, not of time.

use std::{
    fs::{File, OpenOptions},
    io::{self, BufWriter, Write},
    path::Path,
    sync::{Mutex, PoisonError},
    time::{Instant, SystemTime, UNIX_EPOCH},
};

use hyper::{Method, http::request::Parts};

use crate::Error;

/// Makes the file empty, or fails when it cannot be written.
pub(crate) fn create(path: &Path) -> Result<(), Error> {
    File::create(path).map(drop).map_err(|source| Error::Log { path: path.to_owned(), source })
}

/// One worker's end of the log. Only that worker writes, so the lock is never waited for.
pub(crate) struct Log(Mutex<BufWriter<File>>);

impl Log {
    pub(crate) fn open(path: &Path) -> Result<Self, Error> {
        let opened = OpenOptions::new().append(true).open(path);
        let file = opened.map_err(|source| Error::Log { path: path.to_owned(), source })?;
        Ok(Self(Mutex::new(BufWriter::with_capacity(BUFFER_BYTES, file))))
    }

    pub(crate) fn write(&self, line: &str) -> io::Result<()> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).write_all(line.as_bytes())
    }

    pub(crate) fn flush(&self) -> io::Result<()> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).flush()
    }
}

/// What is known of a request when it begins.
pub(crate) struct Entry {
    at: SystemTime,
    begun: Instant,
    method: Method,
    target: String,
}

impl Entry {
    pub(crate) fn new(head: &Parts) -> Self {
        let target = head.uri.path_and_query().map_or("*", |target| target.as_str()).to_owned();
        Self { at: SystemTime::now(), begun: Instant::now(), method: head.method.clone(), target }
    }

    /// `<unix time> <connection> <method> <target> <status> <body bytes> <service time in us> <ok|cut>`
    pub(crate) fn line(&self, end: &RequestEnd) -> String {
        let at = self.at.duration_since(UNIX_EPOCH).unwrap_or_default();
        let took_us = self.begun.elapsed().as_micros();
        let result = if end.is_complete { "ok" } else { "cut" };
        let Self { method, target, .. } = self;
        let RequestEnd { connection, status, body_bytes, .. } = end;
        let (seconds, micros) = (at.as_secs(), at.subsec_micros());
        format!(
            "{seconds}.{micros:06} {connection} {method} {target} {status} {body_bytes} {took_us} {result}\n"
        )
    }
}

/// What is known of a request when it is over.
pub(crate) struct RequestEnd {
    /// Number of the connection, from 1 on.
    pub(crate) connection: u64,
    /// 0 when there was no response.
    pub(crate) status: u16,
    pub(crate) body_bytes: u64,
    pub(crate) is_complete: bool,
}

/// Longer than any line: hyper takes targets of at most 64 KiB.
const BUFFER_BYTES: usize = 128 * 1024;
