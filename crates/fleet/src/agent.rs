//! The agent's end: does on this machine what a controller orders over standard input, and reports over standard output.
//!
//! It listens on no port. A controller whose connection was lost gets back to it through a socket in its folder, and receives what
//! the agent has kept meanwhile. When that does not happen in time, it ends its loads and goes; a janitor process removes what it
//! left, also when it was killed.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use squall_measure::{MachineSecond, RowKey, Snapshot};
use squall_plan::limits::{LOST_AFTER_DEFAULT, LOST_AFTER_MAX, LOST_AFTER_MIN};

use crate::attach;
use crate::clock::{from_unix_ns, unix_ns};
use crate::delivery::Delivery;
use crate::facts::facts;
use crate::janitor::Janitor;
use crate::kubernetes::write_pid_file;
use crate::monitor::machine::{MachineMonitor, absent_processes};
use crate::monitor::web::PageWatch;
use crate::page::MonitoredPage;
use crate::protocol::{
    FilePart, Found, HookOrder, LoadEnd, LoadOrder, Monitored, Order, PROTOCOL_VERSION, Ready, Report,
    Trouble, WayBack,
};
use crate::{hook, protocol, receive_file};

/// Makes loads on this machine.
pub trait Worker: Sync {
    /// Prepares a load, as far as that is possible without sending anything. `folder`: where what it writes belongs.
    /// `voice` carries to the controller what the load says meanwhile.
    fn prepare(&self, order: &LoadOrder, folder: &Path, voice: Voice) -> Result<Box<dyn Job>, Trouble>;
}

/// Begins a script's scenarios: with what its `setup()` gave, as JSON, and when; `None`: there is nothing to begin.
pub type Beginner = Box<dyn Fn(Option<(Option<String>, SystemTime)>) + Send>;

/// A load that can be made.
pub trait Job: Send {
    /// Ends it early, from another thread: `false` lets open requests finish, `true` does not.
    fn stopper(&self) -> Box<dyn Fn(bool) + Send>;

    /// Begins a script's scenarios, from another thread.
    fn beginner(&self) -> Beginner {
        Box::new(|_| {})
    }

    /// Makes it to its end.
    fn run(self: Box<Self>, port: &mut Port) -> Result<LoadEnd, Trouble>;
}

/// Carries lines to the controller: a few each second, and how many there were more.
#[derive(Debug)]
pub struct Voice {
    load_idx: u32,
    reports: Sender<Report>,
    begun: Vec<u8>,
    second: Option<Instant>,
    line_count: u32,
}

impl Voice {
    fn say(&mut self, line: String) {
        if self.second.is_none_or(|begin| begin.elapsed() >= Duration::from_secs(1)) {
            let left_out = self.line_count.saturating_sub(LINES_PER_SECOND_MAX);
            if left_out > 0 {
                self.send(format!("({left_out} more lines were left out)"));
            }
            (self.second, self.line_count) = (Some(Instant::now()), 0);
        }
        self.line_count += 1;
        if self.line_count <= LINES_PER_SECOND_MAX {
            self.send(line);
        }
    }

    fn send(&self, line: String) {
        // A controller that is gone ends the agent elsewhere.
        let _ = self.reports.send(Report::Said { load_idx: self.load_idx, line });
    }
}

impl Write for Voice {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.begun.extend_from_slice(bytes);
        while let Some(end) = self.begun.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.begun.drain(..=end).collect();
            self.say(String::from_utf8_lossy(&line).trim_end().to_owned());
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What a job reports to.
pub struct Port {
    load_idx: u32,
    reports: Sender<Report>,
    start: Receiver<SystemTime>,
    started: Option<SystemTime>,
    late: Duration,
}

impl Port {
    /// Tells that everything is prepared, and waits for the start; `None`: there shall be no load.
    pub fn start(&mut self, ready: Ready) -> Option<SystemTime> {
        self.report(Report::Ready { load_idx: self.load_idx, ready: Box::new(ready) });
        // The word may come too late: then the start is now.
        self.started = self.start.recv().ok().map(|at| at.max(SystemTime::now()));
        self.started
    }

    /// Tells what the rows of the snapshots that follow are about.
    pub fn rows(&self, rows: &[RowKey]) {
        self.report(Report::Rows { load_idx: self.load_idx, rows: rows.to_vec() });
    }

    /// Tells what a script's `setup()` gave, as JSON; its scenarios begin when the controller says so.
    pub fn set_up(&self, data: Option<String>) {
        self.report(Report::SetUp { load_idx: self.load_idx, data });
    }

