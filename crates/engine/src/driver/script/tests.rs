//! k6's executors by a clock of our own: which iterations start when, which are dropped, which are interrupted, as k6 documents it.

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};

use squall_measure::{ScriptFigures, ScriptValue, Snapshot};
use squall_plan::{Segment, ShardPart, TlsPolicy};
use squall_script::{Console, Form, Level, Options, Program, ProgramSetup};

use super::figures::submetrics;
use super::users::Clock;
use super::{ScriptDriver, ScriptRun};
use crate::driver::{Driver, Port};

/// What a script says.
#[derive(Clone, Default)]
struct Said(Arc<Mutex<Vec<u8>>>);

impl Write for Said {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// What a run came to.
struct Ran {
    /// When each iteration started, in milliseconds after the begin, in order.
    starts_ms: Vec<f64>,
    figures: ScriptFigures,
    interrupted: u64,
    setup_data: Option<String>,
    text: String,
    end_ms: f64,
    /// Requests that were to be sent.
    call_count: usize,
}

struct World {
    run: ScriptRun,
    said: Said,
}

impl World {
    /// A script whose iterations sleep so long, under one scenario.
    fn new(scenario: &str, sleep_s: f64) -> Self {
        Self::of(&format!("scenarios: {{ it: {scenario} }}"), &format!("sleep({sleep_s})"))
    }

    /// A script with these options, whose iterations do this.
    fn of(options: &str, work: &str) -> Self {
        let source = format!(
            "import {{ sleep }} from 'k6';
             import exec from 'k6/execution';
             import http from 'k6/http';
             export const options = {{ {options} }};
             export function setup() {{ console.log('setup'); return {{ n: 7 }}; }}
             export default function (data) {{
               console.log(`start ${{exec.instance.currentTestRunDuration}} ${{exec.vu.idInTest}} ${{exec.scenario.iterationInTest}} ${{data.n}}`);
               {work};
             }}
             export function teardown(data) {{ console.log(`teardown ${{data.n}}`); }}"
        );
        let said = Said::default();
        let console = Arc::new(Console::new(Box::new(said.clone()), Form::Raw, Level::Debug));
        let program = Program::compile(ProgramSetup {
            path: "/tests/script.js".into(),
            text: Some(source),
            env: BTreeMap::new(),
            fetch: None,
            console: Arc::clone(&console),
        })
        .unwrap();
        let options = Options::of(program.layer().into_iter().collect()).unwrap();
        let run = ScriptRun::new(program, options, console, &TlsPolicy::default()).unwrap();
        let names = run.options.thresholds.iter().map(|(name, _)| name.as_str());
        let submetrics = submetrics(&run.program, names).unwrap();
        Self { run: ScriptRun { exact: true, submetrics, ..run }, said }
    }

    /// Runs it on so many shards of a part of the load, in no time.
    fn run(self, shard_count: u32, segment: &Segment) -> Ran {
        let part = |shard_idx| self.run.part(&ShardPart { shard_idx, shard_count, segment: segment.clone() });
        let mut drivers: Vec<ScriptDriver> =
            (0..shard_count).map(|idx| ScriptDriver::new(&self.run, part(idx)).unwrap()).collect();
        drivers.iter_mut().for_each(|driver| driver.users.clock = Clock::Still);
        let (mut port, mut now_ns) = (Port::default(), 0);
        while !drivers.iter().all(Driver::is_finished) {
            drivers.iter_mut().for_each(|driver| driver.turn(now_ns, &mut port));
            let due_ns = drivers.iter().map(Driver::next_due_ns).min().unwrap_or(u64::MAX);
            // Where nothing is due, a shard looks at the others at least this often.
            now_ns = due_ns.clamp(now_ns + u64::from(due_ns > 0), now_ns + 1_000_000);
            assert!(now_ns < 3_600_000_000_000, "the run does not end");
        }
        let mut snapshot = Snapshot::new(1, false);
        drivers.iter_mut().for_each(|driver| driver.fill(now_ns, &mut snapshot));
        let text =
            String::from_utf8(self.said.0.lock().unwrap_or_else(PoisonError::into_inner).clone()).unwrap();
        let mut starts_ms: Vec<f64> = started(&text).map(|words| words[0]).collect();
        starts_ms.sort_by(f64::total_cmp);
        Ran {
            starts_ms,
            figures: *snapshot.script.unwrap(),
            interrupted: self
                .run
                .stage
                .counts()
                .iterations_interrupted
                .load(std::sync::atomic::Ordering::Relaxed),
            setup_data: self.run.stage.setup_data(),
            text,
            end_ms: now_ns as f64 / 1e6,
            call_count: port.calls.len(),
        }
    }
}

/// Of each iteration: start, user, number, and what it got of `setup()`.
fn started(text: &str) -> impl Iterator<Item = Vec<f64>> {
    let lines = text.lines().filter_map(|line| line.strip_prefix("start "));
    lines.map(|line| line.split(' ').map(|word| word.parse().unwrap_or(f64::NAN)).collect())
}

impl Ran {
    fn counted(&self, metric: &str) -> f64 {
        match self.figures.metrics.iter().find(|it| it.full_name() == metric).map(|metric| &metric.value) {
            Some(ScriptValue::Counter { sum, .. }) => *sum,
            other => panic!("{metric}: {other:?}"),
        }
    }

