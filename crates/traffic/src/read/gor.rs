//! GoReplay's `.gor`: `type id time latency`, a line end, the bytes as captured, and three monkeys.
//!
//! A response follows its request somewhere further down; requests wait for it in bounded memory. Records come out in the
//! order in which they are complete.

use std::collections::{HashMap, VecDeque};

use super::{Notes, Source, http1, time};
use crate::input::Input;
use crate::limits::{PENDING_BYTES_MAX, PENDING_COUNT_MAX, RECORD_BYTES_MAX};
use crate::{Place, Problem, Record, key_of};

/// The reader.
pub(super) struct Gor {
    input: Input,
    notes: Notes,
    record_count: u64,
    buffer: Vec<u8>,
    /// Requests whose response has not come yet, by id.
    pending: HashMap<Vec<u8>, Record>,
    /// Their ids, oldest first; some are answered already.
    order: VecDeque<Vec<u8>>,
    pending_bytes: usize,
    is_at_end: bool,
}

/// The first line of a record.
struct Header<'a> {
    kind: u8,
    id: &'a [u8],
    time_ns: u64,
    latency_ns: u64,
}

impl Gor {
    pub(super) fn new(input: Input) -> Self {
        Self {
            input,
            notes: Notes::default(),
            record_count: 0,
            buffer: Vec::new(),
            pending: HashMap::new(),
            order: VecDeque::new(),
            pending_bytes: 0,
            is_at_end: false,
        }
    }

    /// Reads one record of the file; what is complete by it comes out.
    fn read_one(&mut self) -> Result<Option<Record>, Problem> {
        self.record_count += 1;
        let place = self.input.place(self.record_count);
        self.buffer.clear();
        let is_more = self.input.read_record(SEPARATOR, &mut self.buffer, RECORD_BYTES_MAX, place)?;
        self.is_at_end = !is_more;
        if self.is_at_end && self.buffer.trim_ascii().is_empty() {
            return Ok(None);
        }
        let buffer = std::mem::take(&mut self.buffer);
        let result = self.take(&buffer, place);
        self.buffer = buffer;
        result
    }

    fn take(&mut self, bytes: &[u8], place: Place) -> Result<Option<Record>, Problem> {
        let line_end = memchr::memchr(b'\n', bytes).unwrap_or(bytes.len());
        let (line, payload) = (&bytes[..line_end], bytes.get(line_end + 1..).unwrap_or_default());
        let header = header(line).map_err(|reason| Problem::record(place, reason))?;
        match header.kind {
            b'1' => self.take_request(&header, payload, place),
            b'2' => self.take_response(&header, payload, place),
            _ => {
                self.notes.add("responses of an earlier replay are left out", place);
                Ok(None)
            }
        }
    }

    fn take_request(
        &mut self,
        header: &Header<'_>,
        payload: &[u8],
        place: Place,
    ) -> Result<Option<Record>, Problem> {
        let request = http1::request(payload).map_err(|reason| Problem::record(place, reason))?;
        if self.notes.is_web_socket(&request, place) {
            return Ok(None);
        }
        if request.authority.is_empty() {
            self.notes.add("requests without Host: replay needs --to", place);
        }
        let connection = connection_key(header.id);
        let record = Record {
            time_ns: header.time_ns,
            connection,
            // A connection may be a proxy's, with many clients: what identifies those is in the requests.
            session: 0,
            request,
            response: None,
            place,
        };
        self.pending_bytes += record.bytes();
        self.order.push_back(header.id.to_vec());
        let replaced = self.pending.insert(header.id.to_vec(), record);
        if let Some(record) = replaced {
            self.pending_bytes -= record.bytes();
            self.notes.add("requests that share their id with a later one", place);
            return Ok(Some(record));
        }
        Ok(None)
    }

    fn take_response(
        &mut self,
        header: &Header<'_>,
        payload: &[u8],
        place: Place,
    ) -> Result<Option<Record>, Problem> {
        let Some(mut record) = self.pending.remove(header.id) else {
            self.notes.add("responses without a request before them", place);
            return Ok(None);
        };
        self.pending_bytes -= record.bytes();
        match http1::response(payload) {
            Ok(mut response) => {
                response.latency_ns =
                    header.time_ns.saturating_add(header.latency_ns).saturating_sub(record.time_ns);
                record.response = Some(response);
            }
            Err(_) => self.notes.add("malformed responses: only their requests are used", place),
        }
        Ok(Some(record))
    }

    /// The oldest request that waits, when too many do or no more can come.
    fn give_up_waiting(&mut self) -> Option<Record> {
        let is_full = self.order.len() >= PENDING_COUNT_MAX || self.pending_bytes >= PENDING_BYTES_MAX;
        while is_full || self.is_at_end {
            let id = self.order.pop_front()?;
            if let Some(record) = self.pending.remove(&id) {
                self.pending_bytes -= record.bytes();
                return Some(record);
            }
        }
        // Ids whose request was answered long ago need no place in the line.
        while self.order.front().is_some_and(|id| !self.pending.contains_key(id)) {
            self.order.pop_front();
        }
        None
    }
}

