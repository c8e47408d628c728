//! Connections that stay: parked, pinged, lost, closed.

use squall_measure::{Kept, Phase};
use squall_plan::CloseMode;

use super::SessionShard;
use super::slot::{Goodbye, SlotState};
use crate::sys::{reset_on_close, send};
use crate::trouble::Trouble;

/// How a kept connection was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Loss {
    /// The server closed it in order.
    Closed,
    /// It was reset.
    Reset,
    /// It broke the protocol, or did not answer.
    Broken,
}

impl SessionShard {
    /// A connection that has done what it was opened for is closed, or stays.
    pub(super) fn stay_or_close(&mut self, slot_idx: usize) {
        if self.wants_ticket(slot_idx) {
            self.slots[slot_idx].state = SlotState::AwaitingTicket;
            return self.set_deadline(slot_idx, self.now_ns + TICKET_WAIT_NS);
        }
        self.finish(slot_idx);
    }

    /// It is closed, or kept.
    pub(super) fn finish(&mut self, slot_idx: usize) {
        match self.prepared.conduct.keep_ns {
            0 => self.close(slot_idx),
            _ => self.keep(slot_idx),
        }
    }

    /// Whether a ticket is to be waited for: TLS 1.3 sends it after the handshake.
    fn wants_ticket(&mut self, slot_idx: usize) -> bool {
        if self.ticketless_count >= TICKETLESS_COUNT_MAX || self.prepared.conduct.resumption.ratio == 0.0 {
            return false;
        }
        let slot = &mut self.slots[slot_idx];
        let course_idx = slot.course_idx as usize;
        if !slot.session().is_some_and(|session| session.awaits_tickets()) {
            return false;
        }
        let name = self.prepared.courses[course_idx].server_name.as_ref();
        let stock = self.configs.as_ref().zip(name).map(|(configs, name)| configs.stock_count(name));
        stock.is_some_and(|count| count < self.limits.slot_count_max as usize)
    }

    /// Goes on when the ticket is there.
    pub(super) fn look_for_ticket(&mut self, slot_idx: usize) {
        let slot = &mut self.slots[slot_idx];
        let has_come = slot.session().is_some_and(|session| session.stream().ticket_count() > 0);
        if slot.state == SlotState::AwaitingTicket && has_come {
            self.ticketless_count = 0;
            self.finish(slot_idx);
        }
    }

    fn keep(&mut self, slot_idx: usize) {
        let slot = &mut self.slots[slot_idx];
        slot.state = SlotState::Kept;
        let ready_ns = slot.ready_ns;
        self.count_opened(slot_idx);
        match self.prepared.conduct.keep_ns {
            u64::MAX => self.set_next_ping(slot_idx),
            keep_ns => self.set_deadline(slot_idx, ready_ns + keep_ns),
        }
        self.park(slot_idx);
    }

    /// What takes its place later is a reopening.
    fn count_opened(&mut self, slot_idx: usize) {
        let is_reopening = std::mem::replace(&mut self.slots[slot_idx].marks.is_reopening, true);
        let kept = self.kept();
        kept.opened += 1;
        kept.reopened += u64::from(is_reopening);
    }

    /// The server closes with its answer: what was to be kept was open, and is lost.
    pub(super) fn close_with_server(&mut self, slot_idx: usize) {
        if !self.prepared.conduct.is_idle {
            return self.close(slot_idx);
        }
        self.count_opened(slot_idx);
        self.say_goodbye(slot_idx);
        self.lose(slot_idx, Loss::Closed);
    }

    /// The answer is none that a connection is kept for: it was open, and is ours to close.
    pub(super) fn count_refused(&mut self, slot_idx: usize) {
        if self.prepared.conduct.is_idle {
            self.count_opened(slot_idx);
            self.kept().closed_by_us += 1;
        }
    }

    /// Where nothing is said any more, only what closes the connection is kept: sealed now, while the session is there.
    fn park(&mut self, slot_idx: usize) {
        let conduct = &self.prepared.conduct;
        let slot = &mut self.slots[slot_idx];
        let is_busy = slot.talk.as_ref().is_some_and(|talk| !talk.unsent.is_empty());
        if is_busy || conduct.ping_ns.is_some() || conduct.is_http2 {
            return;
        }
        if slot.session().is_none() {
            slot.talk = None;
        } else if conduct.parks {
            if conduct.close == CloseMode::Notify {
                slot.goodbye = sealed_goodbye(slot.session().map(|session| session.goodbye_record()));
            }
            slot.talk = None;
        }
    }

    fn set_next_ping(&mut self, slot_idx: usize) {
        match self.prepared.conduct.ping_ns {
            None => self.deadlines[slot_idx] = u64::MAX,
            Some(ping_ns) => {
                let at_ns = self.now_ns.saturating_add(ping_ns).saturating_add(self.jitter_ns());
                self.set_deadline(slot_idx, at_ns);
            }
        }
    }

