//! WebSockets: how many there are, and which messages they carry.

use std::num::NonZeroU32;
use std::path::Path;

use super::http;
use super::timing::{CONNECTION_COUNT_DEFAULT, Timing, profile};
use crate::files::{read, read_text};
use crate::limits::{TABLE_BYTES_MAX, WEBSOCKET_MESSAGE_BYTES_MAX};
use crate::options::table::{
    BINARY, COMPRESS, GREETING, KEEP_IDLE, MESSAGE, MESSAGE_ARRIVAL, MESSAGE_COUNT, MESSAGE_PACING,
    MESSAGE_PAUSE, MESSAGE_RATE, MESSAGE_SIZE, MESSAGE_TABLE, PUBLISH, RECEIVE, STORM, SUBPROTOCOL,
    SUBSCRIBE, WEBSOCKET_CLOSE, WEBSOCKET_CONNECTIONS, WEBSOCKET_DURATION, WEBSOCKET_HTTP, WEBSOCKET_JITTER,
    WEBSOCKET_NO_REOPEN, WEBSOCKET_PING, WEBSOCKET_RAMP, WEBSOCKET_THREADS, WEBSOCKET_TIMEOUT,
    WEBSOCKET_WARMUP,
};
use crate::options::{LoadType, ReadContext, Reading};
use crate::units::Ramp;
use crate::{
    Arrival, CloseMode, Expect, HttpLoad, HttpVersion, LoadSpec, MessageExchange, MessagePayload,
    MessageRate, OptionProblem, Pacing, PortablePlan, Problems, Profile, WebSocketLoad, What,
};

/// The plan of WebSockets.
///
/// # Errors
/// All that is wrong with its options.
pub fn websocket(spec: &LoadSpec, context: ReadContext<'_>) -> Result<PortablePlan, Problems> {
    let mut given = Reading::new(LoadType::WebSocket, spec, context);
    let exchange = exchange(&mut given);
    let ramp = given.one(&WEBSOCKET_RAMP);
    let rate = rate(&mut given, exchange, ramp.as_ref());
    let ramp = ramp.filter(|_| !given.has(&MESSAGE_RATE.option));
    let timing = timing(&mut given, exchange, ramp);
    let when = given.take(timing.when());
    let timeout = given.or_default(&WEBSOCKET_TIMEOUT);
    let message = message(&mut given, exchange);
    refuse_auto(&mut given);
    let load = WebSocketLoad {
        // Made of the URLs below.
        http: HttpLoad {
            requests: Vec::new(),
            user_agents: Vec::new(),
            follow_count_max: 0,
            expect: Expect::default(),
            timeout,
        },
        exchange,
        message,
        rate,
        count: given.one(&MESSAGE_COUNT).map(std::num::NonZero::get),
        pause: given.one(&MESSAGE_PAUSE).unwrap_or_default(),
        greeting: given.one(&GREETING),
        ping: given.one(&WEBSOCKET_PING),
        compress: given.is_set(&COMPRESS),
        subprotocols: given.all(&SUBPROTOCOL),
        jitter: given.one(&WEBSOCKET_JITTER).unwrap_or_default(),
        reopens: !given.is_set(&WEBSOCKET_NO_REOPEN),
        storm: given.one(&STORM),
        close: given.one(&WEBSOCKET_CLOSE).unwrap_or(CloseMode::Notify),
        is_copied: false,
    };
    http::plan(given, (timing, when), timeout, |mut http| {
        // What is requested has the scheme of HTTP, and its row that of the user.
        http.requests
            .iter_mut()
            .for_each(|request| request.pattern = request.pattern.replacen("http", "ws", 1));
        What::WebSocket(WebSocketLoad { http, ..load })
    })
}

/// Whether a connection is a WebSocket or carries many is to be known before it is opened.
fn refuse_auto(given: &mut Reading<'_>) {
    if given.one(&WEBSOCKET_HTTP) == Some(HttpVersion::Auto) {
        let message = "WebSockets need a version of HTTP that is known beforehand, not `auto`";
        let help = "write `--http 1.1`, `--http 2` or `--http 3`";
        given.take(Err::<(), _>(OptionProblem::of("http", message, help)));
    }
}

fn exchange(given: &mut Reading<'_>) -> MessageExchange {
    match given.one(&PUBLISH) {
        Some(count) => MessageExchange::Publish(count.get()),
        None if given.is_set(&RECEIVE) => MessageExchange::Receive,
        None if given.is_set(&KEEP_IDLE) => MessageExchange::Idle,
        None => MessageExchange::Echo,
    }
}

/// Those who publish send one message a second each, unless the rate is given.
fn rate(given: &mut Reading<'_>, exchange: MessageExchange, ramp: Option<&Ramp>) -> Option<MessageRate> {
    let by_default = match exchange {
        MessageExchange::Publish(count) => Some(f64::from(count)),
        _ => None,
    };
    let typed = given.one(&MESSAGE_RATE);
    let rate = typed.or(by_default)?;
    let arrival = given.one(&MESSAGE_ARRIVAL).unwrap_or(Arrival::Constant);
    let pacing = given.one(&MESSAGE_PACING).unwrap_or(Pacing::Balanced);
    let rate = if typed.is_some() { profile(ramp, rate, rate) } else { Profile::constant(rate) };
    Some(MessageRate { rate, arrival, pacing })
}

