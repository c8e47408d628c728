//! Whole runs in simulated time, each with its own seed: a network that cuts writes and reads into pieces, delays, blocks, refuses and resets, for
//! HTTP/3 one that loses, doubles, spoils and reorders datagrams,
//! and a server that misbehaves. After each run, the loop's counts and times must be those of the network.
//!
//! `SQUALL_SEEDS=FIRST..END cargo test -p squall-engine simulation` runs others; a seed that fails prints its last events.

use std::num::NonZeroU32;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::channel;
use std::time::Duration;

use squall_measure::{Cause, Kept, Outcome, Snapshot};
use squall_plan::{
    Arrival, Body, CloseMode, ConnectionPolicy, Endpoint, Expect, HandshakeLoad, HttpLoad, HttpVersion,
    IdleLoad, IdleProtocol, Load, Network, Pacing, Ping, PingKind, Profile, RequestPlan, Resumption,
    ResumptionMode, Segment, SessionRequest, ShardPart, Stop, TlsPolicy, Weighted, What, When,
};

use super::Shard;
use crate::Control;
use crate::pace::SplitMix;
use crate::prepare::Prepared;
use crate::setup::ShardSetup;
use crate::sys::simulated::{Behaviour, Speaks, World, live_in};

/// What one seed stands for.
struct Case {
    load: Load,
    behaviour: Behaviour,
}

/// Draws what a seed stands for.
struct Draw(SplitMix);

impl Draw {
    fn below(&mut self, bound: u64) -> u64 {
        self.0.next() % bound
    }

    fn one_of<T: Copy>(&mut self, values: &[T]) -> T {
        values[self.below(values.len() as u64) as usize]
    }
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
    /// Slots and parking places that were made.
    slot_count: usize,
    parking_count: usize,
}

impl Case {
    fn new(seed: u64) -> Self {
        let mut draw = Draw(SplitMix::new(seed ^ 0x5157_4c4c));
        let kind =
            draw.one_of(&[Kind::Requests, Kind::Requests, Kind::Requests, Kind::Handshakes, Kind::Idle]);
        // The request that follows a handshake is one of HTTP/1.1.
        let has_h2 = draw.below(2) == 0 && kind != Kind::Handshakes;
        let has_h3 = draw.below(3) == 0;
        let speaks = match (has_h3, has_h2) {
            (true, _) => Speaks::H3,
            (false, true) => Speaks::H2,
            (false, false) => Speaks::H1,
        };
        let is_tls = kind == Kind::Handshakes || has_h3 || draw.below(4) == 0;
        // A third of the runs have no fault at all, a third have some, a third have many.
        let rate = draw.one_of(&[0, 5, 60]);
        let mut fault = || draw.below(rate + 1) as u32;
        let behaviour = Behaviour {
            speaks,
            is_tls,
            refused: fault(),
            ends: fault(),
            cuts: fault(),
            stalls: fault() / 4,
            errors: fault(),
            redirects: if kind == Kind::Requests { fault() } else { 0 },
            farewells: fault(),
            resets: fault(),
            garbage: fault(),
            closes: fault(),
            datagrams: fault() / 2,
            socket_bytes: draw.one_of(&[200, 4_000, 100_000]),
            delay_ns_max: draw.one_of(&[1, 50_000, 5_000_000]),
            body_bytes_max: draw.one_of(&[0, 100, 20_000]),
        };
        // What only the network does wrong to datagrams is made good by QUIC.
        let behaviour = match has_h3 && draw.below(2) == 0 {
            true => behaviour.with_lost_datagrams_only(),
            false => behaviour,
        };
        let connection_count = 1 + draw.below(12);
        // What is encrypted costs real time.
        let count = if is_tls { 20 + draw.below(40) } else { 20 + draw.below(300) };
        let when = match draw.below(3) {
            0 if kind != Kind::Idle => When::Open {
                rate: Profile::constant(500.0 + draw.below(if is_tls { 3_000 } else { 20_000 }) as f64),
                arrival: draw.one_of(&[Arrival::Constant, Arrival::Poisson]),
                pacing: draw.one_of(&[Pacing::Precise, Pacing::Balanced]),
                connection_count_max: NonZeroU32::new(connection_count as u32).expect("not 0"),
            },
            _ => When::Closed { connections: Profile::constant(connection_count as f64), users: None },
        };
        let stop = match draw.below(3) {
            1 | 2 if kind != Kind::Idle => Stop { duration: None, count: Some(count) },
            _ => Stop { duration: Some(Duration::from_millis(5 + draw.below(60))), count: None },
        };
        let what = match kind {
            Kind::Requests => requests(&mut draw, &behaviour),
            Kind::Handshakes => handshakes(&mut draw, has_h3),
            Kind::Idle => idle(&mut draw, &behaviour),
        };
        let depth = NonZeroU32::new(draw.one_of(&[1, 1, 3, 8])).expect("not 0");
        Self { load: load(what, depth, when, stop), behaviour }
    }

