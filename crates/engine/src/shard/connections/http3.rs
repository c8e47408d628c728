//! HTTP/3 on a QUIC connection: requests leave on streams of their own, and what comes on each stream is given to the client that reads it.

use bytes::Bytes;
use quinn_proto::{Dir, StreamEvent, StreamId, VarInt};
use squall_wire::h3::StreamAbort;
use squall_wire::{Chunk, Client, ErrorCode};

use crate::quic::{QuicStreamEnd, id_of};
use crate::shard::connections::Connections;
use crate::shard::recorder::ShardRecorder;
use crate::shard::schedule::ShardSchedule;
use crate::trouble::Trouble;

impl Connections {
    /// Puts what the client has to say on its streams: what waits besides requests, new requests, and bodies as far as the server allows.
    pub(super) fn fill_streams(
        &mut self,
        schedule: &mut ShardSchedule,
        recorder: &mut ShardRecorder,
        conn_idx: usize,
    ) -> Result<(), Trouble> {
        self.io.ending.clear();
        self.open_streams(conn_idx);
        self.write_uni_streams(conn_idx);
        self.obey_commands(conn_idx);
        while self.write_head(schedule, recorder, conn_idx) {}
        for _ in 0..CHUNKS_PER_TURN_MAX {
            if !self.write_chunk_of_stream(schedule, recorder, conn_idx)? {
                self.note_sent(conn_idx);
                // For the requests that follow.
                self.open_streams(conn_idx);
                return Ok(());
            }
        }
        self.note_sent(conn_idx);
        // A large body could fill turn after turn: other connections have theirs first.
        self.list_unsent(conn_idx);
        Ok(())
    }

    /// Opens as many streams as the client may want to use, where the server allows that.
    pub(super) fn open_streams(&mut self, conn_idx: usize) {
        let wanted = u64::from(self.limits.stream_count.max(1));
        let conn = &mut self.conns[conn_idx];
        let (Some(session), Some(client)) =
            (&mut conn.cold.quic, conn.client.as_mut().and_then(Client::quic))
        else {
            return;
        };
        let wanted = (client.next_stream() >> 2) + wanted;
        while session.bidi_count < wanted && session.connection().streams().open(Dir::Bi).is_some() {
            session.bidi_count += 1;
        }
        client.set_stream_limit(session.bidi_count);
        while session.uni_count < client.uni_count()
            && session.connection().streams().open(Dir::Uni).is_some()
        {
            session.uni_count += 1;
        }
    }

    /// Sends settings and QPACK's instructions, on streams of their own.
    fn write_uni_streams(&mut self, conn_idx: usize) {
        let conn = &mut self.conns[conn_idx];
        let (Some(session), Some(client)) =
            (&mut conn.cold.quic, conn.client.as_mut().and_then(Client::quic))
        else {
            return;
        };
        for number in 0..session.uni_count {
            let stream_id = number << 2 | 2;
            let output = client.uni_output(stream_id);
            if output.is_empty() {
                continue;
            }
            let written = session.connection().send_stream(id_of(stream_id)).write(output).unwrap_or(0);
            client.uni_sent(stream_id, written);
        }
    }

    /// Gives up streams that the client wants no more of.
    fn obey_commands(&mut self, conn_idx: usize) {
        let conn = &mut self.conns[conn_idx];
        let (Some(session), Some(client)) =
            (&mut conn.cold.quic, conn.client.as_mut().and_then(Client::quic))
        else {
            return;
        };
        while let Some(command) = client.next_command() {
            match command {
                StreamAbort::Reset { stream_id, code } => session.reset(stream_id, code_of(code)),
                StreamAbort::StopSending { stream_id, code } => {
                    // All of its request may be handed out, but not taken yet: the client asks for no reset then.
                    session.reset_held(stream_id, code_of(code));
                    // A stream that has ended meanwhile needs nothing more.
                    let _ = session.connection().recv_stream(id_of(stream_id)).stop(code_of(code));
                }
            }
        }
    }

