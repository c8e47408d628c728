//! Runs whose every figure is fixed, made the way the engine makes them.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::time::Duration;

use squall_measure::{
    Cause, End, FailureExample, MachineSecond, Outcome, Phase, Phases, Protocol, RowKey, RunRecord,
    RunRecorder, RunSetup, Sample, Series, Snapshot, StoppedBy, ToolFigures, ToolRun,
};
use squall_plan::{
    Arrival, Body, ConnectionPolicy, Expect, HttpLoad, HttpVersion, Load, Network, Pacing, Plan, Profile,
    RequestPlan, Stop, TlsPolicy, Weighted, What, When,
};

const SECOND_COUNT: u32 = 12;

/// Open model, two rows, failures of three kinds, two of three thresholds met.
pub(super) fn open_run() -> RunRecord {
    finish(open_recorder(), StoppedBy::Duration)
}

/// [`open_run`] just before its end.
pub(super) fn open_recorder() -> RunRecorder {
    let rules = ["p(50)<50", "p(99)<20", "errors<1%"];
    let mut recorder = recorder(plan("checkout", open(), &["GET", "POST"]), true, &rules);
    for second_idx in 0..SECOND_COUNT {
        recorder.absorb(second_idx, 0, &busy_second(second_idx));
        recorder.close_second(second_idx, machine(0.4));
        recorder.tick(Duration::from_secs(u64::from(second_idx) + 1));
    }
    recorder
}

/// Closed model, one row, nothing wrong.
pub(super) fn closed_run() -> RunRecord {
    finish(closed_recorder(3), StoppedBy::Duration)
}

/// [`closed_run`] after so many seconds.
pub(crate) fn closed_recorder(second_count: u32) -> RunRecorder {
    let mut recorder = recorder(plan("home page", closed(), &["GET"]), false, &[]);
    for second_idx in 0..second_count {
        let mut snapshot = Snapshot::new(1, false);
        for idx in 0..2_000 {
            snapshot.record(&ok(0, 90_000 + idx * 37));
        }
        add_load(&mut snapshot, 2_000, 0.31);
        snapshot.connections_opened = if second_idx == 0 { 50 } else { 0 };
        recorder.absorb(second_idx, 0, &snapshot);
        recorder.close_second(second_idx, machine(0.3));
        recorder.tick(Duration::from_secs(u64::from(second_idx) + 1));
    }
    recorder
}

/// Nothing listened.
pub(super) fn refused_run() -> RunRecord {
    let mut recorder = recorder(plan("closed port", closed(), &["GET"]), false, &["p(95)<200"]);
    let mut snapshot = Snapshot::new(1, false);
    for _ in 0..50 {
        snapshot.record(&failed(0, Cause::ConnectionRefused, Phase::Connecting, 0));
    }
    snapshot.failures.set_example(
        Cause::ConnectionRefused,
        Phase::Connecting,
        example(2_000_000, "127.0.0.1:9: \x1b[31mrefused"),
    );
    add_load(&mut snapshot, 50, 0.01);
    recorder.absorb(0, 0, &snapshot);
    recorder.close_second(0, machine(0.1));
    let end = End { duration: Duration::from_secs(1), stopped_by: StoppedBy::Unreachable };
    versioned(recorder.finish(end))
}

/// A plan of a foreign tool alone.
pub(super) fn tools_run() -> RunRecord {
    let tool = ToolRun {
        tool: "wrk".to_owned(),
        version: String::new(),
        load: "many".to_owned(),
        machine: "local".to_owned(),
        at_s: 0.0,
        duration: Duration::from_secs(3),
        command: vec!["wrk".to_owned(), "http://shop.test/".to_owned()],
        exit_code: Some(0),
        problem: None,
        figures: ToolFigures {
            requests: Some(54_164),
            rate_per_s: Some(18_054.7),
            latency_us: BTreeMap::from([("mean".to_owned(), 510.0), ("p99".to_owned(), 2_140.0)]),
            ..ToolFigures::default()
        },
        raw_file: "raw-many-local.txt".to_owned(),
    };
    let mut record = closed_run();
    record.plan.loads.clear();
    record.total = Snapshot::new(0, false);
    record.rows.clear();
    record.series = Series::new();
    RunRecord { tools: vec![tool], ..record }
}

