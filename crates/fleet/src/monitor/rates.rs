//! From counters that only grow to how fast they grow.

use std::collections::HashMap;
use std::time::Instant;

/// Remembers counters by name.
#[derive(Debug, Default)]
pub(crate) struct Rates {
    before: HashMap<String, (Instant, f64)>,
}

impl Rates {
    /// Growth per second since the last call with this name; `None` the first time, and when the counter began anew.
    pub(crate) fn per_s(&mut self, name: &str, now: Instant, value: f64) -> Option<f64> {
        let (before_at, before) = match self.before.get_mut(name) {
            Some(before) => std::mem::replace(before, (now, value)),
            None => {
                self.before.insert(name.to_owned(), (now, value));
                return None;
            }
        };
        let seconds = now.saturating_duration_since(before_at).as_secs_f64();
        (value >= before && seconds > 0.0).then(|| (value - before) / seconds)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn counters_become_rates_and_a_restart_is_no_rate() {
        let (mut rates, start) = (Rates::default(), Instant::now());
        let at = |second| start + Duration::from_secs(second);
        assert_eq!(rates.per_s("a", at(0), 100.0), None);
        assert_eq!(rates.per_s("a", at(2), 160.0), Some(30.0));
        assert_eq!(rates.per_s("a", at(3), 5.0), None);
        assert_eq!(rates.per_s("a", at(4), 6.0), Some(1.0));
        assert_eq!(rates.per_s("b", at(4), 6.0), None);
    }
}
