//! Valid responses of every framing, made at random from fixed seeds, come back as they were made, however they are split.

use squall_wire::h1::{Decoder, HeadCache, RequestKind};

use crate::harness::{Seen, decode_pieces};

#[test]
fn random_responses_come_back_however_they_are_split() {
    let mut cache = HeadCache::default();
    for seed in 0..5_000 {
        let mut random = Random(seed);
        let made = Made::random(&mut random);
        let pieces = random.split(&made.bytes);
        let seen = decode_pieces(made.kind, &mut cache, &pieces);
        assert_eq!(Comparable::of(&seen), made.expected, "seed {seed}");
        let response = seen.response.unwrap();
        assert_eq!(response.body_bytes, made.expected.body.len() as u64, "seed {seed}");
    }
}

#[test]
fn random_pipelines_are_taken_apart() {
    let mut cache = HeadCache::default();
    for seed in 0..1_000 {
        let mut random = Random(seed);
        let pipeline = random.many(1, 8, Made::random_delimited);
        let stream: Vec<u8> = pipeline.iter().flat_map(|made| made.bytes.clone()).collect();
        let pieces = random.split(&stream);
        let expected: Vec<_> = pipeline.iter().map(|made| (made.kind, made.expected.clone())).collect();
        assert_eq!(decode_pipeline(&mut cache, &expected, &pieces), expected, "seed {seed}");
    }
}

/// Decodes as many responses as were asked for, as an event loop would.
fn decode_pipeline(
    cache: &mut HeadCache,
    asked: &[(RequestKind, Comparable)],
    pieces: &[&[u8]],
) -> Vec<(RequestKind, Comparable)> {
    let mut kinds = asked.iter().map(|(kind, _)| *kind);
    let mut kind = kinds.next().unwrap();
    let (mut decoder, mut seen, mut done) = (Decoder::new(), Seen::default(), Vec::new());
    decoder.begin(kind);
    for piece in pieces {
        let mut rest = *piece;
        while !rest.is_empty() {
            let progress = decoder.decode(cache, rest, &mut seen).unwrap();
            rest = &rest[progress.consumed..];
            if progress.response.is_some() {
                seen.response = progress.response;
                done.push((kind, Comparable::of(&std::mem::take(&mut seen))));
                let Some(next) = kinds.next() else { return done };
                kind = next;
                decoder.begin(kind);
            }
        }
    }
    done
}

/// A response as it was made.
struct Made {
    kind: RequestKind,
    bytes: Vec<u8>,
    expected: Comparable,
}

/// What must come back.
#[derive(Debug, Clone, PartialEq)]
struct Comparable {
    status: u16,
    keep_alive: bool,
    interim: Vec<u16>,
    fields: Vec<(String, String)>,
    body: Vec<u8>,
    trailers: Vec<(String, String)>,
}

impl Comparable {
    fn of(seen: &Seen) -> Self {
        let response = seen.response.unwrap_or_else(|| panic!("{seen:?}"));
        assert_eq!(response.interim_count as usize, seen.interim.len());
        Self {
            status: response.status,
            keep_alive: response.keep_alive,
            interim: seen.interim.clone(),
            fields: seen.fields.clone(),
            body: seen.body.clone(),
            trailers: seen.trailers.clone(),
        }
    }
}

impl Made {
    fn random(random: &mut Random) -> Self {
        if random.below(4) == 0 { Self::until_close(random) } else { Self::random_delimited(random) }
    }

    /// A response that says where it ends.
    fn random_delimited(random: &mut Random) -> Self {
        match random.below(4) {
            0 => Self::without_body(random),
            1 => Self::chunked(random),
            _ => Self::with_length(random),
        }
    }

    fn without_body(random: &mut Random) -> Self {
        let (kind, status) =
            [(RequestKind::Head, 200), (RequestKind::Other, 204), (RequestKind::Other, 304)][random.below(3)];
        let mut made = Self::start(random, kind, status);
        made.field("Content-Length", "77");
        made.end_head();
        made
    }

    fn with_length(random: &mut Random) -> Self {
        let mut made = Self::start(random, RequestKind::Other, 200);
        let body = random.body();
        made.field("Content-Length", &body.len().to_string());
        made.end_head();
        made.bytes.extend_from_slice(&body);
        made.expected.body = body;
        made
    }

