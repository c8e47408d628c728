//! A whole run: prepares the loads, starts the shards together, and collects their seconds.
//!
//! Owns: threads and the collector. The hot path is in the shards; here everything happens a few times a second.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use squall_measure::{End, RowKey, RunRecord, RunRecorder, RunSetup, Snapshot, StoppedBy, Threshold};
use squall_plan::limits::UNREACHABLE_AFTER;
use squall_plan::{InputError, Plan, ShardPart, What, When};

use crate::driver::DriverFactory;
use crate::error::descriptors_reserved;
use crate::pace::lag_allowed;
use crate::preflight::check_descriptors;
use crate::pulse::Second;
use crate::ready::Ready;
use crate::setup::ShardSetup;
use crate::shard_count::{shard_count, shard_count_all, thread_count, usable_cpu_count};
use crate::sys::{MachineProbe, keep_stamping, monotonic_ns, nanoseconds, raise_nofile};
use crate::{Control, Error, Observer, Span, Stop};

/// Makes the load that `plan` describes, and returns what was measured.
///
/// `observer` is called on this thread: see [`Observer`]. A closure is called about every 100 ms, and once at the end, with what is
/// known by then.
///
/// # Errors
/// When the run cannot be made at all: see [`Error`]. A target that misbehaves is no error but data.
pub fn run(plan: &Plan, control: &Control, observer: &mut dyn Observer) -> Result<RunRecord, Error> {
    run_driven(plan, Vec::new(), control, observer)
}

/// Makes the load that `plan` describes; `factories` decide the requests of those loads whose plan does not, in their order.
///
/// # Errors
/// As for [`run`].
pub fn run_driven(
    plan: &Plan,
    factories: Vec<Arc<dyn DriverFactory>>,
    control: &Control,
    observer: &mut dyn Observer,
) -> Result<RunRecord, Error> {
    let background_stop = Arc::new(AtomicBool::new(false));
    let result = run_with(plan, factories, control, observer, &background_stop);
    background_stop.store(true, Ordering::Relaxed);
    result
}

fn run_with(
    plan: &Plan,
    factories: Vec<Arc<dyn DriverFactory>>,
    control: &Control,
    observer: &mut dyn Observer,
    background_stop: &Arc<AtomicBool>,
) -> Result<RunRecord, Error> {
    let limit =
        raise_nofile().map_err(|source| Error::Os { what: "raise the limit of open files", source })?;
    let mut loads: Vec<Ready> = Vec::new();
    let mut rows: Vec<RowKey> = Vec::new();
    let mut factories = factories.into_iter();
    for load in &plan.loads {
        if let What::Script(_) = &load.what {
            loads.push(Ready::driven(load, factories.next().ok_or_else(no_factory)?));
            continue;
        }
        let ready = Ready::new(load, rows, background_stop)?;
        rows = ready.rows().to_vec();
        loads.push(ready);
    }
    loads.iter().filter_map(Ready::book).for_each(|book| book.seed(&rows));
    let socket_count = loads.iter().map(Ready::socket_count).sum();
    check_descriptors(socket_count, descriptors_reserved(shard_count_all(plan)), limit)?;
    let recorder = RunRecorder::new(setup(plan, &rows, thread_count(plan))?);
    let _stamping =
        keep_stamping().map_err(|source| Error::Os { what: "enable receive timestamps", source })?;
    let mut collector = Collector::new(recorder, control.clone(), source_count(plan), &loads);
    let shards = collector.start_shards(plan, &loads, rows.len(), observer)?;
    let start_ns = collector.start_ns;
    collector.collect(observer);
    let mut end_ns = start_ns;
    for shard in shards {
        end_ns = end_ns.max(collector.join(shard)?);
    }
    let end =
        End { duration: measured(plan, start_ns, end_ns), stopped_by: collector.stopped_by(plan, end_ns) };
    if let Some(book) = loads.iter().find_map(Ready::book) {
        collector.recorder.set_rows(book.rows());
    }
    observer.look(&collector.recorder);
    observer.end(control.late());
    Ok(collector.recorder.finish(end))
}

