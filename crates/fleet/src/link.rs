//! The controller's end of one machine: what it said, what it is told, and whether it still lives.

use std::collections::BTreeMap;
use std::io::{BufReader, Read, Write};
use std::path::Path;
use std::process::Child;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;

use crate::clock::{ClockOffset, Exchange, unix_ns};
use crate::protocol::{self, FilePart, Order, PROTOCOL_VERSION, Report, Trouble};
use crate::transport::{Attempt, Errors, Opened, Transport};

/// Something that came from a machine.
#[derive(Debug)]
pub(crate) struct Arrival {
    /// Its number.
    pub machine_idx: usize,
    /// What came; `None`: it is gone.
    pub report: Option<Report>,
    /// When, in nanoseconds since 1970.
    pub came_unix_ns: u64,
}

/// A machine that answered.
#[derive(Debug)]
pub(crate) struct Link {
    /// Facts that its agent told.
    pub facts: BTreeMap<String, String>,
    /// How far its clock is off.
    pub clock: ClockOffset,
    /// When something came from it last.
    pub heard_at: Instant,
    /// Why it takes part no more.
    pub lost: Option<String>,
    orders: Option<Sender<Order>>,
    /// The process that carries it; `None`: it never answered.
    child: Option<Child>,
    errors: Errors,
}

impl Link {
    /// Starts the agent, and asks who it is and what time it has there.
    ///
    /// # Errors
    /// When there is no agent, or none that can be used.
    pub(crate) fn open(
        machine_idx: usize,
        transport: &dyn Transport,
        inbox: &Sender<Arrival>,
        (attempt, note): (&Attempt, &dyn Fn(&str)),
    ) -> Result<Self, Trouble> {
        let Opened { mut child, mut orders, mut reports, errors } = transport.open(attempt, note)?;
        attempt.asked();
        let greeted = greet(&mut orders, &mut reports);
        let (facts, clock) = match greeted {
            Ok(greeted) => greeted,
            Err(trouble) => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(with_words(trouble, &errors.text()));
            }
        };
        let (sender, outbox) = mpsc::channel();
        let inbox = inbox.clone();
        let started = thread::Builder::new()
            .spawn(move || write_orders(orders, &outbox))
            .and_then(|_| thread::Builder::new().spawn(move || read_reports(machine_idx, reports, &inbox)));
        if let Err(error) = started {
            let _ = child.kill();
            return Err(Trouble::new(
                format!("cannot start a thread: {error}"),
                "raise the limit: `ulimit -u`",
            ));
        }
        let child = Some(child);
        Ok(Self { facts, clock, heard_at: Instant::now(), lost: None, orders: Some(sender), child, errors })
    }

    /// A machine that never answered: the others are looked at all the same, so that all that is wrong is told at once.
    pub(crate) fn absent() -> Self {
        Self {
            facts: BTreeMap::new(),
            clock: ClockOffset::default(),
            heard_at: Instant::now(),
            lost: Some("it never answered".to_owned()),
            orders: None,
            child: None,
            errors: Errors::default(),
        }
    }

    /// Asks for its clock.
    pub(crate) fn ask_clock(&self) {
        self.order(Order::Clock { asked_unix_ns: 0 });
    }

    /// Something came from it.
    pub(crate) fn hear(&mut self, report: &Report, came_unix_ns: u64) {
        self.heard_at = Instant::now();
        take_clock(&mut self.clock, report, came_unix_ns);
    }

    /// Gives an order. One that cannot arrive is dropped: that the machine is gone is told by [`Arrival`].
    pub(crate) fn order(&self, order: Order) {
        if let Some(orders) = &self.orders {
            let _ = orders.send(order);
        }
    }

    /// Sends a file, part by part.
    ///
    /// # Errors
    /// When it cannot be read here.
    pub(crate) fn send_file(&self, from: &Path, to: &str, mode: u32) -> std::io::Result<()> {
        let mut file = std::fs::File::open(from)?;
        let mut is_first = true;
        loop {
            let mut bytes = Vec::new();
            (&mut file).take(FILE_PART_BYTES).read_to_end(&mut bytes)?;
            if bytes.is_empty() && !is_first {
                return Ok(());
            }
            let data = BASE64_STANDARD.encode(&bytes);
            self.order(Order::File(FilePart { path: to.to_owned(), mode, is_first, data }));
            is_first = false;
        }
    }

    /// It takes part no more. Its process is ended, which ends the agent if it still lives.
    pub(crate) fn lose(&mut self, why: &str) {
        if self.lost.is_none() {
            let words = self.errors.text();
            let last = words.lines().last().unwrap_or_default().trim();
            self.lost = Some(if last.is_empty() { why.to_owned() } else { format!("{why} ({last})") });
            self.orders = None;
            self.end();
        }
    }

    /// Says good-bye, so that the agent removes what it made.
    pub(crate) fn farewell(&mut self) {
        self.order(Order::Bye);
        self.orders = None;
    }

    /// Waits until the agent has gone.
    pub(crate) fn wait_until(&mut self, deadline: Instant) {
        let Some(child) = &mut self.child else { return };
        while Instant::now() < deadline {
            match child.try_wait() {
                Ok(None) => thread::sleep(Duration::from_millis(5)),
                Ok(Some(_)) | Err(_) => return,
            }
        }
        self.end();
    }

    fn end(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.end();
    }
}

