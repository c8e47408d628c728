//! How single values of options are written: one reader for each kind of value, with its bounds.

use std::num::{NonZeroU16, NonZeroU32, NonZeroU64};
use std::path::PathBuf;
use std::time::Duration;

use crate::limits::{
    ACK_FREQUENCY_MAX, CONNECTION_COUNT_MAX, CONNECTION_WINDOW_BYTES_MIN, MIGRATION_TIME_MIN,
    PIPELINE_DEPTH_MAX, QPACK_TABLE_BYTES_MAX, REDIRECT_COUNT_MAX, STREAM_COUNT_MAX, THREAD_COUNT_MAX,
    UDP_PAYLOAD_BYTES_MAX, WINDOW_BYTES_MAX,
};
use crate::rules::parse_header;
use crate::units::{parse_count, parse_duration, parse_rate, parse_size, parse_weight};
use crate::urls::{basic_authorization, is_token};
use crate::{
    Arrival, CloseMode, Compare, H2c, Header, HttpVersion, IdleProtocol, InputError, Pacing, QuicCongestion,
    ResumptionMode, StreamFormat, TlsVersions, Weighted,
};

/// How a value is written.
#[derive(Debug, Clone, Copy)]
pub enum ValueForm {
    /// No value.
    Switch,
    /// Any text.
    Text,
    /// The path of a file that goes with the load, to whichever machine makes it.
    File,
    /// A path on the machine that makes the load.
    Path,
    /// A number, such as `12345` or `10k`.
    Number,
    /// A time, such as `1m30s`.
    Time,
    /// A rate, such as `10k/s`.
    Rate,
    /// A size, such as `64KiB`.
    Size,
    /// One of these names.
    Choice(fn() -> Vec<&'static str>),
}

/// A value that has a name for each of its few variants.
pub trait Named: Sized + Copy + 'static {
    /// Each name with its variant.
    const NAMES: &'static [(&'static str, Self)];
}

/// The names of all variants.
pub(super) fn names<T: Named>() -> Vec<&'static str> {
    T::NAMES.iter().map(|(name, _)| *name).collect()
}

/// The variant of that name.
pub(super) fn by_name<T: Named>(text: &str) -> Result<T, InputError> {
    let named = T::NAMES.iter().find(|(name, _)| *name == text).map(|(_, value)| *value);
    named.ok_or_else(|| refused("", format!("possible values: {}", names::<T>().join(", "))))
}

/// `--header`: a field, or a file of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HeaderSource {
    /// A field.
    Field(Header),
    /// A file with one on each line.
    File(PathBuf),
}

/// `--tickets`, as in tls-perf.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tickets {
    /// Offered, and used again.
    On,
    /// Not offered.
    Off,
    /// Offered, and not used.
    Advertise,
}

/// `--ping-with`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PingWith {
    /// A line feed.
    Byte,
    /// A request.
    Request,
}

/// `--csv-per`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CsvPer {
    /// A copy of the recorded clients.
    User,
    /// A request.
    Request,
}

impl Named for Arrival {
    const NAMES: &'static [(&'static str, Self)] =
        &[("constant", Self::Constant), ("poisson", Self::Poisson)];
}

impl Named for Pacing {
    const NAMES: &'static [(&'static str, Self)] =
        &[("precise", Self::Precise), ("balanced", Self::Balanced), ("cheap", Self::Cheap)];
}

impl Named for CloseMode {
    const NAMES: &'static [(&'static str, Self)] =
        &[("rst", Self::Rst), ("fin", Self::Fin), ("notify", Self::Notify)];
}

impl Named for HttpVersion {
    const NAMES: &'static [(&'static str, Self)] =
        &[("1.1", Self::Http11), ("2", Self::Http2), ("3", Self::Http3), ("auto", Self::Auto)];
}

impl Named for H2c {
    const NAMES: &'static [(&'static str, Self)] = &[("prior", Self::Prior), ("upgrade", Self::Upgrade)];
}

impl Named for QuicCongestion {
    const NAMES: &'static [(&'static str, Self)] =
        &[("cubic", Self::Cubic), ("bbr", Self::Bbr), ("newreno", Self::NewReno)];
}

impl Named for StreamFormat {
    const NAMES: &'static [(&'static str, Self)] =
        &[("sse", Self::Sse), ("lines", Self::Lines), ("pieces", Self::Pieces), ("auto", Self::Auto)];
}

impl Named for TlsVersions {
    const NAMES: &'static [(&'static str, Self)] =
        &[("1.2", Self::Tls12), ("1.3", Self::Tls13), ("any", Self::Any)];
}

impl Named for ResumptionMode {
    const NAMES: &'static [(&'static str, Self)] =
        &[("off", Self::Off), ("id", Self::Id), ("ticket", Self::Ticket), ("psk", Self::Psk)];
}

impl Named for Tickets {
    const NAMES: &'static [(&'static str, Self)] =
        &[("on", Self::On), ("off", Self::Off), ("advertise", Self::Advertise)];
}