/// Takes the shards' seconds in.
struct Collector {
    recorder: RunRecorder,
    control: Control,
    start_ns: u64,
    source_count: u64,
    loads: Vec<Ready>,
    machine: MachineProbe,
    shards: Vec<ShardState>,
    next_second_idx: u32,
    is_unreachable: bool,
    /// Since when attempts to connect were made, none of which has succeeded.
    in_vain_since: Option<Instant>,
    told_row_count: usize,
    seconds: (Sender<Second>, Receiver<Second>),
    patience: Patience,
}

/// What the collector knows of one shard.
struct ShardState {
    /// Emptied snapshots go back this way, so that nothing is allocated while the load runs.
    spare: Sender<Box<Snapshot>>,
    /// All seconds before this one were handed over; `None`: the shard has ended.
    reported_idx: Option<u32>,
    load_idx: u32,
    /// Requests that it has begun and that have not ended, and as many of them as it has said the rows of.
    open_count: u64,
    open_rows: Vec<u64>,
}

impl Collector {
    fn new(recorder: RunRecorder, control: Control, source_count: u64, loads: &[Ready]) -> Self {
        Self {
            recorder,
            control,
            start_ns: 0,
            source_count,
            loads: loads.to_vec(),
            machine: MachineProbe::new(),
            shards: Vec::new(),
            next_second_idx: 0,
            is_unreachable: false,
            in_vain_since: None,
            told_row_count: 0,
            seconds: mpsc::channel(),
            patience: Patience::default(),
        }
    }

    /// Makes the shards' threads, waits until each is ready, and starts them together when the observer says.
    fn start_shards(
        &mut self,
        plan: &Plan,
        loads: &[Ready],
        row_count: usize,
        observer: &mut dyn Observer,
    ) -> Result<Vec<JoinHandle<Result<u64, Error>>>, Error> {
        let mut handles = Vec::new();
        let mut gate = Gate::default();
        let first_of_sessions = loads.iter().position(|ready| ready.opens_connections());
        for (load_idx, ready) in (0..).zip(loads) {
            let shard_count = shard_count(ready.load(), thread_count(plan));
            for shard_idx in 0..shard_count {
                let (spare, spares) = mpsc::channel();
                let is_open_model = matches!(ready.load().when, When::Open { .. });
                for _ in 0..SPARE_COUNT {
                    // The receiver is alive: it is moved into the shard below.
                    let _ = spare.send(Box::new(Snapshot::new(row_count, is_open_model)));
                }
                let setup = ShardSetup {
                    part: ShardPart { shard_idx, shard_count, segment: ready.load().segment.clone() },
                    shard_idx: self.shards.len() as u32,
                    prepared: ready.clone(),
                    control: self.control.clone(),
                    warmup_ns: nanoseconds(plan.warmup),
                    is_open_model,
                    row_count,
                    seconds: self.seconds.0.clone(),
                    spare: spares,
                    watches_memory: Some(load_idx as usize) == first_of_sessions && shard_idx == 0,
                };
                let open_rows = Vec::new();
                self.shards.push(ShardState {
                    spare,
                    reported_idx: Some(0),
                    load_idx,
                    open_count: 0,
                    open_rows,
                });
                handles.push(spawn(setup, gate.admit())?);
            }
        }
        let are_ready = gate.wait_for_all(|| self.patience.is_over(&self.control));
        let at = are_ready.then(|| observer.start(self.recorder.setup())).flatten();
        let Some(at) = at else {
            self.cancel();
            return Ok(handles);
        };
        self.start_ns = gate.open(at);
        self.recorder.set_started(unix_ms(at.max(SystemTime::now())));
        Ok(handles)
    }

    /// There is no load: the shards find the gate gone, and end.
    fn cancel(&mut self) {
        self.control.abort();
        self.start_ns = monotonic_ns();
        self.shards.clear();
    }

