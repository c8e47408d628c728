//! Loads that publish: who does, when they begin, and when all has been sent.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use squall_plan::limits::{FIRST_DELIVERY_MAX, PUBLISH_WAIT_MAX};
use squall_plan::{ShardPart, When};

use crate::prepare::{Audience, WebSocketPolicy};
use crate::sys::nanoseconds;

/// How far the event loops of this process are that publish together.
#[derive(Debug)]
pub(super) struct Publishing {
    pub(super) audience: Arc<Audience>,
    /// Connections of the process that are to be open before anything is published; 0: it goes on.
    awaited_count: u64,
    wait_until_ns: u64,
    /// When it is looked at next whether they are.
    pub(super) look_ns: u64,
    /// Messages of the process, and of this loop.
    message_count: u64,
    own_message_count: u64,
    has_ended: bool,
    /// When a delivery came last, and how long the slowest one took; 0: none came.
    received_ns: u64,
    slowest_ns: u64,
    timeout_ns: u64,
    /// Other machines publish, too.
    pub(super) has_others: bool,
}

impl Publishing {
    pub(super) fn new(when: &When, policy: &WebSocketPolicy, part: &ShardPart, start_ns: u64) -> Self {
        let process = ShardPart { shard_idx: 0, shard_count: 1, ..part.clone() };
        let messages_of = |part: &ShardPart| match policy.publisher_count().zip(policy.count) {
            Some((publishers, messages)) => Publishers::of(publishers, part).part_of(messages),
            None => 0,
        };
        // Connections that are to be opened slowly are none to wait for.
        let is_ramp = matches!(when, When::Closed { connections, .. } if !connections.duration().is_zero());
        Self {
            audience: Arc::clone(&policy.audience),
            awaited_count: if is_ramp { 0 } else { process.part_of(when.connection_count_max()) },
            wait_until_ns: start_ns.saturating_add(nanoseconds(PUBLISH_WAIT_MAX)),
            look_ns: start_ns,
            message_count: messages_of(&process),
            own_message_count: messages_of(part),
            has_ended: false,
            received_ns: 0,
            slowest_ns: 0,
            timeout_ns: policy.timeout_ns,
            has_others: policy.is_copied || !part.segment.is_whole(),
        }
    }

    /// Whether messages may be published from now on.
    pub(super) fn may_begin(&mut self, now_ns: u64) -> bool {
        let may = self.audience.has_been(self.awaited_count) || now_ns >= self.wait_until_ns;
        self.look_ns = if may { u64::MAX } else { now_ns + LOOK_NS };
        may
    }

    /// A message was published.
    pub(super) fn note_sent(&self, now_ns: u64) {
        self.audience.published_ns.fetch_max(now_ns, Ordering::Relaxed);
    }

    /// A message was delivered, so long after it was to be sent.
    pub(super) fn note_delivery(&mut self, now_ns: u64, latency_ns: u64) {
        self.received_ns = now_ns;
        self.slowest_ns = self.slowest_ns.max(latency_ns);
    }

    /// Whether deliveries have come, and then none for so long.
    pub(super) fn has_been_quiet(&self, now_ns: u64, quiet_ns: u64) -> bool {
        self.received_ns > 0 && now_ns >= self.received_ns.saturating_add(quiet_ns)
    }

    /// Whether no delivery can be on its way: the last ones take no longer than twice the slowest so far, and the first one has its own limit.
    pub(super) fn is_settled(&self, now_ns: u64) -> bool {
        let published_ns = self.audience.published_ns.load(Ordering::Relaxed);
        let grace_ns = match (published_ns, self.received_ns) {
            (0, _) => DELIVERY_GRACE_NS,
            (_, 0) => nanoseconds(FIRST_DELIVERY_MAX),
            _ => DELIVERY_GRACE_NS.max(self.slowest_ns.saturating_mul(2)),
        };
        let begin_ns = published_ns.max(self.received_ns);
        now_ns >= begin_ns.saturating_add(grace_ns.min(self.timeout_ns))
    }

    /// This loop has sent all of its messages.
    pub(super) fn end(&mut self) {
        if !std::mem::replace(&mut self.has_ended, true) {
            self.audience.published_count.fetch_add(self.own_message_count, Ordering::Relaxed);
        }
    }

    /// Whether all loops of the process have sent all of theirs.
    pub(super) fn is_over(&self) -> bool {
        self.audience.published_count.load(Ordering::Relaxed) >= self.message_count
    }
}

/// The publishers of one event loop, among all that there are.
pub(super) struct Publishers {
    /// Of the load.
    count: u64,
    pub(super) own_count: u32,
    part: ShardPart,
}

impl Publishers {
    pub(super) fn of(count: u32, part: &ShardPart) -> Self {
        Self { count: count.into(), own_count: part.part_of(count.into()) as u32, part: part.clone() }
    }

    /// How many messages they send of so many: they take turns with all others.
    pub(super) fn part_of(&self, message_count: u64) -> u64 {
        let idx_of = |nth: u32| self.part.segment.whole_idx(self.part.machine_idx(nth.into()));
        (0..self.own_count)
            .map(|nth| message_count.saturating_sub(idx_of(nth)).div_ceil(self.count.max(1)))
            .sum()
    }
}

/// How long deliveries may be on their way at the end, at least.
const DELIVERY_GRACE_NS: u64 = 300_000_000;

/// How often it is looked whether all connections are open.
const LOOK_NS: u64 = 1_000_000;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use squall_plan::{
        CloseMode, Expect, HttpLoad, MessageExchange, MessagePayload, Profile, Segment, WebSocketLoad,
    };

    use super::*;

    #[test]
    fn others_publish_where_a_load_is_divided_and_where_it_is_copied() {
        let half = Segment::run(0, 1, 2).unwrap();
        for (segment, is_copied, expected) in
            [(Segment::WHOLE, false, false), (Segment::WHOLE, true, true), (half, false, true)]
        {
            let policy = WebSocketPolicy::new(&WebSocketLoad { is_copied, ..load() }).unwrap();
            let part = ShardPart { segment, ..ShardPart::WHOLE };
            let when = When::Closed { connections: Profile::constant(2.0), users: None };
            assert_eq!(Publishing::new(&when, &policy, &part, 0).has_others, expected, "{part:?}");
        }
    }

    fn load() -> WebSocketLoad {
        let http = HttpLoad {
            requests: Vec::new(),
            user_agents: Vec::new(),
            follow_count_max: 0,
            expect: Expect::default(),
            timeout: Duration::from_secs(30),
        };
        WebSocketLoad {
            http,
            exchange: MessageExchange::Publish(1),
            message: MessagePayload { is_binary: false, bytes: b"{stamp}".to_vec(), table: None },
            rate: None,
            count: Some(5),
            pause: Duration::ZERO,
            greeting: None,
            ping: None,
            compress: false,
            subprotocols: Vec::new(),
            jitter: Duration::ZERO,
            reopens: true,
            storm: None,
            close: CloseMode::Notify,
            is_copied: false,
        }
    }

    #[test]
    fn publishers_of_all_loops_send_all_messages() {
        for (count, messages) in [(1, 20), (2, 21), (3, 100), (7, 5)] {
            let part = |shard_idx| ShardPart { shard_idx, shard_count: 4, ..ShardPart::WHOLE };
            let parts: Vec<u64> =
                (0..4).map(|idx| Publishers::of(count, &part(idx)).part_of(messages)).collect();
            assert_eq!(parts.iter().sum::<u64>(), messages, "{count} publishers: {parts:?}");
        }
    }
}
