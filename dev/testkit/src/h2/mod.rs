//! HTTP/2 servers that keep or break the rules of RFC 9113 on their first connection, and what a client must do about each of them.
//!
//! Owns: the server ([`ScriptedPeer`]) and what it can do ([`Talk`]). The table itself is [`PEERS`]. Frames are made by hand here, so
//! that nothing is taken from the codec that is tested.

mod peers;
mod talk;

use std::io::{self, Write};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use squall_measure::{Cause, Phase};

use crate::acceptor::Acceptor;

pub use peers::{BODY_BYTES, BODY_FILE, PEERS};
pub use talk::{Frame, Talk, code, flag, kind};

/// One server.
#[derive(Debug, Clone, Copy)]
pub struct Peer {
    /// The section of RFC 9113 (or of RFC 7541) that binds the client here.
    pub section: &'static str,
    /// Names it in a test's output.
    pub name: &'static str,
    /// What it does on its first connection, after the client's preface; on that connection it then answers well, as it does on all others.
    pub script: fn(&mut Talk<'_>) -> io::Result<()>,
    /// Flags that make the client meet it.
    pub args: &'static [&'static str],
    /// What the client must do.
    pub reaction: Reaction,
    /// Failures that the client's three requests come to; the others succeed. More than one right answer where two packets race.
    pub failures: &'static [&'static [(Cause, Phase)]],
    /// How many connections the client opens.
    pub connection_count: u64,
}

/// What the client does about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reaction {
    /// Nothing is wrong: it resets no stream and ends no connection with an error.
    None,
    /// It resets a stream with this code.
    ResetsStream(u32),
    /// It ends the connection with GOAWAY and this code.
    EndsConnection(u32),
    /// It sends a frame of this kind with the flag ACK, and otherwise nothing is wrong.
    Acknowledges(u8),
    /// It sends a WINDOW_UPDATE on a stream and on the connection, and otherwise nothing is wrong.
    WidensWindows,
}

/// A running [`Peer`]; stopped on drop.
#[derive(Debug)]
pub struct ScriptedPeer {
    acceptor: Acceptor,
    shared: Arc<Shared>,
}

/// What the client sent, and what the script complains of.
#[derive(Debug, Default)]
struct Shared {
    connection_count: AtomicU64,
    frames: Mutex<Vec<Frame>>,
    complaint: Mutex<Option<String>>,
}

impl ScriptedPeer {
    /// Starts on a free port of 127.0.0.1, without TLS.
    pub fn start(peer: &Peer) -> Self {
        let shared = Arc::new(Shared::default());
        let (known, script) = (Arc::clone(&shared), peer.script);
        let acceptor = Acceptor::start(move |mut socket| {
            let is_first = known.connection_count.fetch_add(1, Ordering::Relaxed) == 0;
            let mut reader = socket.clone();
            let mut talk = Talk::new(&mut reader, &mut socket, &known.frames, &known.complaint);
            // A client that leaves early is what most of these servers are for.
            let _ = talk
                .read_preface()
                .and_then(|()| if is_first { script(&mut talk) } else { talk.settings(&[]) });
            let _ = talk.serve();
            let _ = socket.flush();
        });
        Self { acceptor, shared }
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.acceptor.address()
    }

    /// What to ask for.
    pub fn url(&self) -> String {
        format!("h2c://{}/", self.address())
    }

    /// Ends all connections, and returns what the client did wrong, if anything.
    pub fn complaint(self, peer: &Peer) -> Option<String> {
        let Self { acceptor, shared } = self;
        let connection_count = acceptor.connection_count();
        drop(acceptor);
        let lock =
            |mutex: &Mutex<Option<String>>| mutex.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(complaint) = lock(&shared.complaint) {
            return Some(complaint);
        }
        if connection_count != peer.connection_count {
            return Some(format!("{connection_count} connections, not {}", peer.connection_count));
        }
        let frames = shared.frames.lock().unwrap_or_else(PoisonError::into_inner);
        (!peer.reaction.is_met(&frames)).then(|| format!("not {:?}: {}", peer.reaction, summary(&frames)))
    }
}

impl Reaction {
    fn is_met(self, frames: &[Frame]) -> bool {
        let resets: Vec<u32> = codes(frames, kind::RST_STREAM);
        let goaways: Vec<u32> = codes(frames, kind::GOAWAY).into_iter().filter(|code| *code != 0).collect();
        let has =
            |kind: u8, test: &dyn Fn(&Frame) -> bool| frames.iter().any(|one| one.kind == kind && test(one));
        let is_quiet = resets.is_empty() && goaways.is_empty();
        match self {
            Self::None => is_quiet,
            Self::ResetsStream(code) => resets.contains(&code) && goaways.is_empty(),
            Self::EndsConnection(code) => goaways == [code],
            Self::Acknowledges(kind) => is_quiet && has(kind, &|one| one.flags & flag::ACK != 0),
            Self::WidensWindows => {
                let widened = |on_stream: bool| {
                    has(kind::WINDOW_UPDATE, &|one| (one.stream_id != 0) == on_stream && one.number() > 0)
                };
                is_quiet && widened(true) && widened(false)
            }
        }
    }
}

/// The error codes in frames of a kind: the last four bytes of RST_STREAM and of a GOAWAY without a message.
fn codes(frames: &[Frame], kind: u8) -> Vec<u32> {
    let code = |frame: &Frame| frame.payload.last_chunk().map(|bytes| u32::from_be_bytes(*bytes));
    frames.iter().filter(|frame| frame.kind == kind).filter_map(code).collect()
}

fn summary(frames: &[Frame]) -> String {
    let one = |frame: &Frame| {
        format!("{:#x}/{:#x}@{}{:x?}", frame.kind, frame.flags, frame.stream_id, frame.payload)
    };
    frames.iter().filter(|frame| frame.kind != kind::DATA).map(one).collect::<Vec<_>>().join(" ")
}
