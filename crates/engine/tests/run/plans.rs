//! Short plans for the tests.
#![allow(dead_code, reason = "each test binary uses some of them")]

use std::num::NonZeroU32;
use std::time::Duration;

use squall_engine::{Control, run};
use squall_measure::RunRecord;
use squall_plan::{
    Arrival, Body, ConnectionPolicy, Expect, HttpLoad, HttpVersion, Load, Network, Pacing, Plan, Profile,
    RequestPlan, Stop, TlsPolicy, Weighted, What, When,
};

/// A GET of `url` over one connection, on one thread, once.
pub(crate) fn plan(url: &str) -> Plan {
    let request = RequestPlan {
        weight: NonZeroU32::MIN,
        method: "GET".to_owned(),
        url: url.parse().unwrap(),
        pattern: url.to_owned(),
        headers: Vec::new(),
        body: Body::Empty,
        http: HttpVersion::Http11,
    };
    let http = HttpLoad {
        requests: vec![request],
        user_agents: vec![Weighted { weight: NonZeroU32::MIN, value: "squall-test".to_owned() }],
        follow_count_max: 0,
        expect: Expect::default(),
        timeout: Duration::from_secs(10),
    };
    let load = Load {
        name: "test".to_owned(),
        what: What::Http(http),
        when: When::Closed { connections: Profile::constant(1.0), users: None },
        stop: Stop { duration: None, count: Some(1) },
        connections: ConnectionPolicy::default(),
        network: Network::default(),
        tls: TlsPolicy::default(),
        segment: squall_plan::Segment::WHOLE,
    };
    Plan {
        name: "test".to_owned(),
        loads: vec![load],
        thresholds: Vec::new(),
        warmup: Duration::ZERO,
        threads: Some(NonZeroU32::MIN),
    }
}

/// Changes the plan's only load.
pub(crate) fn with(mut plan: Plan, change: impl FnOnce(&mut Load)) -> Plan {
    change(&mut plan.loads[0]);
    plan
}

/// Changes the HTTP part of the plan's only load.
pub(crate) fn with_http(plan: Plan, change: impl FnOnce(&mut HttpLoad)) -> Plan {
    with(plan, |load| match &mut load.what {
        What::Http(http) => change(http),
        other => panic!("not an http load: {other:?}"),
    })
}

/// `count` requests over `connection_count` connections, closed model.
pub(crate) fn closed(url: &str, connection_count: u32, count: u64) -> Plan {
    with(plan(url), |load| {
        load.when = When::Closed { connections: Profile::constant(f64::from(connection_count)), users: None };
        load.stop = Stop { duration: None, count: Some(count) };
    })
}

/// The same by so many users who share the connections.
pub(crate) fn shared(url: &str, user_count: u32, connection_count: u32, count: u64) -> Plan {
    with(closed(url, connection_count, count), |load| {
        let When::Closed { users, .. } = &mut load.when else { unreachable!() };
        *users = Some(Profile::constant(f64::from(user_count)));
    })
}

/// `rate` requests per second for `duration`, open model.
pub(crate) fn open(url: &str, rate: f64, duration: Duration, pacing: Pacing) -> Plan {
    with(plan(url), |load| {
        load.when = When::Open {
            rate: Profile::constant(rate),
            arrival: Arrival::Constant,
            pacing,
            connection_count_max: NonZeroU32::new(50).unwrap(),
        };
        load.stop = Stop { duration: Some(duration), count: None };
    })
}

/// Runs a plan to its end.
pub(crate) fn record(plan: &Plan) -> RunRecord {
    run(plan, &Control::new(), &mut |_: &squall_measure::RunRecorder| {}).unwrap()
}

/// Asserts that each request ended once: `ok` of them well.
pub(crate) fn assert_counts(record: &RunRecord, ok: u64, failed: u64) {
    let total = &record.total;
    assert_eq!(
        (total.ok(), total.failed(), total.interrupted()),
        (ok, failed, 0),
        "{:?}",
        total.failures.kinds()
    );
    assert_eq!(total.requests_started, ok + failed);
}
