//! Bytes of a response body to events: event streams (WHATWG HTML, section 9.2.6) and lines, such as JSON lines.
//!
//! Only what a read cuts through, and an event's fields until it is complete, are kept. Never: reconnects; what an event means.

use std::time::Duration;

/// How a body is divided into events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventFormat {
    /// `text/event-stream`.
    EventStream,
    /// Each line that is not empty is an event.
    Lines,
}

/// Decodes the body of one response.
#[derive(Debug)]
pub struct EventDecoder {
    format: EventFormat,
    event_bytes_max: usize,
    /// The beginning of a line.
    line: Vec<u8>,
    fields: Fields,
    /// The last event has been handed out: its fields are cleared before anything else is read.
    is_dispatched: bool,
    has_line: bool,
    /// A line has ended with CR: an LF that follows belongs to it.
    is_after_cr: bool,
    /// Comments received, with which servers keep connections alive.
    pub comment_count: u64,
    /// How long the server wants clients to wait before they reconnect.
    pub retry: Option<Duration>,
}

/// Of the event that is being received.
#[derive(Debug, Default)]
struct Fields {
    kind: Vec<u8>,
    data: Vec<u8>,
    has_data: bool,
    /// The `id` of this event or an earlier one.
    id: Vec<u8>,
    /// [`Fields::id`] as of the last complete event: a reconnect sends it as `Last-Event-ID`.
    last_id: Vec<u8>,
}

/// One event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamEvent<'a> {
    /// Its type: `message` unless the server gives another.
    pub kind: &'a [u8],
    /// Its lines, joined with LF.
    pub data: &'a [u8],
}

/// An event, or a line of it, is larger than the decoder accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an event has more than {bytes_max} bytes")]
pub struct EventTooLarge {
    /// What the decoder accepts.
    pub bytes_max: usize,
}

impl EventDecoder {
    /// A decoder for a body's first byte on. `event_bytes_max`: the largest event to accept, in bytes.
    pub fn new(format: EventFormat, event_bytes_max: usize) -> Self {
        Self {
            format,
            event_bytes_max,
            line: Vec::new(),
            fields: Fields::default(),
            is_dispatched: false,
            has_line: false,
            is_after_cr: false,
            comment_count: 0,
            retry: None,
        }
    }

    /// Goes on after an earlier body, whose last event id stays that of this one until it sends another (WHATWG HTML, section 9.2.5).
    pub fn resume_after(&mut self, last_event_id: &[u8]) {
        last_event_id.clone_into(&mut self.fields.id);
        last_event_id.clone_into(&mut self.fields.last_id);
    }

