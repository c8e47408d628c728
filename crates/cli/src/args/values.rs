//! Readers of single values: the plan's parsers, with the bounds of each flag.

use std::net::SocketAddr;
use std::num::{NonZeroU32, NonZeroU64};
use std::time::Duration;

use squall_plan::InputError;
use squall_plan::limits::{
    CONNECTION_COUNT_MAX, CONNECTION_WINDOW_BYTES_MIN, PIPELINE_DEPTH_MAX, REDIRECT_COUNT_MAX,
    STREAM_COUNT_MAX, THREAD_COUNT_MAX, WINDOW_BYTES_MAX,
};
use squall_plan::rules::parse_statuses;
use squall_plan::units::{parse_count, parse_duration, parse_rate, parse_size};

/// `--expect-status`: a separate type, because clap gives `Vec` a meaning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Statuses(pub Vec<(u16, u16)>);

pub(super) fn statuses(text: &str) -> Result<Statuses, InputError> {
    parse_statuses(text).map(Statuses)
}

/// A duration that is not zero.
pub(super) fn time(text: &str) -> Result<Duration, InputError> {
    let time = parse_duration(text)?;
    if time.is_zero() { Err(refused("must not be zero", "write a time such as `10s`")) } else { Ok(time) }
}

/// A number that k6 reads before it judges it: its exit code depends on that.
pub(super) fn signed(text: &str) -> Result<i64, InputError> {
    text.parse().or_else(|_| parse_count(text).map(|count| i64::try_from(count).unwrap_or(i64::MAX)))
}

/// k6's `--rps`: no rate is none, and so is a negative one.
pub(super) fn rps(text: &str) -> Result<f64, InputError> {
    match text.parse() {
        Ok(rate) if rate < 0.0 => Ok(rate),
        _ => parse_rate(text),
    }
}

pub(super) fn requests(text: &str) -> Result<NonZeroU64, InputError> {
    NonZeroU64::new(parse_count(text)?)
        .ok_or_else(|| refused("no requests to measure", "remove it to run for a time: `-d 10s`"))
}

pub(super) fn connections(text: &str) -> Result<NonZeroU32, InputError> {
    counted(text, CONNECTION_COUNT_MAX)
}

/// Connections of `squall handshake`, where tls-perf's `-c` is something else.
pub(super) fn handshake_connections(text: &str) -> Result<NonZeroU32, InputError> {
    let is_name = text.starts_with(|c: char| c.is_ascii_alphabetic());
    connections(text).map_err(|error| InputError {
        help: if is_name {
            "cipher suites are `--ciphers LIST`, by their IANA names".to_owned()
        } else {
            error.help
        },
        ..error
    })
}

/// Whole seconds, as other tools write them; or any duration.
pub(super) fn seconds(text: &str) -> Result<Duration, InputError> {
    let is_bare = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if is_bare { time(&format!("{text}s")) } else { time(text) }
}

/// A part of a whole: `0.8` or `80%`.
pub(super) fn share(text: &str) -> Result<f64, InputError> {
    let (number, whole) = text.strip_suffix('%').map_or((text, 1.0), |number| (number, 100.0));
    let share = number.trim().parse::<f64>().ok().map(|number| number / whole);
    let is_share = |share: &f64| (0.0..=1.0).contains(share);
    share
        .filter(is_share)
        .ok_or_else(|| refused("not a fraction or percentage", "write a number from 0 to 1, or `80%`"))
}

pub(super) fn requests_per_connection(text: &str) -> Result<NonZeroU32, InputError> {
    counted(text, u32::MAX)
}

pub(super) fn pipeline(text: &str) -> Result<NonZeroU32, InputError> {
    counted(text, PIPELINE_DEPTH_MAX)
}

pub(super) fn streams(text: &str) -> Result<NonZeroU32, InputError> {
    counted(text, STREAM_COUNT_MAX)
}

/// A stream's flow-control window.
pub(super) fn window(text: &str) -> Result<u32, InputError> {
    window_of(text, 1)
}

/// A connection's flow-control window.
pub(super) fn connection_window(text: &str) -> Result<u32, InputError> {
    window_of(text, CONNECTION_WINDOW_BYTES_MIN)
}

fn window_of(text: &str, min: u32) -> Result<u32, InputError> {
    match u32::try_from(parse_size(text)?) {
        Ok(bytes) if (min..=WINDOW_BYTES_MAX).contains(&bytes) => Ok(bytes),
        _ => Err(refused(
            format!("not from {min} to {WINDOW_BYTES_MAX} bytes"),
            "write a size such as `64KiB` or `1GiB`",
        )),
    }
}

pub(super) fn threads(text: &str) -> Result<NonZeroU32, InputError> {
    counted(text, THREAD_COUNT_MAX)
}

pub(super) fn redirects(text: &str) -> Result<u32, InputError> {
    match u32::try_from(parse_count(text)?) {
        Ok(count) if count <= REDIRECT_COUNT_MAX => Ok(count),
        _ => Err(refused(format!("more than {REDIRECT_COUNT_MAX}"), "follow fewer redirects")),
    }
}

pub(super) fn listen(text: &str) -> Result<SocketAddr, InputError> {
    let help = "write an IP address and a port, such as `127.0.0.1:8080` or `[::]:8080`";
    text.parse().map_err(|_| refused("not an IP address and a port", help))
}

pub(super) fn counted(text: &str, max: u32) -> Result<NonZeroU32, InputError> {
    let help = || format!("write a number from 1 to {max}");
    match u32::try_from(parse_count(text)?).map(NonZeroU32::new) {
        Ok(Some(count)) if count.get() <= max => Ok(count),
        Ok(None) => Err(refused("must not be zero", help())),
        _ => Err(refused(format!("more than {max}"), help())),
    }
}

pub(super) fn refused(reason: impl Into<String>, help: impl Into<String>) -> InputError {
    InputError { column: 1, reason: reason.into(), help: help.into() }
}