    /// Hands over what an event loop did in a second.
    pub fn second(&self, second_idx: u32, shard_idx: u32, snapshot: &Snapshot) {
        let snapshot = Box::new(snapshot.clone());
        self.report(Report::Second { load_idx: self.load_idx, second_idx, shard_idx, snapshot });
    }

    /// Tells that all event loops have left a second behind.
    pub fn close(&self, second_idx: u32, machine: MachineSecond) {
        self.report(Report::Close { load_idx: self.load_idx, second_idx, machine });
    }

    /// It began to work so long after its start.
    pub fn note_late(&mut self, late: Duration) {
        self.late = late;
    }

    /// When it began to work, in nanoseconds since 1970; 0 when it did not.
    pub fn started_unix_ns(&self) -> u64 {
        self.started.map_or(0, |at| unix_ns(at + self.late))
    }

    fn report(&self, report: Report) {
        // A controller that is gone ends the agent elsewhere.
        let _ = self.reports.send(report);
    }
}

/// Serves one controller to its end. `folder`: one that the agent owns and removes; made when `None`.
///
/// # Errors
/// When the folder, the janitor or a thread cannot be made.
pub fn serve(
    orders: impl Read + Send + 'static,
    stream: impl Write + Send + 'static,
    folder: Option<PathBuf>,
    worker: &dyn Worker,
) -> Result<(), Trouble> {
    let janitor = Janitor::start(folder)?;
    write_pid_file();
    let (inbox_sender, inbox) = mpsc::channel();
    let (reports, outbox) = mpsc::channel();
    let limited = |error: io::Error| {
        Trouble::new(format!("cannot start a thread: {error}"), "raise its limits: `ulimit -u`")
    };
    let delivery = Delivery::new();
    let connection = delivery.connect(stream, 0).map_err(limited)?;
    let reader = Reader { connection, delivery: delivery.clone(), inbox: inbox_sender.clone() };
    spawn("orders", move || reader.read_all(orders)).map_err(limited)?;
    let collected = delivery.clone();
    let collector = spawn("reports", move || collect_reports(&collected, &outbox)).map_err(limited)?;
    let hooks_end = AtomicBool::new(false);
    thread::scope(|scope| {
        let mut agent = Agent {
            janitor: &janitor,
            worker,
            reports,
            delivery: &delivery,
            inbox: inbox_sender,
            connection: Some(connection),
            lost_after: LOST_AFTER_DEFAULT,
            may_resume: false,
            has_started: false,
            jobs: Vec::new(),
            monitor: MachineMonitor::new(),
            pages: Vec::new(),
            hooks_end: &hooks_end,
            files_refused: None,
            is_greeted: false,
        };
        agent.serve(scope, &inbox);
        hooks_end.store(true, Ordering::Relaxed);
        agent.stop(true);
    });
    // It ends with the last that could report; a script that nothing interrupts still could, and does not.
    let deadline = Instant::now() + STRAGGLERS_MAX;
    while !collector.is_finished() && Instant::now() < deadline {
        thread::sleep(Duration::from_millis(1));
    }
    delivery.wait_until_written(LAST_REPORTS_MAX);
    janitor.finish();
    Ok(())
}

struct Agent<'a> {
    janitor: &'a Janitor,
    worker: &'a dyn Worker,
    reports: Sender<Report>,
    delivery: &'a Delivery<Report>,
    inbox: Sender<Input>,
    /// The number of the connection to the controller; `None`: it is lost.
    connection: Option<u64>,
    /// How long it waits for a controller of which it receives nothing.
    lost_after: Duration,
    /// Whether the controller comes back when the connection is lost.
    may_resume: bool,
    /// Whether a load was started: before that, nothing would be lost.
    has_started: bool,
    jobs: Vec<Running>,
    monitor: MachineMonitor,
    /// Pages that are read every second.
    pages: Vec<PageWatch>,
    /// Hooks that run shall end at once.
    hooks_end: &'a AtomicBool,
    /// Why a file could not be written: what comes after it is not.
    files_refused: Option<Trouble>,
    /// While it is greeted, the controller listens for answers only: names of series would be lost.
    is_greeted: bool,
}

/// Whether a load reads what the controller sends.
fn needs_files(order: &LoadOrder) -> bool {
    order.work.clone().files_mut().iter().any(|path| path.starts_with(protocol::SENT_FILES))
}

/// What comes from the controller.
enum Input {
    /// An order, and when it came, in nanoseconds since 1970.
    Order(Order, u64),
    /// The connection of that number ended.
    Ended(u64),
    /// A new connection, and the number of the last report that the controller received.
    Attached(UnixStream, u64),
}

