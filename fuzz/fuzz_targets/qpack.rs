//! Instructions and field sections of one connection: nothing panics, and neither a warm cache nor pieces change anything. Fields that are written
//! are read back.

#![no_main]

use libfuzzer_sys::fuzz_target;
use squall_fuzz::h3::{Peer, TABLE_BYTES};
use squall_fuzz::seen::Seen;
use squall_wire::h1::Fields;
use squall_wire::h3::server::{Inbound, RequestHead, RequestSink, SectionReader, put_section};
use squall_wire::h3::{Error, HeadCache};

fuzz_target!(|data: &[u8]| {
    let mut warm = HeadCache::default();
    let first = read(&mut warm, data, usize::MAX);
    assert_eq!(read(&mut warm, data, usize::MAX), first, "with a warm cache");
    let pieces = read(&mut HeadCache::default(), data, 1);
    // A server that evicts what a section waits for breaks a rule; whether that is noticed depends on which comes first.
    if first.error.is_none() && pieces.error.is_none() {
        assert_eq!(pieces.by_slot(), first.by_slot(), "byte by byte");
    }
    write(data);
});

/// Sections as responses to one request after the other, with instructions between them: a length whose lowest bit says which, and the bytes.
fn read(cache: &mut HeadCache, mut data: &[u8], piece_bytes: usize) -> Seen<Error> {
    let mut peer = Peer::new(0, TABLE_BYTES);
    let mut is_good = peer.read(cache, 7, &[2], false);
    let mut stream_id = 0;
    peer.client.set_stream_limit(u64::MAX);
    while is_good && let Some((&first, rest)) = data.split_first() {
        let (bytes, rest) = rest.split_at(usize::from(first >> 1).min(rest.len()));
        data = rest;
        if first % 2 == 0 {
            is_good = bytes.chunks(piece_bytes).all(|part| peer.read(cache, 7, part, false));
            continue;
        }
        peer.ask(0);
        let stream = [&[1, 0x40, bytes.len() as u8][..], bytes].concat();
        let mut left = stream.len();
        is_good = stream.chunks(piece_bytes).all(|part| {
            left -= part.len();
            peer.read(cache, stream_id, part, left == 0)
        });
        stream_id += 4;
        peer.flush(0);
    }
    peer.finish().0
}

/// Fields whose names and values are pieces of the data.
fn write(data: &[u8]) {
    let fields: Vec<(&[u8], &[u8])> =
        data.split(|byte| *byte == 0).filter_map(|one| one.split_at_checked(one.len() / 2)).collect();
    let mut trailers = Vec::new();
    put_section(0, fields.iter().copied(), &mut trailers);
    let mut head = Vec::new();
    let request: [(&[u8], &[u8]); 4] =
        [(b":method", b"GET"), (b":scheme", b"https"), (b":authority", b"x"), (b":path", b"/")];
    put_section(0, request, &mut head);
    let mut read = Trailers(Vec::new());
    let both = [head, trailers].concat();
    if Inbound::default().decode(&mut SectionReader::default(), (&both, true), &mut read).is_ok() {
        let fields: Vec<_> = fields.iter().map(|(name, value)| (name.to_vec(), value.to_vec())).collect();
        assert_eq!(read.0, fields);
    }
}

struct Trailers(Vec<(Vec<u8>, Vec<u8>)>);

impl RequestSink for Trailers {
    fn head(&mut self, _: &RequestHead) {}

    fn data(&mut self, _: &[u8]) {}

    fn trailers(&mut self, fields: Fields<'_>) {
        self.0 = fields.map(|field| (field.name.to_vec(), field.value.to_vec())).collect();
    }
}
