//! From an empty slot to a connection that is ready: TCP connect, the TLS handshake, what is said first.

use std::io;

use squall_measure::{Cause, Phase};
use squall_wire::h1::{Decoder, RequestKind};
use squall_wire::h2::IdleClient;

use super::slot::{Marks, SlotExchange, SlotState};
use super::tls::{SessionStage, TlsSession};
use super::{PreparedSessions, SessionShard};
use crate::dial::Caller;
use crate::sys::{connection_error, monotonic_ns};
use crate::tls::EarlyData;
use crate::trouble::Trouble;

impl SessionShard {
    /// Begins to open a slot's connection.
    pub(super) fn open(&mut self, slot_idx: usize) {
        self.opened_this_turn += 1;
        let course_idx = self.next_course();
        let slot = &mut self.slots[slot_idx];
        let is_reopening = slot.marks.is_reopening;
        let is_warmup = slot.intended_ns < self.limits.warm_until_ns;
        slot.marks = Marks { is_reopening, is_warmup, ..Marks::default() };
        slot.course_idx = course_idx;
        slot.state = SlotState::Connecting;
        slot.opened_ns = self.now_ns;
        (slot.connected_ns, slot.ready_ns) = (0, 0);
        self.unsettled_count += 1;
        self.pulse.count_start(is_warmup, is_reopening);
        self.set_deadline(slot_idx, self.now_ns + self.limits.connect_timeout_ns);
        match self.dial(slot_idx, course_idx as usize) {
            Ok(true) => self.on_connected(slot_idx),
            Ok(false) => {}
            Err(error) => self.fail(slot_idx, &Trouble::io(&error, Phase::Connecting)),
        }
        self.now_ns = monotonic_ns();
    }

    /// Whether the connection stands already.
    fn dial(&mut self, slot_idx: usize, course_idx: usize) -> io::Result<bool> {
        let PreparedSessions { courses, names, conduct, .. } = &*self.prepared;
        let dial = &courses[course_idx].dial;
        let remote = self.dialer.next_remote(course_idx, dial, names);
        let caller = Caller { user: None, writes_twice: conduct.writes_twice };
        let connect = self.dialer.connect(dial, remote, caller)?;
        let slot = &mut self.slots[slot_idx];
        slot.generation = slot.generation.wrapping_add(1);
        self.poller.watch(&connect.socket, slot.token(slot_idx))?;
        slot.socket = Some(connect.socket);
        Ok(connect.done)
    }

    /// The connect has ended, one way or the other. Only a socket that is closed at once can have failed.
    pub(super) fn on_connect_event(&mut self, slot_idx: usize, is_closed: bool) {
        let Some(socket) = &self.slots[slot_idx].socket else { return };
        match if is_closed { connection_error(socket) } else { Ok(()) } {
            Ok(()) => self.on_connected(slot_idx),
            Err(error) => self.fail(slot_idx, &Trouble::io(&error, Phase::Connecting)),
        }
    }

    fn on_connected(&mut self, slot_idx: usize) {
        self.now_ns = monotonic_ns();
        let slot = &mut self.slots[slot_idx];
        slot.connected_ns = self.now_ns;
        if !self.prepared.conduct.is_idle {
            slot.failure_count = 0;
        }
        match self.begin_tls(slot_idx) {
            Ok(true) => {}
            Ok(false) => self.on_ready(slot_idx),
            Err(trouble) => self.fail(slot_idx, &trouble),
        }
    }

    /// Sends the first flight; false where no TLS is spoken.
    fn begin_tls(&mut self, slot_idx: usize) -> Result<bool, Trouble> {
        let course_idx = self.slots[slot_idx].course_idx as usize;
        let course = &self.prepared.courses[course_idx];
        let Some(name) = course.server_name.clone() else { return Ok(false) };
        let Some(configs) = &mut self.configs else { return Ok(false) };
        let (config, resumes) = configs.next();
        let lacks_ticket = resumes && configs.stock_count(&name) == 0;
        let early = course.request.as_deref().filter(|_| config.enable_early_data);
        let session = TlsSession::start(config, name, early, &mut self.io.outgoing)
            .map_err(|error| Trouble::tls(&error, Phase::TlsHandshaking))?;
        let slot = &mut self.slots[slot_idx];
        (slot.marks.resumes, slot.marks.lacks_ticket) = (resumes, lacks_ticket);
        slot.state = SlotState::Handshaking;
        slot.talk().session = Some(session);
        self.flush(slot_idx, Phase::TlsHandshaking)?;
        Ok(true)
    }

