//! Times as the formats write them, to nanoseconds since the epoch; what cannot be true is refused.

use jiff::Timestamp;
use jiff::fmt::strtime;

use crate::limits::{TIME_NS_MAX, TIME_NS_MIN};

/// An RFC 3339 or ISO 8601 time with its zone.
pub(super) fn of_iso(text: &str) -> Result<u64, String> {
    let time: Timestamp =
        text.trim().parse().map_err(|_| format!("`{}` is not an ISO 8601 time", cut(text)))?;
    checked(time.as_nanosecond(), text)
}

/// `10/Oct/2000:13:55:36 -0700`.
pub(super) fn of_common_log(text: &str) -> Result<u64, String> {
    let refused = || format!("`{}` is not a time such as 10/Oct/2000:13:55:36 -0700", cut(text));
    let parsed = strtime::parse("%d/%b/%Y:%H:%M:%S %z", text).map_err(|_| refused())?;
    checked(parsed.to_timestamp().map_err(|_| refused())?.as_nanosecond(), text)
}

/// A time without a zone, taken as UTC: `06/Feb/2009:12:14:14.655`, `2009-02-06 12:14:14,655` or `2009-02-06T12:14:14`.
pub(super) fn of_local(text: &str) -> Result<u64, String> {
    let formats = ["%d/%b/%Y:%H:%M:%S%.f", "%Y-%m-%d %H:%M:%S%.f", "%Y-%m-%dT%H:%M:%S%.f"];
    let spelled = text.replace(',', ".");
    let parsed = formats.iter().find_map(|format| strtime::parse(format, &spelled).ok()?.to_datetime().ok());
    let refused = || format!("`{}` is not a time", cut(text));
    let time = parsed.ok_or_else(refused)?.to_zoned(jiff::tz::TimeZone::UTC).map_err(|_| refused())?;
    checked(time.timestamp().as_nanosecond(), text)
}

/// A time in any spelling that logs have: ISO 8601, the common log's, or a number since the epoch.
pub(super) fn of_any(text: &str) -> Result<u64, String> {
    let number = || {
        let number: f64 = text.parse().ok()?;
        // Milliseconds and less are whole numbers; seconds may have a fraction.
        Some(if number >= 1e11 { of_epoch(number as u64) } else { of_seconds(number) })
    };
    let spelled = || of_iso(text).or_else(|_| of_common_log(text.trim_matches(['[', ']'])));
    number()
        .unwrap_or_else(spelled)
        .or_else(|_| of_local(text))
        .map_err(|_| format!("`{}` is not a time", cut(text)))
}

/// Seconds since the epoch, with a fraction.
pub(super) fn of_seconds(seconds: f64) -> Result<u64, String> {
    // Whole seconds apart: a product of both would lose the nanoseconds.
    let whole = seconds.trunc() as i128;
    checked(
        whole.saturating_mul(1_000_000_000) + (seconds.fract() * 1e9).round() as i128,
        &seconds.to_string(),
    )
}

/// Nanoseconds since the epoch; older files have milliseconds or microseconds, which the magnitude distinguishes.
pub(super) fn of_epoch(number: u64) -> Result<u64, String> {
    let nanoseconds = match number {
        0..100_000_000_000 => i128::from(number) * 1_000_000_000,
        100_000_000_000..100_000_000_000_000 => i128::from(number) * 1_000_000,
        100_000_000_000_000..100_000_000_000_000_000 => i128::from(number) * 1000,
        _ => i128::from(number),
    };
    checked(nanoseconds, &number.to_string())
}

fn checked(nanoseconds: i128, text: &str) -> Result<u64, String> {
    match u64::try_from(nanoseconds) {
        Ok(time_ns) if (TIME_NS_MIN..=TIME_NS_MAX).contains(&time_ns) => Ok(time_ns),
        _ => Err(format!("the time `{}` is not between 1990 and 2100", cut(text))),
    }
}

/// The beginning of a text, for a message.
pub(super) fn cut(text: &str) -> String {
    let shown: String = text.chars().take(SHOWN_CHARS).collect();
    let shown = shown.escape_debug().to_string();
    if text.chars().nth(SHOWN_CHARS).is_some() { format!("{shown}...") } else { shown }
}

/// Where records have no time, the first one has this: any will do.
pub(super) const ANY_NS: u64 = 1_700_000_000_000_000_000;

const SHOWN_CHARS: usize = 40;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_in_every_spelling() {
        assert_eq!(of_iso("2021-01-26T06:28:51.487Z"), Ok(1_611_642_531_487_000_000));
        assert_eq!(of_iso("2021-01-26T07:28:51.487+01:00"), Ok(1_611_642_531_487_000_000));
        assert_eq!(of_common_log("26/Jan/2021:06:28:51 +0000"), Ok(1_611_642_531_000_000_000));
        for number in [1_611_642_531, 1_611_642_531_000, 1_611_642_531_000_000, 1_611_642_531_000_000_000] {
            assert_eq!(of_epoch(number), Ok(1_611_642_531_000_000_000), "{number}");
        }
    }

    #[test]
    fn times_of_logs_are_recognised_by_their_looks() {
        for text in [
            "1611642531.5",
            "1611642531500",
            "1611642531500000",
            "2021-01-26T06:28:51.5Z",
            "2021-01-26T06:28:51.5",
            "2021-01-26 06:28:51,500",
            "26/Jan/2021:06:28:51.500",
        ] {
            assert_eq!(of_any(text), Ok(1_611_642_531_500_000_000), "{text}");
        }
        assert!(of_any("soon").is_err() && of_any("").is_err());
    }

    #[test]
    fn absurd_times_are_refused() {
        for text in ["0001-01-01T00:00:00Z", "9999-12-31T00:00:00Z", "yesterday", ""] {
            assert!(of_iso(text).is_err(), "{text}");
        }
        assert!(of_seconds(f64::NAN).is_err() && of_seconds(1e30).is_err() && of_epoch(u64::MAX).is_err());
    }
}
