//! Bytes out and in: what is said on a connection, and what its peer says.

use std::io;

use squall_measure::{Cause, Phase};
use squall_wire::h1::Response;
use squall_wire::h2::{self, IdleEvent};

use super::SessionShard;
use super::slot::{Slot, SlotState};
use super::tls::SessionStage;
use crate::sys::{Readiness, Recv, monotonic_ns, recv, send};
use crate::trouble::Trouble;

impl SessionShard {
    /// Works off what a socket is ready for.
    pub(super) fn handle(&mut self, event: Readiness) {
        let slot_idx = (event.token & u64::from(u32::MAX)) as usize;
        let slot = &mut self.slots[slot_idx];
        if slot.token(slot_idx) != event.token || slot.socket.is_none() {
            return;
        }
        slot.marks.peer_closed |= event.closed;
        if slot.state == SlotState::Connecting {
            if event.writable {
                self.on_connect_event(slot_idx, event.closed);
            }
            return;
        }
        if event.writable && slot.talk.as_ref().is_some_and(|talk| !talk.unsent.is_empty()) {
            self.send_rest(slot_idx);
        }
        if event.readable && self.slots[slot_idx].token(slot_idx) == event.token {
            self.on_readable(slot_idx);
        }
    }

    /// Reads a connection until its socket is empty, or its turn is over.
    pub(super) fn on_readable(&mut self, slot_idx: usize) {
        let generation = self.slots[slot_idx].generation;
        for _ in 0..READS_PER_TURN_MAX {
            match self.read(slot_idx) {
                Ok(true) => {}
                Ok(false) => return,
                Err(trouble) => return self.on_trouble(slot_idx, &trouble),
            }
            let slot = &self.slots[slot_idx];
            if slot.generation != generation || slot.socket.is_none() {
                return;
            }
        }
        self.unfinished.push(slot_idx as u32);
    }

    /// One read, worked off; whether the socket may have more.
    fn read(&mut self, slot_idx: usize) -> Result<bool, Trouble> {
        let phase = self.phase(slot_idx);
        let slot = &mut self.slots[slot_idx];
        let Some(socket) = &slot.socket else { return Ok(false) };
        let room = &mut self.io.incoming[..];
        let wanted = room.len();
        let count = match recv(socket, room, Recv::Take) {
            Ok(0) => return self.on_end(slot_idx, phase).map(|()| false),
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
            Err(error) => return Err(Trouble::io(&error, phase)),
        };
        self.now_ns = monotonic_ns();
        self.pulse.snapshot.wire_bytes_received += count as u64;
        let incoming = std::mem::take(&mut self.io.incoming);
        let result = match slot.session().is_some() {
            true => self.feed(slot_idx, &incoming[..count], phase),
            false => self.hear(slot_idx, &incoming[..count]),
        };
        self.io.incoming = incoming;
        result.map(|()| count == wanted || self.slots[slot_idx].marks.peer_closed)
    }

    /// Gives the TLS session what was read, and sends what it has to say.
    fn feed(&mut self, slot_idx: usize, incoming: &[u8], phase: Phase) -> Result<(), Trouble> {
        let mut plain = std::mem::take(&mut self.io.plain);
        let slot = &mut self.slots[slot_idx];
        let is_handshaking = slot.state == SlotState::Handshaking;
        let Some(talk) = &mut slot.talk else { return Ok(()) };
        if is_handshaking {
            talk.handshake_bytes_received += incoming.len() as u64;
        }
        let Some(session) = &mut talk.session else { return Ok(()) };
        let stage = session.feed(incoming, &mut self.io.outgoing, &mut plain);
        self.now_ns = monotonic_ns();
        let result = match stage {
            Ok(stage) => self.on_fed(slot_idx, stage, is_handshaking, &plain, phase),
            Err(error) => {
                // The alert to the peer goes out where that is possible; the failure is ours to count either way.
                let _ = self.flush(slot_idx, phase);
                Err(Trouble::tls(&error, phase))
            }
        };
        plain.clear();
        self.io.plain = plain;
        result
    }

