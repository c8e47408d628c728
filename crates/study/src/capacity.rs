//! The search for the highest rate that still meets the objectives: grow, bisect, confirm. A machine without a clock: it asks for
//! probes and takes their outcomes.
//!
//! The answer is the rate at which a probe holds as often as not, as an interval: its lower end held, and its upper end failed, in so
//! many independent probes that a true limit beyond either end would have done that in less than 1 of 20 searches.

/// Where the search may go.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Config {
    /// Rate of the first probe, per second.
    pub start_per_s: f64,
    /// No probe exceeds this.
    pub rate_max_per_s: f64,
    /// How close the ends of the bracket come before they are confirmed: upper over lower, above 1.
    pub resolution: f64,
    /// Most probes in all.
    pub probe_count_max: u32,
}

/// What a probe showed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Every objective was met.
    Holds,
    /// One was missed.
    Fails,
    /// The generator was not fit to tell.
    Void,
}

/// What to do next.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Step {
    /// Try this rate.
    Probe {
        /// Requests per second.
        rate_per_s: f64,
        /// What the probe is for.
        stage: Stage,
    },
    /// The search is over.
    Done(Answer),
}

/// What a probe is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Doubling until one fails, or halving until one holds.
    Grow,
    /// Halving the gap between the highest that held and the lowest that failed.
    Bisect,
    /// Repeating at both ends.
    Confirm,
}

/// What was found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Answer {
    /// The limit lies between these, with 95 % confidence.
    Between {
        /// Held every time.
        low_per_s: f64,
        /// Failed every time.
        high_per_s: f64,
    },
    /// The objectives were met up to here, the highest rate allowed.
    NeverMissed {
        /// The highest rate that held.
        rate_per_s: f64,
    },
    /// The objectives were met at no rate.
    NeverMet {
        /// The lowest rate tried.
        rate_per_s: f64,
    },
    /// The generator could not go beyond this: the limit is not lower than the highest that held.
    GeneratorLimit {
        /// The highest rate that held, if any did.
        low_per_s: Option<f64>,
        /// The rate that the generator could not make.
        rate_per_s: f64,
    },
    /// The user ended the search.
    Stopped {
        /// The highest rate that held, if any did.
        low_per_s: Option<f64>,
        /// The lowest rate that failed, if any did.
        high_per_s: Option<f64>,
    },
    /// Most probes were used up before both ends were confirmed; the limit seems to move.
    Unsettled {
        /// The highest rate that mostly held, if any did.
        low_per_s: Option<f64>,
        /// The lowest rate that mostly failed, if any did.
        high_per_s: Option<f64>,
    },
}

/// The search.
#[derive(Debug, Clone)]
pub struct Search {
    config: Config,
    low: Option<End>,
    high: Option<End>,
    asked: Option<(f64, Stage)>,
    probe_count: u32,
    void_count: u32,
    next_end: Side,
    is_confirming: bool,
}

/// An end of the bracket: its rate, and how often it was confirmed.
#[derive(Debug, Clone, Copy)]
struct End {
    rate_per_s: f64,
    confirmed_count: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Low,
    High,
}

impl Search {
    /// A search that has tried nothing yet.
    pub fn new(config: Config) -> Self {
        Self {
            config,
            low: None,
            high: None,
            asked: None,
            probe_count: 0,
            void_count: 0,
            next_end: Side::Low,
            is_confirming: false,
        }
    }

    /// What to do next. Asks for the same probe until [`tell`](Self::tell) was called.
    pub fn step(&mut self) -> Step {
        match self.answer() {
            Some(answer) => Step::Done(answer),
            None => {
                let (rate_per_s, stage) = self.choose();
                self.asked = Some((rate_per_s, stage));
                Step::Probe { rate_per_s, stage }
            }
        }
    }

    /// What is known so far, for a search that ends early.
    pub fn stop(&self) -> Answer {
        let (low, high) = self.ends();
        Answer::Stopped { low_per_s: low, high_per_s: high }
    }

    /// Records what the requested probe showed.
    pub fn tell(&mut self, outcome: Outcome) {
        let Some((rate_per_s, stage)) = self.asked.take() else { return };
        self.probe_count += 1;
        self.void_count = if outcome == Outcome::Void { self.void_count + 1 } else { 0 };
        match (stage, outcome) {
            (_, Outcome::Void) => self.asked = Some((rate_per_s, stage)),
            (Stage::Confirm, _) => {
                self.is_confirming = true;
                self.confirm(outcome);
            }
            (_, Outcome::Holds) => self.low = Some(End::new(rate_per_s)),
            (_, Outcome::Fails) => self.high = Some(End::new(rate_per_s)),
        }
    }

