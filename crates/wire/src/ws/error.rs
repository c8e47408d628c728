//! What a peer can do wrong, and the close code that says so.

/// A violation by the peer, after which the connection has to be failed (RFC 6455 7.1.7).
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// RFC 6455 5.2: reserved bits without an extension that gives them a meaning.
    #[error("a frame has reserved bits that no extension uses")]
    ReservedBits,
    /// RFC 6455 5.2.
    #[error("a frame has the reserved opcode {0}")]
    Opcode(u8),
    /// RFC 6455 5.1: a server fails a connection on which an unmasked frame arrives.
    #[error("a frame from the client is not masked")]
    NotMasked,
    /// RFC 6455 5.1.
    #[error("a frame from the server is masked")]
    Masked,
    /// RFC 6455 5.5.
    #[error("a control frame is fragmented")]
    FragmentedControl,
    /// RFC 6455 5.5.
    #[error("a control frame has {0} bytes, more than 125")]
    LongControl(u64),
    /// RFC 6455 5.2: lengths use the fewest bytes; the top bit of the longest form is 0.
    #[error("a frame's length is not encoded in the fewest bytes")]
    Length,
    /// RFC 6455 5.4.
    #[error("a continuation frame continues no message")]
    NothingToContinue,
    /// RFC 6455 5.4.
    #[error("a message begins before the last one has ended")]
    Unfinished,
    /// RFC 6455 8.1.
    #[error("text is not valid UTF-8")]
    Utf8,
    /// RFC 6455 5.5.1: a close frame has no payload, or at least a code.
    #[error("a close frame has a payload of one byte")]
    ClosePayload,
    /// RFC 6455 7.4: reserved codes are not sent.
    #[error("a close frame has the invalid code {0}")]
    CloseCode(u16),
    /// RFC 6455 5.5.1: nothing follows a close frame.
    #[error("data follows a close frame")]
    AfterClose,
    /// RFC 7692 7.2.2.
    #[error("a compressed message cannot be decompressed")]
    Deflate,
    /// A limit of this end.
    #[error("a message is larger than {0} bytes")]
    TooLarge(u64),
}

impl Error {
    /// The code that the close frame for this violation carries (RFC 6455 7.4.1).
    pub fn close_code(self) -> CloseCode {
        match self {
            Self::Utf8 | Self::Deflate => CloseCode(1007),
            Self::TooLarge(_) => CloseCode(1009),
            _ => CloseCode(1002),
        }
    }
}

/// Why a connection is closed (RFC 6455 7.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CloseCode(pub u16);

impl CloseCode {
    /// The purpose of the connection is fulfilled.
    pub const NORMAL: Self = Self(1000);
    /// The endpoint goes away.
    pub const GOING_AWAY: Self = Self(1001);
    /// No code was in the close frame; never sent.
    pub const NONE: Self = Self(1005);
    /// The connection ended without a close frame; never sent.
    pub const ABNORMAL: Self = Self(1006);
    /// Try again later: the IANA registry of close codes.
    pub const TRY_AGAIN: Self = Self(1013);

    /// Whether an endpoint may send it: registered, or of a library or application.
    pub fn may_be_sent(self) -> bool {
        matches!(self.0, 1000..=1003 | 1007..=1014 | 3000..=4999)
    }
}
