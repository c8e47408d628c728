//! As much HTTP/2 as a silent connection needs: settings, pings, and the server's farewell (RFC 9113).
//!
//! Owns: where in the stream of frames a connection is. Frames that matter to requests alone are skipped.

/// The client's preface and its empty settings (RFC 9113 3.4).
pub(super) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";

/// A ping with data that means nothing.
pub(super) const PING: [u8; 17] = *b"\0\0\x08\x06\0\0\0\0\0squall\0\0";

/// Reads frames in the pieces in which they come.
#[derive(Debug, Default)]
pub(super) struct Frames {
    /// The header, and the first bytes of the payload, of the frame that is being read.
    begin: Vec<u8>,
    /// Bytes of its payload that are to be skipped.
    skip_bytes: usize,
}

/// What a frame asks of a silent client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Event {
    /// The server's settings: they are to be acknowledged.
    Settings,
    /// The server wants to know whether we live: its data is to be sent back.
    Ping([u8; 8]),
    /// Our ping is answered.
    Pong,
    /// The server ends the connection.
    GoAway,
}

impl Frames {
    /// Takes the next event out of `bytes`, and what was read off them; `None` when there is none in them. An error is a frame that is
    /// larger than was allowed.
    pub(super) fn next(&mut self, bytes: &mut &[u8]) -> Result<Option<Event>, &'static str> {
        loop {
            let skipped = self.skip_bytes.min(bytes.len());
            *bytes = &bytes[skipped..];
            self.skip_bytes -= skipped;
            if self.skip_bytes > 0 || !self.fill(bytes, HEADER_BYTES) {
                return Ok(None);
            }
            let length = usize::from(self.begin[0]) << 16
                | usize::from(self.begin[1]) << 8
                | usize::from(self.begin[2]);
            if length > FRAME_BYTES_MAX {
                return Err("the server sent a frame larger than allowed");
            }
            let kind = self.begin[3];
            let wanted = if kind == PING_KIND { length.min(PING_BYTES) } else { 0 };
            if !self.fill(bytes, HEADER_BYTES + wanted) {
                return Ok(None);
            }
            let event = self.event(kind);
            self.skip_bytes = length - wanted;
            self.begin.clear();
            if event.is_some() {
                return Ok(event);
            }
        }
    }

    fn event(&self, kind: u8) -> Option<Event> {
        let is_ack = self.begin[4] & 1 == 1;
        match kind {
            SETTINGS_KIND if !is_ack => Some(Event::Settings),
            PING_KIND if is_ack => Some(Event::Pong),
            PING_KIND => Some(Event::Ping(self.begin.get(HEADER_BYTES..)?.try_into().ok()?)),
            GOAWAY_KIND => Some(Event::GoAway),
            _ => None,
        }
    }

    /// Whether the first `count` bytes of the frame are there.
    fn fill(&mut self, bytes: &mut &[u8], count: usize) -> bool {
        let taken = count.saturating_sub(self.begin.len()).min(bytes.len());
        self.begin.extend_from_slice(&bytes[..taken]);
        *bytes = &bytes[taken..];
        self.begin.len() >= count
    }
}

/// The acknowledgement of settings.
pub(super) const SETTINGS_ACK: [u8; 9] = [0, 0, 0, SETTINGS_KIND, 1, 0, 0, 0, 0];

/// The answer to a ping.
pub(super) fn pong(data: [u8; 8]) -> [u8; 17] {
    let mut frame = PING;
    frame[4] = 1;
    frame[HEADER_BYTES..].copy_from_slice(&data);
    frame
}

const HEADER_BYTES: usize = 9;
const PING_BYTES: usize = 8;
const SETTINGS_KIND: u8 = 4;
const PING_KIND: u8 = 6;
const GOAWAY_KIND: u8 = 7;

/// RFC 9113 4.2: what a server may send while we have not allowed more.
const FRAME_BYTES_MAX: usize = 1 << 14;

#[cfg(test)]
mod tests {
    use super::*;

    /// Settings with one value, a window update, a ping, its answer, a farewell.
    const STREAM: &[u8] = b"\0\0\x06\x04\0\0\0\0\0\0\x03\0\0\0d\0\0\x04\x08\0\0\0\0\0\0\0\xff\xff\
        \0\0\x08\x06\0\0\0\0\0abcdefgh\0\0\x08\x06\x01\0\0\0\0squall\0\0\0\0\x08\x07\0\0\0\0\0\0\0\0\0\0\0\0\0";

    #[test]
    fn events_are_the_same_in_pieces_of_any_size() {
        for size in 1..STREAM.len() {
            let mut frames = Frames::default();
            let mut events = Vec::new();
            for mut piece in STREAM.chunks(size) {
                while let Some(event) = frames.next(&mut piece).unwrap() {
                    events.push(event);
                }
            }
            let expected = [Event::Settings, Event::Ping(*b"abcdefgh"), Event::Pong, Event::GoAway];
            assert_eq!(events, expected, "in pieces of {size}");
        }
    }

    #[test]
    fn a_frame_that_is_too_large_is_refused() {
        assert!(Frames::default().next(&mut &b"\xff\xff\xff\0\0\0\0\0\0"[..]).is_err());
    }

    #[test]
    fn a_pong_brings_the_data_back() {
        assert_eq!(&pong(*b"abcdefgh")[..], b"\0\0\x08\x06\x01\0\0\0\0abcdefgh");
    }
}
