//! How k6 writes numbers.

use squall_measure::ScriptUnit;

/// A value of what a metric contains.
pub(super) fn value(value: f64, unit: ScriptUnit, time_unit: &str) -> String {
    match unit {
        ScriptUnit::Time => time(value, time_unit),
        ScriptUnit::Data => data(value),
        ScriptUnit::Default => plain(value, 6),
    }
}

/// A value per second.
pub(super) fn rate(per_s: f64, unit: ScriptUnit, time_unit: &str) -> String {
    format!("{}/s", value(per_s, unit, time_unit))
}

/// A share as a percentage, cut to two decimals.
pub(super) fn percent(share: f64) -> String {
    format!("{:.2}%", (share * 10_000.0 + 1e-9).trunc() / 100.0)
}

/// At most so many decimals, cut off, without zeros at the end.
fn plain(value: f64, decimals: i32) -> String {
    let factor = 10_f64.powi(decimals);
    let text = format!("{:.*}", decimals as usize, (value * factor).round() / factor);
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// Two decimals, cut off, without zeros at the end.
fn cut(value: f64) -> String {
    let text = format!("{:.2}", ((value * 100.0) + 1e-9).trunc() / 100.0);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn data(bytes: f64) -> String {
    if bytes < 10.0 {
        return format!("{} B", plain(bytes, 0));
    }
    let exponent = (bytes.ln() / 1000_f64.ln()).floor().min(6.0) as i32;
    let value = (bytes / 1000_f64.powi(exponent) * 10.0 + 0.5).floor() / 10.0;
    let unit = ["B", "kB", "MB", "GB", "TB", "PB", "EB"][exponent as usize];
    if value < 10.0 { format!("{value:.1} {unit}") } else { format!("{value:.0} {unit}") }
}

fn time(millis: f64, time_unit: &str) -> String {
    match time_unit {
        "s" => return format!("{:.2}s", millis / 1e3),
        "ms" => return format!("{millis:.2}ms"),
        "us" => return format!("{:.2}µs", millis * 1e3),
        _ => {}
    }
    if millis == 0.0 {
        return "0s".to_owned();
    }
    match millis {
        _ if millis < 0.001 => format!("{}ns", (millis * 1e6).trunc()),
        _ if millis < 1.0 => format!("{}µs", cut(millis * 1e3)),
        _ if millis < 1000.0 => format!("{}ms", cut(millis)),
        _ if millis < 60_000.0 => format!("{}s", cut(millis / 1e3)),
        _ => long_time(millis),
    }
}

fn long_time(millis: f64) -> String {
    let seconds = (millis / 1e3).trunc();
    let (minutes, rest) = ((seconds / 60.0).trunc(), seconds % 60.0);
    if minutes < 60.0 {
        return format!("{minutes}m{rest}s");
    }
    format!("{}h{}m{rest}s", (minutes / 60.0).trunc(), minutes % 60.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_k6_writes_them() {
        for (millis, text) in [
            (0.0, "0s"),
            (0.000_5, "500ns"),
            (0.25, "250µs"),
            (140.368, "140.36ms"),
            (1500.0, "1.5s"),
            (90_000.0, "1m30s"),
            (3_723_000.0, "1h2m3s"),
        ] {
            assert_eq!(time(millis, ""), text);
        }
        assert_eq!(time(1500.0, "ms"), "1500.00ms");
        for (bytes, text) in
            [(7.0, "7 B"), (519_000.0, "519 kB"), (4_900.0, "4.9 kB"), (715.0, "715 B"), (1e9, "1.0 GB")]
        {
            assert_eq!(data(bytes), text);
        }
        assert_eq!(
            (percent(0.988_88), percent(1.0), percent(0.0)),
            ("98.88%".into(), "100.00%".into(), "0.00%".into())
        );
        assert_eq!(rate(6.561_09, ScriptUnit::Default, ""), "6.56109/s");
    }
}
