//! A session whose request may leave with the first flight (0-RTT, RFC 8446 2.3). The library reports this only in its buffered form
//! whether the server took it, so these sessions have buffers of their own.

use std::io::{Read, Write};
use std::sync::Arc;

use rustls::client::ClientConnection;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, CommonState, Error};

use super::tls::{EarlyData, SessionStage};

/// A session as the client sees it.
pub(super) struct EarlySession {
    tls: ClientConnection,
    /// The request was in the first flight.
    has_asked: bool,
}

impl EarlySession {
    /// A new session; its first flight is appended to `out`, and `request` where a ticket is there that allows so much.
    pub(super) fn start(
        config: Arc<ClientConfig>,
        name: ServerName<'static>,
        request: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Self, Error> {
        let mut tls = ClientConnection::new(config, name)?;
        let room = tls.early_data().filter(|early| early.bytes_left() >= request.len());
        let has_asked = room.is_some_and(|mut early| early.write_all(request).is_ok());
        let mut session = Self { tls, has_asked };
        session.take_output(out);
        Ok(session)
    }

    /// As [`TlsSession::feed`](super::tls::TlsSession::feed).
    pub(super) fn feed(
        &mut self,
        mut incoming: &[u8],
        out: &mut Vec<u8>,
        plain: &mut Vec<u8>,
    ) -> Result<SessionStage, Error> {
        while !incoming.is_empty() {
            let taken = self.tls.read_tls(&mut incoming);
            let worked_off = self.tls.process_new_packets();
            self.take_output(out);
            let state = worked_off?;
            let begin = plain.len();
            plain.resize(begin + state.plaintext_bytes_to_read(), 0);
            let is_whole = self.tls.reader().read_exact(&mut plain[begin..]).is_ok();
            if taken.is_err() || !is_whole {
                return Err(Error::General("more than a session may hold".to_owned()));
            }
            if state.peer_has_closed() {
                return Ok(SessionStage::PeerClosed);
            }
        }
        Ok(if self.tls.is_handshaking() { SessionStage::Handshaking } else { SessionStage::Open })
    }

    /// Encrypts `plain` and appends it to `out`.
    pub(super) fn seal(&mut self, plain: &[u8], out: &mut Vec<u8>) -> Result<(), Error> {
        self.tls.writer().write_all(plain).map_err(|_| Error::EncryptError)?;
        self.take_output(out);
        Ok(())
    }

    /// The `close_notify` that ends our side.
    pub(super) fn goodbye_record(&mut self) -> Vec<u8> {
        let mut record = Vec::new();
        self.tls.send_close_notify();
        self.take_output(&mut record);
        record
    }

    /// What became of the request in the first flight; asked of the library once the handshake is whole.
    pub(super) fn early_data(&self) -> EarlyData {
        match (self.has_asked, self.tls.is_early_data_accepted()) {
            (false, _) => EarlyData::None,
            (true, true) => EarlyData::Accepted,
            (true, false) => EarlyData::Rejected,
        }
    }

    /// Tickets that the server has sent in this session.
    pub(super) fn ticket_count(&self) -> u32 {
        self.tls.tls13_tickets_received()
    }

    /// What was agreed on.
    pub(super) fn state(&self) -> &CommonState {
        &self.tls
    }

    fn take_output(&mut self, out: &mut Vec<u8>) {
        while self.tls.wants_write() && self.tls.write_tls(out).is_ok() {}
    }
}
