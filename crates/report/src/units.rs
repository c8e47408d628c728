//! Figures for people: a unit on every number, three significant digits, digits in groups of three parted by a space.
//!
//! Pure. JSON and CSV do not come here: they carry plain numbers whose unit is in the field's name.

use std::time::Duration;

/// A latency: `812 ns`, `12.4 ms`, `1.02 s`.
pub fn latency(ns: u64) -> String {
    scaled(ns as f64, &[("ns", 1.0), ("µs", 1e3), ("ms", 1e6), ("s", 1e9)])
}

/// The length of a run or a moment in it: `850 ms`, `12.5 s`, `2m 00s`, `1h 02m 03s`.
pub fn span(duration: Duration) -> String {
    let seconds = duration.as_secs_f64().round() as u64;
    let (hours, minutes, rest) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    match (hours, minutes) {
        (0, 0) => latency(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)),
        (0, _) => format!("{minutes}m {rest:02}s"),
        _ => format!("{hours}h {minutes:02}m {rest:02}s"),
    }
}

/// A moment in a run on a clock that does not change its width every second: `0:07`, `12:05`, `1:02:03`.
pub fn clock(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let (hours, minutes, rest) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    if hours == 0 { format!("{minutes}:{rest:02}") } else { format!("{hours}:{minutes:02}:{rest:02}") }
}

/// A size: `512 B`, `1.90 GiB`.
pub fn bytes(count: u64) -> String {
    const UNITS: [(&str, f64); 6] = [
        ("B", 1.0),
        ("KiB", 1024.0),
        ("MiB", 1_048_576.0),
        ("GiB", 1_073_741_824.0),
        ("TiB", 1_099_511_627_776.0),
        ("PiB", 1_125_899_906_842_624.0),
    ];
    scaled(count as f64, &UNITS)
}