    fn answer(&self) -> Option<Answer> {
        let (low, high) = self.ends();
        if self.void_count >= VOID_COUNT_MAX {
            let rate_per_s = self.asked.map_or(self.config.start_per_s, |(rate_per_s, _)| rate_per_s);
            return Some(Answer::GeneratorLimit { low_per_s: low, rate_per_s });
        }
        if self.probe_count >= self.config.probe_count_max {
            return Some(Answer::Unsettled { low_per_s: low, high_per_s: high });
        }
        match (self.low, self.high) {
            (Some(low), None) if low.rate_per_s >= self.config.rate_max_per_s => {
                Some(Answer::NeverMissed { rate_per_s: low.rate_per_s })
            }
            (None, Some(high)) if high.rate_per_s <= RATE_MIN_PER_S => {
                Some(Answer::NeverMet { rate_per_s: high.rate_per_s })
            }
            (Some(low), Some(high)) if low.is_sure() && high.is_sure() => {
                Some(Answer::Between { low_per_s: low.rate_per_s, high_per_s: high.rate_per_s })
            }
            _ => None,
        }
    }

    /// The highest rate that held and the lowest that failed, as far as there are any.
    fn ends(&self) -> (Option<f64>, Option<f64>) {
        (self.low.map(|end| end.rate_per_s), self.high.map(|end| end.rate_per_s))
    }

    fn choose(&self) -> (f64, Stage) {
        if let Some(asked) = self.asked {
            return asked;
        }
        match (self.low, self.high) {
            (None, None) => (self.config.start_per_s.min(self.config.rate_max_per_s), Stage::Grow),
            (Some(low), None) => ((low.rate_per_s * 2.0).min(self.config.rate_max_per_s), Stage::Grow),
            (None, Some(high)) => ((high.rate_per_s / 2.0).max(RATE_MIN_PER_S), Stage::Grow),
            (Some(low), Some(high)) if high.rate_per_s / low.rate_per_s > self.gap_max() => {
                ((low.rate_per_s * high.rate_per_s).sqrt(), Stage::Bisect)
            }
            (Some(low), Some(high)) => match self.next_end {
                Side::Low if !low.is_sure() || high.is_sure() => (low.rate_per_s, Stage::Confirm),
                _ => (high.rate_per_s, Stage::Confirm),
            },
        }
    }

    /// While ends are confirmed they may drift apart a little: to halve that gap again would begin the search anew for ever where
    /// outcomes near the limit are chance.
    fn gap_max(&self) -> f64 {
        if self.is_confirming { self.config.resolution.powi(4) } else { self.config.resolution }
    }

    /// An end that does not do again what it did moves away from the other one, and begins anew.
    fn confirm(&mut self, outcome: Outcome) {
        let (Some(low), Some(high)) = (&mut self.low, &mut self.high) else { return };
        let side = if self.next_end == Side::Low && (!low.is_sure() || high.is_sure()) {
            Side::Low
        } else {
            Side::High
        };
        match (side, outcome) {
            (Side::Low, Outcome::Holds) => low.confirmed_count += 1,
            (Side::High, Outcome::Fails) => high.confirmed_count += 1,
            (Side::Low, _) => *low = End::new(low.rate_per_s / self.config.resolution),
            (Side::High, _) => {
                *high = End::new((high.rate_per_s * self.config.resolution).min(self.config.rate_max_per_s));
            }
        }
        self.next_end =
            if side == Side::Low && !self.high.is_some_and(End::is_sure) { Side::High } else { Side::Low };
    }
}

impl End {
    /// The probe that made it an end is not counted: it was chosen for what it showed.
    fn new(rate_per_s: f64) -> Self {
        Self { rate_per_s, confirmed_count: 0 }
    }

    fn is_sure(self) -> bool {
        self.confirmed_count >= CONFIRM_COUNT
    }
}

/// At the true limit each probe is as a thrown coin; five in a row are 1 of 32.
const CONFIRM_COUNT: u32 = 5;

/// A generator that fails so often in a row will fail again.
const VOID_COUNT_MAX: u32 = 3;

/// Below this there is nothing to call a capacity.
const RATE_MIN_PER_S: f64 = 1.0;
