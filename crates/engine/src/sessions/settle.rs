//! How each connection ends as an attempt: exactly once, as a success, a failure with one cause, or interrupted. And its handshake.

use squall_measure::{Cause, FailureExample, Outcome, Phase, Phases, Sample, Sessions, Terms};
use squall_plan::limits::RECONNECT_PAUSE_MAX;
use squall_wire::h1::Response;

use super::SessionShard;
use super::keep::Loss;
use super::slot::{Marks, Slot, SlotState};
use crate::shard::Life;
use crate::sys::nanoseconds;
use crate::tls::{Agreement, EarlyData};
use crate::trouble::{Trouble, time_limit};

/// Terms that were seen, so that no text is made for each handshake.
#[derive(Debug, Default)]
pub(super) struct TermsCache(Vec<(Agreement, Terms)>);

impl TermsCache {
    fn of(&mut self, agreement: &Agreement) -> &Terms {
        let place = self.0.iter().position(|(known, _)| known == agreement).unwrap_or_else(|| {
            self.0.truncate(TERMS_CACHED_MAX);
            self.0.push((agreement.clone(), agreement.terms()));
            self.0.len() - 1
        });
        &self.0[place].1
    }
}

impl SessionShard {
    /// Counts a whole handshake.
    pub(super) fn count_handshake(&mut self, slot_idx: usize) {
        let slot = &mut self.slots[slot_idx];
        let Some(talk) = &mut slot.talk else { return };
        let Some(session) = talk.session.as_ref().filter(|_| !slot.marks.is_warmup) else { return };
        let Some(agreement) = session.stream().agreement() else { return };
        let early_data = session.stream().early_data();
        let took_ns = self.now_ns.saturating_sub(slot.connected_ns);
        let Sessions { handshakes, .. } = &mut **self.pulse.snapshot.sessions.get_or_insert_default();
        match agreement.is_resumed() {
            true => {
                handshakes.resumed += 1;
                handshakes.resumed_time.record(took_ns);
            }
            false => {
                handshakes.full += 1;
                handshakes.full_time.record(took_ns);
            }
        }
        handshakes.early_data_accepted += u64::from(early_data == EarlyData::Accepted);
        handshakes.early_data_rejected += u64::from(early_data == EarlyData::Rejected);
        handshakes.hello_retries += u64::from(agreement.was_retried());
        handshakes.without_ticket += u64::from(slot.marks.lacks_ticket);
        handshakes.bytes_sent += talk.handshake_bytes_sent;
        handshakes.bytes_received += talk.handshake_bytes_received;
        let terms = self.terms.of(agreement);
        if !handshakes.count_terms(|known| known == terms) {
            handshakes.add_terms(terms, 1);
        }
    }

    /// The connection has done what it was opened for.
    pub(super) fn settle_well(&mut self, slot_idx: usize) {
        self.settle(slot_idx, 0, Outcome::Ok);
        self.stay_or_close(slot_idx);
    }

    /// So has one that got its response.
    pub(super) fn settle_response(&mut self, slot_idx: usize, response: Response) {
        self.settle(slot_idx, response.status, Outcome::Ok);
        self.slots[slot_idx].talk().exchange = None;
        match response.keep_alive {
            true => self.stay_or_close(slot_idx),
            false => self.close_with_server(slot_idx),
        }
    }

    /// Something went wrong with a connection.
    pub(super) fn on_trouble(&mut self, slot_idx: usize, trouble: &Trouble) {
        let slot = &self.slots[slot_idx];
        match slot.state {
            SlotState::Vacant => {}
            SlotState::Kept if trouble.cause == Cause::ConnectionReset => self.lose(slot_idx, Loss::Reset),
            SlotState::Kept => self.lose(slot_idx, Loss::Broken),
            SlotState::AwaitingTicket => self.vacate(slot_idx),
            _ => self.fail(slot_idx, trouble),
        }
    }

    /// The attempt has failed.
    pub(super) fn fail(&mut self, slot_idx: usize, trouble: &Trouble) {
        let slot = &mut self.slots[slot_idx];
        if slot.state == SlotState::Connecting {
            slot.failure_count = slot.failure_count.saturating_add(1);
        }
        if !slot.marks.is_open {
            self.control.note_connect_failure();
            if trouble.cause == Cause::OutOfResources {
                self.control.note_own_failure();
            }
        }
        if !self.slots[slot_idx].marks.is_warmup {
            self.keep_example(slot_idx, trouble);
        }
        self.settle(slot_idx, 0, Outcome::Failed(trouble.cause, trouble.phase));
        if trouble.cause == Cause::UnexpectedStatus {
            self.count_refused(slot_idx);
        }
        self.vacate(slot_idx);
    }

    fn keep_example(&mut self, slot_idx: usize, trouble: &Trouble) {
        let Trouble { cause, phase, text, .. } = trouble;
        if !self.pulse.snapshot.failures.wants_example(*cause, *phase) {
            return;
        }
        let text = if text.is_empty() { self.describe(*cause) } else { text.clone() };
        let course = &self.prepared.courses[self.slots[slot_idx].course_idx as usize];
        let url = self.prepared.rows[course.row_idx as usize].url.clone();
        let at_ns = self.now_ns.saturating_sub(self.limits.start_ns);
        self.pulse.snapshot.failures.set_example(*cause, *phase, FailureExample { at_ns, url, text });
    }

    fn describe(&self, cause: Cause) -> String {
        match cause {
            Cause::ConnectTimeout => {
                format!("no open connection within {}", time_limit(self.limits.connect_timeout_ns))
            }
            Cause::Timeout => {
                format!(
                    "no complete response within {}",
                    time_limit(self.prepared.conduct.request_timeout_ns)
                )
            }
            _ => String::new(),
        }
    }

