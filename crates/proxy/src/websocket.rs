//! A WebSocket that passes through the proxy: bytes go on as they come, and a copy of them is decoded to messages with their times.
//!
//! What one end does against the protocol is for the other end to see: then nothing more of it is recorded, and everything passes.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use squall_traffic::limits::{CONVERSATION_BYTES_MAX, MESSAGE_BYTES_MAX};
use squall_traffic::{Peer, RecordedKind, RecordedMessage};
use squall_wire::ws::deflate::Params;
use squall_wire::ws::{self, CloseCode, Decoder, Event, Inbox, WebSocketRole};
use tokio::io::{AsyncReadExt, AsyncWriteExt, ReadHalf, WriteHalf};

/// What was said on one WebSocket; it is handed over when the connection has ended, however it did.
pub(crate) struct Conversation(Mutex<Heard>);

/// Messages that are kept in memory, of all conversations together.
#[derive(Debug, Default)]
pub(crate) struct Budget(AtomicUsize);

struct Heard {
    client: Side,
    server: Side,
    messages: Vec<RecordedMessage>,
    bytes: usize,
    budget: Arc<Budget>,
    /// Something was said that is not in it.
    is_cut: bool,
    started: Instant,
    on_end: Option<OnEnd>,
}

/// What is done with the messages; whether some of them are missing.
type OnEnd = Box<dyn FnOnce(Vec<RecordedMessage>, bool) + Send>;

/// What one end sends.
struct Side {
    decoder: Decoder,
    inbox: Inbox,
    is_over: bool,
}

impl Conversation {
    /// `extensions`: what the server agreed to. `on_end` gets the messages, and whether some are missing.
    pub(crate) fn new(
        extensions: Option<&str>,
        started: Instant,
        budget: Arc<Budget>,
        on_end: impl FnOnce(Vec<RecordedMessage>, bool) + Send + 'static,
    ) -> Self {
        let params = extensions.and_then(|extensions| Params::agreed(extensions, true));
        // An extension that is not known may have changed anything.
        let is_opaque = extensions.is_some() && params.is_none();
        // A decoder is one end: what the client sends is read as the server reads it.
        let side = |reader: WebSocketRole| Side {
            decoder: Decoder::new(reader, params.is_some()),
            inbox: Inbox::new(MESSAGE_BYTES_MAX, params.map(|params| params.inflater(reader))),
            is_over: is_opaque,
        };
        Self(Mutex::new(Heard {
            client: side(WebSocketRole::Server),
            server: side(WebSocketRole::Client),
            messages: Vec::new(),
            bytes: 0,
            budget,
            is_cut: is_opaque,
            started,
            on_end: Some(Box::new(on_end)),
        }))
    }

    /// Passes on what both ends send until both have ended, or one of them breaks off.
    pub(crate) async fn pass(self, client: Upgraded, server: Upgraded) {
        let (from_client, to_client) = tokio::io::split(TokioIo::new(client));
        let (from_server, to_server) = tokio::io::split(TokioIo::new(server));
        let up = self.pass_one_way(Peer::Client, from_client, to_server);
        let down = self.pass_one_way(Peer::Server, from_server, to_client);
        // Whoever breaks it off ends it.
        let _ = tokio::try_join!(up, down);
    }

    async fn pass_one_way(
        &self,
        by: Peer,
        mut from: ReadHalf<TokioIo<Upgraded>>,
        mut to: WriteHalf<TokioIo<Upgraded>>,
    ) -> io::Result<()> {
        let mut bytes = vec![0; READ_BYTES];
        loop {
            let count = from.read(&mut bytes).await?;
            if count == 0 {
                return to.shutdown().await;
            }
            // The decoder takes masks off where the bytes are; and an answer must not be heard before what it answers.
            let mut copy = bytes[..count].to_vec();
            self.0.lock().unwrap_or_else(PoisonError::into_inner).hear(by, &mut copy);
            to.write_all(&bytes[..count]).await?;
            to.flush().await?;
        }
    }
}

impl Heard {
    fn hear(&mut self, by: Peer, bytes: &mut [u8]) {
        let at_ns = u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let mut heard = Vec::new();
        let side = if by == Peer::Client { &mut self.client } else { &mut self.server };
        if side.is_over {
            return;
        }
        let keep = |kind, bytes: &[u8]| RecordedMessage { at_ns, by, kind, bytes: bytes.to_vec() };
        if let Err(_violation) = side.decode(bytes, &mut |message| {
            heard.push(match message {
                Said::Message(kind, bytes) => keep(kind, bytes),
                Said::Close(code, reason) => {
                    let code = Some(code.0).filter(|_| code != CloseCode::NONE);
                    RecordedMessage::close(at_ns, by, code, reason)
                }
            });
        }) {
            (side.is_over, self.is_cut) = (true, true);
        }
        heard.into_iter().for_each(|message| self.keep(message));
    }

    fn keep(&mut self, message: RecordedMessage) {
        let bytes = message.memory_bytes();
        if self.is_cut || self.bytes + bytes > CONVERSATION_BYTES_MAX || !self.budget.take(bytes) {
            // What follows a gap would be played as if there were none.
            self.is_cut = true;
            return;
        }
        self.bytes += bytes;
        self.messages.push(message);
    }
}

impl Drop for Heard {
    fn drop(&mut self) {
        self.budget.give_back(self.bytes);
        if let Some(on_end) = self.on_end.take() {
            on_end(std::mem::take(&mut self.messages), self.is_cut);
        }
    }
}

/// What a copy of the bytes says.
enum Said<'a> {
    Message(RecordedKind, &'a [u8]),
    Close(CloseCode, &'a str),
}

impl Side {
    fn decode(&mut self, mut bytes: &mut [u8], say: &mut dyn FnMut(Said<'_>)) -> Result<(), ws::Error> {
        while !self.is_over {
            let decoded = self.decoder.decode(bytes)?;
            let consumed = decoded.consumed;
            match decoded.event {
                None => return Ok(()),
                Some(Event::Part(part)) => {
                    if let Some(message) = self.inbox.push(part)? {
                        let kind = match message.kind {
                            ws::MessageKind::Text => RecordedKind::Text,
                            ws::MessageKind::Binary => RecordedKind::Binary,
                        };
                        say(Said::Message(kind, message.bytes));
                    }
                }
                Some(Event::Close(code, reason)) => {
                    say(Said::Close(code, reason));
                    self.is_over = true;
                }
                // They belong to the connection: each end answers those of its own.
                Some(Event::Ping(_) | Event::Pong(_)) => {}
            }
            bytes = &mut bytes[consumed..];
        }
        Ok(())
    }
}

impl Budget {
    /// Takes so much of what is left; whether there was as much.
    fn take(&self, bytes: usize) -> bool {
        let taken = self.0.fetch_add(bytes, Relaxed);
        let has_room = taken + bytes <= CONVERSATIONS_BYTES_MAX;
        if !has_room {
            self.give_back(bytes);
        }
        has_room
    }

    fn give_back(&self, bytes: usize) {
        self.0.fetch_sub(bytes, Relaxed);
    }
}

/// Messages of all open WebSockets together that wait in memory for the end of their connection.
const CONVERSATIONS_BYTES_MAX: usize = 512 << 20;

/// Read at once.
const READ_BYTES: usize = 16 << 10;
