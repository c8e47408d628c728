//! Learns by trying whether another way of waiting costs less CPU than sleeping until the first answer comes.
//!
//! Which one does depends on the machine: what waking a core costs, how fast the server answers, and who else wants the
//! core. So the loop's own CPU time per response is measured in turns of some milliseconds, and wherever the way changes from one turn
//! to the next, the two are compared: costs drift, and what was measured a second ago says little. The cheaper way is used as long as
//! it does not make the users slower; the other is tried again now and then, for a turn.
//! Never: reads the clock; callers pass the time and the thread's CPU time.

use std::time::Duration;

/// A comparison of two ways to wait that never ends.
#[derive(Debug, Default)]
pub(in crate::shard) struct Trial {
    /// This turn waits the other way: it spins, or gathers.
    is_other: bool,
    /// What the turn before this one cost, where that says anything.
    before: Option<Turn>,
    compared: Comparison,
    turn_begin_ns: u64,
    turn_cpu: Duration,
    response_count: u64,
    turns_until_try: u32,
    /// Turns between tries now: more and more, while they change nothing.
    turns_between_tries: u32,
}

/// What a turn cost, in nanoseconds per response.
#[derive(Debug, Clone, Copy)]
struct Turn {
    is_other: bool,
    cpu_ns: f64,
    wall_ns: f64,
}

/// What the other way costs in proportion to sleeping: natural logarithms, means over the recent comparisons.
#[derive(Debug, Clone, Copy, Default)]
struct Comparison {
    count: u32,
    cpu: f64,
    wall: f64,
}

impl Trial {
    /// Whether this turn waits the other way.
    pub(in crate::shard) const fn is_other(&self) -> bool {
        self.is_other
    }

    pub(in crate::shard) const fn is_turn_over(&self, now_ns: u64) -> bool {
        now_ns >= self.turn_begin_ns + TURN_NS
    }

    /// Ends the turn and chooses for the next. `response_count`: responses since the run's start; `is_hindered`: the other
    /// way was not to be had in this turn, which therefore says nothing of it.
    pub(in crate::shard) fn end_turn(
        &mut self,
        now_ns: u64,
        cpu: Duration,
        response_count: u64,
        is_hindered: bool,
    ) {
        let responses = response_count - self.response_count;
        let wall_ns = now_ns - self.turn_begin_ns;
        // A turn with few responses, or one that lasted much too long, was idle or pushed off its core.
        let is_telling = responses >= RESPONSES_MIN && wall_ns < 2 * TURN_NS;
        let turn = (is_telling && !(self.is_other && is_hindered)).then(|| Turn {
            is_other: self.is_other,
            cpu_ns: cpu.saturating_sub(self.turn_cpu).as_nanos().max(1) as f64 / responses as f64,
            wall_ns: wall_ns as f64 / responses as f64,
        });
        if let (Some(before), Some(turn)) = (self.before, turn) {
            self.compare(before, turn);
        }
        self.before = turn;
        self.is_other = self.choose();
        (self.turn_begin_ns, self.turn_cpu, self.response_count) = (now_ns, cpu, response_count);
    }

    fn compare(&mut self, before: Turn, turn: Turn) {
        let (sleeping, other) = match (before.is_other, turn.is_other) {
            (false, true) => (before, turn),
            (true, false) => (turn, before),
            _ => return,
        };
        let cpu = (other.cpu_ns / sleeping.cpu_ns).ln();
        if self.compared.is_enough() && turn.is_other != self.compared.prefers_other() {
            self.note_try((cpu < 0.0) == turn.is_other);
        }
        self.compared.learn(cpu, (other.wall_ns / sleeping.wall_ns).ln());
    }

    /// A try has ended: a surprise is looked into soon, what was known already less and less often.
    fn note_try(&mut self, is_surprising: bool) {
        self.turns_between_tries = match is_surprising {
            true => TURNS_BETWEEN_TRIES_MIN,
            false => (self.turns_between_tries * 2).clamp(TURNS_BETWEEN_TRIES_MIN, TURNS_BETWEEN_TRIES_MAX),
        };
    }

    fn choose(&mut self) -> bool {
        if !self.compared.is_enough() {
            return self.before.is_some_and(|before| !before.is_other);
        }
        self.turns_until_try = self
            .turns_until_try
            .checked_sub(1)
            .unwrap_or_else(|| self.turns_between_tries.max(TURNS_BETWEEN_TRIES_MIN));
        self.compared.prefers_other() ^ (self.turns_until_try == 0)
    }
}

impl Comparison {
    fn is_enough(&self) -> bool {
        self.count >= COMPARISONS_FIRST
    }

    fn prefers_other(&self) -> bool {
        self.cpu < -CHEAPER_MIN && self.wall < SLOWER_MAX
    }

