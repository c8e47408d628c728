//! How far a long file is read: one line on a terminal, once it takes longer than people like to wait.

use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::time::{Duration, Instant};

/// The line.
pub(super) struct ReadProgress {
    name: String,
    started: Instant,
    drawn: Option<Instant>,
    is_shown: bool,
}

impl ReadProgress {
    /// Nothing is shown yet.
    pub(super) fn new(path: &Path) -> Self {
        let name = path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        Self { name, started: Instant::now(), drawn: None, is_shown: io::stderr().is_terminal() }
    }

    /// So many bytes are read.
    pub(super) fn update(&mut self, bytes: u64) {
        let is_due = match self.drawn {
            None => self.started.elapsed() > PATIENCE,
            Some(drawn) => drawn.elapsed() > REDRAW_EVERY,
        };
        if self.is_shown && is_due {
            self.drawn = Some(Instant::now());
            let rate = bytes as f64 / 1e6 / self.started.elapsed().as_secs_f64();
            self.draw(&format!("reading {}: {:.0} MB, {rate:.0} MB/s", self.name, bytes as f64 / 1e6));
        }
    }

    fn draw(&self, text: &str) {
        // A terminal that is gone is no reason to stop.
        let _ = write!(io::stderr().lock(), "\r\x1b[K{text}");
    }
}

impl Drop for ReadProgress {
    fn drop(&mut self) {
        if self.drawn.is_some() {
            self.draw("");
        }
    }
}

/// Work that takes less than this needs no line.
const PATIENCE: Duration = Duration::from_secs(1);

const REDRAW_EVERY: Duration = Duration::from_millis(250);
