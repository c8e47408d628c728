//! Messages on WebSockets and events of streams: outputs count what came, and not only what was opened.

use squall_measure::RunRecord;
use squall_study::Options;

use super::connections::{stream_run, websocket_run};
use super::fixture;
use crate::studies::{ComparePage, Group};

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
