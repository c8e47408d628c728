//! One TLS session with the buffers of the caller: bytes in, bytes out, so that a silent session keeps none.
//!
//! Never: sockets, the clock, figures.

use std::sync::Arc;

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, Error};

use crate::tls::TlsStream;

/// A session as the client sees it.
pub(super) struct TlsSession(Box<TlsStream>);

/// How far a session is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SessionStage {
    /// The handshake wants more of the peer.
    Handshaking,
    /// Data may be sent.
    Open,
    /// The peer has said that it sends no more.
    PeerClosed,
}

impl TlsSession {
    /// A new session; its first flight is appended to `out`, `early` among it where the settings and a ticket allow that.
    pub(super) fn start(
        config: Arc<ClientConfig>,
        name: ServerName<'static>,
        early: Option<&[u8]>,
        out: &mut Vec<u8>,
    ) -> Result<Self, Error> {
        let mut session = Self(Box::new(TlsStream::resumable(config, name, early)?));
        session.take_output(out);
        Ok(session)
    }

    pub(super) fn stream(&self) -> &TlsStream {
        &self.0
    }

    /// Works off what came in. What is to be sent is appended to `out`, data of the peer to `plain`. After an error `out` holds the
    /// alert to the peer.
    pub(super) fn feed(
        &mut self,
        mut incoming: &[u8],
        out: &mut Vec<u8>,
        plain: &mut Vec<u8>,
    ) -> Result<SessionStage, Error> {
        while !incoming.is_empty() {
            let taken = self.0.read_tls(&mut incoming);
            let processed = self.0.process();
            self.take_output(out);
            processed?;
            while let Some(chunk) = self.0.chunk()? {
                if chunk.is_empty() {
                    return Ok(SessionStage::PeerClosed);
                }
                let bytes = chunk.len();
                plain.extend_from_slice(chunk);
                self.0.consume(bytes);
            }
            taken.map_err(|error| Error::General(error.to_string()))?;
        }
        Ok(if self.0.is_handshaking() {
            SessionStage::Handshaking
        } else {
            self.0.shed_buffers();
            SessionStage::Open
        })
    }

    /// Encrypts `plain` and appends it to `out`.
    pub(super) fn seal(&mut self, mut plain: &[u8], out: &mut Vec<u8>) -> Result<(), Error> {
        while !plain.is_empty() {
            let taken = self.0.write(plain)?;
            plain = &plain[taken..];
            self.take_output(out);
        }
        Ok(())
    }

    /// The `close_notify` that ends our side; empty where the session cannot make one.
    pub(super) fn goodbye_record(&mut self) -> Vec<u8> {
        let mut record = Vec::new();
        self.0.send_close_notify();
        self.take_output(&mut record);
        record
    }

    /// Whether tickets of TLS 1.3 are still to come.
    pub(super) fn awaits_tickets(&self) -> bool {
        self.0.ticket_count() == 0 && self.0.agreement().is_some_and(|agreement| agreement.is_tls13())
    }

    fn take_output(&mut self, out: &mut Vec<u8>) {
        // A buffer takes whatever is written.
        while self.0.wants_write() && self.0.write_tls(out).is_ok() {}
    }
}
