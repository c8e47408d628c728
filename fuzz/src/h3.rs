//! What the fuzz targets of HTTP/3 have in common: a client with requests in flight, and all that can be seen of it.

use squall_wire::h1::{RequestHead, RequestKind};
use squall_wire::h3::{Client, Error, FieldSection, HeadCache, Request, Setup, StreamAbort, prepare};
use squall_wire::{ErrorCode, Event};

use crate::seen::Seen;

/// Requests that are in flight where nothing else is said.
pub const REQUEST_COUNT: u32 = 4;

/// Largest body of a request.
pub const BODY_BYTES: u64 = 100_000;

/// The dynamic table of the clients that have one.
pub const TABLE_BYTES: u32 = 400;

/// A client and what was seen of it.
pub struct Peer {
    /// The client.
    pub client: Client,
    section: FieldSection,
    seen: Seen<Error>,
    stopped: Vec<u64>,
}

impl Peer {
    /// A client with requests in flight; every other one has a body.
    pub fn new(request_count: u32, table_bytes: u32) -> Self {
        let head = RequestHead {
            method: "GET",
            target: "/",
            host: Some("x"),
            headers: &[("user-agent", "fuzz")],
            content_length: None,
        };
        let section = prepare(&head, "https").expect("a good head");
        let mut client = Client::new(Setup {
            table_bytes,
            grease: Some(table_bytes),
            has_grease_stream: true,
            ..Setup::new(REQUEST_COUNT)
        });
        client.set_stream_limit(u64::from(REQUEST_COUNT));
        let mut peer = Self { client, section, seen: Seen::default(), stopped: Vec::new() };
        (0..request_count).for_each(|nth| peer.ask(u64::from(nth % 2) * BODY_BYTES));
        peer
    }

    /// Sends a request, where there is a stream for it.
    pub fn ask(&mut self, body_bytes: u64) {
        let Some(slot) = self.client.reserve() else { return };
        if self.client.next_reserved().is_none() {
            return self.client.cancel(slot);
        }
        let mut out = Vec::new();
        let expected = self.client.next_stream();
        self.client.start(Request { section: &self.section, kind: RequestKind::Other, body_bytes }, &mut out);
        assert_eq!(self.client.stream_of(slot), Some(expected));
    }

    /// Sends what may be sent, some of it in part, and forgets it.
    pub fn flush(&mut self, bytes_max: usize) {
        let mut out = Vec::new();
        while let Some(chunk) = self.client.next_chunk(bytes_max, &mut out) {
            assert!(chunk.offset + chunk.bytes as u64 <= BODY_BYTES, "{chunk:?}");
            if chunk.bytes % 3 == 1 {
                self.client.return_chunk(chunk.slot, 1);
                self.client.block(chunk.slot);
            }
        }
        for nth in 0..self.client.uni_count() {
            let id = 2 + 4 * nth;
            self.client.uni_sent(id, self.client.uni_output(id).len());
        }
        self.commands();
    }

    fn commands(&mut self) {
        while let Some(command) = self.client.next_command() {
            if let StreamAbort::StopSending { stream_id, .. } = command {
                self.stopped.push(stream_id);
            }
        }
    }

    /// Reads bytes of a stream, unless its reading was stopped; false when the connection is of no further use.
    pub fn read(&mut self, cache: &mut HeadCache, stream_id: u64, input: &[u8], is_fin: bool) -> bool {
        self.commands();
        if self.stopped.contains(&stream_id) {
            return true;
        }
        let mut is_good = self.decode(cache, stream_id, input, is_fin);
        while is_good && let Some(stream_id) = self.client.next_readable() {
            is_good = self.decode(cache, stream_id, &[], false);
        }
        assert!(self.client.in_flight() <= REQUEST_COUNT);
        assert!(self.client.control_bytes() < 70_000);
        is_good
    }

    fn decode(&mut self, cache: &mut HeadCache, stream_id: u64, input: &[u8], is_fin: bool) -> bool {
        let mut begin = 0;
        loop {
            let rest = &input[begin..];
            match self.client.decode_stream(cache, stream_id, (rest, is_fin), &mut self.seen) {
                Err(error) => {
                    self.seen.error = Some(error);
                    return false;
                }
                Ok(progress) => {
                    assert!(progress.consumed > 0 || rest.is_empty());
                    begin += progress.consumed;
                    self.note(progress.event);
                    if begin == input.len() {
                        return true;
                    }
                }
            }
        }
    }

    /// The peer resets a stream of its own, or stops reading one of ours.
    pub fn interrupt(&mut self, stream_id: u64, code: u64, is_reset: bool) -> bool {
        let result = if is_reset {
            self.client.handle_reset(stream_id, ErrorCode(code))
        } else {
            self.client.handle_stop_sending(stream_id, ErrorCode(code)).map(|()| None)
        };
        result.map(|event| self.note(event)).is_ok()
    }

    fn note(&mut self, event: Option<Event>) {
        self.seen.note(event);
        // The engine, too, takes them back at once.
        if event == Some(Event::GoingAway) {
            while self.client.next_unprocessed().is_some() {}
        }
    }

    /// All that was seen, and what the client has to say.
    pub fn finish(self) -> (Seen<Error>, Vec<Vec<u8>>) {
        let outputs = (0..self.client.uni_count()).map(|nth| self.client.uni_output(2 + 4 * nth).to_vec());
        let outputs = outputs.collect();
        (self.seen, outputs)
    }
}
