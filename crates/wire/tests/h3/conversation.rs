//! A client and the bytes that a server sends it, stream by stream.

use squall_wire::ErrorCode;
use squall_wire::h1::{RequestHead, RequestKind};
use squall_wire::h3::{Client, Error, FieldSection, HeadCache, Request, Setup, StreamAbort, prepare};

use crate::seen::Seen;

/// A client with requests in flight, and all that was seen of their responses.
pub(crate) struct Conversation {
    pub(crate) client: Client,
    pub(crate) cache: HeadCache,
    pub(crate) seen: Seen,
}

/// Some bytes of a stream; the last ones with `true`.
pub(crate) type Piece = (u64, Vec<u8>, bool);

/// The server's unidirectional streams.
pub(crate) const CONTROL: u64 = 3;
pub(crate) const ENCODER: u64 = 7;
pub(crate) const DECODER: u64 = 11;
pub(crate) const OTHER: u64 = 15;

pub(crate) const DATA: u64 = 0;
pub(crate) const HEADERS: u64 = 1;

/// `:status: 200`, and nothing else.
pub(crate) const OK: &[u8] = &[0, 0, 0xd9];

/// `:status: 103`.
pub(crate) const EARLY_HINTS: &[u8] = &[0, 0, 0xd8];

impl Conversation {
    /// A client with so many GETs in flight.
    pub(crate) fn with_requests(count: u32) -> Self {
        Self::new(Setup::new(count), RequestKind::Other, count)
    }

    pub(crate) fn new(setup: Setup, kind: RequestKind, count: u32) -> Self {
        let mut client = Client::new(setup);
        client.set_stream_limit(u64::from(count));
        let section = get();
        for _ in 0..count {
            client.reserve().unwrap();
            client.start(Request { section: &section, kind, body_bytes: 0 }, &mut Vec::new());
        }
        Self { client, cache: HeadCache::default(), seen: Seen::default() }
    }

    /// Reads some bytes of a stream, and what is to be read again after them.
    pub(crate) fn read(&mut self, stream_id: u64, input: &[u8], is_fin: bool) -> Result<(), Error> {
        self.decode(stream_id, input, is_fin)?;
        while let Some(stream_id) = self.client.next_readable() {
            self.decode(stream_id, &[], false)?;
        }
        Ok(())
    }

    fn decode(&mut self, stream_id: u64, input: &[u8], is_fin: bool) -> Result<(), Error> {
        let mut begin = 0;
        loop {
            let rest = &input[begin..];
            let read =
                self.client.decode_stream(&mut self.cache, stream_id, (rest, is_fin), &mut self.seen)?;
            begin += read.consumed;
            self.seen.event(read.event);
            if begin == input.len() {
                return Ok(());
            }
        }
    }

    pub(crate) fn read_all(&mut self, pieces: &[Piece]) -> Result<(), Error> {
        pieces.iter().try_for_each(|(stream_id, bytes, is_fin)| self.read(*stream_id, bytes, *is_fin))
    }

    /// The commands that wait, as text.
    pub(crate) fn commands(&mut self) -> Vec<String> {
        std::iter::from_fn(|| self.client.next_command()).map(|command| text_of(&command)).collect()
    }

    /// What waits on the client's unidirectional streams; it is taken.
    pub(crate) fn outputs(&mut self) -> Vec<Vec<u8>> {
        let ids = (0..self.client.uni_count()).map(|nth| 2 + 4 * nth);
        ids.map(|id| {
            let output = self.client.uni_output(id).to_vec();
            self.client.uni_sent(id, output.len());
            output
        })
        .collect()
    }
}

fn text_of(command: &StreamAbort) -> String {
    match command {
        StreamAbort::Reset { stream_id, code } => format!("reset {stream_id} {code}"),
        StreamAbort::StopSending { stream_id, code } => format!("stop {stream_id} {code}"),
    }
}

/// `GET http://x/`.
pub(crate) fn get() -> FieldSection {
    prepare(&head(&[]), "https").unwrap()
}

/// The head of `GET http://x/`.
pub(crate) fn head<'a>(headers: &'a [(&'a str, &'a str)]) -> RequestHead<'a> {
    RequestHead { method: "GET", target: "/", host: Some("x"), headers, content_length: None }
}

/// An integer of QUIC.
pub(crate) fn varint(value: u64) -> Vec<u8> {
    match value {
        0..64 => vec![value as u8],
        64..16_384 => (value as u16 | 0x4000).to_be_bytes().to_vec(),
        _ => (value | 0xc000_0000_0000_0000).to_be_bytes().to_vec(),
    }
}

/// A frame.
pub(crate) fn frame(kind: u64, payload: &[u8]) -> Vec<u8> {
    [varint(kind), varint(payload.len() as u64), payload.to_vec()].concat()
}

/// A HEADERS frame with fields that refer to no table: names are shorter than 7 bytes, values than 127.
pub(crate) fn headers(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut section = vec![0, 0];
    for (name, value) in fields {
        assert!(value.len() < 127);
        match name.len() {
            0..7 => section.push(0x20 | name.len() as u8),
            _ => section.extend_from_slice(&[0x27, name.len() as u8 - 7]),
        }
        section.extend_from_slice(name.as_bytes());
        section.push(value.len() as u8);
        section.extend_from_slice(value.as_bytes());
    }
    frame(HEADERS, &section)
}

/// The server's control stream with settings.
pub(crate) fn control(settings: &[u8]) -> Piece {
    (CONTROL, [vec![0], frame(4, settings)].concat(), false)
}

/// A whole stream.
pub(crate) fn whole(stream_id: u64, frames: &[Vec<u8>]) -> Piece {
    (stream_id, frames.concat(), true)
}

/// The name of the error that a connection ended with.
pub(crate) fn name_of(error: &Error) -> String {
    let ErrorCode(_) = error.code;
    error.code.to_string()
}
