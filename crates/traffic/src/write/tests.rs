//! What is written is read back the same, as far as the format has a place for it.

use super::*;
use crate::read::tests::good;
use crate::{Field, Format, Request, Response, Scheme, Version};

fn record(nth: u64) -> Record {
    let mut response = Response {
        status: 201,
        headers: vec![Field::new("X-Y", "z")],
        latency_ns: 5_000_000,
        ..Response::default()
    };
    response.set_body(vec![0xff, 0, b'a' + nth as u8]);
    Record {
        time_ns: 1_700_000_000_000_000_000 + nth * 1_000_000,
        connection: 0xabcd + nth % 2,
        session: 1,
        request: Request {
            method: "POST".into(),
            scheme: Scheme::Http,
            authority: "x.example:81".into(),
            target: format!("/a/{nth}?b='c\\d"),
            version: Version::Http11,
            headers: vec![Field::new("Accept", "a/b"), Field::new("X-Q", "it's \"quoted\"")],
            body: format!("line {nth}\nand 'quote' \\").into_bytes(),
        },
        response: Some(response),
        ..Record::default()
    }
}

fn written(format: SinkFormat) -> Vec<u8> {
    let mut out = Vec::new();
    let mut writer = sink(format, &mut out);
    (0..3).for_each(|nth| writer.write(&record(nth)).unwrap());
    writer.finish().unwrap();
    out
}

fn sent(record: &Record) -> (String, String, Vec<Field>, Vec<u8>) {
    let mut headers = record.request.headers.clone();
    headers.retain(|field| !field.is("content-type"));
    (record.request.method.clone(), record.request.url(), headers, record.request.body.clone())
}

#[test]
fn requests_survive_every_format_that_has_them_whole() {
    let formats = [
        (SinkFormat::Har, Format::Har),
        (SinkFormat::Gor, Format::Gor),
        (SinkFormat::Rrpair, Format::RrpairJson),
        (SinkFormat::Curl, Format::Curl),
    ];
    for (sink, format) in formats {
        let records = good(format, written(sink));
        assert_eq!(records.len(), 3, "{format:?}");
        for (nth, read) in (0..).zip(&records) {
            assert_eq!(sent(read), sent(&record(nth)), "{format:?}");
            if format != Format::Curl {
                assert_eq!(read.time_ns, record(nth).time_ns, "{format:?}");
                let (response, expected) = (read.response.as_ref().unwrap(), record(nth).response.unwrap());
                assert_eq!((response.status, &response.body), (201, &expected.body), "{format:?}");
                assert_eq!(response.latency_ns, expected.latency_ns, "{format:?}");
            }
        }
        if matches!(format, Format::Gor | Format::Har) {
            assert!(
                records[0].connection == records[2].connection
                    && records[0].connection != records[1].connection
            );
        }
    }
}

#[test]
fn an_access_log_keeps_what_it_has_a_place_for() {
    let records = good(Format::AccessLog, written(SinkFormat::Log));
    assert_eq!(records[1].request.target, record(1).request.target);
    assert_eq!(records[2].response.as_ref().unwrap().status, 201);
}

#[test]
fn a_k6_script_has_every_request() {
    let script = String::from_utf8(written(SinkFormat::K6)).unwrap();
    assert_eq!(script.matches("http.request(\"POST\"").count(), 3);
    assert!(script.contains("'status is 201'") && script.ends_with("}\n"));
}
