//! Kept connections: opened, parked, pinged, closed by either side, opened again.

use std::time::Duration;

use rustls::ALL_VERSIONS;
use squall_plan::{CloseMode, Ping, PingKind, SessionRequest};

use crate::server::{Server, Then};
use crate::{idle, idle_at, record, sessions, with_idle};

#[test]
fn parked_connections_stay_open_and_end_with_a_goodbye() {
    for keeps_sessions in [false, true] {
        let server = Server::start(ALL_VERSIONS, Then::Serve);
        let plan = idle(&server, 40, Duration::from_millis(800));
        let plan = with_idle(plan, |load| load.keeps_sessions = keeps_sessions);
        let record = record(&plan);
        let kept = &sessions(&record).kept;
        assert_eq!((kept.opened, kept.closed_by_us, kept.lost(), kept.reopened), (40, 40, 0, 0));
        assert_eq!((record.total.ok(), record.total.generator.connections_open), (40, 40));
        assert!(server.wait_for_goodbyes(40), "whole sessions: {keeps_sessions}");
    }
}

#[test]
fn connections_that_the_server_closes_are_opened_again() {
    let lived = Duration::from_millis(100);
    let server = Server::start(ALL_VERSIONS, Then::CloseAfter(lived));
    let record = record(&idle(&server, 10, Duration::from_secs(1)));
    let kept = &sessions(&record).kept;
    assert!(kept.reopened >= 10, "{kept:?}");
    assert_eq!(kept.opened, kept.reopened + 10);
    assert_eq!(kept.opened, kept.lost() + kept.closed_by_us);
    assert_eq!(kept.opened, server.full());
    assert_eq!(kept.lifetime.count(), kept.lost());
    assert!(kept.lifetime.min().unwrap() >= 90_000_000, "{:?}", kept.lifetime.min());
}

#[test]
fn connections_stay_closed_when_that_is_wanted() {
    let server = Server::start(ALL_VERSIONS, Then::CloseAfter(Duration::from_millis(50)));
    let plan = with_idle(idle(&server, 5, Duration::from_secs(1)), |load| load.reopens = false);
    let kept = sessions(&record(&plan)).kept.clone();
    assert_eq!((kept.opened, kept.closed_by_server, kept.reopened), (5, 5, 0));
}

#[test]
fn a_server_that_closes_with_its_answer_is_not_flooded() {
    for (path, status_failures) in [("/close", false), ("/status/500", true)] {
        for reopens in [false, true] {
            let target = squall_server::Target::start(&squall_server::Options::default()).unwrap();
            let mut plan = idle_at(target.address(), 3, Duration::from_secs(1));
            plan = with_idle(plan, |load| {
                load.tls = false;
                load.reopens = reopens;
                load.first_request =
                    Some(SessionRequest { path: path.to_owned(), timeout: Duration::from_secs(10) });
            });
            let record = record(&plan);
            let kept = &sessions(&record).kept;
            let ended = if status_failures { kept.closed_by_us } else { kept.closed_by_server };
            assert_eq!(
                (kept.opened, kept.opened),
                (ended, record.total.ok() + record.total.failed()),
                "{path} {kept:?}"
            );
            assert_eq!(kept.opened, kept.reopened + 3, "{path} {kept:?}");
            // 10, 20, 40 … 640 ms: seven pauses of each are longer than the run.
            assert!(
                if reopens { (4..=24).contains(&kept.opened) } else { kept.opened == 3 },
                "{path} {kept:?}"
            );
        }
    }
}

#[test]
fn pings_are_sent_and_their_answers_timed() {
    let server = Server::start(ALL_VERSIONS, Then::Serve);
    let request = SessionRequest { path: "/".to_owned(), timeout: Duration::from_secs(10) };
    let plan = with_idle(idle(&server, 4, Duration::from_millis(1_100)), |load| {
        load.first_request = Some(request.clone());
        load.ping = Some(ping(PingKind::Request(request.clone())));
        load.close = CloseMode::Fin;
    });
    let record = record(&plan);
    let kept = &sessions(&record).kept;
    assert!(kept.pings >= 4, "{kept:?}");
    assert_eq!(kept.lost(), 0);
    assert!(kept.ping_time.count() + 4 >= kept.pings, "{kept:?}");
    // The last pings may have been cut off by the end.
    assert!((kept.ping_time.count() + 4..=kept.pings + 4).contains(&server.requests()), "{kept:?}");
}

fn ping(kind: PingKind) -> Ping {
    Ping { every: Duration::from_millis(100), kind, timeout: Duration::from_secs(10) }
}

#[test]
fn bytes_are_said_and_nothing_is_awaited() {
    let server = Server::start(ALL_VERSIONS, Then::Serve);
    let plan = with_idle(idle(&server, 4, Duration::from_millis(600)), |load| {
        load.ping = Some(ping(PingKind::Byte));
    });
    let record = record(&plan);
    let kept = &sessions(&record).kept;
    assert!(kept.pings >= 4, "{kept:?}");
    assert_eq!((kept.ping_time.count(), kept.lost(), server.requests()), (0, 0, 0));
    assert!(server.wait_for_goodbyes(4));
}

#[test]
fn a_ramp_opens_all_by_its_end() {
    let server = Server::start(ALL_VERSIONS, Then::Serve);
    let mut plan = idle(&server, 50, Duration::from_millis(1_500));
    let stage = squall_plan::Stage { duration: Duration::from_secs(1), target: 50.0 };
    plan.loads[0].when = squall_plan::When::Closed {
        connections: squall_plan::Profile { from: 0.0, stages: vec![stage] },
        users: None,
    };
    let record = record(&plan);
    assert_eq!(record.total.ok(), 50);
}