    /// How many iterations started in each second.
    fn by_second(&self) -> Vec<usize> {
        let mut counts = Vec::new();
        for start_ms in &self.starts_ms {
            let second = (start_ms / 1e3 + 1e-3) as usize;
            counts.resize(counts.len().max(second + 1), 0);
            counts[second] += 1;
        }
        counts
    }
}

fn alone(scenario: &str, sleep_s: f64) -> Ran {
    World::new(scenario, sleep_s).run(1, &Segment::WHOLE)
}

#[test]
fn users_rest_until_their_own_iteration_has_lasted_long_enough() {
    let options = "minIterationDuration: '3s', scenarios: { it: { executor: 'ramping-vus', startVUs: 1, gracefulStop: '0s',
        stages: [{ duration: '2s', target: 1 }, { duration: '0s', target: 2 }, { duration: '2500ms', target: 2 }] } }";
    let ran = World::of(options, "sleep(exec.vu.idInTest === 1 ? 2.5 : 0)").run(1, &Segment::WHOLE);
    let starts_ms: Vec<f64> = ran.starts_ms.iter().map(|start_ms| start_ms.round()).collect();
    assert_eq!(starts_ms, [0.0, 2000.0, 3000.0]);
}

#[test]
fn what_a_user_adds_to_its_tags_is_on_its_iterations() {
    let options = "iterations: 3, tags: { run: 'r' }, thresholds: { 'iterations{stage:2}': [], 'iteration_duration{run:r}': [] }";
    let ran = World::of(options, "exec.vu.tags.stage = __ITER").run(1, &Segment::WHOLE);
    assert_eq!(ran.counted("iterations{stage:2}"), 1.0);
}

#[test]
fn a_scenario_may_begin_when_another_one_ends() {
    for then in ["constant-vus', duration: '1s'", "per-vu-iterations'", "shared-iterations', iterations: 2"] {
        let options = format!(
            "scenarios: {{
               a_then: {{ vus: 2, startTime: '1s', executor: '{then} }},
               first: {{ executor: 'constant-vus', vus: 2, duration: '1s', gracefulStop: '0s' }} }}"
        );
        let ran = World::of(&options, "sleep(1.5)").run(1, &Segment::WHOLE);
        let seen = (ran.by_second(), ran.counted("iterations"), ran.counted("dropped_iterations"));
        assert_eq!(seen, (vec![2, 2], 2.0, 0.0), "{then}: {}", ran.text);
        assert!(started(&ran.text).all(|words| words[1] <= 2.0), "two users are enough: {}", ran.text);
    }
}

#[test]
fn a_later_scenario_takes_the_users_that_have_not_run_yet() {
    let options = "scenarios: {
        first: { vus: 2, executor: 'per-vu-iterations', iterations: 2 },
        then: { vus: 2, executor: 'per-vu-iterations', iterations: 2, startTime: '2s' } }";
    let ran =
        World::of(options, "console.log('seen', exec.scenario.name, __VU, __ITER)").run(1, &Segment::WHOLE);
    let mut seen: Vec<&str> = ran.text.lines().filter_map(|line| line.strip_prefix("seen ")).collect();
    seen.sort_unstable();
    let expected =
        ["first 1 0", "first 1 1", "first 2 0", "first 2 1", "then 3 0", "then 3 1", "then 4 0", "then 4 1"];
    assert_eq!(seen, expected);
}

#[test]
fn the_counts_of_the_run_are_those_of_the_moment() {
    let work = "console.log('seen', exec.instance.iterationsCompleted, exec.instance.vusActive, exec.instance.vusInitialized)";
    let ran = World::of("vus: 2, iterations: 3", work).run(1, &Segment::WHOLE);
    let seen: Vec<&str> = ran.text.lines().filter_map(|line| line.strip_prefix("seen ")).collect();
    assert_eq!((seen[0], seen[2]), ("0 1 2", "1 2 2"), "{}", ran.text);
}

