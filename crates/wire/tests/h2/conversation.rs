//! A client and the bytes that a server sends it.

use squall_wire::Event;
use squall_wire::h1::{Fields, HeadView, RequestHead, RequestKind, Sink};
use squall_wire::h2::{Client, Error, FieldBlock, FieldTable, HeadCache, Request, Setup, prepare};

/// A client with requests in flight, and all that was seen of their responses.
pub(crate) struct Conversation {
    pub(crate) client: Client,
    pub(crate) cache: HeadCache,
    pub(crate) seen: Seen,
}

/// All that can be seen of responses, in order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Seen {
    pub(crate) lines: Vec<String>,
    slot: u32,
    /// Data of one stream that came in pieces is one line.
    data: Option<(u32, Vec<u8>)>,
}

impl Conversation {
    /// A client with so many GETs in flight.
    pub(crate) fn with_requests(count: u32) -> Self {
        let setup =
            Setup { stream_count: count.max(1), window_bytes: 1 << 20, connection_window_bytes: 1 << 20 };
        let mut client = Client::new(setup);
        let mut out = Vec::new();
        client.write_control(&mut out);
        let (table, fields) = (FieldTable::default(), get());
        for _ in 0..count {
            client.reserve().unwrap();
            client.start(
                &table,
                Request { fields: &fields, kind: RequestKind::Other, body_bytes: 0 },
                &mut out,
            );
        }
        Self { client, cache: HeadCache::default(), seen: Seen::default() }
    }

    /// Reads all of `input`.
    pub(crate) fn read(&mut self, input: &[u8]) -> Result<(), Error> {
        let mut begin = 0;
        while begin < input.len() {
            let progress = self.client.decode(&mut self.cache, &input[begin..], &mut self.seen)?;
            begin += progress.consumed;
            match progress.event {
                Some(Event::Received { response: None, .. }) | None => {}
                Some(Event::Received { slot, response: Some(response), .. }) => {
                    self.seen.line(format!("{slot}: {} with {} bytes", response.status, response.body_bytes));
                }
                Some(event) => self.seen.line(format!("{event:?}")),
            }
        }
        Ok(())
    }
}

/// `GET http://x/` that shares nothing.
pub(crate) fn get() -> FieldBlock {
    prepare(&head(&[]), "http", None).unwrap()
}

/// The head of `GET http://x/`.
pub(crate) fn head<'a>(headers: &'a [(&'a str, &'a str)]) -> RequestHead<'a> {
    RequestHead { method: "GET", target: "/", host: Some("x"), headers, content_length: None }
}

/// A frame.
pub(crate) fn frame(kind: u8, flags: u8, stream_id: u32, payload: &[u8]) -> Vec<u8> {
    let mut frame = (payload.len() as u32).to_be_bytes()[1..].to_vec();
    frame.extend_from_slice(&[kind, flags]);
    frame.extend_from_slice(&stream_id.to_be_bytes());
    frame.extend_from_slice(payload);
    frame
}

impl Seen {
    fn line(&mut self, line: String) {
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
