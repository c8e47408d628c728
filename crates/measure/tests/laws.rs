//! The merge laws, for values and splits of any kind: parts add up to the whole, in any order, and what is written is read back.

#![expect(clippy::unwrap_used, reason = "helpers of tests may unwrap as tests do")]

use std::collections::BTreeMap;
use std::time::Duration;

use proptest::prelude::*;
use squall_measure::*;
use squall_plan::Plan;

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn merged_parts_equal_the_whole(parts in prop::collection::vec(values(), 0..5)) {
        let mut merged = Histogram::new();
        parts.iter().for_each(|part| merged.merge(&histogram(part)));
        prop_assert_eq!(merged, histogram(&parts.concat()));
    }

    #[test]
    fn merged_sketches_equal_the_sketch_of_the_whole(parts in prop::collection::vec(values(), 0..5)) {
        let mut merged = Sketch::new();
        parts.iter().for_each(|part| merged.merge(&Sketch::from(&histogram(part))));
        prop_assert_eq!(merged, Sketch::from(&histogram(&parts.concat())));
    }

    #[test]
    fn quantiles_are_those_of_the_sorted_values(mut values in values(), q in 0.0..=1.0f64) {
        prop_assume!(!values.is_empty());
        values.sort_unstable();
        let rank = ((q * values.len() as f64).ceil() as usize).clamp(1, values.len());
        let truth = values[rank - 1] as f64;
        let histogram = histogram(&values);
        let error = |value: Option<u64>| (value.unwrap() as f64 - truth).abs();
        prop_assert!(error(histogram.quantile(q)) <= truth / 1000.0);
        prop_assert!(error(Sketch::from(&histogram).quantile(q)) <= truth / 125.0);
        prop_assert_eq!(histogram.quantile(0.0), values.first().copied());
        prop_assert_eq!(histogram.quantile(1.0), values.last().copied());
        prop_assert_eq!(histogram.sum_ns(), values.iter().map(|&v| u128::from(v)).sum::<u128>());
    }

    #[test]
    fn histograms_and_sketches_come_back_from_json(values in prop::collection::vec(any::<u64>(), 0..50)) {
        let histogram = histogram(&values);
        prop_assert_eq!(&back(&histogram), &histogram);
        let sketch = Sketch::from(&histogram);
        prop_assert_eq!(&back(&sketch), &sketch);
    }

    #[test]
    fn a_cleared_histogram_is_an_empty_one(values in values()) {
        let mut histogram = histogram(&values);
        histogram.clear();
        prop_assert_eq!(histogram, Histogram::new());
    }

    #[test]
    fn foreign_figures_are_refused_without_panic(
        totals in any::<(u64, u64, u64, u64)>(),
        buckets in prop::collection::vec(prop_oneof![0..2000u64, any::<u64>()], 0..8),
    ) {
        let (count, sum, min, max) = totals;
        let text = format!(
            r#"{{"count":{count},"sum_ns":{sum},"min_ns":{min},"max_ns":{max},"buckets":{buckets:?}}}"#
        );
        if let Ok(histogram) = serde_json::from_str::<Histogram>(&text) {
            prop_assert_eq!(&back(&histogram), &histogram);
        }
        let _ = serde_json::from_str::<Sketch>(&text);
    }

    #[test]
    fn no_rule_panics(
        parts in prop::collection::vec(prop::sample::select(RULE_PARTS), 0..8),
        noise in any::<String>(),
        at in any::<prop::sample::Index>(),
    ) {
        let mut rule = parts.concat();
        let places: Vec<usize> = rule.char_indices().map(|(place, _)| place).chain([rule.len()]).collect();
        rule.insert_str(places[at.index(places.len())], &noise);
        for text in [parts.concat(), rule, noise] {
            match text.parse::<Threshold>() {
                Ok(threshold) => prop_assert_eq!(threshold.text(), text.trim()),
                Err(error) => prop_assert!(error.column <= text.chars().count() + 1, "{error} in {text:?}"),
            }
        }
    }

    #[test]
    fn a_damaged_record_is_read_or_refused_without_panic(
        at in any::<prop::sample::Index>(),
        with in prop::sample::select(&["", "0", "9", "-", "[", "}", ",", "\"", "null", "1e99"][..]),
    ) {
        let mut snapshot = Snapshot::new(ROW_COUNT, true);
        (1..100).for_each(|latency_ns| snapshot.record(&ok(latency_ns * 1000)));
        let mut text = serde_json::to_string(&record(&[((0, 0), snapshot)], 2)).unwrap();
        let place = at.index(text.len());
        text.replace_range(place..=place, with);
        if let Ok(record) = serde_json::from_str::<RunRecord>(&text) {
            let _ = record.total.latency().quantile(0.5);
            let _ = record.series.points.iter().map(|point| point.latency.quantile(0.99)).collect::<Vec<_>>();
        }
    }

    #[test]
    fn a_run_is_the_same_however_its_seconds_arrive(
        events in prop::collection::vec(event(), 1..60),
        order in any::<prop::sample::Index>(),
    ) {
        let mut seconds = by_second_and_shard(&events);
        let in_order = record(&seconds, SECOND_COUNT);
        let middle = order.index(seconds.len());
        seconds.rotate_left(middle);
        seconds.reverse();
        prop_assert_eq!(&record(&seconds, SECOND_COUNT), &in_order);
        prop_assert_eq!(&back(&in_order), &in_order);
    }

    #[test]
    fn figures_do_not_depend_on_the_split(events in prop::collection::vec(event(), 1..60)) {
        let mut whole = Snapshot::new(ROW_COUNT, true);
        events.iter().for_each(|event| event.happen(&mut whole));
        let split = record(&by_second_and_shard(&events), SECOND_COUNT).total;
        // A state at a second's end is no count: the run keeps the most of any second.
        whole.generator.connections_open = split.generator.connections_open;
        prop_assert_eq!(split, whole);
    }

    #[test]
    fn a_series_keeps_every_count_however_long_it_grows(
        events in prop::collection::vec((0..100_000u32, values()), 1..20),
    ) {
        let mut recorder = RunRecorder::new(setup());
        for (second_idx, values) in &events {
            let mut snapshot = Snapshot::new(ROW_COUNT, true);
            values.iter().for_each(|&latency_ns| snapshot.record(&ok(latency_ns)));
            snapshot.record(&Sample { outcome: Outcome::Failed(Cause::Timeout, Phase::Waiting), ..ok(1) });
            recorder.absorb(*second_idx, 0, &snapshot);
        }
        let record = recorder.finish(end());
        let failed = |series: &Series| series.points.iter().flat_map(|point| &point.failures).map(|kind| kind.1).sum::<u64>();
        let waiting = |series: &Series| series.points.iter().map(|point| point.phases.waiting).sum::<Duration>();
        for series in [&record.series, &record.series.coarsened(7)] {
            prop_assert_eq!(failed(series), record.total.failed());
            prop_assert_eq!(waiting(series).as_nanos(), record.total.phases.waiting.sum_ns());
        }
        prop_assert!(record.series.coarsened(7).points.len() <= 7);
        let mut merged = Sketch::new();
        record.series.points.iter().for_each(|point| merged.merge(&point.latency));
        prop_assert!(record.series.points.len() <= squall_plan::limits::SERIES_POINT_COUNT_MAX);
        prop_assert_eq!(&merged, &Sketch::from(record.total.latency().as_ref()));
        prop_assert_eq!(record.series.points.iter().map(|point| point.ok).sum::<u64>(), record.total.ok());
        for (second_idx, values) in &events {
            let point = &record.series.points[(second_idx / record.series.seconds_per_point) as usize];
            prop_assert!(point.ok >= values.len() as u64);
        }
    }
}

