//! A WebSocket server that delivers each message to all of its connections after a known delay, and keeps the truth about it.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::acceptor::{Acceptor, Socket};
use crate::scripted::{Served, ServedRequest};
use crate::sleep_until;

/// What a [`BroadcastServer`] does.
#[derive(Debug, Clone)]
pub struct BroadcastScript {
    /// The `Sec-WebSocket-Accept` of a key.
    pub accept: fn(&str) -> String,
    /// Opening handshakes are answered once so many connections have asked, so that none misses a message.
    pub member_count: usize,
    /// Delays from a message to its deliveries, used in turn over all messages; at least one.
    pub delays: Vec<Duration>,
    /// Added to the delays of one member.
    pub stall: Duration,
}

/// A running server; stopped on drop.
#[derive(Debug)]
pub struct BroadcastServer {
    acceptor: Acceptor,
    channel: Arc<Channel>,
}

#[derive(Debug)]
struct Channel {
    script: BroadcastScript,
    state: Mutex<State>,
    has_changed: Condvar,
}

#[derive(Debug)]
struct State {
    asked_count: usize,
    members: Vec<Socket>,
    message_count: u64,
    /// What is to be delivered; `None`: the server ends.
    deliveries: Option<Sender<Delivery>>,
    log: Vec<ServedRequest>,
}

/// A message for one member. The earliest is the least, and among those the one that was published first.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Delivery {
    due: Instant,
    message_idx: u64,
    member_idx: usize,
    received: Instant,
    payload: Vec<u8>,
}

impl BroadcastServer {
    /// Starts on a free port of 127.0.0.1.
    pub fn start(script: BroadcastScript) -> Self {
        let (sender, deliveries) = channel();
        let state = State {
            asked_count: 0,
            members: Vec::new(),
            message_count: 0,
            deliveries: Some(sender),
            log: Vec::new(),
        };
        let channel = Arc::new(Channel { script, state: Mutex::new(state), has_changed: Condvar::new() });
        let (own, delivering) = (Arc::clone(&channel), Arc::clone(&channel));
        thread::spawn(move || delivering.deliver_all(&deliveries));
        let acceptor = Acceptor::start(move |socket| {
            // However a client leaves, what it got is in the log.
            let _ = own.serve(socket);
        });
        Self { acceptor, channel }
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.acceptor.address()
    }

    /// `ws://127.0.0.1:PORT/`.
    pub fn url(&self) -> String {
        format!("ws://{}/", self.address())
    }

    /// Ends all connections; each delivery that was made is an answered request, and how many messages were published.
    pub fn finish(self) -> (Served, u64) {
        let Self { acceptor, channel } = self;
        let connection_count = acceptor.connection_count();
        channel.lock().deliveries = None;
        channel.has_changed.notify_all();
        drop(acceptor);
        let mut state = channel.lock();
        (Served { requests: std::mem::take(&mut state.log), connection_count }, state.message_count)
    }
}

impl Channel {
    fn serve(&self, mut socket: Socket) -> io::Result<()> {
        let key = read_key(&mut socket)?;
        let accept = (self.script.accept)(&key);
        self.lock().asked_count += 1;
        self.has_changed.notify_all();
        let mut state = self.wait_for_all(|state| state.asked_count);
        write!(
            socket,
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: {accept}\r\n\r\n"
        )?;
        state.members.push(socket.clone());
        drop(state);
        self.has_changed.notify_all();
        while let Some(payload) = read_message(&mut socket)? {
            self.publish(&payload);
        }
        Ok(())
    }

    fn publish(&self, payload: &[u8]) {
        let received = Instant::now();
        let mut state = self.wait_for_all(|state| state.members.len());
        let message_idx = state.message_count;
        state.message_count += 1;
        let delay = self.script.delays[message_idx as usize % self.script.delays.len()];
        let Some(deliveries) = &state.deliveries else { return };
        for member_idx in 0..state.members.len() {
            let stall = if member_idx == 0 { self.script.stall } else { Duration::ZERO };
            let due = received + delay + stall;
            let delivery = Delivery { due, message_idx, member_idx, received, payload: payload.to_vec() };
            // Without a receiver the server has ended.
            let _ = deliveries.send(delivery);
        }
    }

    /// Delivers what is due until the server ends.
    fn deliver_all(&self, deliveries: &Receiver<Delivery>) {
        let mut waiting = BinaryHeap::<Reverse<Delivery>>::new();
        loop {
            let next = waiting.peek().map(|Reverse(next)| next.due.saturating_duration_since(Instant::now()));
            // The rest is spun: a thread that waits for a message wakes as late as one that sleeps.
            match deliveries.recv_timeout(next.unwrap_or(IDLE).saturating_sub(SPIN)) {
                Ok(delivery) => waiting.push(Reverse(delivery)),
                Err(_) if self.lock().deliveries.is_none() => return,
                Err(_) => {
                    if let Some(Reverse(next)) = waiting.pop() {
                        sleep_until(next.due);
                        self.deliver(&next);
                    }
                }
            }
        }
    }

    fn deliver(&self, delivery: &Delivery) {
        let member = self.lock().members.get(delivery.member_idx).cloned();
        let frame = [&[TEXT, delivery.payload.len() as u8], &delivery.payload[..]].concat();
        if member.is_some_and(|mut member| member.write_all(&frame).is_ok()) {
            let (received, delay) = (delivery.received, delivery.received.elapsed());
            self.lock().log.push(ServedRequest { received, delay });
        }
    }

    /// The state once as many as there are members have come so far, or the server ends.
    fn wait_for_all(&self, count: impl Fn(&State) -> usize) -> MutexGuard<'_, State> {
        let is_waiting =
            |state: &mut State| state.deliveries.is_some() && count(state) < self.script.member_count;
        self.has_changed.wait_while(self.lock(), is_waiting).unwrap_or_else(PoisonError::into_inner)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The key of an opening handshake.
fn read_key(stream: &mut impl Read) -> io::Result<String> {
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte)?;
        head.push(byte[0]);
    }
    let head = String::from_utf8_lossy(&head);
    let key = head.lines().find_map(|line| line.strip_prefix("Sec-WebSocket-Key: "));
    key.map(str::to_owned).ok_or_else(|| io::ErrorKind::InvalidData.into())
}

/// The next text message, in one frame of less than 126 bytes; `None`: the client closes.
fn read_message(stream: &mut impl Read) -> io::Result<Option<Vec<u8>>> {
    let mut head = [0; 6];
    stream.read_exact(&mut head)?;
    let mut payload = vec![0; usize::from(head[1] & 0x7f)];
    stream.read_exact(&mut payload)?;
    payload.iter_mut().zip(head[2..].iter().cycle()).for_each(|(byte, key)| *byte ^= key);
    Ok((head[0] == TEXT).then_some(payload))
}

/// First byte of a text message in one frame (RFC 6455 5.2).
const TEXT: u8 = 0x81;

/// How often a server without messages looks whether it ends.
const IDLE: Duration = Duration::from_millis(20);

/// Longer than the kernel's default timer slack (50 us) and the wake-up together.
const SPIN: Duration = Duration::from_micros(200);
