//! What it costs to decode a response, compared with `httparse` (which reads heads only) in the same run.
//!
//! `cargo bench -p squall-wire`. Two responses alternate: equal ones are predicted, different ones are parsed. Each figure is the
//! best of many rounds in which all contenders take turns, so that a busy machine disturbs them alike.

#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

use std::hint::black_box;
use std::time::Instant;

use squall_wire::h1::{Decoder, HeadCache, RequestKind};

fn main() {
    let (small, small_other) = (small_response("0"), small_response("1"));
    let (large, large_other) = (large_response("0"), large_response("1"));
    let chunked = chunked_response();
    let mut contenders = [
        Contender::new("small nginx head, 12 bytes: predicted", decode, [&small, &small]),
        Contender::new("small nginx head, 12 bytes: parsed", decode, [&small, &small_other]),
        Contender::new("small nginx head: httparse", httparse, [&small, &small_other]),
        Contender::new("20-field head: predicted", decode, [&large, &large]),
        Contender::new("20-field head: parsed", decode, [&large, &large_other]),
        Contender::new("20-field head: httparse", httparse, [&large, &large_other]),
        Contender::new("8 chunks of 1,000 bytes, head predicted", decode, [&chunked, &chunked]),
    ];
    for _ in 0..ROUND_COUNT {
        contenders.iter_mut().for_each(Contender::run_round);
    }
    for contender in &contenders {
        println!("{:>8.1} ns  {}", contender.ns_min, contender.name);
    }
}

/// A way to decode two responses over and over, and its best time for one of them.
struct Contender<'a> {
    name: &'static str,
    run: fn([&[u8]; 2]),
    responses: [&'a [u8]; 2],
    ns_min: f64,
}

impl<'a> Contender<'a> {
    fn new(name: &'static str, run: fn([&[u8]; 2]), [first, other]: [&'a str; 2]) -> Self {
        Self { name, run, responses: [first.as_bytes(), other.as_bytes()], ns_min: f64::INFINITY }
    }

    fn run_round(&mut self) {
        let start = Instant::now();
        (self.run)(black_box(self.responses));
        let ns = start.elapsed().as_nanos() as f64 / f64::from(2 * PAIR_COUNT);
        self.ns_min = self.ns_min.min(ns);
    }
}

fn decode(responses: [&[u8]; 2]) {
    let (mut decoder, mut cache) = (Decoder::new(), HeadCache::default());
    for _ in 0..PAIR_COUNT {
        for response in responses {
            decoder.begin(RequestKind::Other);
            let progress = decoder.decode(&mut cache, black_box(response), &mut ());
            assert!(black_box(progress).is_ok_and(|it| it.response.is_some()));
        }
    }
}

/// As much as a client must know of a head: its status, its length, and whether the connection lasts.
fn httparse(responses: [&[u8]; 2]) {
    for _ in 0..PAIR_COUNT {
        for response in responses {
            let mut headers = [httparse::EMPTY_HEADER; 32];
            let mut head = httparse::Response::new(&mut headers);
            let status = head.parse(black_box(response));
            assert!(status.is_ok_and(|it| it.is_complete()));
            let length = head.headers.iter().find(|it| it.name.eq_ignore_ascii_case("content-length"));
            let options = head.headers.iter().find(|it| it.name.eq_ignore_ascii_case("connection"));
            black_box((head.code, length.map(|it| it.value), options.map(|it| it.value)));
        }
    }
}

fn small_response(mark: &str) -> String {
    format!(
        "HTTP/1.1 200 OK\r\nServer: nginx/1.22.1\r\nDate: Mon, 01 Jan 2024 00:00:0{mark} GMT\r\nContent-Type: text/plain\r\n\
         Content-Length: 12\r\nLast-Modified: Mon, 01 Jan 2024 00:00:00 GMT\r\nConnection: keep-alive\r\n\
         ETag: \"65920080-c\"\r\nAccept-Ranges: bytes\r\n\r\nHello world\n"
    )
}

fn large_response(mark: &str) -> String {
    let fields: String = (1..=19)
        .map(|number| format!("X-Field-Number-{number}: a value of medium length, {mark}\r\n"))
        .collect();
    format!("HTTP/1.1 200 OK\r\n{fields}Content-Length: 12\r\n\r\nHello world\n")
}

fn chunked_response() -> String {
    let chunks = format!("3e8\r\n{}\r\n", "x".repeat(1000)).repeat(8);
    format!("HTTP/1.1 200 OK\r\nServer: nginx/1.22.1\r\nTransfer-Encoding: chunked\r\n\r\n{chunks}0\r\n\r\n")
}

const ROUND_COUNT: u32 = 60;
const PAIR_COUNT: u32 = 10_000;
