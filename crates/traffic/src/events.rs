//! A recorded event stream as its events.

use squall_wire::events::{EventDecoder, EventFormat};

use crate::limits::RECORD_BYTES_MAX;

/// An event of a recorded stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedEvent {
    /// Its type: `message` unless the server gave another.
    pub kind: String,
    /// The last id that the server had given.
    pub id: String,
    /// Its lines, joined with LF.
    pub data: String,
    /// Where it ends in the body.
    pub end: usize,
}

/// The events of a body.
pub fn events_of(body: &[u8]) -> impl Iterator<Item = RecordedEvent> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let mut decoder = EventDecoder::new(EventFormat::EventStream, RECORD_BYTES_MAX);
    let mut rest = body;
    std::iter::from_fn(move || {
        let event = decoder.decode(&mut rest).ok().flatten()?;
        let (kind, data) = (text(event.kind), text(event.data));
        Some(RecordedEvent { kind, data, id: text(decoder.last_event_id()), end: body.len() - rest.len() })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_have_their_ends() {
        let body = b": hi\n\nid: 1\ndata: a\n\nevent: x\ndata: b\ndata: c\n\ndata: unfinished\n";
        let events: Vec<_> = events_of(body).collect();
        let shown: Vec<_> =
            events.iter().map(|event| (&*event.kind, &*event.id, &*event.data, event.end)).collect();
        assert_eq!(shown, [("message", "1", "a", 21), ("x", "1", "b\nc", 47)]);
    }
}
