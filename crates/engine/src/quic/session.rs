//! One QUIC connection as a shard has it: quinn-proto's state machine, and where it belongs.

use std::time::{Duration, Instant};

use bytes::Bytes;
use quinn_proto::{Connection, ConnectionHandle, ReadError, StreamId, VarInt, WriteError};

use super::crypto::HandshakeState;
use crate::tls::{Agreement, EarlyData};

/// A connection in one of its states: opening, open, or closed and not forgotten yet.
pub(crate) struct QuicSession {
    pub(super) connection: Connection,
    pub(super) handle: ConnectionHandle,
    pub(super) socket_idx: usize,
    /// When the earliest entry among the endpoint's timers is due that is its; `u64::MAX`: there is none.
    pub(super) timer_ns: u64,
    /// The server has answered.
    pub(crate) is_answered: bool,
    /// Bytes that came and are in no figure yet.
    pub(crate) received_bytes: u64,
    /// Retry packets (RFC 9000 8.1.2) that came.
    pub(crate) retry_count: u32,
    /// Version negotiation packets (RFC 9000 6) that came.
    pub(crate) version_negotiation_count: u32,
    /// Times that it has moved to another local address, and of these, those after which something came there.
    pub(crate) migration_count: u32,
    pub(crate) survival_count: u32,
    /// Nothing has come yet where it has moved.
    is_moving: bool,
    /// Acknowledgements that had come when it was pinged last.
    pub(crate) acks_before_ping: u64,
    /// Streams that were opened, and are used in that order.
    pub(crate) bidi_count: u64,
    pub(crate) uni_count: u64,
    /// It waits for its socket to take more.
    pub(crate) is_blocked: bool,
    /// What streams did not take; rarely anything. One part for each at most, as a stream is given nothing more until that is gone.
    held: Vec<HeldPart>,
    /// What of its statistics is in the figures already.
    counted: QuicProgress,
    agreement: Option<Agreement>,
}

/// Statistics, or what has been added to them since they were asked for last.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct QuicProgress {
    pub(crate) packets_sent: u64,
    pub(crate) packets_lost: u64,
    pub(crate) congestion_events: u64,
    pub(crate) datagrams_sent: u64,
    pub(crate) datagrams_received: u64,
    pub(crate) bytes_sent: u64,
    pub(crate) bytes_received: u64,
}

impl QuicSession {
    pub(super) fn new(connection: Connection, handle: ConnectionHandle, socket_idx: usize) -> Self {
        Self {
            connection,
            handle,
            socket_idx,
            timer_ns: u64::MAX,
            is_answered: false,
            received_bytes: 0,
            retry_count: 0,
            version_negotiation_count: 0,
            migration_count: 0,
            survival_count: 0,
            is_moving: false,
            acks_before_ping: 0,
            bidi_count: 0,
            uni_count: 0,
            is_blocked: false,
            held: Vec::new(),
            counted: QuicProgress::default(),
            agreement: None,
        }
    }

    pub(crate) fn connection(&mut self) -> &mut Connection {
        &mut self.connection
    }

    /// The handshake is over: what it has agreed on is kept.
    pub(crate) fn note_connected(&mut self) {
        self.agreement = HandshakeState::of(&self.connection).and_then(|state| state.agreement);
    }

    /// Tickets are of no use.
    pub(crate) fn drop_tls(&self) {
        if let Some(state) = HandshakeState::of(&self.connection) {
            state.drop_tls();
        }
    }

    /// What the handshake has agreed on, once it is over.
    pub(crate) fn agreement(&self) -> Option<&Agreement> {
        self.agreement.as_ref()
    }

    /// Tickets that were kept.
    pub(crate) fn ticket_count(&self) -> u32 {
        HandshakeState::of(&self.connection).map_or(0, |state| state.ticket_count)
    }

    /// Why TLS has failed, if it has.
    pub(crate) fn tls_failure(&self) -> Option<rustls::Error> {
        HandshakeState::of(&self.connection)?.failure
    }

