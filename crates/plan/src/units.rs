//! Numbers with units as people type them: durations, sizes, counts, rates, weights, and the stages of a ramp.
//!
//! Pure functions of the text; decimals are kept exact (`1.5KiB` is 1536 bytes, `1.0001us` is refused). No input panics.

use std::fmt;
use std::num::NonZeroU32;
use std::time::Duration;

use crate::limits::DURATION_MAX;
use crate::{InputError, Profile, Stage};

/// Reads `500ms`, `10s`, `1.5h`, `1h30m`, `2d`. Units: `ns us µs ms s m h d`. A number without one is refused (except `0`), because some
/// tools would read it as seconds and others as milliseconds. At most [`DURATION_MAX`].
pub fn parse_duration(text: &str) -> Result<Duration, InputError> {
    if text == "0" {
        return Ok(Duration::ZERO);
    }
    let mut total = Duration::ZERO;
    let mut rest = Scanner::new(text);
    loop {
        let start = rest.offset;
        let part = rest.quantity(&DURATION_UNITS, DURATION_HELP)?;
        total = total.saturating_add(Duration::from_nanos(part));
        if total > DURATION_MAX {
            return Err(InputError::at(text, start, "longer than a year", DURATION_HELP));
        }
        if rest.is_empty() {
            return Ok(total);
        }
    }
}

/// Reads a number of bytes: `512`, `10k` (10,000), `10KiB` or `10Ki` (10,240), `1.5MiB`. A final `B` and the case of letters do not matter.
pub fn parse_size(text: &str) -> Result<u64, InputError> {
    parse_whole(text, &SIZE_UNITS, SIZE_HELP)
}

/// Reads a count: `12345`, `10k`, `1.5M`, `2G` (thousands, in either case).
pub fn parse_count(text: &str) -> Result<u64, InputError> {
    parse_whole(text, &COUNT_UNITS, COUNT_HELP)
}

/// Reads a rate and gives it per second: `500/s`, `30/m`, `10k/s`, `50/10s`; a bare number is per second.
pub fn parse_rate(text: &str) -> Result<f64, InputError> {
    let Some((amount, period)) = text.split_once('/') else { return parse_amount(text, RATE_HELP) };
    let amount_value = parse_amount(amount, RATE_HELP)?;
    let columns_before = amount.chars().count() + 1;
    let period = parse_period(period)
        .map_err(|e| InputError { help: RATE_HELP.into(), ..e }.behind(columns_before))?;
    if period.is_zero() {
        return Err(InputError::at(text, amount.len() + 1, "a period of zero", RATE_HELP));
    }
    Ok(amount_value / period.as_secs_f64())
}

/// Reads a weight: a whole number from 1.
pub fn parse_weight(text: &str) -> Result<NonZeroU32, InputError> {
    let reason = match text.parse::<u32>() {
        Ok(number) => match NonZeroU32::new(number) {
            Some(weight) => return Ok(weight),
            None => "a weight of 0 is never chosen",
        },
        Err(_) => "not a weight",
    };
    Err(InputError::at(text, 0, reason, "a weight is a whole number from 1, such as `3@`"))
}

/// The stages of a ramp as typed: `10s:100,1m:1000`, or with rates `10s:100/s,1m:30/m`.
#[derive(Debug, Clone, PartialEq)]
pub struct Ramp {
    /// In order; at least one.
    pub stages: Vec<Stage>,
    /// Whether a target was written as a rate (`100/s`).
    pub has_rates: bool,
}

impl Ramp {
    /// The value over time that starts at `from`.
    pub fn profile(&self, from: f64) -> Profile {
        Profile { from, stages: self.stages.clone() }
    }
}

/// Reads the stages of a ramp, each `DURATION:TARGET`, separated by commas.
pub fn parse_ramp(text: &str) -> Result<Ramp, InputError> {
    let mut columns_before = 0;
    let mut stages = Vec::new();
    for part in text.split(',') {
        stages.push(parse_stage(part).map_err(|e| e.behind(columns_before))?);
        columns_before += part.chars().count() + 1;
    }
    Ok(Ramp { stages, has_rates: text.contains('/') })
}

