//! Why the server did not start. Once it runs, a client's mistakes are answered or counted, never errors of ours.

use std::{io, net::SocketAddr, path::PathBuf};

/// Why the server did not start; [`Error::help`] says what to do about it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Another process listens there.
    #[error("cannot listen on {address}: the address is in use")]
    AddressInUse {
        /// What was asked for.
        address: SocketAddr,
    },
    /// The system refused the address for another reason (no right to the port, not an address of this machine).
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// What was asked for.
        address: SocketAddr,
        /// The system's reason.
        source: io::Error,
    },
    /// A certificate or key file cannot be read, or holds none.
    #[error("cannot use {path} as a PEM file: {reason}")]
    Pem {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The certificate and the key do not make a TLS server.
    #[error("cannot serve TLS: {0}")]
    Tls(#[from] rustls::Error),
    /// The self-made certificate cannot be made for these names.
    #[error("cannot create a certificate: {0}")]
    Certificate(#[from] rcgen::Error),
    /// QUIC has no form without TLS.
    #[error("cannot serve HTTP/3 without TLS")]
    Http3NeedsTls,
    /// The log file cannot be created.
    #[error("cannot write the log {path}: {source}")]
    Log {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// The system refused a thread or an event queue.
    #[error("cannot start a server thread: {0}")]
    Thread(#[source] io::Error),
}

impl Error {
    /// What the user can do about it.
    pub fn help(&self) -> Option<&'static str> {
        match self {
            Self::AddressInUse { .. } => Some("choose another port, or port 0 for a free one"),
            Self::Listen { source, .. } => help_listen(source.kind()),
            Self::Pem { .. } => Some("give a PEM certificate chain and its unencrypted PEM private key"),
            Self::Tls(_) => Some("check that the key belongs to the first certificate of the chain"),
            Self::Http3NeedsTls => Some("serve TLS as well (--tls), or leave HTTP/3 out"),
            Self::Certificate(_) => Some("names must be DNS names or IP addresses"),
            Self::Log { .. } => Some("choose a file in a folder that you can write to"),
            Self::Thread(_) => Some("ask for fewer threads, or raise the limit of processes (ulimit -u)"),
        }
    }
}

fn help_listen(kind: io::ErrorKind) -> Option<&'static str> {
    match kind {
        io::ErrorKind::PermissionDenied => Some("ports below 1024 need a privilege; choose a higher one"),
        io::ErrorKind::AddrNotAvailable => {
            Some("give an address of this machine, such as 127.0.0.1 or 0.0.0.0")
        }
        _ => None,
    }
}
