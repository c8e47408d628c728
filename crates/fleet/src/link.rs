//! The controller's end of one machine: what it said, what it is sent, and whether it still lives.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;

use crate::attempt::{Attempt, Awaited, Errors, Opened};
use crate::clock::{ClockOffset, Exchange, unix_ns};
use crate::delivery::Delivery;
use crate::kubernetes::ClusterLook;
use crate::protocol::{self, Destination, FilePart, Order, PROTOCOL_VERSION, Report, Trouble, WayBack};
use crate::transport::Transport;

/// Something that came from a machine.
#[derive(Debug)]
pub(crate) struct Arrival {
    /// Its number.
    pub machine_idx: usize,
    /// What came.
    pub what: Arrived,
    /// When, in nanoseconds since 1970.
    pub came_unix_ns: u64,
}

/// What can come from a machine.
#[derive(Debug)]
pub(crate) enum Arrived {
    /// What its agent reports, as it is written: read, the metrics of a second are three hundred times as large, and all agents
    /// report at the same moment.
    Json(Vec<u8>),
    /// What the controller found out in its place.
    Report(Report),
    /// The connection of that number ended.
    Ended(u64),
    /// A new connection to its agent.
    Back(Box<Returned>),
    /// Its agent is gone, and why.
    Gone(String),
    /// What a cluster shows to a monitor of that number, or why it does not; from no machine.
    Cluster(usize, Result<ClusterLook, Trouble>),
}

/// A new connection to an agent that runs.
#[derive(Debug)]
pub(crate) struct Returned {
    opened: Opened,
    /// The number of the last order that the agent received.
    received: u64,
}

/// A machine that answered.
#[derive(Debug)]
pub(crate) struct Link {
    /// Facts that its agent reported.
    pub facts: BTreeMap<String, String>,
    /// How far its clock is off.
    pub clock: ClockOffset,
    /// When something came from it last.
    pub heard_at: Instant,
    /// Why it takes part no more.
    pub lost: Option<String>,
    orders: Option<Sender<Outgoing>>,
    delivery: Delivery<Order>,
    /// Files that are not wholly sent yet.
    files_left: Arc<AtomicUsize>,
    /// The process that carries it; `None`: it never answered.
    child: Option<Child>,
    errors: Errors,
    /// How a new connection reaches its agent.
    way_back: Option<WayBack>,
    /// A new connection that is being made.
    returning: Option<Attempt>,
}

/// What is to be written to an agent. A plan has few of them, so the queue needs no bound: files are read as they are written.
#[derive(Debug)]
enum Outgoing {
    Order(Order),
    File { from: PathBuf, to: Destination },
}

