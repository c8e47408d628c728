//! HTTP/2 on whole runs: streams, bodies, redirects, retirement, time-outs, a mix of versions.

use std::fs;
use std::num::NonZeroU32;
use std::time::Duration;

use squall_measure::{Cause, Phase, Protocol};
use squall_plan::{Body, ExpectBody, HttpVersion, Pacing, Plan};
use squall_server::{Options, Target, Tls};

use crate::plans::{assert_counts, closed, open, record, shared, with, with_http};

fn url(target: &Target, path: &str) -> String {
    format!("http://{}{path}", target.address())
}

fn target() -> Target {
    Target::start(&Options::default()).unwrap()
}

/// The same plan in HTTP/2, with so many streams on each connection.
fn h2(plan: Plan, stream_count: u32) -> Plan {
    let plan = with(plan, |load| load.connections.stream_count = NonZeroU32::new(stream_count).unwrap());
    with_http(plan, |http| http.requests[0].http = HttpVersion::Http2)
}

#[test]
fn every_request_is_made_once_on_as_many_streams_as_asked() {
    let target = target();
    for stream_count in [1, 7, 100] {
        let record = record(&h2(closed(&url(&target, "/"), 3, 2_000), stream_count));
        assert_counts(&record, 2_000, 0);
        assert_eq!((record.rows[0].protocol, record.total.connections_opened), (Protocol::H2c, 3));
        assert_eq!((record.total.http2.connections, record.total.http2.streams), (3, 2_000));
        // Four fields, of which each costs a byte once it was sent.
        assert!(record.total.http2.header_bytes_sent_packed < 2_000 * 8);
    }
    assert_eq!(target.stop().requests, 6_000);
}

#[test]
fn more_users_than_streams_take_turns_on_the_connections() {
    let target = target();
    let record = record(&h2(shared(&url(&target, "/delay/1"), 20, 2, 600), 4));
    assert_counts(&record, 600, 0);
    assert_eq!(record.total.connections_opened, 2);
    assert_eq!(target.stop().requests, 600);
}

#[test]
fn streams_over_tls() {
    let tls = Some(Tls::SelfMade { names: Vec::new() });
    let target = Target::start(&Options { tls, ..Options::default() }).unwrap();
    for (http, protocol) in [
        (HttpVersion::Http2, Protocol::H2),
        (HttpVersion::Auto, Protocol::H2),
        (HttpVersion::Http11, Protocol::Https11),
    ] {
        let plan = h2(closed(&format!("https://{}/bytes/100000", target.address()), 2, 100), 10);
        let plan =
            with(with_http(plan, |load| load.requests[0].http = http), |load| load.tls.insecure = true);
        let record = record(&plan);
        assert_counts(&record, 100, 0);
        let spoken = record.rows.iter().zip(&record.total.rows).find(|(_, row)| row.ok > 0).unwrap().0;
        assert_eq!(spoken.protocol, protocol);
    }
}

#[test]
fn bodies_go_up_and_down_whole() {
    let target = target();
    let file = std::env::temp_dir().join(format!("squall-h2-body-{}", std::process::id()));
    fs::write(&file, vec![b'x'; 300_000]).unwrap();
    for body in [Body::Bytes(vec![b'x'; 300_000]), Body::File { path: file.clone(), bytes: 300_000 }] {
        let plan = with_http(h2(closed(&url(&target, "/upload"), 2, 40), 5), |http| {
            http.requests[0].method = "POST".to_owned();
            http.requests[0].body = body;
        });
        let record = record(&plan);
        assert_counts(&record, 40, 0);
        assert!(record.total.bytes_sent() > 40 * 300_000, "{}", record.total.bytes_sent());
    }
    let down = with_http(h2(closed(&url(&target, "/bytes/300000"), 2, 40), 5), |http| {
        http.expect.body = ExpectBody::Bytes(300_000);
    });
    let down = with(down, |load| {
        (load.connections.window_bytes, load.connections.connection_window_bytes) = (10_000, 65_535);
    });
    assert_counts(&record(&down), 40, 0);
    fs::remove_file(&file).unwrap();
    assert_eq!(target.stop().body_bytes_received, 2 * 40 * 300_000);
}

#[test]
fn redirects_find_their_own_way_among_streams() {
    let target = target();
    let plan =
        with_http(h2(closed(&url(&target, "/redirect/3"), 2, 100), 10), |http| http.follow_count_max = 5);
    let record = record(&plan);
    // Each hop is a request.
    assert_counts(&record, 400, 0);
    assert_eq!(target.stop().requests, 400);
}

#[test]
fn connections_retire_by_age_and_by_count() {
    let target = target();
    let by_count = with(h2(closed(&url(&target, "/"), 2, 200), 5), |load| {
        load.connections.request_count_max = NonZeroU32::new(20);
    });
    let by_count = record(&by_count);
    assert_counts(&by_count, 200, 0);
    // Ten full ones, or one more where each of the two places ends with a part.
    assert!((10..=11).contains(&by_count.total.connections_opened));
    let by_age = with(h2(closed(&url(&target, "/delay/5ms"), 2, 200), 5), |load| {
        load.connections.age_max = Some(Duration::from_millis(20));
    });
    let by_age = record(&by_age);
    assert_counts(&by_age, 200, 0);
    assert!(by_age.total.connections_opened > 2);
}

#[test]
fn an_open_model_fills_connections_before_it_opens_others() {
    let target = target();
    let duration = Duration::from_millis(500);
    let record = record(&h2(open(&url(&target, "/delay/20ms"), 500.0, duration, Pacing::Balanced), 100));
    assert_eq!((record.total.ok(), record.total.failed()), (250, 0), "{:?}", record.total.failures.kinds());
    assert!(record.total.connections_opened <= 2, "{}", record.total.connections_opened);
}

#[test]
fn a_stream_that_takes_too_long_fails_alone() {
    let target = target();
    let plan = with_http(h2(closed(&url(&target, "/hang"), 1, 4), 4), |http| {
        let good =
            squall_plan::RequestPlan { url: url(&target, "/").parse().unwrap(), ..http.requests[0].clone() };
        http.requests.push(good);
        http.timeout = Duration::from_millis(100);
    });
    let record = record(&plan);
    assert_counts(&record, 2, 2);
    let kinds = record.total.failures.kinds();
    assert_eq!((kinds[0].cause, kinds[0].phase), (Cause::Timeout, Phase::Waiting));
    assert_eq!(record.total.connections_opened, 1);
}
