//! Records after a handshake, in any order, of any kind, damaged and cut anywhere: our client reads what rustls's own reads, and ends where it ends.
//!
//! Left out is where they differ on purpose: ours counts warnings and renegotiations to a higher number, ignores tickets unread and the version in
//! a record's head, insists on the type there, and ignores the level of an alert where TLS 1.3 does.

#![no_main]

use std::io::{Read, Write};
use std::sync::{Arc, OnceLock};

use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;
use rustls::version::{TLS12, TLS13};
use rustls::{ClientConfig, ClientConnection, ServerConfig, ServerConnection};
use squall_engine::fuzzing::{Sealer, Session, config};
use squall_testkit::Authority;

#[derive(Arbitrary, Debug)]
struct Input {
    is_tls13: bool,
    records: Vec<Record>,
    /// Where the bytes are cut.
    pieces: Vec<u16>,
    /// A place, and what is changed there.
    damage: Option<(u16, u8)>,
}

#[derive(Arbitrary, Debug)]
enum Record {
    Data(Vec<u8>),
    /// So many bytes.
    Much(u16),
    Empty,
    Alert(u8, u8),
    KeyUpdate(u8),
    HelloRequest,
    Ticket,
    Any(u8, Vec<u8>),
    /// Not sealed.
    Plain(u8, Vec<u8>),
    Raw(Vec<u8>),
}

/// What a client made of the bytes.
#[derive(Debug, PartialEq)]
struct Seen {
    read: Vec<u8>,
    is_closed: bool,
    failed: bool,
}

fuzz_target!(|input: Input| {
    if input.records.len() > 40 {
        return;
    }
    let (client, servers) = CONFIGS.get_or_init(configs);
    let server = Arc::clone(&servers[usize::from(input.is_tls13)]);
    let ours = ours(&input, Arc::clone(client), Arc::clone(&server));
    let theirs = theirs(&input, Arc::clone(client), server);
    assert_eq!(ours, theirs, "{input:?}");
});

static CONFIGS: OnceLock<(Arc<ClientConfig>, [Arc<ServerConfig>; 2])> = OnceLock::new();

fn configs() -> (Arc<ClientConfig>, [Arc<ServerConfig>; 2]) {
    let servers = [&TLS12, &TLS13].map(|version| {
        let mut config = Authority::new().issue_for_loopback().server_config(&[version]);
        config.enable_secret_extraction = true;
        config.send_tls13_tickets = 0;
        Arc::new(config)
    });
    (config().expect("a client's settings"), servers)
}

fn ours(input: &Input, config: Arc<ClientConfig>, server: Arc<ServerConfig>) -> Seen {
    let mut client = Session::new(config).expect("a session");
    let mut server = ServerConnection::new(server).expect("a server");
    let mut read = Vec::new();
    loop {
        let flight = client.flight();
        let mut flight = &flight[..];
        while !flight.is_empty() {
            server.read_tls(&mut flight).expect("memory");
            server.process_new_packets().expect("a good client");
        }
        let answer = answer(&mut server);
        if answer.is_empty() {
            break;
        }
        client.give(&answer, &mut read).expect("a good server");
    }
    let bytes = bytes(input, server);
    let mut is_closed = false;
    for piece in pieces(input, &bytes) {
        match client.give(piece, &mut read) {
            Ok(closed) => is_closed |= closed,
            Err(_) => return Seen { read, is_closed, failed: true },
        }
        if is_closed {
            break;
        }
    }
    Seen { read, is_closed, failed: false }
}

fn theirs(input: &Input, config: Arc<ClientConfig>, server: Arc<ServerConfig>) -> Seen {
    let mut client =
        ClientConnection::new(config, "localhost".try_into().expect("a name")).expect("a session");
    let mut server = ServerConnection::new(server).expect("a server");
    while client.is_handshaking() || client.wants_write() {
        let mut flight = Vec::new();
        while client.wants_write() {
            client.write_tls(&mut flight).expect("memory");
        }
        let mut flight = &flight[..];
        while !flight.is_empty() {
            server.read_tls(&mut flight).expect("memory");
            server.process_new_packets().expect("a good client");
        }
        let answer = answer(&mut server);
        let mut answer = &answer[..];
        while !answer.is_empty() {
            client.read_tls(&mut answer).expect("memory");
            client.process_new_packets().expect("a good server");
        }
    }
    let bytes = bytes(input, server);
    let (mut read, mut is_closed) = (Vec::new(), false);
    for mut piece in pieces(input, &bytes) {
        while !piece.is_empty() && !is_closed {
            if client.read_tls(&mut piece).is_err() {
                return Seen { read, is_closed, failed: true };
            }
            let state = client.process_new_packets();
            let mut buffer = [0; 4096];
            while let Ok(count @ 1..) = client.reader().read(&mut buffer) {
                read.extend_from_slice(&buffer[..count]);
            }
            match state {
                Ok(state) => is_closed |= state.peer_has_closed(),
                Err(_) => return Seen { read, is_closed, failed: true },
            }
        }
    }
    Seen { read, is_closed, failed: false }
}

