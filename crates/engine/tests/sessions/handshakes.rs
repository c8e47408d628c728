//! Handshakes: counted as the server counts them, by kind, with their terms and their failures.

use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ProducesTickets, StoresServerSessions};
use rustls::version::{TLS12, TLS13};
use rustls::{ALL_VERSIONS, ServerConfig, SupportedProtocolVersion};
use squall_measure::{Cause, Phase, StoppedBy};
use squall_plan::{CloseMode, Profile, ResumptionMode, SessionRequest, Stop, TlsVersions, Weighted, When};
use squall_testkit::Authority;

use crate::server::{Server, Then};
use crate::{handshakes, record, resumption, sessions, with_handshake};

#[test]
fn every_full_handshake_is_the_servers_too() {
    for (versions, name) in [(&[&TLS12][..], "TLS 1.2"), (&[&TLS13], "TLS 1.3")] {
        let server = Server::start(versions, Then::Serve);
        let record = record(&handshakes(&server, 8, 200));
        assert!(server.wait_for_handshakes(200));
        assert_eq!((record.total.ok(), record.total.failed(), record.stopped_by), (200, 0, StoppedBy::Count));
        let made = &sessions(&record).handshakes;
        assert_eq!((made.full, made.resumed, server.full(), server.resumed()), (200, 0, 200, 0), "{name}");
        let terms = &made.negotiated[0].terms;
        assert_eq!((made.negotiated.len(), terms.version.as_str(), terms.chain_count), (1, name, 1));
        assert_eq!(record.total.phases.tls_handshaking.count(), 200);
        assert_eq!(record.total.phases.connecting.count(), 200);
        assert_eq!((made.bytes_sent, made.bytes_received), handshake_bytes(&record, name));
    }
}

/// In TLS 1.2 nothing else crosses the wire; in TLS 1.3 tickets may come before we leave.
fn handshake_bytes(record: &squall_measure::RunRecord, version: &str) -> (u64, u64) {
    let made = &sessions(record).handshakes;
    match version {
        "TLS 1.2" => (record.total.wire_bytes_sent, record.total.wire_bytes_received),
        _ => (record.total.wire_bytes_sent, made.bytes_received),
    }
}

