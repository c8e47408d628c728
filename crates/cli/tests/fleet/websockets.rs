//! WebSockets of a fleet: what one machine publishes and others receive, on one clock.

use std::time::Duration;

use serde_json::{Value, from_value};
use squall_measure::Snapshot;
use squall_testkit::{BroadcastScript, BroadcastServer};
use squall_wire::ws::handshake;

use crate::squall::{Place, assert_code};

#[test]
fn deliveries_between_machines_are_measured_on_one_clock() {
    let place = Place::new();
    let delay = Duration::from_millis(100);
    let accept = handshake::accept;
    let script =
        BroadcastScript { accept, member_count: MEMBER_COUNT, delays: vec![delay], stall: Duration::ZERO };
    let server = BroadcastServer::start(script);
    let agent = |offset: &str| {
        format!("{{ command: [faketime, -f, '{offset}', {:?}, agent] }}", env!("CARGO_BIN_EXE_squall"))
    };
    // Connections are dealt in turn: `a` has the only publisher.
    let plan = format!(
        "machines: {{ a: local, early: {}, late: {} }}\n\
         loads: [{{ ws: '{}', publish: 1, subscribe: {}, messages: 50, rate: 50/s, duration: 30s }}]\n",
        agent("+20s"),
        agent("-20s"),
        server.url(),
        MEMBER_COUNT - 1,
    );
    let (record, output) = place.run(&plan, &[]);
    assert_code(&record, &output, 0);
    let (served, published_count) = server.finish();
    assert_eq!((served.requests.len(), published_count), (MEMBER_COUNT * 50, 50));
    assert_eq!(figures(&record["total"]), (50, 50 * MEMBER_COUNT as u64, 50 * MEMBER_COUNT as u64));
    let machines: Vec<&Value> =
        record["parts"].as_array().unwrap().iter().filter(|part| part["kind"] == "machine").collect();
    let counts: Vec<_> = machines.iter().map(|part| figures(&part["total"])).collect();
    assert_eq!(counts, [(50, 150, 150), (0, 150, 150), (0, 150, 150)], "{record:#}");
    for part in machines {
        let total = from_value::<Snapshot>(part["total"].clone()).unwrap();
        let p50 = Duration::from_nanos(total.websockets.unwrap().latency.quantile(0.5).unwrap());
        println!("machine {}: p50 {p50:?} of {:?}", part["name"], served.delay(0.5));
        // A clock that is not taken into account is off by 20 s.
        assert!((delay / 2..delay * 3).contains(&p50), "{}: {p50:?}", part["name"]);
    }
}

/// Messages sent and received, and deliveries that were measured.
fn figures(total: &Value) -> (u64, u64, u64) {
    let count = |name: &str| total["websockets"][name].as_u64().unwrap();
    (count("messages_sent"), count("messages_received"), count("answered"))
}

/// Connections, which the three machines share equally.
const MEMBER_COUNT: usize = 9;
