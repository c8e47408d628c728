//! WebSocket (RFC 6455) with permessage-deflate (RFC 7692), for either end of a connection.
//!
//! [`Decoder`] turns bytes into parts of messages and control frames without buffering; [`Inbox`] puts parts together to whole
//! messages, which it decompresses and bounds; [`Outbox`] writes messages and control frames; [`handshake`] and [`deflate`] agree on
//! the connection. Never: sockets, the clock, random numbers: the caller gives the masking keys.

mod decoder;
pub mod deflate;
mod error;
mod frame;
pub mod handshake;
mod inbox;
mod mask;
mod outbox;
mod utf8;

pub use decoder::{Decoded, Decoder, Event, Part};
pub use error::{CloseCode, Error};
pub use frame::MessageKind;
pub use inbox::{Inbox, WebSocketMessage};
pub use outbox::Outbox;

/// Which end of a connection this is: a client masks what it sends, a server must not (RFC 6455 5.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WebSocketRole {
    /// Opened the connection.
    Client,
    /// Accepted it.
    Server,
}

/// Most bytes of a control frame's payload (RFC 6455 5.5).
pub const CONTROL_BYTES_MAX: usize = 125;
