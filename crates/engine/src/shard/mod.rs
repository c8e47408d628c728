//! One event loop: its connections, its users or arrivals, its figures. Shards share nothing while they run.
//!
//! A turn of the loop is: take what is due, send it all, wait, read all that is ready. Requests whose answers came in a
//! turn are followed by the next ones together, after all reads: fewer switches between the directions, larger batches.
//!
//! Owns: sockets, timers, schedule. Never: argv, files of results, the terminal. The parts of a shard:
//! `demand` (what starts when), `open` (connect, tunnel, TLS), `send` and `receive`, `streams` (requests on an open connection), `acks` (answers that stay in the socket until then),
//! `settle` (how each request ends), `replay` (recorded traffic), `capture` (responses that somebody reads), `wait` (how long, and how), `pulse` (a snapshot per second, and how busy the loop was).

mod acks;
mod capture;
mod conn;
mod demand;
mod driven;
mod open;
mod receive;
mod replay;
mod send;
mod settle;
#[cfg(test)]
mod simulation;
mod stamps;
mod streams;
mod trial;
mod wait;

use std::rc::Rc;
use std::sync::Arc;

use squall_plan::limits::BODIES_BYTES_MAX;
use squall_plan::{Pacing, When};
use squall_wire::{HeadCaches, Version};

use crate::dns::Addresses;
use crate::driver::Driver;
use crate::pace::Share;
use crate::prepare::{Dial, Prepared, PreparedRequest};
use crate::pulse::{Backlog, Pulse};
use crate::setup::ShardSetup;
use crate::sources::Sources;
use crate::sys::{Clock, Poller, has_stamps, nanoseconds};
use crate::tls::TlsStream;
use crate::{Control, Error, Stop};

pub(crate) use demand::Demand;

use acks::AckTrial;
use conn::{Conn, Exchange, Pool, RequestId};
use driven::Driven;
use receive::ResponseSink;
use replay::Replay;
use stamps::ReadStamps;
use wait::Waiter;

/// One event loop.
pub(crate) struct Shard {
    share: Share,
    prepared: Arc<Prepared>,
    control: Control,
    limits: Limits,
    demand: Demand,
    pulse: Pulse,
    waiter: Waiter,
    poller: Poller,
    conns: Vec<Conn>,
    /// `Limits::stride` places for each connection, and more for those of HTTP/2 where it carries more.
    exchanges: Vec<Exchange>,
    /// Beginnings of parts with `Limits::h2_stride` places that no connection has now.
    wide_parts: Vec<u32>,
    /// When each slot's present state has lasted too long; apart from the slots because all are looked at often.
    deadlines: Vec<u64>,
    /// One pool for each origin.
    pools: Vec<Pool>,
    /// A view of each origin's addresses.
    addresses: Vec<Option<Addresses>>,
    /// What each origin has spoken, once a connection to it has been open.
    versions: Vec<Option<Version>>,
    /// What is known of each origin's acknowledgements.
    acks: Vec<AckTrial>,
    sources: Sources,
    /// Connections whose answer came in this turn, or that failed: their users go next.
    ready: Vec<u32>,
    /// Redirects to follow: sent once the answers beside them are read, as a send that fails closes the connection.
    hops: Vec<Exchange>,
    /// Connections that had more to read or to write than one turn allows.
    unfinished: Vec<u32>,
    /// Connections whose answer is still in the socket, until the turn's requests are written.
    peeked: Vec<u32>,
    /// Connections with something to send, which goes out at the end of the turn.
    unsent: Vec<u32>,
    /// Requests made at run time, and the free places among them.
    dynamic: Vec<Option<Rc<PreparedRequest>>>,
    dynamic_free: Vec<usize>,
    /// Lengths that `--expect-same-length` learned, by request; 0: none yet, else the length + 1.
    learned_lengths: Vec<u64>,
    /// Recorded traffic, where the load is that.
    replay: Option<Box<Replay>>,
    /// Who decides the requests at run time, where the plan does not.
    driven: Option<Driven>,
    io: IoBuffers,
    /// Requests that wait for a connection, in all pools.
    waiting_count: u64,
    /// Started and not settled yet.
    open_count: u32,
    /// Connections that are not open yet.
    opening_count: u32,
    /// Opened in this turn of the loop.
    opened_this_turn: u32,
    now_ns: u64,
    life: Life,
}