impl Named for IdleProtocol {
    const NAMES: &'static [(&'static str, Self)] = &[("1", Self::Http1), ("2", Self::Http2)];
}

impl Named for PingWith {
    const NAMES: &'static [(&'static str, Self)] = &[("byte", Self::Byte), ("request", Self::Request)];
}

impl Named for Compare {
    const NAMES: &'static [(&'static str, Self)] =
        &[("nothing", Self::Nothing), ("status", Self::Status), ("body", Self::Body)];
}

impl Named for CsvPer {
    const NAMES: &'static [(&'static str, Self)] = &[("user", Self::User), ("request", Self::Request)];
}

/// Reads a duration that is not zero.
///
/// # Errors
/// When it is none, or zero.
pub fn time(text: &str) -> Result<Duration, InputError> {
    let time = parse_duration(text)?;
    if time.is_zero() { Err(refused("must not be zero", "write a time such as `10s`")) } else { Ok(time) }
}

/// Whole seconds, as other tools write them; or any duration.
pub(super) fn seconds(text: &str) -> Result<Duration, InputError> {
    let is_bare = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if is_bare { time(&format!("{text}s")) } else { time(text) }
}

/// A number that k6 reads before it judges it: its exit code depends on that.
pub(super) fn signed(text: &str) -> Result<i64, InputError> {
    text.parse().or_else(|_| parse_count(text).map(|count| i64::try_from(count).unwrap_or(i64::MAX)))
}

/// k6's `--rps`: 0 sets no limit, and neither does a negative rate.
pub(super) fn signed_rate(text: &str) -> Result<f64, InputError> {
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
    let help = "cipher suites are `--ciphers LIST`, by their IANA names";
    connections(text).map_err(|error| match is_name {
        true => InputError { help: help.to_owned(), ..error },
        false => error,
    })
}

/// Reads a number of threads.
///
/// # Errors
/// When it is none, zero, or too many.
pub fn threads(text: &str) -> Result<NonZeroU32, InputError> {
    counted(text, THREAD_COUNT_MAX)
}

pub(super) fn count(text: &str) -> Result<NonZeroU32, InputError> {
    counted(text, u32::MAX)
}

pub(super) fn pipeline(text: &str) -> Result<NonZeroU32, InputError> {
    counted(text, PIPELINE_DEPTH_MAX)
}

pub(super) fn streams(text: &str) -> Result<NonZeroU32, InputError> {
    counted(text, STREAM_COUNT_MAX)
}

/// The size of a UDP payload: at least what every path carries (RFC 9000 14.1).
pub(super) fn udp_payload(text: &str) -> Result<NonZeroU16, InputError> {
    let bytes = u16::try_from(parse_size(text)?).ok().and_then(NonZeroU16::new);
    let in_range = bytes.filter(|bytes| (1200..=UDP_PAYLOAD_BYTES_MAX).contains(&bytes.get()));
    in_range.ok_or_else(|| {
        refused("must be from 1200 to 65527", "Ethernet carries 1472 with IPv4, 1452 with IPv6")
    })
}

/// Packets that are acknowledged together.
pub(super) fn ack_frequency(text: &str) -> Result<NonZeroU32, InputError> {
    counted(text, ACK_FREQUENCY_MAX)
}

/// The capacity of QPACK's dynamic table.
pub(super) fn qpack_table(text: &str) -> Result<u32, InputError> {
    match u32::try_from(parse_size(text)?) {
        Ok(bytes) if bytes <= QPACK_TABLE_BYTES_MAX => Ok(bytes),
        _ => Err(refused(format!("more than {QPACK_TABLE_BYTES_MAX} bytes"), "write a size such as `4KiB`")),
    }
}

/// The time between two changes of the local address.
pub(super) fn migrate(text: &str) -> Result<Duration, InputError> {
    let time = time(text)?;
    if time < MIGRATION_TIME_MIN {
        return Err(refused(
            "less than 10 ms",
            "connections need a round trip to survive: write a time such as `1s`",
        ));
    }
    Ok(time)
}

/// A stream's flow-control window.
pub(super) fn stream_window(text: &str) -> Result<u32, InputError> {
    window(text, 1)
}

