//! The server over QUIC.

use std::{fmt::Write, num::NonZeroUsize, sync::Arc, time::Duration};

use quinn::{ClientConfig, Connection, Endpoint, RecvStream, VarInt, crypto::rustls::QuicClientConfig};
use rustls::{
    RootCertStore,
    crypto::aws_lc_rs,
    pki_types::{CertificateDer, pem::PemObject},
};
use squall_server::{Options, Target, Tls};
use squall_wire::{
    ErrorCode, Event,
    h1::{Fields, HeadView, RequestHead, RequestKind, Sink},
    h3::{Client, HeadCache, Request, Setup, prepare},
};

fn start(threads: usize) -> Target {
    let tls = Some(Tls::SelfMade { names: Vec::new() });
    let threads = NonZeroUsize::new(threads).unwrap();
    Target::start(&Options { tls, threads, http3: true, ..Options::default() }).unwrap()
}

/// Runs a test's client.
fn run<T>(client: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async { tokio::time::timeout(Duration::from_secs(60), client).await.unwrap() })
}

fn client_endpoint(target: &Target) -> Endpoint {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(target.certificate_pem().unwrap().as_bytes()).unwrap()).unwrap();
    let builder = rustls::ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()));
    let mut config = builder
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"h3".to_vec()];
    config.enable_early_data = true;
    let mut endpoint = Endpoint::client(([127, 0, 0, 1], 0).into()).unwrap();
    endpoint
        .set_default_client_config(ClientConfig::new(Arc::new(QuicClientConfig::try_from(config).unwrap())));
    endpoint
}

/// Waits without holding up the client.
async fn wait_until(is_true: impl Fn() -> bool) {
    while !is_true() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// One connection.
struct Peer {
    quic: Connection,
    client: Client,
    cache: HeadCache,
    _control: quinn::SendStream,
}

/// What is asked.
#[derive(Clone, Copy)]
struct Ask<'a> {
    method: &'a str,
    path: &'a str,
    body: &'a [u8],
}

/// A response that was read to its end.
#[derive(Debug, Default, PartialEq, Eq)]
struct Answer {
    head: String,
    body: Vec<u8>,
    end: String,
}

impl Sink for Answer {
    fn head(&mut self, head: &HeadView<'_>) {
        write!(self.head, "{} {}", head.status(), lines(head.fields())).unwrap();
    }

    fn data(&mut self, bytes: &[u8]) {
        self.body.extend_from_slice(bytes);
    }
}

fn lines(fields: Fields<'_>) -> String {
    let text = String::from_utf8_lossy;
    fields
        .filter(|field| field.name != b"date")
        .map(|field| format!("{}={} ", text(field.name), text(field.value)))
        .collect()
}

impl Peer {
    async fn connect(endpoint: &Endpoint, target: &Target) -> Self {
        Self::talk(endpoint.connect(target.address(), "localhost").unwrap().await.unwrap()).await
    }

    async fn talk(quic: Connection) -> Self {
        let client = Client::new(Setup { grease: Some(5), has_grease_stream: true, ..Setup::new(200) });
        let mut control = quic.open_uni().await.unwrap();
        control.write_all(client.uni_output(2)).await.unwrap();
        // One that means nothing.
        let mut grease = quic.open_uni().await.unwrap();
        grease.write_all(client.uni_output(6)).await.unwrap();
        let mut peer = Self { quic, client, cache: HeadCache::default(), _control: control };
        peer.client.set_stream_limit(u64::MAX);
        peer
    }

