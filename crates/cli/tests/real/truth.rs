//! Reported percentiles against a server that knows its own delays.

use std::thread;
use std::time::Duration;

use squall_testkit::quic::QuicPeer;
use squall_testkit::{Authority, BroadcastScript, BroadcastServer, Script, ScriptedServer, Served, Stall};
use squall_wire::ws::handshake;
use tempfile::NamedTempFile;

use crate::squall::{Ended, quiet_machine, start_alone, with_json};

/// A busy machine only ever adds latency, to squall and to the server's answers alike: of each percentile the best attempt is the judge.
const ATTEMPT_COUNT: usize = 10;

/// Before another attempt: what keeps a machine busy, such as its neighbours, comes and goes.
const REST: Duration = Duration::from_secs(2);

const QUANTILES: [(&str, f64); 5] =
    [("p50", 0.50), ("p90", 0.90), ("p95", 0.95), ("p99", 0.99), ("p99_9", 0.999)];

/// What the server answers.
#[derive(Clone, Copy)]
struct Answers {
    body_bytes: usize,
    longest_delay: Duration,
    /// The figure that is judged.
    figure: &'static str,
}

const SMALL: Answers =
    Answers { body_bytes: 6, longest_delay: Duration::from_millis(100), figure: "latency_us" };

/// So many bytes keep an unoptimised build busy, which then sends late: latency has that in it, service time has not.
const LARGE: Answers =
    Answers { body_bytes: 60_000, longest_delay: Duration::from_millis(30), figure: "service_us" };

#[derive(Clone, Copy, PartialEq)]
enum Scheme {
    Plain,
    Tls,
    Quic,
}

/// Percentiles must be within 1 % or 20 us of the truth.
#[track_caller]
fn check(scheme: Scheme, answers: Answers, args: &[&str]) {
    judge(|| deviations(scheme, answers, args));
}