/// A connection's flow-control window.
pub(super) fn connection_window(text: &str) -> Result<u32, InputError> {
    window(text, CONNECTION_WINDOW_BYTES_MIN)
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

pub(super) fn speed(text: &str) -> Result<f64, InputError> {
    let help = "write a factor such as 10, 0.5 or 2x";
    let number: f64 = text.trim_end_matches('x').parse().map_err(|_| refused("not a number", help))?;
    match number {
        0.001..=100_000.0 => Ok(number),
        _ => Err(refused("not between 0.001 and 100000", help)),
    }
}

fn window(text: &str, min: u32) -> Result<u32, InputError> {
    match u32::try_from(parse_size(text)?) {
        Ok(bytes) if (min..=WINDOW_BYTES_MAX).contains(&bytes) => Ok(bytes),
        _ => Err(refused(
            format!("not from {min} to {WINDOW_BYTES_MAX} bytes"),
            "write a size such as `64KiB` or `1GiB`",
        )),
    }
}

pub(super) fn redirects(text: &str) -> Result<u32, InputError> {
    match u32::try_from(parse_count(text)?) {
        Ok(count) if count <= REDIRECT_COUNT_MAX => Ok(count),
        _ => Err(refused(format!("more than {REDIRECT_COUNT_MAX}"), "follow fewer redirects")),
    }
}

/// Reads a count that is not zero and not more than `max`.
///
/// # Errors
/// When it is none of these.
pub fn counted(text: &str, max: u32) -> Result<NonZeroU32, InputError> {
    let help = || format!("write a number from 1 to {max}");
    match u32::try_from(parse_count(text)?).map(NonZeroU32::new) {
        Ok(Some(count)) if count.get() <= max => Ok(count),
        Ok(None) => Err(refused("must not be zero", help())),
        _ => Err(refused(format!("more than {max}"), help())),
    }
}

pub(super) fn header_source(text: &str) -> Result<HeaderSource, InputError> {
    match text.strip_prefix('@') {
        Some(file) => path(file).map(HeaderSource::File),
        None => parse_header(text).map(HeaderSource::Field),
    }
}

pub(super) fn basic(text: &str) -> Result<Header, InputError> {
    let help = "write it as `USER:PASSWORD`; the password may be empty";
    let (user, password) = text.split_once(':').ok_or_else(|| refused("no colon", help))?;
    Ok(Header { name: "Authorization".to_owned(), value: basic_authorization(user, password) })
}

pub(super) fn cookie(text: &str) -> Result<String, InputError> {
    let help = "write a cookie as `NAME=VALUE`";
    match (text.contains('='), text.chars().any(char::is_control)) {
        (false, _) => Err(refused("no `=`", help)),
        (_, true) => Err(refused("a control character", help)),
        (true, false) => Ok(text.to_owned()),
    }
}

/// `[WEIGHT@]TEXT`.
pub(super) fn user_agent(text: &str) -> Result<Weighted<String>, InputError> {
    let (weight, value) = match text.split_once('@') {
        Some((weight, value)) if !weight.is_empty() && weight.bytes().all(|b| b.is_ascii_digit()) => {
            (parse_weight(weight)?, value)
        }
        _ => (NonZeroU32::MIN, text),
    };
    Ok(Weighted { weight, value: parse_header(&format!("User-Agent:{value}"))?.value })
}

/// `NAME=VALUE`, or the name of a variable that the machine has.
pub(super) fn variable(text: &str) -> Result<String, InputError> {
    match text.is_empty() || text.starts_with('=') {
        true => Err(refused("no name", "write it as `NAME=value`")),
        false => Ok(text.to_owned()),
    }
}

pub(super) fn field(text: &str) -> Result<(String, String), InputError> {
    named(text, '=', || refused("no `=`", "write a field as `NAME=VALUE`"))
}

pub(super) fn pair(text: &str) -> Result<(String, String), InputError> {
    named(text, '=', || refused("no `=`", "write NAME=VALUE"))
}

pub(super) fn json_pair(text: &str) -> Result<(String, String), InputError> {
    let (pointer, value) = pair(text)?;
    match pointer.starts_with('/') {
        true => Ok((pointer, value)),
        false => Err(refused("the path does not begin with /", "write it as /name/0/name=VALUE (RFC 6901)")),
    }
}

pub(super) fn cookie_pair(text: &str) -> Result<(String, String), InputError> {
    let (name, value) = pair(text)?;
    Ok((token(&name)?, value))
}

pub(super) fn header_pair(text: &str) -> Result<(String, String), InputError> {
    let (name, value) = named(text, ':', || refused("no colon", "write 'Name: value'"))?;
    Ok((token(name.trim())?, value.trim().to_owned()))
}

pub(super) fn replacement(text: &str) -> Result<(String, String), InputError> {
    let help = "write 'PATTERN=>TEXT', with $1 for groups";
    let (pattern, with) = text.split_once("=>").ok_or_else(|| refused("no `=>`", help))?;
    Ok((pattern.to_owned(), with.to_owned()))
}

fn named(
    text: &str,
    between: char,
    missing: impl Fn() -> InputError,
) -> Result<(String, String), InputError> {
    let (name, value) = text.split_once(between).ok_or_else(missing)?;
    Ok((name.to_owned(), value.to_owned()))
}

pub(super) fn header_name(text: &str) -> Result<String, InputError> {
    token(text.trim_end_matches(':').trim())
}

pub(super) fn path(text: &str) -> Result<PathBuf, InputError> {
    if text.is_empty() { Err(refused("", "write a path")) } else { Ok(text.into()) }
}

fn token(name: &str) -> Result<String, InputError> {
    match is_token(name) {
        true => Ok(name.to_owned()),
        false => Err(refused("not a valid header or cookie name", "remove spaces and separators")),
    }
}

fn refused(reason: impl Into<String>, help: impl Into<String>) -> InputError {
    InputError { column: 1, reason: reason.into(), help: help.into() }
}