#[test]
fn recording_merging_and_clearing_do_not_allocate() {
    let mut second = Snapshot::new(ROW_COUNT, true);
    let mut total = second.clone();
    let failed = Sample { outcome: Outcome::Failed(Cause::Timeout, Phase::Waiting), ..ok(7_000_000) };
    let counted = allocation_counter::measure(|| {
        for latency_ns in (0..1_000_000).step_by(997) {
            second.record(&ok(latency_ns));
            second.record(&failed);
        }
        total.merge(&second);
        second.clear();
    });
    assert_eq!(counted.count_total, 0);
    assert_eq!((total.ok(), total.failed(), second.settled()), (1004, 1004, 0));
}

#[test]
fn a_record_holds_what_was_set_up() {
    let record = RunRecorder::new(setup()).finish(end());
    assert_eq!((record.schema, record.rows.len(), record.total.rows.len()), (RUN_RECORD_SCHEMA, 2, 2));
    assert_eq!((record.plan.name.as_str(), record.started_unix_ms), ("laws", 7));
    assert_eq!(record.thresholds[0].actual, None);
    assert_eq!(record.series.points, []);
}

/// What can happen in a second of a shard.
#[derive(Debug, Clone)]
struct Event {
    second_idx: u32,
    shard_idx: u32,
    sample: Sample,
}

impl Event {
    fn happen(&self, snapshot: &mut Snapshot) {
        snapshot.requests_started += 1;
        snapshot.arrivals_asked += 1;
        snapshot.arrivals_sent += 1;
        snapshot.connections_opened += u64::from(self.sample.phases.connecting_ns.is_some());
        snapshot.wire_bytes_received += self.sample.bytes_received;
        snapshot.record(&self.sample);
        if let Outcome::Failed(cause, phase) = self.sample.outcome {
            let at_ns = self.sample.latency_ns;
            let example = FailureExample { at_ns, url: "/".to_owned(), text: at_ns.to_string() };
            let mut one = Failures::default();
            one.set_example(cause, phase, example);
            snapshot.failures.merge(&one);
        }
        let generator = &mut snapshot.generator;
        generator.busy += Duration::from_nanos(self.sample.phases.sending_ns);
        generator.schedule_lag.record(self.sample.phases.blocked_ns);
        generator.connections_open += 1;
    }
}

