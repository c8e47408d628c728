//! Whole runs in simulated time, each with its own seed: a network that cuts writes and reads into pieces, delays, blocks, refuses and resets,
//! and a server that misbehaves. After each run, the loop's counts and times must be those of the network.
//!
//! `SQUALL_SEEDS=FIRST..END cargo test -p squall-engine simulation` runs others; a seed that fails prints its last events.

use std::num::NonZeroU32;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::channel;
use std::time::Duration;

use squall_measure::{Outcome, Snapshot};
use squall_plan::{
    Arrival, Body, ConnectionPolicy, Expect, HttpLoad, HttpVersion, Load, Network, Pacing, Profile,
    RequestPlan, Segment, Stop, TlsPolicy, Weighted, What, When,
};

use super::Shard;
use crate::Control;
use crate::pace::{Share, SplitMix};
use crate::prepare::Prepared;
use crate::setup::ShardSetup;
use crate::sys::simulated::{Behaviour, Speaks, World, live_in};

/// What one seed stands for.
struct Case {
    load: Load,
    behaviour: Behaviour,
}

/// What is left of a run.
struct LoopEnd {
    world: World,
    total: Snapshot,
    /// Requests and connections that the loop still thinks it has.
    open_count: u32,
    waiting_count: u64,
    in_flight: u32,
    held_place_count: usize,
}

impl Case {
    fn new(seed: u64) -> Self {
        let mut random = SplitMix::new(seed ^ 0x5157_4c4c);
        let mut below = |bound: u64| random.next() % bound;
        let speaks = if below(2) == 0 { Speaks::H1 } else { Speaks::H2 };
        // A third of the runs have no fault at all, a third have some, a third have many.
        let rate = [0, 5, 60][below(3) as usize];
        let fault = |below: &mut dyn FnMut(u64) -> u64| below(rate + 1) as u32;
        let behaviour = Behaviour {
            speaks,
            socket_bytes: [200, 4_000, 100_000][below(3) as usize],
            delay_ns_max: [1, 50_000, 5_000_000][below(3) as usize],
            body_bytes_max: [0, 100, 20_000][below(3) as usize],
            refused: fault(&mut below),
            ends: fault(&mut below),
            cuts: fault(&mut below),
            stalls: fault(&mut below) / 4,
            errors: fault(&mut below),
            farewells: fault(&mut below),
            resets: fault(&mut below),
            garbage: fault(&mut below),
        };
        let depth = NonZeroU32::new([1, 1, 3, 8][below(4) as usize]).expect("not 0");
        let connection_count = 1 + below(12);
        let count = 20 + below(300);
        let when = match below(3) {
            0 => When::Open {
                rate: Profile::constant(500.0 + below(20_000) as f64),
                arrival: [Arrival::Constant, Arrival::Poisson][below(2) as usize],
                pacing: [Pacing::Precise, Pacing::Balanced][below(2) as usize],
                connection_count_max: NonZeroU32::new(connection_count as u32).expect("not 0"),
            },
            _ => When::Closed { connections: Profile::constant(connection_count as f64), users: None },
        };
        let stop = match below(3) {
            0 => Stop { duration: Some(Duration::from_millis(5 + below(60))), count: None },
            _ => Stop { duration: None, count: Some(count) },
        };
        // What a small socket passes on in time.
        let body_bytes_max = behaviour.socket_bytes * 10;
        let body = vec![b'b'; [0, 0, 300, 40_000][below(4) as usize].min(body_bytes_max)];
        Self { load: load(speaks, depth, when, stop, body), behaviour }
    }

