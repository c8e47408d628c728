//! Frame headers (RFC 6455 5.2), read and written.

use super::{CONTROL_BYTES_MAX, Error, WebSocketRole};

/// What a message carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MessageKind {
    /// UTF-8.
    Text,
    /// Any bytes.
    Binary,
}

/// What a frame is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Opcode {
    Continuation,
    Message(MessageKind),
    Close,
    Ping,
    Pong,
}

impl Opcode {
    fn from_bits(bits: u8) -> Result<Self, Error> {
        Ok(match bits {
            0 => Self::Continuation,
            1 => Self::Message(MessageKind::Text),
            2 => Self::Message(MessageKind::Binary),
            8 => Self::Close,
            9 => Self::Ping,
            10 => Self::Pong,
            other => return Err(Error::Opcode(other)),
        })
    }

    pub(super) fn bits(self) -> u8 {
        match self {
            Self::Continuation => 0,
            Self::Message(MessageKind::Text) => 1,
            Self::Message(MessageKind::Binary) => 2,
            Self::Close => 8,
            Self::Ping => 9,
            Self::Pong => 10,
        }
    }

    pub(super) fn is_control(self) -> bool {
        matches!(self, Self::Close | Self::Ping | Self::Pong)
    }
}

/// The header of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) opcode: Opcode,
    pub(super) is_last: bool,
    /// The first reserved bit: of a message's first frame, that it is compressed.
    pub(super) is_compressed: bool,
    pub(super) bytes: u64,
    pub(super) mask: Option<[u8; 4]>,
}

/// Bytes of the header that begins like this; `None`: not enough of it is there to say.
pub(super) fn header_bytes(begin: &[u8]) -> Option<usize> {
    let second = *begin.get(1)?;
    let length = match second & 0x7f {
        126 => 2,
        127 => 8,
        _ => 0,
    };
    Some(2 + length + if second & 0x80 == 0 { 0 } else { 4 })
}

impl Header {
    /// Reads a whole header. `allows_compression`: permessage-deflate was agreed on.
    pub(super) fn read(bytes: &[u8], role: WebSocketRole, allows_compression: bool) -> Result<Self, Error> {
        let (first, second) = (bytes[0], bytes[1]);
        let opcode = Opcode::from_bits(first & 0x0f)?;
        let is_compressed = first & 0x40 != 0;
        // RFC 7692 6: only the first frame of a message has the bit.
        let may_be_compressed = allows_compression && matches!(opcode, Opcode::Message(_));
        if first & 0x30 != 0 || (is_compressed && !may_be_compressed) {
            return Err(Error::ReservedBits);
        }
        let is_last = first & 0x80 != 0;
        let (payload_bytes, rest) = read_length(second & 0x7f, &bytes[2..])?;
        if opcode.is_control() && !is_last {
            return Err(Error::FragmentedControl);
        }
        if opcode.is_control() && payload_bytes > CONTROL_BYTES_MAX as u64 {
            return Err(Error::LongControl(payload_bytes));
        }
        let mask = match (second & 0x80 != 0, role) {
            (true, WebSocketRole::Server) => Some([rest[0], rest[1], rest[2], rest[3]]),
            (false, WebSocketRole::Client) => None,
            (true, WebSocketRole::Client) => return Err(Error::Masked),
            (false, WebSocketRole::Server) => return Err(Error::NotMasked),
        };
        Ok(Self { opcode, is_last, is_compressed, bytes: payload_bytes, mask })
    }

    /// Writes the header.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        let bit = |is: bool, value: u8| if is { value } else { 0 };
        out.push(bit(self.is_last, 0x80) | bit(self.is_compressed, 0x40) | self.opcode.bits());
        let mask_bit = bit(self.mask.is_some(), 0x80);
        match self.bytes {
            0..126 => out.push(mask_bit | self.bytes as u8),
            126..0x1_0000 => {
                out.push(mask_bit | 126);
                out.extend((self.bytes as u16).to_be_bytes());
            }
            _ => {
                out.push(mask_bit | 127);
                out.extend(self.bytes.to_be_bytes());
            }
        }
        out.extend(self.mask.iter().flatten());
    }
}

/// The length of the payload, and the bytes after it.
fn read_length(short: u8, bytes: &[u8]) -> Result<(u64, &[u8]), Error> {
    match short {
        126 => {
            let length = u16::from_be_bytes([bytes[0], bytes[1]]).into();
            if length < 126 { Err(Error::Length) } else { Ok((length, &bytes[2..])) }
        }
        127 => {
            let (long, rest) = bytes.split_first_chunk().expect("the header is whole");
            let length = u64::from_be_bytes(*long);
            if length < 0x1_0000 || length >> 63 != 0 { Err(Error::Length) } else { Ok((length, rest)) }
        }
        short => Ok((short.into(), bytes)),
    }
}