    /// The next event; takes what it has read off the input. Call it until there is none.
    ///
    /// # Errors
    /// The event is too large; nothing can be decoded after it.
    pub fn decode(&mut self, input: &mut &[u8]) -> Result<Option<StreamEvent<'_>>, EventTooLarge> {
        self.clear_dispatched();
        while let Some(is_whole) = self.take_line(input)? {
            if is_whole && self.end_line() {
                return Ok(Some(self.dispatch()));
            }
        }
        Ok(None)
    }

    /// The body has ended: the last line is an event even without a line break. What is left of an event stream is not (section 9.2.6).
    pub fn finish(&mut self) -> Option<StreamEvent<'_>> {
        self.clear_dispatched();
        if self.line.ends_with(b"\r") {
            self.line.pop();
        }
        let is_event = self.format == EventFormat::Lines && !self.line.is_empty();
        std::mem::swap(&mut self.line, &mut self.fields.data);
        self.line.clear();
        is_event.then(|| self.dispatch())
    }

    /// The `id` of the last event that had one, for `Last-Event-ID`; empty when none had.
    pub fn last_event_id(&self) -> &[u8] {
        &self.fields.last_id
    }

    /// Moves bytes into the line; whether it is whole, or `None` at the end of the input.
    fn take_line(&mut self, input: &mut &[u8]) -> Result<Option<bool>, EventTooLarge> {
        if self.is_after_cr && !input.is_empty() {
            *input = input.strip_prefix(b"\n").unwrap_or(input);
            self.is_after_cr = false;
        }
        if input.is_empty() {
            return Ok(None);
        }
        let end = match self.format {
            EventFormat::EventStream => memchr::memchr2(b'\r', b'\n', input),
            EventFormat::Lines => memchr::memchr(b'\n', input),
        };
        let part = &input[..end.unwrap_or(input.len())];
        if self.line.len() + part.len() + self.fields.data.len() > self.event_bytes_max {
            return Err(EventTooLarge { bytes_max: self.event_bytes_max });
        }
        self.line.extend_from_slice(part);
        self.is_after_cr = end.is_some_and(|end| input[end] == b'\r');
        *input = end.map_or(&[], |end| &input[end + 1..]);
        Ok(Some(end.is_some()))
    }

    /// Works off a whole line; whether an event is complete.
    fn end_line(&mut self) -> bool {
        let mut line = std::mem::take(&mut self.line);
        let is_complete = match self.format {
            EventFormat::EventStream => self.end_field_line(&line),
            EventFormat::Lines => {
                let text = line.strip_suffix(b"\r").unwrap_or(&line);
                self.fields.data.extend_from_slice(text);
                !text.is_empty()
            }
        };
        line.clear();
        self.line = line;
        is_complete
    }

    fn end_field_line(&mut self, line: &[u8]) -> bool {
        let is_first = !std::mem::replace(&mut self.has_line, true);
        let line = if is_first { line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line) } else { line };
        if line.is_empty() {
            return self.fields.end();
        }
        let (name, value) = match memchr::memchr(b':', line) {
            None => (line, &b""[..]),
            Some(0) => {
                self.comment_count += 1;
                return false;
            }
            Some(colon) => {
                let value = &line[colon + 1..];
                (&line[..colon], value.strip_prefix(b" ").unwrap_or(value))
            }
        };
        match name {
            b"retry" => self.retry = milliseconds(value).or(self.retry),
            name => self.fields.set(name, value),
        }
        false
    }

    fn clear_dispatched(&mut self) {
        if std::mem::take(&mut self.is_dispatched) {
            self.fields.kind.clear();
            self.fields.data.clear();
        }
    }

    fn dispatch(&mut self) -> StreamEvent<'_> {
        self.is_dispatched = true;
        let Fields { kind, data, .. } = &self.fields;
        StreamEvent { kind: if kind.is_empty() { b"message" } else { kind }, data }
    }
}

impl Fields {
    fn set(&mut self, name: &[u8], value: &[u8]) {
        match name {
            b"data" => {
                if std::mem::replace(&mut self.has_data, true) {
                    self.data.push(b'\n');
                }
                self.data.extend_from_slice(value);
            }
            b"event" => value.clone_into(&mut self.kind),
            b"id" if !value.contains(&0) => value.clone_into(&mut self.id),
            _ => {}
        }
    }

    /// An empty line; whether it ends an event. One without data is none.
    fn end(&mut self) -> bool {
        self.last_id.clone_from(&self.id);
        let has_data = std::mem::take(&mut self.has_data);
        if !has_data {
            self.kind.clear();
        }
        has_data
    }
}

/// Digits alone are a time, in milliseconds.
fn milliseconds(value: &[u8]) -> Option<Duration> {
    let is_number = !value.is_empty() && value.iter().all(u8::is_ascii_digit);
    let text = std::str::from_utf8(value).ok().filter(|_| is_number)?;
    text.parse().ok().map(Duration::from_millis)
}

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

#[cfg(test)]
mod tests {
    use super::*;

