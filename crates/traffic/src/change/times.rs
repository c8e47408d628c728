//! Recorded points in time moved to the present: what lay an hour before its request lies an hour before it again.
//!
//! Found are ISO 8601 times and dates, and seconds or milliseconds since the epoch, as far as they lie within a year of the request.

use std::sync::LazyLock;

use jiff::civil::Date;
use jiff::tz::Offset;
use jiff::{SignedDuration, Timestamp, ToSpan};
use regex::bytes::Regex;

use super::{Context, found};
use crate::Request;

/// Moves every time in the request.
pub(super) fn shift(request: &mut Request, context: &Context<'_>) {
    let by = SignedDuration::from_nanos(context.now_ns as i64)
        - SignedDuration::from_nanos(context.recorded_ns as i64);
    let moved = |text: &[u8]| {
        let text = std::str::from_utf8(text).ok()?;
        let text = match text.len() {
            10 | 13 if text.bytes().all(|byte| byte.is_ascii_digit()) => epoch(text, context.recorded_ns, by),
            10 => date(text, context.recorded_ns, by),
            _ => iso(text, context.recorded_ns, by),
        }?;
        Some(text.into_bytes())
    };
    found::each(request, &TIME, &mut |text| moved(text));
}

/// Seconds or milliseconds since the epoch.
fn epoch(text: &str, recorded_ns: u64, by: SignedDuration) -> Option<String> {
    let unit_ns: i64 = if text.len() == 10 { 1_000_000_000 } else { 1_000_000 };
    let time = text.parse::<i64>().ok()?;
    is_near(Timestamp::from_nanosecond(i128::from(time) * i128::from(unit_ns)).ok()?, recorded_ns).then(
        || {
            let by = (by.as_nanos() / i128::from(unit_ns)) as i64;
            (time + by).to_string()
        },
    )
}

fn date(text: &str, recorded_ns: u64, by: SignedDuration) -> Option<String> {
    let date: Date = text.parse().ok()?;
    let time = date.to_zoned(jiff::tz::TimeZone::UTC).ok()?.timestamp();
    let days = (by.as_secs() as f64 / 86_400.0).round() as i64;
    is_near(time, recorded_ns)
        .then(|| date.checked_add(days.days()).ok().map(|date| date.to_string()))
        .flatten()
}

/// A time with its zone, or without one; the same precision, the same zone.
fn iso(text: &str, recorded_ns: u64, by: SignedDuration) -> Option<String> {
    let is_encoded = text.contains("%3A") || text.contains("%3a");
    let plain = text.replace("%3A", ":").replace("%3a", ":").replace("%2B", "+").replace("%2b", "+");
    let zone_at = plain.get(19..)?.find(['Z', '+', '-']).map_or(plain.len(), |at| at + 19);
    let (clock, zone) = plain.split_at(zone_at);
    let time: Timestamp = format!("{clock}{}", if zone.is_empty() { "Z" } else { zone }).parse().ok()?;
    if !is_near(time, recorded_ns) {
        return None;
    }
    let offset = zone_offset(zone)?;
    let moved = offset.to_datetime(time.checked_add(by).ok()?);
    let digits = clock.len().saturating_sub(20);
    let fraction = match digits {
        0 => String::new(),
        _ => format!(".{:.digits$}", format!("{:09}", moved.subsec_nanosecond())),
    };
    let text = format!("{}T{}{fraction}{zone}", moved.date(), moved.strftime("%H:%M:%S"));
    Some(if is_encoded { text.replace(':', "%3A").replace('+', "%2B") } else { text })
}

fn zone_offset(zone: &str) -> Option<Offset> {
    let digits: String = zone.chars().filter(char::is_ascii_digit).collect();
    if digits.is_empty() {
        return Some(Offset::UTC);
    }
    let minutes = digits.get(..2)?.parse::<i32>().ok()? * 60 + digits.get(2..4)?.parse::<i32>().ok()?;
    let sign = if zone.starts_with('-') { -1 } else { 1 };
    Offset::from_seconds(sign * minutes * 60).ok()
}

fn is_near(time: Timestamp, recorded_ns: u64) -> bool {
    (time.as_nanosecond() - i128::from(recorded_ns)).abs() < YEAR_NS
}

const YEAR_NS: i128 = 366 * 86_400 * 1_000_000_000;

/// A time, a date, ten or thirteen digits.
static TIME: LazyLock<Regex> = LazyLock::new(|| {
    let clock = r"[0-9]{2}(?::|%3[Aa])[0-9]{2}(?::|%3[Aa])[0-9]{2}(?:\.[0-9]{1,9})?";
    let zone = r"(?:Z|(?:[+-]|%2[Bb])[0-9]{2}(?::|%3[Aa])?[0-9]{2})?";
    let pattern =
        format!(r"(?-u)[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}(?:T{clock}{zone})?|[0-9]{{13}}|[0-9]{{10}}");
    Regex::new(&pattern).expect("the pattern is constant")
});
