//! What a decoder reports while it decodes.

use memchr::memchr;

use super::field::strip_cr;
use super::head::{Head, REASON_INDEX};
use super::{Fields, Version};

/// Receives the content of a response in the order in which it arrives. `&mut ()` ignores it.
pub trait Sink {
    /// An interim response (100-199, never 101). The final one follows.
    fn interim(&mut self, _status: u16) {}

    /// The final response's head.
    fn head(&mut self, _head: &HeadView<'_>) {}

    /// A piece of the body as transferred: chunk framing is removed, content codings are not. Never empty.
    fn data(&mut self, _bytes: &[u8]) {}

    /// The trailer fields; called only when there are some.
    fn trailers(&mut self, _fields: Fields<'_>) {}

    /// The calls that follow are about the response in this slot of the connection. A [`Decoder`](super::Decoder) of its own knows none.
    fn stream(&mut self, _slot: u32) {}

    /// HTTP/2 and HTTP/3: whether heads and trailers are to be reported at all. Where they are not wanted, their fields are not copied.
    fn wants_heads(&self) -> bool {
        true
    }
}

impl Sink for () {
    fn wants_heads(&self) -> bool {
        false
    }
}

/// A response head, still where it came in. Reading it is what costs.
#[derive(Debug, Clone, Copy)]
pub struct HeadView<'a> {
    status: u16,
    version: Version,
    /// The whole head, empty line included.
    bytes: &'a [u8],
}

impl<'a> HeadView<'a> {
    /// `bytes`: the whole head, without folds, that was parsed into `head`.
    pub(super) const fn new(head: &Head, bytes: &'a [u8]) -> Self {
        Self { status: head.status, version: head.version, bytes }
    }

    /// `bytes`: the fields of a later version as HTTP/1.1 would write them, with any status line.
    pub(crate) const fn of_fields(version: Version, status: u16, bytes: &'a [u8]) -> Self {
        Self { status, version, bytes }
    }

    /// The whole head as HTTP/1.1 writes it, empty line included; of HTTP/2 and HTTP/3 with a status line of its own.
    pub const fn raw(&self) -> &'a [u8] {
        self.bytes
    }

    /// Status code, 200-999.
    pub const fn status(&self) -> u16 {
        self.status
    }

    /// Version of the protocol that the server answered in.
    pub const fn version(&self) -> Version {
        self.version
    }

    /// Reason phrase; often empty, and of no meaning (RFC 9112 4).
    pub fn reason(&self) -> &'a [u8] {
        let (status_line, _) = self.split_status_line();
        status_line.get(REASON_INDEX..).unwrap_or_default()
    }

    /// The header fields in the order in which they came. Folded values (RFC 9112 5.2) are unfolded.
    pub fn fields(&self) -> Fields<'a> {
        let (_, lines) = self.split_status_line();
        Fields::new(lines)
    }

    /// The value of the first field of that name, in whatever case.
    pub fn field(&self, name: &str) -> Option<&'a [u8]> {
        self.fields().find(|field| field.name.eq_ignore_ascii_case(name.as_bytes())).map(|field| field.value)
    }

    fn split_status_line(&self) -> (&'a [u8], &'a [u8]) {
        let line_end = memchr(b'\n', self.bytes).unwrap_or(self.bytes.len());
        let (line, rest) = self.bytes.split_at(line_end);
        (strip_cr(line), rest.get(1..).unwrap_or_default())
    }
}
