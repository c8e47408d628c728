//! The fields of the opening handshake (RFC 6455 4) whose values are computed.

use data_encoding::BASE64;
use sha1::{Digest, Sha1};

/// The value of `Sec-WebSocket-Accept` for that of `Sec-WebSocket-Key` (RFC 6455 4.2.2).
pub fn accept(key: &str) -> String {
    let digest =
        Sha1::new().chain_update(key).chain_update("258EAFA5-E914-47DA-95CA-C5AB0DC85B11").finalize();
    BASE64.encode(&digest)
}

/// The value of `Sec-WebSocket-Key` for random bytes (RFC 6455 4.1).
pub fn key(random: &[u8; 16]) -> String {
    BASE64.encode(random)
}

/// Whether this is the value of `Sec-WebSocket-Key`: 16 bytes in Base64 (RFC 6455 4.1).
pub fn is_key(value: &str) -> bool {
    BASE64.decode(value.as_bytes()).is_ok_and(|bytes| bytes.len() == 16)
}

/// The only version of the protocol (RFC 6455 4.1).
pub const VERSION: &str = "13";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_accept_value_is_that_of_the_rfc() {
        assert_eq!(accept("dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
        assert_eq!(key(b"the sample nonce"), "dGhlIHNhbXBsZSBub25jZQ==");
        assert!(is_key("dGhlIHNhbXBsZSBub25jZQ=="));
        for wrong in ["", "dGhlIHNhbXBsZSBub25jZQ", "c2hvcnQ=", "not base64 at all!!!!!!="] {
            assert!(!is_key(wrong), "{wrong}");
        }
    }
}
