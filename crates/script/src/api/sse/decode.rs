//! Lines of an event stream as xk6-sse reads them: each event has its own id and comment, a line ends with LF, and what is no field is
//! reported.

use squall_plan::limits::EVENT_LINE_BYTES_MAX;

/// What came of one response so far.
#[derive(Debug, Default)]
pub(super) struct EventLines {
    /// A line whose end has not come.
    line: Vec<u8>,
    event: Event,
    /// A line was too long: nothing more is read.
    is_broken: bool,
}

/// An event.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Event {
    pub(super) id: Vec<u8>,
    pub(super) comment: Vec<u8>,
    pub(super) name: Vec<u8>,
    /// Lines joined with LF.
    pub(super) data: Vec<u8>,
}

/// What bytes came to.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Decoded {
    Event(Event),
    /// A line is no field.
    Problem(String),
}

impl EventLines {
    /// Reads on; appends what is complete.
    pub(super) fn push(&mut self, mut bytes: &[u8], into: &mut Vec<Decoded>) {
        while !self.is_broken && !bytes.is_empty() {
            let end = memchr::memchr(b'\n', bytes);
            let (part, rest) = bytes.split_at(end.map_or(bytes.len(), |end| end + 1));
            bytes = rest;
            if self.line.len() + part.len() + self.event.data.len() > EVENT_LINE_BYTES_MAX {
                self.is_broken = true;
                let text = format!("an event has more than {EVENT_LINE_BYTES_MAX} bytes");
                return into.push(Decoded::Problem(text));
            }
            self.line.extend_from_slice(part);
            if end.is_some() {
                let mut line = std::mem::take(&mut self.line);
                into.extend(self.end_line(&line));
                line.clear();
                self.line = line;
            }
        }
    }

    /// Reads a line, with its LF.
    fn end_line(&mut self, line: &[u8]) -> Option<Decoded> {
        if matches!(line, b"\n" | b"\r\n") {
            let mut event = std::mem::take(&mut self.event);
            while matches!(event.data.last(), Some(b'\r' | b'\n')) {
                event.data.pop();
            }
            return Some(Decoded::Event(event));
        }
        let event = &mut self.event;
        let value = |name: &str| {
            let value = line.strip_prefix(name.as_bytes())?.strip_prefix(b":")?;
            Some(value.strip_prefix(b" ").unwrap_or(value))
        };
        let text = |value: &[u8]| value.strip_suffix(b"\n").unwrap_or(value).to_vec();
        if let Some(id) = value("id") {
            event.id = text(id);
        } else if let Some(comment) = value("") {
            event.comment = text(comment);
        } else if let Some(name) = value("event") {
            event.name = text(name);
        } else if let Some(data) = value("data") {
            event.data.extend_from_slice(data);
        } else if value("retry").is_none() {
            let line = String::from_utf8_lossy(line).into_owned();
            return Some(Decoded::Problem(format!("unknown event: {line}")));
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(body: &[u8], step: usize) -> Vec<Decoded> {
        let (mut lines, mut decoded) = (EventLines::default(), Vec::new());
        body.chunks(step).for_each(|piece| lines.push(piece, &mut decoded));
        decoded
    }

    fn event(id: &str, name: &str, data: &str, comment: &str) -> Decoded {
        let [id, name, data, comment] = [id, name, data, comment].map(|text| text.as_bytes().to_vec());
        Decoded::Event(Event { id, comment, name, data })
    }

    #[test]
    fn events_are_those_of_the_extension() {
        let body = b"id: 1\nevent: tick\ndata: a\n\n: alive\n\ndata:b\ndata: c\r\n\r\nretry: 5\nnonsense\ndata: cut off";
        let expected = [
            event("1", "tick", "a", ""),
            event("", "", "", "alive"),
            event("", "", "b\nc", ""),
            Decoded::Problem("unknown event: nonsense\n".to_owned()),
        ];
        for step in [1, 3, body.len()] {
            assert_eq!(decoded(body, step), expected, "in pieces of {step}");
        }
    }

    #[test]
    fn a_line_is_bounded() {
        let (mut lines, mut decoded) = (EventLines::default(), Vec::new());
        let piece = vec![b'x'; EVENT_LINE_BYTES_MAX / 4];
        (0..8).for_each(|_| lines.push(&piece, &mut decoded));
        assert!(matches!(&decoded[..], [Decoded::Problem(_)]));
        assert!(lines.line.len() <= EVENT_LINE_BYTES_MAX);
    }
}
