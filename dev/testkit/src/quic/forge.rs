//! A server's TLS whose transport parameters and packets can be forged: quinn-proto itself sends nothing that breaks the rules.
//!
//! Owns: rustls's handshake behind quinn-proto's interface for it, and what is put in the place of what that was to carry. Packets keep their numbers
//! and sizes, so that quinn-proto does not notice.

use std::any::Any;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::BytesMut;
use quinn_proto::crypto::rustls::QuicServerConfig;
use quinn_proto::crypto::{
    self, CryptoError, ExportKeyingMaterialError, HeaderKey, KeyPair, Keys, PacketKey, UnsupportedVersion,
};
use quinn_proto::transport_parameters::TransportParameters;
use quinn_proto::{ConnectionId, Side, TransportError, TransportErrorCode};
use rustls::quic::{KeyChange, Secrets, ServerConnection, Version};

use super::Peer;

/// Frames that the next packet with room for them has in the place of its own.
#[derive(Debug, Clone, Default)]
pub(super) struct Forgery(Arc<Mutex<Option<&'static [u8]>>>);

/// Begins the TLS sessions of a server.
pub(super) struct ForgedConfig {
    pub(super) peer: Peer,
    pub(super) tls: Arc<rustls::ServerConfig>,
    /// What needs no forging.
    pub(super) plain: Arc<QuicServerConfig>,
    pub(super) forgery: Forgery,
}

struct ForgedSession {
    config: Arc<ForgedConfig>,
    tls: ServerConnection,
    successor: Option<Secrets>,
}

/// Protects packets, some of which it rewrites first.
struct ForgingKey {
    key: Box<dyn PacketKey>,
    forgery: Forgery,
    withholds_ids: bool,
}

impl Forgery {
    pub(super) fn set(&self, frames: &'static [u8]) {
        *self.slot() = Some(frames);
    }

    fn slot(&self) -> MutexGuard<'_, Option<&'static [u8]>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn apply(&self, payload: &mut [u8]) {
        let mut slot = self.slot();
        if let Some(frames) = slot.take_if(|frames| frames.len() <= payload.len()) {
            // What is left is PADDING.
            payload.fill(0);
            payload[..frames.len()].copy_from_slice(frames);
        }
    }
}

impl crypto::ServerConfig for ForgedConfig {
    fn initial_keys(&self, version: u32, dst_cid: &ConnectionId) -> Result<Keys, UnsupportedVersion> {
        self.plain.initial_keys(version, dst_cid)
    }

    fn retry_tag(&self, version: u32, orig_dst_cid: &ConnectionId, packet: &[u8]) -> [u8; 16] {
        self.plain.retry_tag(version, orig_dst_cid, packet)
    }

    fn start_session(
        self: Arc<Self>,
        _version: u32,
        params: &TransportParameters,
    ) -> Box<dyn crypto::Session> {
        let mut encoded = Vec::new();
        params.write(&mut encoded);
        (self.peer.parameters)(&mut encoded);
        let tls = ServerConnection::new(Arc::clone(&self.tls), Version::V1, encoded);
        let tls = tls.expect("the settings are of TLS 1.3");
        Box::new(ForgedSession { config: self, tls, successor: None })
    }
}

impl crypto::Session for ForgedSession {
    fn initial_keys(&self, dst_cid: &ConnectionId, _side: Side) -> Keys {
        let keys = crypto::ServerConfig::initial_keys(&*self.config.plain, 1, dst_cid);
        keys.unwrap_or_else(|_| unreachable!("version 1 is known"))
    }

    fn handshake_data(&self) -> Option<Box<dyn Any>> {
        None
    }

    fn peer_identity(&self) -> Option<Box<dyn Any>> {
        None
    }

    fn early_crypto(&self) -> Option<(Box<dyn HeaderKey>, Box<dyn PacketKey>)> {
        let keys = self.tls.zero_rtt_keys()?;
        Some((Box::new(keys.header), Box::new(keys.packet)))
    }

    fn early_data_accepted(&self) -> Option<bool> {
        None
    }

    fn is_handshaking(&self) -> bool {
        self.tls.is_handshaking()
    }

    fn read_handshake(&mut self, buf: &[u8]) -> Result<bool, TransportError> {
        let Err(error) = self.tls.read_hs(buf) else { return Ok(false) };
        let alert = self.tls.alert().map(|alert| TransportErrorCode::crypto(alert.into()));
        let code = alert.unwrap_or(TransportErrorCode::PROTOCOL_VIOLATION);
        Err(TransportError { code, frame: None, reason: error.to_string() })
    }

    fn transport_parameters(&self) -> Result<Option<TransportParameters>, TransportError> {
        let Some(mut encoded) = self.tls.quic_transport_parameters() else { return Ok(None) };
        Ok(Some(TransportParameters::read(Side::Server, &mut encoded)?))
    }

    fn write_handshake(&mut self, buf: &mut Vec<u8>) -> Option<Keys> {
        let peer = &self.config.peer;
        let (keys, forgery) = match self.tls.write_hs(buf)? {
            KeyChange::Handshake { keys } => {
                let forgery = Forgery::default();
                if !peer.handshake_frames.is_empty() {
                    forgery.set(peer.handshake_frames);
                }
                (keys, forgery)
            }
            KeyChange::OneRtt { keys, next } => {
                self.successor = Some(next);
                (keys, self.config.forgery.clone())
            }
        };
        let withholds_ids = peer.withholds_ids;
        let local = ForgingKey { key: Box::new(keys.local.packet), forgery, withholds_ids };
        Some(Keys {
            header: KeyPair { local: Box::new(keys.local.header), remote: Box::new(keys.remote.header) },
            packet: KeyPair { local: Box::new(local), remote: Box::new(keys.remote.packet) },
        })
    }

    fn next_1rtt_keys(&mut self) -> Option<KeyPair<Box<dyn PacketKey>>> {
        let keys = self.successor.as_mut()?.next_packet_keys();
        Some(KeyPair { local: Box::new(keys.local), remote: Box::new(keys.remote) })
    }

    /// Only clients receive them.
    fn is_valid_retry(&self, _orig_dst_cid: &ConnectionId, _header: &[u8], _payload: &[u8]) -> bool {
        false
    }

    fn export_keying_material(
        &self,
        _output: &mut [u8],
        _label: &[u8],
        _context: &[u8],
    ) -> Result<(), ExportKeyingMaterialError> {
        Err(ExportKeyingMaterialError)
    }
}

impl PacketKey for ForgingKey {
    fn encrypt(&self, packet: u64, buf: &mut [u8], header_len: usize) {
        let end = buf.len() - self.tag_len();
        let payload = &mut buf[header_len..end];
        if self.withholds_ids {
            blank_connection_ids(payload);
        }
        self.forgery.apply(payload);
        self.key.encrypt(packet, buf, header_len);
    }

    fn decrypt(&self, packet: u64, header: &[u8], payload: &mut BytesMut) -> Result<(), CryptoError> {
        self.key.decrypt(packet, header, payload)
    }

    fn tag_len(&self) -> usize {
        self.key.tag_len()
    }

    fn confidentiality_limit(&self) -> u64 {
        self.key.confidentiality_limit()
    }

    fn integrity_limit(&self) -> u64 {
        self.key.integrity_limit()
    }
}

/// Makes PADDING of all NEW_CONNECTION_ID frames: they are found by their first bytes, which are rarely anything else, and of no use elsewhere.
fn blank_connection_ids(payload: &mut [u8]) {
    // Type, number below 64, nothing is retired, an id of eight bytes; the id, and a token for stateless resets.
    const FRAME_BYTES: usize = 4 + 8 + 16;
    let mut at = 0;
    while let Some(frame) = payload.get_mut(at..at + FRAME_BYTES) {
        if let [0x18, 0..64, 0, 8, ..] = *frame {
            frame.fill(0);
            at += FRAME_BYTES;
        } else {
            at += 1;
        }
    }
}
