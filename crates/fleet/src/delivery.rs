//! Messages in one direction that survive the loss of the connection: numbered, and kept until the other end has received them.
//!
//! Controller and agent have one each. A new connection begins with the number of the last message that the other end received, so
//! none is lost and none counts twice. Owns: the queue, its numbers, and the thread that writes. Never: what messages mean.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use serde::de::DeserializeOwned;
use squall_plan::limits::SPOOL_BYTES_MAX;

use crate::protocol::{self, Frame, Message};

/// The messages to the other end.
#[derive(Debug)]
pub(crate) struct Delivery<M>(Arc<Shared<M>>);

#[derive(Debug)]
struct Shared<M> {
    state: Mutex<State<M>>,
    changed: Condvar,
}

#[derive(Debug)]
struct State<M> {
    /// Not yet written to this connection.
    waiting: VecDeque<Entry<M>>,
    /// Written, and maybe not received.
    written: VecDeque<Kept>,
    kept_bytes: usize,
    kept_bytes_max: usize,
    /// When the other end was last known to have received anything new, or all of it.
    progress_at: Instant,
    last_number: u64,
    /// The last number received from the other end.
    received: u64,
    /// Rises with each connection.
    connection: u64,
    is_connected: bool,
    is_writing: bool,
    is_closing: bool,
}

#[derive(Debug)]
enum Entry<M> {
    Kept(Kept),
    Momentary(M),
}

#[derive(Debug, Clone)]
struct Kept {
    number: u64,
    json: Arc<Vec<u8>>,
}

impl<M> Clone for Delivery<M> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<M: Message> Delivery<M> {
    /// Nothing to deliver, and no connection.
    pub(crate) fn new() -> Self {
        Self::bounded(SPOOL_BYTES_MAX)
    }

    fn bounded(kept_bytes_max: usize) -> Self {
        let state = State {
            waiting: VecDeque::new(),
            written: VecDeque::new(),
            kept_bytes: 0,
            kept_bytes_max,
            progress_at: Instant::now(),
            last_number: 0,
            received: 0,
            connection: 0,
            is_connected: false,
            is_writing: false,
            is_closing: false,
        };
        Self(Arc::new(Shared { state: Mutex::new(state), changed: Condvar::new() }))
    }

    /// Queues a message.
    ///
    /// # Errors
    /// When it is too large to be sent.
    pub(crate) fn push(&self, message: M) -> io::Result<()> {
        let entry = match message.is_momentary() {
            true => None,
            false => Some(Arc::new(protocol::json(&message)?)),
        };
        let mut state = self.state();
        match entry {
            Some(json) => {
                if state.kept_bytes == 0 {
                    state.progress_at = Instant::now();
                }
                state.last_number += 1;
                state.kept_bytes += json.len();
                let number = state.last_number;
                state.waiting.push_back(Entry::Kept(Kept { number, json }));
            }
            None if state.is_connected => state.waiting.push_back(Entry::Momentary(message)),
            None => {}
        }
        self.0.changed.notify_all();
        Ok(())
    }