    /// What became of what was sent before the handshake was over.
    pub(crate) fn early_data(&self) -> EarlyData {
        match (self.connection.has_0rtt(), self.connection.accepted_0rtt()) {
            (false, _) => EarlyData::None,
            (true, true) => EarlyData::Accepted,
            (true, false) => EarlyData::Rejected,
        }
    }

    /// Round-trip times: the shortest, and the smoothed one.
    pub(crate) fn rtt(&self) -> (Duration, Duration) {
        (self.connection.min_rtt(), self.connection.rtt())
    }

    /// Bytes that may be on their way to the server.
    pub(crate) fn congestion_window(&self) -> u64 {
        self.connection.congestion_state().window()
    }

    /// It has moved: the server learns that from what is sent next, and is asked for an answer there.
    pub(super) fn note_migration(&mut self) {
        self.is_moving = true;
        self.migration_count += 1;
        // Where the server was to take more before, the new socket has to say so.
        self.is_blocked = false;
        self.connection.local_address_changed();
    }

    /// A datagram came on a socket.
    pub(crate) fn note_datagram(&mut self, socket_idx: usize, bytes: usize) {
        self.is_answered = true;
        self.received_bytes += bytes as u64;
        if self.is_moving && socket_idx == self.socket_idx {
            self.is_moving = false;
            self.survival_count += 1;
        }
    }

    /// Asks the server for a sign of life: its acknowledgement.
    pub(crate) fn ping(&mut self) {
        self.acks_before_ping = self.ack_count();
        self.connection.ping();
    }

    /// Acknowledgements that came.
    pub(crate) fn ack_count(&self) -> u64 {
        self.connection.stats().frame_rx.acks
    }

    /// What has happened since this was asked last.
    pub(crate) fn take_progress(&mut self) -> QuicProgress {
        let stats = self.connection.stats();
        let now = QuicProgress {
            packets_sent: stats.path.sent_packets,
            packets_lost: stats.path.lost_packets,
            congestion_events: stats.path.congestion_events,
            datagrams_sent: stats.udp_tx.datagrams,
            datagrams_received: stats.udp_rx.datagrams,
            bytes_sent: stats.udp_tx.bytes,
            bytes_received: stats.udp_rx.bytes,
        };
        let before = std::mem::replace(&mut self.counted, now);
        QuicProgress {
            packets_sent: now.packets_sent - before.packets_sent,
            packets_lost: now.packets_lost - before.packets_lost,
            congestion_events: now.congestion_events - before.congestion_events,
            datagrams_sent: now.datagrams_sent - before.datagrams_sent,
            datagrams_received: now.datagrams_received - before.datagrams_received,
            bytes_sent: now.bytes_sent - before.bytes_sent,
            bytes_received: now.bytes_received - before.bytes_received,
        }
    }
}

impl std::fmt::Debug for QuicSession {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("QuicSession").field("handle", &self.handle).finish_non_exhaustive()
    }
}

/// What a stream has brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum QuicStreamEnd {
    /// There is more to come.
    Open,
    /// Nothing more.
    Fin,
    /// The server has given it up, with this code.
    Reset(u64),
}

/// Bytes that a stream did not take: they go first once it takes more.
#[derive(Debug)]
struct HeldPart {
    stream_id: u64,
    slot: u32,
    bytes: Bytes,
    /// The stream ends with them.
    is_last: bool,
}

impl QuicSession {
    /// Puts bytes on a stream; how many it took. A stream that the server wants no more of takes all.
    pub(crate) fn write(&mut self, stream_id: u64, bytes: &[u8]) -> usize {
        let mut stream = self.connection.send_stream(id_of(stream_id));
        let mut taken = 0;
        // What stops at a limit is announced as writable only after a write that took nothing.
        while taken < bytes.len() {
            match stream.write(&bytes[taken..]) {
                Ok(count) => taken += count,
                Err(WriteError::Blocked) => return taken,
                Err(WriteError::Stopped(_) | WriteError::ClosedStream) => return bytes.len(),
            }
        }
        taken
    }

