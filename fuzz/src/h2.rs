//! What the fuzz targets of HTTP/2 have in common: a client with requests in flight, and all that can be seen of it.

use squall_wire::Event;
use squall_wire::h1::{RequestHead, RequestKind};
use squall_wire::h2::{Client, Error, FieldBlock, FieldTable, HeadCache, Request, Setup, prepare};

use crate::seen::Seen;

/// Requests that are in flight where nothing else is said.
pub const REQUEST_COUNT: u32 = 4;

/// Largest body of a request.
pub const BODY_BYTES: u64 = 100_000;

/// A client and what was seen of it.
pub struct Peer {
    /// The client.
    pub client: Client,
    /// What it sent.
    pub sent: Vec<u8>,
    table: FieldTable,
    fields: FieldBlock,
    seen: Seen<Error>,
}

impl Peer {
    /// A client with small windows, and requests in flight; every other one has a body.
    pub fn new(request_count: u32) -> Self {
        let setup =
            Setup { stream_count: REQUEST_COUNT, window_bytes: 1_000, connection_window_bytes: 65_535 };
        let mut table = FieldTable::default();
        let head = RequestHead {
            method: "GET",
            target: "/",
            host: Some("x"),
            headers: &[("user-agent", "fuzz")],
            content_length: None,
        };
        let fields = prepare(&head, "http", Some(&mut table)).expect("a good head");
        let mut peer =
            Self { client: Client::new(setup), sent: Vec::new(), table, fields, seen: Seen::default() };
        (0..request_count).for_each(|nth| peer.ask(u64::from(nth % 2) * BODY_BYTES));
        peer
    }

    /// Sends a request, where there is room.
    pub fn ask(&mut self, body_bytes: u64) {
        let Some(slot) = self.client.reserve() else { return };
        if self.client.next_reserved().is_none() {
            return self.client.cancel(slot);
        }
        let request = Request { fields: &self.fields, kind: RequestKind::Other, body_bytes };
        self.client.start(&self.table, request, &mut self.sent);
    }

    /// Sends what may be sent, and forgets it.
    pub fn flush(&mut self) {
        self.client.write_control(&mut self.sent);
        while let Some(chunk) = self.client.next_chunk(4_096, &mut self.sent) {
            assert!(chunk.bytes > 0 && chunk.offset + chunk.bytes as u64 <= BODY_BYTES, "{chunk:?}");
            self.sent.resize(self.sent.len() + chunk.bytes, 0);
        }
        self.sent.clear();
    }

    /// Reads a piece; false when the connection is of no further use.
    pub fn read(&mut self, cache: &mut HeadCache, input: &[u8]) -> bool {
        let mut begin = 0;
        while begin < input.len() {
            match self.client.decode(cache, &input[begin..], &mut self.seen) {
                Err(error) => {
                    self.seen.error = Some(error);
                    return false;
                }
                Ok(progress) => {
                    assert!(progress.consumed > 0 && begin + progress.consumed <= input.len());
                    begin += progress.consumed;
                    self.seen.note(progress.event);
                    // The engine, too, takes them back at once: whatever follows for them is for closed streams.
                    if progress.event == Some(Event::GoingAway) {
                        while self.client.next_unprocessed().is_some() {}
                    }
                }
            }
        }
        assert!(self.client.in_flight() <= REQUEST_COUNT);
        true
    }

    /// All that was seen, and what the client has to say.
    pub fn finish(mut self) -> (Seen<Error>, Vec<u8>) {
        self.sent.clear();
        self.client.write_control(&mut self.sent);
        (self.seen, self.sent)
    }
}

/// A frame.
pub fn frame(kind: u8, flags: u8, stream_id: u32, payload: &[u8]) -> Vec<u8> {
    let mut frame = (payload.len() as u32).to_be_bytes()[1..].to_vec();
    frame.extend_from_slice(&[kind, flags]);
    frame.extend_from_slice(&stream_id.to_be_bytes());
    frame.extend_from_slice(payload);
    frame
}