#[test]
fn progress_is_that_of_the_iterations_or_of_the_time() {
    let work = "sleep(1); console.log('seen', exec.scenario.progress)";
    for (options, expected) in
        [("iterations: 4", ["0", "0.25", "0.5", "0.75"]), ("duration: '4s'", ["0.25", "0.5", "0.75", "1"])]
    {
        for shard_count in [1, 2] {
            let ran = World::of(options, work).run(shard_count, &Segment::WHOLE);
            let seen: Vec<&str> = ran.text.lines().filter_map(|line| line.strip_prefix("seen ")).collect();
            assert_eq!(seen, expected, "{options}");
        }
    }
}

#[test]
fn requests_that_are_held_back_go_with_the_iteration_that_made_them() {
    let options = "rps: 2, scenarios: { it: { executor: 'ramping-vus', startVUs: 10, gracefulRampDown: '0s', gracefulStop: '0s',
        stages: [{ duration: '900ms', target: 10 }, { duration: '0s', target: 1 }, { duration: '5s', target: 1 }] } }";
    let ran = World::of(options, "http.get('http://127.0.0.1:9/')").run(1, &Segment::WHOLE);
    // Nobody answers: one user waits for its first request until the end, and the others are interrupted.
    assert_eq!((ran.interrupted, ran.call_count), (10, 0), "{}", ran.text);
}

#[test]
fn iterations_start_when_k6_documents_it() {
    for (scenario, sleep_s, by_second, dropped) in [
        ("{ executor: 'constant-vus', vus: 3, duration: '4s' }", 1.0, vec![3, 3, 3, 3], 0.0),
        ("{ executor: 'constant-vus', vus: 2, duration: '3s' }", 0.5, vec![4, 4, 4], 0.0),
        ("{ executor: 'shared-iterations', vus: 2, iterations: 7 }", 1.0, vec![2, 2, 2, 1], 0.0),
        (
            "{ executor: 'shared-iterations', vus: 2, iterations: 9, maxDuration: '3s' }",
            1.0,
            vec![2, 2, 2],
            3.0,
        ),
        ("{ executor: 'per-vu-iterations', vus: 3, iterations: 2 }", 1.0, vec![3, 3], 0.0),
        ("{ executor: 'per-vu-iterations', vus: 2, iterations: 5, maxDuration: '2s' }", 1.0, vec![2, 2], 6.0),
        // One user more each second; an iteration outlasts the ramp.
        (
            "{ executor: 'ramping-vus', startVUs: 0, stages: [{ duration: '4s', target: 4 }, { duration: '2s', target: 4 }] }",
            20.0,
            vec![0, 1, 1, 1, 1],
            0.0,
        ),
        (
            "{ executor: 'ramping-vus', startVUs: 2, stages: [{ duration: '2s', target: 2 }, { duration: '0s', target: 5 }, { duration: '2s', target: 5 }] }",
            1.0,
            vec![2, 2, 5, 5],
            0.0,
        ),
        (
            "{ executor: 'constant-arrival-rate', rate: 30, timeUnit: '1s', duration: '3s', preAllocatedVUs: 40 }",
            1.0,
            vec![30, 30, 30],
            0.0,
        ),
        (
            "{ executor: 'constant-arrival-rate', rate: 90, timeUnit: '1m', duration: '4s', preAllocatedVUs: 5 }",
            0.1,
            vec![2, 1, 2, 1],
            0.0,
        ),
        // One user makes one iteration a second: of ten arrivals nine find no free user.
        (
            "{ executor: 'constant-arrival-rate', rate: 10, duration: '3s', preAllocatedVUs: 1, maxVUs: 1 }",
            1.0,
            vec![1, 1, 1],
            27.0,
        ),
        // The area under the rate: 5, 15, 20, 20; the arrival at the end of a second counts for the next one.
        (
            "{ executor: 'ramping-arrival-rate', startRate: 0, preAllocatedVUs: 50, stages: [{ duration: '2s', target: 20 }, { duration: '2s', target: 20 }] }",
            0.5,
            vec![4, 15, 20, 20, 1],
            0.0,
        ),
    ] {
        for shard_count in [1, 2] {
            let ran = World::new(scenario, sleep_s).run(shard_count, &Segment::WHOLE);
            let name = format!("{scenario} on {shard_count}");
            let mut numbers: Vec<f64> = started(&ran.text).map(|words| words[2]).collect();
            numbers.sort_by(f64::total_cmp);
            numbers.dedup();
            assert_eq!(numbers.len(), ran.starts_ms.len(), "{name}: each iteration has a number of its own");
            if dropped == 0.0 || shard_count == 1 {
                assert_eq!(ran.by_second(), by_second, "{name}: {:?}", ran.starts_ms);
            }
            let planned = by_second.iter().sum::<usize>() as f64 + dropped;
            assert_eq!(ran.counted("iterations") + ran.counted("dropped_iterations"), planned, "{name}");
        }
    }
}

