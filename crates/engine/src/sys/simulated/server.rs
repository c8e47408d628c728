//! The simulated server: what it makes of a client's bytes, and how it misbehaves.
//!
//! It understands as much HTTP as our requests need. Owns: what is answered, never when the bytes arrive.

use crate::pace::SplitMix;

/// The protocol of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Speaks {
    #[default]
    H1,
    /// HTTP/2 without TLS.
    H2,
    /// HTTP/3.
    H3,
}

/// How the network and the server behave. Rates of faults are per thousand, of connects or of requests.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Behaviour {
    pub(crate) speaks: Speaks,
    pub(crate) is_tls: bool,
    /// Bytes that a socket takes before it blocks.
    pub(crate) socket_bytes: usize,
    pub(crate) delay_ns_max: u64,
    pub(crate) body_bytes_max: u64,
    /// Connects that are refused.
    pub(crate) refused: u32,
    /// The connection ends, or is reset, instead of an answer.
    pub(crate) ends: u32,
    /// The connection ends within the answer.
    pub(crate) cuts: u32,
    /// Neither this request nor any other on its connection is answered.
    pub(crate) stalls: u32,
    /// The answer has status 500.
    pub(crate) errors: u32,
    /// The answer leads elsewhere on the same server.
    pub(crate) redirects: u32,
    /// The answer is the connection's last: `Connection: close`, or GOAWAY.
    pub(crate) farewells: u32,
    /// Connections that the server ends, or resets, on its own at some moment.
    pub(crate) closes: u32,
    /// HTTP/2: the stream is reset; every other time as one that was not processed.
    pub(crate) resets: u32,
    /// Bytes that are no HTTP.
    pub(crate) garbage: u32,
    /// HTTP/3: datagrams that are lost; as many are spoilt, held up, and doubled.
    pub(crate) datagrams: u32,
}

impl Behaviour {
    /// The same network, and a server that does nothing wrong.
    pub(crate) fn with_lost_datagrams_only(self) -> Self {
        let Self { speaks, is_tls, socket_bytes, delay_ns_max, body_bytes_max, datagrams, .. } = self;
        Self { speaks, is_tls, socket_bytes, delay_ns_max, body_bytes_max, datagrams, ..Self::default() }
    }
}

/// Bytes that go to the client.
#[derive(Debug, Default)]
pub(super) struct Answer {
    pub(super) delay_ns: u64,
    pub(super) bytes: Vec<u8>,
    /// Where the request began in the client's stream, if these bytes are about one.
    pub(super) request_offset: Option<u64>,
    /// Of a whole response; 0: they hold none.
    pub(super) status: u16,
    /// The connection ends after them: whether by a reset.
    pub(super) ends: Option<bool>,
    /// Nothing comes after them on this connection, not even answers that were on their way.
    pub(super) silences: bool,
    /// That is what ends the response, too.
    pub(super) lasts_until_close: bool,
    pub(super) is_fault: bool,
}

/// The server's side of one connection.
#[derive(Debug, Default)]
pub(super) struct Peer {
    speaks: Speaks,
    input: Vec<u8>,
    /// Bytes of the client's stream before `input`.
    base: u64,
    has_preface: bool,
    /// HTTP/2: where each request began whose body is still to come.
    begun: Vec<(u32, u64)>,
    /// HTTP/2: the highest stream that is answered.
    last_id: u32,
    /// HTTP/2: bytes of bodies that the client may still send on the connection.
    window_bytes: i64,
    /// It reads nothing any more.
    is_over: bool,
}

/// What happens to one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Answered,
    Ends,
    Cuts,
    Stalls,
    Error,
    Redirect,
    Farewell,
    Reset,
    Garbage,
}

impl Behaviour {
    fn fate(&self, random: &mut SplitMix) -> Fate {
        let mut left = random.next() % 1000;
        for (rate, fate) in [
            (self.ends, Fate::Ends),
            (self.cuts, Fate::Cuts),
            (self.stalls, Fate::Stalls),
            (self.errors, Fate::Error),
            (self.redirects, Fate::Redirect),
            (self.farewells, Fate::Farewell),
            (if self.speaks == Speaks::H2 { self.resets } else { 0 }, Fate::Reset),
            (self.garbage, Fate::Garbage),
        ] {
            if left < u64::from(rate) {
                return fate;
            }
            left -= u64::from(rate);
        }
        Fate::Answered
    }

    /// The answer to the request at an offset, still without its bytes.
    fn answer(&self, fate: Fate, offset: u64, random: &mut SplitMix) -> Answer {
        Answer {
            delay_ns: random.next() % (self.delay_ns_max + 1),
            request_offset: Some(offset),
            is_fault: fate != Fate::Answered,
            status: match fate {
                Fate::Error => 500,
                Fate::Redirect => 302,
                _ => 200,
            },
            ..Answer::default()
        }
    }

