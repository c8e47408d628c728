//! Durations in URLs: a plain number is milliseconds; `us`, `ms`, `s` and `m` may be written behind it.

use std::time::Duration;

use crate::{limits::DELAY_MAX, reply::Refusal};

/// Reads `250`, `0.5s`, `800us`; refuses what is negative, not a number, or longer than an hour.
pub(crate) fn parse(text: &str) -> Result<Duration, Refusal> {
    let digits_end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits_end);
    let number: f64 = number.parse().map_err(|_| refuse(text))?;
    let seconds = number * seconds_per(unit).ok_or_else(|| refuse(text))?;
    if seconds > DELAY_MAX.as_secs_f64() {
        return Err(Refusal::new(format!("`{text}` is longer than {} s", DELAY_MAX.as_secs())));
    }
    Ok(Duration::from_secs_f64(seconds))
}

fn seconds_per(unit: &str) -> Option<f64> {
    match unit {
        "us" => Some(1e-6),
        "" | "ms" => Some(1e-3),
        "s" => Some(1.0),
        "m" => Some(60.0),
        _ => None,
    }
}

fn refuse(text: &str) -> Refusal {
    Refusal::new(format!(
        "`{text}` is not a duration; write milliseconds, or a unit as in 800us, 250ms, 0.5s, 1m"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_numbers_are_milliseconds_and_units_are_explicit() {
        for (text, us) in [("0", 0), ("250", 250_000), ("0.5s", 500_000), ("800us", 800), ("1m", 60_000_000)]
        {
            assert_eq!(parse(text).unwrap(), Duration::from_micros(us), "{text}");
        }
    }

    #[test]
    fn nonsense_is_refused() {
        for text in ["", "s", "-1", "1.2.3", "1h", "1e3", "NaN", "inf", "61m", "99999999999999999999", "٣"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
