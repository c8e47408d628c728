//! What must wait for what: within a session a request that began after a response had ended waits for that response this
//! time, too. What was parallel stays parallel.
//!
//! Owns: the requests in flight by session, and those that are held back. Never: decides when a request is due.

use std::collections::{HashMap, VecDeque};

/// A request in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ticket(u32);

/// A session of one copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SessionKey {
    /// The copy.
    pub user: u32,
    /// The recorded session; 0: none, and nothing waits.
    pub session: u64,
}

/// When a request began and ended in the recording, and on which connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// Began.
    pub begin_ns: u64,
    /// Its response had ended; `None`: unknown.
    pub end_ns: Option<u64>,
    /// Connection on which requests went one after the other; 0: unknown, or many went at once.
    pub serial_connection: u64,
}

/// The sessions with requests in flight; `T` is what the caller keeps of a request that is held back.
#[derive(Debug)]
pub struct Order<T> {
    sessions: HashMap<SessionKey, Session<T>>,
    /// By ticket.
    open: Vec<Option<(SessionKey, Span)>>,
    free: Vec<u32>,
    held_count: usize,
}

#[derive(Debug)]
struct Session<T> {
    open: Vec<Ticket>,
    held: VecDeque<(Span, T)>,
}

impl<T> Default for Order<T> {
    fn default() -> Self {
        Self { sessions: HashMap::new(), open: Vec::new(), free: Vec::new(), held_count: 0 }
    }
}

impl<T> Order<T> {
    /// Lets a request go, or says that it must wait: then it is for the caller to [`hold`](Self::hold) it.
    pub fn admit(&mut self, key: SessionKey, span: Span) -> Option<Ticket> {
        if key.session != 0
            && let Some(session) = self.sessions.get(&key)
            && (!session.held.is_empty() || session.blocks(&self.open, span))
        {
            return None;
        }
        Some(self.start(key, span))
    }

    /// Keeps a request until what it waits for has ended.
    pub fn hold(&mut self, key: SessionKey, span: Span, kept: T) {
        self.held_count += 1;
        self.sessions.entry(key).or_default().held.push_back((span, kept));
    }

    /// A request has ended.
    pub fn finish(&mut self, ticket: Ticket) -> Option<SessionKey> {
        let (key, _) = self.open.get_mut(ticket.0 as usize)?.take()?;
        self.free.push(ticket.0);
        let session = self.sessions.get_mut(&key)?;
        session.open.retain(|open| *open != ticket);
        if session.open.is_empty() && session.held.is_empty() {
            self.sessions.remove(&key);
        }
        Some(key)
    }

    /// The next request of a session that need not wait any longer; ask until there is none.
    pub fn release(&mut self, key: SessionKey) -> Option<(Ticket, T)> {
        let session = self.sessions.get_mut(&key)?;
        let (span, _) = session.held.front()?;
        let span = *span;
        if session.blocks(&self.open, span) {
            return None;
        }
        let (_, kept) = session.held.pop_front()?;
        self.held_count -= 1;
        Some((self.start(key, span), kept))
    }

    /// Requests that are held back.
    pub fn held_count(&self) -> usize {
        self.held_count
    }

    fn start(&mut self, key: SessionKey, span: Span) -> Ticket {
        let ticket = Ticket(self.free.pop().unwrap_or_else(|| {
            self.open.push(None);
            self.open.len() as u32 - 1
        }));
        self.open[ticket.0 as usize] = Some((key, span));
        if key.session != 0 {
            self.sessions.entry(key).or_default().open.push(ticket);
        }
        ticket
    }
}

impl<T> Session<T> {
    /// Whether a request in flight must end first.
    fn blocks(&self, open: &[Option<(SessionKey, Span)>], later: Span) -> bool {
        self.open.iter().filter_map(|ticket| open[ticket.0 as usize]).any(|(_, earlier)| {
            let same = earlier.serial_connection != 0 && earlier.serial_connection == later.serial_connection;
            same || earlier.end_ns.is_some_and(|end_ns| end_ns <= later.begin_ns)
        })
    }
}

impl<T> Default for Session<T> {
    fn default() -> Self {
        Self { open: Vec::new(), held: VecDeque::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: SessionKey = SessionKey { user: 0, session: 7 };

    fn span(begin_ns: u64, end_ns: u64, serial_connection: u64) -> Span {
        Span { begin_ns, end_ns: (end_ns > 0).then_some(end_ns), serial_connection }
    }

    #[test]
    fn what_was_parallel_stays_parallel_and_what_followed_waits() {
        let mut order: Order<&str> = Order::default();
        let page = order.admit(KEY, span(0, 10, 1)).unwrap();
        assert!(order.admit(KEY, span(10, 20, 2)).is_none());
        order.hold(KEY, span(10, 20, 2), "style");
        assert!(order.admit(KEY, span(11, 25, 3)).is_none());
        order.hold(KEY, span(11, 25, 3), "script");
        order.hold(KEY, span(26, 30, 2), "late");
        assert_eq!(order.finish(page), Some(KEY));
        let (style, name) = order.release(KEY).unwrap();
        let (script, other) = order.release(KEY).unwrap();
        assert_eq!((name, other, order.held_count()), ("style", "script", 1));
        assert!(order.release(KEY).is_none());
        order.finish(style);
        assert!(order.release(KEY).is_none(), "the script has not ended");
        order.finish(script);
        assert_eq!(order.release(KEY).unwrap().1, "late");
    }

    #[test]
    fn a_connection_is_serial_even_without_times() {
        let mut order: Order<()> = Order::default();
        let first = order.admit(KEY, span(0, 0, 5)).unwrap();
        assert!(order.admit(KEY, span(1, 0, 6)).is_some());
        assert!(order.admit(KEY, span(2, 0, 5)).is_none());
        order.hold(KEY, span(2, 0, 5), ());
        order.finish(first);
        assert!(order.release(KEY).is_some());
    }

    #[test]
    fn sessions_and_copies_do_not_wait_for_each_other() {
        let mut order: Order<()> = Order::default();
        for key in [KEY, SessionKey { user: 1, ..KEY }, SessionKey { session: 8, ..KEY }] {
            assert!(order.admit(key, span(0, 1, 1)).is_some());
        }
        let none = SessionKey { user: 0, session: 0 };
        assert!(order.admit(none, span(0, 1, 1)).is_some() && order.admit(none, span(5, 6, 1)).is_some());
    }
}