/// Asks for facts, then several times for the clock: the quickest answer tells best.
fn greet(
    orders: &mut impl Write,
    reports: &mut impl Read,
) -> Result<(BTreeMap<String, String>, ClockOffset), Trouble> {
    ask(orders, &Order::Hello { protocol: PROTOCOL_VERSION })?;
    let facts = loop {
        match answer(reports)? {
            Report::Hello { protocol, version, facts } if protocol == PROTOCOL_VERSION => {
                let own = env!("CARGO_PKG_VERSION");
                if version != own {
                    let message = format!("squall {version} is there, {own} is here");
                    return Err(Trouble::new(message, "use the same version on both"));
                }
                break facts;
            }
            Report::Hello { protocol, version, .. } => {
                let message =
                    format!("squall {version} there speaks protocol {protocol}, not {PROTOCOL_VERSION}");
                return Err(Trouble::new(message, "use the same version on both"));
            }
            _ => {}
        }
    };
    let mut clock = ClockOffset::default();
    for _ in 0..CLOCK_QUESTION_COUNT {
        ask(orders, &Order::Clock { asked_unix_ns: unix_ns(SystemTime::now()) })?;
        while !take_clock(&mut clock, &answer(reports)?, unix_ns(SystemTime::now())) {}
    }
    Ok((facts, clock))
}

/// Takes a report about the clock in; false when it is about something else.
fn take_clock(clock: &mut ClockOffset, report: &Report, came_ns: u64) -> bool {
    let Report::Clock { asked_unix_ns, heard_unix_ns, told_unix_ns } = *report else { return false };
    clock.take(Exchange { asked_ns: asked_unix_ns, heard_ns: heard_unix_ns, told_ns: told_unix_ns, came_ns });
    true
}

fn ask(orders: &mut impl Write, order: &Order) -> Result<(), Trouble> {
    // A pipe whose reader has gone.
    protocol::write(orders, order).map_err(|_| no_agent("it ended"))
}

fn answer(reports: &mut impl Read) -> Result<Report, Trouble> {
    match protocol::read(reports) {
        Ok(Some(report)) => Ok(report),
        Ok(None) => Err(no_agent("it ended")),
        Err(error) => Err(no_agent(&error.to_string())),
    }
}

pub(crate) fn no_agent(why: &str) -> Trouble {
    Trouble::new(
        format!("the agent does not answer: {why}"),
        "the command must start `squall agent`, with nothing else on its standard output",
    )
}

fn with_words(trouble: Trouble, words: &str) -> Trouble {
    match words.lines().last() {
        Some(last) => Trouble::new(format!("{} ({})", trouble.message, last.trim()), trouble.help),
        None => trouble,
    }
}

/// Writes orders until there will be none; where there is none for a while, it asks for the clock, which says that the controller
/// lives: also while other machines are still being reached.
fn write_orders(mut stream: impl Write, outbox: &Receiver<Order>) {
    loop {
        let mut order = match outbox.recv_timeout(BEAT_EVERY) {
            Ok(order) => order,
            Err(RecvTimeoutError::Timeout) => Order::Clock { asked_unix_ns: 0 },
            Err(RecvTimeoutError::Disconnected) => return,
        };
        if let Order::Clock { asked_unix_ns } = &mut order {
            *asked_unix_ns = unix_ns(SystemTime::now());
        }
        if protocol::write(&mut stream, &order).is_err() {
            return;
        }
    }
}

fn read_reports(machine_idx: usize, mut stream: BufReader<impl Read>, inbox: &Sender<Arrival>) {
    loop {
        let report = protocol::read(&mut stream).ok().flatten();
        let (is_last, came_unix_ns) = (report.is_none(), unix_ns(SystemTime::now()));
        if inbox.send(Arrival { machine_idx, report, came_unix_ns }).is_err() || is_last {
            return;
        }
    }
}

const CLOCK_QUESTION_COUNT: u32 = 8;

/// How often an agent is told that the controller lives, and its clock is compared.
const BEAT_EVERY: Duration = Duration::from_secs(1);

/// So that a large file does not lie in memory whole, nor in one frame.
const FILE_PART_BYTES: u64 = 1 << 20;
