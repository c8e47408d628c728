//! Readiness of sockets: edge-triggered epoll with nanosecond time-outs.
#![expect(unsafe_code, reason = "rustix has either epoll_pwait2 or what came before it")]

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::time::Duration;

use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::time::Timespec;

/// A set of sockets and their readiness.
pub(crate) struct Poller {
    epoll: OwnedFd,
    events: Vec<Event>,
}

/// What a socket is ready for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Readiness {
    /// The token given at registration.
    pub(crate) token: u64,
    /// Bytes or the peer's close can be read.
    pub(crate) readable: bool,
    /// Bytes can be written, or a connect has ended.
    pub(crate) writable: bool,
    /// The peer has closed its side, or the connection is broken.
    pub(crate) closed: bool,
}

impl Poller {
    /// An empty set.
    pub(crate) fn new() -> io::Result<Self> {
        Self::with_capacity(EVENT_COUNT)
    }

    /// An empty set that holds so many events at once.
    pub(crate) fn with_capacity(event_count: usize) -> io::Result<Self> {
        let event = Event { flags: EventFlags::empty(), data: EventData::new_u64(0) };
        Ok(Self { epoll: epoll::create(CreateFlags::CLOEXEC)?, events: vec![event; event_count] })
    }

    /// Watches a socket for everything, edge-triggered, until it is closed.
    pub(crate) fn watch(&self, socket: impl AsFd, token: u64) -> io::Result<()> {
        Ok(epoll::add(&self.epoll, socket, EventData::new_u64(token), FLAGS)?)
    }

    /// Gives a watched socket another token; what it is ready for is reported again.
    pub(crate) fn rewatch(&self, socket: impl AsFd, token: u64) -> io::Result<()> {
        Ok(epoll::modify(&self.epoll, socket, EventData::new_u64(token), FLAGS)?)
    }

    /// Watches a socket that many send on for what comes: that it takes more is no news, and would be reported after each datagram.
    pub(crate) fn watch_reading(&self, socket: impl AsFd, token: u64) -> io::Result<()> {
        Ok(epoll::add(&self.epoll, socket, EventData::new_u64(token), READING_FLAGS)?)
    }

    /// A socket that was watched for everything is watched for what comes only.
    pub(crate) fn rewatch_reading(&self, socket: impl AsFd, token: u64) -> io::Result<()> {
        Ok(epoll::modify(&self.epoll, socket, EventData::new_u64(token), READING_FLAGS)?)
    }

    /// Waits for events, at most `timeout`; returns how many there are.
    pub(crate) fn wait(&mut self, timeout: Duration) -> io::Result<usize> {
        let timeout =
            Timespec { tv_sec: timeout.as_secs() as i64, tv_nsec: i64::from(timeout.subsec_nanos()) };
        let waited = match epoll::wait(&self.epoll, &mut self.events[..], Some(&timeout)) {
            Err(Errno::NOSYS) => self.wait_with_poll(timeout),
            waited => waited,
        };
        match waited {
            Ok(count) => Ok(count),
            Err(Errno::INTR) => Ok(0),
            Err(error) => Err(error.into()),
        }
    }

    /// The same where `epoll_pwait2` is missing, as in emulators: `ppoll` takes nanoseconds, too, and then nothing has to be waited for.
    fn wait_with_poll(&mut self, timeout: Timespec) -> rustix::io::Result<usize> {
        poll(&mut [PollFd::new(&self.epoll, PollFlags::IN)], Some(&timeout))?;
        let count_max = self.events.len() as libc::c_int;
        // SAFETY: `Event` has the layout of `epoll_event`, and the kernel writes at most as many as there are.
        let count = unsafe {
            libc::epoll_wait(self.epoll.as_raw_fd(), self.events.as_mut_ptr().cast(), count_max, 0)
        };
        usize::try_from(count)
            .map_err(|_| Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::IO))
    }

    /// Whether a wait that returned so many events may have left some.
    pub(crate) fn is_full(&self, event_count: usize) -> bool {
        event_count == self.events.len()
    }

    /// The `idx`-th event of the last wait.
    pub(crate) fn event(&self, idx: usize) -> Readiness {
        let Event { flags, data } = self.events[idx];
        let broken = flags.intersects(EventFlags::ERR | EventFlags::HUP);
        Readiness {
            token: data.u64(),
            readable: broken || flags.intersects(EventFlags::IN | EventFlags::RDHUP),
            writable: broken || flags.contains(EventFlags::OUT),
            closed: broken || flags.contains(EventFlags::RDHUP),
        }
    }
}

/// Everything, edge-triggered.
const FLAGS: EventFlags =
    EventFlags::IN.union(EventFlags::OUT).union(EventFlags::RDHUP).union(EventFlags::ET);

/// What comes, edge-triggered.
const READING_FLAGS: EventFlags = EventFlags::IN.union(EventFlags::ET);

/// Events taken per wait: enough for a batch, few enough that other work is not starved.
const EVENT_COUNT: usize = 512;

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn poll_and_epoll_report_the_same() {
        let (mut near, far) = UnixStream::pair().unwrap();
        let timeout = Timespec { tv_sec: 0, tv_nsec: 1000 };
        for byte in 0..3 {
            let mut poller = Poller::new().unwrap();
            poller.watch(&far, 7).unwrap();
            near.write_all(&[byte]).unwrap();
            assert_eq!(poller.wait_with_poll(timeout), Ok(1));
            let Readiness { token, readable, writable, closed } = poller.event(0);
            assert_eq!((token, readable, writable, closed), (7, true, true, false));
            assert_eq!(poller.wait_with_poll(timeout), Ok(0), "an edge is reported once");
        }
    }
}
