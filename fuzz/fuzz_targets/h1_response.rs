//! Decodes arbitrary bytes whole, in pieces, and with a warm cache: the result is always the same, nothing panics, and nothing
//! beyond the input is consumed. Where `httparse` accepts the head too, both read the same from it.

#![no_main]

use libfuzzer_sys::fuzz_target;
use squall_wire::h1::{DecodeError, Decoder, Fields, HeadCache, HeadView, RequestKind, Response, Sink};

fuzz_target!(|data: &[u8]| {
    let [options, split_step, input @ ..] = data else { return };
    let kind = [RequestKind::Other, RequestKind::Head, RequestKind::Connect][usize::from(*options) % 3];
    let mut cache = HeadCache::default();
    let whole = decode(kind, &mut cache, input.chunks(usize::MAX));
    assert_eq!(decode(kind, &mut cache, input.chunks(usize::MAX)), whole, "with a warm cache");
    assert_eq!(decode(kind, &mut HeadCache::default(), input.chunks(1)), whole, "byte by byte");
    let step = usize::from(*split_step).max(1);
    assert_eq!(decode(kind, &mut cache, input.chunks(step)), whole, "in pieces of {step} bytes");
    check_against_httparse(&whole, input);
});

/// All that can be seen of one response.
#[derive(Debug, Default, PartialEq)]
struct Seen {
    interim: Vec<u16>,
    reason: Vec<u8>,
    fields: Vec<(Vec<u8>, Vec<u8>)>,
    body: Vec<u8>,
    trailers: Vec<(Vec<u8>, Vec<u8>)>,
    consumed: usize,
    result: Option<Result<Response, DecodeError>>,
}

impl Sink for Seen {
    fn interim(&mut self, status: u16) {
        self.interim.push(status);
    }

    fn head(&mut self, head: &HeadView<'_>) {
        self.reason = head.reason().to_vec();
        self.fields = pairs(head.fields());
    }

    fn data(&mut self, bytes: &[u8]) {
        assert!(!bytes.is_empty());
        self.body.extend_from_slice(bytes);
    }

    fn trailers(&mut self, fields: Fields<'_>) {
        self.trailers = pairs(fields);
        assert!(!self.trailers.is_empty());
    }
}

fn decode<'a>(kind: RequestKind, cache: &mut HeadCache, pieces: impl Iterator<Item = &'a [u8]>) -> Seen {
    let mut seen = Seen::default();
    let mut decoder = Decoder::new();
    decoder.begin(kind);
    for piece in pieces {
        assert_eq!(decoder.is_idle(), seen.consumed == 0);
        match decoder.decode(cache, piece, &mut seen) {
            Ok(progress) => {
                assert!(progress.consumed <= piece.len());
                assert!(progress.consumed == piece.len() || progress.response.is_some());
                seen.consumed += progress.consumed;
                if let Some(response) = progress.response {
                    assert_eq!(response.body_bytes, seen.body.len() as u64);
                    return Seen { result: Some(Ok(response)), ..seen };
                }
            }
            // How much was consumed before an error means nothing.
            Err(error) => return Seen { result: Some(Err(error)), consumed: 0, ..seen },
        }
    }
    Seen { result: Some(decoder.handle_eof()), ..seen }
}

/// The reference knows no folds, and stricter values; where it accepts a final head, it must have read what we read.
fn check_against_httparse(seen: &Seen, input: &[u8]) {
    let mut headers = [httparse::EMPTY_HEADER; 64];
    let mut reference = httparse::Response::new(&mut headers);
    let Ok(httparse::Status::Complete(_)) = reference.parse(input) else { return };
    let Some(Ok(response)) = &seen.result else { return };
    if !seen.interim.is_empty() {
        return;
    }
    assert_eq!(Some(response.status), reference.code);
    let expected: Vec<_> =
        reference.headers.iter().map(|it| (it.name.as_bytes().to_vec(), trim(it.value).to_vec())).collect();
    assert_eq!(seen.fields, expected);
}

fn pairs(fields: Fields<'_>) -> Vec<(Vec<u8>, Vec<u8>)> {
    fields.map(|field| (field.name.to_vec(), field.value.to_vec())).collect()
}

fn trim(mut value: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] | [rest @ .., b' ' | b'\t'] = value {
        value = rest;
    }
    value
}
