//! One TLS session, with either record layer.
//!
//! Records are opened and sealed in the buffers they are in ([`DirectStream`]), which takes 0.94 of the client's CPU per request. rustls's own record
//! layer does the same ([`RustlsStream`]): it is what ours is compared with in tests, and `SQUALL_TLS=rustls` selects it, to find out whether a
//! failure has to do with records. Early data always takes it: rustls says only there whether the server has taken them.

use std::io::{self, Read, Write};
use std::sync::{Arc, OnceLock};

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, Error};

use super::agreement::{Agreement, EarlyData};
use super::rustls_stream::RustlsStream;
use super::stream::DirectStream;

/// A session as the client sees it.
#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "a connection boxes the whole, and nearly all are of the large kind"
)]
pub(crate) enum TlsStream {
    Direct(DirectStream),
    Rustls(Box<RustlsStream>),
}

/// Who opens and seals records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RecordLayer {
    Direct,
    Rustls,
}

impl RecordLayer {
    /// What the environment asks for.
    ///
    /// # Errors
    ///
    /// When it asks for something else.
    pub(super) fn from_environment() -> Result<Self, crate::Error> {
        let value = std::env::var_os(VARIABLE).unwrap_or_default();
        match value.to_str() {
            Some("" | "squall") => Ok(Self::Direct),
            Some("rustls") => Ok(Self::Rustls),
            _ => Err(crate::Error::Plan {
                problem: format!("{VARIABLE} is `{}`", value.to_string_lossy()),
                help: format!("set it to `squall` or `rustls`, or unset {VARIABLE}"),
            }),
        }
    }

    /// That of this process.
    fn chosen() -> Self {
        static CHOSEN: OnceLock<RecordLayer> = OnceLock::new();
        *CHOSEN.get_or_init(|| Self::from_environment().unwrap_or(Self::Direct))
    }
}

/// Calls the same method of either.
macro_rules! of_either {
    ($self:ident, $stream:ident => $call:expr) => {
        match $self {
            Self::Direct($stream) => $call,
            Self::Rustls($stream) => $call,
        }
    };
}

impl TlsStream {
    /// A new session, whose first flight is ready to be written.
    pub(crate) fn new(config: Arc<ClientConfig>, name: ServerName<'static>) -> Result<Self, Error> {
        Self::with(RecordLayer::chosen(), config, name)
    }

    /// One that keeps the tickets that come, and sends a request in its first flight where a ticket and the settings allow that.
    pub(crate) fn resumable(
        config: Arc<ClientConfig>,
        name: ServerName<'static>,
        early: Option<&[u8]>,
    ) -> Result<Self, Error> {
        Self::resumable_with(RecordLayer::chosen(), config, name, early)
    }

    pub(super) fn resumable_with(
        layer: RecordLayer,
        config: Arc<ClientConfig>,
        name: ServerName<'static>,
        early: Option<&[u8]>,
    ) -> Result<Self, Error> {
        match early {
            Some(request) => {
                Ok(Self::Rustls(Box::new(RustlsStream::with_early_data(config, name, request)?)))
            }
            None => Ok(match Self::with(layer, config, name)? {
                Self::Direct(stream) => Self::Direct(stream.keeping_tickets()),
                stream @ Self::Rustls(_) => stream,
            }),
        }
    }

    pub(super) fn with(
        layer: RecordLayer,
        config: Arc<ClientConfig>,
        name: ServerName<'static>,
    ) -> Result<Self, Error> {
        Ok(match layer {
            RecordLayer::Direct => Self::Direct(DirectStream::new(config, name)?),
            RecordLayer::Rustls => Self::Rustls(Box::new(RustlsStream::new(config, name)?)),
        })
    }

    pub(crate) fn is_handshaking(&self) -> bool {
        of_either!(self, stream => stream.is_handshaking())
    }

    /// What the handshake has agreed on, once it is over.
    pub(crate) fn agreement(&self) -> Option<&Agreement> {
        of_either!(self, stream => stream.agreement())
    }

    /// The protocol that ALPN came to.
    pub(crate) fn alpn(&self) -> Option<&[u8]> {
        self.agreement()?.alpn()
    }

    /// Tickets of TLS 1.3 that were kept.
    pub(crate) fn ticket_count(&self) -> u32 {
        of_either!(self, stream => stream.ticket_count())
    }

    /// What became of a request in the first flight, once the handshake is over.
    pub(crate) fn early_data(&self) -> EarlyData {
        match self {
            Self::Direct(_) => EarlyData::None,
            Self::Rustls(stream) => stream.early_data(),
        }
    }

    /// Gives back the buffers of a session that falls silent.
    pub(crate) fn shed_buffers(&mut self) {
        if let Self::Direct(stream) = self {
            stream.shed_buffers();
        }
    }

    /// The keys have sealed as much as they should, and TLS 1.2 has no others: the connection should end after its response.
    pub(crate) fn is_worn(&self) -> bool {
        match self {
            Self::Direct(stream) => stream.is_worn(),
            // rustls closes the session itself.
            Self::Rustls(_) => false,
        }
    }

    /// Reads once; 0: the peer has closed, by TLS or without.
    pub(crate) fn read_tls(&mut self, reader: &mut impl Read) -> io::Result<usize> {
        of_either!(self, stream => stream.read_tls(reader))
    }

    /// Opens all whole records that were read; how much plaintext there is now. What is to be answered, an alert after an error too, is ready to
    /// be written.
    ///
    /// # Errors
    ///
    /// When the session is over. Data that came before the cause can be had first: then [`chunk`](Self::chunk) gives the error behind it, so that
    /// a response counts the same however the bytes were cut into reads.
    pub(crate) fn process(&mut self) -> Result<usize, Error> {
        of_either!(self, stream => stream.process())
    }

    /// The next piece of plaintext, `None` when there is none now; empty: the peer has said that it sends no more.
    ///
    /// # Errors
    ///
    /// When the session has failed and all that came before is consumed.
    pub(crate) fn chunk(&self) -> Result<Option<&[u8]>, Error> {
        of_either!(self, stream => stream.chunk())
    }

    /// So many bytes of [`chunk`](Self::chunk) are done with.
    pub(crate) fn consume(&mut self, bytes: usize) {
        of_either!(self, stream => stream.consume(bytes));
    }

    /// Seals as much as is taken before the socket has taken what is ready; how much that is.
    ///
    /// # Errors
    ///
    /// When the session is not open, or not any more.
    pub(crate) fn write(&mut self, plain: &[u8]) -> Result<usize, Error> {
        of_either!(self, stream => stream.write(plain))
    }

    pub(crate) fn send_close_notify(&mut self) {
        of_either!(self, stream => stream.send_close_notify());
    }

    pub(crate) fn wants_write(&self) -> bool {
        of_either!(self, stream => stream.wants_write())
    }

    /// Writes once of what is ready.
    pub(crate) fn write_tls(&mut self, writer: &mut impl Write) -> io::Result<usize> {
        of_either!(self, stream => stream.write_tls(writer))
    }
}

/// Selects the record layer: `squall`, which is the default, or `rustls`.
const VARIABLE: &str = "SQUALL_TLS";