fn parse_stage(text: &str) -> Result<Stage, InputError> {
    let (duration, target) =
        text.split_once(':').ok_or_else(|| InputError::at(text, 0, "a stage needs a `:`", RAMP_HELP))?;
    let columns_before = duration.chars().count() + 1;
    Ok(Stage {
        duration: parse_duration(duration)?,
        target: parse_rate(target)
            .map_err(|e| InputError { help: RAMP_HELP.into(), ..e }.behind(columns_before))?,
    })
}

/// A duration as [`parse_duration`] reads it: `1h30m`, `1.5s` as `1s500ms`.
#[derive(Debug, Clone, Copy)]
pub struct DurationText(pub Duration);

impl fmt::Display for DurationText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.0.as_nanos();
        if rest == 0 {
            return f.write_str("0s");
        }
        for &(name, nanos) in DURATION_UNITS.worth.iter().rev().filter(|(name, _)| *name != "µs") {
            let whole = rest / u128::from(nanos);
            if whole > 0 {
                write!(f, "{whole}{name}")?;
            }
            rest %= u128::from(nanos);
        }
        Ok(())
    }
}

fn parse_whole(text: &str, units: &Units, help: &str) -> Result<u64, InputError> {
    let mut rest = Scanner::new(text);
    let value = rest.quantity(units, help)?;
    rest.finish(help)?;
    Ok(value)
}

/// A count that may have a fraction left: half an arrival per second is a rate.
fn parse_amount(text: &str, help: &str) -> Result<f64, InputError> {
    let mut rest = Scanner::new(text);
    let decimal = rest.decimal(help)?;
    let multiplier = rest.unit(&COUNT_UNITS, help)?;
    rest.finish(help)?;
    Ok(decimal.digits as f64 / 10f64.powi(i32::from(decimal.scale)) * multiplier as f64)
}

/// What follows the slash of a rate: a unit (`s`) or a duration (`10s`).
fn parse_period(text: &str) -> Result<Duration, InputError> {
    match DURATION_UNITS.worth.iter().find(|(name, _)| *name == text) {
        Some(&(_, nanos)) => Ok(Duration::from_nanos(nanos)),
        None if text.starts_with(|c: char| c.is_ascii_digit()) => parse_duration(text),
        None => Err(InputError::at(text, 0, format!("unknown period `{text}`"), RATE_HELP)),
    }
}

/// Reads quantities from the front of a text.
struct Scanner<'a> {
    text: &'a str,
    offset: usize,
}

/// `digits / 10^scale`, exactly.
struct Decimal {
    digits: u128,
    scale: u8,
}

impl<'a> Scanner<'a> {
    fn new(text: &'a str) -> Self {
        Self { text, offset: 0 }
    }

    fn rest(&self) -> &'a str {
        &self.text[self.offset..]
    }

    fn is_empty(&self) -> bool {
        self.rest().is_empty()
    }

    /// Nothing may follow.
    fn finish(&self, help: &str) -> Result<(), InputError> {
        if self.is_empty() {
            return Ok(());
        }
        Err(InputError::at(self.text, self.offset, format!("unexpected `{}`", self.rest()), help))
    }

    /// A number and its unit, as a whole number of the smallest unit.
    fn quantity(&mut self, units: &Units, help: &str) -> Result<u64, InputError> {
        let start = self.offset;
        let decimal = self.decimal(help)?;
        let multiplier = self.unit(units, help)?;
        decimal.times(multiplier, units).map_err(|reason| InputError::at(self.text, start, reason, help))
    }

    fn decimal(&mut self, help: &str) -> Result<Decimal, InputError> {
        let start = self.offset;
        let text = self.take_while(|c| c.is_ascii_digit() || c == '.');
        parse_decimal(text).map_err(|reason| InputError::at(self.text, start, reason, help))
    }

    /// A unit of the table; the one named `""` when there is none.
    fn unit(&mut self, units: &Units, help: &str) -> Result<u64, InputError> {
        let start = self.offset;
        let name = self.take_while(|c| !c.is_ascii_digit() && c != '.');
        let found = units.worth.iter().find(|(unit, _)| *unit == name);
        let found = found.or_else(|| units.worth.iter().find(|(unit, _)| unit.eq_ignore_ascii_case(name)));
        if let Some(&(_, multiplier)) = found {
            return Ok(multiplier);
        }
        let reason =
            if name.is_empty() { "a unit is missing".to_owned() } else { format!("unknown unit `{name}`") };
        Err(InputError::at(self.text, start, reason, help))
    }

    fn take_while(&mut self, belongs: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let taken = &rest[..rest.find(|c| !belongs(c)).unwrap_or(rest.len())];
        self.offset += taken.len();
        taken
    }
}