/// A job on its thread.
struct Running {
    load_idx: u32,
    start_after: Duration,
    /// `None`: it was started.
    start: Option<Sender<SystemTime>>,
    stopper: Box<dyn Fn(bool) + Send>,
    beginner: Beginner,
}

impl<'a> Agent<'a> {
    /// Until the controller ends it, or is gone.
    fn serve<'scope>(&mut self, scope: &'scope thread::Scope<'scope, '_>, inbox: &Receiver<Input>)
    where
        'a: 'scope,
    {
        let mut heard_at = Instant::now();
        let mut next_sample = Instant::now();
        loop {
            match inbox.recv_timeout(LOOK_EVERY) {
                Ok(Input::Order(Order::Bye, _)) | Err(RecvTimeoutError::Disconnected) => return,
                Ok(Input::Order(order, unix_ns)) => {
                    heard_at = Instant::now();
                    self.is_greeted |= !matches!(order, Order::Hello { .. } | Order::Clock { .. });
                    self.obey(order, unix_ns, scope);
                }
                Ok(Input::Ended(connection)) if self.connection == Some(connection) => {
                    self.connection = None;
                    if !(self.may_resume && self.has_started) {
                        return;
                    }
                }
                Ok(Input::Ended(_)) => {}
                Ok(Input::Attached(stream, received)) => {
                    heard_at = Instant::now();
                    self.resume(stream, received);
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
            if Instant::now() >= next_sample {
                next_sample += SAMPLE_EVERY;
                if self.is_greeted {
                    self.sample();
                }
            }
            if self.is_lost(heard_at) {
                return;
            }
        }
    }

    /// Whether the controller counts this machine as lost by now. The last report that it received may be a second old.
    fn is_lost(&self, heard_at: Instant) -> bool {
        let silent_for = heard_at.elapsed().max(self.delivery.stuck_for());
        silent_for + SAMPLE_EVERY >= self.lost_after || self.delivery.is_full()
    }

    /// Answers `Hello`, and listens for connections that replace this one.
    fn greet(&mut self, lost_after: Duration, can_resume: bool) {
        self.lost_after = lost_after.clamp(LOST_AFTER_MIN, LOST_AFTER_MAX);
        let way_back = if can_resume { self.listen() } else { None };
        self.may_resume = way_back.is_some();
        self.say(Report::Hello {
            protocol: PROTOCOL_VERSION,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            facts: facts(),
            way_back,
        });
    }

    /// Where that is impossible, a lost connection ends the agent.
    fn listen(&self) -> Option<WayBack> {
        let socket = self.janitor.folder().join("attach");
        let inbox = self.inbox.clone();
        let on_attach = move |stream, received| inbox.send(Input::Attached(stream, received)).is_ok();
        attach::listen(&socket, on_attach).ok()?;
        let text = |path: PathBuf| path.into_os_string().into_string().ok();
        Some(WayBack { program: text(std::env::current_exe().ok()?)?, socket: text(socket)? })
    }

    /// Goes on with a new connection. One that fails as well is replaced by the next.
    fn resume(&mut self, mut stream: UnixStream, received: u64) {
        let resumed = Report::Resumed { received: self.delivery.received() };
        let Ok(orders) = stream.try_clone() else { return };
        if protocol::write(&mut stream, &resumed).is_err() {
            return;
        }
        let Ok(connection) = self.delivery.connect(stream, received) else { return };
        let reader = Reader { connection, delivery: self.delivery.clone(), inbox: self.inbox.clone() };
        self.connection = spawn("orders", move || reader.read_all(orders)).ok().map(|_| connection);
    }

    fn obey<'scope>(&mut self, order: Order, heard_unix_ns: u64, scope: &'scope thread::Scope<'scope, '_>)
    where
        'a: 'scope,
    {
        match order {
            Order::Hello { lost_after, can_resume, .. } => self.greet(lost_after, can_resume),
            Order::Clock { asked_unix_ns } => {
                self.say(Report::Clock { asked_unix_ns, heard_unix_ns, told_unix_ns: heard_unix_ns });
            }
            Order::File(part) => self.file(&part),
            Order::Find(wanted) => {
                let reports = self.reports.clone();
                // A controller that is gone ends the agent elsewhere.
                scope.spawn(move || drop(reports.send(Report::Found(find(&wanted)))));
            }
            Order::Watch(wanted) => self.watch(wanted),
            Order::ReadAlso(pages) => self.read_also(pages),
            Order::Hook(order) => self.hook(order, scope),
            Order::Prepare { loads } => {
                self.jobs.clear();
                loads.iter().for_each(|load| self.prepare(load, scope));
            }
            Order::Start { at_unix_ns } => self.start(from_unix_ns(at_unix_ns)),
            Order::Begin { load_idx, begin } => {
                let begin = begin.map(|begin| (begin.setup_data, from_unix_ns(begin.at_unix_ns)));
                self.jobs
                    .iter()
                    .filter(|job| job.load_idx == load_idx)
                    .for_each(|job| (job.beginner)(begin.clone()));
            }
            Order::Stop { at_once } => self.stop(at_once),
            // The first comes on a connection of its own, the second is the loop's.
            Order::Resume { .. } | Order::Bye => {}
        }
    }

    fn file(&mut self, part: &FilePart) {
        if self.files_refused.is_some() {
            return;
        }
        if let Err(trouble) = receive_file::receive(part, self.janitor) {
            self.files_refused = Some(trouble.clone());
            self.say(Report::Refused { load_idx: None, trouble });
        }
    }

    fn hook<'scope>(&self, order: HookOrder, scope: &'scope thread::Scope<'scope, '_>)
    where
        'a: 'scope,
    {
        let (reports, hooks_end) = (self.reports.clone(), self.hooks_end);
        let folder = self.janitor.folder();
        scope.spawn(move || {
            let end = hook::run(&order, folder, hooks_end);
            // A controller that is gone ends the agent elsewhere.
            let _ = reports.send(Report::HookEnded { hook_idx: order.hook_idx, end });
        });
    }

    /// Replaces what was watched before.
    fn watch(&mut self, wanted: Monitored) {
        self.monitor.watch(wanted.processes);
        self.pages.clear();
        self.read_also(wanted.pages);
    }

    fn read_also(&mut self, pages: Vec<MonitoredPage>) {
        for page in pages {
            match page.watch(self.reports.clone()) {
                Ok(page) => self.pages.push(page),
                Err(error) => {
                    let label = format!("cannot start a thread for a monitor: {error}");
                    let at_unix_ns = unix_ns(SystemTime::now());
                    self.say(Report::Note { at_unix_ns, label, is_restart: false });
                }
            }
        }
    }

    fn prepare<'scope>(&mut self, order: &LoadOrder, scope: &'scope thread::Scope<'scope, '_>)
    where
        'a: 'scope,
    {
        if let Some(trouble) = self.files_refused.clone().filter(|_| needs_files(order)) {
            return self.say(Report::Refused { load_idx: Some(order.load_idx), trouble });
        }
        let voice = Voice {
            load_idx: order.load_idx,
            reports: self.reports.clone(),
            begun: Vec::new(),
            second: None,
            line_count: 0,
        };
        let folder = self.janitor.folder();
        let order = LoadOrder { work: order.work.clone().in_folder(folder), ..order.clone() };
        let job = match self.worker.prepare(&order, folder, voice) {
            Ok(job) => job,
            Err(trouble) => return self.say(Report::Refused { load_idx: Some(order.load_idx), trouble }),
        };
        let (start_sender, start) = mpsc::channel();
        let (stopper, beginner) = (job.stopper(), job.beginner());
        let mut port = Port {
            load_idx: order.load_idx,
            reports: self.reports.clone(),
            start,
            started: None,
            late: Duration::ZERO,
        };
        let (load_idx, start_after) = (order.load_idx, order.start_after);
        self.jobs.push(Running { load_idx, start_after, start: Some(start_sender), stopper, beginner });
        scope.spawn(move || {
            let end = job.run(&mut port);
            let load_idx = port.load_idx;
            match (end, port.started) {
                (end, Some(_)) => port.report(Report::Ended { load_idx, end }),
                (Err(trouble), None) => port.report(Report::Refused { load_idx: Some(load_idx), trouble }),
                // It was only looked at.
                (Ok(_), None) => {}
            }
        });
    }

    fn start(&mut self, at: SystemTime) {
        self.has_started = true;
        for job in &mut self.jobs {
            if let Some(start) = job.start.take() {
                // A job that has ended has said so.
                let _ = start.send(at + job.start_after);
            }
        }
    }

    /// Those that wait for their start are let go without one.
    fn stop(&mut self, at_once: bool) {
        for job in &mut self.jobs {
            job.start = None;
            (job.stopper)(at_once);
        }
    }

    fn sample(&mut self) {
        let (new, values) = self.monitor.sample();
        let at_unix_ns = unix_ns(SystemTime::now());
        for label in self.monitor.take_restarts() {
            self.say(Report::Note { at_unix_ns, label, is_restart: true });
        }
        self.say(Report::Samples { monitor_idx: None, at_unix_ns, new, values });
    }

    fn say(&self, report: Report) {
        let _ = self.reports.send(report);
    }
}

