//! Runs of connections for their own sake, on every face.

use std::time::Duration;

use squall_measure::{RunRecord, Sessions, Snapshot, Terms};
use squall_plan::{
    CloseMode, Endpoint, HandshakeLoad, IdleLoad, IdleProtocol, Plan, Resumption, ResumptionMode, Weighted,
    What,
};

use super::{check, fixture, terminal_text};
use crate::{Style, Summary};

#[test]
fn handshakes_are_told_by_kind_and_by_what_was_agreed_on() {
    let record = handshake_run();
    check("handshake.txt", &terminal_text(&record, Style::FILE));
    let made = Summary::from(&record).totals.handshakes.unwrap();
    assert_eq!((made.count, made.full, made.resumed, made.per_s), (1_000, 250, 750, 333.333));
    assert_eq!(made.negotiated.iter().map(|row| row.count).collect::<Vec<_>>(), [750, 250]);
}

#[test]
fn early_data_is_told_where_it_was_to_be_sent() {
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
fn kept_connections_are_told_with_their_ends_and_their_memory() {
    let record = idle_run();
    check("idle.txt", &terminal_text(&record, Style::FILE));
    let kept = Summary::from(&record).totals.idle_connections.unwrap();
    assert_eq!((kept.opened, kept.reopened, kept.closed_by_server, kept.open_max), (1_010, 10, 12, 1_000));
    assert_eq!(kept.memory_bytes_each, Some(256.0));
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
