//! What a stream must meet to be counted as good, in the grammar of all rules: `first<500ms,gap:p(95)<50ms`.
//!
//! Every stream is judged on its own, by all rules together: the share of good streams is the goodput.

use std::str::FromStr;

use squall_plan::{InputError, nearest};

use crate::criterion::{Clause, Criterion, Excerpt, NotAStatistic, Statistic};
use crate::threshold::{Unit, read_limit};

/// Rules that a stream must meet together.
#[derive(Debug, Clone, PartialEq)]
pub struct Objectives(Vec<Objective>);

#[derive(Debug, Clone, Copy, PartialEq)]
struct Objective {
    figure: StreamFigure,
    criterion: Criterion,
}

/// What a rule judges of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StreamFigure {
    First,
    Gap,
    Total,
    Events,
}

/// One stream that has ended.
#[derive(Debug, Clone, Copy)]
pub struct StreamFacts<'a> {
    /// From its start to its first event, in nanoseconds; `None`: there was none.
    pub first_ns: Option<u64>,
    /// From its start to its end.
    pub total_ns: u64,
    /// Events.
    pub event_count: u64,
    /// Times between its events.
    pub gaps: &'a StreamGaps,
}

/// Times between the events of one stream. Of very many a share is kept, evenly.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StreamGaps {
    /// In microseconds.
    kept: Vec<u32>,
    /// One of so many is kept, less 1.
    skipped: u32,
    skip_left: u32,
    count: u64,
    sum_ns: u64,
    min_ns: u64,
    max_ns: u64,
}

impl Objectives {
    /// Whether a stream meets all rules. What it has no figure for, it does not meet.
    pub fn hold(&self, facts: StreamFacts<'_>) -> bool {
        self.0.iter().all(|objective| {
            objective.figure.of(facts, objective.criterion.statistic).is_some_and(|value| {
                let value = if objective.figure == StreamFigure::Events { value } else { value / 1e3 };
                objective.criterion.holds(value)
            })
        })
    }

    /// Whether any rule is about the gaps between events.
    pub fn want_gaps(&self) -> bool {
        self.0.iter().any(|objective| objective.figure == StreamFigure::Gap)
    }
}

impl FromStr for Objectives {
    type Err = InputError;

    fn from_str(text: &str) -> Result<Self, InputError> {
        let (mut rest, mut objectives) = (Excerpt::of(text), Vec::new());
        loop {
            let comma = rest.text.find(',');
            let (rule, behind) = rest.split_at(comma.unwrap_or(rest.text.len()));
            objectives.push(Objective::read(rule)?);
            if comma.is_none() {
                return Ok(Self(objectives));
            }
            rest = behind.split_at(1).1;
        }
    }
}

impl Objective {
    fn read(rule: Excerpt<'_>) -> Result<Self, InputError> {
        let clause = Clause::split(rule.text, OBJECTIVE_HELP).map_err(|error| rule.shift(error))?;
        let Clause { subject, comparison, limit } = clause;
        let (figure, statistic) = read_subject(subject).map_err(|error| rule.shift(error))?;
        let unit = if figure == StreamFigure::Events { Unit::Count } else { Unit::Us };
        let limit = read_limit(limit, unit).map_err(|error| rule.shift(error))?;
        Ok(Self { figure, criterion: Criterion { statistic, comparison, limit } })
    }
}

/// `first`, `total`, `events`, or `gap` with a statistic.
fn read_subject(subject: Excerpt<'_>) -> Result<(StreamFigure, Statistic), InputError> {
    let (name, statistic) = match subject.text.find(':') {
        Some(colon) => (subject.split_at(colon).0.trim(), Some(subject.split_at(colon + 1).1.trim())),
        None => (subject.trim(), None),
    };
    let figure = FIGURES.iter().find(|(own, _)| *own == name.text).map(|(_, figure)| *figure);
    let figure = figure.ok_or_else(|| {
        let similar = nearest(name.text, FIGURES.iter().map(|(name, _)| *name));
        let help = similar
            .map_or_else(|| OBJECTIVE_HELP.to_owned(), |name| format!("a similar name exists: `{name}`"));
        name.error(format!("unknown figure of a stream `{}`", name.text), help)
    })?;
    match (figure, statistic) {
        (StreamFigure::Gap, None) => Err(name.error(
            "`gap` has several statistics, and the rule names none",
            "write `gap:p(95)<50ms`, or `avg`, `min`, `max`",
        )),
        (StreamFigure::Gap, Some(word)) => match Statistic::read_any(word.text) {
            Ok(statistic) if statistic.is_of_distribution() => Ok((figure, statistic)),
            Ok(_) => Err(word.error(NotAStatistic::Unknown.reason(word.text), "write for example `p(95)`")),
            Err(wrong) => Err(word.error(wrong.reason(word.text), "write for example `p(95)`")),
        },
        (_, None) => Ok((figure, Statistic::Value)),
        (_, Some(word)) => Err(word
            .error(format!("`{}` of a stream is one value", name.text), format!("write `{}<…`", name.text))),
    }
}

impl StreamFigure {
    /// Its value, in nanoseconds where it is a time.
    fn of(self, facts: StreamFacts<'_>, statistic: Statistic) -> Option<f64> {
        match self {
            Self::First => facts.first_ns.map(|ns| ns as f64),
            Self::Total => Some(facts.total_ns as f64),
            Self::Events => Some(facts.event_count as f64),
            Self::Gap => facts.gaps.value(statistic),
        }
    }
}

