//! The simulated server's side of TLS: what the client has encrypted, and where in its stream each piece of it began.
//!
//! Keys, certificate and all messages have a fixed size, so that a seed means the same run every time.

use std::io::{Read, Write};
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection};

/// One session.
pub(super) struct SecurePeer {
    tls: ServerConnection,
    /// The beginning of a record whose rest has not come.
    partial: Vec<u8>,
    /// Bytes of the client's stream before `partial`, and of what they hold.
    sealed_bytes: u64,
    plain_bytes: u64,
    /// Where each piece begins: in the plaintext, and in the stream.
    pieces: Vec<(u64, u64)>,
    is_broken: bool,
}

impl SecurePeer {
    pub(super) fn new(config: &Arc<ServerConfig>) -> Self {
        let mut tls = ServerConnection::new(Arc::clone(config)).expect("good settings");
        tls.set_buffer_limit(None);
        Self {
            tls,
            partial: Vec::new(),
            sealed_bytes: 0,
            plain_bytes: 0,
            pieces: Vec::new(),
            is_broken: false,
        }
    }

    /// Opens what has come; what it holds, and what the session itself sends for it.
    pub(super) fn open(&mut self, bytes: &[u8]) -> (Vec<u8>, Vec<u8>) {
        let mut plain = Vec::new();
        self.partial.extend_from_slice(bytes);
        while let Some([_, _, _, high, low]) = self.partial.first_chunk().copied() {
            let record_bytes = 5 + usize::from(u16::from_be_bytes([high, low]));
            if self.partial.len() < record_bytes || self.is_broken {
                break;
            }
            let record: Vec<u8> = self.partial.drain(..record_bytes).collect();
            let had = plain.len();
            let mut rest = &record[..];
            while !rest.is_empty() && !self.is_broken {
                self.tls.read_tls(&mut rest).expect("one record is taken");
                self.is_broken = self.tls.process_new_packets().is_err();
            }
            if let Some(mut early) = self.tls.early_data() {
                early.read_to_end(&mut plain).expect("it is there");
            }
            // Where there is no more for now, rustls says so by an error.
            let _ = self.tls.reader().read_to_end(&mut plain);
            if plain.len() > had {
                self.pieces.push((self.plain_bytes, self.sealed_bytes));
            }
            self.plain_bytes += (plain.len() - had) as u64;
            self.sealed_bytes += record_bytes as u64;
        }
        (plain, self.output())
    }

    /// Where the piece begins in the client's stream that holds a byte of the plaintext.
    pub(super) fn offset_of(&self, plain_offset: u64) -> u64 {
        let piece = self.pieces.iter().rev().find(|(begin, _)| *begin <= plain_offset);
        piece.map_or(0, |(_, sealed)| *sealed)
    }

    /// Seals an answer; `says_goodbye`: it is the last, and says so.
    pub(super) fn seal(&mut self, plain: &[u8], says_goodbye: bool) -> Vec<u8> {
        self.tls.writer().write_all(plain).expect("a buffer without a limit");
        if says_goodbye {
            self.tls.send_close_notify();
        }
        self.output()
    }

    fn output(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        while self.tls.wants_write() {
            self.tls.write_tls(&mut bytes).expect("a buffer takes whatever is written");
        }
        bytes
    }
}

/// The settings of a server, with a memory for sessions of its own: what it resumes belongs to one run.
pub(super) fn server_config() -> Arc<ServerConfig> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let chain = vec![CertificateDer::from_pem_slice(CERTIFICATE.as_bytes()).expect("PEM of our own")];
    let key = PrivateKeyDer::from_pem_slice(KEY.as_bytes()).expect("PEM of our own");
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("the provider speaks every version of rustls")
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .expect("the key belongs to the certificate");
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    config.max_early_data_size = 1000;
    Arc::new(config)
}

/// Of no use to anybody: made for this file.
const KEY: &str = "-----BEGIN PRIVATE KEY-----
MC4CAQAwBQYDK2VwBCIEIC4bbCJq9nx86Qb4IB4hehhowCyjzGZ9iaiZlFaYR16y
-----END PRIVATE KEY-----";

const CERTIFICATE: &str = "-----BEGIN CERTIFICATE-----
MIIBUDCCAQKgAwIBAgIUc8wIrTrTipCb5Y+hqwENmJlLXu4wBQYDK2VwMBQxEjAQ
BgNVBAMMCXNpbXVsYXRlZDAgFw0yNjExMjMxNjMwMDJaGA8yMTI2MTAzMDE2MzAw
MlowFDESMBAGA1UEAwwJc2ltdWxhdGVkMCowBQYDK2VwAyEATqwDt+V8N7gMbAlt
hm3yBfELG1uCGgR5TuyfIPYrjMOjZDBiMB0GA1UdDgQWBBTBeYEf98/hnzsz9JNx
k2FYqwya1zAfBgNVHSMEGDAWgBTBeYEf98/hnzsz9JNxk2FYqwya1zAPBgNVHRMB
Af8EBTADAQH/MA8GA1UdEQQIMAaHBH8AAAEwBQYDK2VwA0EA/nwDg0SYzGhHorYH
lF2dVF0x3aq1yMaJf9WxRfskgt8xrvducn4yv4EQf7p2Xoi/OFLEnShiNky/63A9
fLsrBg==
-----END CERTIFICATE-----";
