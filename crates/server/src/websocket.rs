//! One WebSocket connection, from the upgrade to its closing handshake.

use std::{io, sync::Arc, time::Duration};

use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use squall_wire::ws::{
    self, CloseCode, Decoder, Event, Inbox, MessageKind, Outbox, WebSocketMessage, WebSocketRole,
    deflate::Params,
};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    sync::broadcast,
    time::{Interval, interval_at},
};

use crate::{
    channels::{Membership, Post},
    connection::Ticket,
    limits,
    pause::pause,
};

/// The bytes of a WebSocket, in both directions.
pub(crate) trait Carrier: AsyncRead + AsyncWrite + Unpin + Send {}

impl<I: AsyncRead + AsyncWrite + Unpin + Send> Carrier for I {}

/// What a route does with the messages of a connection.
pub(crate) struct WebSocketSession {
    pub(crate) compression: Option<Params>,
    /// Wait this long before each message that is sent.
    pub(crate) delay: Duration,
    /// Send a ping this often.
    pub(crate) ping: Option<Duration>,
    /// Close after this many messages from the client.
    pub(crate) close: Option<(u64, CloseCode)>,
    /// Where messages go; none: back.
    pub(crate) membership: Option<Membership>,
}

/// Why a connection ends.
enum RequestEnd {
    /// By a closing handshake that the client began.
    Closed,
    /// By one that this end begins. The bytes have been read and not decoded.
    Close(CloseCode, &'static str, Vec<u8>),
    /// Because of what the client did; nothing can be decoded after it.
    Violation(ws::Error),
    /// Without a handshake.
    Broken,
}

impl From<ws::Error> for RequestEnd {
    fn from(error: ws::Error) -> Self {
        Self::Violation(error)
    }
}

impl From<io::Error> for RequestEnd {
    fn from(_: io::Error) -> Self {
        Self::Broken
    }
}

/// Serves a connection that is upgraded until it ends.
pub(crate) async fn serve_upgraded(upgrade: OnUpgrade, session: WebSocketSession, ticket: Ticket) {
    if let Ok(upgraded) = upgrade.await {
        serve(TokioIo::new(upgraded), session, ticket).await;
    }
}

/// Serves what carries a WebSocket until it ends.
pub(crate) async fn serve<I: Carrier>(io: I, session: WebSocketSession, ticket: Ticket) {
    let inflater = session.compression.map(|params| params.inflater(WebSocketRole::Server));
    let deflater = session.compression.map(|params| params.deflater(WebSocketRole::Server));
    // All that wait for a slow member are in memory.
    let bytes_max = match session.membership {
        Some(_) => limits::POST_BYTES_MAX,
        None => limits::MESSAGE_BYTES_MAX,
    };
    let mut peer = Peer {
        io,
        decoder: Decoder::new(WebSocketRole::Server, session.compression.is_some()),
        inbox: Inbox::new(bytes_max, inflater),
        sender: Sender { outbox: Outbox::new(deflater), out: Vec::new(), ticket },
        received_count: 0,
        session,
    };
    let end = peer.talk().await;
    peer.finish(end).await;
}

struct Peer<I> {
    io: I,
    decoder: Decoder,
    inbox: Inbox,
    sender: Sender,
    session: WebSocketSession,
    received_count: u64,
}

/// What is written, and its counts.
struct Sender {
    outbox: Outbox,
    out: Vec<u8>,
    ticket: Ticket,
}

impl Sender {
    fn message(&mut self, kind: MessageKind, bytes: &[u8]) {
        self.ticket.counters().messages_sent.add(1);
        self.outbox.message(kind, bytes, None, &mut self.out);
    }

    async fn flush(&mut self, io: &mut impl Carrier) -> io::Result<()> {
        if !self.out.is_empty() {
            io.write_all(&self.out).await?;
            io.flush().await?;
            self.ticket.body_bytes += self.out.len() as u64;
            self.out.clear();
            self.out.shrink_to(limits::READ_BYTES_MAX);
        }
        Ok(())
    }
}

impl<I: Carrier> Peer<I> {
    /// Receives and sends until there is a reason to end.
    async fn talk(&mut self) -> RequestEnd {
        let mut pings =
            self.session.ping.map(|every| interval_at(tokio::time::Instant::now() + every, every));
        // A silent connection holds little; one that is busy reads more at a time.
        let mut input = vec![0; READ_BYTES];
        loop {
            let step = tokio::select! {
                read = self.io.read(&mut input) => match read {
                    Ok(count @ 1..) => {
                        let step = self.receive(&mut input[..count]).await;
                        if count == input.len() && count < limits::READ_BYTES_MAX {
                            input.resize(count * 4, 0);
                        }
                        step
                    }
                    Ok(0) | Err(_) => Err(RequestEnd::Broken),
                },
                post = next_post(&mut self.session.membership) => self.deliver(post).await,
                () = tick(&mut pings) => {
                    self.sender.outbox.ping(b"", None, &mut self.sender.out);
                    Ok(())
                }
            };
            let step = match step {
                Ok(()) => self.sender.flush(&mut self.io).await.map_err(RequestEnd::from),
                end => end,
            };
            if let Err(end) = step {
                return end;
            }
        }
    }

