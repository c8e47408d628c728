//! What status pages say, as figures: the text format of Prometheus, nginx's `stub_status`, h2o's JSON.

use squall_measure::MonitorUnit;

/// One figure of a page.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Figure {
    pub(super) name: String,
    pub(super) unit: MonitorUnit,
    pub(super) value: f64,
    /// Only grows: shown as how fast.
    pub(super) is_counter: bool,
}

impl Figure {
    /// Whether it is of that name, or of that name and labels; the empty name is every figure's.
    pub(super) fn is(&self, wanted: &str) -> bool {
        wanted.is_empty() || self.name == wanted || self.name.split('{').next() == Some(wanted)
    }
}

/// Series whose name (`handshakes_total`), or name and labels (`up{job="web"}`), are asked for; with none asked for, the first
/// [`SERIES_COUNT_MAX`]. Prometheus text format 0.0.4: `# TYPE name kind`, then `name{labels} value [time]`.
pub(super) fn prometheus(text: &str, wanted: &[String]) -> Vec<Figure> {
    let mut kind = ("", "");
    let mut figures = Vec::new();
    for line in text.lines().map(str::trim) {
        if let Some(declared) = line.strip_prefix("# TYPE ") {
            kind = declared.split_once(' ').unwrap_or((declared, ""));
            continue;
        }
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let Some((series, value)) = split(line) else { continue };
        let name = series.split('{').next().unwrap_or(series);
        let is_wanted = wanted.is_empty() || wanted.iter().any(|wanted| wanted == series || wanted == name);
        if !is_wanted || !value.is_finite() {
            continue;
        }
        let is_counter = (kind.1 == "counter" && kind.0 == name)
            || name.ends_with("_total")
            || (matches!(kind.1, "histogram" | "summary")
                && (name.ends_with("_count") || name.ends_with("_sum")));
        figures.push(Figure { name: series.to_owned(), unit: unit_of(name), value, is_counter });
        if figures.len() >= SERIES_COUNT_MAX {
            break;
        }
    }
    figures
}

/// Series and value of a line. Labels may hold blanks and braces inside of their quotes.
fn split(line: &str) -> Option<(&str, f64)> {
    let end = match line.find('{') {
        None => line.find(' ')?,
        Some(open) => {
            let (mut is_quoted, mut is_escaped) = (false, false);
            let close = line[open..].char_indices().find(|&(_, c)| {
                let was_escaped = is_escaped;
                is_escaped = is_quoted && c == '\\' && !was_escaped;
                is_quoted ^= c == '"' && !was_escaped;
                c == '}' && !is_quoted
            });
            open + close?.0 + 1
        }
    };
    let value = line[end..].split_whitespace().next()?.parse().ok()?;
    Some((&line[..end], value))
}

/// Prometheus' own convention puts the unit last.
fn unit_of(name: &str) -> MonitorUnit {
    match name.trim_end_matches("_total").rsplit('_').next() {
        Some("bytes") => MonitorUnit::Bytes,
        Some("seconds") => MonitorUnit::Seconds,
        Some("percent") => MonitorUnit::Percent,
        _ => MonitorUnit::Count,
    }
}

/// nginx's `stub_status` page (ngx_http_stub_status_module):
/// `Active connections: 2` / `server accepts handled requests` / ` 8 8 16` / `Reading: 0 Writing: 1 Waiting: 1`.
pub(super) fn nginx(text: &str) -> Vec<Figure> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let after = |name: &str, offset: usize| {
        let at = words.iter().position(|word| *word == name)?;
        words.get(at + offset)?.parse::<f64>().ok()
    };
    let gauges = [
        ("connections active", after("connections:", 1)),
        ("connections reading", after("Reading:", 1)),
        ("connections writing", after("Writing:", 1)),
        ("connections waiting", after("Waiting:", 1)),
    ];
    let counters = [
        ("connections accepted", after("requests", 1)),
        ("connections handled", after("requests", 2)),
        ("requests", after("requests", 3)),
    ];
    collect(&gauges, false).chain(collect(&counters, true)).collect()
}

