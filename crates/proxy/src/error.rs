//! Why a server cannot be started.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use squall_traffic::WriteError;

/// What prevents it.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The address cannot be listened on.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why.
        source: io::Error,
    },
    /// A file cannot be read or written.
    #[error("cannot use `{}`: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A certificate or key is wrong.
    #[error("{what}: {reason}")]
    Tls {
        /// What was to be done.
        what: &'static str,
        /// Why not.
        reason: String,
    },
    /// A recording cannot be written.
    #[error(transparent)]
    Recording(#[from] WriteError),
}

impl Error {
    /// What to do about it.
    pub fn help(&self) -> &'static str {
        match self {
            Self::Listen { .. } => "choose another port, or port 0 for a free one",
            Self::File { .. } => "check the path and its permissions",
            Self::Tls { .. } => "name PEM files, or remove the folder of --ca to make a new authority",
            Self::Recording(WriteError::NotRecording(_)) => {
                "name a recording of this version to go on with, or a file that is not there yet"
            }
            Self::Recording(_) => "check the path, its permissions and the space left",
        }
    }
}