    fn body(&self, random: &mut SplitMix) -> Vec<u8> {
        vec![b'.'; (random.next() % (self.body_bytes_max + 1)) as usize]
    }
}

impl Peer {
    pub(super) fn new(speaks: Speaks) -> Self {
        Self { speaks, window_bytes: WINDOW_BYTES, ..Self::default() }
    }

    /// Reads what the client has sent; what it gets for that, in order.
    pub(super) fn take(&mut self, bytes: &[u8], behaviour: &Behaviour, random: &mut SplitMix) -> Vec<Answer> {
        let mut answers = Vec::new();
        self.input.extend_from_slice(bytes);
        while !self.is_over {
            let is_read = match self.speaks {
                Speaks::H1 => self.take_request(behaviour, random, &mut answers),
                Speaks::H2 | Speaks::H3 => self.take_frame(behaviour, random, &mut answers),
            };
            if !is_read {
                break;
            }
        }
        answers
    }

    fn consume(&mut self, bytes: usize) {
        self.input.drain(..bytes);
        self.base += bytes as u64;
    }

    fn take_request(
        &mut self,
        behaviour: &Behaviour,
        random: &mut SplitMix,
        answers: &mut Vec<Answer>,
    ) -> bool {
        let Some(head_bytes) = self.input.windows(4).position(|end| end == b"\r\n\r\n").map(|at| at + 4)
        else {
            return false;
        };
        let head = String::from_utf8_lossy(&self.input[..head_bytes]).to_ascii_lowercase();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        let whole_bytes = head_bytes + length.map_or(0, |text| text.parse().expect("our own number"));
        if self.input.len() < whole_bytes {
            return false;
        }
        let offset = self.base;
        self.consume(whole_bytes);
        let body = behaviour.body(random);
        let fate = behaviour.fate(random);
        let mut answer = behaviour.answer(fate, offset, random);
        answer.lasts_until_close = fate == Fate::Farewell && random.next().is_multiple_of(3);
        answer.bytes = if answer.lasts_until_close {
            [b"HTTP/1.1 200 OK\r\n\r\n", body.as_slice()].concat()
        } else {
            h1_response(answer.status, fate == Fate::Farewell, &body, random)
        };
        self.apply(fate, &mut answer, random);
        answers.push(answer);
        true
    }

    /// What a fate makes of an answer, where it is the same in each protocol.
    fn apply(&mut self, fate: Fate, answer: &mut Answer, random: &mut SplitMix) {
        match fate {
            Fate::Answered | Fate::Error | Fate::Redirect | Fate::Reset => {}
            Fate::Farewell => {
                answer.ends = (self.speaks == Speaks::H1).then_some(false);
                self.is_over = true;
            }
            Fate::Ends => {
                answer.bytes.clear();
                answer.ends = Some(random.next().is_multiple_of(2));
                (answer.status, self.is_over) = (0, true);
            }
            Fate::Cuts => {
                let bytes = random.next() as usize % answer.bytes.len().max(1);
                answer.bytes.truncate(bytes);
                answer.ends = Some(random.next().is_multiple_of(2));
                (answer.status, self.is_over) = (0, true);
            }
            Fate::Stalls => {
                answer.bytes.clear();
                (answer.status, self.is_over) = (0, true);
            }
            Fate::Garbage => {
                answer.bytes = b"\0\x20\xff garbage, and more of it than a frame head".repeat(4);
                (answer.status, answer.silences, self.is_over) = (0, true, true);
            }
        }
    }

    fn take_frame(
        &mut self,
        behaviour: &Behaviour,
        random: &mut SplitMix,
        answers: &mut Vec<Answer>,
    ) -> bool {
        if !self.has_preface {
            return self.take_preface(answers);
        }
        let Some([a, b, c, kind, flags, id @ ..]) = self.input.first_chunk::<9>().copied() else {
            return false;
        };
        let whole_bytes = 9 + u32::from_be_bytes([0, a, b, c]) as usize;
        if self.input.len() < whole_bytes {
            return false;
        }
        let (offset, id, is_end) = (self.base, u32::from_be_bytes(id), flags & 1 == 1);
        let payload = self.input[9..whole_bytes].to_vec();
        self.consume(whole_bytes);
        let control = |bytes: Vec<u8>| Answer { bytes, ..Answer::default() };
        match kind {
            SETTINGS if !is_end => answers.push(control(frame(SETTINGS, 1, 0, &[]))),
            PING if !is_end => answers.push(control(frame(PING, 1, 0, &payload))),
            HEADERS if is_end => answers.push(self.h2_answer(id, offset, behaviour, random)),
            HEADERS => self.begun.push((id, offset)),
            RST_STREAM => self.begun.retain(|(own, _)| *own != id),
            DATA => {
                let ended = self.take_data(id, payload.len(), is_end, answers);
                answers.extend(ended.map(|offset| self.h2_answer(id, offset, behaviour, random)));
            }
            _ => {}
        }
        true
    }

