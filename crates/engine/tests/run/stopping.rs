//! How a run ends when someone, or the server, ends it.

use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use squall_engine::{Control, Observer, Span, run};
use squall_measure::{Cause, RunRecord, RunRecorder, RunSetup, Snapshot, StoppedBy};
use squall_plan::{Plan, Stop};
use squall_server::{Options, Target};

use crate::plans::{assert_counts, closed, record, with, with_http};

fn endless(url: &str, connection_count: u32) -> Plan {
    with(closed(url, connection_count, 1), |load| {
        load.stop = Stop { duration: Some(Duration::from_secs(60)), count: None };
    })
}

/// Runs a plan and steers it when the target has seen `request_count` requests.
fn steered(target: &Target, plan: &Plan, request_count: u64, steer: impl Fn(&Control)) -> RunRecord {
    let control = Control::new();
    thread::scope(|scope| {
        let running = scope.spawn(|| run(plan, &control, &mut |_: &RunRecorder| {}).unwrap());
        let deadline = Instant::now() + Duration::from_secs(20);
        while target.stats().requests < request_count && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(2));
        }
        steer(&control);
        running.join().unwrap()
    })
}

#[test]
fn draining_finishes_what_is_open_and_starts_nothing_more() {
    let target = Target::start(&Options::default()).unwrap();
    let plan = endless(&format!("http://{}/delay/20", target.address()), 8);
    let record = steered(&target, &plan, 16, Control::drain);
    assert_eq!(record.stopped_by, StoppedBy::Drained);
    assert_counts(&record, record.total.ok(), 0);
    assert_eq!(target.stop().requests, record.total.ok());
}

#[test]
fn aborting_counts_what_is_open_as_interrupted() {
    let target = Target::start(&Options::default()).unwrap();
    let plan = endless(&format!("http://{}/delay/30s", target.address()), 8);
    let control = Control::new();
    let begin = Instant::now();
    let record = thread::scope(|scope| {
        let running = scope.spawn(|| run(&plan, &control, &mut |_: &RunRecorder| {}).unwrap());
        while target.stats().connections < 8 && begin.elapsed() < Duration::from_secs(20) {
            thread::sleep(Duration::from_millis(2));
        }
        control.drain();
        control.abort();
        running.join().unwrap()
    });
    assert_eq!(record.stopped_by, StoppedBy::Aborted);
    assert_eq!((record.total.ok(), record.total.failed(), record.total.interrupted()), (0, 0, 8));
    assert!(begin.elapsed() < Duration::from_secs(15));
}

#[test]
fn a_silent_server_times_out_once_for_each_request() {
    let target = Target::start(&Options::default()).unwrap();
    let plan = with_http(closed(&format!("http://{}/hang", target.address()), 3, 9), |http| {
        http.timeout = Duration::from_millis(50);
    });
    let record = record(&plan);
    assert_counts(&record, 0, 9);
    assert_eq!(record.total.failures.count_of(Cause::Timeout), 9);
}

#[test]
fn no_request_starts_after_the_planned_time() {
    let target = Target::start(&Options::default()).unwrap();
    let plan = with(closed(&format!("http://{}/delay/30", target.address()), 4, 1), |load| {
        load.stop = Stop { duration: Some(Duration::from_millis(100)), count: None };
    });
    let record = record(&plan);
    assert_eq!(record.stopped_by, StoppedBy::Duration);
    assert!(record.total.ok() >= 4 && record.total.ok() <= 16, "{}", record.total.ok());
    assert_eq!(record.total.requests_started, record.total.ok());
}

/// Follows a run that is asked to start later, or not at all.
struct Starter {
    at: Option<SystemTime>,
    requests_seen: u64,
}

impl Observer for Starter {
    fn start(&mut self, _: &RunSetup) -> Option<SystemTime> {
        self.at
    }

    fn second(&mut self, _: Span, snapshot: &Snapshot) {
        self.requests_seen += snapshot.requests_started;
    }

    fn look(&mut self, _: &RunRecorder) {}
}

#[test]
fn a_run_starts_when_its_observer_says_and_hands_over_every_second() {
    let target = Target::start(&Options::default()).unwrap();
    let plan = closed(&format!("http://{}/", target.address()), 4, 100);
    let at = SystemTime::now() + Duration::from_millis(300);
    let mut starter = Starter { at: Some(at), requests_seen: 0 };
    let record = run(&plan, &Control::new(), &mut starter).unwrap();
    let at_ms = at.duration_since(UNIX_EPOCH).unwrap().as_millis() as u64;
    assert_eq!(record.started_unix_ms, at_ms);
    assert_eq!((record.total.requests_started, starter.requests_seen), (100, 100));
}

#[test]
fn a_run_that_nobody_wants_any_more_sends_nothing() {
    let target = Target::start(&Options::default()).unwrap();
    let plan = closed(&format!("http://{}/", target.address()), 4, 100);
    let mut starter = Starter { at: None, requests_seen: 0 };
    let record = run(&plan, &Control::new(), &mut starter).unwrap();
    assert_eq!((record.total.requests_started, record.stopped_by), (0, StoppedBy::Aborted));
    assert_eq!(target.stop().requests, 0);
}

#[test]
fn a_run_that_is_stopped_before_its_start_ends_then_and_sends_nothing() {
    for (stop, stopped_by) in [
        (Control::drain as fn(&Control), StoppedBy::Drained),
        (Control::abort as fn(&Control), StoppedBy::Aborted),
    ] {
        let target = Target::start(&Options::default()).unwrap();
        let plan = closed(&format!("http://{}/", target.address()), 4, 100);
        let control = Control::new();
        let mut stopper = Stopper { control: control.clone(), stop };
        let begin = Instant::now();
        let record = run(&plan, &control, &mut stopper).unwrap();
        assert!(begin.elapsed() < Duration::from_secs(20), "{stopped_by:?} after {:?}", begin.elapsed());
        assert_eq!((record.total.requests_started, record.stopped_by), (0, stopped_by));
        assert_eq!((record.duration, target.stop().connections), (Duration::ZERO, 0));
    }
}

/// Has a run start much later, and stops it while it waits.
struct Stopper {
    control: Control,
    stop: fn(&Control),
}

impl Observer for Stopper {
    fn start(&mut self, _: &RunSetup) -> Option<SystemTime> {
        Some(SystemTime::now() + Duration::from_secs(40))
    }

    fn look(&mut self, _: &RunRecorder) {
        (self.stop)(&self.control);
    }
}