fn answer(server: &mut ServerConnection) -> Vec<u8> {
    let mut answer = Vec::new();
    while server.wants_write() {
        server.write_tls(&mut answer).expect("memory");
    }
    answer
}

/// The records as the server would send them. A key update is heard, and the keys stay: what follows it cannot be opened.
fn bytes(input: &Input, server: ServerConnection) -> Vec<u8> {
    let secrets = server.dangerous_extract_secrets().expect("an open session");
    let mut sealer = Sealer::new(secrets.tx, input.is_tls13).expect("a known suite");
    let mut bytes = Vec::new();
    let (mut warning_count, mut has_asked, mut begins) = (0, false, Vec::new());
    for record in &input.records {
        begins.push(bytes.len());
        let mut seal = |kind: u8, plain: &[u8]| sealer.seal(kind, plain, &mut bytes).expect("a record");
        match record {
            Record::Data(data) => seal(23, data),
            Record::Much(count) => seal(23, &vec![7; usize::from(*count) % 17_000]),
            Record::Empty => seal(23, &[]),
            Record::Alert(_, USER_CANCELED) if warning_count < 3 => {
                warning_count += 1;
                seal(21, &[1, USER_CANCELED]);
            }
            Record::Alert(_, USER_CANCELED) => {}
            Record::Alert(level, description) if level % 2 == 0 || warning_count < 3 => {
                warning_count += u32::from(level % 2 == 1);
                seal(21, &[2 - level % 2, *description]);
            }
            Record::Alert(..) => {}
            Record::KeyUpdate(asked) => seal(22, &[24, 0, 0, 1, *asked]),
            Record::HelloRequest if !has_asked => {
                has_asked = true;
                seal(22, &[0, 0, 0, 0]);
            }
            Record::HelloRequest => {}
            Record::Ticket => seal(22, TICKET),
            Record::Any(ALERT | HANDSHAKE, data) => seal(HANDSHAKE + 2, data),
            // Zeroes are padding in TLS 1.3, and what precedes them is the type (RFC 8446 5.4).
            Record::Any(0, data) if input.is_tls13 && has_type_of_message(data) => {}
            Record::Any(kind, data) => seal(*kind, data),
            Record::Plain(kind, data) => {
                let _ = bytes.write_all(&[*kind, 3, 3]);
                bytes.extend((data.len() as u16).to_be_bytes());
                bytes.extend_from_slice(data);
            }
            Record::Raw(data) => bytes.extend_from_slice(data),
        }
    }
    let is_kept =
        |place: u16| begins.iter().any(|begin| (0..3).contains(&usize::from(place).wrapping_sub(*begin)));
    if let Some((place, change)) = input.damage.filter(|(place, _)| !is_kept(*place))
        && let Some(byte) = bytes.get_mut(usize::from(place))
    {
        *byte ^= change;
    }
    // rustls judges the head of a record, ours the whole of it: none is left that is not whole.
    let is_sealed = |record: &Record| !matches!(record, Record::Plain(..) | Record::Raw(..));
    if input.damage.is_some() || !input.records.iter().all(is_sealed) {
        bytes.resize(bytes.len() + RECORD_BYTES_MAX, 0);
    }
    bytes
}

/// Whether the last byte before padding is the type of alerts or handshake messages. Empty ones are an error (RFC 8446 5.4) that rustls lets pass.
fn has_type_of_message(padded: &[u8]) -> bool {
    matches!(padded.iter().rfind(|byte| **byte != 0), Some(&(ALERT | HANDSHAKE)))
}

fn pieces<'a>(input: &'a Input, mut bytes: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
    let mut sizes = input.pieces.iter();
    std::iter::from_fn(move || {
        let size = sizes.next().map_or(bytes.len(), |size| usize::from(*size).clamp(1, bytes.len().max(1)));
        let (piece, rest) = bytes.split_at(size.min(bytes.len()));
        bytes = rest;
        (!piece.is_empty()).then_some(piece)
    })
}

/// RFC 8446 4.6.1: a lifetime, an age, a nonce of one byte, a ticket of two, no extensions.
const TICKET: &[u8] = &[4, 0, 0, 16, 0, 0, 0, 9, 0, 0, 0, 0, 1, 1, 0, 2, 5, 5, 0, 0];

const ALERT: u8 = 21;
const HANDSHAKE: u8 = 22;

/// An alert of TLS that ends nothing.
const USER_CANCELED: u8 = 90;

/// More than the length of any record.
const RECORD_BYTES_MAX: usize = 20_000;