#[test]
fn what_is_resumed_is_what_the_server_resumed() {
    let cases: [(&[&'static SupportedProtocolVersion], ResumptionMode); 4] = [
        (&[&TLS12], ResumptionMode::Id),
        (&[&TLS12], ResumptionMode::Ticket),
        (&[&TLS13], ResumptionMode::Ticket),
        (&[&TLS13], ResumptionMode::Psk),
    ];
    for (versions, mode) in cases {
        let server = Server::start(versions, Then::Serve);
        let plan =
            with_handshake(handshakes(&server, 4, 100), |load| load.resumption = resumption(mode, 1.0));
        let record = record(&plan);
        assert!(server.wait_for_handshakes(100));
        let made = &sessions(&record).handshakes;
        assert_eq!((made.full, made.resumed), (server.full(), server.resumed()), "{mode:?} {versions:?}");
        assert_eq!(made.count(), 100);
        assert!(made.resumed >= 90, "{mode:?} {versions:?}: {} resumed", made.resumed);
        assert_eq!(made.without_ticket, made.full, "{mode:?}: only the first had nothing to show");
    }
}

#[test]
fn early_data_that_the_server_took_is_what_it_got() {
    let server = Server::with(&[&TLS13], Then::Serve, |config| {
        // Early data needs sessions that the server remembers, because each may be used only once.
        config.ticketer = no_tickets();
        config.max_early_data_size = 4096;
    });
    let record = record(&with_handshake(handshakes(&server, 4, 100), with_early_data));
    let made = &sessions(&record).handshakes;
    assert_eq!((record.total.ok(), server.requests()), (100, 100));
    assert_eq!((made.full, made.resumed), (server.full(), server.resumed()));
    assert_eq!((made.early_data_accepted, made.early_data_rejected), (server.early_requests(), 0));
    assert!(made.early_data_accepted >= 50, "{}", made.early_data_accepted);
    assert_eq!(record.total.phases.waiting.count(), 100);
}

#[test]
fn early_data_that_the_server_dropped_is_said_again() {
    let server = Server::with(&[&TLS13], Then::Serve, |config| {
        config.ticketer = no_tickets();
        config.max_early_data_size = 4096;
        config.session_storage = Arc::new(Forgetful);
    });
    let record = record(&with_handshake(handshakes(&server, 4, 100), with_early_data));
    let made = &sessions(&record).handshakes;
    assert_eq!((record.total.ok(), server.requests(), server.early_requests()), (100, 100, 0));
    assert_eq!((made.full, made.resumed, made.early_data_accepted), (100, 0, 0));
    assert_eq!(made.early_data_rejected + made.without_ticket, 100);
}

#[test]
fn a_ticket_without_early_data_resumes_without_it() {
    let server = Server::start(&[&TLS13], Then::Serve);
    let record = record(&with_handshake(handshakes(&server, 4, 100), with_early_data));
    let made = &sessions(&record).handshakes;
    assert_eq!((record.total.ok(), made.resumed), (100, server.resumed()));
    assert_eq!((made.early_data_accepted, made.early_data_rejected), (0, 0));
}

fn with_early_data(load: &mut squall_plan::HandshakeLoad) {
    load.resumption = squall_plan::Resumption { early_data: true, ..resumption(ResumptionMode::Psk, 1.0) };
    load.request = Some(SessionRequest { path: "/".to_owned(), timeout: Duration::from_secs(10) });
}

fn no_tickets() -> Arc<dyn ProducesTickets> {
    Authority::new().issue_for_loopback().server_config(&[&TLS13]).ticketer
}

/// Gives sessions out and knows none of them again.
#[derive(Debug)]
struct Forgetful;

impl StoresServerSessions for Forgetful {
    fn put(&self, _key: Vec<u8>, _value: Vec<u8>) -> bool {
        true
    }

    fn get(&self, _key: &[u8]) -> Option<Vec<u8>> {
        None
    }

    fn take(&self, _key: &[u8]) -> Option<Vec<u8>> {
        None
    }

    fn can_cache(&self) -> bool {
        true
    }
}

#[test]
fn a_part_resumes_when_a_part_is_asked_for() {
    let server = Server::start(&[&TLS13], Then::Serve);
    let plan = with_handshake(handshakes(&server, 2, 200), |load| {
        load.resumption = resumption(ResumptionMode::Psk, 0.25);
    });
    let record = record(&plan);
    assert!(server.wait_for_handshakes(200));
    let made = &sessions(&record).handshakes;
    assert_eq!((made.full, made.resumed), (server.full(), server.resumed()));
    assert_eq!(made.resumed + made.without_ticket, 50);
}

#[test]
fn a_mode_that_the_version_lacks_gives_full_handshakes() {
    for (versions, mode) in [(&TLS12, ResumptionMode::Psk), (&TLS13, ResumptionMode::Id)] {
        let server = Server::start(&[versions], Then::Serve);
        let plan = with_handshake(handshakes(&server, 2, 30), |load| {
            load.resumption = resumption(mode, if mode == ResumptionMode::Id { 0.0 } else { 1.0 });
        });
        let record = record(&plan);
        assert_eq!((sessions(&record).handshakes.full, server.resumed()), (30, 0), "{mode:?}");
    }
}

#[test]
fn a_server_without_tickets_does_not_hold_the_load_up() {
    let server = Server::with(&[&TLS13], Then::Serve, |config| config.send_tls13_tickets = 0);
    let plan = with_handshake(handshakes(&server, 4, 100), |load| {
        load.resumption = resumption(ResumptionMode::Psk, 1.0);
    });
    let made = sessions(&record(&plan)).handshakes.clone();
    assert_eq!((made.full, made.resumed, made.without_ticket), (100, 0, 100));
}

#[test]
fn another_key_exchange_group_costs_a_retry_that_is_reported() {
    let server = Server::with(&[&TLS13], Then::Serve, |config| *config = only_secp384r1());
    let made = sessions(&record(&handshakes(&server, 2, 20))).handshakes.clone();
    assert_eq!((made.full, made.hello_retries), (20, 20));
    assert_eq!(made.negotiated[0].terms.group, "secp384r1");
}

fn only_secp384r1() -> ServerConfig {
    let mut provider = rustls::crypto::aws_lc_rs::default_provider();
    provider.kx_groups = vec![rustls::crypto::aws_lc_rs::kx_group::SECP384R1];
    let identity = Authority::new().issue_for_loopback();
    let chain = vec![CertificateDer::from_pem_slice(identity.cert_pem.as_bytes()).unwrap()];
    ServerConfig::builder_with_provider(provider.into())
        .with_protocol_versions(&[&TLS13])
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, PrivateKeyDer::from_pem_slice(identity.key_pem.as_bytes()).unwrap())
        .unwrap()
}

#[test]
fn each_makes_its_request_and_says_goodbye() {
    let server = Server::start(ALL_VERSIONS, Then::Serve);
    let plan = with_handshake(handshakes(&server, 4, 50), |load| {
        load.request = Some(SessionRequest { path: "/".to_owned(), timeout: Duration::from_secs(10) });
        load.close = CloseMode::Notify;
    });
    let record = record(&plan);
    assert_eq!((record.total.ok(), server.requests()), (50, 50));
    assert_eq!(record.total.status().count(200), 50);
    assert_eq!(record.total.phases.waiting.count(), 50);
    assert!(server.wait_for_goodbyes(50));
}

#[test]
fn the_schedule_starts_exactly_what_it_asks() {
    let server = Server::start(ALL_VERSIONS, Then::Serve);
    let mut plan = handshakes(&server, 1, 1);
    plan.loads[0].stop = Stop { duration: Some(Duration::from_secs(1)), count: None };
    plan.loads[0].when = When::Open {
        rate: Profile::constant(100.0),
        arrival: squall_plan::Arrival::Constant,
        pacing: squall_plan::Pacing::Balanced,
        connection_count_max: std::num::NonZeroU32::new(50).unwrap(),
    };
    let plan = with_handshake(plan, |load| load.hold = Duration::from_millis(50));
    let record = record(&plan);
    assert_eq!((record.total.arrivals_asked, record.total.ok(), server.full()), (100, 100, 100));
    assert_eq!(record.total.service().unwrap().count(), 100);
    assert!(record.total.generator.connections_open <= 50);
}

#[test]
fn a_server_that_cannot_keep_up_shows_as_backlog_and_not_as_its_time() {
    let server = Server::start(ALL_VERSIONS, Then::OneByOne(Duration::from_millis(20)));
    let mut plan = handshakes(&server, 1, 1);
    plan.loads[0].stop = Stop { duration: Some(Duration::from_secs(2)), count: None };
    plan.loads[0].when = When::Open {
        rate: Profile::constant(200.0),
        arrival: squall_plan::Arrival::Constant,
        pacing: squall_plan::Pacing::Balanced,
        connection_count_max: std::num::NonZeroU32::MIN,
    };
    let record = record(&plan);
    let total = &record.total;
    // The server makes 50 a second at the most, so at least three of four wait at the end.
    assert_eq!(total.arrivals_asked, 400);
    assert!((1..=102).contains(&total.requests_started), "{}", total.requests_started);
    assert_eq!((total.ok(), total.ok()), (total.requests_started, server.full()));
    assert!(total.generator.arrivals_waiting >= 100, "{}", total.generator.arrivals_waiting);
    // From one to the next the wait grows by 15 ms and more, while each handshake takes what it takes.
    let service = total.service().unwrap();
    assert!(total.latency().quantile(0.5) > service.quantile(0.5));
    assert!(total.phases.blocked.max() > service.min());
}

#[test]
fn names_take_turns_by_their_weights() {
    let server = Server::start(ALL_VERSIONS, Then::Serve);
    let name = |weight, name: &str| Weighted {
        weight: std::num::NonZeroU32::new(weight).unwrap(),
        value: name.to_owned(),
    };
    let plan = with_handshake(handshakes(&server, 2, 40), |load| {
        load.server_names = vec![name(3, "a.example"), name(1, "b.example")];
    });
    let record = record(&plan);
    let counts: Vec<(&str, u64)> = record
        .rows
        .iter()
        .zip(&record.total.rows)
        .map(|(key, row)| (key.url.rsplit(' ').next().unwrap(), row.ok))
        .collect();
    assert_eq!(counts, [("a.example", 30), ("b.example", 10)]);
}

#[test]
fn a_version_that_the_server_lacks_fails_each_time_and_is_tried_again() {
    let server = Server::start(&[&TLS13], Then::Serve);
    let mut plan = handshakes(&server, 2, 30);
    plan.loads[0].tls.versions = TlsVersions::Tls12;
    let record = record(&plan);
    let kinds = record.total.failures.kinds();
    assert_eq!((record.total.failed(), kinds.len()), (30, 1), "{kinds:?}");
    assert_eq!((kinds[0].cause, kinds[0].phase), (Cause::TlsAlert, Phase::TlsHandshaking));
}