    /// A state has lasted too long, or long enough.
    pub(super) fn on_deadline(&mut self, slot_idx: usize) {
        let timeout = |cause, phase| Trouble::new(cause, phase, String::new());
        self.deadlines[slot_idx] = u64::MAX;
        match self.slots[slot_idx].state {
            SlotState::Vacant => self.end_rest(slot_idx),
            SlotState::Connecting => self.fail(slot_idx, &timeout(Cause::ConnectTimeout, Phase::Connecting)),
            SlotState::Handshaking => {
                self.fail(slot_idx, &timeout(Cause::ConnectTimeout, Phase::TlsHandshaking));
            }
            SlotState::Greeting | SlotState::Requesting => {
                let phase = self.phase(slot_idx);
                self.fail(slot_idx, &timeout(Cause::Timeout, phase));
            }
            SlotState::AwaitingTicket => {
                self.ticketless_count += 1;
                self.finish(slot_idx);
            }
            SlotState::Kept => self.end_keep(slot_idx),
        }
    }

    /// The run is cut off: what is not settled is counted as interrupted.
    pub(super) fn interrupt_all(&mut self) {
        self.life = Life::Draining { until_ns: 0 };
        self.waiting.clear();
        for slot_idx in 0..self.slots.len() {
            if !self.slots[slot_idx].marks.is_settled && !self.is_vacant(slot_idx) {
                self.settle(slot_idx, 0, Outcome::Interrupted);
                self.vacate(slot_idx);
            }
        }
    }

    fn settle(&mut self, slot_idx: usize, status: u16, outcome: Outcome) {
        let slot = &mut self.slots[slot_idx];
        if slot.marks.is_settled {
            return;
        }
        slot.marks.is_settled = true;
        self.unsettled_count -= 1;
        if !slot.marks.is_warmup {
            let sample = self.sample(slot_idx, status, outcome);
            self.pulse.snapshot.record_session(&sample);
        }
    }

    fn sample(&self, slot_idx: usize, status: u16, outcome: Outcome) -> Sample {
        let slot = &self.slots[slot_idx];
        let course = &self.prepared.courses[slot.course_idx as usize];
        let phases = phases(slot, self.now_ns, self.prepared.tls.is_some());
        let exchange = slot.talk.as_ref().and_then(|talk| talk.exchange.as_ref());
        let request_bytes = course.request.as_ref().map_or(0, |request| request.len() as u64);
        Sample {
            row_idx: course.row_idx,
            status,
            outcome,
            latency_ns: match self.limits.is_open_model {
                true => self.now_ns.saturating_sub(slot.intended_ns),
                false => phases.total_ns() - phases.blocked_ns,
            },
            phases,
            bytes_sent: exchange.map_or(0, |_| request_bytes),
            bytes_received: exchange.map_or(0, |exchange| exchange.received_bytes),
        }
    }

    /// Empties the slot; its user goes on in the next turn.
    pub(super) fn vacate(&mut self, slot_idx: usize) {
        let slot = &mut self.slots[slot_idx];
        if slot.state == SlotState::Vacant {
            return;
        }
        self.pulse.connections_open -= u64::from(slot.marks.is_open);
        let (failure_count, marks) = match self.prepared.conduct.is_idle {
            true => after_idle(slot, self.now_ns),
            false => (slot.failure_count, Marks::default()),
        };
        // `socket` and `talk` are dropped here; a new generation makes events of the old socket strangers.
        *slot = Slot { generation: slot.generation.wrapping_add(1), failure_count, marks, ..Slot::default() };
        self.deadlines[slot_idx] = u64::MAX;
        self.ready.push(slot_idx as u32);
    }
}

/// What the next connection of a place has to know of one that was to be kept: a server that ends all soon must not be flooded.
fn after_idle(slot: &Slot, now_ns: u64) -> (u16, Marks) {
    let has_stood = slot.state != SlotState::Connecting;
    let was_kept_long = slot.state == SlotState::Kept
        && now_ns.saturating_sub(slot.ready_ns) >= nanoseconds(RECONNECT_PAUSE_MAX);
    let failure_count = match (has_stood, was_kept_long) {
        // A failed connect is counted already.
        (false, _) => slot.failure_count,
        (true, true) => 0,
        (true, false) => slot.failure_count.saturating_add(1),
    };
    (failure_count, Marks { is_reopening: slot.marks.is_reopening, has_stood, ..Marks::default() })
}

/// The phases up to now. A time that was never reached gives an empty phase.
fn phases(slot: &Slot, now_ns: u64, is_tls: bool) -> Phases {
    let or = |time_ns: u64, later_ns: u64| if time_ns == 0 { later_ns } else { time_ns };
    let connected_ns = or(slot.connected_ns, now_ns);
    let ready_ns = or(slot.ready_ns, now_ns);
    let mut phases = Phases {
        blocked_ns: slot.opened_ns.saturating_sub(slot.intended_ns),
        connecting_ns: Some(connected_ns.saturating_sub(slot.opened_ns)),
        tls_handshaking_ns: is_tls.then(|| ready_ns.saturating_sub(connected_ns)),
        ..Phases::default()
    };
    if let Some(exchange) = slot.talk.as_ref().and_then(|talk| talk.exchange.as_ref()) {
        let first_ns = or(exchange.first_ns, now_ns);
        let sent_ns = or(exchange.sent_ns, first_ns);
        phases.sending_ns = sent_ns.saturating_sub(exchange.start_ns);
        phases.waiting_ns = first_ns.saturating_sub(sent_ns);
        phases.receiving_ns = now_ns.saturating_sub(first_ns);
    }
    phases
}

/// Kinds of terms remembered: more than real servers mix.
const TERMS_CACHED_MAX: usize = 63;
