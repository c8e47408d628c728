//! TLS records after the handshake: opened where they were read, sealed where they are written (RFC 8446 5, RFC 5246 6.2).
//!
//! Owns: the keys, and the numbers of the records. Never: sockets, what a record means, who the peer is.

use std::ops::Range;

use aws_lc_rs::aead::{AES_128_GCM, AES_256_GCM, Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};
use rustls::{ConnectionTrafficSecrets, Error, InvalidMessage};

/// What a record holds (RFC 8446 5.1).
pub(super) const ALERT: u8 = 21;
pub(super) const HANDSHAKE: u8 = 22;
pub(super) const DATA: u8 = 23;

/// The head of each record: its kind, a version that means nothing any more, and its length.
pub(super) const HEAD_BYTES: usize = 5;

/// The version in the head of each record is 3.3, which is TLS 1.2.
pub(super) const VERSION_MINOR: u8 = 3;

/// Most bytes that are sealed in one record.
pub(super) const PLAIN_BYTES_MAX: usize = 1 << 14;

/// Data that is sealed before the socket takes it. Answers to what the peer asks may be as much again.
pub(super) const OUTGOING_BYTES_MAX: usize = 1 << 16;

/// Most bytes of a record behind its head, by the more generous version.
const PAYLOAD_BYTES_MAX: usize = PLAIN_BYTES_MAX + 2048;

const TAG_BYTES: usize = 16;

/// TLS 1.2 with AES-GCM sends so much of the nonce with each record (RFC 5288 3).
const EXPLICIT_NONCE_BYTES: usize = 8;

/// The keys of one direction.
pub(super) struct Keys {
    key: LessSafeKey,
    iv: [u8; 12],
    record_count: u64,
    is_tls13: bool,
    explicit_nonce_bytes: usize,
}

impl Keys {
    /// `secrets`: how many records there were before, and what the next are sealed with.
    pub(super) fn new(
        (record_count, secrets): (u64, ConnectionTrafficSecrets),
        is_tls13: bool,
    ) -> Result<Self, Error> {
        let (algorithm, key, iv) = match &secrets {
            ConnectionTrafficSecrets::Aes128Gcm { key, iv } => (&AES_128_GCM, key, iv),
            ConnectionTrafficSecrets::Aes256Gcm { key, iv } => (&AES_256_GCM, key, iv),
            ConnectionTrafficSecrets::Chacha20Poly1305 { key, iv } => (&CHACHA20_POLY1305, key, iv),
            _ => return Err(unusable()),
        };
        let key = UnboundKey::new(algorithm, key.as_ref()).map_err(|_| unusable())?;
        let sends_nonce = !is_tls13 && algorithm != &CHACHA20_POLY1305;
        Ok(Self {
            key: LessSafeKey::new(key),
            iv: iv.as_ref().try_into().map_err(|_| unusable())?,
            record_count,
            is_tls13,
            explicit_nonce_bytes: if sends_nonce { EXPLICIT_NONCE_BYTES } else { 0 },
        })
    }

    /// Records that these keys have sealed or opened.
    pub(super) const fn record_count(&self) -> u64 {
        self.record_count
    }

    /// Appends a record. `plain`: at most [`PLAIN_BYTES_MAX`].
    pub(super) fn seal(&mut self, kind: u8, plain: &[u8], out: &mut Vec<u8>) -> Result<(), Error> {
        let nonce = self.nonce();
        let plain_bytes = plain.len() + usize::from(self.is_tls13);
        let payload_bytes = self.explicit_nonce_bytes + plain_bytes + TAG_BYTES;
        let head = head(if self.is_tls13 { DATA } else { kind }, payload_bytes);
        out.extend_from_slice(&head);
        out.extend_from_slice(&nonce[nonce.len() - self.explicit_nonce_bytes..]);
        let begin = out.len();
        out.extend_from_slice(plain);
        if self.is_tls13 {
            out.push(kind);
        }
        let (aad, aad_bytes) = self.additional_data(head, plain_bytes);
        let nonce = Nonce::assume_unique_for_key(nonce);
        let tag = self.key.seal_in_place_separate_tag(nonce, Aad::from(&aad[..aad_bytes]), &mut out[begin..]);
        out.extend_from_slice(tag.map_err(|_| Error::EncryptError)?.as_ref());
        self.record_count += 1;
        Ok(())
    }