    /// The handshake is whole, or it goes on.
    pub(super) fn on_stage(&mut self, slot_idx: usize, stage: SessionStage) -> Result<(), Trouble> {
        match stage {
            SessionStage::Handshaking => self.check_handshake_size(slot_idx),
            SessionStage::Open => {
                self.count_handshake(slot_idx);
                self.check_protocol(slot_idx)?;
                self.on_ready(slot_idx);
                Ok(())
            }
            SessionStage::PeerClosed => Err(Trouble::closed(Phase::TlsHandshaking)),
        }
    }

    /// A server may not keep us busy with a handshake that has no end.
    fn check_handshake_size(&mut self, slot_idx: usize) -> Result<(), Trouble> {
        let received_bytes = self.slots[slot_idx].talk().handshake_bytes_received;
        if received_bytes <= HANDSHAKE_BYTES_MAX {
            return Ok(());
        }
        let text = format!("handshake not finished after {HANDSHAKE_BYTES_MAX} bytes");
        Err(Trouble::new(Cause::TlsProtocol, Phase::TlsHandshaking, text))
    }

    fn check_protocol(&mut self, slot_idx: usize) -> Result<(), Trouble> {
        let is_http2 =
            self.slots[slot_idx].session().is_some_and(|session| session.stream().alpn() == Some(b"h2"));
        if !self.prepared.conduct.is_http2 || is_http2 {
            return Ok(());
        }
        let text = "the server did not choose `h2`".to_owned();
        Err(Trouble::new(Cause::TlsProtocol, Phase::TlsHandshaking, text))
    }

    /// The connection stands: what is to be said first goes out.
    fn on_ready(&mut self, slot_idx: usize) {
        let slot = &mut self.slots[slot_idx];
        slot.ready_ns = self.now_ns;
        slot.marks.is_open = true;
        self.pulse.snapshot.connections_opened += 1;
        self.pulse.connections_open += 1;
        self.control.note_connected();
        if self.prepared.conduct.is_http2 {
            slot.state = SlotState::Greeting;
            // It receives what comes back, over plain TCP too.
            slot.talk();
            self.set_deadline(slot_idx, self.now_ns + self.limits.connect_timeout_ns);
            IdleClient::write_preface(&mut self.io.control);
            if let Err(trouble) = self.say_control(slot_idx) {
                self.fail(slot_idx, &trouble);
            }
            return;
        }
        self.say_first(slot_idx);
    }

    /// The request that follows, where there is one.
    pub(super) fn say_first(&mut self, slot_idx: usize) {
        let prepared = std::sync::Arc::clone(&self.prepared);
        let course = &prepared.courses[self.slots[slot_idx].course_idx as usize];
        let Some(request) = &course.request else { return self.settle_well(slot_idx) };
        self.slots[slot_idx].state = SlotState::Requesting;
        self.set_deadline(slot_idx, self.now_ns + prepared.conduct.request_timeout_ns);
        let session = self.slots[slot_idx].session();
        if session.is_some_and(|session| session.stream().early_data() == EarlyData::Accepted) {
            // It has gone out with the first flight; how long that took is the handshake's time.
            self.await_response(slot_idx);
        } else if let Err(trouble) = self.ask(slot_idx, request) {
            self.fail(slot_idx, &trouble);
        }
    }

    /// Sends an HTTP/1.1 request, whose response is awaited then.
    pub(super) fn ask(&mut self, slot_idx: usize, request: &[u8]) -> Result<(), Trouble> {
        self.await_response(slot_idx);
        self.say(slot_idx, request, Phase::Sending)?;
        let sent_ns = monotonic_ns();
        if let Some(exchange) = &mut self.slots[slot_idx].talk().exchange {
            exchange.sent_ns = sent_ns;
        }
        Ok(())
    }

    fn await_response(&mut self, slot_idx: usize) {
        let mut decoder = Decoder::new();
        decoder.begin(RequestKind::Other);
        self.slots[slot_idx].talk().exchange = Some(SlotExchange::new(decoder, self.now_ns));
    }
}

/// Certificate chains take some kilobytes; a handshake that is larger than this never ends.
const HANDSHAKE_BYTES_MAX: u64 = 256 * 1024;
