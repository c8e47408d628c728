//! A run of two steps on two machines: requests alone, then requests, handshakes and idle connections at once.

use std::time::Duration;

use squall_measure::{
    Cause, Event, EventKind, Part, PartKind, Phase, Protocol, RowKey, RunRecord, RunRecorder, ShareRecorder,
    Snapshot,
};
use squall_plan::{Load, Plan};

use super::{connections, fixture};

/// Seconds of each step.
const SECOND_COUNT: u32 = 3;

/// A load: its name, its row, when it begins, and how many it makes well and badly in a second on each machine.
const LOADS: [(&str, u32, u64, u64); 4] =
    [("alone", 0, 50, 0), ("with handshakes", 5, 50, 0), ("handshakes", 5, 20, 1), ("kept", 5, 0, 0)];

pub(crate) fn run() -> RunRecord {
    run_on(2)
}

/// The same with so many machines.
pub(crate) fn run_on(machine_count: usize) -> RunRecord {
    let mut shares = ShareRecorder::new(machine_count * LOADS.len());
    let mut record = RunRecord { plan: plan(), ..fixture::closed_run() };
    record.duration = Duration::from_secs(6);
    record.rows = LOADS.iter().map(|(name, ..)| row(name)).collect();
    record.total = Snapshot::new(LOADS.len(), false);
    let mut loads = vec![Snapshot::new(LOADS.len(), false); LOADS.len()];
    let mut machines = vec![Snapshot::new(LOADS.len(), false); machine_count];
    for (load_idx, (load, at_s, ..)) in LOADS.iter().enumerate() {
        for (machine_idx, machine) in machines.iter_mut().enumerate() {
            let key = (machine_idx, load_idx);
            shares.begin(key, (&machine_name(machine_idx), load), f64::from(*at_s));
            for second_idx in 0..SECOND_COUNT {
                let second = second(load_idx, machine_idx, second_idx);
                shares.absorb(key, second_idx, &second);
                shares.close(key, second_idx);
                for total in [&mut record.total, &mut loads[load_idx], &mut *machine] {
                    total.merge(&second);
                }
            }
        }
    }
    record.shares = shares.shares().cloned().collect();
    record.events = [("step one", 0.0), ("requests, handshakes and idle connections at once", 5.0)]
        .map(|(label, at_s)| Event { at_s, label: label.to_owned(), kind: EventKind::Step })
        .to_vec();
    let step = |event: &Event| part(PartKind::Step, &event.label, event.at_s, Snapshot::new(4, false));
    record.parts = record.events.iter().map(step).collect();
    let named = LOADS.iter().zip(loads);
    record
        .parts
        .extend(named.map(|((name, at_s, ..), total)| part(PartKind::Load, name, f64::from(*at_s), total)));
    let named = machines.into_iter().enumerate();
    record.parts.extend(named.map(|(idx, total)| part(PartKind::Machine, &machine_name(idx), 0.0, total)));
    record
}

/// The second step of that run while it goes on: so many of its seconds are over.
pub(crate) fn recorder(second_count: u32) -> RunRecorder {
    let rows = LOADS.iter().map(|(name, ..)| row(name)).collect();
    let mut recorder = RunRecorder::new(fixture::setup(plan(), rows));
    *recorder.shares_mut() = ShareRecorder::new(LOADS.len());
    for (load_idx, (load, ..)) in LOADS.iter().enumerate().skip(1) {
        recorder.shares_mut().begin((0, load_idx), ("g1", load), 0.0);
        for second_idx in 0..second_count {
            let second = second(load_idx, 0, second_idx);
            recorder.absorb(second_idx, load_idx as u32, &second);
            recorder.shares_mut().absorb((0, load_idx), second_idx, &second);
            recorder.shares_mut().close((0, load_idx), second_idx);
        }
    }
    recorder.tick(Duration::from_secs(second_count.into()));
    recorder
}

fn machine_name(idx: usize) -> String {
    format!("g{}", idx + 1)
}

/// The second machine is slower than the first. Idle connections are all opened in the first second.
fn second(load_idx: usize, machine_idx: usize, second_idx: u32) -> Snapshot {
    let (_, _, ok, failed) = LOADS[load_idx];
    let ok = if load_idx == 3 && second_idx == 0 { 25 } else { ok };
    let mut snapshot = Snapshot::new(LOADS.len(), false);
    let own = |sample| squall_measure::Sample { row_idx: load_idx as u32, ..sample };
    let slow_ns = 1_000_000 * (machine_idx as u64 + 1);
    for idx in 0..ok {
        match load_idx {
            0 | 1 => snapshot.record(&own(fixture::ok(0, slow_ns + idx * 1_000))),
            _ => snapshot.record_session(&own(fixture::opened(slow_ns + idx * 1_000))),
        }
    }
    for _ in 0..failed {
        snapshot.record_session(&own(fixture::failed(0, Cause::ConnectionReset, Phase::TlsHandshaking, 0)));
    }
    fixture::add_load(&mut snapshot, ok + failed, 0.2);
    snapshot
}

pub(super) fn part(kind: PartKind, name: &str, at_s: f64, total: Snapshot) -> Part {
    Part {
        kind,
        name: name.to_owned(),
        at_s,
        duration: Duration::from_secs(SECOND_COUNT.into()),
        problem: None,
        verdict: fixture::closed_run().verdict,
        thresholds: Vec::new(),
        facts: std::collections::BTreeMap::new(),
        total,
    }
}

fn row(load: &str) -> RowKey {
    let (method, url) = ("GET".to_owned(), "https://shop.test/".to_owned());
    RowKey { load: load.to_owned(), protocol: Protocol::Http11, method, url }
}

fn plan() -> Plan {
    let whats = [
        fixture::closed_run().plan,
        fixture::closed_run().plan,
        connections::handshake_run().plan,
        connections::idle_run().plan,
    ];
    let load = |(plan, (name, ..)): (Plan, &(&str, u32, u64, u64))| {
        let load = plan.loads.into_iter().next().expect("fixtures have one load");
        Load { name: (*name).to_owned(), ..load }
    };
    let loads = whats.into_iter().zip(&LOADS).map(load).collect();
    Plan { name: "mixed".to_owned(), loads, ..fixture::closed_run().plan }
}
