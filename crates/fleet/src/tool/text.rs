//! Numbers with the units that tools print, and where they stand in a text.

/// A time in microseconds: `116.00us`, `1.79ms`, `2s`, `1.2m`, `4.1h`.
pub(super) fn micros(text: &str) -> Option<f64> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let value: f64 = text[..end].parse().ok()?;
    let unit = match text[end..].trim() {
        "ns" => 1e-3,
        "us" | "µs" => 1.0,
        "ms" => 1e3,
        "s" | "secs" => 1e6,
        "m" => 60e6,
        "h" => 3600e6,
        _ => return None,
    };
    Some(value * unit)
}

/// A size in bytes: `19.37MB`, `105.96KB`, `512B`. The tools here count by 1024.
pub(super) fn bytes(text: &str) -> Option<u64> {
    let text = text.trim_end_matches("read").trim().trim_end_matches('B');
    let (number, factor) = match text.chars().last()? {
        'K' => (&text[..text.len() - 1], 1024.0),
        'M' => (&text[..text.len() - 1], 1024.0 * 1024.0),
        'G' => (&text[..text.len() - 1], 1024.0 * 1024.0 * 1024.0),
        'T' => (&text[..text.len() - 1], 1024.0 * 1024.0 * 1024.0 * 1024.0),
        _ => (text, 1.0),
    };
    number.trim().parse::<f64>().ok().map(|value| (value * factor) as u64)
}

/// What follows a name at the beginning of a line, without blanks around it.
pub(super) fn after<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| line.trim_start().strip_prefix(name)).map(str::trim)
}

/// The first number of a text, which may have commas after it. `NaN` and `Inf` are none: tools print them where nothing was measured.
pub(super) fn number<T: std::str::FromStr>(text: &str) -> Option<T> {
    let first =
        text.split(|c: char| c.is_whitespace() || c == ',' || c == ';').find(|word| !word.is_empty())?;
    first.parse::<f64>().ok().filter(|number| number.is_finite())?;
    first.parse().ok()
}

/// The number before a word: `500 succeeded`.
pub(super) fn before(text: &str, word: &str) -> Option<u64> {
    let mut previous = "";
    for next in text.split_whitespace().map(|word| word.trim_matches([',', ';', ':'])) {
        if next == word {
            return previous.parse().ok();
        }
        previous = next;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_of_the_tools_are_known() {
        for (text, expected) in [("116.00us", 116.0), ("1.79ms", 1790.0), ("2s", 2e6), ("0.85m", 51e6)] {
            assert_eq!(micros(text), Some(expected), "{text}");
        }
        assert_eq!(micros("fast"), None);
        for (text, expected) in [("512B", 512), ("1.5KB", 1536), ("2MB read", 2 << 20), ("7", 7)] {
            assert_eq!(bytes(text), Some(expected), "{text}");
        }
        for (text, expected) in [("12.5, 3", Some(12.5)), ("NaN secs", None), ("+Inf", None), ("1e999", None)]
        {
            assert_eq!(number::<f64>(text), expected, "{text}");
        }
        assert_eq!(before("500 total, 498 succeeded, 2 failed", "succeeded"), Some(498));
    }
}