    /// Sends all requests, then reads all responses.
    async fn ask_all(&mut self, asks: &[Ask<'_>]) -> Vec<Answer> {
        let mut streams = Vec::new();
        for ask in asks {
            streams.push(self.send(ask).await);
        }
        let mut answers = Vec::new();
        for stream in streams {
            answers.push(self.read(stream).await);
        }
        answers
    }

    async fn ask(&mut self, method: &str, path: &str, body: &[u8]) -> Answer {
        self.ask_all(&[Ask { method, path, body }]).await.remove(0)
    }

    async fn send(&mut self, ask: &Ask<'_>) -> RecvStream {
        let length = (!ask.body.is_empty()).then_some(ask.body.len() as u64);
        let head = RequestHead {
            method: ask.method,
            target: ask.path,
            host: Some("localhost"),
            headers: &[],
            content_length: length,
        };
        let section = prepare(&head, "https").unwrap();
        let kind = if ask.method == "HEAD" { RequestKind::Head } else { RequestKind::Other };
        let (mut send, recv) = self.quic.open_bi().await.unwrap();
        let slot = self.client.reserve().unwrap();
        let mut out = Vec::new();
        self.client.start(Request { section: &section, kind, body_bytes: ask.body.len() as u64 }, &mut out);
        assert_eq!(self.client.stream_of(slot), Some(recv.id().into()));
        while let Some(chunk) = self.client.next_chunk(100_000, &mut out) {
            out.extend_from_slice(&ask.body[chunk.offset as usize..][..chunk.bytes]);
            send.write_all(&out).await.unwrap();
            out.clear();
        }
        send.write_all(&out).await.unwrap();
        send.finish().unwrap();
        recv
    }

    async fn read(&mut self, mut recv: RecvStream) -> Answer {
        let id = recv.id().into();
        let mut answer = Answer::default();
        loop {
            let (bytes, is_fin) = match recv.read_chunk(usize::MAX, true).await {
                Ok(chunk) => (chunk.as_ref().map_or(&[][..], |chunk| &chunk.bytes).to_vec(), chunk.is_none()),
                Err(quinn::ReadError::Reset(code)) => {
                    let event = self.client.handle_reset(id, ErrorCode(code.into())).unwrap();
                    answer.end = format!("{event:?}");
                    return answer;
                }
                Err(error) => {
                    answer.end = error.to_string();
                    return answer;
                }
            };
            let read = self.client.decode_stream(&mut self.cache, id, (&bytes, is_fin), &mut answer).unwrap();
            if let Some(Event::Received { response: Some(response), .. }) = read.event {
                answer.end = format!("{} bytes", response.body_bytes);
                return answer;
            }
        }
    }
}

#[test]
fn routes_answer_as_over_tcp() {
    let target = start(2);
    run(async {
        let endpoint = client_endpoint(&target);
        let mut peer = Peer::connect(&endpoint, &target).await;
        let upload = vec![7; 1_000_000];
        for (method, path, body, head, bytes) in [
            (
                "GET",
                "/bytes/1000",
                &[][..],
                "200 content-type=application/octet-stream content-length=1000 ",
                1000,
            ),
            ("HEAD", "/bytes/1000", &[], "200 content-type=application/octet-stream content-length=1000 ", 0),
            (
                "GET",
                "/bytes/1000000",
                &[],
                "200 content-type=application/octet-stream content-length=1000000 ",
                1_000_000,
            ),
            ("GET", "/stream-bytes/300000", &[], "200 content-type=application/octet-stream ", 300_000),
            ("GET", "/status/204", &[], "204 ", 0),
            ("GET", "/status/304", &[], "304 ", 0),
        ] {
            let answer = peer.ask(method, path, body).await;
            assert_eq!((answer.head.as_str(), answer.body.len()), (head, bytes), "{method} {path}");
            assert_eq!(answer.end, format!("{bytes} bytes"), "{method} {path}");
        }
        let answer = peer.ask("POST", "/upload", &upload).await;
        assert!(String::from_utf8_lossy(&answer.body).contains("1000000"), "{answer:?}");
        let url = peer.ask("GET", "/get?a=b", b"").await.body;
        let port = target.address().port();
        assert!(String::from_utf8_lossy(&url).contains("https://localhost/get?a=b"), "port {port}");
        let answer = peer.ask("GET", "/nowhere", b"").await;
        assert!(answer.head.starts_with("404 "), "{answer:?}");
    });
    let stats = target.stop();
    assert_eq!(
        (stats.connections, stats.connections_open, stats.requests, stats.tls_handshakes),
        (1, 0, 9, 1)
    );
    assert_eq!((stats.requests_finished, stats.requests_cut, stats.body_bytes_received), (9, 0, 1_000_000));
}

#[test]
fn many_streams_and_connections_at_once() {
    let target = start(2);
    run(async {
        let endpoint = client_endpoint(&target);
        for _ in 0..4 {
            let mut peer = Peer::connect(&endpoint, &target).await;
            let asks = [Ask { method: "GET", path: "/bytes/5000", body: b"" }; 200];
            let answers = peer.ask_all(&asks).await;
            assert!(answers.iter().all(|answer| answer.body.len() == 5000));
        }
    });
    let stats = target.stop();
    assert_eq!((stats.connections, stats.requests, stats.requests_finished), (4, 800, 800));
}

/// What goes wrong on one stream leaves the others alone; a broken rule ends the connection with its code.
#[test]
fn faults_cost_what_they_must() {
    let target = start(1);
    run(async {
        let endpoint = client_endpoint(&target);
        let mut peer = Peer::connect(&endpoint, &target).await;
        for path in ["/abort", "/abort?how=close", "/abort?after=10"] {
            let answer = peer.ask("GET", path, b"").await;
            assert!(answer.end.contains("Reset(H3_INTERNAL_ERROR)"), "{path}: {answer:?}");
        }
        // The client gives up a response that never comes.
        let mut hanging = peer.send(&Ask { method: "GET", path: "/hang", body: b"" }).await;
        wait_until(|| target.stats().requests == 4).await;
        hanging.stop(VarInt::from_u32(0x10c)).unwrap();
        assert_eq!(peer.ask("GET", "/health", b"").await.body, b"ok\n");
        wait_until(|| target.stats().requests_cut == 4).await;

        let (mut send, _recv) = peer.quic.open_bi().await.unwrap();
        send.write_all(&[0, 1, b'x']).await.unwrap();
        let error = peer.quic.closed().await.to_string();
        assert!(error.contains("DATA before the head"), "{error}");
    });
    assert_eq!(target.stop().connections_open, 0);
}

/// A client that comes again may ask with its first packet.
#[test]
fn early_data_is_answered() {
    let target = start(1);
    run(async {
        let endpoint = client_endpoint(&target);
        let mut peer = Peer::connect(&endpoint, &target).await;
        assert_eq!(peer.ask("GET", "/health", b"").await.body, b"ok\n");
        peer.quic.close(VarInt::from_u32(0x100), b"");
        let connecting = endpoint.connect(target.address(), "localhost").unwrap();
        let (quic, accepted) = connecting.into_0rtt().ok().unwrap();
        let mut peer = Peer::talk(quic).await;
        assert_eq!(peer.ask("GET", "/health", b"").await.body, b"ok\n");
        assert!(accepted.await);
    });
}

/// The same connection goes on from another address, whichever thread serves it.
#[test]
fn a_connection_may_move() {
    let target = start(2);
    run(async {
        let endpoint = client_endpoint(&target);
        let mut peer = Peer::connect(&endpoint, &target).await;
        for _ in 0..4 {
            assert_eq!(peer.ask("GET", "/health", b"").await.body, b"ok\n");
            endpoint.rebind(std::net::UdpSocket::bind(("127.0.0.1", 0)).unwrap()).unwrap();
        }
        assert_eq!(peer.ask("GET", "/health", b"").await.body, b"ok\n");
    });
    assert_eq!(target.stop().connections, 1);
}

#[test]
fn responses_over_tcp_announce_it() {
    let target = start(1);
    let port = target.address().port();
    let mut client = crate::tls::client(&target);
    let head = client.get("/").head.to_lowercase();
    assert!(head.contains(&format!("alt-svc: h3=\":{port}\"; ma=86400")), "{head}");
    let error = Target::start(&Options { http3: true, ..Options::default() }).err().unwrap();
    assert_eq!(error.to_string(), "cannot serve HTTP/3 without TLS");
    assert!(error.help().is_some());
}
