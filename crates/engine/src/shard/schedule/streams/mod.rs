//! Responses that are streams of events: when one ends that would go on, and what follows one that has ended.
//!
//! Users and arrivals start streams as they start requests. Owns: streams that wait to be opened again. Never: the events, which are
//! `recorder::streams`' as they are read.

mod ending;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::prepare::Prepared;
use crate::shard::connections::conn::RequestId;

/// Streams that are to be opened again.
#[derive(Debug)]
pub(in crate::shard) struct StreamSchedule {
    reconnects: bool,
    /// Open streams may end by themselves when the load does.
    pub(super) finishes: bool,
    /// Of streams that have ended in this turn: when each is opened again, and its request.
    ended: Vec<(u64, RequestId)>,
    /// The same for those whose VU has been asked to wait.
    resting: BinaryHeap<Reverse<(u64, u32)>>,
}

impl StreamSchedule {
    /// `None`: the load has no streams.
    pub(in crate::shard) fn new(prepared: &Prepared) -> Option<Box<Self>> {
        let policy = prepared.streams.as_ref()?;
        let (reconnects, finishes) = (policy.reconnects, policy.finishes);
        Some(Box::new(Self { reconnects, finishes, ended: Vec::new(), resting: BinaryHeap::new() }))
    }

    /// When the next one is opened again.
    pub(in crate::shard) fn next_due_ns(&self) -> u64 {
        self.resting.peek().map_or(u64::MAX, |Reverse((at_ns, _))| *at_ns)
    }

    /// A user whose stream has ended waits until it is opened again; false: it goes on as any other.
    pub(super) fn take_rest(&mut self) -> bool {
        let Some((at_ns, request)) = self.ended.pop() else { return false };
        self.resting.push(Reverse((at_ns, request.0)));
        true
    }
}
