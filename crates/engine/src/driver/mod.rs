//! Loads whose requests are decided at run time: by a script or a recording. The shard asks, the driver answers.
//!
//! Owns: the border between the two. A driver has users; it never sees a socket. The shard has connections, each of which belongs
//! to one user; it never knows why a request is made.

pub(crate) mod script;
pub(crate) mod stream;

use std::net::SocketAddr;

use squall_measure::{Phases, Snapshot};
use squall_plan::ShardPart;
use squall_script::{Request, Spec};
use squall_wire::Version;

use crate::Error;
use crate::prepare::Route;
use crate::trouble::Trouble;

use stream::{CallKind, StreamCommand, StreamKey, StreamReport};

/// Decides what the users of one shard do.
pub(crate) trait Driver {
    /// Does all that is due: users start, sleepers wake. Times are nanoseconds since the run's start.
    fn turn(&mut self, now_ns: u64, port: &mut Port);

    /// When `turn` is wanted next, at the latest; the end of a request is reported anyway.
    fn next_due_ns(&self) -> u64;

    /// A request has ended.
    fn complete(&mut self, ended: Ended, now_ns: u64, port: &mut Port);

    /// Something happened on a stream that it holds; the run began at `start_ns` on the monotonic clock.
    fn stream(&mut self, _event: StreamReport, _start_ns: u64, _port: &mut Port) {}

    /// Starts nothing more, and ends soon what runs.
    fn stop(&mut self, now_ns: u64, port: &mut Port);

    /// No user runs, and none will.
    fn is_finished(&self) -> bool;

    /// How a request reaches its host; asked once for each spec.
    fn route(&self, spec: &Spec) -> Route;

    /// Puts the figures of the last second into its snapshot.
    fn fill(&mut self, now_ns: u64, snapshot: &mut Snapshot);
}

/// Makes the drivers of a load: one for each shard, on its thread.
pub trait DriverFactory: std::fmt::Debug + Send + Sync {
    /// A driver, its users ready.
    #[doc(hidden)]
    fn make(&self, part: &ShardPart) -> Result<Box<dyn AnyDriver>, Error>;

    /// Most connections of one user to one host.
    fn connections_per_host(&self) -> u32;

    /// Most users.
    fn user_count_max(&self) -> u64;
}

/// A driver, behind a trait that other crates cannot implement.
#[doc(hidden)]
pub trait AnyDriver {
    #[doc(hidden)]
    fn into_driver(self: Box<Self>) -> DriverBox;
}

/// A driver in a box that only this crate can open.
#[doc(hidden)]
pub struct DriverBox(pub(crate) Box<dyn Driver>);

/// What a driver asks of its shard.
#[derive(Debug, Default)]
pub(crate) struct Port {
    pub(crate) calls: Vec<Call>,
    /// Users whose requests in flight are given up.
    pub(crate) cancelled: Vec<u32>,
    /// Users whose idle connections are closed.
    pub(crate) closed: Vec<u32>,
    /// Streams that are given up, wherever they are. There is no further event.
    pub(crate) given_up: Vec<GivenUp>,
    /// What is wanted of streams.
    pub(crate) commands: Vec<(StreamKey, StreamCommand)>,
    /// What has happened on them in this turn.
    pub(crate) events: Vec<StreamReport>,
    /// By user: bytes on its connections that the driver has not taken yet.
    traffic: Vec<Traffic>,
}

/// A call whose stream is given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct GivenUp {
    pub(crate) user: u32,
    pub(crate) token: u32,
    /// Where it was last, once it has been on a connection.
    pub(crate) key: Option<StreamKey>,
}

/// Bytes read from sockets and written to them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Traffic {
    pub(crate) sent: u64,
    pub(crate) received: u64,
}

impl Port {
    /// Where the bytes of a user's connections are counted.
    pub(crate) fn traffic_of(&mut self, user: u32) -> &mut Traffic {
        let idx = user as usize;
        if self.traffic.len() <= idx {
            self.traffic.resize(idx + 1, Traffic::default());
        }
        &mut self.traffic[idx]
    }
}

/// A request to be made, and the user on whose connections.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) user: u32,
    pub(crate) request: Request,
    pub(crate) kind: CallKind,
}

/// How a request ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) user: u32,
    pub(crate) token: u32,
    /// The status, or why there is none.
    pub(crate) result: Result<u16, Trouble>,
    /// Status line and fields as HTTP/1.1 writes them.
    pub(crate) head: Vec<u8>,
    /// The body, where it was wanted.
    pub(crate) body: Vec<u8>,
    pub(crate) phases: Phases,
    pub(crate) remote: Option<SocketAddr>,
    /// What its connection spoke; `None`: it never got one.
    pub(crate) version: Option<Version>,
    /// k6's names of the TLS version and cipher suite.
    pub(crate) tls: Option<(&'static str, &'static str)>,
    /// Of a WebSocket that is open now: its name.
    pub(crate) stream: Option<StreamKey>,
}
