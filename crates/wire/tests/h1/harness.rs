//! Decodes one text whole, byte by byte, and split at every place, and insists that the result is always the same.

use squall_wire::h1::{DecodeError, Decoder, Fields, HeadCache, HeadView, RequestKind, Response, Sink};

/// All that can be seen of one response.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Seen {
    pub(crate) interim: Vec<u16>,
    pub(crate) reason: String,
    pub(crate) fields: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
    pub(crate) trailers: Vec<(String, String)>,
    pub(crate) response: Option<Response>,
    pub(crate) error: Option<DecodeError>,
    /// Bytes left over for the next response.
    pub(crate) rest: Vec<u8>,
}

impl Sink for Seen {
    fn interim(&mut self, status: u16) {
        self.interim.push(status);
    }

    fn head(&mut self, head: &HeadView<'_>) {
        self.reason = text(head.reason());
        self.fields = pairs(head.fields());
    }

    fn data(&mut self, bytes: &[u8]) {
        assert!(!bytes.is_empty(), "an empty piece of data");
        self.body.extend_from_slice(bytes);
    }

    fn trailers(&mut self, fields: Fields<'_>) {
        self.trailers = pairs(fields);
    }
}

/// Decodes `input` in every way, then the end of the connection if the response is not whole by then.
pub(crate) fn decode(kind: RequestKind, input: &[u8]) -> Seen {
    let whole = decode_pieces(kind, &mut HeadCache::default(), &[input]);
    let bytes: Vec<&[u8]> = input.chunks(1).collect();
    assert_eq!(decode_pieces(kind, &mut HeadCache::default(), &bytes), whole, "byte by byte");
    if input.len() < SPLIT_INPUT_BYTES_MAX {
        check_every_split(kind, input, &whole);
    }
    check_predicted(kind, input, &whole);
    whole
}

/// As [`decode`], with the response's error, which there must be.
pub(crate) fn decode_error(kind: RequestKind, input: &[u8]) -> DecodeError {
    let seen = decode(kind, input);
    seen.error.clone().unwrap_or_else(|| panic!("no error in {:?}: {seen:?}", text(input)))
}

/// Decodes pieces in their order on one connection.
pub(crate) fn decode_pieces(kind: RequestKind, cache: &mut HeadCache, pieces: &[&[u8]]) -> Seen {
    let mut seen = Seen::default();
    let mut decoder = Decoder::new();
    decoder.begin(kind);
    for (index, piece) in pieces.iter().enumerate() {
        match decoder.decode(cache, piece, &mut seen) {
            Ok(progress) => {
                assert!(progress.consumed <= piece.len(), "consumed more than there was");
                assert!(progress.consumed == piece.len() || progress.response.is_some(), "left some over");
                seen.response = progress.response;
                if seen.response.is_some() {
                    seen.rest = [&piece[progress.consumed..], &pieces[index + 1..].concat()].concat();
                    return seen;
                }
            }
            Err(error) => return Seen { error: Some(error), ..seen },
        }
    }
    match decoder.handle_eof() {
        Ok(response) => Seen { response: Some(response), ..seen },
        Err(error) => Seen { error: Some(error), ..seen },
    }
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn check_every_split(kind: RequestKind, input: &[u8], whole: &Seen) {
    for at in 0..=input.len() {
        let (left, right) = input.split_at(at);
        let split = decode_pieces(kind, &mut HeadCache::default(), &[left, right]);
        assert_eq!(&split, whole, "{:?} split at {at}", text(input));
    }
}

/// A head that was seen before is recognised, and means the same.
fn check_predicted(kind: RequestKind, input: &[u8], whole: &Seen) {
    let mut cache = HeadCache::default();
    for _ in 0..2 {
        assert_eq!(&decode_pieces(kind, &mut cache, &[input]), whole, "with a warm cache");
    }
}

fn pairs(fields: Fields<'_>) -> Vec<(String, String)> {
    fields.map(|field| (text(field.name), text(field.value))).collect()
}

/// Larger inputs are not split at every place: that takes quadratic time.
const SPLIT_INPUT_BYTES_MAX: usize = 4000;