/// Buffers shared by all connections of a shard: nothing is kept per connection.
struct IoBuffers {
    read: Vec<u8>,
    /// Never touched: the kernel only wants its length.
    discard: Vec<u8>,
    head_caches: HeadCaches,
    /// What one connection sends in one go, and the slots of the requests that end in it.
    out: Vec<u8>,
    ending: Vec<u32>,
    sink: ResponseSink,
    /// The sockets have kernel receive stamps, and this translates them.
    stamp_clock: Option<Clock>,
    /// Reads ask for the stamps: answers may have lain unread.
    reads_stamps: bool,
    /// The wall clock was set since the last turn: stamps of data that came before are of the old time.
    has_stepped: bool,
    read_stamps: ReadStamps,
}

/// The load's numbers in the units of the loop.
struct Limits {
    start_ns: u64,
    warm_until_ns: u64,
    stop_at_ns: u64,
    timeout_ns: u64,
    connect_timeout_ns: u64,
    drain_ns: u64,
    age_max_ns: u64,
    served_max: u32,
    /// Requests in flight on one HTTP/1.1 connection.
    depth: u16,
    /// Streams of one HTTP/2 connection.
    stream_count: u32,
    /// Places for requests in flight that each connection has.
    stride: u32,
    /// The same once it speaks HTTP/2. It finds a place by the stream's number, which wants a power of two.
    h2_stride: u32,
    /// Slots per origin.
    slot_count_max: u32,
    /// A closed model's slot rests after a failed connect; an open model's arrivals are all tried.
    rests_after_failure: bool,
    next_sweep_ns: u64,
}

/// What the shard is still doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Life {
    Running,
    /// Nothing more starts; what is open is waited for until then.
    Draining {
        until_ns: u64,
    },
}

/// Each thread's first use of the cryptography gathers entropy for tens of milliseconds: that is done before the start.
pub(crate) fn warm_up_tls(prepared: &Prepared) {
    if let Some(origin_tls) = prepared.origins.iter().find_map(|origin| origin.tls.as_ref()) {
        // A failure here comes again with the first connection, where it is counted.
        let _ = TlsStream::new(Arc::clone(&origin_tls.config), origin_tls.server_name.clone());
    }
}

impl Shard {
    /// A loop that starts at `start_ns` on the monotonic clock.
    pub(crate) fn new(setup: ShardSetup<Arc<Prepared>>, start_ns: u64) -> Result<Self, Error> {
        let (share, warmup_ns) = (setup.share, setup.warmup_ns);
        let (pulse, prepared, control) = setup.into_pulse(start_ns);
        let limits = Limits::new(&prepared, share, start_ns, warmup_ns);
        let per_connection = prepared.requests_per_connection();
        let length_ns = limits.stop_at_ns.saturating_sub(start_ns);
        let demand = Demand::new(&prepared.load, share, per_connection, (length_ns, warmup_ns));
        let view = |origin_idx| view_of(&prepared, origin_idx, share);
        let os = |source| Error::Os { what: "create an epoll instance", source };
        Ok(Self {
            pulse,
            waiter: Waiter::new(&prepared.load.when, share),
            poller: Poller::new().map_err(os)?,
            conns: Vec::new(),
            exchanges: Vec::new(),
            wide_parts: Vec::new(),
            versions: vec![None; prepared.origins.len()],
            deadlines: Vec::new(),
            pools: (0..prepared.origins.len() as u32).map(Pool::new).collect(),
            addresses: (0..prepared.origins.len()).map(view).collect(),
            acks: vec![AckTrial::new(limits.stride == 1); prepared.origins.len()],
            sources: Sources::new(&prepared.load.network.sources, share),
            ready: Vec::new(),
            hops: Vec::new(),
            unfinished: Vec::new(),
            peeked: Vec::new(),
            unsent: Vec::new(),
            dynamic: Vec::new(),
            dynamic_free: Vec::new(),
            replay: Replay::new(&prepared, share)?,
            learned_lengths: vec![0; prepared.requests.len()],
            io: IoBuffers::new(&prepared, &limits),
            driven: None,
            waiting_count: 0,
            open_count: 0,
            opening_count: 0,
            opened_this_turn: 0,
            now_ns: start_ns,
            life: Life::Running,
            share,
            prepared,
            control,
            limits,
            demand,
        })
    }