    fn on_fed(
        &mut self,
        slot_idx: usize,
        stage: SessionStage,
        is_handshaking: bool,
        plain: &[u8],
        phase: Phase,
    ) -> Result<(), Trouble> {
        self.flush(slot_idx, phase)?;
        if is_handshaking {
            self.on_stage(slot_idx, stage)?;
        }
        if !plain.is_empty() {
            self.hear(slot_idx, plain)?;
        }
        if stage == SessionStage::PeerClosed && !is_handshaking {
            return self.on_end(slot_idx, phase);
        }
        self.look_for_ticket(slot_idx);
        Ok(())
    }

    /// What the peer says, decrypted.
    fn hear(&mut self, slot_idx: usize, plain: &[u8]) -> Result<(), Trouble> {
        let slot = &mut self.slots[slot_idx];
        let Some(talk) = &mut slot.talk else { return Ok(()) };
        if self.prepared.conduct.is_http2 {
            return self.hear_frames(slot_idx, plain);
        }
        let Some(exchange) = &mut talk.exchange else { return Ok(()) };
        if exchange.first_ns == 0 {
            exchange.first_ns = self.now_ns;
        }
        let progress = exchange.decoder.decode(&mut self.io.head_cache, plain, &mut ());
        let progress = progress.map_err(|error| Trouble::decode(&error, Phase::Receiving))?;
        exchange.received_bytes += progress.consumed as u64;
        match progress.response {
            Some(response) => self.on_response(slot_idx, response),
            None => Ok(()),
        }
    }

    fn hear_frames(&mut self, slot_idx: usize, mut plain: &[u8]) -> Result<(), Trouble> {
        while let Some(talk) = &mut self.slots[slot_idx].talk {
            let event = talk.idle.decode(&mut plain, &mut self.io.control);
            self.say_control(slot_idx)?;
            let broken =
                |error: h2::Error| Trouble::new(Cause::HttpProtocol, Phase::Receiving, error.text.to_owned());
            let event = event.map_err(broken)?;
            match event {
                Some(IdleEvent::Settings) if self.slots[slot_idx].state == SlotState::Greeting => {
                    self.say_first(slot_idx);
                }
                Some(IdleEvent::Settings) => {}
                Some(IdleEvent::Pong) => self.on_pong(slot_idx),
                Some(IdleEvent::GoAway) => return self.on_end(slot_idx, Phase::Receiving),
                None => return Ok(()),
            }
        }
        Ok(())
    }

    /// Sends what HTTP/2 has to say.
    pub(super) fn say_control(&mut self, slot_idx: usize) -> Result<(), Trouble> {
        if self.io.control.is_empty() {
            return Ok(());
        }
        let mut control = std::mem::take(&mut self.io.control);
        let said = self.say(slot_idx, &control, Phase::Sending);
        control.clear();
        self.io.control = control;
        said
    }

    /// A whole response: to the request that follows the handshake, or to a ping.
    pub(super) fn on_response(&mut self, slot_idx: usize, response: Response) -> Result<(), Trouble> {
        if self.slots[slot_idx].state == SlotState::Kept {
            self.on_pong(slot_idx);
            return if response.keep_alive { Ok(()) } else { self.on_end(slot_idx, Phase::Receiving) };
        }
        if !(200..400).contains(&response.status) {
            let text = format!("status {}", response.status);
            return Err(Trouble::new(Cause::UnexpectedStatus, Phase::Receiving, text));
        }
        self.settle_response(slot_idx, response);
        Ok(())
    }

    /// Sends data of ours: sealed where TLS is spoken.
    pub(super) fn say(&mut self, slot_idx: usize, bytes: &[u8], phase: Phase) -> Result<(), Trouble> {
        match self.slots[slot_idx].session() {
            Some(session) => {
                session.seal(bytes, &mut self.io.outgoing).map_err(|error| Trouble::tls(&error, phase))?;
            }
            None => self.io.outgoing.extend_from_slice(bytes),
        }
        self.flush(slot_idx, phase)
    }

