//! What is kept of responses: the `Location` of a redirect, and whole responses that a driver or a replay reads.

use std::ops::Range;

use squall_wire::h1::{Fields, HeadView, Sink};

use crate::driver::stream::{StreamKey, StreamNews, StreamReport};
use crate::prepare::Prepared;
use crate::shard::recorder::capture::Captures;
use crate::shard::recorder::streams::StreamTable;

/// Takes responses: remembers the `Location` of each redirect until its response is whole, and keeps what a driver or a replay wants.
#[derive(Debug, Default)]
pub(in crate::shard) struct ResponseSink {
    is_followed: bool,
    /// Connection and slot that are being read.
    at: (usize, u32),
    /// The place in the exchange table of that connection's first slot.
    first_place: u32,
    locations: Vec<((usize, u32), String)>,
    /// The Alt-Svc fields of responses, by connection, where they are followed.
    alternatives: Option<AlternativeValues>,
    pub(in crate::shard) captures: Captures,
    /// What has come of the response to each request in flight, by its place in the exchange table, where a driver wants it.
    responses: Option<Vec<KeptResponse>>,
    /// Bytes of all their bodies, and the most of this shard.
    held_bytes: usize,
    held_bytes_max: usize,
    /// What has come of streams that a driver holds.
    pub(in crate::shard) events: Vec<StreamReport>,
    /// When what is read now came.
    at_ns: u64,
    /// What has come of each response, where they are streams of events.
    pub(in crate::shard) streams: Option<Box<StreamTable>>,
}

/// Values of Alt-Svc that came and have not been read.
#[derive(Debug, Default)]
struct AlternativeValues {
    /// One for each connection: of several heads before a response is whole, on different streams, the last counts.
    kept: Vec<(usize, Vec<u8>)>,
    spare: Vec<u8>,
}

impl AlternativeValues {
    /// Several fields are one list (RFC 9110 5.3).
    fn note(&mut self, conn_idx: usize, head: &HeadView<'_>) {
        let mut value = std::mem::take(&mut self.spare);
        value.clear();
        for field in head.fields().filter(|field| field.name.eq_ignore_ascii_case(b"alt-svc")) {
            if !value.is_empty() {
                value.push(b',');
            }
            value.extend_from_slice(field.value);
        }
        if value.is_empty() {
            self.spare = value;
            return;
        }
        match self.kept.iter_mut().find(|(at, _)| *at == conn_idx) {
            Some((_, kept)) => self.spare = std::mem::replace(kept, value),
            None => self.kept.push((conn_idx, value)),
        }
    }
}

/// A response as it came.
#[derive(Debug, Default)]
struct KeptResponse {
    head: Vec<u8>,
    body: Vec<u8>,
    /// 0: it is not read.
    body_bytes_max: usize,
    is_too_large: bool,
    /// It is reported as it comes: the user, the token and the name of its stream.
    stream: Option<(u32, u32, StreamKey)>,
}

impl ResponseSink {
    /// Keeps what a load wants that drives itself.
    pub(in crate::shard) fn new(prepared: &Prepared) -> Self {
        let has_alternatives = prepared.origins.iter().any(|origin| origin.alternative.is_some());
        Self {
            is_followed: prepared.http().follow_count_max > 0,
            alternatives: has_alternatives.then(AlternativeValues::default),
            streams: prepared.streams.clone().map(|policy| Box::new(StreamTable::new(policy))),
            ..Self::default()
        }
    }

    /// Keeps responses for a driver, as many bytes of them as this.
    pub(in crate::shard) fn for_driver(held_bytes_max: usize) -> Self {
        Self { responses: Some(Vec::new()), held_bytes_max, ..Self::default() }
    }

    /// The exchange table has so many places.
    pub(in crate::shard) fn set_place_count(&mut self, count: usize) {
        if let Some(responses) = &mut self.responses {
            responses.resize_with(count, KeptResponse::default);
        }
    }

    /// How much is wanted of the body of the response to the request in this place.
    pub(in crate::shard) fn keep_body(&mut self, place: usize, body_bytes_max: usize) {
        if let Some(responses) = &mut self.responses {
            responses[place].body_bytes_max = body_bytes_max;
        }
    }

    /// The response to the request in this place is reported as it comes, or is not.
    pub(in crate::shard) fn set_stream(&mut self, place: usize, stream: Option<(u32, u32, StreamKey)>) {
        if let Some(responses) = &mut self.responses {
            responses[place].stream = stream;
        }
    }

    /// The head of the response in this place.
    pub(in crate::shard) fn head_of(&self, place: usize) -> &[u8] {
        self.responses
            .as_ref()
            .and_then(|responses| responses.get(place))
            .map_or(&[], |response| &response.head)
    }

    /// Whether anything is.
    pub(in crate::shard) fn keeps_body(&self, place: usize) -> bool {
        self.streams.is_some()
            || self.responses.as_ref().is_some_and(|responses| responses[place].is_wanted())
    }

    /// Whether the body of the response in this place was too large to be kept.
    pub(in crate::shard) fn is_too_large(&self, place: usize) -> bool {
        let response = self.responses.as_ref().and_then(|responses| responses.get(place));
        response.is_some_and(|response| response.is_too_large)
    }

    /// Takes head and body of the response in this place.
    pub(in crate::shard) fn take_response(&mut self, place: usize) -> (Vec<u8>, Vec<u8>) {
        let response = self.responses.as_mut().and_then(|responses| responses.get_mut(place));
        let Some(response) = response else { return Default::default() };
        self.held_bytes -= response.body.len();
        response.is_too_large = false;
        (std::mem::take(&mut response.head), std::mem::take(&mut response.body))
    }

