//! All figures of a span of time: what a shard fills for a second, and what a run adds up to.
//!
//! Owns: which figure a sample goes into. Totals over rows are not kept: they are added up when asked for.

use std::borrow::Cow;
use std::iter::repeat_with;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::figures::{figures, fixed, most};
use crate::{
    AltSvc, Failures, Histogram, Http2, Outcome, Phases, Quic, Replay, Sample, ScriptFigures, Sessions,
    StatusCounts, StreamFigures, WebSockets,
};

figures! {
    /// All figures of a span of time. Snapshots of any two spans or shards of the same run merge into one.
    ///
    /// Recording and clearing never allocate; nor does merging, when both have the same rows and the other brings no new failure example.
    #[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
    pub struct Snapshot {
        /// Whether requests start by a schedule: then latency counts from the intended start, and service time is reported separately.
        pub open_model: bool as fixed,
        /// Requests begun (each settles as ok, failed, or interrupted; maybe in a later second).
        pub requests_started: u64,
        /// Requests made again on a new connection because a reused one died before any byte came.
        pub requests_retried: u64,
        /// Requests made in the warm-up; they are in no other figure.
        pub requests_warmup: u64,
        /// Open model: arrivals that the schedule asked for in this span, sent or not; those of the warm-up left out.
        pub arrivals_asked: u64,
        /// Of these, those sent: hops of redirects are requests, and no arrivals.
        #[serde(default)]
        pub arrivals_sent: u64,
        /// Of those asked for, those of machines that were lost before they could send them.
        #[serde(default, skip_serializing_if = "is_zero")]
        pub arrivals_lost: u64,
        /// TCP connections opened (TLS included where spoken).
        pub connections_opened: u64,
        /// Requests that went out on a connection that had carried one before.
        pub connections_reused: u64,
        /// Bytes written to sockets, below TLS.
        pub wire_bytes_sent: u64,
        /// Bytes read from sockets, below TLS.
        pub wire_bytes_received: u64,
        /// Name look-ups.
        pub looking_up: Histogram,
        /// Phases of successful requests.
        pub phases: PhaseHistograms,
        /// Latency of failed requests, never mixed with that of successes.
        pub latency_failed: Histogram,
        /// Failures by cause and phase.
        pub failures: Failures,
        /// The generator's own state.
        pub generator: Generator,
        /// Figures by row.
        pub rows: Vec<Row>,
        /// What only handshakes and kept connections have.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub sessions: Option<Box<Sessions>>,
        /// The metrics of a script.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub script: Option<Box<ScriptFigures>>,
        /// What only HTTP/2 has.
        #[serde(default, skip_serializing_if = "Http2::is_empty")]
        pub http2: Http2,
        /// What only HTTP/3 has: the same as HTTP/2.
        #[serde(default, skip_serializing_if = "Http2::is_empty")]
        pub http3: Http2,
        /// What only QUIC has.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub quic: Option<Box<Quic>>,
        /// What servers announced in Alt-Svc, where that is followed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub alt_svc: Option<Box<AltSvc>>,
        /// What only streams of events have.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub streams: Option<Box<StreamFigures>>,
        /// What only WebSockets have.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub websockets: Option<Box<WebSockets>>,
        /// What only the replay of recorded traffic has.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub replay: Option<Box<Replay>>,
    }
}

figures! {
    /// Figures of one row: one load, protocol, method and URL pattern.
    #[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
    pub struct Row {
        /// Requests that ended well.
        pub ok: u64,
        /// Requests that failed.
        pub failed: u64,
        /// Requests still open when the run was cut off.
        pub interrupted: u64,
        /// Bytes written for its requests, above TLS.
        pub bytes_sent: u64,
        /// Bytes read for its requests, above TLS.
        pub bytes_received: u64,
        /// Latency of successful requests.
        pub latency: Histogram,
        /// Responses by status, those of failed requests included.
        pub status: StatusCounts,
    }
}

figures! {
    /// One histogram per phase, of successful requests. Connecting and TLS count only requests that opened a connection.
    #[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
    pub struct PhaseHistograms {
        /// From the intended start until a connection was there to use.
        pub blocked: Histogram,
        /// TCP connect.
        pub connecting: Histogram,
        /// TLS handshake.
        pub tls_handshaking: Histogram,
        /// Writing the request.
        pub sending: Histogram,
        /// From the last byte written to the first byte read.
        pub waiting: Histogram,
        /// From the first byte read to the last.
        pub receiving: Histogram,
        /// Sending, waiting and receiving together: k6's `http_req_duration`, and the service time of an open model. Of a connection
        /// that was made for its own sake: connecting and TLS as well.
        pub duration: Histogram,
        /// All phases together.
        pub total: Histogram,
    }
}

figures! {
    /// The generator's own state in a span: how late and how busy it was.
    #[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
    pub struct Generator {
        /// Length of the span, summed over shards.
        pub wall: Duration,
        /// Time between waking and waiting again, summed over shards.
        pub busy: Duration,
        /// CPU time of the shards' threads, summed.
        pub cpu: Duration,
        /// Longest turn of a loop.
        pub stall_max: Duration as most,
        /// Open model: how late each arrival was sent although a connection was free, in nanoseconds: the
        /// generator's own fault.
        pub schedule_lag: Histogram,
        /// Connections open at the span's end, summed over shards; in a run's total the most at the end of any second.
        pub connections_open: u64,
        /// Open model: arrivals waiting for a connection at the span's end, summed over shards; in a run's total the most at the
        /// end of any second.
        pub arrivals_waiting: u64,
    }
}

