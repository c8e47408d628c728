//! Runs of connections for their own sake, on every face.

use std::time::Duration;

use squall_measure::{
    Cause, ClosedBy, MachineSecond, Phase, RunRecord, RunRecorder, Sessions, Snapshot, Terms,
};
use squall_plan::{
    CloseMode, Endpoint, HandshakeLoad, IdleLoad, IdleProtocol, MessageExchange, MessagePayload, Plan,
    Resumption, ResumptionMode, StreamFormat, StreamLoad, WebSocketLoad, Weighted, What,
};

use super::{check, fixture, terminal_text};
use crate::{Glance, Style, Summary};

#[test]
fn handshakes_are_reported_by_kind_and_by_what_was_agreed_on() {
    let record = handshake_run();
    check("handshake.txt", &terminal_text(&record, Style::FILE));
    let made = Summary::from(&record).totals.handshakes.unwrap();
    assert_eq!((made.count, made.full, made.resumed, made.per_s), (1_000, 250, 750, 333.333));
    assert_eq!(made.negotiated.iter().map(|row| row.count).collect::<Vec<_>>(), [750, 250]);
}

#[test]
fn early_data_is_reported_where_it_was_to_be_sent() {
    let mut record = handshake_run();
    let totals = Summary::from(&record).totals;
    assert_eq!(totals.handshakes.unwrap().early_data_accepted, None);
    let What::Handshake(load) = &mut record.plan.loads[0].what else { panic!("not handshakes") };
    load.resumption.early_data = true;
    let handshakes = &mut record.total.sessions.get_or_insert_default().handshakes;
    (handshakes.early_data_accepted, handshakes.early_data_rejected) = (700, 2);
    let made = Summary::from(&record).totals.handshakes.unwrap();
    assert_eq!((made.early_data_accepted, made.early_data_rejected), (Some(700), Some(2)));
    let text = terminal_text(&record, Style::FILE);
    assert!(text.contains("700 with early data (0-RTT)") && text.contains("2 early data rejected"), "{text}");
}

#[test]
fn kept_connections_are_reported_with_their_ends_and_their_memory() {
    let record = idle_run();
    check("idle.txt", &terminal_text(&record, Style::FILE));
    let kept = Summary::from(&record).totals.idle_connections.unwrap();
    assert_eq!((kept.opened, kept.reopened, kept.closed_by_server, kept.open_max), (1_010, 10, 12, 1_000));
    assert_eq!(kept.memory_bytes_each, Some(256.0));
}

#[test]
fn streams_are_shown_with_their_events_and_their_goodput() {
    let record = stream_run();
    check("stream.txt", &terminal_text(&record, Style::FILE));
    let made = Summary::from(&record).totals.streams.unwrap();
    assert_eq!((made.good, made.judged, made.events_per_s), (Some(950), Some(995), 6_666.667));
}

#[test]
fn a_run_of_websockets_shows_its_messages_while_it_goes_on() {
    let record = websocket_run();
    let mut recorder = RunRecorder::new(fixture::setup(record.plan, record.rows));
    let mut second = record.total;
    second.generator.wall = Duration::from_secs(1);
    recorder.absorb(0, 0, &second);
    recorder.close_second(0, MachineSecond::default());
    recorder.tick(Duration::from_secs(2));
    let glance = Glance::from(&recorder);
    assert_eq!((glance.noun, glance.ok, &glance.rates_per_s[..1]), ("message", 5_990, &[5_990][..]));
    let now = glance.now.unwrap();
    assert_eq!((now.rate_per_s, now.connections_open), (5_990.0, 1_000));
    let p99_ns = now.latency_us.p99.unwrap().0;
    assert!((750_000..850_000).contains(&p99_ns), "{p99_ns}");
    assert_eq!(glance.latency_us.count, 5_990);
}

/// `squall ws` has no `--expect-status`.
#[test]
fn the_hint_on_a_refused_websocket_names_no_flag_of_requests() {
    let mut record = websocket_run();
    record.total.record(&fixture::failed(0, Cause::UnexpectedStatus, Phase::Receiving, 404));
    let text = terminal_text(&record, Style::FILE);
    assert!(
        text.contains("hint: the server opens no WebSocket there") && !text.contains("--expect"),
        "{text}"
    );
}

#[test]
fn websockets_are_shown_with_their_messages_and_closes() {
    let record = websocket_run();
    check("websocket.txt", &terminal_text(&record, Style::FILE));
    let made = Summary::from(&record).totals.websockets.unwrap();
    assert_eq!(made.closes.iter().map(|row| row.count).collect::<Vec<_>>(), [988, 12]);
}

#[test]
fn requests_have_neither() {
    let totals = Summary::from(&fixture::open_run()).totals;
    assert!(totals.handshakes.is_none() && totals.idle_connections.is_none());
}

/// Three seconds of handshakes, three of four resumed.
pub(super) fn handshake_run() -> RunRecord {
    let what = What::Handshake(HandshakeLoad {
        quic: false,
        targets: vec![target(443)],
        server_names: Vec::new(),
        resumption: Resumption { mode: ResumptionMode::Psk, ratio: 0.75, early_data: false },
        request: None,
        hold: Duration::ZERO,
        close: CloseMode::Rst,
    });
    let mut record = of(what, 1_000);
    let handshakes = &mut record.total.sessions.get_or_insert_default().handshakes;
    (handshakes.full, handshakes.resumed, handshakes.without_ticket) = (250, 750, 4);
    (handshakes.bytes_sent, handshakes.bytes_received) = (400_000, 900_000);
    (0..250).for_each(|idx| handshakes.full_time.record(2_000_000 + idx * 1_000));
    (0..750).for_each(|idx| handshakes.resumed_time.record(900_000 + idx * 1_000));
    handshakes.add_terms(&terms(1, 2_048), 250);
    handshakes.add_terms(&terms(0, 0), 750);
    record
}

