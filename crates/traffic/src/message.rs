//! What was recorded of a response that goes on: messages of a WebSocket, and when the events of a stream came.

/// A message of a WebSocket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedMessage {
    /// When, in nanoseconds after the beginning of the opening request.
    pub at_ns: u64,
    /// Who sent it.
    pub by: Peer,
    /// Of what kind.
    pub kind: RecordedKind,
    /// Its payload, decompressed; of a close frame the code (two bytes, unless there is none) and the reason.
    pub bytes: Vec<u8>,
}

/// An end of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Peer {
    /// The one that opened it.
    Client,
    /// The one that accepted it.
    Server,
}

/// Kind of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordedKind {
    /// UTF-8.
    Text,
    /// Any bytes.
    Binary,
    /// A close frame: nothing of this peer follows.
    Close,
}

impl RecordedMessage {
    /// A close frame.
    pub fn close(at_ns: u64, by: Peer, code: Option<u16>, reason: &str) -> Self {
        let code = code.map(u16::to_be_bytes);
        let bytes = code.iter().flatten().chain(reason.as_bytes()).copied().collect();
        Self { at_ns, by, kind: RecordedKind::Close, bytes }
    }

    /// Code and reason of a close frame.
    pub fn close_parts(&self) -> (Option<u16>, &str) {
        match self.bytes.split_first_chunk() {
            Some((code, reason)) => {
                (Some(u16::from_be_bytes(*code)), std::str::from_utf8(reason).unwrap_or_default())
            }
            None => (None, ""),
        }
    }

    /// Whether the client says something with it.
    pub fn is_said(&self) -> bool {
        self.by == Peer::Client && self.kind != RecordedKind::Close
    }

    /// Bytes that it takes in memory, roughly.
    pub const fn memory_bytes(&self) -> usize {
        size_of::<Self>() + self.bytes.len() + 16
    }
}

/// What of these messages no WebSocket can have carried; `None`: nothing.
pub(crate) fn flaw_of(messages: &[RecordedMessage]) -> Option<&'static str> {
    let mut is_closed = [false; 2];
    for RecordedMessage { by, kind, bytes, .. } in messages {
        // RFC 6455 5.5.1: nothing follows the close frame of its sender.
        let is_closed = &mut is_closed[usize::from(*by == Peer::Client)];
        match kind {
            _ if *is_closed => return Some("a WebSocket message after the close frame of its sender"),
            RecordedKind::Text if std::str::from_utf8(bytes).is_err() => {
                return Some("a WebSocket message of text that is not UTF-8");
            }
            RecordedKind::Close if bytes.len() == 1 || bytes.len() > CONTROL_BYTES_MAX => {
                return Some("a WebSocket close frame whose payload is no code and reason");
            }
            RecordedKind::Close => *is_closed = true,
            RecordedKind::Text | RecordedKind::Binary => {}
        }
    }
    None
}

/// RFC 6455 5.5.
const CONTROL_BYTES_MAX: usize = 125;

impl RecordedKind {
    /// As in HAR and RFC 6455 5.2.
    pub const fn opcode(self) -> u8 {
        match self {
            Self::Text => 1,
            Self::Binary => 2,
            Self::Close => 8,
        }
    }

    /// The kind with this opcode; `None`: a ping, a pong, or none that there is.
    pub const fn of(opcode: u8) -> Option<Self> {
        match opcode {
            1 => Some(Self::Text),
            2 => Some(Self::Binary),
            8 => Some(Self::Close),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_close_frame_has_a_code_and_a_reason_or_neither() {
        for (code, reason) in [(Some(1000), ""), (Some(4001), "bye"), (None, "")] {
            let close = RecordedMessage::close(7, Peer::Server, code, reason);
            assert_eq!(close.close_parts(), (code, reason));
        }
        for kind in [RecordedKind::Text, RecordedKind::Binary, RecordedKind::Close] {
            assert_eq!(RecordedKind::of(kind.opcode()), Some(kind));
        }
        assert_eq!(RecordedKind::of(9), None);
    }
}
