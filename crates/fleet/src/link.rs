//! The controller's end of one machine: what it said, what it is told, and whether it still lives.

use std::collections::BTreeMap;
use std::io::{BufReader, Read, Write};
use std::path::Path;
use std::process::Child;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;

use crate::clock::{ClockOffset, unix_ns};
use crate::protocol::{self, FilePart, Order, PROTOCOL_VERSION, Report, Trouble};
use crate::transport::{Errors, Opened, Transport};

/// Something that came from a machine.
#[derive(Debug)]
pub(crate) struct Arrival {
    /// Its number.
    pub machine_idx: usize,
    /// What came; `None`: it is gone.
    pub report: Option<Report>,
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
    child: Child,
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
        note: &dyn Fn(&str),
    ) -> Result<Self, Trouble> {
        let Opened { mut child, mut orders, mut reports, errors } = transport.open(note)?;
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
        Ok(Self { facts, clock, heard_at: Instant::now(), lost: None, orders: Some(sender), child, errors })
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
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }

    /// Says good-bye, so that the agent removes what it made.
    pub(crate) fn farewell(&mut self) {
        self.order(Order::Bye);
        self.orders = None;
    }

    /// Waits until the agent has gone.
    pub(crate) fn wait_until(&mut self, deadline: Instant) {
        while Instant::now() < deadline {
            match self.child.try_wait() {
                Ok(None) => thread::sleep(Duration::from_millis(5)),
                Ok(Some(_)) | Err(_) => return,
            }
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
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
    for id in 0..CLOCK_QUESTION_COUNT {
        let asked_ns = unix_ns(SystemTime::now());
        ask(orders, &Order::Clock { id })?;
        loop {
            match answer(reports)? {
                Report::Clock { id: answered, unix_ns: theirs_ns } if answered == id => {
                    clock.take(asked_ns, theirs_ns, unix_ns(SystemTime::now()));
                    break;
                }
                _ => {}
            }
        }
    }
    Ok((facts, clock))
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

fn no_agent(why: &str) -> Trouble {
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

fn write_orders(mut stream: impl Write, outbox: &Receiver<Order>) {
    for order in outbox {
        if protocol::write(&mut stream, &order).is_err() {
            return;
        }
    }
}

fn read_reports(machine_idx: usize, mut stream: BufReader<impl Read>, inbox: &Sender<Arrival>) {
    loop {
        let report = protocol::read(&mut stream).ok().flatten();
        let is_last = report.is_none();
        if inbox.send(Arrival { machine_idx, report }).is_err() || is_last {
            return;
        }
    }
}

const CLOCK_QUESTION_COUNT: u32 = 8;

/// So that a large file does not lie in memory whole, nor in one frame.
const FILE_PART_BYTES: u64 = 1 << 20;