    /// Collects until every shard has ended.
    fn collect(&mut self, observer: &mut dyn Observer) {
        let mut next_look = Instant::now() + OBSERVE_EVERY;
        while self.shards.iter().any(|shard| shard.reported_idx.is_some()) {
            match self.seconds.1.recv_timeout(next_look.saturating_duration_since(Instant::now())) {
                Ok(second) => self.absorb(second, observer),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                    next_look = Instant::now() + OBSERVE_EVERY;
                    self.recorder.tick(self.elapsed());
                    self.stop_when_unreachable();
                    self.leave_stuck(observer);
                    observer.look(&self.recorder);
                }
            }
        }
        self.recorder.tick(self.elapsed());
    }

    fn absorb(&mut self, second: Second, observer: &mut dyn Observer) {
        let Second { shard_idx, second_idx, mut snapshot, open_rows, is_last } = second;
        if shard_idx == 0 {
            self.take_lookups(&mut snapshot);
        }
        self.recorder.absorb(second_idx, shard_idx, &snapshot);
        self.tell_rows(observer);
        let shard = &mut self.shards[shard_idx as usize];
        shard.open_count = (shard.open_count + snapshot.requests_started).saturating_sub(ended(&snapshot));
        shard.open_rows = open_rows;
        observer.second(Span { second_idx, shard_idx, load_idx: shard.load_idx }, &snapshot);
        snapshot.clear();
        shard.reported_idx = (!is_last).then_some(second_idx + 1);
        // A shard that has ended needs no spare.
        let _ = shard.spare.send(snapshot);
        self.close_whole_seconds(observer);
    }

    /// Closes the seconds that every running shard has left behind.
    fn close_whole_seconds(&mut self, observer: &mut dyn Observer) {
        let reported = self.shards.iter().filter_map(|shard| shard.reported_idx).min();
        let whole_idx = reported.unwrap_or(self.next_second_idx + 1);
        if whole_idx > self.next_second_idx {
            let endpoints: Option<Vec<Vec<_>>> = self.loads.iter().map(Ready::endpoints).collect();
            let endpoints = endpoints.map(|endpoints| endpoints.concat());
            let machine = self.machine.read(self.source_count, endpoints.as_deref());
            self.recorder.close_second(whole_idx - 1, machine);
            observer.close(whole_idx - 1, machine);
            self.next_second_idx = whole_idx;
        }
    }

    /// Goes on without the shards that do not end although the user wants the end: what they have handed over is in the figures, and that
    /// they were stuck since is, too.
    fn leave_stuck(&mut self, observer: &mut dyn Observer) {
        if !self.patience.is_over(&self.control) {
            return;
        }
        let elapsed = self.elapsed();
        for (shard_idx, shard) in (0..).zip(&mut self.shards) {
            let Some(second_idx) = shard.reported_idx.take() else { continue };
            let stuck = elapsed.saturating_sub(Duration::from_secs(u64::from(second_idx)));
            let snapshot = stuck_snapshot(self.recorder.total(), stuck, shard);
            self.recorder.absorb(second_idx, shard_idx, &snapshot);
            observer.second(Span { second_idx, shard_idx, load_idx: shard.load_idx }, &snapshot);
        }
    }

    /// When the shard's thread ended. One that is stuck is left behind, and ends with the process.
    fn join(&mut self, shard: JoinHandle<Result<u64, Error>>) -> Result<u64, Error> {
        while !shard.is_finished() {
            if self.patience.is_over(&self.control) {
                self.control.note_stuck();
                return Ok(monotonic_ns());
            }
            thread::sleep(JOIN_EVERY);
        }
        shard.join().expect("a shard does not panic")
    }

    fn tell_rows(&mut self, observer: &mut dyn Observer) {
        let Some(book) = self.loads.iter().find_map(Ready::book) else { return };
        if book.len() > self.told_row_count {
            let rows = book.rows();
            self.told_row_count = rows.len();
            observer.rows(&rows);
        }
    }

    fn take_lookups(&self, snapshot: &mut Snapshot) {
        for ready in &self.loads {
            ready.names().take_lookups().into_iter().for_each(|took_ns| snapshot.looking_up.record(took_ns));
        }
    }

    /// Where nothing answers there is nothing to measure, and hammering on goes nowhere.
    fn stop_when_unreachable(&mut self) {
        if self.is_unreachable || !self.control.is_unreachable() {
            return;
        }
        // The first attempt may come late: a script has a `setup()`, a ramp begins at nothing.
        let since = *self.in_vain_since.get_or_insert_with(Instant::now);
        if since.elapsed() >= UNREACHABLE_AFTER {
            self.is_unreachable = true;
            self.control.abort();
        }
    }

    fn stopped_by(&self, plan: &Plan, end_ns: u64) -> StoppedBy {
        if self.is_unreachable || self.control.is_unreachable() {
            return StoppedBy::Unreachable;
        }
        let duration = plan.loads.iter().filter_map(|load| load.stop.duration).max();
        match self.control.stop() {
            Stop::Abort => StoppedBy::Aborted,
            Stop::Drain => StoppedBy::Drained,
            Stop::None if duration.is_some_and(|length| end_ns >= self.start_ns + nanoseconds(length)) => {
                StoppedBy::Duration
            }
            Stop::None => StoppedBy::Count,
        }
    }

    fn elapsed(&self) -> Duration {
        Duration::from_nanos(monotonic_ns().saturating_sub(self.start_ns))
    }
}

