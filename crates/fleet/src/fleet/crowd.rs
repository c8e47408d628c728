//! A controller with many agents that do nothing but report: all that it does is as in any other run, and what it costs is measured.
//!
//! `SQUALL_FLEET_AGENTS=1000` makes them as many, in real time, and prints the costs; `bench/fleet 1000 canned` runs that.

#![expect(clippy::print_stdout, reason = "measured costs are printed, not asserted")]

use std::collections::BTreeMap;
use std::io::BufReader;
use std::num::NonZeroU32;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{ChildStdin, ChildStdout, Command};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, SystemTime};

use rustix::time::{ClockId, clock_gettime};
use squall_measure::{
    Histogram, MachineSecond, Outcome as End, Phases, Protocol, RowKey, RunRecorder, Sample, Snapshot,
    StoppedBy,
};
use squall_plan::file::{Machine, MachineSettings, Reach};

use squall_plan::{Plan, ScriptSettings, Segment, Text};

use super::{Steer, Watcher, make};
use crate::attempt::{Attempt, Errors, Opened};
use crate::clock::{from_unix_ns, unix_ns};
use crate::ledger::MachineView;
use crate::order::{LoadWork, ScriptWork, tests};
use crate::protocol::{self, LoadEnd, Order, PROTOCOL_VERSION, Ready, Report, Trouble};
use crate::transport::Transport;

#[test]
fn what_many_agents_report_is_merged_exactly() {
    let asked = std::env::var("SQUALL_FLEET_AGENTS").ok().map(|count| count.parse().unwrap());
    let crowd = match asked {
        Some(agent_count) => Crowd { agent_count, second_count: 20, in_real_time: true },
        None => Crowd { agent_count: 50, second_count: 5, in_real_time: false },
    };
    let sent = Arc::new(AtomicU64::new(0));
    let transports = (0..crowd.agent_count)
        .map(|idx| Arc::new(Canned { crowd, idx, sent: Arc::clone(&sent) }) as Arc<dyn Transport>);
    let mut costs = Costs { base_kb: status_kb("VmRSS"), ..Costs::default() };
    let outcome = make(&crowd.plan(), transports.collect(), &Steer::default(), &mut costs).unwrap();
    let record = outcome.record;

    let mut expected = Histogram::new();
    for idx in 0..crowd.agent_count {
        (0..crowd.second_count).for_each(|_| crowd.latencies(idx).for_each(|ns| expected.record(ns)));
    }
    let request_count = crowd.agent_count as u64 * u64::from(crowd.second_count) * REQUESTS_PER_SECOND;
    assert_eq!((record.total.requests_started, record.total.ok()), (request_count, request_count));
    assert_eq!(record.total.rows[0].latency, expected);
    let seconds: Vec<u64> = record.series.points.iter().map(|point| point.ok).collect();
    assert_eq!(seconds, vec![request_count / u64::from(crowd.second_count); crowd.second_count as usize]);
    let by_machine = record.parts.iter().filter(|part| part.kind == squall_measure::PartKind::Machine);
    let by_machine: Vec<u64> = by_machine.map(|part| part.total.ok()).collect();
    assert_eq!(by_machine, vec![request_count / crowd.agent_count as u64; crowd.agent_count]);
    assert_eq!(outcome.lost_count, 0);
    if crowd.in_real_time {
        costs.print(crowd, sent.load(Ordering::Relaxed));
    }
}

/// Agents that all make a part of one load.
#[derive(Debug, Clone, Copy)]
struct Crowd {
    agent_count: usize,
    second_count: u32,
    /// Otherwise all seconds are reported at once.
    in_real_time: bool,
}

impl Crowd {
    fn plan(self) -> crate::order::FleetPlan {
        let machine = |idx: usize| Machine {
            name: Text { value: format!("g{idx}"), ..Text::default() },
            reach: Reach::Local,
            weight: NonZeroU32::MIN,
            settings: MachineSettings::default(),
        };
        let mut load = tests::load(0, Some(u64::from(self.second_count)));
        load.work = LoadWork::Script(Box::new(ScriptWork {
            path: "none.js".into(),
            settings: ScriptSettings::default(),
        }));
        load.parts = (0..self.agent_count).map(|idx| (idx, Segment::WHOLE)).collect();
        let mut plan = tests::plan(vec![load], &[(&[0], 0)]);
        plan.machines = (0..self.agent_count).map(machine).collect();
        plan.makes_load = vec![true; self.agent_count];
        plan
    }