#[test]
fn arrivals_come_at_their_times_whatever_the_iterations_do() {
    let ran = alone(
        "{ executor: 'constant-arrival-rate', rate: 20000, duration: '1s', preAllocatedVUs: 50 }",
        0.001,
    );
    assert_eq!(ran.starts_ms.len(), 20_000);
    let late_ms = |(nth, start_ms): (usize, &f64)| (start_ms - nth as f64 / 20.0).abs();
    let worst_ms = ran.starts_ms.iter().enumerate().map(late_ms).fold(0.0, f64::max);
    assert!(worst_ms < 0.001, "{worst_ms} ms off schedule");
}

#[test]
fn what_runs_at_the_end_gets_its_grace() {
    for (scenario, sleep_s, completed, interrupted, end_ms) in [
        ("{ executor: 'constant-vus', vus: 2, duration: '1s', gracefulStop: '5s' }", 3.0, 2.0, 0, 3000.0),
        ("{ executor: 'constant-vus', vus: 2, duration: '1s', gracefulStop: '1s' }", 3.0, 0.0, 2, 2000.0),
        ("{ executor: 'constant-vus', vus: 2, duration: '1s', gracefulStop: '0s' }", 3.0, 0.0, 2, 1000.0),
        (
            "{ executor: 'shared-iterations', vus: 1, iterations: 2, maxDuration: '1s', gracefulStop: '1s' }",
            3.0,
            0.0,
            1,
            2000.0,
        ),
        (
            "{ executor: 'constant-arrival-rate', rate: 2, duration: '1s', preAllocatedVUs: 2, gracefulStop: '3s' }",
            2.0,
            2.0,
            0,
            2500.0,
        ),
        // The second user is taken away at 3 s and may go on for another second; the first one at 5 s.
        (
            "{ executor: 'ramping-vus', startVUs: 2, gracefulRampDown: '1s', gracefulStop: '30s', stages: [{ duration: '1s', target: 2 }, { duration: '4s', target: 0 }] }",
            10.0,
            0.0,
            2,
            6000.0,
        ),
    ] {
        let ran = alone(scenario, sleep_s);
        assert_eq!((ran.counted("iterations"), ran.interrupted), (completed, interrupted), "{scenario}");
        assert!((ran.end_ms - end_ms).abs() < 20.0, "{scenario}: {} ms", ran.end_ms);
    }
}

#[test]
fn segments_make_the_whole_together() {
    for scenario in [
        "{ executor: 'shared-iterations', vus: 5, iterations: 23 }",
        "{ executor: 'per-vu-iterations', vus: 5, iterations: 2 }",
        "{ executor: 'ramping-vus', stages: [{ duration: '5s', target: 5 }, { duration: '2s', target: 1 }] }",
        "{ executor: 'constant-arrival-rate', rate: 10, duration: '3s', preAllocatedVUs: 9 }",
        "{ executor: 'ramping-arrival-rate', startRate: 0, preAllocatedVUs: 9, stages: [{ duration: '3s', target: 10 }] }",
    ] {
        let whole = alone(scenario, 0.25);
        let part = |first, width| World::new(scenario, 0.25).run(1, &Segment::run(first, width, 3).unwrap());
        let (small, large) = (part(0, 1), part(1, 2));
        let count = small.starts_ms.len() + large.starts_ms.len();
        assert_eq!(count, whole.starts_ms.len(), "{scenario}");
        if scenario.contains("arrival") {
            let mut together = [small.starts_ms.clone(), large.starts_ms.clone()].concat();
            together.sort_by(f64::total_cmp);
            assert_eq!(together, whole.starts_ms, "{scenario}");
        }
        let users = |ran: &Ran| {
            started(&ran.text).map(|words| words[1] as u64).collect::<std::collections::BTreeSet<_>>()
        };
        assert!(users(&small).is_disjoint(&users(&large)), "{scenario}");
    }
}

#[test]
fn setup_and_teardown_run_once() {
    let scenario = "{ executor: 'per-vu-iterations', vus: 4, iterations: 1 }";
    let ran = World::new(scenario, 0.0).run(2, &Segment::WHOLE);
    assert_eq!(ran.setup_data.as_deref(), Some(r#"{"n":7}"#));
    let lines: Vec<&str> = ran.text.lines().collect();
    assert_eq!((lines.len(), lines[0], lines[5]), (6, "setup", "teardown 7"));
    assert!(started(&ran.text).all(|words| words[3] == 7.0), "{}", ran.text);
}
