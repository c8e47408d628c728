//! A network and a clock that exist in memory alone, for tests that drive a whole event loop: the same seed gives the same run.
//!
//! What an event loop asks of the system goes through the functions of this file, which stand in for those of the same names in `sys`. On a
//! thread with a [`World`] they answer from it; on every other they call the system. Time moves only while the loop waits.

mod datagrams;
mod http3;
mod secure;
mod server;
mod world;

use std::cell::RefCell;
use std::fs::File;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

use squall_measure::Sample;

use super::kernel_stamp::StampedRead;
use super::{
    OutgoingDatagrams, Readiness, ReceivedBatch, Recv, Segments, clock, kernel_stamp, poll, socket, udp,
};

pub(crate) use server::{Behaviour, Speaks};
pub(crate) use world::World;

thread_local! {
    static WORLD: RefCell<Option<World>> = const { RefCell::new(None) };
}

/// Has the event loop that `run` drives on this thread live in `world`; gives it back afterwards.
pub(crate) fn live_in<T>(world: World, run: impl FnOnce() -> T) -> (T, World) {
    WORLD.set(Some(world));
    let result = run();
    (result, WORLD.take().expect("only this takes it"))
}

/// Asks this thread's world; `None`: there is none.
fn with<T>(ask: impl FnOnce(&mut World) -> T) -> Option<T> {
    WORLD.with_borrow_mut(|world| world.as_mut().map(ask))
}

/// An event loop counts a request.
pub(crate) fn note_sample(sample: &Sample) {
    with(|world| world.samples.push(*sample));
}

/// A socket of the system, or one of the world.
#[derive(Debug)]
pub(crate) enum Fd {
    Real(OwnedFd),
    Simulated(SimulatedSocket),
}

/// The client's end of a simulated connection; closed when it is dropped.
#[derive(Debug)]
pub(crate) struct SimulatedSocket(usize);

impl Drop for SimulatedSocket {
    fn drop(&mut self) {
        with(|world| world.close(self.0));
    }
}

impl AsFd for Fd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Real(socket) => socket.as_fd(),
            Self::Simulated(_) => unreachable!("a simulated socket has no descriptor"),
        }
    }
}

/// A connect that has been started.
#[derive(Debug)]
pub(crate) struct Connect {
    pub(crate) socket: Fd,
    pub(crate) done: bool,
}

impl From<socket::Connect> for Connect {
    fn from(connect: socket::Connect) -> Self {
        Self { socket: Fd::Real(connect.socket), done: connect.done }
    }
}

pub(crate) fn connect_tcp(
    address: &SocketAddr,
    source: Option<IpAddr>,
    writes_twice: bool,
) -> io::Result<Connect> {
    match with(World::connect) {
        Some(idx) => Ok(Connect { socket: Fd::Simulated(SimulatedSocket(idx)), done: false }),
        None => Ok(socket::connect_tcp(address, source, writes_twice)?.into()),
    }
}

pub(crate) fn connect_unix(path: &Path) -> io::Result<Connect> {
    Ok(socket::connect_unix(path)?.into())
}

pub(crate) fn connect_udp(address: &SocketAddr, source: Option<IpAddr>, wants_ecn: bool) -> io::Result<Fd> {
    match with(World::connect_udp) {
        Some(idx) => Ok(Fd::Simulated(SimulatedSocket(idx))),
        None => Ok(Fd::Real(udp::connect_udp(address, source, wants_ecn)?)),
    }
}

pub(crate) fn enlarge_buffers(socket: &impl AsFd, bytes: usize) -> io::Result<usize> {
    with(|_| Ok(bytes)).unwrap_or_else(|| udp::enlarge_buffers(socket, bytes))
}

pub(crate) fn has_segmentation(socket: &Fd) -> bool {
    match socket {
        Fd::Real(socket) => udp::has_segmentation(socket),
        Fd::Simulated(_) => true,
    }
}

