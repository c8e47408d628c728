//! Server-sent events (WHATWG HTML, 9.2).

use std::{
    borrow::Cow,
    fmt::Write,
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use hyper::header::{CACHE_CONTROL, HeaderName};

use crate::{
    body::{Source, Step},
    call::Call,
    limits::{ECHO_BYTES_MAX, SEQUENCE_COUNT_MAX},
    reply::{Refusal, Reply},
};

/// `?count=&interval=&size=&event=&retry=&end=`, the first event after `delay`. A client that reconnects with `Last-Event-ID` gets what
/// follows that one.
pub(super) fn sse(call: &Call<'_>) -> Result<Reply, Refusal> {
    let stream = Stream {
        size: call.query_size("size", 0, 0..=ECHO_BYTES_MAX)? as usize,
        name: field(call, "event")?.map(|name| format!("event: {name}\n")).unwrap_or_default(),
        retry: call.query("retry").map(|_| call.query_duration("retry", Duration::ZERO)).transpose()?,
        end: field(call, "end")?,
    };
    let count = call.query_count("count", 10, 0..=SEQUENCE_COUNT_MAX)?;
    let interval = call.query_duration("interval", Duration::from_millis(100))?;
    let last = call.header(HeaderName::from_static("last-event-id")).and_then(|id| id.parse::<u64>().ok());
    let first = last.map_or(0, |id| id.saturating_add(1));
    let steps = stream.steps(first, count, interval);
    let reply = Reply::new("text/event-stream", Source::steps(steps, None)).with(CACHE_CONTROL, "no-store");
    Ok(reply.with_delay(call.query_duration("delay", Duration::ZERO)?))
}

/// What all events of a response share.
struct Stream {
    size: usize,
    name: String,
    retry: Option<Duration>,
    /// The data of a last event, such as `[DONE]`.
    end: Option<String>,
}

impl Stream {
    fn steps(self, first: u64, count: u64, interval: Duration) -> impl Iterator<Item = Step> + Send {
        let retry = self.retry.map(|retry| Step::Data(format!("retry: {}\n\n", retry.as_millis()).into()));
        let end = self.end.as_ref().map(|end| Step::Data(format!("data: {end}\n\n").into()));
        let stream = Arc::new(self);
        let events = (first..count).flat_map(move |id| {
            let (stream, at) = (Arc::clone(&stream), interval.mul_f64((id - first) as f64));
            // The time in an event is that of its sending.
            std::iter::once(Step::Until(at)).chain(std::iter::once_with(move || stream.event(id)))
        });
        retry.into_iter().chain(events).chain(end)
    }

    /// The number and the time, filled up to the size.
    fn event(&self, id: u64) -> Step {
        let time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let mut data = format!("{{\"id\":{id},\"time_us\":{}", time.as_micros());
        let fill = self.size.saturating_sub(data.len() + FILL_EXTRA_BYTES);
        if fill > 0 {
            write!(data, ",\"fill\":\"{:*<fill$}\"", "").expect("a string takes everything");
        }
        Step::Data(format!("id: {id}\n{}data: {data}}}\n\n", self.name).into())
    }
}

/// A query parameter that becomes a line.
fn field(call: &Call<'_>, name: &str) -> Result<Option<String>, Refusal> {
    match call.query(name) {
        Some(value) if value.contains(['\r', '\n']) => {
            Err(Refusal::new(format!("`{name}` must be a single line")))
        }
        value => Ok(value.map(Cow::into_owned)),
    }
}

/// Bytes of an event's data around what fills it.
const FILL_EXTRA_BYTES: usize = ",\"fill\":\"\"}".len();