    fn until_close(random: &mut Random) -> Self {
        let mut made = Self::start(random, RequestKind::Other, 500);
        made.end_head();
        made.expected.body = random.body();
        made.bytes.extend_from_slice(&made.expected.body);
        made.expected.keep_alive = false;
        made
    }

    fn chunked(random: &mut Random) -> Self {
        let mut made = Self::start(random, RequestKind::Other, 200);
        made.field("Transfer-Encoding", "chunked");
        made.end_head();
        for chunk in random.many(0, 5, Random::body).iter().filter(|chunk| !chunk.is_empty()) {
            let extension = ["", ";a=b", " ; \"c\"", "  "][random.below(4)];
            made.bytes.extend_from_slice(format!("{:02x}{extension}\r\n", chunk.len()).as_bytes());
            made.bytes.extend_from_slice(chunk);
            made.bytes.extend_from_slice(b"\r\n");
            made.expected.body.extend_from_slice(chunk);
        }
        made.bytes.extend_from_slice(b"0\r\n");
        made.expected.trailers = random.fields();
        made.write_fields(&made.expected.trailers.clone());
        made.bytes.extend_from_slice(b"\r\n");
        made
    }

    /// Interim responses, the status line, and fields that have no part in framing.
    fn start(random: &mut Random, kind: RequestKind, status: u16) -> Self {
        let interim = random.many(0, 2, |random| [100, 102, 103][random.below(3)]);
        let fields = random.fields();
        let expected = Comparable {
            status,
            keep_alive: true,
            interim,
            fields: Vec::new(),
            body: Vec::new(),
            trailers: Vec::new(),
        };
        let mut made = Self { kind, bytes: Vec::new(), expected };
        for status in &made.expected.interim {
            made.bytes.extend_from_slice(format!("HTTP/1.1 {status} Interim\r\nA: b\r\n\r\n").as_bytes());
        }
        made.bytes.extend_from_slice(format!("HTTP/1.1 {status} A reason\r\n").as_bytes());
        made.write_fields(&fields);
        made.expected.fields = fields;
        if random.below(4) == 0 {
            made.field("Connection", "close");
            made.expected.keep_alive = false;
        }
        made
    }

    fn field(&mut self, name: &str, value: &str) {
        let fields = [(name.to_owned(), value.to_owned())];
        self.write_fields(&fields);
        self.expected.fields.extend(fields);
    }

    fn write_fields(&mut self, fields: &[(String, String)]) {
        for (name, value) in fields {
            self.bytes.extend_from_slice(format!("{name}: {value}\r\n").as_bytes());
        }
    }

    fn end_head(&mut self) {
        self.bytes.extend_from_slice(b"\r\n");
    }
}

/// SplitMix64: small, and the same on every machine.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    fn many<T>(
        &mut self,
        count_min: usize,
        count_max: usize,
        mut make: impl FnMut(&mut Self) -> T,
    ) -> Vec<T> {
        let count = count_min + self.below(count_max - count_min + 1);
        (0..count).map(|_| make(self)).collect()
    }

    fn body(&mut self) -> Vec<u8> {
        let bytes_max = [0, 1, 20, 300][self.below(4)];
        self.many(0, bytes_max, |random| random.next() as u8)
    }

    fn fields(&mut self) -> Vec<(String, String)> {
        self.many(0, 4, |random| {
            let name = ["Server", "x", "X-Long-Name_With.Marks", "ETag"][random.below(4)];
            let value = ["", "v", "two words", "a:b,\tc", "\u{e9}\u{4e16}"][random.below(5)];
            (name.to_owned(), value.to_owned())
        })
    }

    /// Cuts at random: sometimes nowhere, sometimes everywhere.
    fn split<'b>(&mut self, mut bytes: &'b [u8]) -> Vec<&'b [u8]> {
        let bytes_max = [1, 7, 60, bytes.len().max(1)][self.below(4)];
        let mut pieces = Vec::new();
        while !bytes.is_empty() {
            let (piece, rest) = bytes.split_at((1 + self.below(bytes_max)).min(bytes.len()));
            pieces.push(piece);
            bytes = rest;
        }
        pieces
    }
}
