//! What happens on connections, in files of the qlog format (JSON text sequences, which qvis and other viewers read).
//!
//! Owns: how many files there are, and how long each becomes. Never: what is in them, which is quinn-proto's.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

use quinn_proto::{QlogConfig, QlogStream};
use rustix::fs::{Access, access};
use squall_plan::limits::{QLOG_FILE_BYTES_MAX, QLOG_FILE_COUNT_MAX};

use crate::Error;

/// The files of one load's connections, of all its event loops.
#[derive(Debug)]
pub(crate) struct QlogFiles {
    folder: PathBuf,
    /// Connections of the load that have had their turn.
    taken_count: AtomicU32,
    next_number: AtomicU32,
}

impl QlogFiles {
    pub(crate) fn new(folder: &Path) -> Self {
        Self { folder: folder.to_owned(), taken_count: AtomicU32::new(0), next_number: AtomicU32::new(0) }
    }

    /// The file of the next connection; `None`: enough have one. A full disk costs the log, not the run.
    pub(super) fn next_stream(&self, begin: Instant) -> Option<QlogStream> {
        let take = |count: u32| (count < QLOG_FILE_COUNT_MAX).then_some(count + 1);
        self.taken_count.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).ok()?;
        let (number, file) = self.create_next().ok()?;
        let mut config = QlogConfig::default();
        config.title(Some(format!("squall, connection {number}"))).start_time(begin);
        let (inner, left_bytes) = (BufWriter::new(file), QLOG_FILE_BYTES_MAX);
        config.writer(Box::new(BoundedWriter { inner, left_bytes, is_over: false }));
        config.into_stream()
    }

    /// Creates the file with the lowest number that is free. Other loads, and other processes, may write into the same folder.
    fn create_next(&self) -> io::Result<(u32, File)> {
        loop {
            let number = self.next_number.fetch_add(1, Ordering::Relaxed);
            match File::create_new(file_path(&self.folder, number)) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                created => return Ok((number, created?)),
            }
        }
    }
}

/// Makes the folder, and finds out whether files can be created there.
pub(crate) fn prepare_qlog(folder: &Path) -> Result<(), Error> {
    let writable =
        fs::create_dir_all(folder).and_then(|()| Ok(access(folder, Access::WRITE_OK | Access::EXEC_OK)?));
    writable.map_err(|source| Error::LogFile { what: "qlog directory", path: folder.to_owned(), source })
}

fn file_path(folder: &Path, number: u32) -> PathBuf {
    folder.join(format!("connection-{number}.sqlog"))
}

/// Writes records until it has written enough; the last one is written to its end.
struct BoundedWriter<W> {
    inner: W,
    left_bytes: u64,
    is_over: bool,
}

impl<W: Write> Write for BoundedWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // RFC 7464 2.2: each record begins with this byte, which is written alone.
        self.is_over |= self.left_bytes == 0 && bytes.first() == Some(&RECORD_SEPARATOR);
        if !self.is_over {
            self.inner.write_all(bytes)?;
            self.left_bytes = self.left_bytes.saturating_sub(bytes.len() as u64);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

const RECORD_SEPARATOR: u8 = 0x1e;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loads_that_share_a_folder_have_a_hundred_files_each() {
        let folder = tempfile::tempdir().unwrap();
        prepare_qlog(folder.path()).unwrap();
        let loads = [QlogFiles::new(folder.path()), QlogFiles::new(folder.path())];
        for load in &loads {
            let files = (0..QLOG_FILE_COUNT_MAX + 5).filter_map(|_| load.next_stream(Instant::now()));
            assert_eq!(files.count(), QLOG_FILE_COUNT_MAX as usize);
            // The next step prepares the folder again.
            prepare_qlog(folder.path()).unwrap();
        }
        let sizes =
            fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().metadata().unwrap().len());
        let sizes: Vec<u64> = sizes.collect();
        assert_eq!(sizes.len(), 2 * QLOG_FILE_COUNT_MAX as usize);
        assert!(sizes.iter().all(|bytes| *bytes > 0), "{sizes:?}");
    }

    #[test]
    fn a_file_ends_with_the_record_that_fills_it() {
        let mut writer = BoundedWriter { inner: Vec::new(), left_bytes: 10, is_over: false };
        for record in ["first", "second", "third", "fourth"] {
            for part in ["\x1e", record, "\n"] {
                writer.write_all(part.as_bytes()).unwrap();
            }
        }
        assert_eq!(String::from_utf8(writer.inner).unwrap(), "\x1efirst\n\x1esecond\n");
    }
}
