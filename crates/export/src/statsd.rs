//! StatsD over UDP with DogStatsD tags: counters as what came since the last second, everything else as gauges.

use std::collections::HashMap;

use crate::figures::{Kind, Moment};

/// What was counted before, so that differences can be sent.
#[derive(Debug, Default)]
pub(crate) struct Counters(HashMap<String, f64>);

impl Counters {
    /// Datagrams that stay below the size that every network carries.
    pub(crate) fn datagrams(&mut self, moment: &Moment) -> Vec<String> {
        let mut datagrams = vec![String::new()];
        for figure in &moment.figures {
            let tags: Vec<String> =
                figure.labels.iter().map(|(name, value)| format!("{name}:{}", clean(value))).collect();
            let tags = if tags.is_empty() { String::new() } else { format!("|#{}", tags.join(",")) };
            let name = figure.name.trim_end_matches("_total").replacen('_', ".", 1);
            let line = match figure.kind {
                Kind::Gauge => format!("{name}:{}|g{tags}\n", figure.value),
                Kind::Counter => match self.since_last(format!("{name}{tags}"), figure.value) {
                    0.0 => continue,
                    more => format!("{name}:{more}|c{tags}\n"),
                },
            };
            match datagrams.last_mut() {
                Some(last) if last.len() + line.len() <= DATAGRAM_BYTES_MAX => last.push_str(&line),
                _ => datagrams.push(line),
            }
        }
        datagrams.retain(|datagram| !datagram.is_empty());
        datagrams
    }

    fn since_last(&mut self, key: String, value: f64) -> f64 {
        value - self.0.insert(key, value).unwrap_or(0.0)
    }
}

/// Characters that part fields become spaces' stand-ins.
fn clean(value: &str) -> String {
    value.chars().map(|c| if matches!(c, '|' | ',' | '#' | '\n' | '@') { '_' } else { c }).collect()
}

/// An Ethernet frame less its headers, as the StatsD documents advise.
const DATAGRAM_BYTES_MAX: usize = 1432;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::Figure;

    #[test]
    fn counters_are_sent_as_differences() {
        let moment = |value| Moment {
            unix_ms: 0,
            started_unix_ms: 0,
            figures: vec![Figure {
                name: "k6_http_reqs_total",
                kind: Kind::Counter,
                help: "",
                labels: vec![("name", "a|b".to_owned())],
                value,
            }],
        };
        let mut counters = Counters::default();
        assert_eq!(counters.datagrams(&moment(5.0)), ["k6.http_reqs:5|c|#name:a_b\n"]);
        assert_eq!(counters.datagrams(&moment(7.0)), ["k6.http_reqs:2|c|#name:a_b\n"]);
        assert!(counters.datagrams(&moment(7.0)).is_empty());
    }
}