fn timing(given: &mut Reading<'_>, exchange: MessageExchange, ramp: Option<Ramp>) -> Timing {
    let subscribers = given.one(&SUBSCRIBE).map(NonZeroU32::get);
    let together = match exchange {
        MessageExchange::Publish(count) if subscribers.is_some() => {
            NonZeroU32::new(count.saturating_add(subscribers.unwrap_or_default()))
        }
        _ => None,
    };
    let connections = given.one(&WEBSOCKET_CONNECTIONS).or(together);
    if let (MessageExchange::Publish(count), Some(all)) =
        (exchange, connections.or(Some(CONNECTION_COUNT_DEFAULT)))
        && count > all.get()
    {
        let message = format!("{count} connections publish, but there are {all} connections");
        let help = "lower --publish, or give --subscribe or --connections";
        given.take(Err::<(), _>(OptionProblem::of("publish", message, help).with(&["connections"])));
    }
    Timing {
        connections,
        duration: given.one(&WEBSOCKET_DURATION),
        // Where others publish, that all has come cannot be known.
        has_count: exchange == MessageExchange::Echo && given.one(&MESSAGE_COUNT).is_some(),
        ramp,
        warmup: given.one(&WEBSOCKET_WARMUP),
        threads: given.one(&WEBSOCKET_THREADS),
        ..Timing::default()
    }
}

fn message(given: &mut Reading<'_>, exchange: MessageExchange) -> MessagePayload {
    let (text, size) = (given.one(&MESSAGE), given.one(&MESSAGE_SIZE));
    let is_binary = given.is_set(&BINARY);
    let bytes = match text.as_deref().map(|text| text.strip_prefix('@').ok_or(text)) {
        Some(Ok(path)) => message_of_file(given, Path::new(path)),
        Some(Err(text)) => text.as_bytes().to_vec(),
        None => {
            let bytes = given.take(checked_size(size.unwrap_or(SIZE_DEFAULT)));
            filled(exchange, bytes.unwrap_or(SIZE_DEFAULT))
        }
    };
    if !is_binary && std::str::from_utf8(&bytes).is_err() {
        let message = "the message is not UTF-8, which text messages are";
        given.take(Err::<(), _>(OptionProblem::of("message", message, "add `--binary`")));
    }
    let stamp = MessagePayload::STAMP.as_bytes();
    let has_stamp = bytes.windows(stamp.len()).any(|part| part == stamp);
    if matches!(exchange, MessageExchange::Publish(_)) && !has_stamp {
        let message = "published messages need `{stamp}`, the time from which their latency counts";
        given.take(Err::<(), _>(OptionProblem::of("message", message, "add `{stamp}` to the message")));
    }
    let table = given.one(&MESSAGE_TABLE).and_then(|path| given.take(table_file(&path)));
    MessagePayload { is_binary, bytes, table }
}

fn checked_size(bytes: u64) -> Result<u64, OptionProblem> {
    if bytes <= WEBSOCKET_MESSAGE_BYTES_MAX {
        return Ok(bytes);
    }
    let message = format!("a message of {bytes} bytes is larger than {WEBSOCKET_MESSAGE_BYTES_MAX} bytes");
    Err(OptionProblem::of("size", message, "write a size such as `1KiB`"))
}

/// Letters, behind the stamp where there is one.
fn filled(exchange: MessageExchange, bytes: u64) -> Vec<u8> {
    let mut text = match exchange {
        MessageExchange::Publish(_) => MessagePayload::STAMP.as_bytes().to_vec(),
        _ => Vec::new(),
    };
    let stamp_bytes = if text.is_empty() { 0 } else { MessagePayload::STAMP_BYTES };
    text.extend((b'a'..=b'z').cycle().take((bytes as usize).saturating_sub(stamp_bytes)));
    text
}

fn message_of_file(given: &mut Reading<'_>, path: &Path) -> Vec<u8> {
    let read = read(path, WEBSOCKET_MESSAGE_BYTES_MAX)
        .map_err(|error| OptionProblem::file("--message", path, &error));
    let bytes = given.take(read).unwrap_or_default();
    // What is no text is checked when the load is prepared.
    if let Ok(text) = std::str::from_utf8(&bytes) {
        let checked = given.check(MESSAGE_TEXT, text).map_err(|error| {
            let (line, column) = line_and_column(text, error.column);
            let message = format!("{}:{line}:{column}: {}", path.display(), error.reason);
            OptionProblem::of("message", message, error.help)
        });
        given.take(checked);
    }
    bytes
}

fn table_file(path: &Path) -> Result<String, OptionProblem> {
    read_text(path, TABLE_BYTES_MAX).map_err(|error| OptionProblem::file("--csv", path, &error))
}

/// Where the character with this number is, all from 1.
fn line_and_column(text: &str, nth: usize) -> (usize, usize) {
    let before: String = text.chars().take(nth.saturating_sub(1)).collect();
    let line_begin = before.rfind('\n').map_or(0, |at| at + 1);
    (before.matches('\n').count() + 1, before[line_begin..].chars().count() + 1)
}

/// What the content of a message's file is called where values are checked.
const MESSAGE_TEXT: &str = "message-text";

const SIZE_DEFAULT: u64 = 32;