    /// Sends what is in the buffer; what the socket does not take waits behind what it did not take before.
    pub(super) fn flush(&mut self, slot_idx: usize, phase: Phase) -> Result<(), Trouble> {
        if self.io.outgoing.is_empty() {
            return Ok(());
        }
        let mut outgoing = std::mem::take(&mut self.io.outgoing);
        let slot = &mut self.slots[slot_idx];
        let is_blocked = slot.talk.as_ref().is_some_and(|talk| !talk.unsent.is_empty());
        let sent = if is_blocked { Ok(0) } else { send_some(slot, &outgoing) };
        if let Ok(count) = &sent {
            self.pulse.snapshot.wire_bytes_sent += *count as u64;
            if slot.state == SlotState::Handshaking {
                slot.talk().handshake_bytes_sent += outgoing.len() as u64;
            }
            if *count < outgoing.len() {
                slot.talk().unsent.extend_from_slice(&outgoing[*count..]);
            }
        }
        outgoing.clear();
        self.io.outgoing = outgoing;
        sent.map_err(|error| Trouble::io(&error, phase))?;
        self.check_unsent(slot_idx, phase)
    }

    /// A peer that asks and asks, and does not read the answers, may not fill our memory with them.
    fn check_unsent(&self, slot_idx: usize, phase: Phase) -> Result<(), Trouble> {
        let slot = &self.slots[slot_idx];
        let count = slot.talk.as_ref().map_or(0, |talk| talk.unsent.len());
        if count <= if slot.state == SlotState::Kept { KEPT_UNSENT_BYTES_MAX } else { UNSENT_BYTES_MAX } {
            return Ok(());
        }
        let cause = if phase == Phase::TlsHandshaking { Cause::TlsProtocol } else { Cause::HttpProtocol };
        Err(Trouble::new(
            cause,
            phase,
            format!("the server has stopped reading: {count} bytes are waiting to be sent"),
        ))
    }

    /// The socket takes more.
    fn send_rest(&mut self, slot_idx: usize) {
        let phase = self.phase(slot_idx);
        let mut unsent = std::mem::take(&mut self.slots[slot_idx].talk().unsent);
        match send_some(&self.slots[slot_idx], &unsent) {
            Ok(count) => {
                self.pulse.snapshot.wire_bytes_sent += count as u64;
                unsent.drain(..count);
                self.slots[slot_idx].talk().unsent = unsent;
            }
            Err(error) => self.on_trouble(slot_idx, &Trouble::io(&error, phase)),
        }
    }

    /// Where in its life a connection is, for what may go wrong now.
    pub(super) fn phase(&self, slot_idx: usize) -> Phase {
        let slot = &self.slots[slot_idx];
        let exchange = slot.talk.as_ref().and_then(|talk| talk.exchange.as_ref());
        match slot.state {
            SlotState::Vacant | SlotState::Connecting => Phase::Connecting,
            SlotState::Handshaking => Phase::TlsHandshaking,
            SlotState::Requesting if exchange.is_some_and(|exchange| exchange.first_ns > 0) => {
                Phase::Receiving
            }
            SlotState::Requesting | SlotState::Greeting => Phase::Waiting,
            SlotState::AwaitingTicket | SlotState::Kept => Phase::Receiving,
        }
    }
}

fn send_some(slot: &Slot, bytes: &[u8]) -> io::Result<usize> {
    let Some(socket) = &slot.socket else { return Ok(bytes.len()) };
    match send(socket, bytes, false) {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(0),
        result => result,
    }
}

/// What a peer that stops reading may leave with us: our certificates, or a request.
const UNSENT_BYTES_MAX: usize = 64 * 1024;

/// And on each of many kept connections: a few pings.
const KEPT_UNSENT_BYTES_MAX: usize = 4096;

/// Reads before the other connections have their turn.
const READS_PER_TURN_MAX: usize = 16;
