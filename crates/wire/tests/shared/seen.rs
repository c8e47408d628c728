//! What a client's caller sees of responses.

use squall_wire::Event;
use squall_wire::h1::{Fields, HeadView, Sink};

/// All that can be seen of responses, in order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Seen {
    pub(crate) lines: Vec<String>,
    slot: u32,
    /// Data of one stream that came in pieces is one line.
    data: Option<(u32, Vec<u8>)>,
}

impl Seen {
    /// Notes an event; pieces of responses are seen by the sink.
    pub(crate) fn event(&mut self, event: Option<Event>) {
        match event {
            Some(Event::Received { response: None, .. }) | None => {}
            Some(Event::Received { slot, response: Some(response), .. }) => {
                self.line(format!("{slot}: {} with {} bytes", response.status, response.body_bytes));
            }
            Some(event) => self.line(format!("{event:?}")),
        }
    }

    pub(crate) fn line(&mut self, line: String) {
        if let Some((slot, bytes)) = self.data.take() {
            self.lines.push(format!("{slot}: data {}", String::from_utf8_lossy(&bytes)));
        }
        self.lines.push(line);
    }

    fn fields(&mut self, what: &str, fields: Fields<'_>) {
        let text = String::from_utf8_lossy;
        let fields: Vec<String> =
            fields.map(|field| format!("{}={}", text(field.name), text(field.value))).collect();
        self.line(format!("{}: {what} {}", self.slot, fields.join(" ")));
    }
}

impl Sink for Seen {
    fn stream(&mut self, slot: u32) {
        self.slot = slot;
    }

    fn interim(&mut self, status: u16) {
        self.line(format!("{}: interim {status}", self.slot));
    }

    fn head(&mut self, head: &HeadView<'_>) {
        self.fields(&format!("head {}", head.status()), head.fields());
    }

    fn data(&mut self, bytes: &[u8]) {
        assert!(!bytes.is_empty(), "an empty piece of data");
        match &mut self.data {
            Some((slot, data)) if *slot == self.slot => data.extend_from_slice(bytes),
            _ => {
                self.line(format!("{}: data follows", self.slot));
                self.data = Some((self.slot, bytes.to_vec()));
            }
        }
    }

    fn trailers(&mut self, fields: Fields<'_>) {
        self.fields("trailers", fields);
    }
}
