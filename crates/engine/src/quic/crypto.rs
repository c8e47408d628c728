//! TLS as QUIC carries it: rustls's handshake behind the interface that quinn-proto has for it.
//!
//! quinn-proto's own does not say what was agreed on, how many tickets came, or why a handshake failed other than in words. Owns: nothing but that.

use std::any::Any;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ::aws_lc_rs::aead::{AES_128_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use quinn_proto::crypto::{self, ExportKeyingMaterialError, HeaderKey, KeyPair, Keys, PacketKey};
use quinn_proto::transport_parameters::TransportParameters;
use quinn_proto::{ConnectError, ConnectionId, Side, TransportError, TransportErrorCode};
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::ServerName;
use rustls::quic::{ClientConnection, KeyChange, Secrets, Suite, Version};
use rustls::{CipherSuite, ClientConfig, Error};

use crate::tls::Agreement;

/// Begins the TLS sessions of connections with the same settings.
pub(super) struct Settings {
    config: Arc<ClientConfig>,
    /// What the first packets are protected with (RFC 9001 5.2), whatever is agreed on.
    initial: Suite,
}

/// How far a session is, as [`HandshakeState::of`] gets it from a connection.
#[derive(Debug)]
pub(super) struct HandshakeState {
    /// What was agreed on, once that is so.
    pub(super) agreement: Option<Agreement>,
    pub(super) ticket_count: u32,
    /// Why it has failed, where that is for a reason of TLS.
    pub(super) failure: Option<Error>,
    tls: SharedTls,
}

/// A handshake, and what comes after it: tickets. Emptied when none are wanted: it takes kilobytes.
type SharedTls = Arc<Mutex<Option<Box<ClientConnection>>>>;

/// One session.
struct Session {
    tls: SharedTls,
    initial: Suite,
    /// What the keys after the present ones are made of.
    successor: Option<Secrets>,
    failure: Option<Error>,
}

impl Settings {
    pub(super) fn new(config: Arc<ClientConfig>) -> Result<Self, Error> {
        // Which suites are offered may leave out the one that the first packets need.
        let suites = [&config.crypto_provider().cipher_suites, &aws_lc_rs::default_provider().cipher_suites]
            .into_iter()
            .flatten()
            .copied()
            .collect::<Vec<_>>();
        let first = suites.iter().find(|suite| suite.suite() == CipherSuite::TLS13_AES_128_GCM_SHA256);
        let initial = first.and_then(|suite| suite.tls13()?.quic_suite());
        let initial =
            initial.ok_or_else(|| Error::General("QUIC needs TLS_AES_128_GCM_SHA256".to_owned()))?;
        Ok(Self { config, initial })
    }
}

impl crypto::ClientConfig for Settings {
    fn start_session(
        self: Arc<Self>,
        _version: u32,
        server_name: &str,
        params: &TransportParameters,
    ) -> Result<Box<dyn crypto::Session>, ConnectError> {
        let invalid = || ConnectError::InvalidServerName(server_name.to_owned());
        let name = ServerName::try_from(server_name).map_err(|_| invalid())?.to_owned();
        let mut encoded = Vec::new();
        params.write(&mut encoded);
        let config = Arc::clone(&self.config);
        let tls = ClientConnection::new(config, Version::V1, name, encoded).map_err(|_| invalid())?;
        let tls = Arc::new(Mutex::new(Some(Box::new(tls))));
        Ok(Box::new(Session { tls, initial: self.initial, successor: None, failure: None }))
    }
}

impl HandshakeState {
    /// That of a connection.
    pub(super) fn of(connection: &quinn_proto::Connection) -> Option<Box<Self>> {
        connection.crypto_session().handshake_data()?.downcast().ok()
    }

    /// Drops what only tickets need, once the handshake is over. The keys of packets are elsewhere.
    pub(super) fn drop_tls(&self) {
        *locked(&self.tls) = None;
    }
}

impl Session {
    fn tls(&self) -> MutexGuard<'_, Option<Box<ClientConnection>>> {
        locked(&self.tls)
    }
}

fn locked(tls: &SharedTls) -> MutexGuard<'_, Option<Box<ClientConnection>>> {
    tls.lock().unwrap_or_else(PoisonError::into_inner)
}

impl crypto::Session for Session {
    fn initial_keys(&self, dst_cid: &ConnectionId, side: Side) -> Keys {
        let side = match side {
            Side::Client => rustls::Side::Client,
            Side::Server => rustls::Side::Server,
        };
        keys_of(self.initial.keys(dst_cid, side, Version::V1))
    }

