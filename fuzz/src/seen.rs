//! What a client's caller sees of responses.

use squall_wire::Event;
use squall_wire::h1::{Fields, HeadView, Sink};

/// All that can be seen, in order.
#[derive(Debug, PartialEq, Eq)]
pub struct Seen<E> {
    events: Vec<Event>,
    fields: Vec<(u32, u16, Vec<u8>)>,
    data: Vec<(u32, Vec<u8>)>,
    /// What the connection ended with.
    pub error: Option<E>,
    slot: u32,
}

impl<E> Default for Seen<E> {
    fn default() -> Self {
        Self { events: Vec::new(), fields: Vec::new(), data: Vec::new(), error: None, slot: 0 }
    }
}

impl<E> Seen<E> {
    /// How a body is cut into events depends on the pieces; what ends does not.
    pub fn note(&mut self, event: Option<Event>) {
        match event {
            None | Some(Event::Received { response: None, .. }) => {}
            Some(Event::Received { slot, response, .. }) => {
                self.events.push(Event::Received { slot, bytes: 0, response });
            }
            Some(event) => self.events.push(event),
        }
    }
}

impl<E> Sink for Seen<E> {
    fn stream(&mut self, slot: u32) {
        self.slot = slot;
    }

    fn head(&mut self, head: &HeadView<'_>) {
        let fields = head.fields().flat_map(|field| [field.name, b"=", field.value, b" "].concat()).collect();
        self.fields.push((self.slot, head.status(), fields));
    }

    fn data(&mut self, bytes: &[u8]) {
        match self.data.last_mut() {
            Some((slot, data)) if *slot == self.slot => data.extend_from_slice(bytes),
            _ => self.data.push((self.slot, bytes.to_vec())),
        }
    }

    fn trailers(&mut self, fields: Fields<'_>) {
        let fields = fields.flat_map(|field| [field.name, b"=", field.value, b" "].concat()).collect();
        self.fields.push((self.slot, 0, fields));
    }
}
