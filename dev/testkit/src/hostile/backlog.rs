//! A listener that never accepts and whose backlog is full: the kernel drops every further SYN.

use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpStream};
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::net::{AddressFamily, SocketType, bind, getsockname, listen, socket};

/// The listener and the connections that fill its backlog.
#[derive(Debug)]
pub struct FullBacklog {
    _listener: OwnedFd,
    _waiting: Vec<TcpStream>,
    address: SocketAddr,
}

impl FullBacklog {
    /// Listens on a free port of 127.0.0.1 and fills the backlog.
    pub fn start() -> Self {
        let listener = socket(AddressFamily::INET, SocketType::STREAM, None).expect("a socket");
        bind(&listener, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0)).expect("a free port on loopback");
        listen(&listener, 0).expect("a bound socket can listen");
        let address = getsockname(&listener).expect("a bound socket has an address");
        let address = SocketAddr::try_from(address).expect("an IPv4 address");
        let waiting =
            std::iter::from_fn(|| TcpStream::connect_timeout(&address, PATIENCE).ok()).take(MOST).collect();
        Self { _listener: listener, _waiting: waiting, address }
    }

    /// What to ask for.
    pub fn url(&self) -> String {
        format!("http://{}/", self.address)
    }
}

/// On loopback a connect that takes this long was dropped.
const PATIENCE: Duration = Duration::from_millis(200);

/// Linux lets one more than the backlog in; this is a bound, not a count.
const MOST: usize = 16;
