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
    /// The same, slot by slot: the order of different streams is that in which they no longer wait.
    #[must_use]
    pub fn by_slot(mut self) -> Self {
        self.events.sort_by_key(|event| match event {
            Event::Received { slot, .. } | Event::Failed { slot, .. } => Some(*slot),
            _ => None,
        });
        self.fields.sort_by_key(|(slot, ..)| *slot);
        self.data.sort_by_key(|(slot, _)| *slot);
        self.slot = 0;
        let data = std::mem::take(&mut self.data);
        for (slot, bytes) in data {
            match self.data.last_mut() {
                Some((last, data)) if *last == slot => data.extend_from_slice(&bytes),
                _ => self.data.push((slot, bytes)),
            }
        }
        self
    }

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