fn parse_decimal(text: &str) -> Result<Decimal, &'static str> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    if whole.is_empty() || fraction.is_empty() || fraction.contains('.') {
        return Err("not a number");
    }
    if whole.len() + fraction.len() > DIGIT_COUNT_MAX {
        return Err("too many digits");
    }
    let digits = format!("{whole}{fraction}").parse().map_err(|_| "not a number")?;
    let scale = u8::try_from(fraction.len()).map_err(|_| "too many digits")?;
    Ok(Decimal { digits, scale })
}

impl Decimal {
    fn times(&self, multiplier: u64, units: &Units) -> Result<u64, &'static str> {
        let divisor = 10u128.pow(u32::from(self.scale));
        let product = self.digits.checked_mul(u128::from(multiplier)).ok_or("too large")?;
        if product % divisor != 0 {
            return Err(units.not_whole);
        }
        u64::try_from(product / divisor).map_err(|_| "too large")
    }
}

/// What a number may be counted in.
struct Units {
    /// Names, and how many of the smallest unit each is worth.
    worth: &'static [(&'static str, u64)],
    /// What is said of a part of the smallest unit.
    not_whole: &'static str,
}

/// Smallest first: [`DurationText`] relies on it.
const DURATION_UNITS: Units = Units {
    worth: &[
        ("ns", 1),
        ("us", 1_000),
        ("µs", 1_000),
        ("ms", 1_000_000),
        ("s", 1_000_000_000),
        ("m", 60_000_000_000),
        ("h", 3_600_000_000_000),
        ("d", 86_400_000_000_000),
    ],
    not_whole: "finer than a nanosecond",
};

const COUNT_UNITS: Units = Units {
    worth: &[("", 1), ("k", 1_000), ("M", 1_000_000), ("G", 1_000_000_000)],
    not_whole: "not a whole number",
};

const SIZE_UNITS: Units = Units {
    worth: &[
        ("", 1),
        ("B", 1),
        ("k", 1_000),
        ("kB", 1_000),
        ("Ki", 1 << 10),
        ("KiB", 1 << 10),
        ("M", 1_000_000),
        ("MB", 1_000_000),
        ("Mi", 1 << 20),
        ("MiB", 1 << 20),
        ("G", 1_000_000_000),
        ("GB", 1_000_000_000),
        ("Gi", 1 << 30),
        ("GiB", 1 << 30),
    ],
    not_whole: "not a whole number of bytes",
};

/// Twenty digits hold every `u64`; as many again may follow the point. Their product with a unit is checked.
const DIGIT_COUNT_MAX: usize = 38;

