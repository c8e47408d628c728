//! What a user of HTTP may rely on: framing, connections, redirects, bodies, expectations.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::num::NonZeroU32;
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use squall_measure::{Cause, Phase, StoppedBy};
use squall_plan::{Body, ExpectBody, Header, Pacing, Profile, Stage, Stop, When};
use squall_server::{Options, Target, Tls};

use crate::plans::{assert_counts, closed, open, plan, record, shared, with, with_http};

fn target() -> Target {
    Target::start(&Options::default()).unwrap()
}

fn url(target: &Target, path: &str) -> String {
    format!("http://{}{path}", target.address())
}

#[test]
fn every_request_of_a_count_is_made_once() {
    let target = target();
    for threads in [1, 3] {
        let mut plan = closed(&url(&target, "/"), 10, 1_234);
        plan.threads = NonZeroU32::new(threads);
        let record = record(&plan);
        assert_counts(&record, 1_234, 0);
        assert_eq!(record.stopped_by, StoppedBy::Count);
        assert_eq!(record.total.connections_opened, 10);
        assert_eq!(record.total.connections_reused, 1_224);
    }
    assert_eq!(target.stop().requests, 2 * 1_234);
}

#[test]
fn a_new_connection_for_each_request_when_asked() {
    let target = target();
    let plan = with(closed(&url(&target, "/"), 5, 100), |load| {
        load.connections.request_count_max = Some(NonZeroU32::MIN);
    });
    let record = record(&plan);
    assert_counts(&record, 100, 0);
    assert_eq!(record.total.connections_opened, 100);
    assert_eq!(record.total.phases.connecting.count(), 100);
    assert_eq!(target.stop().connections, 100);
}

#[test]
fn a_connection_carries_no_more_requests_than_planned() {
    let target = target();
    for depth in [1, 4] {
        let plan = with(closed(&url(&target, "/"), 1, 100), |load| {
            load.connections.request_count_max = NonZeroU32::new(10);
            load.connections.pipeline_depth = NonZeroU32::new(depth).unwrap();
        });
        let record = record(&plan);
        assert_counts(&record, 100, 0);
        assert_eq!(record.total.connections_opened, 10, "depth {depth}");
    }
}

#[test]
fn a_connection_that_is_old_is_not_filled_again() {
    let target = target();
    for depth in [1, 4] {
        let plan = with(closed(&url(&target, "/delay/2"), 1, 100), |load| {
            load.connections.age_max = Some(Duration::from_millis(20));
            load.connections.pipeline_depth = NonZeroU32::new(depth).unwrap();
        });
        let record = record(&plan);
        assert_counts(&record, 100, 0);
        assert!(record.total.connections_opened >= 3, "depth {depth}: {}", record.total.connections_opened);
    }
}

#[test]
fn pipelined_answers_find_their_requests() {
    let target = target();
    let plan = with(closed(&url(&target, "/bytes/777"), 3, 5_000), |load| {
        load.connections.pipeline_depth = NonZeroU32::new(16).unwrap();
    });
    let plan = with_http(plan, |http| {
        let mut other = http.requests[0].clone();
        other.url = url(&target, "/bytes/20000").parse().unwrap();
        other.pattern = "big".to_owned();
        http.requests.push(other);
        http.expect.body = ExpectBody::SameLength;
    });
    let record = record(&plan);
    assert_counts(&record, 5_000, 0);
    assert_eq!(record.total.rows[0].ok + record.total.rows[1].ok, 5_000);
    assert!(record.total.rows[0].ok.abs_diff(record.total.rows[1].ok) <= 48);
    assert_eq!(target.stop().requests, 5_000);
}

#[test]
fn all_framings_are_read() {
    let target = target();
    for path in [
        "/stream-bytes/100000",
        "/bytes/1000000",
        "/status/204",
        "/gzip",
        "/close",
        "/drip?numbytes=5&duration=20",
    ] {
        let record = record(&closed(&url(&target, path), 4, 40));
        assert_counts(&record, 40, 0);
    }
    let head = with_http(closed(&url(&target, "/bytes/1000000"), 4, 40), |http| {
        http.requests[0].method = "HEAD".to_owned();
    });
    assert_counts(&record(&head), 40, 0);
}

