//! Messages on WebSockets that are kept: which connection sends which message when, and what is counted of the answers.
//!
//! Connections are opened, kept and reopened by `sessions`. Owns: the schedule of messages, the connections that send them, and what still waits
//! for an answer. Never: frames, which are `connections::messages`'.

mod closing;
mod opening;
mod publishing;
mod receiving;
mod sending;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use squall_measure::WebSockets;
use squall_plan::{MessageExchange, MessagePayload, Profile, ShardPart};

use crate::pace::{Arrivals, grid_ns};
use crate::prepare::{MessageContent, Prepared, WebSocketPolicy};
use crate::pulse::Pulse;
use crate::shard::connections::websocket::{MessageDigest, SentMessage, Talk};
use publishing::{Publishers, Publishing};

/// What is said on the WebSockets of one event loop.
#[derive(Debug)]
pub(in crate::shard) struct MessageSchedule {
    policy: WebSocketPolicy,
    arrivals: Option<Arrivals>,
    /// Messages that may still be sent; `None`: any number.
    remaining: Option<u64>,
    /// Open connections that send, and which of them is next.
    senders: Vec<u32>,
    next_sender: usize,
    sender_count_max: u32,
    /// When the messages were to be sent for which no connection was open.
    waiting: VecDeque<u64>,
    /// Connections that send again when their pause is over, by their generation.
    pausing: BinaryHeap<Reverse<(u64, u32, u32)>>,
    /// Connections whose last message was answered in this turn.
    due: Vec<u32>,
    /// Messages that wait for their socket.
    unsent_count: u64,
    /// Messages that were sent and have no answer yet.
    open_count: u64,
    publishing: Option<Publishing>,
    /// From when the schedule counts.
    begin_ns: u64,
    next_storm_ns: u64,
    /// After how long without a delivery no more are expected of other machines.
    quiet_ns: u64,
    warm_until_ns: u64,
    /// A message while it is put together.
    scratch: Vec<u8>,
    /// This loop's part of all messages and connections, by which templates number them.
    part: ShardPart,
    /// Messages that were filled in so far.
    filled_count: u64,
}

impl MessageSchedule {
    /// That of a load which starts at `start_ns`; `None`: it is none of WebSockets.
    pub(in crate::shard) fn new(
        prepared: &Prepared,
        part: &ShardPart,
        (start_ns, warmup_ns): (u64, u64),
        length_ns: u64,
    ) -> Option<Box<Self>> {
        let policy = prepared.sessions.as_ref()?.websocket.clone()?;
        let arrivals = |profile: &Profile, part: &ShardPart| {
            let rate = policy.rate.as_ref()?;
            Some(Arrivals::new(profile, rate.arrival, part, grid_ns(rate.pacing), length_ns))
        };
        let profile = policy.rate.as_ref().map_or_else(|| Profile::constant(0.0), |rate| rate.rate.clone());
        let mut publishing = None;
        let (sender_count_max, arrivals, remaining) = match policy.exchange {
            MessageExchange::Echo => {
                (u32::MAX, arrivals(&profile, part), policy.count.map(|count| part.part_of(count)))
            }
            MessageExchange::Publish(count) => {
                // Not every event loop has a publisher: those that have share the rate by their number.
                let own = Publishers::of(count, part);
                let share = f64::from(own.own_count) / f64::from(count.max(1));
                let arrivals = arrivals(&profile.times(share), &ShardPart::WHOLE);
                publishing = Some(Publishing::new(&prepared.load.when, &policy, part, start_ns));
                (own.own_count, arrivals, policy.count.map(|count| own.part_of(count)))
            }
            MessageExchange::Receive | MessageExchange::Idle => (0, None, None),
        };
        let interval_ns = (1e9 / profile.max().max(0.1)) as u64;
        Some(Box::new(Self {
            arrivals,
            remaining,
            quiet_ns: QUIET_NS_MIN.max(interval_ns.saturating_mul(3)),
            senders: Vec::new(),
            next_sender: 0,
            sender_count_max,
            waiting: VecDeque::new(),
            pausing: BinaryHeap::new(),
            due: Vec::new(),
            unsent_count: 0,
            open_count: 0,
            begin_ns: publishing.as_ref().map_or(start_ns, |_| u64::MAX),
            publishing,
            next_storm_ns: policy.storm_ns.map_or(u64::MAX, |every_ns| start_ns.saturating_add(every_ns)),
            warm_until_ns: start_ns + warmup_ns,
            scratch: Vec::new(),
            part: part.clone(),
            filled_count: 0,
            policy,
        }))
    }

    /// When something is due that no message brings, on the monotonic clock.
    pub(in crate::shard) fn next_due_ns(&self) -> u64 {
        let arrival = self.arrivals.as_ref().filter(|_| self.remaining != Some(0));
        let arrival = arrival.and_then(Arrivals::peek);
        let arrival_ns = arrival.map_or(u64::MAX, |due| self.begin_ns.saturating_add(due.intended_ns));
        let pause_ns = self.pausing.peek().map_or(u64::MAX, |Reverse((at_ns, ..))| *at_ns);
        let look_ns = self.publishing.as_ref().map_or(u64::MAX, |publishing| publishing.look_ns);
        arrival_ns.min(pause_ns).min(self.next_storm_ns).min(look_ns)
    }

    /// Whether silent connections need nothing but their sockets.
    pub(in crate::shard) fn parks(&self) -> bool {
        self.policy.exchange == MessageExchange::Idle
    }

    /// Whether all messages were sent and answered that the load has.
    pub(super) fn is_done(&self, now_ns: u64) -> bool {
        self.remaining == Some(0)
            && self.waiting.is_empty()
            && !self.publishing.as_ref().is_some_and(|publishing| self.expects(publishing, now_ns))
            && self.is_settled(now_ns)
    }

