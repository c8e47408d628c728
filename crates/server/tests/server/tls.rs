//! The server over TLS, verified as a real client would.

use std::{fs, io::Write, net::TcpStream, sync::Arc};

use rustls::{
    ClientConfig, ClientConnection, HandshakeKind, RootCertStore, StreamOwned,
    crypto::aws_lc_rs,
    pki_types::{CertificateDer, pem::PemObject},
};
use squall_server::{Options, Target, Tls};

use crate::{
    client::{Client, connect},
    connections::wait_until,
};

fn start(tls: Tls) -> Target {
    Target::start(&Options { tls: Some(tls), ..Options::default() }).unwrap()
}

/// Trusts the server's certificate, and nothing else.
fn client_config(target: &Target) -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(target.certificate_pem().unwrap().as_bytes()).unwrap()).unwrap();
    let builder = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()));
    let mut config = builder
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Arc::new(config)
}

pub(crate) type TlsClient = Client<StreamOwned<ClientConnection, TcpStream>>;

fn tls_client(target: &Target, config: &Arc<ClientConfig>, name: &str) -> TlsClient {
    let session = ClientConnection::new(Arc::clone(config), name.to_owned().try_into().unwrap()).unwrap();
    Client::new(StreamOwned::new(session, connect(target.address())))
}

/// A client of a server with a certificate of its own.
pub(crate) fn client(target: &Target) -> TlsClient {
    tls_client(target, &client_config(target), "localhost")
}

#[test]
fn self_made_certificate_is_valid_for_its_names() {
    let target = start(Tls::SelfMade { names: vec!["squall.test".to_owned()] });
    let config = client_config(&target);
    for name in ["localhost", "127.0.0.1", "::1", "squall.test"] {
        let mut client = tls_client(&target, &config, name);
        assert_eq!(client.get("/get").json()["url"], "https://squall.test/get", "{name}");
        assert_eq!(client.get("/bytes/300000").body.len(), 300_000, "{name}");
        assert_eq!(client.stream.get_ref().conn.alpn_protocol(), Some(b"http/1.1".as_slice()));
    }
    let mut wrong = tls_client(&target, &config, "other.test").stream.into_inner();
    assert!(wrong.write_all(b"GET").and_then(|()| wrong.flush()).is_err());
}

#[test]
fn handshakes_are_counted_and_sessions_resumed() {
    let target = start(Tls::SelfMade { names: Vec::new() });
    let config = client_config(&target);
    let kind = || {
        let mut client = tls_client(&target, &config, "localhost");
        assert_eq!(client.get("/").status, 200);
        client.stream.get_ref().conn.handshake_kind().unwrap()
    };
    assert_eq!(kind(), HandshakeKind::Full);
    assert_eq!(kind(), HandshakeKind::Resumed);
    connect(target.address()).write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    wait_until(|| target.stats().tls_handshakes_failed == 1);
    let stats = target.stats();
    assert_eq!((stats.tls_handshakes, stats.tls_handshakes_resumed, stats.connections), (2, 1, 3));
}

#[test]
fn certificate_and_key_may_come_from_files() {
    let made = rcgen::generate_simple_self_signed(vec!["files.test".to_owned()]).unwrap();
    let folder = std::env::temp_dir().join(format!("squall-server-pem-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let (certificate, key) = (folder.join("cert.pem"), folder.join("key.pem"));
    fs::write(&certificate, made.cert.pem()).unwrap();
    fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    let target = start(Tls::Pem { certificate, key });
    fs::remove_dir_all(&folder).unwrap();
    let config = client_config(&target);
    assert_eq!(tls_client(&target, &config, "files.test").get("/").status, 200);
}