    /// Sends the head of the next request that may be started; whether there was one.
    fn write_head(
        &mut self,
        schedule: &mut ShardSchedule,
        recorder: &mut ShardRecorder,
        conn_idx: usize,
    ) -> bool {
        let client = self.conns[conn_idx].client.as_mut().and_then(Client::quic);
        let Some(client) = client else { return false };
        let (stream_id, Some(slot)) = (client.next_stream(), client.next_reserved()) else { return false };
        self.io.out.clear();
        if !self.start_request(schedule, recorder, conn_idx) {
            return false;
        }
        let conn = &mut self.conns[conn_idx];
        let (Some(session), Some(client)) =
            (&mut conn.cold.quic, conn.client.as_mut().and_then(Client::quic))
        else {
            return false;
        };
        // Nothing was written where the server does not take the request.
        if !self.io.out.is_empty() {
            let is_last = !client.is_uploading(slot);
            // Heads share their memory: a stream keeps its own until it is acknowledged.
            self.io.heads.extend_from_slice(&self.io.out);
            let head = self.io.heads.split().freeze();
            if !session.write_or_hold(stream_id, slot, head, is_last) {
                client.block(slot);
                self.io.ending.retain(|ending| *ending != slot);
            }
        }
        true
    }

    /// Sends a piece of a body; whether there was one.
    fn write_chunk_of_stream(
        &mut self,
        schedule: &mut ShardSchedule,
        recorder: &mut ShardRecorder,
        conn_idx: usize,
    ) -> Result<bool, Trouble> {
        let client = self.conns[conn_idx].client.as_mut().and_then(Client::quic);
        let Some(client) = client else { return Ok(false) };
        self.io.out.clear();
        let Some(chunk) = client.next_chunk(CHUNK_BYTES, &mut self.io.out) else { return Ok(false) };
        let Some(stream_id) = client.stream_of(chunk.slot) else { return Ok(true) };
        let head_bytes = self.io.out.len();
        let is_growing = self.is_carrier(conn_idx)
            || self.has_growing_body(&self.exchanges[self.place_of(conn_idx, chunk.slot)]);
        if let Err(trouble) = self.append_body(conn_idx, chunk) {
            self.io.out.clear();
            self.give_up_body(schedule, recorder, conn_idx, chunk.slot, trouble)?;
            self.obey_commands(conn_idx);
            return Ok(true);
        }
        let conn = &mut self.conns[conn_idx];
        let (Some(session), Some(client)) =
            (&mut conn.cold.quic, conn.client.as_mut().and_then(Client::quic))
        else {
            return Ok(false);
        };
        let out = &self.io.out;
        let taken = session.write(stream_id, out);
        let is_held = taken < out.len();
        let mut left_bytes = 0;
        if !is_held {
            if chunk.is_last {
                session.finish(stream_id);
            }
        } else if is_growing {
            // What was taken of a body that grows is not there any more.
            session.hold(stream_id, chunk.slot, Bytes::copy_from_slice(&out[taken..]), chunk.is_last);
            client.block(chunk.slot);
        } else {
            // The frame's head is written already, as far as the client knows.
            left_bytes = out.len() - taken.max(head_bytes);
            let head = Bytes::copy_from_slice(out.get(taken..head_bytes).unwrap_or_default());
            session.hold(stream_id, chunk.slot, head, false);
            client.return_chunk(chunk.slot, left_bytes);
            client.block(chunk.slot);
        }
        let is_last = chunk.is_last && !is_held;
        let sent = Chunk { bytes: chunk.bytes - left_bytes, is_last, ..chunk };
        self.note_chunk(conn_idx, sent, head_bytes as u64);
        Ok(true)
    }

