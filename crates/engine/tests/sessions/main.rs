//! Whole runs of connections for their own sake, against a TLS server that counts what it saw.
#![expect(clippy::unwrap_used, reason = "tests may unwrap")]

mod handshakes;
mod idle;
mod server;

use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::time::Duration;

use squall_engine::{Control, run};
use squall_measure::{RunRecord, RunRecorder, Sessions};
use squall_plan::{
    CloseMode, ConnectionPolicy, Endpoint, HandshakeLoad, IdleLoad, IdleProtocol, Load, Network, Plan,
    Profile, Resumption, ResumptionMode, Segment, Stop, TlsPolicy, Weighted, What, When,
};

use server::Server;

/// `count` full handshakes, `connection_count` at once.
fn handshakes(server: &Server, connection_count: u32, count: u64) -> Plan {
    let what = What::Handshake(HandshakeLoad {
        quic: false,
        targets: vec![target(server)],
        server_names: Vec::new(),
        resumption: Resumption::OFF,
        request: None,
        hold: Duration::ZERO,
        close: CloseMode::Fin,
    });
    let stop = Stop { duration: None, count: Some(count) };
    plan(what, f64::from(connection_count), stop)
}

/// `connection_count` connections over TLS, kept for `duration`.
fn idle(server: &Server, connection_count: u32, duration: Duration) -> Plan {
    idle_at(server.address(), connection_count, duration)
}

fn idle_at(address: SocketAddr, connection_count: u32, duration: Duration) -> Plan {
    let what = What::Idle(IdleLoad {
        quic: false,
        targets: vec![endpoint(address)],
        tls: true,
        protocol: IdleProtocol::Http1,
        first_request: None,
        ping: None,
        jitter: Duration::ZERO,
        reopens: true,
        keeps_sessions: false,
        close: CloseMode::Notify,
    });
    plan(what, f64::from(connection_count), Stop { duration: Some(duration), count: None })
}

fn plan(what: What, connection_count: f64, stop: Stop) -> Plan {
    let load = Load {
        name: "test".to_owned(),
        what,
        when: When::Closed { connections: Profile::constant(connection_count), users: None },
        stop,
        connections: ConnectionPolicy::default(),
        network: Network::default(),
        tls: TlsPolicy { insecure: true, ..TlsPolicy::default() },
        segment: Segment::WHOLE,
    };
    Plan {
        name: "test".to_owned(),
        loads: vec![load],
        thresholds: Vec::new(),
        warmup: Duration::ZERO,
        threads: Some(NonZeroU32::MIN),
    }
}

fn target(server: &Server) -> Weighted<Endpoint> {
    endpoint(server.address())
}

fn endpoint(address: SocketAddr) -> Weighted<Endpoint> {
    Weighted::once(Endpoint { host: address.ip().to_string(), port: address.port() })
}

fn with_handshake(mut plan: Plan, change: impl FnOnce(&mut HandshakeLoad)) -> Plan {
    let What::Handshake(load) = &mut plan.loads[0].what else { panic!("not handshakes") };
    change(load);
    plan
}

fn with_idle(mut plan: Plan, change: impl FnOnce(&mut IdleLoad)) -> Plan {
    let What::Idle(load) = &mut plan.loads[0].what else { panic!("not idle") };
    change(load);
    plan
}

fn resumption(mode: ResumptionMode, ratio: f64) -> Resumption {
    Resumption { mode, ratio, early_data: false }
}

fn record(plan: &Plan) -> RunRecord {
    run(plan, &Control::new(), &mut |_: &RunRecorder| {}).unwrap()
}

fn sessions(record: &RunRecord) -> &Sessions {
    record.total.sessions.as_deref().unwrap()
}
