//! How a value is held against a limit: in Squall's own rules as in those of k6 scripts.

/// How a value must stand to a limit. k6's `===` is `==`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Comparison {
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Equal,
    NotEqual,
}

impl Comparison {
    pub(crate) fn holds(self, actual: f64, limit: f64) -> bool {
        match self {
            Self::Less => actual < limit,
            Self::LessOrEqual => actual <= limit,
            Self::Greater => actual > limit,
            Self::GreaterOrEqual => actual >= limit,
            Self::Equal => actual == limit,
            Self::NotEqual => actual != limit,
        }
    }

    /// How far `actual` is on the good side of the limit; negative on the bad side.
    pub(crate) fn margin(self, actual: f64, limit: f64) -> f64 {
        match self {
            Self::Less | Self::LessOrEqual => limit - actual,
            Self::Greater | Self::GreaterOrEqual => actual - limit,
            Self::Equal => actual.min(limit) - actual.max(limit),
            Self::NotEqual => (actual - limit).abs(),
        }
    }
}

/// By their signs, longer ones first.
pub(crate) const COMPARISONS: [(&str, Comparison); 7] = [
    ("===", Comparison::Equal),
    ("==", Comparison::Equal),
    ("!=", Comparison::NotEqual),
    ("<=", Comparison::LessOrEqual),
    (">=", Comparison::GreaterOrEqual),
    ("<", Comparison::Less),
    (">", Comparison::Greater),
];