/// Reads all pages at the same time: each may take its whole time limit.
fn find(wanted: &Monitored) -> Found {
    let pages = thread::scope(|scope| {
        let probes = wanted.pages.iter().map(|page| (page.monitor_idx, scope.spawn(|| page.probe())));
        let probes: Vec<_> = probes.collect();
        let ended = |probe: thread::ScopedJoinHandle<'_, _>| {
            probe.join().unwrap_or_else(|_| Err("a bug in squall: reading it panicked".to_owned()))
        };
        probes.into_iter().map(|(monitor_idx, probe)| (monitor_idx, ended(probe))).collect()
    });
    Found { absent_processes: absent_processes(&wanted.processes), pages }
}

/// Reads the orders of one connection.
struct Reader {
    connection: u64,
    delivery: Delivery<Report>,
    inbox: Sender<Input>,
}

impl Reader {
    fn read_all(&self, mut stream: impl Read) {
        while let Ok(Some(order)) = self.delivery.read::<Order>(&mut stream) {
            if self.inbox.send(Input::Order(order, unix_ns(SystemTime::now()))).is_err() {
                return;
            }
        }
        // An agent that is gone needs no word of it.
        let _ = self.inbox.send(Input::Ended(self.connection));
    }
}

/// Hands all reports over for delivery, until there are no more reports.
fn collect_reports(delivery: &Delivery<Report>, outbox: &Receiver<Report>) {
    for report in outbox {
        let load_idx = report.ended_load_idx();
        if let (Err(error), Some(load_idx)) = (delivery.push(report), load_idx) {
            // That a load has ended must arrive.
            let help = "make it print less, or run it without squall";
            let trouble = Trouble::new(format!("its output cannot be sent: {error}"), help);
            let _ = delivery.push(Report::Ended { load_idx, end: Err(trouble) });
        }
    }
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<thread::JoinHandle<()>> {
    thread::Builder::new().name(name.to_owned()).spawn(work)
}

/// How often it looks whether the controller is still there.
const LOOK_EVERY: Duration = Duration::from_millis(100);

const SAMPLE_EVERY: Duration = Duration::from_secs(1);

/// What a script says is for people, who read no more.
const LINES_PER_SECOND_MAX: u32 = 20;

/// How long reports may still come once all jobs have ended.
const STRAGGLERS_MAX: Duration = Duration::from_secs(1);

/// How long the last reports may take to be written.
const LAST_REPORTS_MAX: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use squall_measure::{StoppedBy, ToolFigures, ToolRun};

    use super::*;

    fn ended(printed: String) -> Report {
        let run = ToolRun {
            tool: "hey".to_owned(),
            version: String::new(),
            load: "hey".to_owned(),
            machine: String::new(),
            at_s: 0.0,
            duration: Duration::ZERO,
            command: Vec::new(),
            exit_code: None,
            problem: None,
            figures: ToolFigures::default(),
            raw_file: String::new(),
        };
        let tool = Some(Box::new((run, printed)));
        let stopped_by = StoppedBy::Duration;
        let end = LoadEnd { started_unix_ns: 0, duration: Duration::ZERO, stopped_by, trouble: None, tool };
        Report::Ended { load_idx: 7, end: Ok(end) }
    }

    #[test]
    fn a_load_whose_end_is_too_much_to_tell_ends_all_the_same() {
        let (reports, outbox) = mpsc::channel();
        let note = Report::Said { load_idx: 7, line: "after it".to_owned() };
        reports.send(ended("x".repeat(protocol::FRAME_BYTES_MAX as usize))).unwrap();
        reports.send(note.clone()).unwrap();
        drop(reports);
        let (agent, controller) = (Delivery::new(), Delivery::<Order>::new());
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        agent.connect(ours, 0).unwrap();
        collect_reports(&agent, &outbox);
        let reports: Vec<Report> = (0..2).map(|_| controller.read(&mut theirs).unwrap().unwrap()).collect();
        let [Report::Ended { load_idx: 7, end: Err(trouble) }, last] = &reports[..] else {
            panic!("{reports:?}")
        };
        assert!(trouble.message.contains("too large"), "{trouble:?}");
        assert_eq!(last, &note);
    }
}