const DURATION_HELP: &str = "write a duration with its unit, such as `500ms`, `10s`, `2m` or `1h30m`";
const SIZE_HELP: &str = "write a size such as `512`, `10k` (10,000 bytes), `64KiB` or `1.5MiB`";
const COUNT_HELP: &str = "write a whole number such as `12345`, `10k` or `1.5M`";
const RATE_HELP: &str = "write a rate such as `500/s`, `10k/s` or `30/m`; a bare number is per second";
const RAMP_HELP: &str = "write stages as `DURATION:TARGET`, such as `10s:100,1m:1000`";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_take_units_and_add_up() {
        for (text, millis) in [
            ("500ms", 500),
            ("10s", 10_000),
            ("2m", 120_000),
            ("1h30m", 5_400_000),
            ("1.5s", 1_500),
            ("1d", 86_400_000),
            ("0", 0),
            ("0s", 0),
            ("2000us", 2),
            ("2000µs", 2),
        ] {
            assert_eq!(parse_duration(text), Ok(Duration::from_millis(millis)), "{text}");
        }
    }

    #[test]
    fn bad_durations_say_where_and_why() {
        for (text, column, reason) in [
            ("", 1, "not a number"),
            ("10", 3, "a unit is missing"),
            ("10x", 3, "unknown unit `x`"),
            ("1h30", 5, "a unit is missing"),
            ("1h30q", 5, "unknown unit `q`"),
            ("-1s", 1, "not a number"),
            ("1..5s", 1, "not a number"),
            ("1.s", 1, "not a number"),
            ("1.0001us", 1, "finer than a nanosecond"),
            ("400d", 1, "longer than a year"),
            ("300d300d", 5, "longer than a year"),
            ("99999999999999999999999999d", 1, "too large"),
            ("999999999999999999999999999999999999999999s", 1, "too many digits"),
            ("10 s", 3, "unknown unit ` s`"),
        ] {
            let error = parse_duration(text).unwrap_err();
            assert_eq!((error.column, error.reason.as_str()), (column, reason), "{text}");
            assert_eq!(error.help, DURATION_HELP);
        }
    }

    #[test]
    fn duration_text_reads_back() {
        for text in ["0s", "10s", "1h30m", "1s500ms", "1ms1us1ns", "3d"] {
            assert_eq!(DurationText(parse_duration(text).unwrap()).to_string(), text);
        }
    }

    #[test]
    fn sizes_are_exact() {
        for (text, bytes) in [
            ("512", 512),
            ("10k", 10_000),
            ("10K", 10_000),
            ("10KiB", 10_240),
            ("10ki", 10_240),
            ("1.5MiB", 1_572_864),
            ("2GB", 2_000_000_000),
            ("7B", 7),
        ] {
            assert_eq!(parse_size(text), Ok(bytes), "{text}");
        }
        assert_eq!(parse_size("1.5").unwrap_err().reason, "not a whole number of bytes");
        assert_eq!(parse_size("10s").unwrap_err().reason, "unknown unit `s`");
        assert_eq!(parse_size("1k1k").unwrap_err().reason, "unexpected `1k`");
    }

    #[test]
    fn counts_take_thousands() {
        for (text, count) in
            [("0", 0), ("12345", 12_345), ("10k", 10_000), ("1.5M", 1_500_000), ("2m", 2_000_000)]
        {
            assert_eq!(parse_count(text), Ok(count), "{text}");
        }
        assert_eq!(parse_count("18446744073709551615"), Ok(u64::MAX));
        assert_eq!(parse_count("18446744073709551616").unwrap_err().reason, "too large");
    }

    #[test]
    fn rates_are_per_second() {
        for (text, per_second) in [
            ("500/s", 500.0),
            ("500", 500.0),
            ("30/m", 0.5),
            ("10k/s", 10_000.0),
            ("0.5", 0.5),
            ("50/10s", 5.0),
        ] {
            assert_eq!(parse_rate(text), Ok(per_second), "{text}");
        }
        for (text, column, reason) in [
            ("500/parsec", 5, "unknown period `parsec`"),
            ("500/0s", 5, "a period of zero"),
            ("x/s", 1, "not a number"),
            ("5/", 3, "unknown period ``"),
            ("1k1k/s", 3, "unexpected `1k`"),
            ("5q/s", 2, "unknown unit `q`"),
        ] {
            let error = parse_rate(text).unwrap_err();
            assert_eq!((error.column, error.reason.as_str()), (column, reason), "{text}");
        }
    }

    #[test]
    fn ramps_are_stages_and_errors_point_into_them() {
        let ramp = parse_ramp("10s:100,1m:1k").unwrap();
        let stage = |secs, target| Stage { duration: Duration::from_secs(secs), target };
        assert_eq!(ramp, Ramp { stages: vec![stage(10, 100.0), stage(60, 1000.0)], has_rates: false });
        assert!(parse_ramp("10s:100/s").unwrap().has_rates);
        for (text, column) in [("", 1), ("10s", 1), ("10s:100,1x:5", 10), ("10s:100,1m:", 12), ("10s:1,", 7)]
        {
            assert_eq!(parse_ramp(text).unwrap_err().column, column, "{text}");
        }
    }

    #[test]
    fn weights_are_whole_and_positive() {
        assert_eq!(parse_weight("3").unwrap().get(), 3);
        for text in ["0", "-1", "1.5", "", "4294967296"] {
            assert!(parse_weight(text).is_err(), "{text}");
        }
    }
}
