//! What rustls wants to send, appended to a buffer that grows as it needs.

use rustls::client::UnbufferedClientConnection;
use rustls::unbuffered::{ConnectionState, EncodeError, EncodeTlsData, InsufficientSizeError};

/// Appends a record of the handshake.
pub(super) fn data<D>(mut data: EncodeTlsData<'_, D>, out: &mut Vec<u8>) {
    let begin = out.len();
    loop {
        match data.encode(&mut out[begin..]) {
            Ok(count) => return out.truncate(begin + count),
            Err(EncodeError::InsufficientSize(InsufficientSizeError { required_size })) => {
                out.resize(begin + required_size, 0);
            }
            Err(EncodeError::AlreadyEncoded) => return out.truncate(begin),
        }
    }
}

/// Appends the alert that rustls has to send after an error. It would read on if it were asked once more than that.
pub(super) fn alert(tls: &mut UnbufferedClientConnection, out: &mut Vec<u8>) {
    while tls.wants_write() {
        match tls.process_tls_records(&mut []).state {
            Ok(ConnectionState::EncodeTlsData(record)) => data(record, out),
            _ => return,
        }
    }
}