    /// Of the requests of an agent in each second: from 0.2 to 20 ms, as many different ones as a real second has.
    fn latencies(self, idx: usize) -> impl Iterator<Item = u64> {
        let mut state = idx as u64 + 1;
        (0..REQUESTS_PER_SECOND).map(move |_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let part = (state >> 40) as f64 / f64::from(1 << 24);
            (200_000.0 * 100_f64.powf(part)) as u64
        })
    }

    fn snapshot(self, idx: usize) -> Snapshot {
        let mut snapshot = Snapshot::new(1, true);
        snapshot.requests_started = REQUESTS_PER_SECOND;
        for latency_ns in self.latencies(idx) {
            let phases = Phases {
                blocked_ns: latency_ns / 50,
                sending_ns: latency_ns / 40,
                waiting_ns: latency_ns - latency_ns / 20,
                receiving_ns: latency_ns / 40,
                ..Phases::default()
            };
            let (row_idx, status, outcome) = (0, 200, End::Ok);
            snapshot.record(&Sample {
                row_idx,
                status,
                outcome,
                latency_ns,
                phases,
                bytes_sent: 90,
                bytes_received: 500,
            });
            snapshot.generator.schedule_lag.record(latency_ns / 100);
        }
        snapshot
    }
}

/// The way to one of them: a thread at the other end of a socket.
struct Canned {
    crowd: Crowd,
    idx: usize,
    /// Bytes of the reports of all.
    sent: Arc<AtomicU64>,
}

impl Transport for Canned {
    fn open(&self, _: &Attempt, _: &dyn Fn(&str)) -> Result<Opened, Trouble> {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let second = Report::Second {
            load_idx: 0,
            second_idx: u32::MAX,
            shard_idx: 0,
            snapshot: Box::new(self.crowd.snapshot(self.idx)),
        };
        let agent = Agent {
            stream: theirs,
            crowd: self.crowd,
            second: String::from_utf8(protocol::json(&second).unwrap()).unwrap(),
            number: 0,
            sent: Arc::clone(&self.sent),
        };
        let thread = thread::Builder::new().name(CANNED.to_owned()).stack_size(256 << 10);
        thread.spawn(move || agent.serve()).unwrap();
        let orders = ChildStdin::from(OwnedFd::from(ours.try_clone().unwrap()));
        let reports = BufReader::new(ChildStdout::from(OwnedFd::from(ours)));
        Ok(Opened {
            child: Command::new("true").spawn().unwrap(),
            orders,
            reports,
            errors: Errors::default(),
        })
    }
}

struct Agent {
    stream: UnixStream,
    crowd: Crowd,
    /// What it reports of each second, with [`u32::MAX`] for its number.
    second: String,
    number: u64,
    sent: Arc<AtomicU64>,
}

impl Agent {
    /// Answers until the controller is gone. While it reports it is deaf.
    fn serve(mut self) {
        while let Ok(Some(order)) = protocol::read::<Order>(&mut self.stream) {
            match order {
                Order::Hello { .. } => self.report(&Report::Hello {
                    protocol: PROTOCOL_VERSION,
                    version: env!("CARGO_PKG_VERSION").to_owned(),
                    facts: BTreeMap::new(),
                    way_back: None,
                }),
                Order::Clock { asked_unix_ns } => {
                    let now = unix_ns(SystemTime::now());
                    self.report(&Report::Clock { asked_unix_ns, heard_unix_ns: now, told_unix_ns: now });
                }
                Order::Prepare { .. } => {
                    self.report(&Report::Ready { load_idx: 0, ready: Box::new(ready()) });
                }
                Order::Start { at_unix_ns } => self.work(at_unix_ns),
                Order::Bye => return,
                _ => {}
            }
        }
    }

    fn work(&mut self, at_unix_ns: u64) {
        for second_idx in 0..self.crowd.second_count {
            let end = from_unix_ns(at_unix_ns) + Duration::from_secs(u64::from(second_idx) + 1);
            if let Ok(left) = end.duration_since(SystemTime::now())
                && self.crowd.in_real_time
            {
                thread::sleep(left);
            }
            let second = self.second.replace(&u32::MAX.to_string(), &second_idx.to_string());
            self.send(second.as_bytes());
            self.report(&Report::Close { load_idx: 0, second_idx, machine: MachineSecond::default() });
        }
        let end = LoadEnd {
            started_unix_ns: at_unix_ns,
            duration: Duration::from_secs(u64::from(self.crowd.second_count)),
            stopped_by: StoppedBy::Duration,
            trouble: None,
            tool: None,
        };
        self.report(&Report::Ended { load_idx: 0, end: Ok(end) });
    }