impl Snapshot {
    /// An empty snapshot. `open_model`: whether service times are kept apart from latencies.
    pub fn new(row_count: usize, open_model: bool) -> Self {
        Self {
            open_model,
            // `vec![row; n]` would copy, and so touch, every page of a histogram.
            rows: repeat_with(Row::default).take(row_count).collect(),
            ..Self::default()
        }
    }

    /// Folds one settled request in.
    ///
    /// # Panics
    /// When the sample names a row that the snapshot does not have.
    #[inline]
    pub fn record(&mut self, sample: &Sample) {
        if self.settle(sample) {
            self.phases.record(&sample.phases);
        }
    }

    /// Folds one settled connection in that was made for its own sake. Connecting and the TLS handshake are its service time.
    ///
    /// # Panics
    /// When the sample names a row that the snapshot does not have.
    pub fn record_session(&mut self, sample: &Sample) {
        if self.settle(sample) {
            self.phases.record_session(&sample.phases);
        }
    }

    /// Counts how a sample ended; whether that was well.
    #[inline]
    fn settle(&mut self, sample: &Sample) -> bool {
        let row = &mut self.rows[sample.row_idx as usize];
        row.bytes_sent += sample.bytes_sent;
        row.bytes_received += sample.bytes_received;
        if sample.status != 0 {
            row.status.record(sample.status);
        }
        match sample.outcome {
            Outcome::Ok => {
                row.ok += 1;
                row.latency.record(sample.latency_ns);
            }
            Outcome::Failed(cause, phase) => {
                row.failed += 1;
                self.latency_failed.record(sample.latency_ns);
                self.failures.count(cause, phase);
            }
            Outcome::Interrupted => row.interrupted += 1,
        }
        sample.outcome == Outcome::Ok
    }

    /// The run began so much earlier than the clock of what is in it.
    pub fn put_off(&mut self, by: Duration) {
        self.failures.put_off(by);
        if let Some(alt_svc) = &mut self.alt_svc {
            alt_svc.fallbacks.put_off(by);
        }
    }

    /// Requests that ended well.
    pub fn ok(&self) -> u64 {
        self.rows.iter().map(|row| row.ok).sum()
    }

    /// Requests that failed.
    pub fn failed(&self) -> u64 {
        self.rows.iter().map(|row| row.failed).sum()
    }

    /// Requests still open when the run was cut off.
    pub fn interrupted(&self) -> u64 {
        self.rows.iter().map(|row| row.interrupted).sum()
    }

    /// Requests that ended in any way.
    pub fn settled(&self) -> u64 {
        self.rows.iter().map(Row::settled).sum()
    }

    /// Bytes written for requests, above TLS.
    pub fn bytes_sent(&self) -> u64 {
        self.rows.iter().map(|row| row.bytes_sent).sum()
    }

    /// Bytes read for requests, above TLS.
    pub fn bytes_received(&self) -> u64 {
        self.rows.iter().map(|row| row.bytes_received).sum()
    }

    /// Latency of successful requests, from the intended start in an open model.
    pub fn latency(&self) -> Cow<'_, Histogram> {
        if let [row] = self.rows.as_slice() {
            return Cow::Borrowed(&row.latency);
        }
        let mut latency = Histogram::new();
        self.rows.iter().for_each(|row| latency.merge(&row.latency));
        Cow::Owned(latency)
    }

    /// Open model: time of successful requests from the start of sending; `None` in a closed model, where it is the latency.
    pub fn service(&self) -> Option<&Histogram> {
        self.open_model.then_some(&self.phases.duration)
    }

    /// Responses by status, those of failed requests included.
    pub fn status(&self) -> StatusCounts {
        let mut status = StatusCounts::new();
        self.rows.iter().for_each(|row| status.merge(&row.status));
        status
    }
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl Row {
    /// Requests that ended in any way.
    pub fn settled(&self) -> u64 {
        self.ok + self.failed + self.interrupted
    }
}

impl PhaseHistograms {
    /// Each phase by its name in k6's order, then what they add up to.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &Histogram)> {
        let all = [
            ("blocked", &self.blocked),
            ("connecting", &self.connecting),
            ("tls_handshaking", &self.tls_handshaking),
            ("sending", &self.sending),
            ("waiting", &self.waiting),
            ("receiving", &self.receiving),
            ("duration", &self.duration),
            ("total", &self.total),
        ];
        all.into_iter()
    }

    #[inline]
    fn record(&mut self, phases: &Phases) {
        self.record_opening(phases);
        self.record_exchange(phases);
        self.duration.record(phases.duration_ns());
    }

    /// Most such connections make no request, and then there is nothing to record of one.
    fn record_session(&mut self, phases: &Phases) {
        self.record_opening(phases);
        if phases.duration_ns() > 0 {
            self.record_exchange(phases);
        }
        self.duration.record(phases.total_ns() - phases.blocked_ns);
    }

    #[inline]
    fn record_opening(&mut self, phases: &Phases) {
        self.blocked.record(phases.blocked_ns);
        if let Some(connecting_ns) = phases.connecting_ns {
            self.connecting.record(connecting_ns);
        }
        if let Some(tls_handshaking_ns) = phases.tls_handshaking_ns {
            self.tls_handshaking.record(tls_handshaking_ns);
        }
        self.total.record(phases.total_ns());
    }

    #[inline]
    fn record_exchange(&mut self, phases: &Phases) {
        self.sending.record(phases.sending_ns);
        self.waiting.record(phases.waiting_ns);
        self.receiving.record(phases.receiving_ns);
    }
}