    async fn receive(&mut self, mut input: &mut [u8]) -> Result<(), RequestEnd> {
        loop {
            let decoded = self.decoder.decode(input)?;
            let consumed = decoded.consumed;
            match decoded.event {
                None => return Ok(()),
                Some(Event::Part(part)) => {
                    if let Some(message) = self.inbox.push(part)? {
                        self.sender.ticket.counters().messages_received.add(1);
                        self.received_count += 1;
                        pass_on(message, &self.session, &mut self.sender, &mut self.io).await?;
                        self.inbox.release();
                    }
                }
                Some(Event::Ping(payload)) => self.sender.outbox.pong(payload, None, &mut self.sender.out),
                Some(Event::Pong(_)) => {}
                Some(Event::Close(code, reason)) => {
                    self.sender.outbox.close(code, reason, None, &mut self.sender.out);
                    return Err(RequestEnd::Closed);
                }
            }
            if let Some((count, code)) = self.session.close
                && self.received_count >= count
            {
                return Err(RequestEnd::Close(code, "", input[consumed..].to_vec()));
            }
            input = &mut input[consumed..];
        }
    }

    async fn deliver(
        &mut self,
        post: Result<Arc<Post>, broadcast::error::RecvError>,
    ) -> Result<(), RequestEnd> {
        let slow =
            |_lagged| RequestEnd::Close(CloseCode::TRY_AGAIN, "this client reads too slowly", Vec::new());
        let post = post.map_err(slow)?;
        pause(self.session.delay).await;
        self.sender.message(post.kind, &post.bytes);
        Ok(())
    }

    /// Ends the connection; it counts as complete if both ends have closed it properly.
    async fn finish(mut self, end: RequestEnd) {
        if matches!(end, RequestEnd::Broken) {
            return;
        }
        let ended = tokio::time::timeout(CLOSE_TIME, self.close(end)).await;
        self.sender.ticket.is_complete = ended == Ok(true);
    }

    /// Says why, and waits for the client's end; whether that was a proper one.
    async fn close(&mut self, end: RequestEnd) -> bool {
        let Sender { outbox, out, .. } = &mut self.sender;
        let is_proper = !matches!(end, RequestEnd::Violation(_));
        let rest = match end {
            RequestEnd::Closed | RequestEnd::Broken => None,
            RequestEnd::Close(code, reason, rest) => {
                outbox.close(code, reason, None, out);
                Some(rest)
            }
            RequestEnd::Violation(error) => {
                outbox.close(error.close_code(), &error.to_string(), None, out);
                None
            }
        };
        if self.sender.flush(&mut self.io).await.is_err() {
            return false;
        }
        let is_answered = match rest {
            Some(rest) => self.await_close(rest).await,
            None => true,
        };
        let _ = self.io.shutdown().await;
        is_proper && is_answered
    }

    /// Reads until the client answers a close frame; false where it ends in another way.
    async fn await_close(&mut self, mut input: Vec<u8>) -> bool {
        loop {
            let mut rest = &mut input[..];
            loop {
                let Ok(decoded) = self.decoder.decode(rest) else { return false };
                let consumed = decoded.consumed;
                match decoded.event {
                    Some(Event::Close(..)) => return true,
                    Some(_) => rest = &mut rest[consumed..],
                    None => break,
                }
            }
            input.resize(READ_BYTES, 0);
            match self.io.read(&mut input).await {
                Ok(count @ 1..) => input.truncate(count),
                Ok(0) | Err(_) => return false,
            }
        }
    }
}

/// Sends a message back, or to all of its channel.
async fn pass_on(
    message: WebSocketMessage<'_>,
    session: &WebSocketSession,
    sender: &mut Sender,
    io: &mut impl Carrier,
) -> Result<(), RequestEnd> {
    if let Some(membership) = &session.membership {
        // Fails when there is no receiver, and this connection is one.
        let _ = membership.channel.send(Arc::new(Post { kind: message.kind, bytes: message.bytes.to_vec() }));
        return Ok(());
    }
    if session.delay > Duration::ZERO {
        sender.flush(io).await?;
        pause(session.delay).await;
    }
    sender.message(message.kind, message.bytes);
    if sender.out.len() >= limits::READ_BYTES_MAX {
        sender.flush(io).await?;
    }
    Ok(())
}

async fn next_post(membership: &mut Option<Membership>) -> Result<Arc<Post>, broadcast::error::RecvError> {
    match membership {
        Some(membership) => membership.posts.recv().await,
        None => std::future::pending().await,
    }
}

async fn tick(pings: &mut Option<Interval>) {
    match pings {
        Some(pings) => {
            pings.tick().await;
        }
        None => std::future::pending().await,
    }
}

/// Bytes that a silent connection keeps to read into.
const READ_BYTES: usize = 1024;

/// How long a client may take to answer a close frame.
const CLOSE_TIME: Duration = Duration::from_secs(5);
