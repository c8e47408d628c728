//! StatsD over UDP with DogStatsD tags: counters as what came since the last second, everything else as gauges.

use std::collections::HashMap;

use crate::figures::{Moment, OutputKind};

/// What has been sent of each counter, so that differences can be sent.
#[derive(Debug, Default)]
pub(crate) struct SentCounters(HashMap<String, f64>);

/// A moment as it is sent.
#[derive(Debug, PartialEq)]
pub(crate) struct Datagrams {
    /// They stay below the size that every network carries.
    pub(crate) texts: Vec<String>,
    /// The counters' values that they stand for.
    values: Vec<(String, f64)>,
}

impl SentCounters {
    /// What came since the moment that was [`commit`](Self::commit)ted last.
    pub(crate) fn datagrams(&self, moment: &Moment) -> Datagrams {
        let (mut datagrams, mut values) = (vec![String::new()], Vec::new());
        for figure in &moment.figures {
            let tags: Vec<String> =
                figure.labels.iter().map(|(name, value)| format!("{name}:{}", clean(value))).collect();
            let tags = if tags.is_empty() { String::new() } else { format!("|#{}", tags.join(",")) };
            let name = figure.name.trim_end_matches("_total").replacen('_', ".", 1);
            let line = match figure.kind {
                OutputKind::Gauge => format!("{name}:{}|g{tags}\n", figure.value),
                OutputKind::Counter => {
                    let key = format!("{name}{tags}");
                    let more = figure.value - self.0.get(&key).unwrap_or(&0.0);
                    if more == 0.0 {
                        continue;
                    }
                    values.push((key, figure.value));
                    format!("{name}:{more}|c{tags}\n")
                }
            };
            match datagrams.last_mut() {
                Some(last) if last.len() + line.len() <= DATAGRAM_BYTES_MAX => last.push_str(&line),
                _ => datagrams.push(line),
            }
        }
        datagrams.retain(|datagram| !datagram.is_empty());
        Datagrams { texts: datagrams, values }
    }

    /// All datagrams of a moment were sent: what they say is not said again.
    pub(crate) fn commit(&mut self, sent: Datagrams) {
        self.0.extend(sent.values);
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
    use crate::figures::{FigureUnit, OutputFigure};

    #[test]
    fn counters_are_sent_as_differences() {
        let moment = |value| Moment {
            unix_ms: 0,
            started_unix_ms: 0,
            figures: vec![OutputFigure {
                name: "k6_http_reqs_total".into(),
                kind: OutputKind::Counter,
                unit: FigureUnit::Number,
                help: "",
                labels: vec![("name", "a|b".to_owned())],
                value,
            }],
        };
        let mut counters = SentCounters::default();
        for (value, is_sent, expected) in [
            (5.0, true, Some("k6.http_reqs:5|c|#name:a_b\n")),
            (7.0, true, Some("k6.http_reqs:2|c|#name:a_b\n")),
            (8.0, false, Some("k6.http_reqs:1|c|#name:a_b\n")),
            // What could not be sent is sent with what came since.
            (9.0, true, Some("k6.http_reqs:2|c|#name:a_b\n")),
            (9.0, true, None),
        ] {
            let datagrams = counters.datagrams(&moment(value));
            assert_eq!(datagrams.texts, Vec::from_iter(expected), "{value}");
            if is_sent {
                counters.commit(datagrams);
            }
        }
    }
}
