//! The ways in which a TLS server goes wrong, each as a rustls configuration or as raw bytes.

use std::io::{self, Write};
use std::sync::Arc;

use rustls::server::{ResolvesServerCertUsingSni, WebPkiClientVerifier};
use rustls::version::{TLS12, TLS13};
use rustls::{ALL_VERSIONS, RootCertStore, ServerConfig, ServerConnection};

use crate::acceptor::Socket;
use crate::identity::{Authority, Validity, server_config_builder};

/// How TLS goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tls {
    /// The peer is asked by plain `http`.
    No,
    /// It does not: a good certificate from an authority that the client is configured to trust.
    Valid,
    /// The client speaks TLS; the acts answer it in raw bytes.
    Raw,
    /// The peer answers the `ClientHello` with its `ServerHello` alone; these raw bytes follow, then the acts.
    HelloThen(&'static [u8]),
    /// The certificate is for another name.
    WrongName,
    /// The certificate ended long ago.
    Expired,
    /// The client is not configured to trust the authority.
    Untrusted,
    /// TLS 1.2 alone.
    Only12,
    /// TLS 1.3 alone.
    Only13,
    /// HTTP/2 alone, by ALPN.
    OnlyH2,
    /// A client certificate is demanded.
    WantsClientCert,
    /// No certificate is there for the name that the client sends.
    UnknownName,
}

/// What a hostile server needs for its TLS.
pub(super) struct SetUp {
    pub(super) config: Option<Arc<ServerConfig>>,
    pub(super) after_hello: Option<&'static [u8]>,
    pub(super) ca_pem: Option<String>,
}

impl Tls {
    pub(super) fn set_up(self) -> SetUp {
        if matches!(self, Self::No | Self::Raw) {
            return SetUp { config: None, after_hello: None, ca_pem: None };
        }
        let authority = Authority::new();
        SetUp {
            config: Some(Arc::new(self.server_config(&authority))),
            after_hello: if let Self::HelloThen(bytes) = self { Some(bytes) } else { None },
            ca_pem: (self != Self::Untrusted).then(|| authority.pem()),
        }
    }

    fn server_config(self, authority: &Authority) -> ServerConfig {
        let good = authority.issue_for_loopback();
        match self {
            Self::WrongName => {
                authority.issue(&["elsewhere.example"], Validity::Current).server_config(ALL_VERSIONS)
            }
            Self::Expired => authority.issue(&["127.0.0.1"], Validity::Expired).server_config(ALL_VERSIONS),
            Self::Only12 => good.server_config(&[&TLS12]),
            Self::Only13 | Self::HelloThen(_) => good.server_config(&[&TLS13]),
            Self::OnlyH2 => {
                let mut config = good.server_config(ALL_VERSIONS);
                config.alpn_protocols = vec![b"h2".to_vec()];
                config
            }
            Self::WantsClientCert => {
                let verifier = WebPkiClientVerifier::builder(Arc::new(roots(authority))).build();
                server_config_builder(ALL_VERSIONS)
                    .with_client_cert_verifier(verifier.expect("one root is enough"))
                    .with_single_cert(good.chain(), good.key())
                    .expect("the key belongs to the certificate")
            }
            Self::UnknownName => server_config_builder(ALL_VERSIONS)
                .with_no_client_auth()
                .with_cert_resolver(Arc::new(ResolvesServerCertUsingSni::new())),
            Self::No | Self::Raw | Self::Valid | Self::Untrusted => good.server_config(ALL_VERSIONS),
        }
    }
}

/// Reads the `ClientHello` and sends the first record of the answer, which is the `ServerHello`.
pub(super) fn answer_hello_only(mut session: ServerConnection, socket: &mut Socket) -> io::Result<()> {
    while !session.wants_write() {
        if session.read_tls(socket)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        session.process_new_packets().map_err(io::Error::other)?;
    }
    let mut flight = Vec::new();
    session.write_tls(&mut flight)?;
    // RFC 8446 5.1: type, version (2 bytes), length (2 bytes), fragment.
    let record_bytes = 5 + usize::from(u16::from_be_bytes([flight[3], flight[4]]));
    socket.write_all(&flight[..record_bytes])
}

fn roots(authority: &Authority) -> RootCertStore {
    let mut roots = RootCertStore::empty();
    roots.add(authority.der()).expect("a well-formed certificate");
    roots
}