impl Source for Gor {
    fn next(&mut self) -> Result<Option<Record>, Problem> {
        loop {
            if let Some(record) = self.give_up_waiting() {
                return Ok(Some(record));
            }
            if self.is_at_end {
                return Ok(None);
            }
            if let Some(record) = self.read_one()? {
                return Ok(Some(record));
            }
        }
    }

    fn notes(&self) -> &Notes {
        &self.notes
    }

    fn bytes_read(&self) -> u64 {
        self.input.byte()
    }
}

fn header(line: &[u8]) -> Result<Header<'_>, String> {
    let shown = || time::cut(&String::from_utf8_lossy(line));
    let mut parts = line.split(|byte| *byte == b' ').filter(|part| !part.is_empty());
    let kind = match parts.next() {
        Some([kind @ b'1'..=b'3']) => *kind,
        _ => return Err(format!("`{}` is not a header: `1 ID TIME` was expected", shown())),
    };
    let id = parts.next().ok_or_else(|| format!("`{}` has no id", shown()))?;
    let time = parts.next().and_then(number).ok_or_else(|| format!("`{}` has no time", shown()))?;
    let latency_ns = parts.next().and_then(number).unwrap_or(0);
    Ok(Header { kind, id, time_ns: time::of_epoch(time)?, latency_ns })
}

fn number(text: &[u8]) -> Option<u64> {
    std::str::from_utf8(text).ok()?.trim().parse().ok()
}

/// Ids of 24 hexadecimal digits begin with both ports and the client's address: the TCP connection. Older ids of 40 are
/// hashes, of which the first 20 name it in some versions; others say nothing.
fn connection_key(id: &[u8]) -> u64 {
    match id.len() {
        24 => key_of(&id[..16]),
        40 => key_of(&id[..20]),
        _ => 0,
    }
}

/// A line end, three wise monkeys, a line end.
const SEPARATOR: &[u8] = "\n\u{1f435}\u{1f648}\u{1f649}\n".as_bytes();

#[cfg(test)]
mod tests {
    use super::super::Format;
    use super::super::tests::{all, good};
    use crate::limits::PENDING_COUNT_MAX;

    fn file(records: &[&str]) -> Vec<u8> {
        records.join("\n\u{1f435}\u{1f648}\u{1f649}\n").into_bytes()
    }

    /// One request that is never answered must not make the others' ids wait behind it for ever.
    #[test]
    fn a_request_without_a_response_is_given_up_in_time() {
        let time_ns = 1_714_557_600_000_000_000_u64;
        let request = |nth: usize| {
            format!("1 {nth:024x} {} 0\nGET /{nth} HTTP/1.1\r\nHost: x\r\n\r\n", time_ns + nth as u64)
        };
        let response = |nth: usize| format!("2 {nth:024x} {time_ns} 0\nHTTP/1.1 204 No Content\r\n\r\n");
        let count = PENDING_COUNT_MAX + 10;
        let others = (1..count).flat_map(|nth| [request(nth), response(nth)]);
        let text: Vec<String> = std::iter::once(request(0)).chain(others).collect();
        let records = good(Format::Gor, file(&text.iter().map(String::as_str).collect::<Vec<_>>()));
        let given_up = records.iter().position(|record| record.request.target == "/0").unwrap();
        assert!(records.len() == count && given_up < PENDING_COUNT_MAX, "{given_up} of {}", records.len());
    }

    #[test]
    fn requests_get_their_responses() {
        let records = good(
            Format::Gor,
            file(&[
                "1 aeb496b6165db3fad05c89b8 1611642131487022000 405000\nGET /a HTTP/1.1\r\nHost: x\r\n\r\n",
                "1 aeb496b6165db3fad05c89b9 1611642131487023000\nGET /b HTTP/1.1\r\nHost: x\r\n\r\n",
                "2 aeb496b6165db3fad05c89b8 1611642131488022000 1000\nHTTP/1.1 404 No\r\nContent-Length: 2\r\n\r\nno",
            ]),
        );
        assert_eq!(records.len(), 2);
        let response = records[0].response.as_ref().unwrap();
        assert_eq!((response.status, response.latency_ns, response.body_bytes), (404, 1_001_000, 2));
        assert_eq!(records[0].connection, records[1].connection);
        assert!(records[0].connection != 0 && records[1].response.is_none());
    }

    #[test]
    fn a_bad_record_does_not_spoil_the_next() {
        let (records, problems) = all(
            Format::Gor,
            file(&[
                "7 x y\n",
                "1 aa 12\nGET / HTTP/1.1\r\n\r\n",
                "1 aa 1611642131487022000\nGE",
                "1 aa 1611642131487022000\nGET / HTTP/1.1\r\nHost: x\r\n\r\n",
            ]),
        );
        assert_eq!((records.len(), problems.len()), (1, 3));
        assert_eq!(problems[2].place.record, 3);
    }
}