/// A percentile must be true in one of the attempts; `attempt` says which are off, and by how much.
#[track_caller]
fn judge(attempt: impl Fn() -> Vec<(&'static str, String)>) {
    let _quiet = quiet_machine();
    let mut open: Vec<&str> = QUANTILES.iter().map(|(name, _)| *name).collect();
    let mut shown = Vec::new();
    for nth in 0..ATTEMPT_COUNT {
        if nth > 0 {
            thread::sleep(REST);
        }
        let off = attempt();
        open.retain(|name| off.iter().any(|(known, _)| known == name));
        if open.is_empty() {
            return;
        }
        shown.push(off.into_iter().map(|(_, text)| text).collect::<Vec<_>>().join("; "));
    }
    panic!("{} off in every attempt:\n{}", open.join(", "), shown.join("\n"));
}

/// Runs once; says which percentiles are off, and by how much.
fn deviations(scheme: Scheme, answers: Answers, args: &[&str]) -> Vec<(&'static str, String)> {
    let (ended, mut served) = measure(scheme, answers, args);
    let warmup_count = ended.count("/totals/warmup_requests");
    assert_eq!(ended.assert_all_counted() + warmup_count, served.requests.len() as u64);
    served.requests.sort_by_key(|request| request.received);
    served.requests.drain(..warmup_count as usize);
    off(&ended, answers.figure, &served)
}

/// Which percentiles of a figure are not those that were served.
fn off(ended: &Ended, figure: &str, served: &Served) -> Vec<(&'static str, String)> {
    let off = QUANTILES.iter().filter_map(|(name, quantile)| {
        let shown = ended.number(&format!("/{figure}/{name}"));
        let truth = served.delay(*quantile).as_secs_f64() * 1e6;
        let is_off = (shown - truth).abs() > (truth * 0.01).max(20.0);
        is_off.then(|| (*name, format!("{name} reported as {shown:.0} us, true {truth:.0} us")))
    });
    off.collect()
}

fn measure(scheme: Scheme, answers: Answers, args: &[&str]) -> (Ended, Served) {
    let delays = Script::spread(Duration::from_millis(10), answers.longest_delay, 2000);
    if scheme == Scheme::Quic {
        let server = QuicPeer::scripted(Script { delays, ..Script::default() });
        let url = server.url();
        let ended = start_alone(&with_json(&[&[url.as_str(), "--insecure"], args].concat())).wait();
        return (ended, server.finish());
    }
    let authority = Authority::new();
    let ca_file = NamedTempFile::new().expect("a temporary file");
    std::fs::write(&ca_file, authority.pem()).expect("the temporary file is writable");
    let server = ScriptedServer::start(Script {
        delays,
        body_bytes: answers.body_bytes,
        identity: (scheme == Scheme::Tls).then(|| authority.issue_for_loopback()),
        ..Script::default()
    });
    let (url, ca_file) = (server.url(), ca_file.path().display().to_string());
    let ended = start_alone(&with_json(&[&[url.as_str(), "--cacert", &ca_file], args].concat())).wait();
    (ended, server.finish())
}

#[test]
fn percentiles_are_true_in_a_closed_model() {
    check(Scheme::Plain, SMALL, &["-c", "32", "-n", "2000"]);
}

#[test]
fn percentiles_are_true_in_a_closed_model_over_tls() {
    check(Scheme::Tls, SMALL, &["-c", "32", "-n", "2000"]);
}

// In an open model a request that needs a new connection waits for it, and that is part of the latency; the server knows nothing
// of it, so the connections are opened in a warm-up.

#[test]
fn percentiles_are_true_in_an_open_model() {
    check(Scheme::Plain, SMALL, &["-c", "200", "-d", "2500ms", "--warmup", "500ms", "--rate", "800/s"]);
}

#[test]
fn percentiles_are_true_in_a_closed_model_over_http3() {
    check(Scheme::Quic, SMALL, &["-c", "4", "--streams", "8", "-n", "2000"]);
}

#[test]
fn percentiles_are_true_in_an_open_model_over_http3() {
    let args = ["-c", "20", "--streams", "10", "-d", "2500ms", "--warmup", "500ms", "--rate", "800/s"];
    check(Scheme::Quic, SMALL, &args);
}

#[test]
fn percentiles_are_true_in_an_open_model_over_tls() {
    check(Scheme::Tls, SMALL, &["-c", "200", "-d", "2500ms", "--warmup", "500ms", "--rate", "800/s"]);
}

/// Such a body is dropped inside the kernel, and its end is when it came, however late the loop reads it: at this rate that
/// is up to a tick later.
#[test]
fn percentiles_of_large_bodies_are_true_in_an_open_model() {
    check(Scheme::Plain, LARGE, &["-c", "200", "-d", "2s", "--warmup", "500ms", "--rate", "3000/s"]);
}

/// Coordinated omission: a client that waits for the stalled server sends nothing meanwhile, and so hides the stall.
#[test]
fn a_stall_of_one_second_shows_in_the_p99_of_an_open_model() {
    let _quiet = quiet_machine();
    let stall = Stall { after: Duration::from_secs(1), length: Duration::from_secs(1) };
    let delays = vec![Duration::from_millis(1)];
    let server = ScriptedServer::start(Script { delays, stall: Some(stall), ..Script::default() });
    // Four connections: no more than four of 800 requests are with the server while it stalls.
    let args = [&server.url(), "-c", "4", "-d", "4s", "--rate", "200/s"];
    let ended = start_alone(&with_json(&args)).wait();
    ended.assert_all_counted();
    let (p99, service_p99) = (ended.number("/latency_us/p99"), ended.number("/service_us/p99"));
    assert!((900_000.0..1_100_000.0).contains(&p99), "p99 from the intended start is {p99} us");
    assert!(service_p99 < 100_000.0, "p99 of the service time is {service_p99} us");
}

/// Publishes so many messages to `member_count` connections; each delivery is counted, and percentiles are those of the server.
#[track_caller]
fn check_deliveries(member_count: usize, delays: &[Duration], stall: Duration, message_count: u64) {
    judge(|| {
        let accept = handshake::accept;
        let server =
            BroadcastServer::start(BroadcastScript { accept, member_count, delays: delays.to_vec(), stall });
        let (subscribers, messages) = ((member_count - 1).to_string(), message_count.to_string());
        let load = ["--publish", "1", "--subscribe", &subscribers, "-n", &messages, "-r", "200/s"];
        let url = server.url();
        let args = [&["ws", &url, "-d", "60s"], &load[..]].concat();
        let ended = start_alone(&with_json(&args)).wait();
        let (served, published_count) = server.finish();
        let count = |name: &str| ended.count(&format!("/totals/websockets/{name}"));
        let delivered_count = served.requests.len() as u64;
        assert_eq!((count("messages_sent"), published_count), (message_count, message_count), "{ended:#?}");
        assert_eq!(delivered_count, message_count * member_count as u64);
        assert_eq!((count("messages_received"), count("answered")), (delivered_count, delivered_count));
        off(&ended, "totals/websockets/latency_us", &served)
    });
}

#[test]
fn percentiles_from_publish_to_deliver_are_true() {
    let delays = Script::spread(Duration::from_millis(10), Duration::from_millis(100), 400);
    check_deliveries(5, &delays, Duration::ZERO, 400);
}

/// One of 21 subscribers is more than one delivery in a hundred and less than five: p95 knows nothing of it, p99 does.
#[test]
fn a_subscriber_that_the_server_stalls_shows_in_its_percentiles_only() {
    check_deliveries(21, &[Duration::from_millis(100)], Duration::from_millis(500), 200);
}

/// The last messages are under way when the last one has been sent: they are waited for as long as earlier ones took.
#[test]
fn deliveries_that_take_long_are_all_measured() {
    check_deliveries(3, &[Duration::from_millis(1500)], Duration::ZERO, 5);
}
