//! Handshakes and idle connections: connections that are opened for their own sake. Each makes its handshake and maybe one request, and is then
//! closed, kept for a while, or kept until the end.
//!
//! Owns: which attempt starts when, what is offered to resume, and what becomes of a connection that is open. Never: sockets and bytes, which are
//! `connections`' as for every load. Its methods are in `starts` (which attempt begins, and after which pause), `stay` (what follows the opening: a
//! ticket, keeping, pings, the end), `outcomes` (what is counted) and `tickets` (what is resumed).

mod outcomes;
mod starts;
mod stay;
mod tickets;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::Arc;

use rustls::ClientConfig;
use squall_measure::Kept;
use squall_plan::{ShardPart, When};

use crate::pace::SplitMix;
use crate::prepare::{Conduct, OriginTls, Prepared};
use crate::pulse::Pulse;
use crate::shard::connections::conn::ConnCold;
use crate::shard::schedule::waiter::SWEEP_NS;
use crate::sys::{nanoseconds, process_data_bytes};
use crate::tls::TlsStream;

pub(super) use outcomes::Loss;
use outcomes::TermsCache;
use tickets::Configs;

/// What a load of connections is to open, and what becomes of it.
pub(in crate::shard) struct SessionSchedule {
    conduct: Conduct,
    /// What handshakes offer; `None`: no TLS is spoken.
    configs: Option<Configs>,
    /// Handshakes in a row after which no ticket came.
    ticketless_count: u32,
    terms: TermsCache,
    random: SplitMix,
    memory: Option<Memory>,
    is_open_model: bool,
    /// The most connections that may be open or opening.
    count_max: u32,
    /// Those that are, or have ended and are not followed by another yet.
    live_count: u32,
    /// Attempts that wait for a connection to end.
    waiting: VecDeque<Wanted>,
    /// Attempts whose pause is not over.
    resting: BinaryHeap<Reverse<Wanted>>,
    ended: Vec<Ended>,
    /// Until then the number of users changes.
    ramp_until_ns: u64,
    /// Parked connections whose time is over: kept for its capacity.
    due: Vec<u32>,
}

/// An attempt that is to begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Wanted {
    at_ns: u64,
    /// Connects that failed in a row; of connections to be kept also those that ended soon.
    failure_count: u16,
    /// It takes the place of a connection that was to be kept, and has ended.
    is_reopening: bool,
}

/// A connection that has ended: its user goes on.
#[derive(Debug, Clone, Copy)]
struct Ended {
    failure_count: u16,
    is_reopening: bool,
    /// It was established.
    has_stood: bool,
}

/// How much the process has grown since the start.
struct Memory {
    begin_bytes: u64,
    grown_bytes: u64,
}

impl SessionSchedule {
    /// That of a load which starts at `start_ns`; `None`: it is one of requests. `watches_memory`: this shard reports the process's.
    pub(in crate::shard) fn new(
        prepared: &Prepared,
        part: &ShardPart,
        start_ns: u64,
        watches_memory: bool,
    ) -> Option<Box<Self>> {
        let sessions = prepared.sessions.as_ref()?;
        let ramp_ns = match &prepared.load.when {
            When::Closed { connections, .. } => nanoseconds(connections.duration()),
            When::Open { .. } => 0,
        };
        let configs = sessions.tls.as_ref().map(|config| Configs::new(config, &sessions.conduct.resumption));
        Some(Box::new(Self {
            conduct: sessions.conduct,
            configs,
            ticketless_count: 0,
            terms: TermsCache::default(),
            random: SplitMix::new(u64::from(part.shard_idx) + 1),
            memory: watches_memory.then(Memory::new),
            is_open_model: matches!(prepared.load.when, When::Open { .. }),
            count_max: part.connection_count_max(&prepared.load.when),
            live_count: 0,
            waiting: VecDeque::new(),
            resting: BinaryHeap::new(),
            ended: Vec::new(),
            ramp_until_ns: start_ns.saturating_add(ramp_ns).saturating_add(SWEEP_NS),
            due: Vec::new(),
        }))
    }

