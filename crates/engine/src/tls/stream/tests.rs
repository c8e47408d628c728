//! Sessions against rustls's server: all suites, in pieces of any size, damaged, with new keys in the middle.

use rustls::client::Resumption;
use rustls::version::{TLS12, TLS13};
use rustls::{ProtocolVersion, ServerConfig, ServerConnection, SupportedProtocolVersion};
use squall_plan::TlsPolicy;
use squall_testkit::Authority;

use super::*;
use crate::pace::SplitMix;
use crate::tls::agreement::EarlyData;
use crate::tls::client_config;
use crate::tls::session::{RecordLayer, TlsStream};

/// Both ends of a session.
struct Pair {
    client: TlsStream,
    server: ServerConnection,
    /// Bytes of the server are given to the client in pieces of this size.
    piece_bytes: usize,
    received: Vec<u8>,
}

impl Pair {
    fn new(layer: RecordLayer, versions: &[&'static SupportedProtocolVersion], ciphers: &[&str]) -> Self {
        Self::with(layer, versions, ciphers, |_| {})
    }

    fn with(
        layer: RecordLayer,
        versions: &[&'static SupportedProtocolVersion],
        ciphers: &[&str],
        change: impl FnOnce(&mut ServerConfig),
    ) -> Self {
        let ciphers = ciphers.iter().map(|name| (*name).to_owned()).collect();
        let policy = TlsPolicy { insecure: true, ciphers, ..TlsPolicy::default() };
        let mut config = Authority::new().issue_for_loopback().server_config(versions);
        change(&mut config);
        let name = ServerName::try_from("localhost").unwrap();
        Self {
            client: TlsStream::with(layer, client_config(&policy).unwrap(), name).unwrap(),
            server: ServerConnection::new(Arc::new(config)).unwrap(),
            piece_bytes: usize::MAX,
            received: Vec::new(),
        }
    }

    /// A session whose handshake is over.
    fn open(layer: RecordLayer, versions: &[&'static SupportedProtocolVersion], ciphers: &[&str]) -> Self {
        let mut pair = Self::new(layer, versions, ciphers);
        pair.exchange().unwrap();
        assert!(!pair.client.is_handshaking() && !pair.server.is_handshaking());
        pair
    }

    /// Carries bytes both ways until neither has any; what the client read.
    fn exchange(&mut self) -> Result<Vec<u8>, Error> {
        let mut read = Vec::new();
        loop {
            let mut flight = Vec::new();
            while self.client.wants_write() {
                self.client.write_tls(&mut flight).unwrap();
            }
            let is_silent = flight.is_empty();
            let mut flight = &flight[..];
            while !flight.is_empty() {
                self.server.read_tls(&mut flight).unwrap();
                self.server.process_new_packets().unwrap();
                // At the end of what has come it would wait.
                let _ = self.server.reader().read_to_end(&mut self.received);
            }
            let answer = self.answer();
            if is_silent && answer.is_empty() {
                return Ok(read);
            }
            for piece in answer.chunks(self.piece_bytes.min(answer.len().max(1))) {
                read.extend(give(&mut self.client, piece)?);
            }
        }
    }

    fn answer(&mut self) -> Vec<u8> {
        let mut answer = Vec::new();
        while self.server.wants_write() {
            self.server.write_tls(&mut answer).unwrap();
        }
        answer
    }

    /// What the server has read.
    fn received(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.received)
    }
}

/// Gives the client bytes; what it reads.
fn give(client: &mut TlsStream, mut bytes: &[u8]) -> Result<Vec<u8>, Error> {
    let mut read = Vec::new();
    while !bytes.is_empty() && client.read_tls(&mut bytes).unwrap() > 0 {
        client.process()?;
        while let Some(chunk @ [_, ..]) = client.chunk()? {
            let count = chunk.len().div_ceil(2);
            read.extend_from_slice(&chunk[..count]);
            client.consume(count);
        }
    }
    Ok(read)
}

const LAYERS: [RecordLayer; 2] = [RecordLayer::Direct, RecordLayer::Rustls];

const SUITES: [(&SupportedProtocolVersion, &str); 6] = [
    (&TLS12, "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"),
    (&TLS12, "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"),
    (&TLS12, "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256"),
    (&TLS13, "TLS_AES_128_GCM_SHA256"),
    (&TLS13, "TLS_AES_256_GCM_SHA384"),
    (&TLS13, "TLS_CHACHA20_POLY1305_SHA256"),
];

#[test]
fn data_goes_both_ways_with_every_suite_in_pieces_of_any_size() {
    for layer in LAYERS {
        let large: Vec<u8> = (0..100_000_u32).map(|nth| nth as u8).collect();
        for (version, suite) in SUITES {
            for piece_bytes in [1, 7, 4096, usize::MAX] {
                let mut pair = Pair::new(layer, &[version], &[suite]);
                pair.piece_bytes = piece_bytes;
                pair.exchange().unwrap();
                assert_eq!(pair.client.agreement().map(Agreement::version), Some(version.version));
                assert_eq!(pair.client.alpn(), None);
                for round in 0..3 {
                    let mut written = 0;
                    let mut received = Vec::new();
                    while written < large.len() {
                        written += pair.client.write(&large[written..]).unwrap();
                        pair.exchange().unwrap();
                        received.extend(pair.received());
                    }
                    assert!(received == large, "{suite}, round {round}");
                    pair.server.writer().write_all(&large[..60_000]).unwrap();
                    assert!(pair.exchange().unwrap() == large[..60_000], "{suite}, round {round}");
                }
                pair.client.send_close_notify();
                let mut goodbye = Vec::new();
                pair.client.write_tls(&mut goodbye).unwrap();
                pair.server.read_tls(&mut &goodbye[..]).unwrap();
                assert!(pair.server.process_new_packets().unwrap().peer_has_closed(), "{suite}");
            }
        }
    }
}

/// A large body waits for the socket while the server says something already.
#[test]
fn as_much_as_is_taken_may_wait_while_answers_come() {
    for layer in LAYERS {
        for (version, suite) in SUITES {
            let mut pair = Pair::open(layer, &[version], &[suite]);
            let mut taken = 0;
            loop {
                match pair.client.write(&[b'x'; 10_000]).unwrap() {
                    0 => break,
                    count => taken += count,
                }
            }
            pair.server.writer().write_all(b"early answer").unwrap();
            let answer = pair.answer();
            assert_eq!(give(&mut pair.client, &answer).unwrap(), b"early answer", "{suite}");
            pair.exchange().unwrap();
            assert_eq!(pair.received().len(), taken, "{suite}");
        }
    }
}

/// The server's first data come with the last record of its handshake, as HTTP/2's SETTINGS do.
#[test]
fn data_behind_the_handshake_is_read() {
    for layer in LAYERS {
        for version in [&TLS12, &TLS13] {
            for piece_bytes in [1, 100, usize::MAX] {
                let mut pair = Pair::with(layer, &[version], &[], |config| config.send_half_rtt_data = true);
                pair.piece_bytes = piece_bytes;
                pair.server.writer().write_all(b"hello").unwrap();
                assert_eq!(pair.exchange().unwrap(), b"hello", "{version:?} in {piece_bytes}");
                assert!(!pair.client.is_handshaking());
            }
        }
    }
}

#[test]
fn keys_are_renewed_by_either_side() {
    for layer in LAYERS {
        let mut pair = Pair::open(layer, &[&TLS13], &[]);
        for round in 0..5 {
            // The server asks the client for new keys as well.
            pair.server.refresh_traffic_keys().unwrap();
            pair.server.writer().write_all(b"from the server").unwrap();
            assert_eq!(pair.exchange().unwrap(), b"from the server", "round {round}");
            pair.client.write(b"from the client").unwrap();
            pair.exchange().unwrap();
            assert_eq!(pair.received(), b"from the client", "round {round}");
        }
    }
}

#[test]
fn worn_keys_are_renewed_where_the_version_can() {
    let layer = RecordLayer::Direct;
    for (version, suite) in SUITES {
        let mut pair = Pair::open(layer, &[version], &[suite]);
        pair.client.write(b"before").unwrap();
        pair.exchange().unwrap();
        assert!(!pair.client.is_worn());
        let TlsStream::Direct(DirectStream { stage: StreamStage::Open(session), .. }) = &mut pair.client
        else {
            panic!("not open")
        };
        session.seal_count_max = session.seal.record_count();
        assert_eq!(pair.client.is_worn(), version.version == ProtocolVersion::TLSv1_2, "{suite}");
        pair.client.write(b"after").unwrap();
        pair.exchange().unwrap();
        assert_eq!(pair.received(), b"beforeafter", "{suite}");
        if version.version == ProtocolVersion::TLSv1_3 {
            let TlsStream::Direct(DirectStream { stage: StreamStage::Open(session), .. }) = &pair.client
            else {
                panic!("not open")
            };
            assert_eq!(session.seal.record_count(), 1, "{suite}: one record with new keys");
        }
    }
}

/// Handshakes of one client with one server, in order; `early`: what the client wants to send in its first flight.
fn handshakes(
    layer: RecordLayer,
    version: &'static SupportedProtocolVersion,
    piece_bytes: usize,
    early: Option<&[u8]>,
) -> [TlsStream; 2] {
    let policy = TlsPolicy { insecure: true, ..TlsPolicy::default() };
    let mut client = ClientConfig::clone(&client_config(&policy).unwrap());
    client.resumption = Resumption::in_memory_sessions(4);
    client.enable_early_data = early.is_some();
    let mut server = Authority::new().issue_for_loopback().server_config(&[version]);
    // Early data needs sessions that the server remembers.
    server.max_early_data_size = if early.is_some() { 1000 } else { 0 };
    let (client, server) = (Arc::new(client), Arc::new(server));
    [(), ()].map(|()| {
        let name = ServerName::try_from("localhost").unwrap();
        let client = TlsStream::resumable_with(layer, Arc::clone(&client), name, early).unwrap();
        let server = ServerConnection::new(Arc::clone(&server)).unwrap();
        let mut pair = Pair { client, server, piece_bytes, received: Vec::new() };
        pair.exchange().unwrap();
        pair.client
    })
}

#[test]
fn what_the_first_session_was_given_the_next_one_resumes() {
    for layer in LAYERS {
        for (version, has_tickets) in [(&TLS12, false), (&TLS13, true)] {
            for piece_bytes in [1, 7, usize::MAX] {
                let sessions = handshakes(layer, version, piece_bytes, None);
                let is_resumed = sessions.each_ref().map(|session| session.agreement().unwrap().is_resumed());
                assert_eq!(is_resumed, [false, true], "{layer:?} {version:?} in {piece_bytes}");
                assert_eq!(sessions.each_ref().map(|one| one.ticket_count() > 0), [has_tickets; 2]);
                let terms = sessions.each_ref().map(|session| session.agreement().unwrap().terms());
                assert_eq!(terms.each_ref().map(|terms| terms.chain_count), [1, 0]);
                assert_eq!(terms[0].version, terms[1].version);
            }
        }
    }
}

#[test]
fn a_request_in_the_first_flight_is_taken_where_there_is_a_ticket() {
    let sessions = handshakes(RecordLayer::Direct, &TLS13, usize::MAX, Some(b"GET / HTTP/1.1\r\n\r\n"));
    assert_eq!(sessions.map(|session| session.early_data()), [EarlyData::None, EarlyData::Accepted]);
}

#[test]
fn a_silent_session_keeps_no_buffers_and_goes_on() {
    for version in [&TLS12, &TLS13] {
        let mut pair = Pair::open(RecordLayer::Direct, &[version], &[]);
        pair.server.writer().write_all(b"in two pieces").unwrap();
        let record = pair.answer();
        for piece in record.chunks(record.len() / 2 + 1) {
            pair.received.extend(give(&mut pair.client, piece).unwrap());
            pair.client.shed_buffers();
        }
        assert_eq!(pair.received(), b"in two pieces");
        let TlsStream::Direct(DirectStream { incoming, outgoing, .. }) = &pair.client else {
            panic!("our own record layer")
        };
        assert_eq!((incoming.bytes.capacity(), outgoing.capacity()), (0, 0));
        pair.client.write(b"goes on").unwrap();
        pair.exchange().unwrap();
        assert_eq!(pair.received(), b"goes on");
    }
}

#[test]
fn a_goodbye_ends_the_data() {
    for layer in LAYERS {
        for version in [&TLS12, &TLS13] {
            let mut pair = Pair::open(layer, &[version], &[]);
            pair.server.writer().write_all(b"last words").unwrap();
            pair.server.send_close_notify();
            assert_eq!(pair.exchange().unwrap(), b"last words");
            assert_eq!(pair.client.chunk(), Ok(Some(&[][..])));
            assert_eq!(pair.client.read_tls(&mut &b"more"[..]).unwrap(), 0);
        }
    }
}

#[test]
fn what_is_wrong_has_its_name_and_the_peer_is_notified() {
    let layer = RecordLayer::Direct;
    let alert_of = |pair: &mut Pair| {
        let mut alert = Vec::new();
        while pair.client.wants_write() {
            pair.client.write_tls(&mut alert).unwrap();
        }
        pair.server.read_tls(&mut &alert[..]).unwrap();
        pair.server.process_new_packets().unwrap_err().to_string()
    };
    for (version, _) in SUITES {
        let mut pair = Pair::open(layer, &[version], &[]);
        pair.server.writer().write_all(b"hello").unwrap();
        let mut record = pair.answer();
        let last = record.len() - 1;
        record[last] ^= 1;
        assert_eq!(give(&mut pair.client, &record), Err(Error::DecryptError));
        assert!(alert_of(&mut pair).contains("BadRecordMac"));
        assert_eq!(pair.client.write(b"more"), Err(Error::HandshakeNotComplete));

        let mut pair = Pair::open(layer, &[version], &[]);
        let too_large = [23, 3, 3, 0xff, 0xff];
        assert!(give(&mut pair.client, &too_large).is_err());
        assert!(alert_of(&mut pair).contains("RecordOverflow"));

        let mut pair = Pair::open(layer, &[version], &[]);
        assert!(give(&mut pair.client, b"HTTP/1.1 400 Bad Request\r\n\r\n").is_err());
        assert!(alert_of(&mut pair).contains("DecodeError"));
    }
}

/// A client, and the keys of a server that says what no rustls would.
fn with_odd_server(layer: RecordLayer, version: &'static SupportedProtocolVersion) -> (TlsStream, Keys) {
    let mut pair = Pair::with(layer, &[version], &[], |config| config.enable_secret_extraction = true);
    pair.exchange().unwrap();
    let secrets = pair.server.dangerous_extract_secrets().unwrap();
    (pair.client, Keys::new(secrets.tx, version.version == ProtocolVersion::TLSv1_3).unwrap())
}

/// Records of a kind and a content, and what the last of them comes to in TLS 1.2 and 1.3, where that is a failure.
type OddCase<'a> = (&'a [(u8, &'a [u8])], &'a str, &'a str);

#[test]
fn what_is_no_data_is_judged_by_the_version() {
    let layer = RecordLayer::Direct;
    let ticket = [NEW_SESSION_TICKET, 0, 0, 3, 1, 2, 3];
    let cases: &[OddCase<'_>] = &[
        (&[(ALERT, &[1, 0])], "", ""),
        (
            &[(ALERT, &[2, 40])],
            "received fatal alert: HandshakeFailure",
            "received fatal alert: HandshakeFailure",
        ),
        (&[(ALERT, &[1, 90])], "", ""),
        (&[(ALERT, &[1, 41])], "", "received fatal alert: NoCertificate"),
        (&[(ALERT, &[1])], "MissingData", "MissingData"),
        (&[(HANDSHAKE, &ticket)], "UnexpectedMessage", ""),
        (&[(HANDSHAKE, &ticket[..2]), (HANDSHAKE, &ticket[2..])], "UnexpectedMessage", ""),
        (&[(HANDSHAKE, &ticket[..2]), (DATA, b"x")], "MessageInterleaved", "MessageInterleaved"),
        (&[(HANDSHAKE, &[HELLO_REQUEST, 0, 0, 0])], "", "UnexpectedMessage"),
        (&[(HANDSHAKE, &[KEY_UPDATE, 0, 0, 1, 2])], "UnexpectedMessage", "InvalidKeyUpdate"),
        (
            &[(HANDSHAKE, &[KEY_UPDATE, 0, 0, 1, 0, KEY_UPDATE])],
            "UnexpectedMessage",
            "KeyEpochWithPendingFragment",
        ),
        (
            &[(HANDSHAKE, &[NEW_SESSION_TICKET, 1, 0, 0])],
            "HandshakePayloadTooLarge",
            "HandshakePayloadTooLarge",
        ),
        (&[(HANDSHAKE, &[])], "InvalidContentType", "InvalidContentType"),
        (&[(20, &[1])], "InvalidContentType", "InvalidContentType"),
        (&[(DATA, b"")], "", ""),
    ];
    for (records, of_tls12, of_tls13) in cases {
        for (version, expected) in [(&TLS12, of_tls12), (&TLS13, of_tls13)] {
            let (mut client, mut keys) = with_odd_server(layer, version);
            let mut bytes = Vec::new();
            for (kind, content) in *records {
                keys.seal(*kind, content, &mut bytes).unwrap();
            }
            let said = give(&mut client, &bytes).map_err(|error| format!("{error} {error:?}"));
            match said {
                Ok(_) => assert_eq!(*expected, "", "{records:?} in {version:?}"),
                Err(error) => {
                    let fits = !expected.is_empty() && error.contains(expected);
                    assert!(fits, "{records:?} in {version:?}: {error}");
                }
            }
        }
    }
}

#[test]
fn what_asks_for_nothing_has_an_end() {
    let layer = RecordLayer::Direct;
    for (version, kind, content) in
        [(&TLS12, ALERT, &[1, 41][..]), (&TLS13, HANDSHAKE, &[NEW_SESSION_TICKET, 0, 0, 0])]
    {
        let (mut client, mut keys) = with_odd_server(layer, version);
        let mut record = Vec::new();
        let is_refused = (0..=IDLE_COUNT_MAX).any(|_| {
            record.clear();
            keys.seal(kind, content, &mut record).unwrap();
            give(&mut client, &record).is_err()
        });
        assert!(is_refused, "{version:?}");
    }
}

/// What comes whole before a bad record or an alert is read, wherever the reads are cut; the failure comes behind it.
#[test]
fn data_before_a_failure_is_read_whatever_the_pieces() {
    for layer in LAYERS {
        for version in [&TLS12, &TLS13] {
            for (kind, content, spoil) in [(DATA, &b"spoilt"[..], 1), (ALERT, &[2, 80], 0), (ALERT, &[1], 0)]
            {
                for piece_bytes in [1, 9, 40, usize::MAX] {
                    let (mut client, mut keys) = with_odd_server(layer, version);
                    let mut bytes = Vec::new();
                    keys.seal(DATA, b"whole ", &mut bytes).unwrap();
                    keys.seal(DATA, b"response", &mut bytes).unwrap();
                    keys.seal(kind, content, &mut bytes).unwrap();
                    *bytes.last_mut().unwrap() ^= spoil;
                    let (mut read, mut failure) = (Vec::new(), None);
                    for mut piece in bytes.chunks(piece_bytes.min(bytes.len())) {
                        client.read_tls(&mut piece).unwrap();
                        if let Err(error) = client.process() {
                            failure.get_or_insert(error);
                        }
                        while let Ok(Some(chunk @ [_, ..])) = client.chunk() {
                            let count = chunk.len();
                            read.extend_from_slice(chunk);
                            client.consume(count);
                        }
                        failure = failure.or_else(|| client.chunk().err());
                    }
                    assert_eq!(read, b"whole response", "{version:?} {piece_bytes}");
                    assert!(failure.is_some(), "{version:?} {piece_bytes}");
                }
            }
        }
    }
}

#[test]
fn records_without_data_have_an_end() {
    let layer = RecordLayer::Direct;
    for version in [&TLS12, &TLS13] {
        let (mut client, mut keys) = with_odd_server(layer, version);
        let mut send = |count: u32, content: &[u8]| {
            let mut bytes = Vec::new();
            (0..count).for_each(|_| keys.seal(DATA, content, &mut bytes).unwrap());
            bytes.chunks(4096).try_for_each(|piece| give(&mut client, piece).map(drop))
        };
        for _ in 0..3 {
            send(EMPTY_COUNT_MAX, b"").unwrap();
            send(1, b"x").unwrap();
        }
        assert!(send(EMPTY_COUNT_MAX + 1, b"").is_err(), "{version:?}");
    }
}

#[test]
fn odd_records_never_panic() {
    for layer in LAYERS {
        let mut random = SplitMix::new(13);
        for round in 0..500_usize {
            let (mut client, mut keys) = with_odd_server(layer, [&TLS12, &TLS13][round % 2]);
            let mut bytes = Vec::new();
            for _ in 0..random.next() % 4 + 1 {
                let kind = [ALERT, HANDSHAKE, HANDSHAKE, DATA, 20, 24][random.next() as usize % 6];
                let content: Vec<u8> = (0..random.next() % 12)
                    .map(|_| [0, 1, 2, 4, 24, random.next() as u8][random.next() as usize % 6])
                    .collect();
                keys.seal(kind, &content, &mut bytes).unwrap();
            }
            let size = random.next() as usize % 40 + 1;
            let _ = bytes.chunks(size).try_for_each(|piece| give(&mut client, piece).map(drop));
            client.send_close_notify();
        }
    }
}

/// Ours and rustls's own: the same records, good, odd and damaged, give the same data, and fail or do not.
#[test]
fn both_record_layers_make_the_same_of_the_same_records() {
    for seed in 0..2000 {
        let outcomes = LAYERS.map(|layer| {
            let mut random = SplitMix::new(seed);
            let (mut client, mut keys) = with_odd_server(layer, [&TLS12, &TLS13][seed as usize % 2]);
            let (mut bytes, mut records) = (Vec::new(), Vec::new());
            for _ in 0..random.next() % 5 + 1 {
                let kind = [DATA, DATA, DATA, ALERT, HANDSHAKE, 20][random.next() as usize % 6];
                // A handshake record without content is an error to us (RFC 8446 5.1) and nothing to rustls.
                let content: Vec<u8> = (0..random.next() % 12 + u64::from(kind != DATA))
                    .map(|_| [0, 1, 2, 4, 24, random.next() as u8][random.next() as usize % 6])
                    .collect();
                let begin = bytes.len();
                keys.seal(kind, &content, &mut bytes).unwrap();
                records.push((kind, content));
                if random.next().is_multiple_of(8) {
                    // Not the kind: in TLS 1.3 it has one value (RFC 8446 5.2), which rustls does not look at.
                    let place = begin + 1 + random.next() as usize % (bytes.len() - begin - 1);
                    bytes[place] ^= 1 << (random.next() % 8);
                }
            }
            let size = random.next() as usize % 40 + 1;
            let mut read = Vec::new();
            let mut pieces = bytes.chunks(size);
            let failure = pieces.find_map(|mut piece| read_piece(&mut client, &mut piece, &mut read).err());
            let has_closed = client.chunk() == Ok(Some(&[][..]));
            ((read, failure.is_some(), has_closed), (records, failure))
        });
        let [((direct, fails, closes), what), ((rustls, also_fails, also_closes), other)] = outcomes;
        // rustls forgets data that it opened in the call that fails.
        let reads_same = direct == rustls || fails && direct.starts_with(&rustls);
        let is_same = reads_same && (fails, closes) == (also_fails, also_closes);
        assert!(is_same, "seed {seed}: {what:?} {direct:?} and {:?} {rustls:?}", other.1);
    }
}

/// Gives the client a piece, and appends what it reads before it fails.
fn read_piece(client: &mut TlsStream, piece: &mut &[u8], read: &mut Vec<u8>) -> Result<(), Error> {
    while !piece.is_empty() && client.read_tls(piece).unwrap() > 0 {
        client.process()?;
        while let Some(chunk @ [_, ..]) = client.chunk()? {
            let count = chunk.len();
            read.extend_from_slice(chunk);
            client.consume(count);
        }
    }
    Ok(())
}

#[test]
fn damaged_bytes_never_panic() {
    for layer in LAYERS {
        let mut random = SplitMix::new(11);
        for round in 0..600_usize {
            let (version, suite) = SUITES[round % SUITES.len()];
            let mut pair = Pair::new(layer, &[version], &[suite]);
            let damaged_flight = random.next() % 4;
            for flight in 0..6 {
                let mut hello = Vec::new();
                while pair.client.wants_write() {
                    pair.client.write_tls(&mut hello).unwrap();
                }
                let mut rest = &hello[..];
                while !rest.is_empty() {
                    pair.server.read_tls(&mut rest).unwrap();
                    let _ = pair.server.process_new_packets();
                }
                let _ = pair.server.writer().write_all(b"some data");
                let mut answer = pair.answer();
                if flight >= damaged_flight && !answer.is_empty() {
                    let place = random.next() as usize % answer.len();
                    answer[place] ^= 1 << (random.next() % 8);
                }
                let size = random.next() as usize % 300 + 1;
                if answer.chunks(size).any(|piece| give(&mut pair.client, piece).is_err()) {
                    break;
                }
                let _ = pair.client.write(b"x");
            }
            pair.client.send_close_notify();
        }
    }
}