    /// A loop whose requests `driver` decides; of one user at most `per_host` connections go to one origin.
    pub(crate) fn driven(
        setup: ShardSetup<Arc<Prepared>>,
        start_ns: u64,
        (driver, per_host): (Box<dyn Driver>, u32),
    ) -> Result<Self, Error> {
        let mut shard = Self::new(setup, start_ns)?;
        shard.limits.slot_count_max = per_host;
        shard.limits.stream_count = per_host.min(DRIVEN_STREAM_COUNT_MAX);
        shard.limits.h2_stride = shard.limits.stream_count.next_power_of_two();
        shard.limits.rests_after_failure = false;
        let held_bytes_max = shard.share.part_of(BODIES_BYTES_MAX) as usize;
        shard.io.sink = ResponseSink::for_driver(held_bytes_max);
        shard.demand = Demand::driven();
        shard.driven = Some(Driven::new(driver));
        Ok(shard)
    }

    /// Runs the load to its end; returns when that was, on the monotonic clock.
    pub(crate) fn run(mut self) -> Result<u64, Error> {
        self.run_to_end()?;
        Ok(self.now_ns)
    }

    fn run_to_end(&mut self) -> Result<(), Error> {
        self.waiter.prepare_thread();
        self.sleep_until_start();
        self.pulse.begin(self.now_ns);
        self.tell_recorded();
        if self.control.is_stopped() {
            self.follow_control();
        } else {
            self.spawn_first_users();
        }
        while !self.is_finished() {
            self.follow_control();
            self.follow_schedule();
            self.serve_ready();
            self.drive();
            self.start_next();
            self.drop_all_peeked();
            if self.is_finished() {
                break;
            }
            self.wait().map_err(|source| Error::Os { what: "wait for events", source })?;
            self.sweep_deadlines();
            self.turn_second();
        }
        self.tell_recorded();
        self.fill_driven();
        self.pulse.end(self.now_ns, self.backlog());
        self.part_with_all();
        Ok(())
    }

    /// Ends the second when its time has come.
    fn turn_second(&mut self) {
        let backlog = self.backlog();
        if self.now_ns >= self.pulse.second_end_ns() {
            self.fill_driven();
            // Only a script can hold its loop for ever.
            if self.driven.is_some() {
                self.pulse.open_rows = self.open_rows();
            }
        }
        if !self.pulse.turn_second(self.now_ns, || backlog) {
            return;
        }
        if self.life != Life::Running {
            self.demand.forget_unsent();
        }
        if let Some(clock) = &mut self.io.stamp_clock {
            *clock = Clock::new();
        }
    }

    fn fill_driven(&mut self) {
        let now_ns = self.now_ns.saturating_sub(self.limits.start_ns);
        if let Some(driven) = &mut self.driven {
            driven.fill(now_ns, &mut self.pulse.snapshot);
        }
    }

    /// A view of an origin's addresses.
    fn view_of(&self, origin_idx: usize) -> Option<Addresses> {
        view_of(&self.prepared, origin_idx, self.share)
    }

    fn backlog(&self) -> Backlog {
        self.demand.backlog(self.waiting_count)
    }

    fn sleep_until_start(&mut self) {
        self.now_ns = self.control.wait_for_start(self.limits.start_ns);
        self.control.note_late(self.now_ns.saturating_sub(self.limits.start_ns));
        // Where somebody stopped it before, what a driver has to end is due now.
        self.limits.start_ns = self.now_ns.min(self.limits.start_ns);
    }

    /// Obeys the user's stop, and the plan's.
    fn follow_control(&mut self) {
        match (self.control.stop(), self.life) {
            (Stop::Abort, _) => self.interrupt_all(),
            (Stop::Drain, Life::Running) if self.driven.is_some() => self.stop_driver(),
            (Stop::Drain, Life::Running) => self.drain(),
            (Stop::None, Life::Running) if self.now_ns >= self.limits.stop_at_ns => {
                // Arrivals of the last moment are the schedule's too, even when this turn came late.
                self.release_arrivals();
                self.drain();
            }
            (_, Life::Draining { until_ns }) if self.now_ns >= until_ns => self.interrupt_all(),
            _ => {}
        }
    }

    fn drain(&mut self) {
        self.life = Life::Draining { until_ns: self.now_ns + self.limits.drain_ns };
        for pool in &mut self.pools {
            pool.waiting.retain(|waiting| waiting.is_retry());
        }
        let retry_count = self.pools.iter().map(|pool| pool.waiting.len() as u64).sum();
        let dropped_count = self.waiting_count - retry_count;
        self.skip_recorded(dropped_count);
        self.demand.note_unsent(dropped_count);
        self.waiting_count = retry_count;
    }