    /// Runs it with a world of this seed.
    fn run(&self, seed: u64) -> LoopEnd {
        let prepared = Prepared::new(&self.load, Vec::new(), &Arc::new(AtomicBool::new(false)));
        let prepared = Arc::new(prepared.expect("a good load"));
        let (seconds, collected) = channel();
        let (_spares, spare) = channel();
        let setup = ShardSetup {
            share: Share { shard_idx: 0, shard_count: 1, segment: Segment::WHOLE },
            shard_idx: 0,
            row_count: prepared.rows.len(),
            is_open_model: matches!(self.load.when, When::Open { .. }),
            prepared,
            control: Control::new(),
            warmup_ns: 0,
            seconds,
            spare,
            watches_memory: false,
        };
        let world = World::new(seed, self.behaviour);
        let ((open_count, waiting_count, in_flight, held_place_count), world) = live_in(world, || {
            let mut shard = Shard::new(setup, 2_000_000_000).expect("a good load");
            shard.run_to_end().expect("a simulated network does not fail");
            let in_flight =
                shard.connections.conns.iter().map(super::connections::conn::Conn::in_flight).sum();
            let held = shard.connections.made.requests.len() - shard.connections.made.free.len();
            (shard.connections.counts.open, shard.connections.counts.waiting, in_flight, held)
        });
        let mut total = Snapshot::new(0, false);
        for second in collected.try_iter() {
            total.merge(&second.snapshot);
        }
        LoopEnd { world, total, open_count, waiting_count, in_flight, held_place_count }
    }
}

impl LoopEnd {
    /// What is wrong with the run; `None`: nothing.
    fn problem(&self, case: &Case) -> Option<String> {
        let Self { world, total, .. } = self;
        let samples = world.samples.len() as u64;
        let counts = [
            ("requests started and requests counted", total.requests_started, samples),
            ("requests that the loop still counts as open", u64::from(self.open_count), 0),
            ("requests left on connections", u64::from(self.in_flight), 0),
            ("requests left waiting", self.waiting_count, 0),
            ("requests made at run time and not given back", self.held_place_count as u64, 0),
            ("sockets left open", world.open_count() as u64, 0),
        ];
        if let Some((what, one, other)) = counts.iter().find(|(_, one, other)| one != other) {
            return Some(format!("{what}: {one}, not {other}"));
        }
        self.time_problem(case).or_else(|| self.schedule_problem(case)).or_else(|| self.fault_problem(case))
    }

    /// Each whole response took as long as the network says.
    fn time_problem(&self, case: &Case) -> Option<String> {
        let is_open_model = matches!(case.load.when, When::Open { .. });
        // A response that comes after its request was cancelled is not counted, but the network does not know that.
        let gives_up = case.behaviour.speaks == Speaks::H2 && case.behaviour.stalls > 0;
        if gives_up {
            return None;
        }
        let whole = self.world.samples.iter().filter(|sample| sample.status != 0);
        let mut seen: Vec<(u64, u16)> =
            whole.map(|sample| (sample.phases.duration_ns(), sample.status)).collect();
        let mut truths = self.world.truths.clone();
        seen.sort_unstable();
        truths.sort_unstable_by_key(|truth| (truth.duration_ns, truth.status));
        let differs = |idx: &usize| {
            let truth = truths.get(*idx).map(|truth| (truth.duration_ns, truth.status));
            seen.get(*idx).copied() != truth
        };
        if let Some(idx) = (0..seen.len().max(truths.len())).find(differs) {
            let counts = format!("{} responses and {} of the network", seen.len(), truths.len());
            return Some(format!("{counts}; first difference {:?} and {:?}", seen.get(idx), truths.get(idx)));
        }
        let is_early = |sample: &&squall_measure::Sample| {
            is_open_model && sample.latency_ns < sample.phases.duration_ns()
        };
        let early = self.world.samples.iter().find(is_early);
        early.map(|sample| {
            format!("an open model's latency that is shorter than its service time: {sample:?}")
        })
    }

    /// An open model asks for what its schedule says, whatever the server does.
    fn schedule_problem(&self, case: &Case) -> Option<String> {
        // A coarser pacing ends with its last tick.
        let When::Open { rate, arrival: Arrival::Constant, pacing: Pacing::Precise, .. } = &case.load.when
        else {
            return None;
        };
        let Stop { duration: Some(duration), .. } = case.load.stop else { return None };
        let expected = rate.value_at(0.0) * duration.as_secs_f64();
        let asked = self.total.arrivals_asked as f64;
        ((asked - expected).abs() > 1.0).then(|| format!("{asked} arrivals, {expected} by the schedule"))
    }