    fn report(&mut self, report: &Report) {
        self.send(&protocol::json(report).unwrap());
    }

    fn send(&mut self, json: &[u8]) {
        self.number += 1;
        self.sent.fetch_add(json.len() as u64, Ordering::Relaxed);
        protocol::write_frame(&mut self.stream, (self.number, 0), json).unwrap();
    }
}

fn ready() -> Ready {
    let row = RowKey {
        load: "canned".to_owned(),
        protocol: Protocol::Http11,
        method: "GET".to_owned(),
        url: "http://target/".to_owned(),
    };
    let plan = Plan {
        name: String::new(),
        loads: Vec::new(),
        thresholds: Vec::new(),
        warmup: Duration::ZERO,
        threads: None,
    };
    Ready {
        plan,
        rows: vec![row],
        open_model: true,
        lag_allowed: Duration::ZERO,
        environment: BTreeMap::new(),
    }
}

/// What the controller uses, from the second second to the last but one.
#[derive(Debug, Default)]
struct Costs {
    base_kb: u64,
    peak_kb: u64,
    thread_count: u64,
    from: Option<Used>,
    until: Used,
}

/// At a moment after the run's start: CPU time of the thread that merges, and of all threads of the controller.
#[derive(Debug, Clone, Copy, Default)]
struct Used {
    at: Duration,
    merging: Duration,
    all: Duration,
}

impl Watcher for Costs {
    fn note(&mut self, _: &str) {}

    fn look(&mut self, recorder: &RunRecorder, _: &[MachineView<'_>]) {
        let whole = recorder.elapsed().as_secs();
        // Looking is not free.
        if whole < 2 || whole == self.until.at.as_secs() {
            return;
        }
        self.until = Used::now(recorder.elapsed());
        self.from.get_or_insert(self.until);
        (self.peak_kb, self.thread_count) = (status_kb("VmHWM"), status_kb("Threads"));
    }
}

impl Used {
    fn now(at: Duration) -> Self {
        let time = |clock| {
            let time = clock_gettime(clock);
            Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
        };
        let all = time(ClockId::ProcessCPUTime).saturating_sub(canned_cpu());
        Self { at, merging: time(ClockId::ThreadCPUTime), all }
    }
}

impl Costs {
    fn print(&self, crowd: Crowd, sent_bytes: u64) {
        let (from, until) = (self.from.unwrap_or_default(), self.until);
        assert!(from.at < until.at, "the controller did not keep up");
        let seconds = (until.at - from.at).as_secs_f64();
        let ms = |from: Duration, until: Duration| (until - from).as_secs_f64() * 1e3 / seconds;
        let agents = crowd.agent_count as f64;
        println!(
            "{} agents: {:.0} ms of CPU per second, {:.0} ms of it to merge; {:.0} MB, {} threads; {:.1} MB/s ({:.0} B from each agent)",
            crowd.agent_count,
            ms(from.all, until.all),
            ms(from.merging, until.merging),
            (self.peak_kb - self.base_kb) as f64 / 1e3,
            self.thread_count - crowd.agent_count as u64,
            sent_bytes as f64 / 1e6 / f64::from(crowd.second_count),
            sent_bytes as f64 / agents / f64::from(crowd.second_count),
        );
    }
}

/// CPU time of the threads that are agents here.
fn canned_cpu() -> Duration {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap().flatten();
    let own = tasks.filter(|task| {
        std::fs::read_to_string(task.path().join("comm")).is_ok_and(|name| name.trim() == CANNED)
    });
    let ns = own.filter_map(|task| {
        let text = std::fs::read_to_string(task.path().join("schedstat")).ok()?;
        text.split(' ').next()?.parse::<u64>().ok()
    });
    Duration::from_nanos(ns.sum())
}

fn status_kb(name: &str) -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).unwrap();
    line.split_whitespace().next().unwrap().parse().unwrap()
}

const CANNED: &str = "canned-agent";
const REQUESTS_PER_SECOND: u64 = 100;