/// The generator was too busy in every second.
pub(super) fn overloaded_run() -> RunRecord {
    let mut recorder = recorder(plan("too much", open(), &["GET"]), true, &[]);
    for second_idx in 0..SECOND_COUNT {
        let mut snapshot = Snapshot::new(1, true);
        for idx in 0..400 {
            snapshot.record(&ok(0, 400_000_000 + idx * 1_000_000));
            snapshot.generator.schedule_lag.record(250_000_000);
        }
        add_load(&mut snapshot, 400, 0.995);
        snapshot.arrivals_asked = 1_000;
        recorder.absorb(second_idx, 0, &snapshot);
        recorder.close_second(second_idx, machine(0.99));
    }
    finish(recorder, StoppedBy::Drained)
}

/// A day, with latencies all over the scale and failures in every hour.
pub(super) fn day_run() -> RunRecord {
    let mut recorder = recorder(plan("day", closed(), &["GET"]), false, &[]);
    for second_idx in (0..86_400).step_by(12) {
        let mut snapshot = Snapshot::new(1, false);
        for idx in 0..60_u64 {
            snapshot.record(&ok(0, 50_000 << (idx % 16)));
        }
        snapshot.record(&failed(0, Cause::Timeout, Phase::Waiting, 0));
        add_load(&mut snapshot, 61, 0.3);
        recorder.absorb(second_idx, 0, &snapshot);
        recorder.close_second(second_idx, machine(0.2));
    }
    finish(recorder, StoppedBy::Duration)
}

/// A run whose every name tries to leave its place.
pub(super) fn evil_run() -> RunRecord {
    let evil = "</script><script>alert(1)</script><img src=x onerror=alert(1)>";
    let mut record = refused_run();
    record.plan.name = evil.to_owned();
    record.rows[0].url = evil.to_owned();
    record.environment.insert(evil.to_owned(), evil.to_owned());
    record
}

fn busy_second(second_idx: u32) -> Snapshot {
    let mut snapshot = Snapshot::new(2, true);
    for idx in 0..1_000_u64 {
        // Every hundredth request is slow, and slower as the run goes on.
        let slow_ns = if idx % 100 == 0 { 300_000_000 + u64::from(second_idx) * 60_000_000 } else { 0 };
        snapshot.record(&ok(u32::from(idx % 10 == 0), 4_000_000 + idx * 21_000 + slow_ns));
        snapshot.generator.schedule_lag.record(20_000 + idx * 10);
    }
    if second_idx >= 7 {
        snapshot.record(&failed(1, Cause::Timeout, Phase::Waiting, 0));
        snapshot.record(&failed(0, Cause::UnexpectedStatus, Phase::Receiving, 503));
        let at_ns = u64::from(second_idx) * 1_000_000_000 + 250_000_000;
        snapshot.failures.set_example(Cause::Timeout, Phase::Waiting, example(at_ns, "no answer within 1 s"));
        snapshot.failures.set_example(
            Cause::UnexpectedStatus,
            Phase::Receiving,
            example(at_ns, "status 503"),
        );
    }
    if second_idx == 9 {
        snapshot.record(&failed(1, Cause::ConnectionReset, Phase::Receiving, 200));
        snapshot.record(&Sample { outcome: Outcome::Interrupted, ..ok(0, 0) });
    }
    let request_count = snapshot.settled();
    add_load(&mut snapshot, request_count, 0.34);
    snapshot.arrivals_asked = request_count;
    snapshot.connections_opened = if second_idx == 0 { 40 } else { 1 };
    snapshot
}

pub(super) fn ok(row_idx: u32, latency_ns: u64) -> Sample {
    let phases = Phases {
        blocked_ns: 1_200,
        connecting_ns: latency_ns.is_multiple_of(17).then_some(210_000),
        sending_ns: 5_300,
        waiting_ns: latency_ns - latency_ns / 10,
        receiving_ns: latency_ns / 10,
        ..Phases::default()
    };
    let (bytes_sent, bytes_received) = (120, 4_321);
    Sample { row_idx, status: 200, outcome: Outcome::Ok, latency_ns, phases, bytes_sent, bytes_received }
}

/// A connection that was opened for its own sake, in this time: a fifth of it TCP, the rest TLS.
pub(super) fn opened(latency_ns: u64) -> Sample {
    let phases = Phases {
        connecting_ns: Some(latency_ns / 5),
        tls_handshaking_ns: Some(latency_ns - latency_ns / 5),
        ..Phases::default()
    };
    Sample { status: 0, phases, bytes_sent: 0, bytes_received: 0, ..ok(0, latency_ns) }
}

pub(super) fn failed(row_idx: u32, cause: Cause, phase: Phase, status: u16) -> Sample {
    Sample { status, outcome: Outcome::Failed(cause, phase), ..ok(row_idx, 1_000_000_000) }
}