/// How long to wait for shards once the run is to end at once. A script may be in a call that nothing interrupts, such as the sort of a list
/// of a billion elements: the report does not wait for it.
#[derive(Default)]
struct Patience {
    until: Option<Instant>,
}

impl Patience {
    /// Is asked from time to time.
    fn is_over(&mut self, control: &Control) -> bool {
        let now = Instant::now();
        control.stop() == Stop::Abort && now >= *self.until.get_or_insert(now + PATIENCE)
    }
}

/// What is known of a shard that was stuck for so long. What it had begun is interrupted, in the rows that it gave last.
fn stuck_snapshot(total: &Snapshot, stuck: Duration, shard: &ShardState) -> Snapshot {
    let row_count = total.rows.len().max(shard.open_rows.len());
    let mut snapshot = Snapshot::new(row_count, total.open_model);
    let generator = &mut snapshot.generator;
    (generator.wall, generator.busy, generator.cpu, generator.stall_max) = (stuck, stuck, stuck, stuck);
    let mut left_count = shard.open_count;
    for (row, open_count) in snapshot.rows.iter_mut().zip(&shard.open_rows) {
        row.interrupted = left_count.min(*open_count);
        left_count -= row.interrupted;
    }
    if let Some(row) = snapshot.rows.first_mut() {
        row.interrupted += left_count;
    }
    snapshot
}

/// Requests that ended.
fn ended(snapshot: &Snapshot) -> u64 {
    snapshot.rows.iter().map(|row| row.ok + row.failed + row.interrupted).sum()
}

/// Holds the shards back until all are ready.
struct Gate {
    /// `None`: no one else is admitted.
    admitting: Option<Sender<()>>,
    ready: Receiver<()>,
    starts: Vec<Sender<u64>>,
}

/// A shard's place at the gate.
struct ShardPlace {
    ready: Option<Sender<()>>,
    start: Receiver<u64>,
}

impl Default for Gate {
    fn default() -> Self {
        let (admitting, ready) = mpsc::channel();
        Self { admitting: Some(admitting), ready, starts: Vec::new() }
    }
}

impl Gate {
    fn admit(&mut self) -> ShardPlace {
        let (sender, start) = mpsc::channel();
        self.starts.push(sender);
        ShardPlace { ready: self.admitting.clone(), start }
    }