/// A count in full: `1 204 311`.
pub fn count(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (idx, digit) in digits.chars().enumerate() {
        if idx > 0 && (digits.len() - idx).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

/// A count where space is short: in full below 10 000, then `12.0 k`, `1.20 M`.
pub fn count_short(value: u64) -> String {
    if value < 10_000 {
        return count(value);
    }
    scaled(value as f64, &[("k", 1e3), ("M", 1e6), ("G", 1e9), ("T", 1e12)])
}

/// A rate: `0.50/s`, `12.4/s`, `9 998/s`, `1.20 M/s`.
pub fn rate(per_s: f64) -> String {
    if per_s >= 999_999.5 {
        format!("{}/s", scaled(per_s, &[("M", 1e6), ("G", 1e9)]))
    } else if per_s >= 99.95 {
        format!("{}/s", count(per_s.round() as u64))
    } else {
        format!("{}/s", three_digits(per_s))
    }
}

/// A share of one as a percentage: `0.02 %`, `12.4 %`. Only a true 0 and 1 read as `0 %` and `100 %`.
pub fn percent(share: f64) -> String {
    let value = share * 100.0;
    if value == 0.0 {
        "0 %".to_owned()
    } else if value > 0.0 && value < 0.005 {
        "< 0.01 %".to_owned()
    } else if (99.95..100.0).contains(&value) {
        "> 99.9 %".to_owned()
    } else {
        format!("{} %", three_digits(value))
    }
}

/// A number with its noun in the right form: `1 request`, `1 204 requests`, `2 retries`.
pub fn counted(number: u64, singular: &str) -> String {
    let number_text = count(number);
    if number == 1 {
        format!("{number_text} {singular}")
    } else {
        format!("{number_text} {}", plural(singular))
    }
}

/// English plurals as far as this program's nouns go: `request` → `requests`, `retry` → `retries`.
fn plural(singular: &str) -> String {
    match singular.strip_suffix('y') {
        Some(stem) if !stem.ends_with(['a', 'e', 'o', 'u']) => format!("{stem}ies"),
        _ => format!("{singular}s"),
    }
}

/// The value in the largest unit that keeps it at or above one, with three significant digits.
fn scaled(value: f64, units: &[(&str, f64)]) -> String {
    let last = units.len() - 1;
    let fits = |idx: usize| idx == last || value / units[idx].1 < units[idx + 1].1 / units[idx].1 * 0.9995;
    let idx = (0..=last).find(|&idx| fits(idx)).unwrap_or(last);
    let (name, size) = units[idx];
    let digits = if size == 1.0 { count(value as u64) } else { three_digits(value / size) };
    format!("{digits} {name}")
}

/// Three significant digits, but never more than two decimals: `1.02`, `12.4`, `341`, `2 300`.
fn three_digits(value: f64) -> String {
    if value < 9.995 {
        format!("{value:.2}")
    } else if value < 99.95 {
        format!("{value:.1}")
    } else {
        count(value.round() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latencies_have_three_digits_and_the_largest_unit_that_fits() {
        let cases = [
            (0, "0 ns"),
            (999, "999 ns"),
            (1_000, "1.00 µs"),
            (12_449, "12.4 µs"),
            (999_400, "999 µs"),
            (999_600, "1.00 ms"),
            (341_000_000, "341 ms"),
            (1_020_000_000, "1.02 s"),
            (72_460_000_000, "72.5 s"),
            (2_300_000_000_000, "2 300 s"),
        ];
        for (ns, text) in cases {
            assert_eq!(latency(ns), text, "{ns} ns");
        }
    }

    #[test]
    fn spans_use_a_clock_beyond_a_minute() {
        let cases = [
            (0, "0 ns"),
            (850, "850 ms"),
            (12_500, "12.5 s"),
            (59_400, "59.4 s"),
            (59_800, "1m 00s"),
            (120_000, "2m 00s"),
            (3_723_000, "1h 02m 03s"),
        ];
        for (ms, text) in cases {
            assert_eq!(span(Duration::from_millis(ms)), text, "{ms} ms");
        }
        assert_eq!(clock(Duration::from_secs(7)), "0:07");
        assert_eq!(clock(Duration::from_secs(3723)), "1:02:03");
    }

    #[test]
    fn sizes_use_binary_units() {
        let cases = [(0, "0 B"), (1023, "1 023 B"), (1000, "1 000 B"), (2_040_109_466, "1.90 GiB")];
        for (value, text) in cases {
            assert_eq!(bytes(value), text, "{value} bytes");
        }
        assert_eq!(bytes(u64::MAX), "16 384 PiB");
    }

    #[test]
    fn counts_are_grouped_and_shortened_only_where_asked() {
        assert_eq!(count(0), "0");
        assert_eq!(count(1_204_311), "1 204 311");
        assert_eq!(count(u64::MAX), "18 446 744 073 709 551 615");
        for (value, text) in [(9_999, "9 999"), (12_000, "12.0 k"), (120_300, "120 k"), (1_204_311, "1.20 M")]
        {
            assert_eq!(count_short(value), text);
        }
    }

    #[test]
    fn rates_stay_exact_until_a_million() {
        let cases =
            [(0.0, "0.00/s"), (0.5, "0.50/s"), (12.44, "12.4/s"), (9_998.2, "9 998/s"), (1.2e6, "1.20 M/s")];
        for (value, text) in cases {
            assert_eq!(rate(value), text, "{value}");
        }
    }

    #[test]
    fn percentages_never_round_a_failure_away() {
        let cases = [
            (0.0, "0 %"),
            (0.000_001, "< 0.01 %"),
            (0.0002, "0.02 %"),
            (0.124, "12.4 %"),
            (0.999_99, "> 99.9 %"),
            (1.0, "100 %"),
        ];
        for (value, text) in cases {
            assert_eq!(percent(value), text, "{value}");
        }
    }

    #[test]
    fn nouns_agree_with_their_number() {
        assert_eq!(counted(1, "request"), "1 request");
        assert_eq!(counted(0, "retry"), "0 retries");
        assert_eq!(counted(2_000, "day"), "2 000 days");
    }
}
