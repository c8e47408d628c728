//! HTTP/3 at origins that are reached by TCP at first: what they announce (RFC 7838), whether it works, and TCP again where it does not.
//!
//! One connection tries what an origin has announced while the others stay with TCP. Once it works, they follow, each after its last response;
//! a connection that cannot be established there is made by TCP instead, and the others stay there for a while.

mod discovery;

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError};

use squall_plan::limits::{ALTERNATIVE_DUE, ALTERNATIVE_PAUSE_MAX, ALTERNATIVE_PAUSE_MIN};

use crate::sys::nanoseconds;

/// What is known of HTTP/3 at an origin.
#[derive(Debug, Default)]
pub(in crate::shard) struct Alternative {
    /// The value that was read last; it comes with every response.
    value: Vec<u8>,
    announced: Option<Announced>,
    trial: AlternativeTrial,
    /// Attempts that failed in a row, one at a time.
    failure_count: u32,
}

/// Where HTTP/3 is, and for how long.
#[derive(Debug)]
struct Announced {
    place: AlternativePlace,
    port: u16,
    max_age_s: u64,
    until_ns: u64,
}

#[derive(Debug)]
enum AlternativePlace {
    /// At the addresses of the origin.
    Origin,
    /// At these, in turn.
    Addresses { addresses: Arc<[IpAddr]>, next: usize },
    /// A thread looks its name up.
    LookedUp(Receiver<Arc<[IpAddr]>>),
    /// Its name has no address.
    Unknown,
}

/// Whether HTTP/3 works as announced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum AlternativeTrial {
    /// Nothing is known; the next connection tries it.
    #[default]
    None,
    /// A connection has ended, or is about to, for the next to try it. Where other open connections take all requests, no next one is opened: then
    /// another ends after that time.
    Due { until_ns: u64 },
    /// A connection tries it.
    Trying,
    /// All connections go there.
    Works,
    /// None is tried until then.
    Failed { until_ns: u64 },
}

impl Alternative {
    /// A new place is tried before it is relied on.
    fn announce(&mut self, announced: Announced) {
        self.announced = Some(announced);
        if self.trial == AlternativeTrial::Works {
            self.trial = AlternativeTrial::None;
        }
    }

    /// What was announced is no longer so; whether anything was.
    fn withdraw(&mut self) -> bool {
        self.trial = AlternativeTrial::None;
        self.announced.take().is_some()
    }

    /// A look-up is under way: one at a time, whatever a server announces.
    fn is_looked_up(&self) -> bool {
        matches!(&self.announced, Some(Announced { place: AlternativePlace::LookedUp(_), .. }))
    }

    /// Takes the answer of a look-up, if it has come.
    fn take_answer(&mut self) {
        if let Some(announced) = &mut self.announced {
            announced.place.take_answer();
        }
    }

    /// Whether a connection may be opened there now.
    fn is_open(&self, now_ns: u64) -> bool {
        let may_try = match self.trial {
            AlternativeTrial::None | AlternativeTrial::Due { .. } | AlternativeTrial::Works => true,
            AlternativeTrial::Trying => false,
            AlternativeTrial::Failed { until_ns } => now_ns >= until_ns,
        };
        may_try
            && !self.is_looked_up()
            && self.announced.as_ref().is_some_and(|announced| now_ns < announced.until_ns)
    }

    /// An attempt has failed. Of several that were under way at the same time, the first counts.
    fn fail(&mut self, now_ns: u64) {
        if !matches!(self.trial, AlternativeTrial::Failed { until_ns } if now_ns < until_ns) {
            let pause_ns = nanoseconds(ALTERNATIVE_PAUSE_MIN) << self.failure_count.min(16);
            let until_ns = now_ns + pause_ns.min(nanoseconds(ALTERNATIVE_PAUSE_MAX));
            self.trial = AlternativeTrial::Failed { until_ns };
            self.failure_count += 1;
        }
    }

    /// Whether a connection that has answered a request ends, so that the next one speaks the other version.
    fn moves(&mut self, is_quic: bool, now_ns: u64) -> bool {
        self.take_answer();
        match self.trial {
            _ if is_quic => self.announced.is_none(),
            AlternativeTrial::Due { until_ns } if now_ns < until_ns => false,
            AlternativeTrial::Trying | AlternativeTrial::Works => self.is_open(now_ns),
            AlternativeTrial::None | AlternativeTrial::Due { .. } | AlternativeTrial::Failed { .. } => {
                let is_due = self.is_open(now_ns);
                if is_due {
                    self.trial = AlternativeTrial::Due { until_ns: now_ns + nanoseconds(ALTERNATIVE_DUE) };
                }
                is_due
            }
        }
    }
}

impl AlternativePlace {
    /// Takes the answer of a look-up that has ended.
    fn take_answer(&mut self) {
        if let Self::LookedUp(answer) = self {
            match answer.try_recv() {
                Ok(addresses) => *self = Self::Addresses { addresses, next: 0 },
                Err(TryRecvError::Empty) => {}
                // Its thread has found nothing.
                Err(TryRecvError::Disconnected) => *self = Self::Unknown,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_connection_ends_where_the_first_is_not_followed_by_a_trial() {
        let mut known = Alternative::default();
        let until_ns = u64::MAX;
        known.announce(Announced { place: AlternativePlace::Origin, port: 443, max_age_s: 1, until_ns });
        let due_ns = nanoseconds(ALTERNATIVE_DUE);
        let times_ns = [0, 1, due_ns - 1, due_ns, due_ns + 1, 2 * due_ns];
        let ended = times_ns.map(|now_ns| known.moves(false, now_ns));
        assert_eq!(ended, [true, false, false, true, false, true]);
        known.trial = AlternativeTrial::Trying;
        assert!(!known.moves(false, 3 * due_ns));
    }
}