impl Link {
    /// Starts the agent, and asks who it is and what time it has there. `lost_after`: an agent that receives nothing for so long ends.
    ///
    /// # Errors
    /// When there is no agent, or none that can be used.
    pub(crate) fn open(
        machine_idx: usize,
        (transport, lost_after): (&dyn Transport, Duration),
        inbox: &Sender<Arrival>,
        (attempt, note): (&Attempt, &dyn Fn(&str)),
    ) -> Result<Self, Trouble> {
        let Opened { mut child, mut orders, mut reports, errors } = transport.open(attempt, note)?;
        attempt.awaits(Awaited::Answer);
        let delivery = Delivery::new();
        let hello =
            Order::Hello { protocol: PROTOCOL_VERSION, lost_after, can_resume: transport.can_return() };
        let Greeted { facts, clock, way_back } = match greet(&hello, &mut orders, &mut reports, &delivery) {
            Ok(greeted) => greeted,
            Err(trouble) => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(with_words(trouble, &errors.text()));
            }
        };
        let facts = facts.into_iter().chain(transport.facts()).collect();
        let (sender, outbox) = mpsc::channel();
        let files_left = Arc::new(AtomicUsize::new(0));
        let writer = Writer { machine_idx, inbox: inbox.clone(), files_left: Arc::clone(&files_left) };
        let mut own_delivery = delivery.clone();
        let started = carry(&delivery, machine_idx, (orders, 0), reports, inbox).and_then(|()| {
            thread::Builder::new().spawn(move || {
                writer.write_all(&mut own_delivery, &outbox);
                own_delivery.close();
            })
        });
        if let Err(error) = started {
            let _ = child.kill();
            return Err(Trouble::new(
                format!("cannot start a thread: {error}"),
                "raise the limit: `ulimit -u`",
            ));
        }
        Ok(Self {
            facts,
            clock,
            heard_at: Instant::now(),
            lost: None,
            orders: Some(sender),
            delivery,
            files_left,
            child: Some(child),
            errors,
            way_back,
            returning: None,
        })
    }

    /// Whether this connection, by its number, is the one in use.
    pub(crate) fn is_carried_by(&self, connection: u64) -> bool {
        self.lost.is_none() && self.delivery.connection() == connection
    }

    /// Whether it waits for a new connection.
    pub(crate) fn is_returning(&self) -> bool {
        self.returning.is_some()
    }

    /// Replaces a lost connection, on a thread of its own, until the agent is reached or found gone; false where there is no way back.
    pub(crate) fn come_back(
        &mut self,
        machine_idx: usize,
        transport: Arc<dyn Transport>,
        inbox: &Sender<Arrival>,
    ) -> bool {
        let Some(way_back) = self.way_back.clone() else { return false };
        self.end();
        let attempt = Attempt::default();
        self.returning = Some(attempt.clone());
        let (delivery, inbox) = (self.delivery.clone(), inbox.clone());
        let come_back = move || {
            let Some(what) = find_again(&*transport, &way_back, &delivery, &attempt) else { return };
            // A fleet that is gone waits for nothing.
            let _ = inbox.send(Arrival { machine_idx, what, came_unix_ns: unix_ns(SystemTime::now()) });
        };
        thread::Builder::new().spawn(come_back).is_ok()
    }

    /// Goes on with a new connection.
    ///
    /// # Errors
    /// When a thread cannot be started.
    pub(crate) fn resume(
        &mut self,
        machine_idx: usize,
        returned: Returned,
        inbox: &Sender<Arrival>,
    ) -> io::Result<()> {
        let Opened { child, orders, reports, errors } = returned.opened;
        self.returning = None;
        self.heard_at = Instant::now();
        (self.child, self.errors) = (Some(child), errors);
        carry(&self.delivery, machine_idx, (orders, returned.received), reports, inbox)
    }

    /// A machine that never answered: the others are looked at all the same, so that all that is wrong is reported at once.
    pub(crate) fn absent() -> Self {
        Self {
            facts: BTreeMap::new(),
            clock: ClockOffset::default(),
            heard_at: Instant::now(),
            lost: Some("it never answered".to_owned()),
            orders: None,
            delivery: Delivery::new(),
            files_left: Arc::default(),
            child: None,
            errors: Errors::default(),
            way_back: None,
            returning: None,
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

    /// Gives an order. One that cannot arrive is dropped: that the machine is gone is reported by [`Arrival`].
    pub(crate) fn order(&self, order: Order) {
        self.queue(Outgoing::Order(order));
    }

    fn queue(&self, outgoing: Outgoing) {
        if let Some(orders) = &self.orders {
            let _ = orders.send(outgoing);
        }
    }

    /// Sends a file, part by part, before the orders that follow. What cannot be read later is reported as a machine's refusal is.
    ///
    /// # Errors
    /// When it cannot be opened here.
    pub(crate) fn send_file(&self, from: &Path, to: &Destination) -> io::Result<()> {
        File::open(from)?;
        self.files_left.fetch_add(1, Ordering::Relaxed);
        self.queue(Outgoing::File { from: from.to_owned(), to: to.clone() });
        Ok(())
    }

    /// Whether files are still on their way to it.
    pub(crate) fn is_sending_files(&self) -> bool {
        self.lost.is_none() && self.files_left.load(Ordering::Relaxed) > 0
    }

    /// It takes part no more. Its process is ended, which ends the agent if it still lives.
    pub(crate) fn lose(&mut self, why: &str) {
        if self.lost.is_none() {
            let words = self.errors.text();
            let last = words.lines().last().unwrap_or_default().trim();
            self.lost = Some(if last.is_empty() { why.to_owned() } else { format!("{why} ({last})") });
            self.orders = None;
            if let Some(returning) = self.returning.take() {
                returning.give_up();
            }
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

/// Delivers orders over a new connection, those after number `after` first, and takes the reports that come over it.
fn carry(
    delivery: &Delivery<Order>,
    machine_idx: usize,
    (orders, after): (ChildStdin, u64),
    mut reports: BufReader<ChildStdout>,
    inbox: &Sender<Arrival>,
) -> io::Result<()> {
    let connection = delivery.connect(orders, after)?;
    let (delivery, inbox) = (delivery.clone(), inbox.clone());
    let read_all = move || {
        loop {
            let report = delivery.read_json(&mut reports).ok().flatten();
            let is_last = report.is_none();
            let what = report.map_or(Arrived::Ended(connection), Arrived::Json);
            let arrival = Arrival { machine_idx, what, came_unix_ns: unix_ns(SystemTime::now()) };
            if inbox.send(arrival).is_err() || is_last {
                return;
            }
        }
    };
    thread::Builder::new().spawn(read_all).map(drop)
}

/// Looks for an agent until it is found, or is known to be gone; `None` when the attempt was given up.
fn find_again(
    transport: &dyn Transport,
    way_back: &WayBack,
    delivery: &Delivery<Order>,
    attempt: &Attempt,
) -> Option<Arrived> {
    while !attempt.is_given_up() {
        match transport.attach(way_back, attempt) {
            Ok(Some(opened)) => {
                if let Some(returned) = resumed(opened, delivery) {
                    return Some(Arrived::Back(Box::new(returned)));
                }
            }
            Ok(None) => {
                return Some(Arrived::Gone(
                    transport.fate().unwrap_or_else(|| "its agent has ended".to_owned()),
                ));
            }
            // The network, or a host on the way: it may come back.
            Err(_) => {}
        }
        thread::sleep(RETURN_PAUSE);
    }
    None
}

/// Says what was received, and hears what the agent has.
fn resumed(mut opened: Opened, delivery: &Delivery<Order>) -> Option<Returned> {
    let asked = ask(&mut opened.orders, &Order::Resume { received: delivery.received() });
    let answer = asked.ok().and_then(|()| protocol::read(&mut opened.reports).ok().flatten());
    if let Some(Report::Resumed { received }) = answer {
        return Some(Returned { opened, received });
    }
    let _ = opened.child.kill();
    let _ = opened.child.wait();
    None
}

/// What an agent says of itself first.
struct Greeted {
    facts: BTreeMap<String, String>,
    clock: ClockOffset,
    way_back: Option<WayBack>,
}

/// Asks for facts, then several times for the clock: the quickest answer is the most precise.
fn greet(
    hello: &Order,
    orders: &mut impl Write,
    reports: &mut impl Read,
    delivery: &Delivery<Order>,
) -> Result<Greeted, Trouble> {
    ask(orders, hello)?;
    let (facts, way_back) = loop {
        match answer(reports, delivery)? {
            Report::Hello { protocol, version, facts, way_back } if protocol == PROTOCOL_VERSION => {
                let own = env!("CARGO_PKG_VERSION");
                if version != own {
                    let message = format!("it runs squall {version}, this is squall {own}");
                    return Err(Trouble::new(message, "use the same version on both machines"));
                }
                break (facts, way_back);
            }
            Report::Hello { protocol, version, .. } => {
                let message =
                    format!("squall {version} there speaks protocol {protocol}, not {PROTOCOL_VERSION}");
                return Err(Trouble::new(message, "use the same version on both machines"));
            }
            _ => {}
        }
    };
    let mut clock = ClockOffset::default();
    for _ in 0..CLOCK_QUESTION_COUNT {
        ask(orders, &Order::Clock { asked_unix_ns: unix_ns(SystemTime::now()) })?;
        while !take_clock(&mut clock, &answer(reports, delivery)?, unix_ns(SystemTime::now())) {}
    }
    Ok(Greeted { facts, clock, way_back })
}

/// Takes a report about the clock in; false when it is about something else.
fn take_clock(clock: &mut ClockOffset, report: &Report, came_ns: u64) -> bool {
    let Report::Clock { asked_unix_ns, heard_unix_ns, told_unix_ns } = *report else { return false };
    clock.take(Exchange { asked_ns: asked_unix_ns, heard_ns: heard_unix_ns, told_ns: told_unix_ns, came_ns });
    true
}

fn ask(orders: &mut impl Write, order: &Order) -> Result<(), Trouble> {
    // A pipe whose reader has gone.
    protocol::write(orders, order).map_err(|_| Trouble::no_agent("it ended"))
}

fn answer(reports: &mut impl Read, delivery: &Delivery<Order>) -> Result<Report, Trouble> {
    match delivery.read(reports) {
        Ok(Some(report)) => Ok(report),
        Ok(None) => Err(Trouble::no_agent("it ended")),
        Err(error) => Err(Trouble::no_agent(&error.to_string())),
    }
}

/// What the other end said at last explains more than its silence; an agent says what is wrong and what to do.
fn with_words(trouble: Trouble, words: &str) -> Trouble {
    let said = |what: &str| words.lines().rev().find_map(|line| line.trim().strip_prefix(what));
    if let (Some(error), Some(help)) = (said("error: "), said("help: ")) {
        return Trouble::new(error, help);
    }
    match words.lines().last() {
        Some(last) => Trouble::new(format!("{} ({})", trouble.message, last.trim()), trouble.help),
        None => trouble,
    }
}

/// Writes to one agent.
struct Writer {
    machine_idx: usize,
    inbox: Sender<Arrival>,
    files_left: Arc<AtomicUsize>,
}

/// Takes orders on their way.
trait Orders {
    /// # Errors
    /// When they cannot arrive.
    fn send(&mut self, order: Order) -> io::Result<()>;
}

impl Orders for Delivery<Order> {
    fn send(&mut self, order: Order) -> io::Result<()> {
        match order {
            Order::File(_) => self.push_in_turn(order),
            _ => self.push(order),
        }
    }
}

impl Writer {
    /// Sends until there will be nothing more; where there is nothing for a while, it asks for the clock, which says that the
    /// controller lives: also while other machines are still being reached.
    fn write_all(&self, orders: &mut impl Orders, outbox: &Receiver<Outgoing>) {
        loop {
            let sent = match outbox.recv_timeout(BEAT_EVERY) {
                Ok(Outgoing::Order(order)) => self.write_order(orders, order),
                Ok(Outgoing::File { from, to }) => {
                    let sent = self.write_file(orders, &from, &to);
                    self.files_left.fetch_sub(1, Ordering::Relaxed);
                    sent
                }
                Err(RecvTimeoutError::Timeout) => orders.send(BEAT),
                Err(RecvTimeoutError::Disconnected) => return,
            };
            if sent.is_err() {
                return;
            }
        }
    }

    /// Loads that are too large for a message are refused, as the machine itself would refuse them.
    fn write_order(&self, orders: &mut impl Orders, order: Order) -> io::Result<()> {
        let load_idxs: Vec<u32> = match &order {
            Order::Prepare { loads } => loads.iter().map(|load| load.load_idx).collect(),
            _ => Vec::new(),
        };
        let sent = orders.send(order);
        if !sent.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::InvalidData) {
            return sent;
        }
        let message = format!("what it would be sent is larger than {} MiB", protocol::FRAME_BYTES_MAX >> 20);
        let help =
            "give the loads of a step fewer URLs and shorter headers, and write bodies into a `body-file`";
        let trouble = Trouble::new(message, help);
        if load_idxs.is_empty() {
            self.refuse(None, trouble);
            return Ok(());
        }
        load_idxs.into_iter().for_each(|load_idx| self.refuse(Some(load_idx), trouble.clone()));
        Ok(())
    }

    /// One part after the other, each when the one before was taken; a long file says now and then that the controller lives.
    fn write_file(&self, orders: &mut impl Orders, from: &Path, to: &Destination) -> io::Result<()> {
        let mut file = match File::open(from) {
            Ok(file) => file,
            Err(error) => {
                self.refuse_file(from, &error);
                return Ok(());
            }
        };
        let mut is_first = true;
        let mut beat_at = Instant::now();
        loop {
            let bytes = match read_part(&mut file) {
                Ok(bytes) => bytes,
                Err(error) => {
                    self.refuse_file(from, &error);
                    return Ok(());
                }
            };
            let is_last = (bytes.len() as u64) < FILE_PART_BYTES;
            let data = BASE64_STANDARD.encode(&bytes);
            let part = FilePart { to: to.clone(), is_first, is_last, data };
            orders.send(Order::File(part))?;
            if is_last {
                return Ok(());
            }
            is_first = false;
            if beat_at.elapsed() >= BEAT_EVERY {
                beat_at = Instant::now();
                orders.send(BEAT)?;
            }
        }
    }

    fn refuse_file(&self, from: &Path, error: &io::Error) {
        let message = format!("cannot read `{}`: {error}", from.display());
        self.refuse(None, Trouble::new(message, "check the path and its permissions"));
    }

    fn refuse(&self, load_idx: Option<u32>, trouble: Trouble) {
        let what = Arrived::Report(Report::Refused { load_idx, trouble });
        let came_unix_ns = unix_ns(SystemTime::now());
        // A fleet that is gone needs no answer.
        let _ = self.inbox.send(Arrival { machine_idx: self.machine_idx, what, came_unix_ns });
    }
}

fn read_part(file: &mut File) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(FILE_PART_BYTES).read_to_end(&mut bytes)?;
    Ok(bytes)
}

const CLOCK_QUESTION_COUNT: u32 = 8;

/// How often an agent learns that the controller lives, and its clock is compared.
const BEAT_EVERY: Duration = Duration::from_secs(1);

/// Before the next try to reach an agent whose connection was lost.
const RETURN_PAUSE: Duration = Duration::from_millis(500);

/// Says that the controller lives.
const BEAT: Order = Order::Clock { asked_unix_ns: 0 };

/// A part lies in memory while it is written, and through a slow network it takes a while: an agent that hears nothing meanwhile must not
/// think that it was left alone. This much takes that long at 15 kB/s.
const FILE_PART_BYTES: u64 = 64 << 10;

#[cfg(test)]
mod tests {
    use squall_plan::Segment;

    use super::*;
    use crate::order::LoadWork;
    use crate::protocol::LoadOrder;

    /// A network that takes a while for each order.
    #[derive(Default)]
    struct Slow {
        sent: Vec<Order>,
        pause: Duration,
    }

    impl Orders for Slow {
        fn send(&mut self, order: Order) -> io::Result<()> {
            thread::sleep(self.pause);
            self.sent.push(order);
            Ok(())
        }
    }

    fn there() -> Destination {
        Destination { path: "there".to_owned(), mode: 0o600, overwrite: false }
    }

    fn writer() -> (Writer, Receiver<Arrival>) {
        let (inbox, arrivals) = mpsc::channel();
        (Writer { machine_idx: 3, inbox, files_left: Arc::default() }, arrivals)
    }

    #[test]
    fn a_file_goes_in_small_parts_with_signs_of_life_between_them() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("large");
        let content: Vec<u8> = (0..8 * FILE_PART_BYTES + 5).map(|at| (at % 251) as u8).collect();
        std::fs::write(&path, &content).unwrap();
        let mut slow = Slow { pause: BEAT_EVERY / 3, ..Slow::default() };
        writer().0.write_file(&mut slow, &path, &there()).unwrap();
        let orders = slow.sent;
        let last = orders.iter().rposition(|order| matches!(order, Order::File(_))).unwrap();
        assert!(orders[..last].iter().any(|order| matches!(order, Order::Clock { .. })));
        let parts: Vec<&FilePart> = orders
            .iter()
            .filter_map(|order| if let Order::File(part) = order { Some(part) } else { None })
            .collect();
        let bytes: Vec<Vec<u8>> =
            parts.iter().map(|part| BASE64_STANDARD.decode(&part.data).unwrap()).collect();
        assert!(bytes.iter().all(|part| part.len() <= 64 << 10));
        assert_eq!(bytes.concat(), content);
        assert!(parts.iter().enumerate().all(|(idx, part)| part.is_first == (idx == 0)));
        assert!(parts.iter().enumerate().all(|(idx, part)| part.is_last == (idx + 1 == parts.len())));
    }

    #[test]
    fn a_file_of_whole_parts_has_a_last_one_too() {
        let folder = tempfile::tempdir().unwrap();
        for (length, expected) in [(0, 1), (1, 1), (FILE_PART_BYTES, 2), (2 * FILE_PART_BYTES, 3)] {
            let path = folder.path().join("file");
            std::fs::write(&path, vec![b'x'; length as usize]).unwrap();
            let mut slow = Slow::default();
            writer().0.write_file(&mut slow, &path, &there()).unwrap();
            let orders = slow.sent;
            assert_eq!(orders.len(), expected, "{length} bytes");
            let last = orders.last().unwrap();
            assert!(matches!(last, Order::File(part) if part.is_last), "{length} bytes");
        }
    }

    #[test]
    fn what_cannot_be_read_is_reported_and_the_orders_after_it_go_on() {
        let (writer, arrivals) = writer();
        writer.files_left.store(1, Ordering::Relaxed);
        let (sender, outbox) = mpsc::channel();
        sender.send(Outgoing::File { from: "/no/such".into(), to: there() }).unwrap();
        sender.send(Outgoing::Order(Order::Bye)).unwrap();
        drop(sender);
        let mut slow = Slow::default();
        writer.write_all(&mut slow, &outbox);
        assert_eq!(slow.sent, [Order::Bye]);
        assert_eq!(writer.files_left.load(Ordering::Relaxed), 0);
        let told = arrivals.try_recv().unwrap();
        let Arrived::Report(Report::Refused { load_idx: None, trouble }) = told.what else {
            panic!("{told:?}")
        };
        assert_eq!(told.machine_idx, 3);
        assert!(trouble.message.starts_with("cannot read `/no/such`: "), "{trouble:?}");
    }

    #[test]
    fn loads_too_large_for_a_message_are_refused_by_number() {
        let (writer, arrivals) = writer();
        let load = |load_idx, name: String| LoadOrder {
            load_idx,
            name,
            work: LoadWork::Tool(Box::default()),
            env: BTreeMap::new(),
            segment: Segment::WHOLE,
            is_copied: false,
            is_first: true,
            start_after: Duration::ZERO,
        };
        let large = "x".repeat(protocol::FRAME_BYTES_MAX as usize);
        let loads = vec![load(4, String::new()), load(7, large)];
        let mut delivery = Delivery::new();
        writer.write_order(&mut delivery, Order::Prepare { loads }).unwrap();
        let refused = arrivals.try_iter().map(|arrival| match arrival.what {
            Arrived::Report(Report::Refused { load_idx, trouble }) => (load_idx, trouble.message),
            other => panic!("{other:?}"),
        });
        let message = "what it would be sent is larger than 64 MiB";
        let expected = [4, 7].map(|load_idx| (Some(load_idx), message.to_owned()));
        assert_eq!(refused.collect::<Vec<_>>(), expected);
    }
}