    /// A kept connection's time is over: it is pinged, or its ping was not answered, or it was held long enough.
    pub(super) fn end_keep(&mut self, slot_idx: usize) {
        let conduct = self.prepared.conduct;
        let is_asked = self.slots[slot_idx].talk.as_ref().is_some_and(|talk| talk.exchange.is_some());
        match conduct.keep_ns {
            u64::MAX if is_asked => self.lose(slot_idx, Loss::Broken),
            u64::MAX => self.ping(slot_idx),
            _ => {
                self.kept().closed_by_us += 1;
                self.close(slot_idx);
            }
        }
    }

    fn ping(&mut self, slot_idx: usize) {
        let prepared = std::sync::Arc::clone(&self.prepared);
        let course = &prepared.courses[self.slots[slot_idx].course_idx as usize];
        let Some(bytes) = &course.ping else { return };
        let said = match prepared.conduct.awaits_pong {
            true => self.ask(slot_idx, bytes),
            false => self.say(slot_idx, bytes, Phase::Sending),
        };
        self.kept().pings += 1;
        match said {
            Err(trouble) => self.on_trouble(slot_idx, &trouble),
            Ok(()) if prepared.conduct.awaits_pong => {
                self.set_deadline(slot_idx, self.now_ns + prepared.conduct.pong_timeout_ns);
            }
            Ok(()) => self.set_next_ping(slot_idx),
        }
    }

    /// Our ping is answered.
    pub(super) fn on_pong(&mut self, slot_idx: usize) {
        let Some(talk) = &mut self.slots[slot_idx].talk else { return };
        let Some(exchange) = talk.exchange.take() else { return };
        let took_ns = self.now_ns.saturating_sub(exchange.start_ns);
        self.kept().ping_time.record(took_ns);
        self.set_next_ping(slot_idx);
    }

    /// The peer sends no more.
    pub(super) fn on_end(&mut self, slot_idx: usize, phase: Phase) -> Result<(), Trouble> {
        match self.slots[slot_idx].state {
            SlotState::Kept => self.lose(slot_idx, Loss::Closed),
            SlotState::AwaitingTicket => self.close(slot_idx),
            SlotState::Requesting => {
                let talk = self.slots[slot_idx].talk();
                let ended = talk.exchange.as_mut().map(|exchange| exchange.decoder.handle_eof());
                match ended {
                    Some(Ok(response)) => return self.on_response(slot_idx, response),
                    Some(Err(error)) => return Err(Trouble::decode(&error, phase)),
                    None => return Err(Trouble::closed(phase)),
                }
            }
            _ => return Err(Trouble::closed(phase)),
        }
        Ok(())
    }

    /// A kept connection has ended, and not by us.
    pub(super) fn lose(&mut self, slot_idx: usize, loss: Loss) {
        let lived_ns = self.now_ns.saturating_sub(self.slots[slot_idx].ready_ns);
        let kept = self.kept();
        match loss {
            Loss::Closed => kept.closed_by_server += 1,
            Loss::Reset => kept.reset += 1,
            Loss::Broken => kept.broken += 1,
        }
        kept.lifetime.record(lived_ns);
        self.vacate(slot_idx);
    }

    /// Closes a connection from our side, as the plan wants it.
    pub(super) fn close(&mut self, slot_idx: usize) {
        self.say_goodbye(slot_idx);
        self.vacate(slot_idx);
    }

    /// What goes before the close. Whether the peer still hears it is of no importance.
    fn say_goodbye(&mut self, slot_idx: usize) {
        let slot = &mut self.slots[slot_idx];
        let Some(socket) = &slot.socket else { return };
        match self.prepared.conduct.close {
            CloseMode::Rst => {
                let _ = reset_on_close(socket);
            }
            CloseMode::Fin => {}
            CloseMode::Notify => {
                if let Some(goodbye) = &slot.goodbye {
                    let _ = send(socket, &goodbye.bytes[..usize::from(goodbye.len)], false);
                } else if let Some(session) = slot.session() {
                    let record = session.goodbye_record();
                    self.io.outgoing.extend_from_slice(&record);
                    let _ = self.flush(slot_idx, Phase::Receiving);
                }
            }
        }
    }

    /// At the run's end all that is kept is ours to close: counted before the last figures go out.
    pub(super) fn count_farewells(&mut self) {
        let count = self.slots.iter().filter(|slot| slot.state == SlotState::Kept).count() as u64;
        if count > 0 {
            self.kept().closed_by_us += count;
        }
    }

    /// Closes all connections.
    pub(super) fn close_all(&mut self) {
        for slot_idx in 0..self.slots.len() {
            self.say_goodbye(slot_idx);
        }
        self.slots.clear();
    }

    fn kept(&mut self) -> &mut Kept {
        &mut self.pulse.snapshot.sessions.get_or_insert_default().kept
    }
}

fn sealed_goodbye(record: Option<Vec<u8>>) -> Option<Box<Goodbye>> {
    let record = record.filter(|record| !record.is_empty())?;
    let mut goodbye = Goodbye { len: record.len() as u8, bytes: [0; 31] };
    goodbye.bytes.get_mut(..record.len())?.copy_from_slice(&record);
    Some(Box::new(goodbye))
}

/// How long a ticket may be on its way.
const TICKET_WAIT_NS: u64 = 250_000_000;

/// After so many handshakes without a ticket, none is waited for any more.
const TICKETLESS_COUNT_MAX: u32 = 8;