fn event() -> impl Strategy<Value = Event> {
    let outcome = prop_oneof![
        3 => Just(Outcome::Ok),
        1 => Just(Outcome::Failed(Cause::Timeout, Phase::Waiting)),
        1 => Just(Outcome::Failed(Cause::ConnectionReset, Phase::Receiving)),
        1 => Just(Outcome::Interrupted),
    ];
    let place = (0..SECOND_COUNT, 0..3u32, 0..ROW_COUNT as u32);
    let times = (value(), 0..1_000_000u64, 0..1_000u64, prop::option::of(0..1_000_000u64));
    (place, outcome, times, 0..700u16, 0..10_000u64).prop_map(|(place, outcome, times, status, bytes)| {
        let (second_idx, shard_idx, row_idx) = place;
        let (latency_ns, blocked_ns, sending_ns, connecting_ns) = times;
        let phases = Phases {
            blocked_ns,
            sending_ns,
            connecting_ns,
            tls_handshaking_ns: connecting_ns.map(|ns| ns * 2),
            waiting_ns: latency_ns,
            receiving_ns: 1,
        };
        let sample =
            Sample { row_idx, status, outcome, latency_ns, phases, bytes_sent: 9, bytes_received: bytes };
        Event { second_idx, shard_idx, sample }
    })
}

fn by_second_and_shard(events: &[Event]) -> Vec<((u32, u32), Snapshot)> {
    let mut seconds = BTreeMap::new();
    for event in events {
        let place = (event.second_idx, event.shard_idx);
        let snapshot = seconds.entry(place).or_insert_with(|| Snapshot::new(ROW_COUNT, true));
        event.happen(snapshot);
    }
    seconds.into_iter().collect()
}

fn record(seconds: &[((u32, u32), Snapshot)], second_count: u32) -> RunRecord {
    let mut recorder = RunRecorder::new(setup());
    for ((second_idx, shard_idx), snapshot) in seconds {
        recorder.absorb(*second_idx, *shard_idx, snapshot);
    }
    for second_idx in 0..second_count {
        recorder.close_second(second_idx, MachineSecond { cpu_fraction: 0.5, ..MachineSecond::default() });
    }
    recorder.finish(end())
}

fn setup() -> RunSetup {
    let key = |url: &str| RowKey {
        load: "main".to_owned(),
        protocol: Protocol::Http11,
        method: "GET".to_owned(),
        url: url.to_owned(),
    };
    RunSetup {
        plan: Plan {
            name: "laws".to_owned(),
            loads: Vec::new(),
            thresholds: vec!["p(99)<1s".to_owned()],
            warmup: Duration::ZERO,
            threads: None,
        },
        rows: vec![key("/a"), key("/b")],
        open_model: true,
        lag_allowed: Duration::from_micros(500),
        thresholds: vec!["p(99)<1s".parse().unwrap()],
        length: None,
        started_unix_ms: 7,
        environment: BTreeMap::from([("os".to_owned(), "Linux".to_owned())]),
    }
}

fn end() -> End {
    End { duration: Duration::from_secs(u64::from(SECOND_COUNT)), stopped_by: StoppedBy::Duration }
}

fn ok(latency_ns: u64) -> Sample {
    let phases = Phases { waiting_ns: latency_ns, ..Phases::default() };
    Sample {
        row_idx: 0,
        status: 200,
        outcome: Outcome::Ok,
        latency_ns,
        phases,
        bytes_sent: 0,
        bytes_received: 0,
    }
}

fn histogram(values: &[u64]) -> Histogram {
    let mut histogram = Histogram::new();
    values.iter().for_each(|&value| histogram.record(value));
    histogram
}

fn back<T: serde::Serialize + serde::de::DeserializeOwned>(value: &T) -> T {
    serde_json::from_str(&serde_json::to_string(value).unwrap()).unwrap()
}

/// All magnitudes that have a bucket of their own are equally likely.
fn value() -> impl Strategy<Value = u64> {
    (0..42u32, any::<u64>()).prop_map(|(octave, bits)| (1 << octave) | (bits & ((1 << octave) - 1)))
}

fn values() -> impl Strategy<Value = Vec<u64>> {
    prop::collection::vec(value(), 0..40)
}

const SECOND_COUNT: u32 = 4;

const ROW_COUNT: usize = 2;

const RULE_PARTS: &[&str] = &[
    "p(",
    "95",
    ")",
    "p99.9",
    "avg",
    "med",
    "rate",
    "count",
    "latency",
    "errors",
    "requests",
    "http_req_failed",
    ":",
    " ",
    "<",
    "<=",
    "===",
    "!=",
    "1",
    "0.5",
    "%",
    "ms",
    "µs",
    "/s",
    "k",
    "{",
    "}",
    "=",
    "!",
];
