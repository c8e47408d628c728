//! What keeps figures from leaving.

use std::io;

/// A place that cannot be served or sent to.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The address to listen on is taken, or not ours.
    #[error("cannot listen on {address}: {source}")]
    OsListen {
        /// As given.
        address: String,
        /// What the system said.
        source: io::Error,
    },
    /// The target of an output is no address or URL that can be sent to.
    #[error("cannot send to `{given}`: {reason}")]
    UserBadTarget {
        /// As given, without its secrets.
        given: String,
        /// Why.
        reason: String,
    },
    /// The page was not built into this program.
    #[error("this squall was built without its web page")]
    NoPage,
    /// A thread or a socket could not be made.
    #[error("cannot {what}: {source}")]
    Os {
        /// What was tried.
        what: &'static str,
        /// What the system said.
        source: io::Error,
    },
}

impl Error {
    /// How to fix it.
    pub fn help(&self) -> &'static str {
        match self {
            Self::OsListen { source, .. } if source.kind() == io::ErrorKind::AddrInUse => {
                "choose another port, or port 0 for a free one"
            }
            Self::OsListen { .. } => {
                "give an address of this machine and a free port, such as `127.0.0.1:5665`"
            }
            Self::UserBadTarget { .. } => {
                "write a URL such as `http://localhost:9090/api/v1/write`, or for statsd `HOST:PORT`"
            }
            Self::NoPage => {
                "build squall with `make build`, which needs Node; `--live` shows the run in the terminal"
            }
            Self::Os { .. } => "check this process's limits: `ulimit -a`",
        }
    }
}