/// h2o's `/server-status/json` (lib/handler/status): numbers at the top level; those of `requests`, durations and errors too.
pub(super) fn h2o(text: &str) -> Vec<Figure> {
    let Ok(serde_json::Value::Object(page)) = serde_json::from_str(text) else { return Vec::new() };
    let numbers = page.iter().filter_map(|(name, value)| Some((name, value.as_f64()?)));
    numbers
        .take(SERIES_COUNT_MAX)
        .map(|(name, value)| Figure {
            name: name.clone(),
            unit: MonitorUnit::Count,
            value,
            is_counter: H2O_COUNTERS.iter().any(|part| name.contains(part)),
        })
        .collect()
}

fn collect<'a>(pairs: &'a [(&str, Option<f64>)], is_counter: bool) -> impl Iterator<Item = Figure> + 'a {
    pairs.iter().filter_map(move |(name, value)| {
        Some(Figure { name: (*name).to_owned(), unit: MonitorUnit::Count, value: (*value)?, is_counter })
    })
}

/// Parts of the names of h2o's figures that only grow.
const H2O_COUNTERS: &[&str] =
    &["status-errors", "http2-errors", "read-closed", "write-closed", "handshake", "-count"];

/// Most series of one page: more than a page of charts shows.
const SERIES_COUNT_MAX: usize = 50;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prometheus_series_are_chosen_by_name_and_counters_are_known() {
        let text = "# HELP x y\n# TYPE tls_handshakes counter\ntls_handshakes{kind=\"full\"} 12\n\
                    tls_handshakes{kind=\"a } \\\" b\"} 3 1700000000\n# TYPE up gauge\nup 1\nbad\nloop_lag_seconds 0.25\n\
                    nothing NaN\nprocess_cpu_seconds_total 4e1\n";
        let all = prometheus(text, &[]);
        let samples: Vec<(&str, f64, bool)> =
            all.iter().map(|figure| (figure.name.as_str(), figure.value, figure.is_counter)).collect();
        assert_eq!(
            samples,
            [
                ("tls_handshakes{kind=\"full\"}", 12.0, true),
                ("tls_handshakes{kind=\"a } \\\" b\"}", 3.0, true),
                ("up", 1.0, false),
                ("loop_lag_seconds", 0.25, false),
                ("process_cpu_seconds_total", 40.0, true),
            ]
        );
        assert_eq!(all[3].unit, MonitorUnit::Seconds);
        assert_eq!(prometheus(text, &["up".to_owned()]).len(), 1);
        assert_eq!(prometheus(text, &["tls_handshakes".to_owned()]).len(), 2);
    }

    #[test]
    fn nginx_status_is_read() {
        let text = "Active connections: 291 \nserver accepts handled requests\n 16630948 16630947 31070465 \n\
                    Reading: 6 Writing: 179 Waiting: 106 \n";
        let figures = nginx(text);
        let value = |name: &str| figures.iter().find(|figure| figure.name == name).unwrap().value;
        assert_eq!((value("connections active"), value("connections waiting")), (291.0, 106.0));
        assert_eq!((value("connections accepted"), value("requests")), (16_630_948.0, 31_070_465.0));
    }

    #[test]
    fn pages_that_are_something_else_have_no_figures() {
        for text in ["", "<html>404</html>", "{", "[1]", "\u{fffd}"] {
            assert!(
                nginx(text).is_empty() && h2o(text).is_empty() && prometheus(text, &[]).is_empty(),
                "{text}"
            );
        }
    }

    #[test]
    fn h2o_status_is_read() {
        let figures = h2o(r#"{"server-version":"2.2","connections":4,"status-errors.503":2,"requests":[]}"#);
        let samples: Vec<(&str, f64, bool)> =
            figures.iter().map(|figure| (figure.name.as_str(), figure.value, figure.is_counter)).collect();
        assert_eq!(samples, [("connections", 4.0, false), ("status-errors.503", 2.0, true)]);
    }
}
