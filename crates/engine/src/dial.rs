//! Where each connection goes, and from which local address: the one place that connects.
//!
//! Owns: the rotation of addresses of one event loop. Never: what is said on a connection.

use std::io;
use std::net::{IpAddr, SocketAddr};

use squall_plan::{Load, ShardPart};

use crate::dns::{Addresses, Names};
use crate::prepare::Dial;
use crate::sources::Sources;
use crate::sys::{Connect, connect_tcp, connect_unix};

/// Begins the connections of one event loop.
pub(crate) struct Dialer {
    /// A view of each target's addresses; none for a Unix socket.
    addresses: Vec<Option<Addresses>>,
    sources: Sources,
    shard_idx: usize,
}

/// Who connects, and how.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Caller {
    /// The user whose connection it is, where each has a local address of its own.
    pub(crate) user: Option<u32>,
    /// A short write may follow another that is not acknowledged yet.
    pub(crate) writes_twice: bool,
}

impl Dialer {
    /// A loop that connects to nothing yet.
    pub(crate) fn new(load: &Load, part: &ShardPart) -> Self {
        let sources = Sources::new(&load.network.sources, part);
        Self { addresses: Vec::new(), sources, shard_idx: part.shard_idx as usize }
    }

    /// Adds a target; targets are known by the order in which they were added.
    pub(crate) fn add(&mut self, dial: &Dial, names: &Names) {
        self.addresses.push(match dial {
            Dial::Tcp { name_idx, .. } => Some(names.view(*name_idx, self.shard_idx)),
            Dial::Unix(_) => None,
        });
    }

    /// Where the next connection to a target goes; `None`: to no TCP address.
    pub(crate) fn next_remote(
        &mut self,
        target_idx: usize,
        dial: &Dial,
        names: &Names,
    ) -> Option<SocketAddr> {
        match (dial, &mut self.addresses[target_idx]) {
            (Dial::Tcp { port, .. }, Some(addresses)) => Some(SocketAddr::new(addresses.next(names), *port)),
            (Dial::Tcp { .. } | Dial::Unix(_), _) => None,
        }
    }

    /// The local address of the next connection, where the plan gives any.
    pub(crate) fn next_source(&mut self, user: Option<u32>, remote: &SocketAddr) -> Option<IpAddr> {
        match user {
            Some(user) => self.sources.of_user(user, remote),
            None => self.sources.next(remote),
        }
    }

    /// Begins a connection to a target, at the [`next_remote`](Self::next_remote) where it is reached by TCP.
    pub(crate) fn connect(
        &mut self,
        dial: &Dial,
        remote: Option<SocketAddr>,
        caller: Caller,
    ) -> io::Result<Connect> {
        match (dial, remote) {
            (Dial::Unix(path), _) => connect_unix(path),
            (Dial::Tcp { .. }, Some(remote)) => {
                let source = self.next_source(caller.user, &remote);
                connect_tcp(&remote, source, caller.writes_twice)
            }
            (Dial::Tcp { .. }, None) => unreachable!("each TCP target has a view of its addresses"),
        }
    }
}