    /// Nothing follows on a stream.
    pub(crate) fn finish(&mut self, stream_id: u64) {
        // One that the server wants no more of has ended already.
        let _ = self.connection.send_stream(id_of(stream_id)).finish();
    }

    /// Puts bytes on a stream, and keeps what it does not take; whether it took all. `is_last`: the stream ends with them.
    pub(crate) fn write_or_hold(&mut self, stream_id: u64, slot: u32, bytes: Bytes, is_last: bool) -> bool {
        let mut stream = self.connection.send_stream(id_of(stream_id));
        let mut left = [bytes];
        while !left[0].is_empty() {
            match stream.write_chunks(&mut left) {
                Ok(_) => {}
                Err(WriteError::Blocked) => {
                    let [bytes] = left;
                    self.hold(stream_id, slot, bytes, is_last);
                    return false;
                }
                Err(WriteError::Stopped(_) | WriteError::ClosedStream) => break,
            }
        }
        if is_last {
            self.finish(stream_id);
        }
        true
    }

    /// Keeps what a stream did not take.
    pub(crate) fn hold(&mut self, stream_id: u64, slot: u32, bytes: Bytes, is_last: bool) {
        self.held.push(HeldPart { stream_id, slot, bytes, is_last });
    }

    /// A stream takes more; the slot of its request, once all that was kept for it is gone.
    pub(crate) fn write_held(&mut self, stream_id: u64) -> Option<u32> {
        let at = self.held.iter().position(|part| part.stream_id == stream_id)?;
        let HeldPart { slot, bytes, is_last, .. } = self.held.swap_remove(at);
        self.write_or_hold(stream_id, slot, bytes, is_last).then_some(slot)
    }

    /// Gives up a stream that has not taken all that it was given, if there is such.
    pub(crate) fn reset_held(&mut self, stream_id: u64, code: VarInt) {
        if self.held.iter().any(|part| part.stream_id == stream_id) {
            self.reset(stream_id, code);
        }
    }

    /// Nothing more is sent on a stream.
    pub(crate) fn reset(&mut self, stream_id: u64, code: VarInt) {
        self.held.retain(|part| part.stream_id != stream_id);
        // One that has ended meanwhile needs nothing more.
        let _ = self.connection.send_stream(id_of(stream_id)).reset(code);
    }

    /// Appends what a stream has to `parts`.
    pub(crate) fn read(&mut self, id: StreamId, parts: &mut Vec<Bytes>) -> QuicStreamEnd {
        let mut stream = self.connection.recv_stream(id);
        // A stream that was stopped, or has been read to its end, brings nothing more.
        let Ok(mut chunks) = stream.read(true) else { return QuicStreamEnd::Open };
        let end = loop {
            match chunks.next(usize::MAX) {
                Ok(Some(chunk)) => parts.push(chunk.bytes),
                Ok(None) => break QuicStreamEnd::Fin,
                Err(ReadError::Blocked) => break QuicStreamEnd::Open,
                Err(ReadError::Reset(code)) => break QuicStreamEnd::Reset(code.into_inner()),
            }
        };
        // What is to be sent for that goes with the turn.
        let _ = chunks.finalize();
        end
    }
}

pub(crate) fn id_of(stream_id: u64) -> StreamId {
    StreamId::from(VarInt::try_from(stream_id).unwrap_or(VarInt::MAX))
}

/// The loop's clock in the terms of the state machines.
#[derive(Debug, Clone, Copy)]
pub(super) struct QuicClock {
    base: Instant,
    base_ns: u64,
}

impl QuicClock {
    pub(super) fn new(now_ns: u64) -> Self {
        Self { base: Instant::now(), base_ns: now_ns }
    }

    pub(super) fn instant(self, at_ns: u64) -> Instant {
        self.base + Duration::from_nanos(at_ns.saturating_sub(self.base_ns))
    }

    pub(super) fn nanoseconds(self, at: Instant) -> u64 {
        let since = at.saturating_duration_since(self.base);
        self.base_ns.saturating_add(u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
    }
}
