//! A client and the bytes that a server sends it.

use squall_wire::h1::{RequestHead, RequestKind};
use squall_wire::h2::{Client, Error, FieldBlock, FieldTable, HeadCache, Request, Setup, prepare};

use crate::seen::Seen;

/// A client with requests in flight, and all that was seen of their responses.
pub(crate) struct Conversation {
    pub(crate) client: Client,
    pub(crate) cache: HeadCache,
    pub(crate) seen: Seen,
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
            self.seen.event(progress.event);
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