    fn is_finished(&self) -> bool {
        if self.open_count > 0 || !self.hops.is_empty() {
            return false;
        }
        if !self.is_driver_finished() {
            return false;
        }
        self.life != Life::Running
            || (self.demand.is_exhausted()
                && self.waiting_count() == 0
                && self.ready.is_empty()
                && self.pending_recorded() == 0)
    }

    fn waiting_count(&self) -> u64 {
        self.waiting_count
    }

    fn request(&self, id: RequestId) -> &PreparedRequest {
        request_of(&self.prepared, &self.dynamic, id)
    }
}

fn view_of(prepared: &Prepared, origin_idx: usize, share: Share) -> Option<Addresses> {
    match &prepared.origins[origin_idx].dial {
        Dial::Tcp { name_idx, .. } => Some(prepared.names.view(*name_idx, share.shard_idx as usize)),
        Dial::Unix(_) => None,
    }
}

/// The request of an id, for callers that hold other parts of the shard.
fn request_of<'a>(
    prepared: &'a Prepared,
    dynamic: &'a [Option<Rc<PreparedRequest>>],
    id: RequestId,
) -> &'a PreparedRequest {
    match id.dynamic_idx() {
        None => &prepared.requests[id.0 as usize],
        Some(idx) => {
            dynamic[idx].as_deref().expect("a request made at run time lives as long as its exchange")
        }
    }
}

impl IoBuffers {
    fn new(prepared: &Prepared, limits: &Limits) -> Self {
        let batches = batches(prepared, limits);
        Self {
            read: vec![0; READ_BYTES],
            discard: vec![0; DISCARD_BYTES],
            head_caches: HeadCaches::default(),
            out: Vec::new(),
            ending: Vec::new(),
            sink: ResponseSink::new(prepared.http().follow_count_max > 0),
            stamp_clock: batches.then(Clock::new),
            reads_stamps: batches,
            has_stepped: false,
            read_stamps: ReadStamps::new(limits.stride > 1),
        }
    }
}

/// Whether answers may lie unread for a while, on sockets that have receive stamps.
fn batches(prepared: &Prepared, limits: &Limits) -> bool {
    let in_flight_max = || limits.slot_count_max.saturating_mul(prepared.requests_per_connection());
    let waits = match &prepared.load.when {
        When::Open { pacing, .. } => *pacing != Pacing::Precise,
        When::Closed { .. } => in_flight_max() >= wait::GATHER_IN_FLIGHT_MIN,
    };
    waits && prepared.load.network.unix_socket.is_none() && has_stamps()
}

impl Limits {
    fn new(prepared: &Prepared, share: Share, start_ns: u64, warmup_ns: u64) -> Self {
        let load = &prepared.load;
        let timeout_ns = nanoseconds(prepared.http().timeout);
        let drain_ns = timeout_ns.min(nanoseconds(squall_plan::limits::DRAIN_MAX));
        let stride = match prepared.may_speak_h2() {
            true => prepared.requests_per_connection().next_power_of_two(),
            false => load.connections.pipeline_depth.get(),
        };
        Self {
            start_ns,
            warm_until_ns: start_ns + warmup_ns,
            stop_at_ns: load.stop.duration.map_or(u64::MAX, |duration| start_ns + nanoseconds(duration)),
            timeout_ns,
            connect_timeout_ns: nanoseconds(load.connections.connect_timeout),
            drain_ns,
            age_max_ns: load.connections.age_max.map_or(u64::MAX, nanoseconds),
            served_max: load.connections.request_count_max.map_or(u32::MAX, std::num::NonZero::get),
            depth: u16::try_from(load.connections.pipeline_depth.get()).unwrap_or(u16::MAX),
            // Origins that were not known at the start have no more places than HTTP/1.1 needs.
            stream_count: load.connections.stream_count.get().min(stride),
            stride,
            h2_stride: stride,
            slot_count_max: demand::slot_count_max(&load.when, share),
            rests_after_failure: matches!(load.when, When::Closed { .. }),
            next_sweep_ns: start_ns,
        }
    }
}

/// One read takes at most this much; larger bodies that nobody reads are dropped inside the kernel.
const READ_BYTES: usize = 64 * 1024;

/// Streams of one HTTP/2 connection of a driven load: what Go's servers allow, and more than most scripts ask for at a time.
const DRIVEN_STREAM_COUNT_MAX: u32 = 256;

/// Bytes of a body dropped inside the kernel in one go.
const DISCARD_BYTES: usize = 4 << 20;