    /// What is read now comes from this connection, and came at this time.
    pub(in crate::shard) fn begin(&mut self, conn_idx: usize, first_place: u32, at_ns: u64) {
        (self.at, self.first_place, self.at_ns) = ((conn_idx, 0), first_place, at_ns);
        if let Some(streams) = &mut self.streams {
            streams.at_ns = at_ns;
        }
    }

    /// The location of the response in this slot.
    pub(in crate::shard) fn take(&mut self, conn_idx: usize, slot: u32) -> Option<String> {
        let idx = self.locations.iter().position(|(at, _)| *at == (conn_idx, slot))?;
        Some(self.locations.swap_remove(idx).1)
    }

    /// The Alt-Svc field of a connection's last response, if it had one.
    pub(in crate::shard) fn take_alternative(&mut self, conn_idx: usize) -> Option<Vec<u8>> {
        let AlternativeValues { kept, .. } = self.alternatives.as_mut()?;
        let idx = kept.iter().position(|(at, _)| *at == conn_idx)?;
        Some(kept.swap_remove(idx).1)
    }

    /// A value has been read: the next one has its memory.
    pub(in crate::shard) fn give_back_alternative(&mut self, value: Vec<u8>) {
        if let Some(alternatives) = &mut self.alternatives {
            alternatives.spare = value;
        }
    }

    /// Of the answers that come in this place, only the last one's counts: others were of no redirect, or given up.
    fn note_location(&mut self, head: &HeadView<'_>) {
        let at = self.at;
        self.locations.retain(|(other, _)| *other != at);
        if (300..400).contains(&head.status())
            && let Some(value) = head.field("location")
        {
            self.locations.push((at, String::from_utf8_lossy(value).into_owned()));
        }
    }

    /// The connection is gone, and what was in these places.
    pub(in crate::shard) fn forget(&mut self, conn_idx: usize, places: Range<u32>) {
        self.locations.retain(|((at, _), _)| *at != conn_idx);
        self.take_alternative(conn_idx);
        self.captures.forget(conn_idx);
        if let Some(streams) = &mut self.streams {
            places.clone().for_each(|place| streams.forget(place as usize));
        }
        if self.responses.is_some() {
            places.for_each(|place| drop(self.take_response(place as usize)));
        }
    }
}

impl KeptResponse {
    /// Whether its body is.
    fn is_wanted(&self) -> bool {
        self.body_bytes_max > 0 || self.stream.is_some()
    }
}

/// Something has come of a response, where it is reported as it comes.
fn report(
    events: &mut Vec<StreamReport>,
    response: &KeptResponse,
    at_ns: u64,
    news: impl FnOnce() -> StreamNews,
) {
    if let Some((user, token, key)) = response.stream {
        events.push(StreamReport { user, token, key, at_ns, news: news() });
    }
}

impl Sink for ResponseSink {
    fn head(&mut self, head: &HeadView<'_>) {
        if self.is_followed {
            self.note_location(head);
        }
        if let Some(alternatives) = &mut self.alternatives {
            alternatives.note(self.at.0, head);
        }
        self.captures.head(self.at, head);
        if let Some(streams) = &mut self.streams {
            streams.head((self.first_place + self.at.1) as usize, head);
        }
        if let Some(responses) = &mut self.responses {
            let response = &mut responses[(self.first_place + self.at.1) as usize];
            self.held_bytes -= response.body.len();
            response.is_too_large = false;
            response.head.clear();
            response.body.clear();
            response.head.extend_from_slice(head.raw());
            report(&mut self.events, response, self.at_ns, || StreamNews::Head(head.raw().to_vec()));
        }
    }

    fn data(&mut self, bytes: &[u8]) {
        self.captures.data(self.at, bytes);
        if let Some(streams) = &mut self.streams {
            return streams.data((self.first_place + self.at.1) as usize, bytes);
        }
        let Some(responses) = &mut self.responses else { return };
        let response = &mut responses[(self.first_place + self.at.1) as usize];
        if response.stream.is_some() {
            return report(&mut self.events, response, self.at_ns, || StreamNews::Data(bytes.to_vec()));
        }
        if response.body_bytes_max == 0 || response.is_too_large {
            return;
        }
        let has_room = response.body.len() + bytes.len() <= response.body_bytes_max
            && self.held_bytes + bytes.len() <= self.held_bytes_max;
        if has_room {
            self.held_bytes += bytes.len();
            response.body.extend_from_slice(bytes);
        } else {
            self.held_bytes -= response.body.len();
            (response.body, response.is_too_large) = (Vec::new(), true);
        }
    }

    fn interim(&mut self, status: u16) {
        if let Some(responses) = &self.responses {
            let response = &responses[(self.first_place + self.at.1) as usize];
            report(&mut self.events, response, self.at_ns, || StreamNews::Interim(status));
        }
    }

    fn trailers(&mut self, fields: Fields<'_>) {
        if let Some(responses) = &self.responses {
            let response = &responses[(self.first_place + self.at.1) as usize];
            report(&mut self.events, response, self.at_ns, || {
                StreamNews::Trailers(
                    fields.map(|field| (field.name.to_vec(), field.value.to_vec())).collect(),
                )
            });
        }
    }

    fn stream(&mut self, slot: u32) {
        self.at.1 = slot;
    }

    fn wants_heads(&self) -> bool {
        self.is_followed
            || self.alternatives.is_some()
            || !self.captures.is_empty()
            || self.responses.is_some()
            || self.streams.is_some()
    }
}