    /// Waits until all that were admitted are ready, or gone; false where `gives_up` says so before.
    fn wait_for_all(&mut self, mut gives_up: impl FnMut() -> bool) -> bool {
        self.admitting = None;
        let mut awaited_count = self.starts.len();
        while awaited_count > 0 {
            match self.ready.recv_timeout(OBSERVE_EVERY) {
                Ok(()) => awaited_count -= 1,
                Err(RecvTimeoutError::Disconnected) => return true,
                Err(RecvTimeoutError::Timeout) if gives_up() => return false,
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
        true
    }

    /// Lets all go; returns when they start.
    fn open(self, at: SystemTime) -> u64 {
        let delay = at.duration_since(SystemTime::now()).unwrap_or_default();
        let start_ns = monotonic_ns() + nanoseconds(delay.max(START_DELAY));
        for start in self.starts {
            // A thread that is gone has said so as its result.
            let _ = start.send(start_ns);
        }
        start_ns
    }
}

impl ShardPlace {
    /// When to start; `None`: there is no run, because another thread could not be made or it is no longer wanted.
    fn wait(self) -> Option<u64> {
        if let Some(ready) = self.ready {
            let _ = ready.send(());
        }
        self.start.recv().ok()
    }
}

fn spawn(setup: ShardSetup<Ready>, place: ShardPlace) -> Result<JoinHandle<Result<u64, Error>>, Error> {
    let builder = thread::Builder::new().name(format!("squall-{}", setup.shard_idx));
    let body = move || {
        setup.prepared.warm_up();
        let (control, farewell) = (setup.control.clone(), setup.farewell());
        let driver = setup.driver();
        let Some(start_ns) = place.wait() else { return Ok(0) };
        let result = driver.and_then(|driver| setup.run(start_ns, driver));
        if result.is_err() {
            control.abort();
            farewell.send();
        }
        result
    };
    builder.spawn(body).map_err(|source| Error::Os { what: "start a thread", source })
}

fn no_factory() -> Error {
    Error::Plan {
        problem: "a script cannot run here".to_owned(),
        help: "run it with `squall run script.js`".to_owned(),
    }
}

fn setup(plan: &Plan, rows: &[RowKey], thread_count: u32) -> Result<RunSetup, Error> {
    let parse = |text: &String| {
        text.parse().map_err(|error: InputError| Error::Plan {
            problem: format!("threshold `{text}`: {error}"),
            help: "write it like `p(95)<200` or `errors<1%`".to_owned(),
        })
    };
    let thresholds: Vec<Threshold> = plan.thresholds.iter().map(parse).collect::<Result<_, _>>()?;
    let lag_allowed = plan.loads.iter().map(|load| lag_allowed(&load.when)).max().unwrap_or_default();
    let lengths: Option<Vec<Duration>> = plan.loads.iter().map(|load| load.stop.duration).collect();
    Ok(RunSetup {
        plan: plan.masked(),
        rows: rows.to_vec(),
        open_model: plan.loads.iter().any(|load| matches!(load.when, When::Open { .. })),
        lag_allowed,
        thresholds,
        length: lengths.and_then(|lengths| lengths.into_iter().max()),
        started_unix_ms: unix_ms(SystemTime::now()),
        environment: environment(thread_count),
    })
}

fn unix_ms(at: SystemTime) -> u64 {
    let since = at.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

fn environment(thread_count: u32) -> BTreeMap<String, String> {
    let system = rustix::system::uname();
    let text = |part: &std::ffi::CStr| part.to_string_lossy().into_owned();
    BTreeMap::from([
        ("host".to_owned(), text(system.nodename())),
        ("os".to_owned(), format!("{} {}", text(system.sysname()), text(system.release()))),
        ("arch".to_owned(), text(system.machine())),
        ("cpus_usable".to_owned(), usable_cpu_count().to_string()),
        ("threads".to_owned(), thread_count.to_string()),
    ])
}

/// From the end of the warm-up to the last figure.
fn measured(plan: &Plan, start_ns: u64, end_ns: u64) -> Duration {
    Duration::from_nanos(end_ns.saturating_sub(start_ns)).saturating_sub(plan.warmup)
}

fn source_count(plan: &Plan) -> u64 {
    plan.loads.iter().map(|load| load.network.sources.len() as u64).sum()
}

/// From the word to start to the common start: time for all shards to hear it.
const START_DELAY: Duration = Duration::from_millis(2);

/// How often the observer is called.
const OBSERVE_EVERY: Duration = Duration::from_millis(100);

/// How long shards may take to end a run that is to end at once: a loop that works looks at it in each turn, and a script each few
/// milliseconds.
const PATIENCE: Duration = Duration::from_millis(1500);

/// How often a thread that is about to end is looked at.
const JOIN_EVERY: Duration = Duration::from_millis(1);

/// Snapshots that a shard has besides the one it fills: one on its way to the collector, one on its way back.
const SPARE_COUNT: usize = 2;
