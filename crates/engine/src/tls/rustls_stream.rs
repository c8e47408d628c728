//! A TLS session by rustls alone, record layer included: the measure of our own.

use std::io::{self, Read, Write};
use std::sync::Arc;

use rustls::client::ClientConnection;
use rustls::pki_types::ServerName;
use rustls::{CipherSuite, ClientConfig, Error, ProtocolVersion};

use super::session::OUTGOING_BYTES_MAX;

/// A session as the client sees it; the methods are those of [`TlsStream`](super::TlsStream).
#[derive(Debug)]
pub(crate) struct RustlsStream {
    tls: ClientConnection,
    /// What was opened; `consumed` bytes of it are done with.
    plain: Vec<u8>,
    consumed: usize,
    is_peer_closed: bool,
    /// Why the session ended, behind data that is not consumed yet.
    failure: Option<Error>,
}

impl RustlsStream {
    pub(super) fn new(config: Arc<ClientConfig>, name: ServerName<'static>) -> Result<Self, Error> {
        let mut tls = ClientConnection::new(config, name)?;
        tls.set_buffer_limit(Some(OUTGOING_BYTES_MAX));
        Ok(Self { tls, plain: Vec::new(), consumed: 0, is_peer_closed: false, failure: None })
    }

    pub(super) fn is_handshaking(&self) -> bool {
        self.tls.is_handshaking()
    }

    pub(super) fn alpn_protocol(&self) -> Option<&[u8]> {
        self.tls.alpn_protocol()
    }

    pub(super) fn protocol_version(&self) -> Option<ProtocolVersion> {
        self.tls.protocol_version()
    }

    pub(super) fn cipher_suite(&self) -> Option<CipherSuite> {
        Some(self.tls.negotiated_cipher_suite()?.suite())
    }

    pub(super) fn read_tls(&mut self, reader: &mut impl Read) -> io::Result<usize> {
        if self.is_peer_closed { Ok(0) } else { self.tls.read_tls(reader) }
    }

    pub(super) fn process(&mut self) -> Result<usize, Error> {
        if let Some(failure) = &self.failure {
            return Err(failure.clone());
        }
        let processed = self.tls.process_new_packets();
        // Data that came before a failure is there all the same. Where there is no more for now, rustls says so by an error.
        let _ = self.tls.reader().read_to_end(&mut self.plain);
        match processed {
            Ok(state) => self.is_peer_closed |= state.peer_has_closed(),
            Err(error) if self.plain.len() > self.consumed => self.failure = Some(error),
            Err(error) => return Err(error),
        }
        Ok(self.plain.len() - self.consumed)
    }

    pub(super) fn chunk(&self) -> Result<Option<&[u8]>, Error> {
        match (&self.plain[self.consumed..], &self.failure) {
            ([], Some(failure)) => Err(failure.clone()),
            ([], None) => Ok(self.is_peer_closed.then_some(&[])),
            (plain, _) => Ok(Some(plain)),
        }
    }

    pub(super) fn consume(&mut self, bytes: usize) {
        self.consumed = self.plain.len().min(self.consumed + bytes);
        if self.consumed == self.plain.len() {
            self.plain.clear();
            self.consumed = 0;
        }
    }

    pub(super) fn write(&mut self, plain: &[u8]) -> Result<usize, Error> {
        if self.tls.is_handshaking() {
            return Err(Error::HandshakeNotComplete);
        }
        self.tls.writer().write(plain).map_err(|error| Error::General(error.to_string()))
    }

    pub(super) fn send_close_notify(&mut self) {
        self.tls.send_close_notify();
    }

    pub(super) fn wants_write(&self) -> bool {
        self.tls.wants_write()
    }

    pub(super) fn write_tls(&mut self, writer: &mut impl Write) -> io::Result<usize> {
        self.tls.write_tls(writer)
    }
}
