//! The server over HTTP/2 with prior knowledge.

use std::io::{Read, Write};

use squall_wire::{
    Event,
    h1::{HeadView, RequestHead, RequestKind, Sink},
    h2::{Client, FieldTable, HeadCache, Request, Setup, prepare},
};

use crate::client::{connect, start};

/// The length that a response's head promises.
#[derive(Default)]
struct Length(Option<String>);

impl Sink for Length {
    fn head(&mut self, head: &HeadView<'_>) {
        self.0 = head.field("content-length").map(|value| String::from_utf8_lossy(value).into_owned());
    }
}

/// HEAD has GET's length and no body: a body would be an error of the stream.
#[test]
fn head_is_answered_without_a_body() {
    let target = start();
    let mut stream = connect(target.address());
    let mut client =
        Client::new(Setup { stream_count: 1, window_bytes: 1 << 20, connection_window_bytes: 1 << 20 });
    for (path, expected) in [("/bytes/1000", Some("1000")), ("/stream-bytes/1000", None)] {
        let head =
            RequestHead { method: "HEAD", target: path, host: Some("x"), headers: &[], content_length: None };
        let (table, mut cache, mut length) = (FieldTable::default(), HeadCache::default(), Length::default());
        let fields = prepare(&head, "http", None).unwrap();
        let mut out = Vec::new();
        client.write_control(&mut out);
        client.reserve().unwrap();
        client.start(&table, Request { fields: &fields, kind: RequestKind::Head, body_bytes: 0 }, &mut out);
        stream.write_all(&out).unwrap();
        let mut buffer = [0; 4096];
        let mut event = None;
        while !matches!(event, Some(Event::Received { response: Some(_), .. })) {
            assert!(!matches!(event, Some(Event::Failed { .. })), "{path}: {event:?}");
            let bytes = stream.read(&mut buffer).unwrap();
            let mut rest = &buffer[..bytes];
            while !rest.is_empty() {
                let read = client.decode(&mut cache, rest, &mut length).unwrap();
                rest = &rest[read.consumed..];
                event = read.event.or(event);
            }
        }
        assert_eq!(length.0.as_deref(), expected, "{path}");
    }
    assert_eq!(target.stop().requests_finished, 2);
}