    fn learn(&mut self, cpu: f64, wall: f64) {
        self.count = self.count.saturating_add(1);
        let weight = 1.0 / f64::from(self.count.min(COMPARISONS_REMEMBERED));
        // One turn that something else disturbed must not decide.
        self.cpu += (cpu.clamp(-TELLING_MAX, TELLING_MAX) - self.cpu) * weight;
        self.wall += (wall.clamp(-TELLING_MAX, TELLING_MAX) - self.wall) * weight;
    }
}

/// Length of a turn.
const TURN_NS: u64 = 10_000_000;

/// Fewer responses than this say nothing about the cost of one.
const RESPONSES_MIN: u64 = 20;

/// Comparisons before one way is preferred; until then the ways take turns.
const COMPARISONS_FIRST: u32 = 12;

/// Comparisons that the means go back over.
const COMPARISONS_REMEMBERED: u32 = 16;

/// What a single comparison may say at most: a third more, or less.
const TELLING_MAX: f64 = 0.3;

/// How many turns the better way is used before the other is tried again: at first, and when tries have shown nothing new.
const TURNS_BETWEEN_TRIES_MIN: u32 = 15;
const TURNS_BETWEEN_TRIES_MAX: u32 = 127;

/// The other way must spare at least 2 % of the CPU time, and may cost 3 % more time per response: less can hardly be distinguished from noise.
const CHEAPER_MIN: f64 = 0.02;
const SLOWER_MAX: f64 = 0.03;

#[cfg(test)]
mod tests {
    use super::*;

    /// CPU nanoseconds per response and responses per turn.
    type Cost = (u64, u64);

    /// Runs `turn_count` turns; returns the share of them that waited the other way.
    fn share_of_other(trial: &mut Trial, from: u64, turn_count: u64, sleeping: Cost, other: Cost) -> f64 {
        let (mut cpu, mut response_count) = (trial.turn_cpu, trial.response_count);
        let mut other_count = 0;
        for turn in from..from + turn_count {
            let (cost, responses) = if trial.is_other() { other } else { sleeping };
            response_count += responses;
            cpu += Duration::from_nanos(cost * responses);
            trial.end_turn(turn * TURN_NS, cpu, response_count, false);
            other_count += u32::from(trial.is_other());
        }
        f64::from(other_count) / turn_count as f64
    }

    #[test]
    fn the_cheaper_way_is_used_nearly_always() {
        assert!(share_of_other(&mut Trial::default(), 1, 1_000, (9_000, 1_000), (5_000, 1_000)) > 0.9);
        assert!(share_of_other(&mut Trial::default(), 1, 1_000, (5_000, 1_000), (9_000, 1_000)) < 0.1);
    }

    #[test]
    fn a_cheaper_way_that_slows_the_users_is_not_used() {
        assert!(share_of_other(&mut Trial::default(), 1, 1_000, (9_000, 1_000), (5_000, 900)) < 0.1);
    }

    #[test]
    fn costs_that_rise_for_both_ways_change_nothing() {
        let mut trial = Trial::default();
        share_of_other(&mut trial, 1, 200, (5_000, 1_000), (6_000, 1_000));
        let risen = |turn: u64| (5_000 + turn * 10, 1_000);
        let share = (201..1_201).map(|turn| {
            let (cpu, responses) = risen(turn - 200);
            share_of_other(&mut trial, turn, 1, (cpu, responses), (cpu * 6 / 5, responses))
        });
        assert!(share.sum::<f64>() / 1_000.0 < 0.1);
    }

    #[test]
    fn a_way_that_has_become_cheaper_is_found() {
        let mut trial = Trial::default();
        share_of_other(&mut trial, 1, 200, (5_000, 1_000), (9_000, 1_000));
        share_of_other(&mut trial, 201, 200, (9_000, 1_000), (5_000, 1_000));
        assert!(share_of_other(&mut trial, 401, 100, (9_000, 1_000), (5_000, 1_000)) > 0.9);
    }

    #[test]
    fn turns_in_which_the_other_way_was_not_to_be_had_say_nothing_of_it() {
        let mut trial = Trial::default();
        share_of_other(&mut trial, 1, 200, (9_000, 1_000), (5_000, 1_000));
        let learned = trial.compared.count;
        for turn in 201..301 {
            let (cpu, response_count) =
                (trial.turn_cpu + Duration::from_millis(9), trial.response_count + 1_000);
            trial.end_turn(turn * TURN_NS, cpu, response_count, true);
        }
        assert_eq!(trial.compared.count, learned);
    }

    #[test]
    fn turns_without_responses_teach_nothing() {
        assert_eq!(share_of_other(&mut Trial::default(), 1, 100, (0, 0), (0, 0)), 0.0);
    }
}
