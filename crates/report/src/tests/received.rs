//! Messages on WebSockets and events of streams: outputs count what came, and not only what was opened.

use std::time::Duration;

use squall_measure::{
    MachineSecond, PartKind, Row, RowKey, RunRecord, RunRecorder, RunSetup, Series, Share, ShareRecorder,
    Snapshot,
};
use squall_plan::{Load, Plan};
use squall_study::Options;

use super::connections::{stream_run, websocket_run};
use super::{fixture, mixed};
use crate::studies::{ComparePage, Group};
use crate::{Glance, Progress, ProgressMode, Style, Summary, csv};

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

#[test]
fn a_run_of_streams_shows_its_events_while_it_goes_on() {
    let record = stream_run();
    let mut second = record.total;
    second.requests_started += 12;
    let recorder = after_a_second(fixture::setup(record.plan, record.rows), &second);
    let glance = Glance::from(&recorder);
    assert_eq!((glance.noun, glance.ok, glance.settled), ("event", 20_000, 1_000));
    assert_eq!(glance.streams_open, Some(12));
    let p50_ns = glance.now.as_ref().unwrap().latency_us.p50.unwrap().0;
    assert!((39_000_000..41_000_000).contains(&p50_ns), "time to the first event: {p50_ns}");
    let text = progress_line(&glance);
    assert!(text.contains("20 000/s   failed 0   p50 ") && text.contains("12 streams open"), "{text}");
    let screen = crate::live::tests::screen(&glance, &[], Style::FILE, (80, 24));
    for words in ["events per second: 20 000/s", "time to the first event", "12 streams open"] {
        assert!(screen.contains(words), "{words} is not in\n{screen}");
    }
}

#[test]
fn a_mixed_plan_shows_messages_and_events_while_it_goes_on() {
    let runs = [fixture::closed_run(), websocket_run(), stream_run()];
    let names = ["requests", "sockets", "streams"];
    let load = |(run, name): (&RunRecord, &str)| Load { name: name.to_owned(), ..run.plan.loads[0].clone() };
    let plan = Plan { loads: runs.iter().zip(names).map(load).collect(), ..fixture::closed_run().plan };
    let rows = names.map(|load| RowKey { load: load.to_owned(), ..fixture::closed_run().rows[0].clone() });
    let mut recorder = RunRecorder::new(fixture::setup(plan, rows.to_vec()));
    *recorder.shares_mut() = ShareRecorder::new(names.len());
    for (idx, (run, name)) in runs.iter().zip(names).enumerate() {
        let mut second = Snapshot { rows: vec![Row::default(); idx], ..run.total.clone() };
        second.rows.extend(run.total.rows.clone());
        second.generator.wall = Duration::from_secs(1);
        recorder.shares_mut().begin((0, idx), ("g1", name), 0.0);
        recorder.shares_mut().absorb((0, idx), 0, &second);
        recorder.shares_mut().close((0, idx), 0);
        recorder.absorb(0, idx as u32, &second);
    }
    recorder.close_second(0, MachineSecond::default());
    recorder.tick(Duration::from_secs(2));
    let glance = Glance::from(&recorder);
    let text = progress_line(&glance);
    assert!(text.contains("events 20 000/s   messages 5 990/s"), "{text}");
    let screen = crate::live::tests::screen(&glance, &[], Style::FILE, (80, 40));
    for words in ["messages per second: 5 990/s", "events per second: 20 000/s", "first event"] {
        assert!(screen.contains(words), "{words} is not in\n{screen}");
    }
}

fn after_a_second(setup: RunSetup, second: &Snapshot) -> RunRecorder {
    let mut second = second.clone();
    second.generator.wall = Duration::from_secs(1);
    let mut recorder = RunRecorder::new(setup);
    recorder.absorb(0, 0, &second);
    recorder.close_second(0, MachineSecond::default());
    recorder.tick(Duration::from_secs(2));
    recorder
}

fn progress_line(glance: &Glance) -> String {
    let mut stream = Vec::new();
    let glance = Glance { elapsed: Duration::from_secs(10), ..glance.clone() };
    Progress::new(&mut stream, Style::FILE, ProgressMode::Plain).update(&glance);
    String::from_utf8(stream).unwrap()
}