    /// Opens a record in its place: what it holds, and where in the payload that lies.
    pub(super) fn open(&mut self, kind: u8, payload: &mut [u8]) -> Result<(u8, Range<usize>), Error> {
        let begin = self.explicit_nonce_bytes;
        let plain_bytes = payload.len().checked_sub(begin + TAG_BYTES).ok_or(Error::DecryptError)?;
        let mut nonce = self.nonce();
        if begin > 0 {
            nonce[12 - EXPLICIT_NONCE_BYTES..].copy_from_slice(&payload[..EXPLICIT_NONCE_BYTES]);
            nonce[..12 - EXPLICIT_NONCE_BYTES].copy_from_slice(&self.iv[..12 - EXPLICIT_NONCE_BYTES]);
        }
        let (aad, aad_bytes) = self.additional_data(head(kind, payload.len()), plain_bytes);
        let nonce = Nonce::assume_unique_for_key(nonce);
        let plain = self.key.open_in_place(nonce, Aad::from(&aad[..aad_bytes]), &mut payload[begin..]);
        let plain = plain.map_err(|_| Error::DecryptError)?;
        self.record_count += 1;
        let (kind, length) = if self.is_tls13 { inner_kind(plain)? } else { (kind, plain.len()) };
        if length > PLAIN_BYTES_MAX {
            return Err(Error::PeerSentOversizedRecord);
        }
        Ok((kind, begin..begin + length))
    }

    /// The starting point, and the number of the record (RFC 8446 5.3). In TLS 1.2 the peer only wants it to be another one each time.
    fn nonce(&self) -> [u8; 12] {
        let mut nonce = self.iv;
        nonce
            .iter_mut()
            .skip(4)
            .zip(self.record_count.to_be_bytes())
            .for_each(|(byte, count)| *byte ^= count);
        nonce
    }

    /// What is sealed but not sent: RFC 8446 5.2, RFC 5246 6.2.3.3.
    fn additional_data(&self, head: [u8; HEAD_BYTES], plain_bytes: usize) -> ([u8; 13], usize) {
        let mut data = [0; 13];
        if self.is_tls13 {
            data[..HEAD_BYTES].copy_from_slice(&head);
            return (data, HEAD_BYTES);
        }
        data[..8].copy_from_slice(&self.record_count.to_be_bytes());
        data[8..].copy_from_slice(&self::head(head[0], plain_bytes));
        (data, 13)
    }
}

/// The head of a record.
#[derive(Debug, Clone, Copy)]
pub(super) struct RecordHead {
    pub(super) kind: u8,
    /// Of no meaning in TLS 1.3; sealed with the record in TLS 1.2.
    pub(super) version_minor: u8,
    pub(super) payload_bytes: usize,
}

/// The head of the record that `bytes` begin with; `None`: it is not whole.
pub(super) fn read_head(bytes: &[u8]) -> Result<Option<RecordHead>, Error> {
    let Some([kind, major, minor, high, low]) = bytes.first_chunk() else { return Ok(None) };
    if *major != 3 {
        return Err(InvalidMessage::UnknownProtocolVersion.into());
    }
    let length = usize::from(u16::from_be_bytes([*high, *low]));
    if length > PAYLOAD_BYTES_MAX {
        return Err(InvalidMessage::MessageTooLarge.into());
    }
    Ok(Some(RecordHead { kind: *kind, version_minor: *minor, payload_bytes: length }))
}

fn head(kind: u8, payload_bytes: usize) -> [u8; HEAD_BYTES] {
    let [high, low] = (payload_bytes as u16).to_be_bytes();
    [kind, 3, VERSION_MINOR, high, low]
}

/// Behind what a record of TLS 1.3 holds stand its kind and any number of zeros.
fn inner_kind(plain: &[u8]) -> Result<(u8, usize), Error> {
    let place = plain.iter().rposition(|byte| *byte != 0);
    let place = place.ok_or(rustls::PeerMisbehaved::IllegalTlsInnerPlaintext)?;
    Ok((plain[place], place))
}

fn unusable() -> Error {
    Error::General("the cipher suite's keys cannot be used".to_owned())
}
