//! A response on its stream: interim responses, head, body, trailers, in that order and of the promised length.

use super::Head;
use crate::h1::limits::INTERIM_RESPONSE_COUNT_MAX;
use crate::h1::{RequestKind, Response};

/// How much of a response has come.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Incoming {
    pub(crate) kind: RequestKind,
    interim_count: u8,
    /// 0: the head is to come.
    pub(crate) status: u16,
    /// What `content-length` promised; `u64::MAX`: nothing.
    body_bytes_expected: u64,
    pub(crate) body_bytes: u64,
}

/// What a field section is to its message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    Interim,
    Head,
    Trailers,
}

impl Incoming {
    pub(crate) const fn new(kind: RequestKind) -> Self {
        Self { kind, interim_count: 0, status: 0, body_bytes_expected: u64::MAX, body_bytes: 0 }
    }

    /// The next section has come; `is_end`: nothing follows it. An error says what makes the response malformed.
    pub(crate) fn note_section(&mut self, head: &Head, is_end: bool) -> Result<Part, &'static str> {
        if self.is_tunnel() {
            return Err("HEADERS within a tunnel");
        }
        if self.status != 0 {
            return trailers_fault(head, is_end).map_or(Ok(Part::Trailers), Err);
        }
        if head.status < 200 {
            return self.note_interim(head, is_end).map_or(Ok(Part::Interim), Err);
        }
        self.status = head.status;
        // RFC 9110 9.3.6: in the answer that opens a tunnel, a length means nothing.
        if !self.is_bodiless() && !self.is_tunnel() {
            self.body_bytes_expected = head.length.unwrap_or(u64::MAX);
        }
        if is_end && self.is_tunnel() {
            return Err("tunnel that ends at once");
        }
        Ok(Part::Head)
    }

    fn note_interim(&mut self, head: &Head, is_end: bool) -> Option<&'static str> {
        self.interim_count = self.interim_count.saturating_add(1);
        match head.status {
            0 => Some("head without :status"),
            101 => Some("status 101, which only HTTP/1.1 has"),
            _ if is_end => Some("interim response that ends the stream"),
            _ if u32::from(self.interim_count) > INTERIM_RESPONSE_COUNT_MAX => {
                Some("too many interim responses")
            }
            _ => None,
        }
    }

    /// What makes a piece of the body wrong.
    pub(crate) fn data_fault(&self, bytes: u32) -> Option<&'static str> {
        (bytes > 0 && self.is_bodiless()).then_some("DATA in a response that has no body")
    }

    /// The stream has ended: the response, if it is whole and as long as it said.
    pub(crate) const fn end(&self) -> Result<Response, &'static str> {
        if self.status == 0 {
            return Err("the stream ended before the response");
        }
        if self.body_bytes_expected != u64::MAX && self.body_bytes_expected != self.body_bytes {
            return Err("body length differs from content-length");
        }
        Ok(Response {
            status: self.status,
            keep_alive: true,
            body_bytes: self.body_bytes,
            interim_count: self.interim_count as u32,
        })
    }

    /// A tunnel was opened (RFC 9110 9.3.6): what follows is all its own.
    pub(crate) const fn is_tunnel(&self) -> bool {
        matches!(self.kind, RequestKind::Connect) && matches!(self.status, 200..300)
    }

    /// RFC 9110 6.4.1.
    const fn is_bodiless(&self) -> bool {
        matches!(self.kind, RequestKind::Head) || matches!(self.status, 204 | 304)
    }
}

fn trailers_fault(head: &Head, is_end: bool) -> Option<&'static str> {
    if head.status != 0 {
        return Some("pseudo-header field in trailers");
    }
    (!is_end).then_some("trailers that do not end the stream")
}
