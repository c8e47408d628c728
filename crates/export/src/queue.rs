//! Moments on their way to a receiver that may be slow: the newest few, and the last one without fail.
//!
//! Owns: which moments are dropped. Never: waits for the receiver where a moment is handed over.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::figures::Moment;

/// Filled by the collector, emptied by the thread that sends.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// The oldest first.
    moments: VecDeque<Moment>,
    /// When the last moment came; `None`: more will come.
    ended_at: Option<Instant>,
}

/// What is to be sent next.
#[derive(Debug)]
pub(crate) struct NextMessage {
    pub(crate) moment: Moment,
    /// There will be no other.
    pub(crate) is_last: bool,
}

impl Queue {
    /// Adds a moment; when full, drops the oldest one.
    pub(crate) fn push(&self, moment: Moment) {
        self.lock().push(moment);
        self.changed.notify_one();
    }

    /// Adds the last moment.
    pub(crate) fn end(&self, moment: Moment, now: Instant) {
        let mut state = self.lock();
        state.push(moment);
        state.ended_at = Some(now);
        drop(state);
        self.changed.notify_one();
    }

    /// Waits for the oldest moment there is; `None` after the last one.
    pub(crate) fn next(&self) -> Option<NextMessage> {
        let mut state = self.lock();
        while state.moments.is_empty() && state.ended_at.is_none() {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.next(Instant::now())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn push(&mut self, moment: Moment) {
        if self.moments.len() == LENGTH_MAX {
            self.moments.pop_front();
        }
        self.moments.push_back(moment);
    }

    /// A receiver that has not taken the older ones soon after the end gets the last one alone: it has all the counts.
    fn next(&mut self, now: Instant) -> Option<NextMessage> {
        let is_late = self.ended_at.is_some_and(|ended_at| now.duration_since(ended_at) > BACKLOG_MAX);
        if is_late {
            self.moments.drain(..self.moments.len().saturating_sub(1));
        }
        let moment = self.moments.pop_front()?;
        Some(NextMessage { moment, is_last: self.ended_at.is_some() && self.moments.is_empty() })
    }
}

/// Moments that wait for a slow receiver: beyond these the oldest are dropped, so that memory stays bounded.
const LENGTH_MAX: usize = 8;

/// How long after the end older moments are still sent.
const BACKLOG_MAX: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    fn moment(unix_ms: u64) -> Moment {
        Moment { unix_ms, started_unix_ms: 0, figures: Vec::new() }
    }

    #[test]
    fn the_oldest_make_space_for_the_newest() {
        let queue = Queue::default();
        (0..12).for_each(|ms| queue.push(moment(ms)));
        queue.end(moment(12), Instant::now());
        let taken: Vec<(u64, bool)> =
            std::iter::from_fn(|| queue.next()).map(|next| (next.moment.unix_ms, next.is_last)).collect();
        assert_eq!(taken, (5..=12).map(|ms| (ms, ms == 12)).collect::<Vec<_>>());
    }

    #[test]
    fn long_after_the_end_the_last_one_alone_is_left() {
        let queue = Queue::default();
        (0..5).for_each(|ms| queue.push(moment(ms)));
        let ended_at = Instant::now();
        queue.end(moment(5), ended_at);
        let mut state = queue.lock();
        assert_eq!(state.next(ended_at).unwrap().moment.unix_ms, 0);
        let last = state.next(ended_at + 2 * BACKLOG_MAX).unwrap();
        assert_eq!((last.moment.unix_ms, last.is_last), (5, true));
        assert!(state.next(ended_at + 2 * BACKLOG_MAX).is_none());
    }
}
