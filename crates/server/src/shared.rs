//! What all threads of the server share, and what each has for itself.

use std::{sync::Arc, time::Duration};

use hyper::header::HeaderValue;

use crate::{Stats, channels::Channels, log::Log, sequence::Sequence, stats::Counters, tls::Identity};

/// What all threads read, and the few numbers that they hand out together.
pub(crate) struct SharedState {
    pub(crate) tls: Option<Identity>,
    /// Where HTTP/3 is spoken (RFC 7838), for the heads of other responses.
    pub(crate) alt_svc: Option<HeaderValue>,
    pub(crate) head_timeout: Duration,
    /// One for each worker.
    pub(crate) counters: Vec<Counters>,
    pub(crate) sequences: Sequences,
    pub(crate) channels: Channels,
}

/// What one thread owns.
pub(crate) struct Worker {
    pub(crate) shared: Arc<SharedState>,
    pub(crate) index: usize,
    pub(crate) log: Option<Log>,
}

/// One sequence for each purpose, so that the draws of one route do not depend on calls of another.
#[derive(Default)]
pub(crate) struct Sequences {
    pub(crate) connection: Sequence,
    pub(crate) delay: Sequence,
    pub(crate) latency: Sequence,
    pub(crate) status: Sequence,
    pub(crate) uuid: Sequence,
    pub(crate) nonce: Sequence,
}

impl SharedState {
    pub(crate) fn stats(&self) -> Stats {
        let mut sum = Stats::default();
        self.counters.iter().for_each(|counters| counters.add_to(&mut sum));
        sum
    }

    pub(crate) fn scheme(&self) -> &'static str {
        if self.tls.is_some() { "https" } else { "http" }
    }
}

impl Worker {
    pub(crate) fn counters(&self) -> &Counters {
        &self.shared.counters[self.index]
    }

    pub(crate) fn write_log(&self, line: &str) {
        if self.log.as_ref().is_some_and(|log| log.write(line).is_err()) {
            self.counters().log_lines_lost.add(1);
        }
    }

    pub(crate) fn flush_log(&self) {
        if self.log.as_ref().is_some_and(|log| log.flush().is_err()) {
            self.counters().log_lines_lost.add(1);
        }
    }
}
