//! The server's identity: self-made or from files, and the rustls configuration around it.

use std::{net::SocketAddr, path::Path, sync::Arc};

use rustls::{
    ServerConfig,
    crypto::aws_lc_rs,
    pki_types::{
        CertificateDer, PrivateKeyDer,
        pem::{self, PemObject},
    },
    server::ServerSessionMemoryCache,
};
use squall_plan::{files, limits::PEM_FILE_BYTES_MAX};

use crate::{Error, Tls, limits};

/// A TLS server ready to accept.
pub(crate) struct Identity {
    pub(crate) config: Arc<ServerConfig>,
    /// The same for QUIC.
    pub(crate) quic: ServerConfig,
    /// The certificate chain as PEM; a client that trusts it can verify the server.
    pub(crate) certificate_pem: String,
}

impl Identity {
    pub(crate) fn new(tls: &Tls, listen: SocketAddr) -> Result<Self, Error> {
        let parts = match tls {
            Tls::SelfMade { names } => make(names, listen)?,
            Tls::Pem { certificate, key } => load(certificate, key)?,
        };
        let mut config = configure(parts.chain, parts.key)?;
        let quic = for_quic(config.clone());
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        // Tickets keep the sessions with the clients: the default store holds 256, too few for tests of resumption.
        config.ticketer = aws_lc_rs::Ticketer::new()?;
        Ok(Self { config: Arc::new(config), quic, certificate_pem: parts.pem })
    }
}

struct Parts {
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
    pem: String,
}

fn make(names: &[String], listen: SocketAddr) -> Result<Parts, Error> {
    let own = ["localhost".to_owned(), "127.0.0.1".to_owned(), "::1".to_owned(), listen.ip().to_string()];
    let mut all: Vec<String> = own.into_iter().chain(names.iter().cloned()).collect();
    all.sort();
    all.dedup();
    let made = rcgen::generate_simple_self_signed(all)?;
    let key = PrivateKeyDer::Pkcs8(made.signing_key.serialize_der().into());
    Ok(Parts { pem: made.cert.pem(), chain: vec![made.cert.der().clone()], key })
}

fn load(certificate: &Path, key: &Path) -> Result<Parts, Error> {
    let bad = |path: &Path, reason: String| Error::Pem { path: path.to_owned(), reason };
    let read = |path: &Path| {
        files::read_text(path, PEM_FILE_BYTES_MAX).map_err(|error| bad(path, error.to_string()))
    };
    let text = read(certificate)?;
    let chain: Vec<_> = CertificateDer::pem_slice_iter(text.as_bytes())
        .collect::<Result<_, _>>()
        .map_err(|e| bad(certificate, explain(&e)))?;
    if chain.is_empty() {
        return Err(bad(certificate, "it contains no certificate".to_owned()));
    }
    let key = PrivateKeyDer::from_pem_slice(read(key)?.as_bytes()).map_err(|e| bad(key, explain(&e)))?;
    Ok(Parts { chain, key, pem: text })
}

fn explain(error: &pem::Error) -> String {
    match error {
        pem::Error::NoItemsFound => "it contains no private key".to_owned(),
        pem::Error::Io(error) => error.to_string(),
        other => other.to_string(),
    }
}

fn configure(
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
) -> Result<ServerConfig, rustls::Error> {
    ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(chain, key)
}

/// Early data (0-RTT) is accepted with sessions of the server's own memory alone.
fn for_quic(mut config: ServerConfig) -> ServerConfig {
    config.session_storage = ServerSessionMemoryCache::new(limits::QUIC_SESSION_COUNT_MAX);
    config
}