/// Three seconds of a thousand connections, of which the server closed twelve.
pub(super) fn idle_run() -> RunRecord {
    let what = What::Idle(IdleLoad {
        quic: false,
        targets: vec![target(80)],
        tls: false,
        protocol: IdleProtocol::Http1,
        first_request: None,
        ping: None,
        jitter: Duration::ZERO,
        reopens: true,
        keeps_sessions: false,
        close: CloseMode::Notify,
    });
    let mut record = of(what, 1_010);
    record.total.generator.connections_open = 1_000;
    let Sessions { kept, memory_grown_bytes, .. } = &mut **record.total.sessions.get_or_insert_default();
    *memory_grown_bytes = 256_000;
    (kept.opened, kept.reopened, kept.closed_by_server, kept.reset, kept.closed_by_us) =
        (1_010, 10, 12, 1, 997);
    (1..=13).for_each(|idx| kept.lifetime.record(idx * 100_000_000));
    record
}

/// Three seconds of streams: 1,000 with 20 events each.
pub(super) fn stream_run() -> RunRecord {
    let http = fixture::closed_run().plan.loads[0].what.http().unwrap().clone();
    let what = What::Stream(StreamLoad {
        http,
        format: StreamFormat::Auto,
        done: Some("[DONE]".to_owned()),
        hold: None,
        finishes: false,
        reconnects: false,
        objectives: Some("first<50ms".to_owned()),
    });
    let mut record = of(what, 1_000);
    let streams = record.total.streams.get_or_insert_default();
    (streams.opened, streams.events, streams.event_bytes, streams.comments) = (1_000, 20_000, 640_000, 3);
    (streams.ended_early, streams.closed_by_us, streams.reconnects) = (2, 5, 1);
    (streams.judged, streams.good) = (995, 950);
    (0..1_000).for_each(|idx| streams.first_event.record(30_000_000 + idx * 20_000));
    (0..19_000).for_each(|idx| streams.event_gap.record(5_000_000 + idx * 100));
    let streams = record.total.streams.clone();
    note_received(&mut record, &Snapshot { streams, ..Snapshot::default() });
    record
}

/// Three seconds of a thousand WebSockets with an open model of messages.
pub(super) fn websocket_run() -> RunRecord {
    let http = fixture::closed_run().plan.loads[0].what.http().unwrap().clone();
    let what = What::WebSocket(WebSocketLoad {
        http,
        exchange: MessageExchange::Echo,
        message: MessagePayload { is_binary: false, bytes: b"hello".to_vec(), table: None },
        rate: None,
        count: None,
        pause: Duration::ZERO,
        greeting: None,
        ping: None,
        compress: false,
        subprotocols: Vec::new(),
        jitter: Duration::ZERO,
        reopens: true,
        storm: None,
        close: CloseMode::Notify,
        is_copied: false,
    });
    let mut record = of(what, 1_000);
    record.total.generator.connections_open = 1_000;
    let kept = &mut record.total.sessions.get_or_insert_default().kept;
    (kept.opened, kept.closed_by_server, kept.closed_by_us) = (1_000, 12, 988);
    let made = record.total.websockets.get_or_insert_default();
    (made.messages_asked, made.messages_sent, made.messages_received) = (6_000, 6_000, 5_990);
    (made.bytes_sent, made.bytes_received) = (30_000, 29_950);
    (made.answered, made.mismatched, made.unanswered, made.pings_answered) = (5_990, 1, 10, 7);
    (0..5_990).for_each(|idx| {
        made.latency.record(200_000 + idx * 100);
        made.service.record(150_000 + idx * 100);
    });
    made.count_close(ClosedBy::Server, 1001, "going away", 12);
    made.count_close(ClosedBy::Squall, 1000, "", 988);
    let websockets = record.total.websockets.clone();
    note_received(&mut record, &Snapshot { websockets, ..Snapshot::default() });
    record
}

/// The series has it, too.
fn note_received(record: &mut RunRecord, snapshot: &Snapshot) {
    let mut of_all = squall_measure::SeriesPoint::default();
    of_all.add_received(snapshot);
    if let Some(point) = record.series.points.first_mut() {
        (point.received, point.received_latency) = (of_all.received, of_all.received_latency);
        (point.event_gap, point.disconnects, point.reconnects) =
            (of_all.event_gap, of_all.disconnects, of_all.reconnects);
    }
}

fn of(what: What, count: u64) -> RunRecord {
    let mut record = fixture::closed_run();
    let load = squall_plan::Load { what, ..record.plan.loads[0].clone() };
    record.plan = Plan { name: "shop.test".to_owned(), loads: vec![load], ..record.plan };
    let mut total = Snapshot::new(1, false);
    total.requests_started = count;
    for idx in 0..count {
        total.record_session(&fixture::opened(1_000_000 + idx * 1_000));
    }
    total.generator = record.total.generator.clone();
    total.connections_opened = count;
    RunRecord { total, ..record }
}

fn target(port: u16) -> Weighted<Endpoint> {
    Weighted::once(Endpoint { host: "shop.test".to_owned(), port })
}

fn terms(chain_count: u32, chain_bytes: u32) -> Terms {
    Terms {
        version: "TLS 1.3".to_owned(),
        cipher: "TLS_AES_256_GCM_SHA384".to_owned(),
        group: "X25519".to_owned(),
        alpn: "http/1.1".to_owned(),
        chain_count,
        chain_bytes,
    }
}