#[test]
fn redirects_are_followed_and_each_hop_is_a_request() {
    let target = target();
    let follow = |path: &str, follow_count_max| {
        record(&with_http(closed(&url(&target, path), 2, 10), |http| {
            http.follow_count_max = follow_count_max;
        }))
    };
    assert_counts(&follow("/redirect/3", 0), 10, 0);
    assert_counts(&follow("/redirect/3", 3), 40, 0);
    assert_counts(&follow("/absolute-redirect/2", 5), 30, 0);
    let cut = follow("/redirect/3", 2);
    assert_eq!(cut.total.failures.count_of(Cause::TooManyRedirects), 10);
    assert_counts(&cut, 20, 10);
    let away = follow("/redirect-to?url=http://elsewhere.example/", 2);
    assert_eq!(away.total.failures.count_of(Cause::BadRedirect), 10);
}

/// A server that answers on one connection: first with choices, then with a redirect, then the rest; reports each request line.
fn choosing_server() -> (String, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let (lines, seen) = mpsc::channel();
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        for answer in ["300 Choices\r\nLocation: /choice", "302 Found\r\nLocation: /found", "200 OK"] {
            let mut request = [0; 1024];
            let count = stream.read(&mut request).unwrap();
            let request = String::from_utf8_lossy(&request[..count]).into_owned();
            let _ = lines.send(request.lines().next().unwrap_or_default().to_owned());
            write!(stream, "HTTP/1.1 {answer}\r\nContent-Length: 0\r\n\r\n").unwrap();
        }
    });
    (url, seen)
}

#[test]
fn a_redirect_leads_where_its_own_answer_says() {
    let (url, seen) = choosing_server();
    let record = record(&with_http(closed(&url, 1, 2), |http| http.follow_count_max = 3));
    assert_counts(&record, 3, 0);
    assert_eq!(seen.iter().collect::<Vec<_>>(), ["GET / HTTP/1.1", "GET / HTTP/1.1", "GET /found HTTP/1.1"]);
}

#[test]
fn a_body_file_is_streamed_over_tcp_and_tls() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("body");
    fs::write(&path, vec![b'x'; 3_000_000]).unwrap();
    let plain = target();
    let tls =
        Target::start(&Options { tls: Some(Tls::SelfMade { names: Vec::new() }), ..Options::default() })
            .unwrap();
    for base in [format!("http://{}", plain.address()), format!("https://{}", tls.address())] {
        let plan = with(closed(&format!("{base}/upload"), 3, 30), |load| load.tls.insecure = true);
        let plan = with_http(plan, |http| {
            http.requests[0].method = "POST".to_owned();
            http.requests[0].body = Body::File { path: path.clone(), bytes: 3_000_000 };
            http.requests[0].headers = vec![Header {
                name: "Content-Type".to_owned(),
                value: "application/octet-stream".to_owned(),
            }];
            http.expect.body = ExpectBody::SameLength;
        });
        let record = record(&plan);
        assert_counts(&record, 30, 0);
        assert!(record.total.bytes_sent() > 90_000_000, "{}", record.total.bytes_sent());
    }
}

#[test]
fn a_body_file_that_shrinks_fails_on_our_side() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("body");
    fs::write(&path, vec![b'x'; 1_000]).unwrap();
    let target = target();
    let plan = with_http(plan(&url(&target, "/upload")), |http| {
        http.requests[0].method = "POST".to_owned();
        http.requests[0].body = Body::File { path: path.clone(), bytes: 5_000 };
    });
    let record = record(&plan);
    assert_counts(&record, 0, 1);
    assert_eq!(record.total.failures.count_of(Cause::BodyFile), 1);
}

#[test]
fn expectations_decide_what_is_a_success() {
    let target = target();
    let status = record(&closed(&url(&target, "/status/503"), 1, 10));
    assert_counts(&status, 0, 10);
    let example = status.total.failures.example(Cause::UnexpectedStatus, Phase::Receiving).unwrap();
    assert_eq!(example.text, "status 503");
    let expected =
        with_http(closed(&url(&target, "/status/503"), 1, 10), |http| http.expect.status = vec![(500, 599)]);
    assert_counts(&record(&expected), 10, 0);
    let length =
        with_http(closed(&url(&target, "/bytes/10"), 1, 10), |http| http.expect.body = ExpectBody::Bytes(11));
    let length = record(&length);
    assert_eq!(length.total.failures.count_of(Cause::UnexpectedLength), 10);
}

/// A server that answers one request on each connection, promises to keep it alive, and closes it when the next request comes.
fn forgetful_server() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut request = [0; 1024];
            let _ = stream.read(&mut request);
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
            let _ = stream.read(&mut request);
        }
    });
    format!("http://{address}/")
}

