//! Why a QUIC connection ended, as a cause.

use quinn_proto::{ConnectionError, TransportErrorCode};
use rustls::AlertDescription;
use squall_measure::{Cause, Phase};

use super::session::QuicSession;
use crate::trouble::Trouble;

/// Why a connection was lost. `phase`: where it was.
pub(crate) fn trouble_of(error: &ConnectionError, session: &QuicSession, phase: Phase) -> Trouble {
    if let Some(error) = session.tls_failure() {
        return Trouble::tls(&error, Phase::TlsHandshaking);
    }
    match error {
        ConnectionError::VersionMismatch => {
            let text = "the server supports no QUIC version that is offered (version 1)".to_owned();
            Trouble::new(Cause::VersionNotNegotiated, phase, text)
        }
        ConnectionError::TransportError(error) => {
            Trouble::new(Cause::QuicProtocol, phase, format!("the server broke QUIC: {error}"))
        }
        ConnectionError::ConnectionClosed(close) => closed_by_transport(close, phase),
        ConnectionError::ApplicationClosed(close) => {
            let text =
                format!("the server closed the connection (H3 code {:#x})", close.error_code.into_inner());
            Trouble::new(Cause::ConnectionClosed, phase, text)
        }
        ConnectionError::Reset => {
            let text = "the server has forgotten the connection (stateless reset)".to_owned();
            Trouble::new(Cause::ConnectionReset, phase, text)
        }
        ConnectionError::TimedOut => {
            let text = "the connection was silent for longer than the server's idle timeout".to_owned();
            Trouble::new(Cause::ConnectionClosed, phase, text)
        }
        ConnectionError::LocallyClosed | ConnectionError::CidsExhausted => {
            Trouble::new(Cause::Other, phase, error.to_string())
        }
    }
}

/// The server's transport has closed the connection: with an alert of TLS, or because of something else.
fn closed_by_transport(close: &quinn_proto::ConnectionClose, phase: Phase) -> Trouble {
    let code = u64::from(close.error_code);
    let reason = String::from_utf8_lossy(&close.reason);
    let because = if reason.is_empty() { String::new() } else { format!(": {reason}") };
    if let Some(alert) = code.checked_sub(CRYPTO_ERROR).filter(|alert| *alert <= u64::from(u8::MAX)) {
        let alert = AlertDescription::from(alert as u8);
        if alert == AlertDescription::NoApplicationProtocol {
            let text = "the server does not speak HTTP/3 (ALPN `h3`)".to_owned();
            return Trouble::new(Cause::VersionNotNegotiated, Phase::TlsHandshaking, text);
        }
        let text = format!("received fatal alert: {alert:?}{because}");
        return Trouble::new(Cause::TlsAlert, Phase::TlsHandshaking, text);
    }
    let cause = match close.error_code {
        // A server that is busy may say so only after the handshake.
        TransportErrorCode::CONNECTION_REFUSED if phase != Phase::Receiving => Cause::ConnectionRefused,
        _ => Cause::ConnectionClosed,
    };
    Trouble::new(cause, phase, format!("the server closed the connection ({}){because}", close.error_code))
}

/// RFC 9001 4.8: codes from here on are alerts.
const CRYPTO_ERROR: u64 = 0x100;
