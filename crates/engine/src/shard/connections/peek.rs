//! How responses are read: taken, or peeked at and dropped from the socket once the turn's requests are written, where that spares bare
//! acknowledgements (see `acks`).

use std::io;
use std::mem;

use crate::shard::connections::Connections;
use crate::shard::connections::conn::ConnState;
use crate::shard::recorder::ShardRecorder;
use crate::sys::{Recv, recv, segments};

impl Connections {
    /// Reads an answer, or a part of one, into the shared buffer.
    pub(in crate::shard) fn recv_answer(
        &mut self,
        recorder: &mut ShardRecorder,
        conn_idx: usize,
        wanted: usize,
        how: Recv,
    ) -> io::Result<usize> {
        let Some(socket) = &self.conns[conn_idx].socket else { return Err(io::ErrorKind::WouldBlock.into()) };
        let bytes = self.io.recv(&mut recorder.receive_times, socket, (wanted, how), &mut self.now_ns)?;
        self.note_answer(recorder, conn_idx, how, bytes, wanted);
        Ok(bytes)
    }

    /// How the next answer is to be read.
    pub(in crate::shard) fn answer_mode(&mut self, conn_idx: usize) -> Recv {
        self.drop_peeked(conn_idx);
        let conn = &self.conns[conn_idx];
        let peeks = self.origin_states[conn.origin_idx as usize].acks.peeks;
        // A peer that has closed needs no quick acknowledgement: its bytes are taken at once.
        if peeks && !conn.peer_closed && conn.state == ConnState::Open { Recv::Peek } else { Recv::Take }
    }

    /// So much of an answer was read that way.
    pub(in crate::shard) fn note_answer(
        &mut self,
        recorder: &mut ShardRecorder,
        conn_idx: usize,
        how: Recv,
        bytes: usize,
        wanted: usize,
    ) {
        self.count_received(recorder, conn_idx, bytes as u64);
        let conn = &mut self.conns[conn_idx];
        if how == Recv::Peek && bytes > 0 {
            conn.peeked_bytes = bytes as u32;
            self.turn.peeked.push(conn_idx as u32);
        }
        let token = conn.token(conn_idx);
        if let Some(socket) = &conn.socket {
            self.origin_states[conn.origin_idx as usize]
                .acks
                .note_read(token, self.now_ns, || segments(socket));
        }
        if bytes == wanted {
            // There is more, which is read next.
            self.drop_peeked(conn_idx);
        }
    }

    /// Whatever was peeked at in this turn is dropped from its socket.
    pub(in crate::shard) fn drop_all_peeked(&mut self) {
        while let Some(conn_idx) = self.turn.peeked.pop() {
            self.drop_peeked(conn_idx as usize);
        }
    }

    /// What the connection's last read has left in the socket is dropped.
    pub(in crate::shard) fn drop_peeked(&mut self, conn_idx: usize) {
        let conn = &mut self.conns[conn_idx];
        let bytes = mem::take(&mut conn.peeked_bytes) as usize;
        if bytes > 0
            && let Some(socket) = &conn.socket
        {
            // A connection that has broken meanwhile says so at its next read.
            let _ = recv(socket, &mut self.io.discard[..bytes], Recv::Drop);
        }
    }
}
