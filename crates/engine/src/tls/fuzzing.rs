//! What a fuzz target needs to try a session that is open: bytes in, text out, and records of any kind sealed with the server's keys.

use std::sync::Arc;

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ConnectionTrafficSecrets, Error};
use squall_plan::TlsPolicy;

use super::records::Keys;
use super::stream::DirectStream;

/// The settings of a client that takes any certificate.
///
/// # Errors
/// When the provider has no such settings.
pub fn config() -> Result<Arc<ClientConfig>, crate::Error> {
    super::client_config(&TlsPolicy { insecure: true, ..TlsPolicy::default() })
}

/// A client's session.
#[derive(Debug)]
pub struct Session(DirectStream);

impl Session {
    /// A session whose first flight is ready.
    ///
    /// # Errors
    /// As rustls has them.
    pub fn new(config: Arc<ClientConfig>) -> Result<Self, Error> {
        let name = ServerName::try_from("localhost").map_err(|_| Error::General("no name".to_owned()))?;
        DirectStream::new(config, name).map(Self)
    }

    /// What is to be sent.
    pub fn flight(&mut self) -> Vec<u8> {
        let mut flight = Vec::new();
        while self.0.wants_write() && self.0.write_tls(&mut flight).is_ok() {}
        flight
    }

    /// Takes bytes; what was read is appended to `read`. True: the peer has said that it sends no more.
    ///
    /// # Errors
    /// When the session has failed.
    pub fn give(&mut self, mut bytes: &[u8], read: &mut Vec<u8>) -> Result<bool, Error> {
        while !bytes.is_empty() {
            let count = self.0.read_tls(&mut bytes).map_err(|error| Error::General(error.to_string()))?;
            if count == 0 {
                return Ok(true);
            }
            self.0.process()?;
            while let Some(chunk) = self.0.chunk()? {
                if chunk.is_empty() {
                    return Ok(true);
                }
                let count = chunk.len();
                read.extend_from_slice(chunk);
                self.0.consume(count);
            }
        }
        Ok(false)
    }
}

/// Seals records with the keys of a server.
pub struct Sealer(Keys);

impl Sealer {
    /// `secrets`: what the server sends with.
    ///
    /// # Errors
    /// When the suite is not known.
    pub fn new(secrets: (u64, ConnectionTrafficSecrets), is_tls13: bool) -> Result<Self, Error> {
        Keys::new(secrets, is_tls13).map(Self)
    }

    /// Appends a record.
    ///
    /// # Errors
    /// When nothing more can be sealed.
    pub fn seal(&mut self, kind: u8, plain: &[u8], out: &mut Vec<u8>) -> Result<(), Error> {
        self.0.seal(kind, plain, out)
    }
}

impl std::fmt::Debug for Sealer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Sealer")
    }
}