#[test]
fn a_request_that_died_on_a_reused_connection_is_sent_once_more_when_safe() {
    let get = record(&closed(&forgetful_server(), 1, 10));
    assert_counts(&get, 10, 0);
    assert_eq!(get.total.requests_retried, 9);
    let post =
        with_http(closed(&forgetful_server(), 1, 10), |http| http.requests[0].method = "POST".to_owned());
    let post = record(&post);
    assert_counts(&post, 5, 5);
    assert_eq!(post.total.requests_retried, 0);
    assert!(
        post.total.failures.example(Cause::ConnectionReset, Phase::Waiting).is_some()
            || post.total.failures.example(Cause::ConnectionClosed, Phase::Waiting).is_some()
    );
}

#[test]
fn warm_up_is_made_but_not_measured() {
    let target = target();
    let mut plan = with(closed(&url(&target, "/delay/10"), 2, 60), |_| {});
    plan.warmup = Duration::from_millis(100);
    let record = record(&plan);
    let total = &record.total;
    assert!(total.requests_warmup >= 2 && total.requests_warmup <= 22, "{}", total.requests_warmup);
    assert_eq!((total.requests_started, total.ok()), (60, 60), "the warm-up uses none up");
    assert_eq!(target.stop().requests, 60 + total.requests_warmup);
}

#[test]
fn an_open_model_makes_every_arrival_of_its_schedule() {
    let target = target();
    for pacing in [Pacing::Precise, Pacing::Balanced, Pacing::Cheap] {
        let record = record(&open(&url(&target, "/"), 2_000.0, Duration::from_millis(500), pacing));
        assert_counts(&record, 1_000, 0);
        assert_eq!(record.total.arrivals_asked, 1_000);
        assert!(record.total.generator.schedule_lag.count() > 0);
    }
    assert_eq!(target.stop().requests, 3_000);
}

#[test]
fn arrivals_that_find_no_connection_wait_and_their_wait_is_latency() {
    let target = target();
    let plan =
        with(open(&url(&target, "/delay/50"), 200.0, Duration::from_millis(400), Pacing::Balanced), |load| {
            if let When::Open { connection_count_max, .. } = &mut load.when {
                *connection_count_max = NonZeroU32::new(5).unwrap();
            }
        });
    let record = record(&plan);
    // Five connections serve 100 requests per second at most; the rest of the 80 arrivals never starts.
    assert!(record.total.ok() >= 40 && record.total.ok() <= 50, "{}", record.total.ok());
    assert_eq!(record.total.arrivals_asked, 80);
    let latency = record.total.latency();
    let service = &record.total.phases.duration;
    assert!(latency.max().unwrap() > service.max().unwrap() + 100_000_000);
}

#[test]
fn users_who_share_connections_wait_for_a_free_one() {
    let target = target();
    let url = url(&target, "/delay/5");
    let full = record(&shared(&url, 12, 4, 240));
    assert_counts(&full, 240, 0);
    assert_eq!(full.total.connections_opened, 4);
    // Three users for each connection: once all have begun, each waits for two others, in order.
    let (latency, blocked) = (full.total.latency(), &full.total.phases.blocked);
    assert!(latency.min().unwrap() >= 5_000_000);
    assert!(blocked.quantile(0.5).unwrap() >= 10_000_000, "{:?}", blocked.quantile(0.5));

    let sparse = record(&shared(&url, 2, 4, 40));
    assert_counts(&sparse, 40, 0);
    assert!(sparse.total.connections_opened <= 2, "{}", sparse.total.connections_opened);
    assert_eq!(target.stop().requests, 280);
}

#[test]
fn a_count_is_made_whole_by_fewer_users_than_threads() {
    let target = target();
    let mut plan = shared(&url(&target, "/"), 2, 50, 101);
    plan.threads = NonZeroU32::new(5);
    assert_counts(&record(&plan), 101, 0);
    assert_eq!(target.stop().requests, 101);
}

#[test]
fn users_follow_their_profile_up_and_down() {
    let target = target();
    let stage = |ms, target| Stage { duration: Duration::from_millis(ms), target };
    let plan = with(plan(&url(&target, "/delay/5")), |load| {
        load.when = When::Closed {
            connections: Profile {
                from: 0.0,
                stages: vec![stage(300, 12.0), stage(200, 12.0), stage(300, 1.0)],
            },
            users: None,
        };
        load.stop = Stop { duration: Some(Duration::from_millis(900)), count: None };
    });
    let record = record(&plan);
    assert_eq!(record.total.failed(), 0);
    assert_eq!(record.total.connections_opened, 12);
    assert_eq!(record.total.requests_started, record.total.ok());
    assert_eq!(target.stop().requests, record.total.ok());
}

#[test]
fn a_large_body_needs_no_memory() {
    let target = target();
    let record = record(&closed(&url(&target, "/bytes/1073741824"), 1, 2));
    assert_counts(&record, 2, 0);
    assert!(record.total.bytes_received() > 2 << 30);
}