    /// Without a fault nothing fails; and nothing lasts longer than its time-out, and the end of the run after that.
    fn fault_problem(&self, case: &Case) -> Option<String> {
        let failed = self.world.samples.iter().find(|sample| matches!(sample.outcome, Outcome::Failed(..)));
        if let Some(failed) = failed.filter(|_| self.world.fault_count == 0) {
            return Some(format!("a failure without a fault: {failed:?}"));
        }
        let longest = self.world.samples.iter().map(|sample| sample.phases.duration_ns()).max().unwrap_or(0);
        let What::Http(http) = &case.load.what else { return None };
        let allowed = http.timeout + Duration::from_millis(20);
        (longest > allowed.as_nanos() as u64).then(|| format!("a request that took {longest} ns"))
    }
}

fn load(speaks: Speaks, depth: NonZeroU32, when: When, stop: Stop, body: Vec<u8>) -> Load {
    let request = RequestPlan {
        weight: NonZeroU32::MIN,
        method: if body.is_empty() { "GET" } else { "PUT" }.to_owned(),
        url: "http://127.0.0.1:80/".parse().expect("a URL"),
        pattern: "/".to_owned(),
        headers: Vec::new(),
        body: if body.is_empty() { Body::Empty } else { Body::Bytes(body) },
        http: if speaks == Speaks::H1 { HttpVersion::Http11 } else { HttpVersion::Http2 },
    };
    let http = HttpLoad {
        requests: vec![request],
        user_agents: vec![Weighted { weight: NonZeroU32::MIN, value: String::new() }],
        follow_count_max: 0,
        expect: Expect::default(),
        timeout: Duration::from_millis(400),
    };
    Load {
        name: "simulated".to_owned(),
        what: What::Http(http),
        when,
        stop,
        // The simulated server does not count windows: these are never used up.
        connections: ConnectionPolicy {
            pipeline_depth: depth,
            stream_count: depth,
            window_bytes: 1 << 24,
            connection_window_bytes: 1 << 28,
            ..ConnectionPolicy::default()
        },
        network: Network::default(),
        tls: TlsPolicy::default(),
        segment: Segment::WHOLE,
    }
}

/// The seeds to run.
fn seeds() -> Range<u64> {
    let Ok(text) = std::env::var("SQUALL_SEEDS") else { return 0..SEED_COUNT };
    let parts = text.split_once("..").and_then(|(first, end)| Some(first.parse().ok()?..end.parse().ok()?));
    parts.unwrap_or_else(|| panic!("SQUALL_SEEDS is FIRST..END, not `{text}`"))
}

#[test]
#[expect(clippy::print_stdout, reason = "what was simulated is the result of `make simulate`")]
fn runs_of_all_seeds_count_and_time_what_the_network_did() {
    let (mut requests, mut faults, mut simulated_ns) = (0, 0, 0);
    let seeds = seeds();
    for seed in seeds.clone() {
        let case = Case::new(seed);
        let ended = case.run(seed);
        requests += ended.world.samples.len();
        faults += ended.world.fault_count;
        simulated_ns += ended.world.now_ns - 2_000_000_000;
        if let Some(problem) = ended.problem(&case) {
            let log: Vec<&str> = ended.world.log.iter().map(String::as_str).collect();
            panic!(
                "seed {seed}: {problem}\n{:?}\n{:?} {:?} depth {}\n{}",
                case.behaviour,
                case.load.when,
                case.load.stop,
                case.load.connections.pipeline_depth,
                log.join("\n")
            );
        }
    }
    println!(
        "{seeds:?}: {requests} requests, {faults} faults, {:.1} simulated seconds",
        simulated_ns as f64 / 1e9
    );
}

/// Seeds of a test run; `make simulate` runs more.
const SEED_COUNT: u64 = 500;
