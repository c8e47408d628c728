//! The grammar that all rules share: `STATISTIC COMPARISON LIMIT`, such as `p(95)<200`.
//!
//! Owns: statistics, comparisons, and where in a rule an error is. Never: metrics; the rules on each kind of metric (of a load, of
//! a script, monitored ones) decide which statistics it has, and read the limit in its unit.

use squall_plan::InputError;

/// What a metric must meet.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Criterion {
    pub(crate) statistic: Statistic,
    pub(crate) comparison: Relation,
    pub(crate) limit: f64,
}

/// Which value of a metric is compared.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Statistic {
    Count,
    Rate,
    Value,
    Mean,
    Min,
    Max,
    Quantile(f64),
}

/// How a value must compare with a limit. k6's `===` is `==`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Relation {
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Equal,
    NotEqual,
}

/// A rule, split at its comparison.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clause<'a> {
    /// What is before the comparison.
    pub(crate) subject: Excerpt<'a>,
    pub(crate) comparison: Relation,
    /// What is behind it, trimmed; not empty.
    pub(crate) limit: Excerpt<'a>,
}

/// A piece of a rule, and where in the rule it begins.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Excerpt<'a> {
    pub(crate) text: &'a str,
    columns_before: usize,
}

/// Why a word is not a statistic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NotAStatistic {
    Unknown,
    /// A percentile that is not a number from 0 to 100.
    Percentile,
}

impl Criterion {
    pub(crate) fn holds(&self, actual: f64) -> bool {
        self.comparison.holds(actual, self.limit)
    }

    /// How far `actual` is on the good side of the limit; negative on the bad side.
    pub(crate) fn margin(&self, actual: f64) -> f64 {
        self.comparison.margin(actual, self.limit)
    }
}

impl Statistic {
    /// Reads a statistic by the name that k6 gives it.
    pub(crate) fn read(name: &str) -> Result<Self, NotAStatistic> {
        match name {
            "count" => Ok(Self::Count),
            "rate" => Ok(Self::Rate),
            "value" => Ok(Self::Value),
            "avg" => Ok(Self::Mean),
            "min" => Ok(Self::Min),
            "max" => Ok(Self::Max),
            "med" => Ok(Self::Quantile(0.5)),
            _ => {
                let percent = name.strip_prefix("p(").and_then(|rest| rest.strip_suffix(')'));
                percent.map_or(Err(NotAStatistic::Unknown), percentile)
            }
        }
    }

    /// Reads a statistic by any of its names: k6's, `mean`, `median`, `p95` or `p (95)`.
    pub(crate) fn read_any(name: &str) -> Result<Self, NotAStatistic> {
        match name {
            "mean" => return Ok(Self::Mean),
            "median" => return Ok(Self::Quantile(0.5)),
            _ => {}
        }
        let percent = match name.strip_prefix('p').map(str::trim_start) {
            Some(rest) if rest.starts_with('(') => {
                rest[1..].strip_suffix(')').ok_or(NotAStatistic::Unknown)?
            }
            Some(rest) if rest.starts_with(|c: char| c.is_ascii_digit()) => rest,
            _ => return Self::read(name),
        };
        // k6 reads any number; here `p(1e1)` is rather a mistake.
        let is_plain = percent.trim().starts_with(|c: char| c.is_ascii_digit())
            && percent.trim().bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
        if is_plain { percentile(percent) } else { Err(NotAStatistic::Percentile) }
    }

    /// Whether distributions have it.
    pub(crate) const fn is_of_distribution(self) -> bool {
        !matches!(self, Self::Count | Self::Rate | Self::Value)
    }
}

impl NotAStatistic {
    /// What is wrong with the word `name`.
    pub(crate) fn reason(self, name: &str) -> String {
        match self {
            Self::Unknown => format!("unknown statistic `{name}`"),
            Self::Percentile => "a percentile is a number from 0 to 100".to_owned(),
        }
    }
}

fn percentile(percent: &str) -> Result<Statistic, NotAStatistic> {
    let quantile = percent.trim().parse::<f64>().ok().map(|percent| percent / 100.0);
    let quantile = quantile.filter(|quantile| (0.0..=1.0).contains(quantile));
    quantile.map(Statistic::Quantile).ok_or(NotAStatistic::Percentile)
}

impl Relation {
    fn holds(self, actual: f64, limit: f64) -> bool {
        match self {
            Self::Less => actual < limit,
            Self::LessOrEqual => actual <= limit,
            Self::Greater => actual > limit,
            Self::GreaterOrEqual => actual >= limit,
            Self::Equal => actual == limit,
            Self::NotEqual => actual != limit,
        }
    }

    fn margin(self, actual: f64, limit: f64) -> f64 {
        match self {
            Self::Less | Self::LessOrEqual => limit - actual,
            Self::Greater | Self::GreaterOrEqual => actual - limit,
            Self::Equal => actual.min(limit) - actual.max(limit),
            Self::NotEqual => (actual - limit).abs(),
        }
    }
}

