//! Learns by trying whether another way of waiting costs less CPU than sleeping until the first answer comes.
//!
//! Which one does depends on the machine: what waking a core costs, how fast the server answers, and who else wants the
//! core. So the loop's own CPU time per response is measured with either way, in turns of some milliseconds, and the
//! cheaper one is used as long as it does not make the users slower; the other is tried again now and then.
//! Never: reads the clock; callers pass the time and the thread's CPU time.

use std::time::Duration;

/// A comparison of two ways to wait that never ends.
#[derive(Debug, Default)]
pub(super) struct Trial {
    /// This turn waits the other way: it spins, or gathers.
    is_other: bool,
    /// What is known of sleeping, and of the other way.
    ways: [Way; 2],
    turn_begin_ns: u64,
    turn_cpu: Duration,
    response_count: u64,
    turns_until_try: u32,
    /// Turns between tries now: more and more, while they change nothing.
    turns_between_tries: u32,
}

/// Means over the recent turns of one way, in nanoseconds per response.
#[derive(Debug, Clone, Copy, Default)]
struct Way {
    turn_count: u32,
    cpu_ns: f64,
    wall_ns: f64,
}

impl Trial {
    /// Whether this turn waits the other way.
    pub(super) const fn is_other(&self) -> bool {
        self.is_other
    }

    pub(super) const fn is_turn_over(&self, now_ns: u64) -> bool {
        now_ns >= self.turn_begin_ns + TURN_NS
    }

    /// Ends the turn and chooses for the next. `response_count`: responses since the run's start; `is_hindered`: the other
    /// way was not to be had in this turn, which therefore says nothing of it.
    pub(super) fn end_turn(&mut self, now_ns: u64, cpu: Duration, response_count: u64, is_hindered: bool) {
        let responses = response_count - self.response_count;
        let wall_ns = now_ns - self.turn_begin_ns;
        // A turn with few responses, or one that lasted much too long, was idle or pushed off its core.
        let is_telling = responses >= RESPONSES_MIN && wall_ns < 2 * TURN_NS;
        if is_telling && !(self.is_other && is_hindered) {
            let cpu_ns = cpu.saturating_sub(self.turn_cpu).as_nanos() as f64 / responses as f64;
            let way = usize::from(self.is_other);
            self.note_try(cpu_ns < self.ways[1 - way].cpu_ns);
            self.ways[way].learn(cpu_ns, wall_ns as f64 / responses as f64);
        }
        self.is_other = self.choose();
        (self.turn_begin_ns, self.turn_cpu, self.response_count) = (now_ns, cpu, response_count);
    }

    /// Where the turn that ends was a try: a surprise is looked into soon, what was known already less and less often.
    fn note_try(&mut self, is_surprising: bool) {
        let is_compared = self.ways.iter().all(|way| way.turn_count >= TURNS_FIRST);
        if is_compared && self.turns_until_try == 0 {
            self.turns_between_tries = match is_surprising {
                true => TURNS_BETWEEN_TRIES_MIN,
                false => {
                    (self.turns_between_tries * 2).clamp(TURNS_BETWEEN_TRIES_MIN, TURNS_BETWEEN_TRIES_MAX)
                }
            };
        }
    }

    fn choose(&mut self) -> bool {
        let [sleeping, other] = self.ways;
        if other.turn_count < TURNS_FIRST || sleeping.turn_count < TURNS_FIRST {
            return other.turn_count < sleeping.turn_count;
        }
        let is_better = other.cpu_ns < sleeping.cpu_ns && other.wall_ns < sleeping.wall_ns * SLOWER_MAX;
        self.turns_until_try = self
            .turns_until_try
            .checked_sub(1)
            .unwrap_or_else(|| self.turns_between_tries.max(TURNS_BETWEEN_TRIES_MIN));
        is_better ^ (self.turns_until_try == 0)
    }
}

impl Way {
    fn learn(&mut self, cpu_ns: f64, wall_ns: f64) {
        self.turn_count = self.turn_count.saturating_add(1);
        let weight = 1.0 / f64::from(self.turn_count.min(TURNS_REMEMBERED));
        self.cpu_ns += (cpu_ns - self.cpu_ns) * weight;
        self.wall_ns += (wall_ns - self.wall_ns) * weight;
    }
}

/// Length of a turn.
const TURN_NS: u64 = 10_000_000;

/// Fewer responses than this say nothing about the cost of one.
const RESPONSES_MIN: u64 = 20;

/// Turns of each way before they are compared.
const TURNS_FIRST: u32 = 3;

/// Turns that the means go back over.
const TURNS_REMEMBERED: u32 = 8;

/// How many turns the better way is used before the other is tried again: at first, and when tries have told nothing new.
const TURNS_BETWEEN_TRIES_MIN: u32 = 15;
const TURNS_BETWEEN_TRIES_MAX: u32 = 127;

/// The other way may cost this much more time per response: less can hardly be told from noise.
const SLOWER_MAX: f64 = 1.03;

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
        let learned = trial.ways[1].cpu_ns;
        for turn in 201..301 {
            let (cpu, response_count) =
                (trial.turn_cpu + Duration::from_millis(9), trial.response_count + 1_000);
            trial.end_turn(turn * TURN_NS, cpu, response_count, true);
        }
        assert_eq!(trial.ways[1].cpu_ns, learned);
    }

    #[test]
    fn turns_without_responses_teach_nothing() {
        assert_eq!(share_of_other(&mut Trial::default(), 1, 100, (0, 0), (0, 0)), 0.0);
    }
}