    /// A session for a connection that is established: what it offers, and whether it sends its `request` at once.
    pub(in crate::shard) fn start_tls(
        &mut self,
        origin_tls: &OriginTls,
        request: &[u8],
        cold: &mut ConnCold,
    ) -> Result<TlsStream, rustls::Error> {
        let name = origin_tls.server_name.clone();
        let is_kept = self.configs.is_some();
        let config = self.next_config(origin_tls, cold);
        if !is_kept {
            return TlsStream::new(config, name);
        }
        let early = Some(request).filter(|request| config.enable_early_data && !request.is_empty());
        TlsStream::resumable(config, name, early)
    }

    /// The settings of the next session.
    pub(in crate::shard) fn next_config(
        &mut self,
        origin_tls: &OriginTls,
        cold: &mut ConnCold,
    ) -> Arc<ClientConfig> {
        let Some(configs) = &mut self.configs else { return Arc::clone(&origin_tls.config) };
        let (config, resumes) = configs.next();
        cold.lacks_ticket = resumes && configs.stock_count(&origin_tls.server_name) == 0;
        config
    }

    /// Whether nothing is to be started or continued, now or after a pause.
    pub(in crate::shard) fn is_at_rest(&self) -> bool {
        self.live_count == 0 && self.waiting.is_empty() && self.resting.is_empty() && self.ended.is_empty()
    }

    /// Whether something can be started in this turn.
    pub(in crate::shard) fn has_work(&self, open_count: u32) -> bool {
        !self.ended.is_empty() || !self.waiting.is_empty() && self.may_start(open_count)
    }

    /// Attempts that wait for a connection.
    pub(in crate::shard) fn waiting_count(&self) -> u64 {
        self.waiting.len() as u64
    }

    /// Nothing that has not begun will; how much that is.
    pub(in crate::shard) fn drop_waiting(&mut self) -> u64 {
        let count = self.waiting_count();
        self.waiting.clear();
        self.resting.clear();
        count
    }

    /// Whether no pause and no ramp needs a look at the clock.
    pub(in crate::shard) fn is_timeless(&self, now_ns: u64) -> bool {
        self.resting.is_empty() && now_ns >= self.ramp_until_ns
    }

    /// Notes by how much the process is larger than ever before.
    pub(in crate::shard) fn note_memory(&mut self, pulse: &mut Pulse) {
        if let Some(memory) = &mut self.memory {
            let more_bytes = memory.more_bytes(process_data_bytes());
            pulse.snapshot.sessions.get_or_insert_default().memory_grown_bytes += more_bytes;
        }
    }

    /// Whether one more attempt could begin.
    fn may_start(&self, open_count: u32) -> bool {
        self.live_count < self.count_max && !(self.conduct.is_idle && open_count >= OPENINGS_AT_ONCE_MAX)
    }

    /// A random time up to the jitter.
    fn jitter_ns(&mut self) -> u64 {
        match self.conduct.jitter_ns {
            0 => 0,
            jitter_ns => self.random.next() % jitter_ns + 1,
        }
    }
}

impl Memory {
    fn new() -> Self {
        Self { begin_bytes: process_data_bytes(), grown_bytes: 0 }
    }

    fn more_bytes(&mut self, data_bytes: u64) -> u64 {
        let grown_bytes = data_bytes.saturating_sub(self.begin_bytes);
        let more_bytes = grown_bytes.saturating_sub(self.grown_bytes);
        self.grown_bytes += more_bytes;
        more_bytes
    }
}

/// What is counted of kept connections.
pub(super) fn kept(pulse: &mut Pulse) -> &mut Kept {
    &mut pulse.snapshot.sessions.get_or_insert_default().kept
}

/// Connections to be kept that are opened at the same time, by one thread: a server's accept queue usually holds as many, and a
/// SYN that it drops comes again only after a second.
const OPENINGS_AT_ONCE_MAX: u32 = 128;
