//! What starts when: users who open one connection after the other, or the arrivals of a schedule; and the slot that each gets.

use super::SessionShard;
use super::slot::{Marks, Slot, SlotState};
use crate::shard::Life;
use crate::trouble::reconnect_pause_ns;

impl SessionShard {
    /// Follows the schedule of arrivals up to now.
    pub(super) fn follow_schedule(&mut self) {
        self.opened_this_turn = 0;
        if self.life == Life::Running {
            self.release_arrivals();
        }
    }

    /// Starts users that the profile wants by now. Those that it wants no more end when their connection does.
    pub(super) fn adjust_users(&mut self) {
        let at_ns = self.now_ns.saturating_sub(self.limits.start_ns);
        for _ in 0..self.demand.missing_users(at_ns).max(0) {
            if !self.demand.take_one(at_ns) {
                return;
            }
            self.demand.add_users(1);
            self.waiting.push_back(self.now_ns);
        }
    }

    /// Takes the arrivals that are due.
    pub(super) fn release_arrivals(&mut self) {
        let at_ns = self.now_ns.saturating_sub(self.limits.start_ns);
        while let Some(due) = self.demand.pop_arrival(at_ns) {
            let intended_ns = self.limits.start_ns + due.intended_ns;
            self.demand.note_asked(due.intended_ns);
            let is_prompt = self.waiting.is_empty() && self.has_slot();
            self.waiting.push_back(intended_ns);
            self.serve_waiting();
            if is_prompt && self.waiting.is_empty() {
                let late_ns = self.now_ns.saturating_sub(self.limits.start_ns + due.exact_ns);
                self.pulse.snapshot.generator.schedule_lag.record(late_ns);
            }
        }
    }

    /// Lets the users go on whose connections have ended, and gives slots to those who wait for one.
    pub(super) fn start_next(&mut self) {
        let mut ready = std::mem::take(&mut self.ready);
        for slot_idx in ready.drain(..) {
            if self.limits.is_open_model {
                self.release(slot_idx as usize);
            } else {
                self.continue_user(slot_idx as usize);
            }
        }
        // What was added meanwhile (a connect that failed at once) is for the next turn.
        ready.append(&mut self.ready);
        self.ready = ready;
        self.serve_waiting();
    }

    /// Whether one more connection could begin.
    pub(super) fn has_slot(&self) -> bool {
        if self.prepared.conduct.is_idle && self.unsettled_count >= OPENINGS_AT_ONCE_MAX {
            return false;
        }
        !self.vacant.is_empty() || (self.slots.len() as u32) < self.limits.slot_count_max
    }

    fn serve_waiting(&mut self) {
        while self.life == Life::Running && self.opened_this_turn < OPEN_PER_TURN_MAX && self.has_slot() {
            let Some(intended_ns) = self.waiting.pop_front() else { return };
            let slot_idx = self.take_slot();
            self.live_count += 1;
            self.begin(slot_idx, intended_ns);
        }
    }

    fn take_slot(&mut self) -> usize {
        if let Some(slot_idx) = self.vacant.pop() {
            return slot_idx as usize;
        }
        if self.slots.len() == self.slots.capacity() {
            // Doubling would keep twice of what a million connections need.
            let more = (self.slots.len() / 8).max(SLOTS_AT_ONCE).min(self.limits.slot_count_max as usize);
            self.slots.reserve_exact(more);
            self.deadlines.reserve_exact(more);
        }
        self.slots.push(Slot::default());
        self.deadlines.push(u64::MAX);
        self.slots.len() - 1
    }

    /// A connection begins: at once, or after the jitter.
    fn begin(&mut self, slot_idx: usize, intended_ns: u64) {
        self.slots[slot_idx].intended_ns = intended_ns;
        match self.jitter_ns() {
            0 => self.open(slot_idx),
            jitter_ns => self.rest(slot_idx, jitter_ns),
        }
    }

    /// The slot stays its user's, and opens its connection after a pause.
    fn rest(&mut self, slot_idx: usize, pause_ns: u64) {
        self.set_deadline(slot_idx, self.now_ns + pause_ns);
    }

    /// A pause is over.
    pub(super) fn end_rest(&mut self, slot_idx: usize) {
        self.deadlines[slot_idx] = u64::MAX;
        if self.life == Life::Running {
            self.slots[slot_idx].intended_ns = self.now_ns;
            self.open(slot_idx);
        }
    }

    /// A user's next connection, after a pause where the last connect failed or what was to be kept ended soon; or the user's end.
    fn continue_user(&mut self, slot_idx: usize) {
        let at_ns = self.now_ns.saturating_sub(self.limits.start_ns);
        let is_wanted = self.life == Life::Running && self.demand.missing_users(at_ns) >= 0;
        let conduct = &self.prepared.conduct;
        if conduct.is_idle && !conduct.reopens && self.slots[slot_idx].marks.has_stood {
            // Its user stays among the live ones, so that no other takes its place.
            return self.release(slot_idx);
        }
        if !is_wanted || !self.demand.take_one(at_ns) {
            self.demand.add_users(-1);
            return self.release(slot_idx);
        }
        let failure_count = self.slots[slot_idx].failure_count;
        let pause_ns = if failure_count > 0 { reconnect_pause_ns(failure_count.into()) } else { 0 };
        match pause_ns + self.jitter_ns() {
            0 => {
                self.slots[slot_idx].intended_ns = self.now_ns;
                self.open(slot_idx);
            }
            pause_ns => self.rest(slot_idx, pause_ns),
        }
    }

    /// The slot is anyone's.
    fn release(&mut self, slot_idx: usize) {
        self.live_count -= 1;
        self.slots[slot_idx].marks = Marks::default();
        self.slots[slot_idx].failure_count = 0;
        self.vacant.push(slot_idx as u32);
    }

    /// A random time up to the jitter.
    pub(super) fn jitter_ns(&mut self) -> u64 {
        match self.prepared.conduct.jitter_ns {
            0 => 0,
            jitter_ns => self.random.next() % jitter_ns + 1,
        }
    }

    /// The course of the next connection.
    pub(super) fn next_course(&mut self) -> u32 {
        let rotation = &self.prepared.rotation;
        let course_idx = rotation[self.rotation_next];
        self.rotation_next = (self.rotation_next + 1) % rotation.len();
        course_idx
    }

    /// Whether a slot holds no connection.
    pub(super) fn is_vacant(&self, slot_idx: usize) -> bool {
        self.slots[slot_idx].state == SlotState::Vacant
    }
}

/// Connections whose opening begins in one turn of the loop: the first of them is seen to stand only after the last was begun, some
/// 13 us each.
const OPEN_PER_TURN_MAX: u32 = 16;

/// Connections to be kept that are opened at the same time, by one thread: a server's accept queue usually holds as many, and a
/// SYN that it drops comes again only after a second.
const OPENINGS_AT_ONCE_MAX: u32 = 128;

/// Slots made at once at first.
const SLOTS_AT_ONCE: usize = 256;