    /// Whether connections are opened for their own sake.
    fn has_sessions(&self) -> bool {
        matches!(self.load.what, What::Handshake(_) | What::Idle(_))
    }

    /// Whether responses come that are counted as no sample's, or some of whose bytes leave before the connection is ready.
    fn has_others(&self) -> bool {
        match &self.load.what {
            What::Idle(idle) => idle.ping.is_some(),
            What::Handshake(handshake) => handshake.resumption.early_data,
            _ => false,
        }
    }

    /// Runs it with a world of this seed.
    fn run(&self, seed: u64) -> LoopEnd {
        let prepared = Prepared::new(&self.load, Vec::new(), &Arc::new(AtomicBool::new(false)));
        let prepared = Arc::new(prepared.expect("a good load"));
        let (seconds, collected) = channel();
        let (_spares, spare) = channel();
        let setup = ShardSetup {
            part: ShardPart::WHOLE,
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
        let (end, world) = live_in(world, || {
            let mut shard = Shard::new(setup, 2_000_000_000).expect("a good load");
            shard.run_to_end().expect("a simulated network does not fail");
            // A kept connection may wait for the answer to a ping.
            let is_owed = |conn_idx: &usize| !shard.connections.is_kept(*conn_idx);
            let conn_idxs = (0..shard.connections.conns.len()).filter(is_owed);
            let in_flight = conn_idxs.map(|conn_idx| shard.connections.conns[conn_idx].in_flight()).sum();
            let held = shard.connections.made.requests.len() - shard.connections.made.free.len();
            let connections = &shard.connections;
            let made = (connections.conns.len(), connections.parked.place_count());
            (connections.counts.open, connections.counts.waiting, in_flight, held, made)
        });
        let (open_count, waiting_count, in_flight, held_place_count, (slot_count, parking_count)) = end;
        let mut total = Snapshot::new(0, false);
        for second in collected.try_iter() {
            total.merge(&second.snapshot);
        }
        LoopEnd {
            world,
            total,
            open_count,
            waiting_count,
            in_flight,
            held_place_count,
            slot_count,
            parking_count,
        }
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
        let problem = self.time_problem(case).or_else(|| self.schedule_problem(case));
        let problem = problem.or_else(|| self.fault_problem(case)).or_else(|| self.session_problem(case));
        problem.or_else(|| self.datagram_problem(case))
    }

    /// Connections that were opened for their own sake end in exactly one count, and took as long to open as the network says.
    fn session_problem(&self, case: &Case) -> Option<String> {
        if !case.has_sessions() {
            return None;
        }
        let count_max = case.load.when.connection_count_max() as usize;
        if self.slot_count > count_max || self.parking_count > count_max {
            let (slots, places) = (self.slot_count, self.parking_count);
            return Some(format!("{slots} slots and {places} parking places for {count_max} connections"));
        }
        let ok_count =
            self.world.samples.iter().filter(|sample| sample.outcome == Outcome::Ok).count() as u64;
        let sessions = self.total.sessions.clone().unwrap_or_default();
        let (made, kept) = (&sessions.handshakes, &sessions.kept);
        let ended = kept.lost() + kept.closed_by_us;
        if kept.opened != ended || kept.lifetime.count() != kept.lost() || kept.ping_time.count() > kept.pings
        {
            return Some(format!("connections kept and ended: {kept:?}"));
        }
        let (is_bare, is_idle) = match &case.load.what {
            What::Handshake(load) => (load.request.is_none(), false),
            What::Idle(load) => (load.first_request.is_none() && load.protocol == IdleProtocol::Http1, true),
            _ => (false, false),
        };
        if is_idle && kept.opened < ok_count {
            return Some(format!("{ok_count} connections are open, but {} are kept", kept.opened));
        }
        let is_right = if is_bare { made.count() == ok_count } else { made.count() >= ok_count };
        if case.behaviour.is_tls && !is_right {
            return Some(format!("{} handshakes of {ok_count} connections", made.count()));
        }
        // Where datagrams carry them, when a connection is open is decided by the client.
        if case.behaviour.speaks == Speaks::H3 {
            return self.loss_problem(kept);
        }
        let mut connects = self.world.connects.clone();
        let ok = self.world.samples.iter().filter(|sample| sample.outcome == Outcome::Ok);
        for sample in ok {
            let own = sample.phases.connecting_ns.unwrap_or(0);
            let Some(at) = connects.iter().position(|connect| *connect == own) else {
                return Some(format!("no connect took {own} ns: {sample:?}"));
            };
            connects.swap_remove(at);
        }
        self.loss_problem(kept)
    }

    /// Connections that are kept are lost only where something was in their way.
    fn loss_problem(&self, kept: &Kept) -> Option<String> {
        let is_lost = self.world.fault_count == 0 && kept.lost() > 0;
        is_lost.then(|| format!("a connection was lost without a fault: {kept:?}"))
    }

    /// Each whole response took as long as the network says.
    fn time_problem(&self, case: &Case) -> Option<String> {
        let is_open_model = matches!(case.load.when, When::Open { .. });
        // A response that comes after its request was cancelled is not counted, but the network does not know that.
        let gives_up = case.behaviour.speaks == Speaks::H2 && case.behaviour.stalls > 0;
        // Where datagrams carry them, when a response is whole is decided by the client.
        if gives_up || case.has_others() || case.behaviour.speaks == Speaks::H3 {
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

    /// Over HTTP/3, what the client counts is what the server has done: exactly, where no fault was in the way.
    fn datagram_problem(&self, case: &Case) -> Option<String> {
        let counts = self.world.server_counts()?;
        let seen =
            |status: u16| self.world.samples.iter().filter(|sample| sample.status == status).count() as u64;
        for status in [200, 500] {
            let answered = counts.answers.get(&status).copied().unwrap_or_default();
            let is_right = match self.world.fault_count + counts.faults {
                0 => seen(status) == answered,
                _ => seen(status) <= answered,
            };
            if !is_right {
                return Some(format!("{} responses {status} of {answered}", seen(status)));
            }
        }
        let What::Http(http) = &case.load.what else { return None };
        let body_bytes = match &http.requests[0].body {
            Body::Bytes(bytes) => bytes.len() as u64,
            _ => 0,
        };
        if counts.body_bytes != counts.requests * body_bytes {
            return Some(format!(
                "{} bytes of {} bodies of {body_bytes}",
                counts.body_bytes, counts.requests
            ));
        }
        // Datagrams that are lost are sent again, long before a request has taken too long.
        let is_late =
            |sample: &&squall_measure::Sample| matches!(sample.outcome, Outcome::Failed(Cause::Timeout, _));
        let late = self.world.samples.iter().find(is_late);
        if let Some(late) = late.filter(|_| self.world.fault_count + counts.faults == self.world.lost_count) {
            return Some(format!(
                "a request that takes too long although all that is lost is sent again: {late:?}"
            ));
        }
        let simulated_us = (self.world.now_ns - 1_000_000_000) / 1000;
        (self.world.wait_count > simulated_us)
            .then(|| format!("{} looks for events in {simulated_us} us", self.world.wait_count))
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
        let server_faults = self.world.server_counts().map_or(0, |counts| counts.faults);
        if let Some(failed) = failed.filter(|_| self.world.fault_count + server_faults == 0) {
            return Some(format!("a failure without a fault: {failed:?}"));
        }
        let longest = self.world.samples.iter().map(|sample| sample.phases.duration_ns()).max().unwrap_or(0);
        let What::Http(http) = &case.load.what else { return None };
        let allowed = http.timeout + Duration::from_millis(20);
        (longest > allowed.as_nanos() as u64).then(|| format!("a request that took {longest} ns"))
    }
}

/// What a load is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Requests,
    Handshakes,
    Idle,
}

fn requests(draw: &mut Draw, behaviour: &Behaviour) -> What {
    // What a small socket passes on in time.
    let body_bytes_max = behaviour.socket_bytes * 10;
    let body = vec![b'b'; draw.one_of(&[0, 0, 300, 40_000]).min(body_bytes_max)];
    let url = if behaviour.is_tls { "https://127.0.0.1:443/" } else { "http://127.0.0.1:80/" };
    let request = RequestPlan {
        weight: NonZeroU32::MIN,
        method: if body.is_empty() { "GET" } else { "PUT" }.to_owned(),
        url: url.parse().expect("a URL"),
        pattern: "/".to_owned(),
        headers: Vec::new(),
        body: if body.is_empty() { Body::Empty } else { Body::Bytes(body) },
        http: match behaviour.speaks {
            Speaks::H1 => HttpVersion::Http11,
            Speaks::H2 => HttpVersion::Http2,
            Speaks::H3 => HttpVersion::Http3,
        },
    };
    What::Http(HttpLoad {
        requests: vec![request],
        user_agents: vec![Weighted { weight: NonZeroU32::MIN, value: String::new() }],
        follow_count_max: draw.one_of(&[0, 1, 5]),
        expect: Expect::default(),
        timeout: Duration::from_millis(400),
    })
}

fn session_request(draw: &mut Draw) -> Option<SessionRequest> {
    let request = SessionRequest { path: "/".to_owned(), timeout: Duration::from_millis(400) };
    (draw.below(2) == 0).then_some(request)
}

fn target(port: u16) -> Vec<Weighted<Endpoint>> {
    vec![Weighted::once(Endpoint { host: "127.0.0.1".to_owned(), port })]
}

const CLOSE_MODES: [CloseMode; 3] = [CloseMode::Rst, CloseMode::Fin, CloseMode::Notify];

fn handshakes(draw: &mut Draw, quic: bool) -> What {
    let request = session_request(draw).filter(|_| !quic);
    let mode = match quic {
        true => draw.one_of(&[ResumptionMode::Off, ResumptionMode::Psk]),
        false => draw.one_of(&[ResumptionMode::Off, ResumptionMode::Psk, ResumptionMode::Ticket]),
    };
    let resumption = match mode {
        ResumptionMode::Off => Resumption::OFF,
        _ => Resumption {
            mode,
            ratio: draw.one_of(&[1.0, 0.5]),
            early_data: (quic || request.is_some()) && draw.below(2) == 0,
        },
    };
    What::Handshake(HandshakeLoad {
        quic,
        targets: target(443),
        server_names: Vec::new(),
        resumption,
        request,
        hold: Duration::from_millis(draw.one_of(&[0, 0, 3])),
        close: draw.one_of(&CLOSE_MODES),
    })
}

fn idle(draw: &mut Draw, behaviour: &Behaviour) -> What {
    let is_http2 = behaviour.speaks == Speaks::H2;
    let quic = behaviour.speaks == Speaks::H3;
    let request = session_request(draw).filter(|_| !quic);
    let kind = match (behaviour.speaks, &request) {
        (Speaks::H2, _) => PingKind::H2,
        (Speaks::H3, _) => PingKind::Quic,
        (Speaks::H1, Some(request)) => PingKind::Request(request.clone()),
        (Speaks::H1, None) => PingKind::Byte,
    };
    let every = Duration::from_millis(2 + draw.below(8));
    // Less than most runs last: an answer that is not received loses its connection.
    let ping = Ping { every, kind, timeout: Duration::from_millis(30) };
    What::Idle(IdleLoad {
        quic,
        targets: target(if behaviour.is_tls { 443 } else { 80 }),
        tls: behaviour.is_tls,
        protocol: if is_http2 { IdleProtocol::Http2 } else { IdleProtocol::Http1 },
        first_request: request.filter(|_| !is_http2),
        ping: (draw.below(2) == 0).then_some(ping),
        jitter: Duration::from_millis(draw.one_of(&[0, 5])),
        reopens: draw.below(3) > 0,
        keeps_sessions: draw.below(2) == 0,
        close: draw.one_of(&CLOSE_MODES),
    })
}

fn load(what: What, depth: NonZeroU32, when: When, stop: Stop) -> Load {
    Load {
        name: "simulated".to_owned(),
        what,
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
        tls: TlsPolicy { insecure: true, ..TlsPolicy::default() },
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
    let (mut requests, mut faults, mut simulated_ns, mut h3_requests, mut quic_handshakes) = (0, 0, 0, 0, 0);
    let seeds = seeds();
    for seed in seeds.clone() {
        let case = Case::new(seed);
        let ended = case.run(seed);
        requests += ended.world.samples.len();
        let server = ended.world.server_counts().cloned().unwrap_or_default();
        faults += ended.world.fault_count + server.faults;
        h3_requests += server.requests;
        if case.has_sessions() && case.behaviour.speaks == Speaks::H3 {
            quic_handshakes +=
                ended.total.sessions.as_ref().map_or(0, |sessions| sessions.handshakes.count());
        }
        simulated_ns += ended.world.now_ns - 2_000_000_000;
        if let Some(problem) = ended.problem(&case) {
            let log: Vec<&str> = ended.world.log.iter().map(String::as_str).collect();
            panic!(
                "seed {seed}: {problem}\n{:?}\n{:?}\n{:?} {:?} depth {}\n{}",
                case.behaviour,
                case.load.what,
                case.load.when,
                case.load.stop,
                case.load.connections.pipeline_depth,
                log.join("\n")
            );
        }
    }
    println!(
        "{seeds:?}: {requests} requests, {h3_requests} of them over HTTP/3, {quic_handshakes} handshakes of QUIC, {faults} faults, {:.1} simulated seconds",
        simulated_ns as f64 / 1e9
    );
}

/// Seeds of a test run; `make simulate` runs more.
const SEED_COUNT: u64 = 500;