pub(crate) fn dropped_count(socket: &Fd) -> u32 {
    match socket {
        Fd::Real(socket) => udp::dropped_count(socket),
        Fd::Simulated(_) => 0,
    }
}

pub(crate) fn send_datagrams(socket: &Fd, is_ipv4: bool, list: &[OutgoingDatagrams]) -> io::Result<usize> {
    match socket {
        Fd::Real(socket) => udp::send_datagrams(socket, is_ipv4, list),
        Fd::Simulated(own) => with(|world| world.send_datagrams(own.0, list)).unwrap_or(Ok(list.len())),
    }
}

pub(crate) fn recv_datagrams(socket: &Fd, batch: &mut ReceivedBatch) -> io::Result<usize> {
    match socket {
        Fd::Real(socket) => udp::recv_datagrams(socket, batch),
        Fd::Simulated(own) => {
            let datagrams = with(|world| world.recv_datagrams(own.0, 16)).unwrap_or(Ok(Vec::new()))?;
            batch.fill(&datagrams);
            Ok(datagrams.len())
        }
    }
}

/// What quinn-proto draws its random numbers from; `None`: the system.
pub(crate) fn quic_seed() -> Option<[u8; 32]> {
    with(|_| [1; 32])
}

pub(crate) fn connection_error(socket: &Fd) -> io::Result<()> {
    match socket {
        Fd::Real(socket) => socket::connection_error(socket),
        Fd::Simulated(own) => with(|world| world.connection_error(own.0)).unwrap_or(Ok(())),
    }
}

pub(crate) fn recv(socket: &Fd, buf: &mut [u8], how: Recv) -> io::Result<usize> {
    match socket {
        Fd::Real(socket) => socket::recv(socket, buf, how),
        Fd::Simulated(own) => with(|world| world.recv(own.0, buf, how)).unwrap_or(Ok(0)),
    }
}

pub(crate) fn recv_stamped(socket: &Fd, buf: &mut [u8], how: Recv) -> io::Result<StampedRead> {
    match socket {
        Fd::Real(socket) => kernel_stamp::recv_stamped(socket, buf, how),
        Fd::Simulated(_) => Ok(StampedRead { bytes: recv(socket, buf, how)?, wall_ns: None }),
    }
}

pub(crate) fn peek_stamp(socket: &Fd) -> Option<u64> {
    match socket {
        Fd::Real(socket) => kernel_stamp::peek_stamp(socket),
        Fd::Simulated(_) => None,
    }
}

pub(crate) fn enable_receive_stamps(socket: &Fd) -> io::Result<()> {
    match socket {
        Fd::Real(socket) => kernel_stamp::enable_receive_stamps(socket),
        Fd::Simulated(_) => Ok(()),
    }
}

pub(crate) fn has_stamps() -> bool {
    with(|_| false).unwrap_or_else(kernel_stamp::has_stamps)
}

pub(crate) fn reset_on_close(socket: &Fd) -> io::Result<()> {
    match socket {
        Fd::Real(socket) => socket::reset_on_close(socket),
        Fd::Simulated(_) => Ok(()),
    }
}

pub(crate) fn segments(socket: &Fd) -> Option<Segments> {
    match socket {
        Fd::Real(socket) => socket::segments(socket),
        Fd::Simulated(_) => None,
    }
}

pub(crate) fn send(socket: &Fd, bytes: &[u8], more: bool) -> io::Result<usize> {
    match socket {
        Fd::Real(socket) => socket::send(socket, bytes, more),
        Fd::Simulated(own) => with(|world| world.send(own.0, bytes)).unwrap_or(Ok(bytes.len())),
    }
}

pub(crate) fn send_file(socket: &Fd, file: &File, offset: u64, bytes: u64) -> io::Result<usize> {
    socket::send_file(&socket.as_fd().try_clone_to_owned()?, file, offset, bytes)
}

pub(crate) fn monotonic_ns() -> u64 {
    with(|world| world.now_ns).unwrap_or_else(clock::monotonic_ns)
}