impl<'a> Clause<'a> {
    /// Splits a rule at its comparison. `help`: how such a rule looks.
    pub(crate) fn split(rule: &'a str, help: &str) -> Result<Self, InputError> {
        let whole = Excerpt::of(rule);
        let sign_at = rule.find(['<', '>', '=', '!']);
        let sign_at = sign_at.ok_or_else(|| whole.error("the rule has no comparison", help))?;
        let (subject, right) = whole.split_at(sign_at);
        let (sign, comparison) = COMPARISONS
            .into_iter()
            .find(|(sign, _)| right.text.starts_with(sign))
            .ok_or_else(|| right.error("unknown comparison", COMPARISON_HELP))?;
        let limit = right.split_at(sign.len()).1.trim();
        if limit.text.is_empty() {
            return Err(limit.error("the limit is missing", help));
        }
        Ok(Self { subject, comparison, limit })
    }
}

impl<'a> Excerpt<'a> {
    /// A whole rule.
    pub(crate) fn of(text: &'a str) -> Self {
        Self { text, columns_before: 0 }
    }

    /// Cuts before byte `at`, which must be a character's first.
    pub(crate) fn split_at(self, at: usize) -> (Self, Self) {
        let (front, back) = self.text.split_at(at);
        let columns_before = self.columns_before + front.chars().count();
        (Self { text: front, ..self }, Self { text: back, columns_before })
    }

    pub(crate) fn trim(self) -> Self {
        let blank_bytes = self.text.len() - self.text.trim_start().len();
        let (_, Self { text, columns_before }) = self.split_at(blank_bytes);
        Self { text: text.trim_end(), columns_before }
    }

    pub(crate) fn error(self, reason: impl Into<String>, help: impl Into<String>) -> InputError {
        InputError { column: self.columns_before + 1, reason: reason.into(), help: help.into() }
    }

    /// An error within this piece, as one within the whole rule.
    pub(crate) fn shift(self, error: InputError) -> InputError {
        InputError { column: self.columns_before + error.column, ..error }
    }
}

/// By their signs, longer ones first.
const COMPARISONS: [(&str, Relation); 7] = [
    ("===", Relation::Equal),
    ("==", Relation::Equal),
    ("!=", Relation::NotEqual),
    ("<=", Relation::LessOrEqual),
    (">=", Relation::GreaterOrEqual),
    ("<", Relation::Less),
    (">", Relation::Greater),
];

const COMPARISON_HELP: &str = "write one of `<`, `<=`, `>`, `>=`, `==`, `!=`";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statistics_are_k6s_and_have_shorter_names_of_ours() {
        let p95 = Ok(Statistic::Quantile(0.95));
        for (name, in_scripts, everywhere) in [
            ("p(95)", p95, p95),
            ("p( 95 )", p95, p95),
            ("p (95)", Err(NotAStatistic::Unknown), p95),
            ("p95", Err(NotAStatistic::Unknown), p95),
            ("mean", Err(NotAStatistic::Unknown), Ok(Statistic::Mean)),
            ("median", Err(NotAStatistic::Unknown), Ok(Statistic::Quantile(0.5))),
            ("avg", Ok(Statistic::Mean), Ok(Statistic::Mean)),
            ("rate", Ok(Statistic::Rate), Ok(Statistic::Rate)),
            ("p()", Err(NotAStatistic::Percentile), Err(NotAStatistic::Percentile)),
            ("p(NaN)", Err(NotAStatistic::Percentile), Err(NotAStatistic::Percentile)),
            ("p(100.1)", Err(NotAStatistic::Percentile), Err(NotAStatistic::Percentile)),
            ("p(1e1)", Ok(Statistic::Quantile(0.1)), Err(NotAStatistic::Percentile)),
            ("p(+95)", p95, Err(NotAStatistic::Percentile)),
            ("p(.5)", Ok(Statistic::Quantile(0.005)), Err(NotAStatistic::Percentile)),
            ("p(-0)", Ok(Statistic::Quantile(-0.0)), Err(NotAStatistic::Percentile)),
            ("p50.0", Err(NotAStatistic::Unknown), Ok(Statistic::Quantile(0.5))),
            ("p(95", Err(NotAStatistic::Unknown), Err(NotAStatistic::Unknown)),
            ("p", Err(NotAStatistic::Unknown), Err(NotAStatistic::Unknown)),
            ("", Err(NotAStatistic::Unknown), Err(NotAStatistic::Unknown)),
        ] {
            assert_eq!(
                (Statistic::read(name), Statistic::read_any(name)),
                (in_scripts, everywhere),
                "{name}"
            );
        }
    }

    #[test]
    fn margins_are_positive_where_the_criterion_holds() {
        for (sign, comparison) in COMPARISONS {
            let criterion = Criterion { statistic: Statistic::Mean, comparison, limit: 2.0 };
            for actual in [1.0, 2.0, 3.0] {
                let margin = criterion.margin(actual);
                let is_good = margin > 0.0 || margin == 0.0 && sign.contains('=') && sign != "!=";
                assert_eq!(criterion.holds(actual), is_good, "{actual} {sign} 2");
            }
        }
    }
}