    /// Follows what has happened on streams.
    pub(super) fn on_stream_event(
        &mut self,
        schedule: &mut ShardSchedule,
        recorder: &mut ShardRecorder,
        conn_idx: usize,
        event: &StreamEvent,
    ) -> Result<(), Trouble> {
        match *event {
            StreamEvent::Opened { dir } => {
                while let Some(session) = &mut self.conns[conn_idx].cold.quic
                    && let Some(id) = session.connection().streams().accept(dir)
                {
                    self.read_stream(schedule, recorder, conn_idx, id)?;
                }
            }
            StreamEvent::Readable { id } => self.read_stream(schedule, recorder, conn_idx, id)?,
            StreamEvent::Writable { id } => self.unblock_stream(conn_idx, id),
            StreamEvent::Stopped { id, error_code } => {
                let conn = &mut self.conns[conn_idx];
                if let Some(session) = &mut conn.cold.quic {
                    session.reset_held(u64::from(id), error_code);
                }
                if let Some(client) = conn.client.as_mut().and_then(Client::quic) {
                    let code = ErrorCode(error_code.into_inner());
                    if let Err(error) = client.handle_stop_sending(u64::from(id), code) {
                        return self.on_protocol_error(schedule, recorder, conn_idx, &error.into());
                    }
                }
            }
            StreamEvent::Available { dir: Dir::Bi } => {
                self.open_streams(conn_idx);
                if self.has_free_slot(conn_idx) && self.conns[conn_idx].in_flight() > 0 {
                    self.list_idle(conn_idx);
                }
            }
            StreamEvent::Available { dir: Dir::Uni } | StreamEvent::Finished { .. } => {}
        }
        Ok(())
    }

    /// A stream takes more: what it did not take before goes first.
    fn unblock_stream(&mut self, conn_idx: usize, id: StreamId) {
        let conn = &mut self.conns[conn_idx];
        let (Some(session), Some(client)) =
            (&mut conn.cold.quic, conn.client.as_mut().and_then(Client::quic))
        else {
            return;
        };
        // The request may be over, and the slot another's.
        if let Some(slot) = session.write_held(u64::from(id))
            && client.stream_of(slot) == Some(u64::from(id))
        {
            client.unblock(slot);
            if !client.is_uploading(slot) {
                self.io.ending.push(slot);
                self.note_sent(conn_idx);
            }
        }
    }

    /// Reads what a stream has.
    fn read_stream(
        &mut self,
        schedule: &mut ShardSchedule,
        recorder: &mut ShardRecorder,
        conn_idx: usize,
        id: StreamId,
    ) -> Result<(), Trouble> {
        self.read_one_stream(schedule, recorder, conn_idx, id)?;
        // What came may be what others have waited for.
        self.read_resumed(schedule, recorder, conn_idx)
    }

    /// Reads streams that the client wants again: those that waited for another one, or were paused.
    fn read_resumed(
        &mut self,
        schedule: &mut ShardSchedule,
        recorder: &mut ShardRecorder,
        conn_idx: usize,
    ) -> Result<(), Trouble> {
        let generation = self.conns[conn_idx].generation;
        while self.is_same(conn_idx, generation)
            && let Some(client) = self.conns[conn_idx].client.as_mut().and_then(Client::quic)
            && let Some(stream_id) = client.next_readable()
        {
            self.decode_stream(schedule, recorder, conn_idx, stream_id, (&[], false))?;
            if self.is_same(conn_idx, generation) {
                self.read_one_stream(schedule, recorder, conn_idx, id_of(stream_id))?;
            }
        }
        Ok(())
    }

    /// A connection is to be read although nothing came: its consumer goes on.
    pub(super) fn receive_resumed(
        &mut self,
        schedule: &mut ShardSchedule,
        recorder: &mut ShardRecorder,
        conn_idx: usize,
    ) {
        let generation = self.conns[conn_idx].generation;
        let result = self.read_resumed(schedule, recorder, conn_idx);
        if !self.is_same(conn_idx, generation) {
            return;
        }
        match result {
            Ok(()) => self.list_unsent(conn_idx),
            Err(trouble) => self.fail(schedule, recorder, conn_idx, &trouble),
        }
    }