pub(crate) fn sleep_until(at_ns: u64) {
    if with(|world| world.sleep_until(at_ns)).is_none() {
        clock::sleep_until(at_ns);
    }
}

pub(crate) fn wait_until(at_ns: u64) -> u64 {
    with(|world| {
        world.sleep_until(at_ns);
        world.now_ns
    })
    .unwrap_or_else(|| clock::wait_until(at_ns))
}

pub(crate) fn thread_cpu() -> Duration {
    with(|world| Duration::from_nanos(world.now_ns)).unwrap_or_else(clock::thread_cpu)
}

/// Readiness of sockets, real or simulated: those of one event loop are all of one kind.
pub(crate) enum Poller {
    Real(poll::Poller),
    Simulated(Vec<Readiness>),
}

impl Poller {
    pub(crate) fn new() -> io::Result<Self> {
        match with(|_| ()) {
            Some(()) => Ok(Self::Simulated(Vec::new())),
            None => Ok(Self::Real(poll::Poller::new()?)),
        }
    }

    pub(crate) fn with_capacity(event_count: usize) -> io::Result<Self> {
        match with(|_| ()) {
            Some(()) => Ok(Self::Simulated(Vec::new())),
            None => Ok(Self::Real(poll::Poller::with_capacity(event_count)?)),
        }
    }

    pub(crate) fn watch(&self, socket: &Fd, token: u64) -> io::Result<()> {
        match (self, socket) {
            (Self::Real(poller), Fd::Real(socket)) => poller.watch(socket, token),
            (Self::Simulated(_), Fd::Simulated(own)) => {
                with(|world| world.watch(own.0, token));
                Ok(())
            }
            _ => unreachable!("a real socket in a simulated loop, or the reverse"),
        }
    }

    pub(crate) fn watch_reading(&self, socket: &Fd, token: u64) -> io::Result<()> {
        match (self, socket) {
            (Self::Real(poller), Fd::Real(socket)) => poller.watch_reading(socket, token),
            (Self::Simulated(_), Fd::Simulated(own)) => {
                with(|world| world.watch(own.0, token));
                Ok(())
            }
            _ => unreachable!("a real socket in a simulated loop, or the reverse"),
        }
    }

    pub(crate) fn rewatch_reading(&self, socket: &Fd, token: u64) -> io::Result<()> {
        match (self, socket) {
            (Self::Real(poller), Fd::Real(socket)) => poller.rewatch_reading(socket, token),
            (Self::Simulated(_), Fd::Simulated(own)) => {
                with(|world| world.rewatch(own.0, token));
                Ok(())
            }
            _ => unreachable!("a real socket in a simulated loop, or the reverse"),
        }
    }

    pub(crate) fn rewatch(&self, socket: &Fd, token: u64) -> io::Result<()> {
        match (self, socket) {
            (Self::Real(poller), Fd::Real(socket)) => poller.rewatch(socket, token),
            (Self::Simulated(_), Fd::Simulated(own)) => {
                with(|world| world.rewatch(own.0, token));
                Ok(())
            }
            _ => unreachable!("a real socket in a simulated loop, or the reverse"),
        }
    }

    pub(crate) fn wait(&mut self, timeout: Duration) -> io::Result<usize> {
        match self {
            Self::Real(poller) => poller.wait(timeout),
            Self::Simulated(events) => {
                *events = with(|world| world.wait(timeout)).unwrap_or_default();
                Ok(events.len())
            }
        }
    }

    pub(crate) fn is_full(&self, event_count: usize) -> bool {
        match self {
            Self::Real(poller) => poller.is_full(event_count),
            Self::Simulated(_) => with(|world| world.has_ready()).unwrap_or(false),
        }
    }

    pub(crate) fn event(&self, idx: usize) -> Readiness {
        match self {
            Self::Real(poller) => poller.event(idx),
            Self::Simulated(events) => events[idx],
        }
    }
}