fn example(at_ns: u64, text: &str) -> FailureExample {
    FailureExample { at_ns, url: "http://shop.test/pay".to_owned(), text: text.to_owned() }
}

pub(super) fn add_load(snapshot: &mut Snapshot, request_count: u64, busy: f64) {
    snapshot.requests_started = request_count;
    snapshot.arrivals_sent = if snapshot.open_model { request_count } else { 0 };
    snapshot.connections_reused = request_count;
    snapshot.wire_bytes_sent = request_count * 120;
    snapshot.wire_bytes_received = request_count * 4_321;
    snapshot.generator.wall = Duration::from_secs(1);
    snapshot.generator.busy = Duration::from_secs_f64(busy);
    snapshot.generator.cpu = Duration::from_secs_f64(busy);
    snapshot.generator.stall_max = Duration::from_micros(180);
    snapshot.generator.connections_open = 40;
}

fn machine(cpu_fraction: f64) -> MachineSecond {
    MachineSecond {
        cpu_fraction,
        descriptors_open: 60,
        descriptors_limit: 20_000,
        ports_used: 40,
        ports_available: 28_232,
        process_rss_bytes: 9_437_184,
        process_cpu: Duration::from_millis(350),
        ..MachineSecond::default()
    }
}

fn recorder(plan: Plan, open_model: bool, rules: &[&str]) -> RunRecorder {
    let What::Http(http) = &plan.loads[0].what else { unreachable!("fixtures make HTTP loads only") };
    let row = |request: &RequestPlan| RowKey {
        load: "http".to_owned(),
        protocol: Protocol::Http11,
        method: request.method.clone(),
        url: request.pattern.clone(),
    };
    let rows = http.requests.iter().map(row).collect();
    RunRecorder::new(RunSetup {
        open_model,
        thresholds: rules.iter().map(|rule| rule.parse().unwrap()).collect(),
        ..setup(plan, rows)
    })
}

/// A closed model without thresholds.
pub(super) fn setup(plan: Plan, rows: Vec<RowKey>) -> RunSetup {
    RunSetup {
        length: plan.loads[0].stop.duration,
        rows,
        plan,
        open_model: false,
        lag_allowed: Duration::from_millis(1),
        thresholds: Vec::new(),
        started_unix_ms: 1_788_099_120_123,
        environment: BTreeMap::from([
            ("os".to_owned(), "Linux 6.1".to_owned()),
            ("cpus".to_owned(), "2".to_owned()),
        ]),
    }
}

fn finish(recorder: RunRecorder, stopped_by: StoppedBy) -> RunRecord {
    let seconds = recorder.series().points.len() as u64;
    versioned(recorder.finish(End { duration: Duration::from_secs(seconds), stopped_by }))
}

/// A release must not change the golden files.
fn versioned(record: RunRecord) -> RunRecord {
    RunRecord { squall_version: "1.2.3".to_owned(), ..record }
}

fn plan(name: &str, when: When, methods: &[&str]) -> Plan {
    let load = Load {
        name: "http".to_owned(),
        what: What::Http(http(methods)),
        when,
        stop: Stop { duration: Some(Duration::from_secs(u64::from(SECOND_COUNT))), count: None },
        connections: ConnectionPolicy::default(),
        network: Network::default(),
        tls: TlsPolicy::default(),
        segment: squall_plan::Segment::WHOLE,
    };
    Plan {
        name: name.to_owned(),
        loads: vec![load],
        thresholds: Vec::new(),
        warmup: Duration::ZERO,
        threads: None,
    }
}

fn http(methods: &[&str]) -> HttpLoad {
    let paths = ["cart", "pay"];
    let request = |(method, path): (&&str, &&str)| RequestPlan {
        weight: NonZeroU32::MIN,
        method: (*method).to_owned(),
        url: format!("http://shop.test/{path}").parse().unwrap(),
        pattern: format!("http://shop.test/{path}"),
        headers: Vec::new(),
        body: Body::Empty,
        http: HttpVersion::Http11,
    };
    HttpLoad {
        requests: methods.iter().zip(&paths).map(request).collect(),
        user_agents: vec![Weighted { weight: NonZeroU32::MIN, value: "squall".to_owned() }],
        follow_count_max: 0,
        expect: Expect::default(),
        timeout: Duration::from_secs(1),
    }
}

fn open() -> When {
    When::Open {
        rate: Profile::constant(1_000.0),
        arrival: Arrival::Constant,
        pacing: Pacing::Balanced,
        connection_count_max: NonZeroU32::MIN,
    }
}

fn closed() -> When {
    When::Closed { connections: Profile::constant(50.0), users: None }
}