    /// Whether others are to send more. What other machines send ends when nothing more comes.
    fn expects(&self, publishing: &Publishing, now_ns: u64) -> bool {
        !publishing.is_over() || (publishing.has_others && !publishing.has_been_quiet(now_ns, self.quiet_ns))
    }

    /// Whether nothing more is to be waited for at the end: no answer, and no delivery that may be on its way.
    pub(super) fn is_settled(&self, now_ns: u64) -> bool {
        self.open_count + self.unsent_count == 0
            && self.publishing.as_ref().is_none_or(|publishing| publishing.is_settled(now_ns))
    }

    /// Takes one from the count of messages that may be sent; false when none is left.
    fn take_one(&mut self) -> bool {
        match &mut self.remaining {
            None => true,
            Some(0) => false,
            Some(remaining) => {
                *remaining -= 1;
                true
            }
        }
    }

    fn is_warmup(&self, at_ns: u64) -> bool {
        at_ns < self.warm_until_ns
    }

    /// Whose answer a message is.
    fn answer(&mut self, talk: &mut Talk, bytes: &[u8], run_ns: u64) -> Answer {
        match self.policy.exchange {
            MessageExchange::Echo => {
                let is_same = match &self.policy.message {
                    MessageContent::Fixed(message) => *bytes == **message,
                    MessageContent::Template(_) => {
                        talk.unanswered.front().is_some_and(|sent| sent.digest == MessageDigest::of(bytes))
                    }
                };
                // What is no echo may belong to the greeting.
                if !is_same && self.policy.greeting.is_some() {
                    return Answer::None;
                }
                let Some(sent) = talk.unanswered.pop_front() else { return Answer::None };
                self.open_count -= 1;
                if is_same { Answer::Echo(sent) } else { Answer::Mismatch }
            }
            MessageExchange::Publish(_) => read_stamp(bytes)
                .and_then(|sent_ns| latency_ns(sent_ns, run_ns))
                .map_or(Answer::None, Answer::Delivery),
            MessageExchange::Receive | MessageExchange::Idle => Answer::None,
        }
    }
}

/// Whose answer a message is.
enum Answer {
    None,
    Echo(SentMessage),
    /// An answer that differs from what was sent.
    Mismatch,
    /// A published message, so long after it was to be sent.
    Delivery(u64),
}

impl MessageSchedule {
    /// A connection whose message was answered sends the next one, after the pause.
    fn go_on(&mut self, now_ns: u64, (conn_idx, generation): (u32, u32)) {
        match self.policy.pause_ns {
            0 => self.due.push(conn_idx),
            pause_ns => self.pausing.push(Reverse((now_ns + pause_ns, conn_idx, generation))),
        }
    }
}

/// What is counted of WebSockets.
fn figures(pulse: &mut Pulse) -> &mut WebSockets {
    pulse.snapshot.websockets.get_or_insert_default()
}

/// How long a delivery took. The clock of another machine is known to within its round trip: what seems to arrive just before it was sent took
/// next to nothing, and a stamp far in the future is none of this run.
fn latency_ns(sent_ns: u64, run_ns: u64) -> Option<u64> {
    (sent_ns <= run_ns.saturating_add(CLOCK_ERROR_NS_MAX)).then(|| run_ns.saturating_sub(sent_ns))
}

/// The time of sending in a published message, in nanoseconds after the start of the load: that start is the same moment on every machine.
fn read_stamp(bytes: &[u8]) -> Option<u64> {
    let at = memchr::memmem::find(bytes, STAMP_MARK)?;
    let digits = bytes.get(at + STAMP_MARK.len()..at + MessagePayload::STAMP_BYTES - 1)?;
    u64::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

fn write_stamp(run_ns: u64) -> [u8; MessagePayload::STAMP_BYTES] {
    let mut stamp = [b'-'; MessagePayload::STAMP_BYTES];
    stamp[..STAMP_MARK.len()].copy_from_slice(STAMP_MARK);
    for (nth, digit) in stamp[STAMP_MARK.len()..][..16].iter_mut().enumerate() {
        *digit = b"0123456789abcdef"[(run_ns >> (60 - 4 * nth)) as usize & 15];
    }
    stamp
}

const STAMP_MARK: &[u8] = b"squall-";

/// For at least so long, messages of other machines are waited for.
const QUIET_NS_MIN: u64 = 1_000_000_000;

/// By how much a clock whose offset was measured is off at most.
const CLOCK_ERROR_NS_MAX: u64 = 1_000_000_000;

const _: () = assert!(STAMP_MARK.len() + 16 + 1 == MessagePayload::STAMP_BYTES);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_is_a_little_off_loses_no_delivery() {
        assert_eq!(latency_ns(1_000, 3_500), Some(2_500));
        assert_eq!(latency_ns(3_500, 1_000), Some(0));
        assert_eq!(latency_ns(CLOCK_ERROR_NS_MAX + 1_001, 1_000), None);
        assert_eq!(latency_ns(u64::MAX, 1_000), None);
    }

    #[test]
    fn a_stamp_is_found_in_what_is_delivered() {
        let stamp = write_stamp(0x0123_4567_89ab_cdef);
        let text = format!("42[\"chat\",\"{}\"]", String::from_utf8_lossy(&stamp));
        assert_eq!(read_stamp(text.as_bytes()), Some(0x0123_4567_89ab_cdef));
        for other in ["", "squall-", "squall-0123456789abcdeg-", "squall-12"] {
            assert_eq!(read_stamp(other.as_bytes()), None, "{other}");
        }
    }
}