    fn read_one_stream(
        &mut self,
        schedule: &mut ShardSchedule,
        recorder: &mut ShardRecorder,
        conn_idx: usize,
        id: StreamId,
    ) -> Result<(), Trouble> {
        let conn = &mut self.conns[conn_idx];
        let (Some(session), Some(client)) =
            (&mut conn.cold.quic, conn.client.as_mut().and_then(Client::quic))
        else {
            return Ok(());
        };
        if !client.wants_stream(u64::from(id)) {
            return Ok(());
        }
        let mut parts = std::mem::take(&mut self.io.parts);
        let end = session.read(id, &mut parts);
        // What is left of a response should not wait for a tick: its server may wait for our acknowledgements.
        self.is_mid_response |= end == QuicStreamEnd::Open && !parts.is_empty() && u64::from(id) & 3 == 0;
        let result = self.decode_parts(schedule, recorder, conn_idx, u64::from(id), (&parts, end));
        parts.clear();
        self.io.parts = parts;
        result
    }

    fn decode_parts(
        &mut self,
        schedule: &mut ShardSchedule,
        recorder: &mut ShardRecorder,
        conn_idx: usize,
        stream_id: u64,
        (parts, end): (&[Bytes], QuicStreamEnd),
    ) -> Result<(), Trouble> {
        let generation = self.conns[conn_idx].generation;
        for (idx, part) in parts.iter().enumerate() {
            let is_fin = end == QuicStreamEnd::Fin && idx + 1 == parts.len();
            self.decode_stream(schedule, recorder, conn_idx, stream_id, (part, is_fin))?;
            if !self.is_same(conn_idx, generation) {
                return Ok(());
            }
        }
        match end {
            QuicStreamEnd::Fin if parts.is_empty() => {
                self.decode_stream(schedule, recorder, conn_idx, stream_id, (&[], true))
            }
            QuicStreamEnd::Reset(code) => {
                let client = self.conns[conn_idx].client.as_mut().and_then(Client::quic);
                let Some(client) = client else { return Ok(()) };
                match client.handle_reset(stream_id, ErrorCode(code)) {
                    Ok(None) => {}
                    Ok(Some(event)) => self.on_event(schedule, recorder, conn_idx, event, self.now_ns),
                    Err(error) => self.on_protocol_error(schedule, recorder, conn_idx, &error.into())?,
                }
                Ok(())
            }
            QuicStreamEnd::Open | QuicStreamEnd::Fin => Ok(()),
        }
    }

    /// Gives bytes of a stream to the client.
    fn decode_stream(
        &mut self,
        schedule: &mut ShardSchedule,
        recorder: &mut ShardRecorder,
        conn_idx: usize,
        stream_id: u64,
        (input, is_fin): (&[u8], bool),
    ) -> Result<(), Trouble> {
        let generation = self.conns[conn_idx].generation;
        let mut begin = 0;
        loop {
            let conn = &mut self.conns[conn_idx];
            let Some(client) = &mut conn.client else { return Ok(()) };
            recorder.sink.begin(conn_idx, conn.first_place, self.now_ns);
            let rest = (&input[begin..], is_fin);
            let decoded = client.decode_stream(&mut self.io.head_caches, stream_id, rest, &mut recorder.sink);
            let progress = match decoded {
                Ok(progress) => progress,
                Err(error) => return self.on_protocol_error(schedule, recorder, conn_idx, &error),
            };
            begin += progress.consumed;
            if let Some(event) = progress.event {
                self.on_event(schedule, recorder, conn_idx, event, self.now_ns);
            }
            if begin == input.len() || !self.is_same(conn_idx, generation) {
                return Ok(());
            }
        }
    }
}

fn code_of(code: ErrorCode) -> VarInt {
    VarInt::try_from(code.0).unwrap_or(VarInt::MAX)
}

/// Bytes of a body that are handed to a stream in one go.
const CHUNK_BYTES: usize = 64 * 1024;

/// Of one connection in one turn of the loop.
const CHUNKS_PER_TURN_MAX: u32 = 16;
