//! Messages on WebSockets and events of streams: outputs count what came, and not only what was opened.

use squall_measure::{PartKind, RunRecord, Series, Share};
use squall_study::Options;

use super::connections::{stream_run, websocket_run};
use super::{fixture, mixed};
use crate::studies::{ComparePage, Group};
use crate::{Summary, csv};

#[test]
fn comparisons_are_of_messages_and_of_events() {
    let metrics = |record: &RunRecord| {
        let group = |name: &str| Group {
            name: name.to_owned(),
            runs: vec![(format!("{name}-1"), record.clone()), (format!("{name}-2"), record.clone())],
        };
        let page = ComparePage::new(&[group("a"), group("b")], Options::default());
        page.pairs[0].findings.iter().map(|line| (line.metric.clone(), line.a[0])).collect::<Vec<_>>()
    };
    let names = |metrics: &[(String, f64)]| metrics.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
    let requests = metrics(&fixture::closed_run());
    assert_eq!(names(&requests), ["rate", "mean", "p50", "p90", "p99", "failed"]);
    let messages = metrics(&websocket_run());
    let message_names = ["messages", "message mean", "message p50", "message p90", "message p99", "failed"];
    assert_eq!(names(&messages), message_names);
    assert!((messages[0].1 - 5_990.0 / 3.0).abs() < 0.01, "{messages:?}");
    assert!((messages[2].1 - 499.5).abs() < 1.0, "latency of messages, not of openings: {messages:?}");
    let events = metrics(&stream_run());
    assert_eq!(
        names(&events),
        [
            "events",
            "first event mean",
            "first event p50",
            "first event p90",
            "first event p99",
            "failed",
            "gap p95"
        ]
    );
    assert!((events[2].1 - 40_000.0).abs() < 100.0, "{events:?}");
}

#[test]
fn the_series_and_each_load_have_what_came() {
    for (record, count, times) in [(websocket_run(), 5_990, 5_990), (stream_run(), 20_000, 1_000)] {
        let record = on_two_machines(record);
        let json = serde_json::to_value(Summary::from(&record)).unwrap();
        for place in [&json["series"][0], &json["parts"][0], &json["shares"][0]] {
            assert_eq!(place["received"], count, "{place}");
            assert_eq!(place["received_latency_us"]["count"], times, "{place}");
        }
        let csv = csv::draw(&Summary::from(&record));
        let (head, first) = (csv.lines().next().unwrap(), csv.lines().nth(1).unwrap());
        let column = head.split(',').position(|name| name == "received").unwrap();
        assert_eq!(first.split(',').nth(column), Some(count.to_string().as_str()), "{csv}");
        let total = csv.lines().last().unwrap();
        assert_eq!(total.split(',').nth(column), Some(count.to_string().as_str()), "{csv}");
    }
    let json = serde_json::to_value(Summary::from(&fixture::closed_run())).unwrap();
    assert_eq!(json["series"][0].get("received"), None, "requests have none");
}

#[test]
fn messages_and_events_are_never_added_up() {
    let mut record = websocket_run();
    record.total.streams = stream_run().total.streams;
    record.parts = vec![mixed::part(PartKind::Machine, "g1", 0.0, record.total.clone())];
    let json = serde_json::to_value(Summary::from(&record)).unwrap();
    assert_eq!((json["series"][0].get("received"), json["parts"][0].get("received")), (None, None));
}

/// The same with parts: its load, and two machines that each have its series.
pub(super) fn on_two_machines(mut record: RunRecord) -> RunRecord {
    let load = record.plan.loads[0].name.clone();
    record.parts = vec![mixed::part(PartKind::Load, &load, 0.0, record.total.clone())];
    for machine in ["g1", "g2"] {
        let series = Series { points: record.series.points.clone(), ..Series::new() };
        let (load, name) = (load.clone(), machine.to_owned());
        record.parts.push(mixed::part(PartKind::Machine, machine, 0.0, record.total.clone()));
        record.shares.push(Share { load, machine: name, at_s: 0.0, series });
    }
    record
}