    /// Type and data of each event, where the body arrives in pieces of `step` bytes.
    fn events(format: EventFormat, body: &[u8], step: usize) -> Vec<(String, String)> {
        let mut decoder = EventDecoder::new(format, 1 << 20);
        let owned = |event: StreamEvent<'_>| {
            (String::from_utf8_lossy(event.kind).into(), String::from_utf8_lossy(event.data).into())
        };
        let mut seen = Vec::new();
        for mut piece in body.chunks(step) {
            while let Some(event) = decoder.decode(&mut piece).unwrap() {
                seen.push(owned(event));
            }
        }
        seen.extend(decoder.finish().map(owned));
        seen
    }

    fn assert_events(format: EventFormat, body: &str, expected: &[(&str, &str)]) {
        for step in [1, 2, 3, 7, body.len()] {
            let seen = events(format, body.as_bytes(), step);
            let seen: Vec<_> = seen.iter().map(|(kind, data)| (&**kind, &**data)).collect();
            assert_eq!(seen, expected, "{body:?} in pieces of {step}");
        }
    }

    #[test]
    fn the_examples_of_the_standard_are_decoded() {
        use EventFormat::EventStream;
        assert_events(EventStream, "data: YHOO\ndata: +2\ndata: 10\n\n", &[("message", "YHOO\n+2\n10")]);
        let body =
            ": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\ndata:  third event\n\n";
        let expected = [("message", "first event"), ("message", "second event"), ("message", " third event")];
        assert_events(EventStream, body, &expected);
        // Of the last block, nothing is an event: the body ends before an empty line.
        assert_events(EventStream, "data\n\ndata\ndata\n\ndata:", &[("message", ""), ("message", "\n")]);
        assert_events(
            EventStream,
            "data:test\n\ndata: test\n\n",
            &[("message", "test"), ("message", "test")],
        );
        let body =
            "event: add\ndata: 73857293\n\nevent: remove\ndata: 2153\n\nevent: none\n\ndata: 113411\n\n";
        assert_events(EventStream, body, &[("add", "73857293"), ("remove", "2153"), ("message", "113411")]);
    }

    #[test]
    fn every_line_break_and_a_byte_order_mark_are_understood() {
        let expected = [("a", "1\n2"), ("message", "3")];
        for line_break in ["\n", "\r\n", "\r"] {
            let body = "\u{feff}event:a\ndata:1\ndata:2\n\ndata:3\n\n".replace('\n', line_break);
            assert_events(EventFormat::EventStream, &body, &expected);
        }
        assert_events(EventFormat::EventStream, "data:1\r\ndata:2\r\r\n\n", &[("message", "1\n2")]);
        // A mark later on is part of a field's name.
        assert_events(EventFormat::EventStream, "data:1\n\u{feff}data:2\n\n", &[("message", "1")]);
    }

    #[test]
    fn ids_retry_times_and_comments_are_kept() {
        let mut decoder = EventDecoder::new(EventFormat::EventStream, 100);
        let mut body: &[u8] =
            b":\n: x\nretry: 1500\nretry: -1\nretry:\nid: 7\ndata\n\nid: a\0b\ndata\n\nid: 8\n";
        let mut ids = Vec::new();
        while decoder.decode(&mut body).unwrap().is_some() {
            ids.push(decoder.last_event_id().to_vec());
        }
        assert_eq!(ids, [b"7", b"7"]);
        assert_eq!((decoder.comment_count, decoder.retry), (2, Some(Duration::from_millis(1500))));
        // Its event has not ended.
        assert_eq!(decoder.last_event_id(), b"7");
        assert!(decoder.decode(&mut &b"\n"[..]).unwrap().is_none());
        assert_eq!(decoder.last_event_id(), b"8");
    }

    #[test]
    fn an_id_lasts_until_a_later_body_sends_another() {
        let mut decoder = EventDecoder::new(EventFormat::EventStream, 100);
        decoder.resume_after(b"42");
        assert_eq!(decoder.last_event_id(), b"42");
        for (mut body, expected) in [(&b"data\n\n"[..], &b"42"[..]), (b"id: 43\n\n", b"43"), (b"id\n\n", b"")]
        {
            while decoder.decode(&mut body).unwrap().is_some() {}
            assert_eq!(decoder.last_event_id(), expected);
        }
    }

    #[test]
    fn lines_are_events() {
        let expected = [("message", "{\"a\":1}"), ("message", "{}"), ("message", "[1]")];
        assert_events(EventFormat::Lines, "{\"a\":1}\n\n{}\r\n\r\n[1]", &expected);
        assert_events(EventFormat::Lines, "\n\r\n\r", &[]);
        assert_events(EventFormat::Lines, "1\r\n2\r", &[("message", "1"), ("message", "2")]);
    }

    #[test]
    fn an_event_is_bounded_with_all_its_lines() {
        for body in ["data: 123456789", "data:1\ndata:2\ndata:3\ndata:4\n", ":aaaaaaaaaaa"] {
            for step in [1, body.len()] {
                let mut decoder = EventDecoder::new(EventFormat::EventStream, 10);
                let mut results =
                    body.as_bytes().chunks(step).map(|mut piece| decoder.decode(&mut piece).map(drop));
                assert_eq!(results.find_map(Result::err), Some(EventTooLarge { bytes_max: 10 }), "{body}");
            }
        }
        let mut decoder = EventDecoder::new(EventFormat::EventStream, 10);
        let mut many: &[u8] = b"data:1\n\ndata:2\n\ndata:3\n\ndata:4\n\n";
        assert!((0..4).all(|_| decoder.decode(&mut many).unwrap().is_some()));
    }
}
