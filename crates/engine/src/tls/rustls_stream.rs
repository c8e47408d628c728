//! A TLS session by rustls alone, record layer included: the measure of our own, and what sends early data.

use std::io::{self, Read, Write};
use std::sync::Arc;

use rustls::client::ClientConnection;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, Error};

use super::agreement::{Agreement, EarlyData};
use super::records::OUTGOING_BYTES_MAX;

/// A session as the client sees it; the methods are those of `TlsStream`.
#[derive(Debug)]
pub(crate) struct RustlsStream {
    tls: ClientConnection,
    /// What was opened; `consumed` bytes of it are done with.
    plain: Vec<u8>,
    consumed: usize,
    is_peer_closed: bool,
    agreement: Option<Agreement>,
    /// A request was in the first flight.
    has_asked: bool,
    /// Why the session ended, behind data that is not consumed yet.
    failure: Option<Error>,
}

impl RustlsStream {
    pub(super) fn new(config: Arc<ClientConfig>, name: ServerName<'static>) -> Result<Self, Error> {
        let mut tls = ClientConnection::new(config, name)?;
        tls.set_buffer_limit(Some(OUTGOING_BYTES_MAX));
        Ok(Self {
            tls,
            plain: Vec::new(),
            consumed: 0,
            is_peer_closed: false,
            agreement: None,
            has_asked: false,
            failure: None,
        })
    }

    /// The same with a request in the first flight, where there is a ticket that allows so much (RFC 8446 2.3).
    pub(super) fn with_early_data(
        config: Arc<ClientConfig>,
        name: ServerName<'static>,
        request: &[u8],
    ) -> Result<Self, Error> {
        let mut stream = Self::new(config, name)?;
        let early = stream.tls.early_data().filter(|early| early.bytes_left() >= request.len());
        stream.has_asked = early.is_some_and(|mut early| early.write_all(request).is_ok());
        Ok(stream)
    }

    pub(super) fn is_handshaking(&self) -> bool {
        self.tls.is_handshaking()
    }

    pub(super) const fn agreement(&self) -> Option<&Agreement> {
        self.agreement.as_ref()
    }

    pub(super) fn ticket_count(&self) -> u32 {
        self.tls.tls13_tickets_received()
    }

    pub(super) fn early_data(&self) -> EarlyData {
        match (self.has_asked, self.tls.is_early_data_accepted()) {
            (false, _) => EarlyData::None,
            (true, true) => EarlyData::Accepted,
            (true, false) => EarlyData::Rejected,
        }
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
        if self.agreement.is_none() && !self.tls.is_handshaking() {
            self.agreement = Some(Agreement::of(&self.tls)?);
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
