//! One sample of a machine while it is made.

use std::collections::HashMap;
use std::time::Instant;

use squall_measure::MonitorUnit;

use super::rates::Rates;
use crate::protocol::SeriesName;

/// One sample while it is made.
pub(super) struct Sample<'a> {
    pub(super) numbers: &'a mut HashMap<String, u32>,
    pub(super) rates: &'a mut Rates,
    pub(super) now: Instant,
    pub(super) new: Vec<SeriesName>,
    pub(super) values: Vec<(u32, f64)>,
}

impl Sample<'_> {
    pub(super) fn add(&mut self, name: &str, unit: MonitorUnit, value: f64) {
        let number = match self.numbers.get(name) {
            Some(&number) => number,
            None => {
                let number = self.numbers.len() as u32;
                self.numbers.insert(name.to_owned(), number);
                self.new.push(SeriesName { name: name.to_owned(), unit });
                number
            }
        };
        self.values.push((number, value));
    }

    /// A counter, as how fast it grows.
    pub(super) fn add_rate(&mut self, name: &str, counter: f64) {
        if let Some(per_s) = self.rates.per_s(name, self.now, counter) {
            self.add(name, MonitorUnit::PerSecond, per_s);
        }
    }

    /// A number of seconds that grows with use, as percent of one CPU.
    pub(super) fn add_cpu_seconds(&mut self, name: &str, seconds: f64) {
        if let Some(per_s) = self.rates.per_s(name, self.now, seconds) {
            self.add(name, MonitorUnit::Percent, per_s * 100.0);
        }
    }
}
