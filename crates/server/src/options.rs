//! The options of the server.

use std::{
    net::{Ipv4Addr, SocketAddr},
    num::NonZeroUsize,
    path::PathBuf,
    thread,
    time::Duration,
};

/// How to start a [`Target`](crate::Target). The default is plain HTTP on a free port of 127.0.0.1 with a thread per CPU.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where to listen; port 0 takes a free one, see [`Target::address`](crate::Target::address).
    pub listen: SocketAddr,
    /// Serve TLS (1.2 and 1.3) with this identity; plain HTTP when absent.
    pub tls: Option<Tls>,
    /// Serve HTTP/3 as well, on the UDP port of the same number, and announce it to other clients (`Alt-Svc`). Needs `tls`.
    pub http3: bool,
    /// Threads, each with its own connections. The default is the CPUs this process may use (affinity and cgroup quota).
    pub threads: NonZeroUsize,
    /// Write one line for each finished request to this file, which is emptied first. Lines are in the file at most
    /// 200 ms after the request, and all of them once the server stopped. Format: `docs/target.md`.
    pub log: Option<PathBuf>,
    /// How long a request head may take from its first byte on, and a TLS handshake from the accepted connection on. A
    /// connection between two requests is never closed, so that idle connections can be tested; one with half a head is.
    pub head_timeout: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            tls: None,
            http3: false,
            threads: thread::available_parallelism().unwrap_or(NonZeroUsize::MIN),
            log: None,
            head_timeout: Duration::from_secs(30),
        }
    }
}

/// Who the server says it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Tls {
    /// A certificate made at the start and forgotten at the end (ECDSA P-256), for `localhost`, `127.0.0.1`, `::1`, the
    /// address listened on, and these names or IP addresses.
    SelfMade {
        /// Further DNS names or IP addresses.
        names: Vec<String>,
    },
    /// A certificate chain and its private key from PEM files.
    Pem {
        /// The chain, the server's own certificate first.
        certificate: PathBuf,
        /// The unencrypted private key.
        key: PathBuf,
    },
}