    fn take_preface(&mut self, answers: &mut Vec<Answer>) -> bool {
        if self.input.len() < PREFACE_BYTES {
            return false;
        }
        self.consume(PREFACE_BYTES);
        self.has_preface = true;
        answers.push(Answer { bytes: frame(SETTINGS, 0, 0, &[]), ..Answer::default() });
        true
    }

    /// Counts a piece of a body against the windows; where the request began that it ends, if it ends one.
    fn take_data(&mut self, id: u32, bytes: usize, is_end: bool, answers: &mut Vec<Answer>) -> Option<u64> {
        let mut widen = |id: u32, increment: u32| {
            let bytes = frame(WINDOW_UPDATE, 0, id, &increment.to_be_bytes());
            answers.push(Answer { bytes, ..Answer::default() });
        };
        self.window_bytes -= bytes as i64;
        assert!(self.window_bytes >= 0, "the client has sent more than its window");
        if self.window_bytes < WINDOW_BYTES / 2 {
            widen(0, (WINDOW_BYTES - self.window_bytes) as u32);
            self.window_bytes = WINDOW_BYTES;
        }
        let at = self.begun.iter().position(|(own, _)| *own == id)?;
        if is_end {
            return Some(self.begun.swap_remove(at).1);
        }
        widen(id, bytes as u32);
        None
    }

    fn h2_answer(&mut self, id: u32, offset: u64, behaviour: &Behaviour, random: &mut SplitMix) -> Answer {
        let fate = match behaviour.fate(random) {
            // GOAWAY cannot except this stream and include a later one.
            Fate::Farewell if id < self.last_id => Fate::Answered,
            fate => fate,
        };
        self.last_id = self.last_id.max(id);
        let mut answer = behaviour.answer(fate, offset, random);
        let body = behaviour.body(random);
        // :status 200 and :status 500 of the static table (RFC 7541 A).
        let head: &[u8] = match answer.status {
            500 => &[0x8e],
            // :status 302 and location: /r, both written out, with names of the static table.
            302 => b"\x08\x03302\x0f\x1f\x02/r",
            _ => &[0x88],
        };
        answer.bytes = match fate {
            Fate::Reset => {
                answer.status = 0;
                let code = if random.next().is_multiple_of(2) { REFUSED_STREAM } else { CANCEL };
                frame(RST_STREAM, 0, id, &code.to_be_bytes())
            }
            Fate::Farewell => {
                // It has not processed this one, nor any that follows; those before are still answered.
                (answer.status, answer.delay_ns) = (0, 0);
                let last_id = id.saturating_sub(2);
                frame(GOAWAY, 0, 0, &[last_id.to_be_bytes(), [0; 4]].concat())
            }
            _ if body.is_empty() => frame(HEADERS, 5, id, head),
            _ => {
                let (most, last) = body.split_at(body.len() / 2);
                let frames =
                    [frame(HEADERS, 4, id, head), frame(DATA, 0, id, most), frame(DATA, 1, id, last)];
                frames.concat()
            }
        };
        self.apply(fate, &mut answer, random);
        answer
    }
}

/// A response, framed in any of the ways that HTTP/1.1 has.
fn h1_response(status: u16, is_last: bool, body: &[u8], random: &mut SplitMix) -> Vec<u8> {
    let connection = if is_last { "Connection: close\r\n" } else { "" };
    let interim = if random.next().is_multiple_of(16) { "HTTP/1.1 103 Early Hints\r\n\r\n" } else { "" };
    let location = if status == 302 { "Location: /r\r\n" } else { "" };
    let mut bytes = format!("{interim}HTTP/1.1 {status} OK\r\n{connection}{location}").into_bytes();
    if random.next().is_multiple_of(2) {
        bytes.extend_from_slice(format!("Content-Length: {}\r\n\r\n", body.len()).as_bytes());
        bytes.extend_from_slice(body);
        return bytes;
    }
    bytes.extend_from_slice(b"Transfer-Encoding: chunked\r\n\r\n");
    for chunk in body.chunks(1 + random.next() as usize % 700) {
        bytes.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
        bytes.extend_from_slice(chunk);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes.extend_from_slice(b"0\r\n\r\n");
    bytes
}

fn frame(kind: u8, flags: u8, stream_id: u32, payload: &[u8]) -> Vec<u8> {
    let [_, a, b, c] = (payload.len() as u32).to_be_bytes();
    let mut bytes = vec![a, b, c, kind, flags];
    bytes.extend_from_slice(&stream_id.to_be_bytes());
    bytes.extend_from_slice(payload);
    bytes
}

const PREFACE_BYTES: usize = 24;

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;

/// What a client may send before it is allowed more (RFC 9113 6.9.2).
const WINDOW_BYTES: i64 = 65_535;

const REFUSED_STREAM: u32 = 7;
const CANCEL: u32 = 8;