    /// Queues a message when few others wait: what is read from a disk must not gather in memory.
    ///
    /// # Errors
    /// When there is no connection, or the message is too large to be sent.
    pub(crate) fn push_in_turn(&self, message: M) -> io::Result<()> {
        let mut state = self.state();
        while state.is_connected && state.waiting.len() >= IN_TURN_COUNT_MAX {
            state = self.0.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        if !state.is_connected {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        drop(state);
        self.push(message)
    }

    /// Delivers over this stream from now on, what came after message `after` first; gives the connection's number.
    pub(crate) fn connect(&self, stream: impl Write + Send + 'static, after: u64) -> io::Result<u64> {
        let mut state = self.state();
        state.acknowledge(after);
        let unreceived: Vec<Kept> = state.written.drain(..).collect();
        state.waiting.retain(|entry| matches!(entry, Entry::Kept(kept) if kept.number > after));
        for kept in unreceived.into_iter().rev() {
            state.waiting.push_front(Entry::Kept(kept));
        }
        state.connection += 1;
        (state.is_connected, state.is_writing) = (true, false);
        let connection = state.connection;
        drop(state);
        let own = self.clone();
        thread::Builder::new().name("deliver".to_owned()).spawn(move || own.write_all(connection, stream))?;
        Ok(connection)
    }

    /// The number of the current connection.
    pub(crate) fn connection(&self) -> u64 {
        self.state().connection
    }

    /// The number of the last message received from the other end.
    pub(crate) fn received(&self) -> u64 {
        self.state().received
    }

    /// For how long the other end has received nothing new, as far as is known; zero where there is nothing new.
    pub(crate) fn stuck_for(&self) -> Duration {
        let state = self.state();
        if state.kept_bytes == 0 { Duration::ZERO } else { state.progress_at.elapsed() }
    }

    /// Whether more is kept than may be.
    pub(crate) fn is_full(&self) -> bool {
        let state = self.state();
        state.kept_bytes > state.kept_bytes_max
    }

    /// Reads the next new message from the other end; `None` at the end of its stream.
    pub(crate) fn read<R: DeserializeOwned>(&self, stream: &mut impl io::Read) -> io::Result<Option<R>> {
        let Some(json) = self.read_json(stream)? else { return Ok(None) };
        serde_json::from_slice(&json).map(Some).map_err(io::Error::from)
    }

    /// The same as it is written.
    pub(crate) fn read_json(&self, stream: &mut impl io::Read) -> io::Result<Option<Vec<u8>>> {
        while let Some(Frame { number, received, json }) = protocol::read_frame(stream)? {
            let mut state = self.state();
            state.acknowledge(received);
            // Momentary ones have no number; one that came over an earlier connection has been read.
            if number > 0 && number <= state.received {
                continue;
            }
            state.received = state.received.max(number);
            return Ok(Some(json));
        }
        Ok(None)
    }

    /// Ends the stream when all that waits is written.
    pub(crate) fn close(&self) {
        self.state().is_closing = true;
        self.0.changed.notify_all();
    }

    /// Waits until all is written, the connection is lost, or the time is over.
    pub(crate) fn wait_until_written(&self, time_max: Duration) {
        let deadline = Instant::now() + time_max;
        let mut state = self.state();
        while state.is_connected && (state.is_writing || !state.waiting.is_empty()) {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            state = self.0.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Writes to one connection until it is lost, replaced or closed.
    fn write_all(&self, connection: u64, mut stream: impl Write) {
        let mut is_written = true;
        while let Some((entry, received)) = self.next(connection, is_written) {
            is_written = match entry {
                Entry::Kept(kept) => protocol::write_frame(&mut stream, (kept.number, received), &kept.json),
                Entry::Momentary(mut message) => {
                    message.stamp();
                    protocol::json(&message)
                        .and_then(|json| protocol::write_frame(&mut stream, (0, received), &json))
                }
            }
            .is_ok();
        }
    }

    /// Waits for what is to be written next. `is_written`: whether the one before could be.
    fn next(&self, connection: u64, is_written: bool) -> Option<(Entry<M>, u64)> {
        let mut state = self.state();
        loop {
            if state.connection != connection {
                return None;
            }
            state.is_writing = false;
            state.is_connected &= is_written;
            self.0.changed.notify_all();
            if !state.is_connected {
                return None;
            }
            if let Some(entry) = state.waiting.pop_front() {
                if let Entry::Kept(kept) = &entry {
                    let kept = kept.clone();
                    state.written.push_back(kept);
                }
                state.is_writing = true;
                return Some((entry, state.received));
            }
            if state.is_closing {
                return None;
            }
            state = self.0.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn state(&self) -> MutexGuard<'_, State<M>> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<M> State<M> {
    /// The other end has received all messages up to this one.
    fn acknowledge(&mut self, number: u64) {
        while self.written.front().is_some_and(|kept| kept.number <= number) {
            let bytes = self.written.pop_front().map_or(0, |kept| kept.json.len());
            self.kept_bytes = self.kept_bytes.saturating_sub(bytes);
            self.progress_at = Instant::now();
        }
    }
}

/// Enough for the writer to have the next one when it has written one.
const IN_TURN_COUNT_MAX: usize = 4;

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::unix::net::UnixStream;

    use serde::Deserialize;

    use serde::Serialize;

    use super::*;

    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    enum Told {
        Second(u32),
        Moment(u32),
    }

    impl Message for Told {
        fn is_momentary(&self) -> bool {
            matches!(self, Self::Moment(_))
        }

        fn stamp(&mut self) {}
    }

    fn read(delivery: &Delivery<Told>, stream: &mut impl Read, count: usize) -> Vec<Told> {
        (0..count).map(|_| delivery.read::<Told>(stream).unwrap().unwrap()).collect()
    }

    #[test]
    fn what_the_lost_connection_did_not_deliver_comes_over_the_next_one_once() {
        let (agent, controller) = (Delivery::<Told>::new(), Delivery::<Told>::new());
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        agent.connect(ours, 0).unwrap();
        (0..3).for_each(|second| agent.push(Told::Second(second)).unwrap());
        assert_eq!(read(&controller, &mut theirs, 2), [Told::Second(0), Told::Second(1)]);
        // The third one is on its way when the connection ends.
        agent.wait_until_written(Duration::from_secs(20));
        drop(theirs);
        agent.push(Told::Second(3)).unwrap();
        agent.wait_until_written(Duration::from_secs(20));
        agent.push(Told::Moment(4)).unwrap();
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        assert_eq!(agent.connect(ours, controller.received()).unwrap(), 2);
        agent.push(Told::Moment(5)).unwrap();
        agent.push(Told::Second(6)).unwrap();
        let expected = [Told::Second(2), Told::Second(3), Told::Moment(5), Told::Second(6)];
        assert_eq!(read(&controller, &mut theirs, 4), expected);
    }

    #[test]
    fn what_was_received_twice_counts_once_and_what_was_received_is_not_kept() {
        let (agent, controller) = (Delivery::<Told>::new(), Delivery::<Told>::new());
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        agent.connect(ours, 0).unwrap();
        agent.push(Told::Second(0)).unwrap();
        assert_eq!(read(&controller, &mut theirs, 1), [Told::Second(0)]);
        // The controller's word of it was lost, so all of it is sent again.
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        agent.connect(ours, 0).unwrap();
        agent.push(Told::Second(1)).unwrap();
        assert_eq!(read(&controller, &mut theirs, 1), [Told::Second(1)]);
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        controller.connect(ours, 0).unwrap();
        controller.push(Told::Moment(0)).unwrap();
        read(&agent, &mut theirs, 1);
        assert!(agent.state().written.is_empty() && agent.state().kept_bytes == 0);
    }

    #[test]
    fn a_spool_beyond_its_bound_is_full() {
        let delivery = Delivery::bounded(2 * br#"{"Second":7}"#.len());
        for expected in [false, false, true] {
            delivery.push(Told::Second(7)).unwrap();
            assert_eq!(delivery.is_full(), expected);
        }
    }
}
