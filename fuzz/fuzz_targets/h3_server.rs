//! The server's side against a random client: its unidirectional streams and its requests, with ends and resets anywhere. Nothing panics; what is
//! read, and what is wrong, is the same in pieces of any size; and what a client causes to be sent stays within its bounds.

#![no_main]

use std::collections::{BTreeMap, BTreeSet};

use libfuzzer_sys::fuzz_target;
use squall_wire::h1::Fields;
use squall_wire::h3::server::{Inbound, RequestError, RequestHead, RequestSink, SectionReader, UniStreams};
use squall_wire::h3::{Error, Setup, StreamAbort};

fuzz_target!(|data: &[u8]| {
    let Some((&first, data)) = data.split_first() else { return };
    let piece_bytes = usize::from(first).max(1);
    assert_eq!(converse(data, usize::MAX), converse(data, piece_bytes), "in pieces of {piece_bytes}");
});

/// A server's end of a connection.
struct Server {
    connection: UniStreams,
    sections: SectionReader,
    requests: BTreeMap<u64, Inbound>,
    /// Streams that are not read any more.
    over: BTreeSet<u64>,
    seen: Seen,
}

/// All that can be seen of the client, by request.
#[derive(Debug, Default, PartialEq, Eq)]
struct Seen {
    requests: BTreeMap<u64, Received>,
    refused: Vec<StreamAbort>,
    error: Option<Error>,
}

/// What came of one request.
#[derive(Debug, Default, PartialEq, Eq)]
struct Received {
    heads: Vec<RequestHead>,
    body: Vec<u8>,
    trailers: Vec<Vec<u8>>,
    error: Option<RequestError>,
}

impl RequestSink for Received {
    fn head(&mut self, head: &RequestHead) {
        self.heads.push(head.clone());
    }

    fn data(&mut self, bytes: &[u8]) {
        assert!(!bytes.is_empty() && self.heads.len() == 1 && self.trailers.is_empty());
        self.body.extend_from_slice(bytes);
    }

    fn trailers(&mut self, fields: Fields<'_>) {
        let lines = fields.flat_map(|field| [field.name, field.value].concat());
        self.trailers.push(lines.collect());
    }
}

/// Each piece is the id of a stream, a length, and so many bytes. Of a server's own streams, bytes mean something else.
fn converse(data: &[u8], piece_bytes: usize) -> Seen {
    let setup = Setup { grease: Some(1), has_grease_stream: true, ..Setup::new(100) };
    let mut server = Server {
        connection: UniStreams::new(setup),
        sections: SectionReader::default(),
        requests: BTreeMap::new(),
        over: BTreeSet::new(),
        seen: Seen::default(),
    };
    let mut rest = data;
    while let Some((&[stream, length], after)) = rest.split_first_chunk() {
        let (bytes, after) = after.split_at(usize::from(length).min(after.len()));
        rest = after;
        let (id, is_fin) = (u64::from(stream & 0x7f), stream & 0x80 != 0);
        let read = match id & 3 {
            1 => server.reset(id + 1),
            3 => server.go_away(id - 3),
            _ => server.read(id, (bytes, is_fin), piece_bytes),
        };
        if let Err(error) = read {
            server.seen.error = Some(error);
            break;
        }
    }
    server.seen
}

impl Server {
    fn read(&mut self, id: u64, (bytes, is_fin): (&[u8], bool), piece_bytes: usize) -> Result<(), Error> {
        let mut left = bytes.len();
        // An end may come alone.
        let empty = bytes.is_empty().then_some(bytes);
        for part in bytes.chunks(piece_bytes).chain(empty) {
            left -= part.len();
            if !self.over.contains(&id) {
                self.read_part(id, (part, is_fin && left == 0))?;
            }
        }
        if is_fin {
            self.over.insert(id);
        }
        Ok(())
    }

    fn read_part(&mut self, id: u64, input: (&[u8], bool)) -> Result<(), Error> {
        if id & 3 == 0 {
            return self.read_request(id, input);
        }
        self.connection.decode_stream(id, input)?;
        self.check();
        Ok(())
    }

    fn read_request(&mut self, id: u64, input: (&[u8], bool)) -> Result<(), Error> {
        let inbound = self.requests.entry(id).or_default();
        let received = self.seen.requests.entry(id).or_default();
        match inbound.decode(&mut self.sections, input, received) {
            Ok(()) => assert!(received.heads.is_empty() || inbound.has_begun()),
            Err(RequestError::Connection(error)) => return Err(error),
            Err(error) => {
                received.error = Some(error);
                self.over.insert(id);
            }
        }
        Ok(())
    }

    fn reset(&mut self, id: u64) -> Result<(), Error> {
        if self.over.insert(id) {
            self.connection.handle_reset(id)?;
        }
        Ok(())
    }

    fn go_away(&mut self, id: u64) -> Result<(), Error> {
        self.connection.go_away(id);
        self.check();
        Ok(())
    }

    /// Streams that are refused are not read any more, and nothing waits but what the server itself has to say.
    fn check(&mut self) {
        while let Some(command) = self.connection.next_command() {
            if let StreamAbort::StopSending { stream_id, .. } = command {
                assert!(stream_id & 3 == 2, "{command:?}");
                self.over.insert(stream_id);
            }
            self.seen.refused.push(command);
        }
        for nth in 0..self.connection.uni_count() {
            let id = 3 + 4 * nth;
            let bytes = self.connection.uni_output(id).len();
            assert!(bytes <= 64, "{bytes} bytes wait on stream {id}");
            self.connection.uni_sent(id, bytes);
        }
    }
}
