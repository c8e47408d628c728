//! Says what is being done before anything else can be seen, once it takes longer than people like to wait.

use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::args::FaceArgs;
use crate::output;

/// Keeps silent for two seconds, and for good when it is dropped before.
pub(crate) struct Patience {
    done: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Patience {
    /// The same, where the user wants to hear of what goes on.
    pub(crate) fn unless_quiet(args: &FaceArgs, doing: impl Into<String>) -> Option<Self> {
        (args.quiet == 0).then(|| Self::new(doing))
    }

    /// `doing`: what begins now, such as `looking up names`.
    fn new(doing: impl Into<String>) -> Self {
        let (done, is_done) = mpsc::channel();
        let doing = doing.into();
        let wait = move || {
            if is_done.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
                output::note(&format!("{doing} …"));
            }
        };
        // Without a thread nothing is said, and nothing else suffers.
        Self { done: Some(done), thread: thread::Builder::new().spawn(wait).ok() }
    }
}

impl Drop for Patience {
    fn drop(&mut self) {
        self.done = None;
        // What it says comes before what is said next.
        self.thread.take().map(JoinHandle::join);
    }
}

/// Work that takes less than this needs no line.
const PATIENCE: Duration = Duration::from_secs(2);