impl StreamGaps {
    /// Counts the time between two events.
    pub fn record(&mut self, gap_ns: u64) {
        self.min_ns = if self.count == 0 { gap_ns } else { self.min_ns.min(gap_ns) };
        self.max_ns = self.max_ns.max(gap_ns);
        self.sum_ns = self.sum_ns.saturating_add(gap_ns);
        self.count += 1;
        if self.skip_left > 0 {
            self.skip_left -= 1;
            return;
        }
        self.skip_left = self.skipped;
        if self.kept.len() == GAP_COUNT_MAX {
            let mut nth = 0;
            self.kept.retain(|_| {
                nth += 1;
                nth % 2 == 0
            });
            self.skipped = self.skipped * 2 + 1;
            self.skip_left = self.skipped;
        }
        self.kept.push(u32::try_from(gap_ns / 1000).unwrap_or(u32::MAX));
    }

    /// Forgets all, and keeps the memory of an ordinary stream.
    pub fn clear(&mut self) {
        let mut kept = std::mem::take(&mut self.kept);
        kept.clear();
        kept.shrink_to(GAP_COUNT_KEPT);
        *self = Self { kept, ..Self::default() };
    }

    /// In nanoseconds. A stream with one event or none has no gap that could be too long.
    fn value(&self, statistic: Statistic) -> Option<f64> {
        let count = self.count as f64;
        match statistic {
            _ if self.count == 0 => Some(0.0),
            Statistic::Mean => Some(self.sum_ns as f64 / count),
            Statistic::Min => Some(self.min_ns as f64),
            Statistic::Max => Some(self.max_ns as f64),
            Statistic::Quantile(q) => {
                let mut sorted = self.kept.clone();
                let nth = ((q * sorted.len() as f64).ceil() as usize).clamp(1, sorted.len()) - 1;
                let (_, value, _) = sorted.select_nth_unstable(nth);
                Some(f64::from(*value) * 1e3)
            }
            Statistic::Count | Statistic::Rate | Statistic::Value => None,
        }
    }
}

/// Gaps that are kept of one stream: a quarter of a megabyte.
const GAP_COUNT_MAX: usize = 1 << 16;

/// Of these the memory is kept for the next stream.
const GAP_COUNT_KEPT: usize = 1024;

const FIGURES: [(&str, StreamFigure); 4] = [
    ("first", StreamFigure::First),
    ("gap", StreamFigure::Gap),
    ("total", StreamFigure::Total),
    ("events", StreamFigure::Events),
];

const OBJECTIVE_HELP: &str = "write rules such as `first<500ms,gap:p(95)<50ms,total<10s,events>=20`";

#[cfg(test)]
mod tests {
    use super::*;

    /// 300 ms to the first event, then 99 gaps of 1 to 99 ms.
    fn holds(rules: &str) -> bool {
        let mut gaps = StreamGaps::default();
        (1..=99).for_each(|ms| gaps.record(ms * 1_000_000));
        let facts = StreamFacts {
            first_ns: Some(300_000_000),
            total_ns: 5_250_000_000,
            event_count: 100,
            gaps: &gaps,
        };
        rules.parse::<Objectives>().unwrap().hold(facts)
    }

    #[test]
    fn a_stream_is_good_when_it_meets_all_rules() {
        for (rules, expected) in [
            ("first<500ms", true),
            ("first<500", true),
            ("first<0.3s", false),
            ("gap:p(95)<=95ms", true),
            ("gap: p95 < 94ms", false),
            ("gap:max<=99ms,gap:min>=1ms,gap:avg<=50ms", true),
            ("first<500ms, gap:p(95)<50ms", false),
            ("total<5.3s,events==100", true),
            ("events>=101", false),
        ] {
            assert_eq!(holds(rules), expected, "{rules}");
        }
    }

    #[test]
    fn bad_rules_say_where_and_why() {
        for (rules, column, reason) in [
            ("", 1, "the rule has no comparison"),
            ("first<500ms,", 13, "the rule has no comparison"),
            ("first<500ms,gab:p(95)<1", 13, "unknown figure of a stream `gab`"),
            ("gap<50ms", 1, "`gap` has several statistics, and the rule names none"),
            ("first<1s,gap:rate<50ms", 14, "unknown statistic `rate`"),
            ("gap:p(101)<5", 5, "a percentile is a number from 0 to 100"),
            ("first:p(95)<5", 7, "`first` of a stream is one value"),
            ("first<1s,total<5 parsecs", 17, "unknown unit `parsecs`"),
        ] {
            let error = rules.parse::<Objectives>().unwrap_err();
            assert_eq!((error.column, error.reason.as_str()), (column, reason), "{rules}");
            assert!(!error.help.is_empty());
        }
    }

    #[test]
    fn of_very_many_gaps_an_even_share_is_kept() {
        let mut gaps = StreamGaps::default();
        (0..1_000_000).for_each(|nth: u64| gaps.record(nth * 1000));
        assert!(gaps.kept.len() <= GAP_COUNT_MAX && gaps.kept.len() > GAP_COUNT_MAX / 4);
        let median = gaps.value(Statistic::Quantile(0.5)).unwrap();
        assert!((median / 1e3 - 500_000.0).abs() < 1_000.0, "{median}");
        gaps.clear();
        assert!(gaps.kept.capacity() <= GAP_COUNT_KEPT && gaps == StreamGaps::default());
    }
}