    fn handshake_data(&self) -> Option<Box<dyn Any>> {
        let tls = self.tls();
        let finished = tls.as_ref().filter(|tls| !tls.is_handshaking());
        Some(Box::new(HandshakeState {
            agreement: finished.and_then(|tls| Agreement::of(tls).ok()),
            ticket_count: tls.as_ref().map_or(0, |tls| tls.tls13_tickets_received()),
            failure: self.failure.clone(),
            tls: Arc::clone(&self.tls),
        }))
    }

    fn peer_identity(&self) -> Option<Box<dyn Any>> {
        None
    }

    fn early_crypto(&self) -> Option<(Box<dyn HeaderKey>, Box<dyn PacketKey>)> {
        let keys = self.tls().as_ref()?.zero_rtt_keys()?;
        Some((Box::new(keys.header), Box::new(keys.packet)))
    }

    fn early_data_accepted(&self) -> Option<bool> {
        Some(self.tls().as_ref().is_some_and(|tls| tls.is_early_data_accepted()))
    }

    fn is_handshaking(&self) -> bool {
        self.tls().as_ref().is_some_and(|tls| tls.is_handshaking())
    }

    fn read_handshake(&mut self, buf: &[u8]) -> Result<bool, TransportError> {
        let mut locked = locked(&self.tls);
        let Some(tls) = locked.as_mut() else { return Ok(false) };
        let Err(error) = tls.read_hs(buf) else { return Ok(false) };
        let code = match tls.alert() {
            // RFC 9001 4.8: an alert becomes a code.
            Some(alert) => TransportErrorCode::crypto(alert.into()),
            None => TransportErrorCode::PROTOCOL_VIOLATION,
        };
        let reason = error.to_string();
        self.failure = Some(error);
        Err(TransportError { code, frame: None, reason })
    }

    fn transport_parameters(&self) -> Result<Option<TransportParameters>, TransportError> {
        let tls = self.tls();
        let encoded = tls.as_ref().and_then(|tls| tls.quic_transport_parameters());
        let Some(mut encoded) = encoded else { return Ok(None) };
        Ok(Some(TransportParameters::read(Side::Client, &mut encoded)?))
    }

    fn write_handshake(&mut self, buf: &mut Vec<u8>) -> Option<Keys> {
        let change = self.tls().as_mut()?.write_hs(buf)?;
        Some(keys_of(match change {
            KeyChange::Handshake { keys } => keys,
            KeyChange::OneRtt { keys, next } => {
                self.successor = Some(next);
                keys
            }
        }))
    }

    fn next_1rtt_keys(&mut self) -> Option<KeyPair<Box<dyn PacketKey>>> {
        let keys = self.successor.as_mut()?.next_packet_keys();
        Some(KeyPair { local: Box::new(keys.local), remote: Box::new(keys.remote) })
    }

    /// RFC 9001 5.8: the tag of a Retry packet shows that it answers our first one.
    fn is_valid_retry(&self, orig_dst_cid: &ConnectionId, header: &[u8], payload: &[u8]) -> bool {
        let Some(tag_at) = payload.len().checked_sub(AES_128_GCM.tag_len()) else { return false };
        let (token, tag) = payload.split_at(tag_at);
        let pseudo_packet = [&[orig_dst_cid.len() as u8], &orig_dst_cid[..], header, token].concat();
        let Ok(key) = UnboundKey::new(&AES_128_GCM, &RETRY_KEY) else { return false };
        let nonce = Nonce::assume_unique_for_key(RETRY_NONCE);
        LessSafeKey::new(key).open_in_place(nonce, Aad::from(pseudo_packet), &mut tag.to_vec()).is_ok()
    }

    /// Nothing of ours asks for it.
    fn export_keying_material(
        &self,
        _output: &mut [u8],
        _label: &[u8],
        _context: &[u8],
    ) -> Result<(), ExportKeyingMaterialError> {
        Err(ExportKeyingMaterialError)
    }
}

fn keys_of(keys: rustls::quic::Keys) -> Keys {
    Keys {
        header: KeyPair { local: Box::new(keys.local.header), remote: Box::new(keys.remote.header) },
        packet: KeyPair { local: Box::new(keys.local.packet), remote: Box::new(keys.remote.packet) },
    }
}

/// RFC 9001 5.8, of QUIC version 1.
const RETRY_KEY: [u8; 16] =
    [0xbe, 0x0c, 0x69, 0x0b, 0x9f, 0x66, 0x57, 0x5a, 0x1d, 0x76, 0x6b, 0x54, 0xe3, 0x68, 0xc8, 0x4e];
const RETRY_NONCE: [u8; 12] = [0x46, 0x15, 0x99, 0xd3, 0x5d, 0x63, 0x2b, 0xf2, 0x23, 0x98, 0x25, 0xbb];
