//! Whole runs of handshakes and of kept connections against a peer whose bytes are the input: raw after the `ClientHello`, as the first
//! answers of a plain or an HTTP/2 connection, or as damage to what a real TLS server sends. Nothing panics or hangs, and every connection
//! ends in exactly one count.

#![no_main]

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use rustls::{ALL_VERSIONS, ServerConfig, ServerConnection};
use squall_engine::{Control, run};
use squall_measure::RunRecorder;
use squall_plan::{
    CloseMode, ConnectionPolicy, Endpoint, HandshakeLoad, IdleLoad, IdleProtocol, Load, Network, Ping,
    PingKind, Plan, Profile, Resumption, Segment, SessionRequest, Stop, TlsPolicy, Weighted, What, When,
};
use squall_testkit::Authority;

fuzz_target!(|data: &[u8]| {
    let Some((&kind, script)) = data.split_first() else { return };
    let server = SERVER.get_or_init(Server::start);
    server
        .script
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .clone_from(&Script { is_damage: kind % 4 == 0, bytes: script.to_vec() });
    let what = match kind % 4 {
        0 | 1 => handshakes(server.address, kind & 4 != 0),
        2 => idle(server.address, IdleProtocol::Http1, PingKind::Request(request())),
        _ => idle(server.address, IdleProtocol::Http2, PingKind::H2),
    };
    let record = run(&plan(what), &Control::new(), &mut |_: &RunRecorder| {}).expect("the plan can be run");
    let total = &record.total;
    assert_eq!(total.requests_started, total.ok() + total.failed() + total.interrupted());
    if let Some(sessions) = &total.sessions {
        assert_eq!(sessions.kept.opened, sessions.kept.lost() + sessions.kept.closed_by_us);
    }
});

static SERVER: OnceLock<Server> = OnceLock::new();

/// Does to each connection what the script says, then closes it.
struct Server {
    address: SocketAddr,
    script: Arc<Mutex<Script>>,
}

#[derive(Clone, Default)]
struct Script {
    /// The bytes change what a TLS server says, rather than being what is said.
    is_damage: bool,
    bytes: Vec<u8>,
}

impl Server {
    fn start() -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let address = listener.local_addr().expect("a bound socket");
        let script = Arc::new(Mutex::new(Script::default()));
        let shared = Arc::clone(&script);
        let config = Arc::new(Authority::new().issue_for_loopback().server_config(ALL_VERSIONS));
        thread::spawn(move || {
            for socket in listener.incoming().flatten() {
                let script = shared.lock().unwrap_or_else(PoisonError::into_inner).clone();
                let config = Arc::clone(&config);
                // A client that leaves early is no failure.
                thread::spawn(move || _ = serve(socket, &script, config));
            }
        });
        Self { address, script }
    }
}

fn serve(mut socket: TcpStream, script: &Script, config: Arc<ServerConfig>) -> std::io::Result<()> {
    socket.set_read_timeout(Some(Duration::from_millis(100)))?;
    if script.is_damage {
        return serve_damaged(&mut socket, &script.bytes, config);
    }
    let _ = socket.read(&mut [0; 4096])?;
    socket.write_all(&script.bytes)
}

/// Two bytes of the script name a place in what the server says, and the third what is changed there.
fn serve_damaged(socket: &mut TcpStream, damage: &[u8], config: Arc<ServerConfig>) -> std::io::Result<()> {
    let mut session = ServerConnection::new(config).expect("a good configuration");
    let mut said = 0;
    while session.is_handshaking() {
        session.read_tls(socket)?;
        let _ = session.process_new_packets();
        let mut flight = Vec::new();
        while session.wants_write() {
            session.write_tls(&mut flight)?;
        }
        for change in damage.chunks_exact(3) {
            let place = usize::from(u16::from_be_bytes([change[0], change[1]]));
            if let Some(byte) = place.checked_sub(said).and_then(|place| flight.get_mut(place)) {
                *byte ^= change[2];
            }
        }
        said += flight.len();
        socket.write_all(&flight)?;
    }
    Ok(())
}

fn handshakes(address: SocketAddr, asks: bool) -> What {
    What::Handshake(HandshakeLoad {
        quic: false,
        targets: vec![target(address)],
        server_names: Vec::new(),
        resumption: Resumption::OFF,
        request: asks.then(request),
        hold: Duration::ZERO,
        close: CloseMode::Rst,
    })
}

fn idle(address: SocketAddr, protocol: IdleProtocol, kind: PingKind) -> What {
    What::Idle(IdleLoad {
        quic: false,
        targets: vec![target(address)],
        tls: false,
        protocol,
        first_request: None,
        ping: Some(Ping { every: Duration::from_millis(2), kind, timeout: Duration::from_millis(20) }),
        jitter: Duration::ZERO,
        reopens: false,
        keeps_sessions: true,
        close: CloseMode::Rst,
    })
}

fn request() -> SessionRequest {
    SessionRequest { path: "/".to_owned(), timeout: Duration::from_millis(20) }
}

fn target(address: SocketAddr) -> Weighted<Endpoint> {
    Weighted::once(Endpoint { host: address.ip().to_string(), port: address.port() })
}

fn plan(what: What) -> Plan {
    let is_idle = matches!(what, What::Idle(_));
    let stop = match is_idle {
        true => Stop { duration: Some(Duration::from_millis(20)), count: None },
        false => Stop { duration: None, count: Some(2) },
    };
    let load = Load {
        name: "fuzz".to_owned(),
        what,
        when: When::Closed { connections: Profile::constant(2.0), users: None },
        stop,
        connections: ConnectionPolicy {
            connect_timeout: Duration::from_millis(200),
            ..ConnectionPolicy::default()
        },
        network: Network::default(),
        tls: TlsPolicy { insecure: true, ..TlsPolicy::default() },
        segment: Segment::WHOLE,
    };
    Plan {
        name: "fuzz".to_owned(),
        loads: vec![load],
        thresholds: Vec::new(),
        warmup: Duration::ZERO,
        threads: Some(NonZeroU32::MIN),
    }
}
