//! Responses that are streams of events, while they come: each piece is divided into events where it was read, and nothing of it is kept.
//!
//! Owns: what is known of each open stream, by its place in the exchange table, and the figures of the running second.
//! Never: connections; when a stream ends is decided in `schedule::streams`.

use squall_measure::{Cause, Phase, Snapshot, StreamFacts, StreamFigures, StreamGaps};
use squall_plan::StreamFormat;
use squall_plan::limits::STREAM_EVENT_BYTES_MAX;
use squall_wire::events::{EventDecoder, EventFormat};
use squall_wire::h1::HeadView;

use crate::prepare::{RecordedStream, StreamPolicy, StreamResumption};
use crate::trouble::Trouble;

/// The streams of one event loop.
#[derive(Debug)]
#[expect(clippy::vec_box, reason = "boxes move between the two lists")]
pub(in crate::shard) struct StreamTable {
    policy: StreamPolicy,
    /// By place in the exchange table. Boxed: a place without a stream costs a word.
    open: Vec<Option<Box<OpenStream>>>,
    /// Of streams that have ended, with their memory.
    spare: Vec<Box<OpenStream>>,
    figures: StreamFigures,
    /// When what is read now came.
    pub(super) at_ns: u64,
}

/// A stream that was asked for.
#[derive(Debug, Default)]
struct OpenStream {
    /// From when its first event counts.
    begin_ns: u64,
    is_warmup: bool,
    status: u16,
    /// When its head came; 0: it has not, or its status is that of no stream.
    head_ns: u64,
    /// When anything of it came last.
    last_ns: u64,
    /// When its first and its last event came; 0: none has.
    first_event_ns: u64,
    last_event_ns: u64,
    event_count: u64,
    /// When the event came that was to be its last; 0: it has not.
    done_ns: u64,
    is_too_large: bool,
    /// Its body is compressed, say, so that its events cannot be told apart.
    is_coded: bool,
    reading: Reading,
    /// Where it goes on after streams before it.
    resumption: StreamResumption,
    recorded: Option<RecordedStream>,
    /// When it had as many events as were recorded; 0: it has not.
    whole_ns: u64,
    /// When it was asked for.
    start_ns: u64,
    gaps: StreamGaps,
}

/// How a response is divided into events.
#[derive(Debug, Default)]
enum Reading {
    /// It has not begun, or is none that has events.
    #[default]
    None,
    Pieces,
    Events(Box<EventDecoder>),
}

/// What became of a stream that ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::shard) enum EventStreamEnd {
    Ok,
    Failed,
    /// Closed by us before its end.
    Cut,
}

/// Why an open stream is to end now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::shard) enum StreamDue {
    /// It was held as long as was wanted, or its last event has come: status of its head.
    Over(u16),
    /// An event was larger than is read.
    TooLarge,
    /// Its body has a content coding.
    Coded,
    /// Nothing came for too long.
    Silent,
}

impl StreamTable {
    /// No stream yet.
    pub(in crate::shard) fn new(policy: StreamPolicy) -> Self {
        Self { policy, open: Vec::new(), spare: Vec::new(), figures: StreamFigures::default(), at_ns: 0 }
    }

    /// A request starts. What was in its place before is gone.
    pub(in crate::shard) fn begin(
        &mut self,
        place: usize,
        (begin_ns, is_warmup): (u64, bool),
        resumption: Option<&StreamResumption>,
    ) {
        if self.open.len() <= place {
            self.open.resize_with(place + 1, || None);
        }
        let mut stream = self.open[place].take().or_else(|| self.spare.pop()).unwrap_or_default();
        stream.gaps.clear();
        let gaps = std::mem::take(&mut stream.gaps);
        let resumption = resumption.cloned().unwrap_or_default();
        *stream =
            OpenStream { begin_ns, is_warmup, last_ns: begin_ns, resumption, gaps, ..OpenStream::default() };
        self.open[place] = Some(stream);
    }

    /// A recorded request starts whose answer was a stream.
    pub(in crate::shard) fn begin_recorded(
        &mut self,
        place: usize,
        (begin_ns, start_ns, is_warmup): (u64, u64, bool),
        recorded: RecordedStream,
    ) {
        self.begin(place, (begin_ns, is_warmup), None);
        if let Some(stream) = self.open.get_mut(place).and_then(Option::as_mut) {
            (stream.recorded, stream.start_ns, stream.last_ns) = (Some(recorded), start_ns, start_ns);
        }
    }

    pub(super) fn head(&mut self, place: usize, head: &HeadView<'_>) {
        let (policy, at_ns) = (&self.policy, self.at_ns);
        let Some(stream) = self.open.get_mut(place).and_then(Option::as_mut) else { return };
        (stream.status, stream.last_ns) = (head.status(), at_ns);
        if !(200..300).contains(&head.status()) {
            return;
        }
        let coding = head.field("content-encoding").unwrap_or(b"identity");
        let is_coded = !coding.eq_ignore_ascii_case(b"identity") && policy.format != StreamFormat::Pieces;
        // A replay does not say how the answer is to look.
        stream.is_coded = is_coded && stream.recorded.is_none();
        if is_coded {
            return;
        }
        stream.head_ns = at_ns;
        stream.reading = Reading::new(policy.format, head.field("content-type").unwrap_or_default());
        if let Reading::Events(decoder) = &mut stream.reading {
            decoder.retry = stream.resumption.retry;
            decoder.resume_after(stream.resumption.last_id.as_deref().unwrap_or_default());
        }
        self.figures.opened += u64::from(!stream.is_warmup);
    }

    pub(super) fn data(&mut self, place: usize, bytes: &[u8]) {
        let Some(stream) = self.open.get_mut(place).and_then(Option::as_mut) else { return };
        stream.last_ns = self.at_ns;
        let mut reading = std::mem::take(&mut stream.reading);
        match &mut reading {
            Reading::None => {}
            Reading::Pieces => stream.note_event(&self.policy, &mut self.figures, bytes, self.at_ns),
            Reading::Events(decoder) => {
                let (mut rest, comment_count) = (bytes, decoder.comment_count);
                loop {
                    match decoder.decode(&mut rest) {
                        Ok(None) => break,
                        Ok(Some(event)) => {
                            stream.note_event(&self.policy, &mut self.figures, event.data, self.at_ns);
                        }
                        Err(_too_large) => {
                            stream.is_too_large = true;
                            stream.resumption.follow(decoder);
                            break;
                        }
                    }
                }
                self.figures.comments +=
                    if stream.is_warmup { 0 } else { decoder.comment_count - comment_count };
            }
        }
        // What cannot be read any more is dropped.
        stream.reading = if stream.is_too_large { Reading::None } else { reading };
    }

    /// The response in this place is whole: a last line may be an event. Whether it was a stream that came to its end.
    pub(in crate::shard) fn finish(&mut self, place: usize) -> Result<(), Trouble> {
        let Some(stream) = self.open.get_mut(place).and_then(Option::as_mut) else { return Ok(()) };
        let mut reading = std::mem::take(&mut stream.reading);
        if let Reading::Events(decoder) = &mut reading
            && let Some(event) = decoder.finish()
        {
            stream.note_event(&self.policy, &mut self.figures, event.data, self.at_ns);
        }
        stream.reading = reading;
        match (stream.is_coded, &self.policy.done) {
            (true, _) => Err(coded()),
            (false, Some(_)) if stream.done_ns == 0 => {
                let text = "the stream ended before the event that `--done` names".to_owned();
                Err(Trouble::new(Cause::EndedEarly, Phase::Receiving, text))
            }
            _ => Ok(()),
        }
    }

    /// Counts a stream that has ended, and forgets it.
    pub(in crate::shard) fn end(
        &mut self,
        place: usize,
        end: EventStreamEnd,
        (is_warmup, now_ns): (bool, u64),
    ) {
        let stream = self.open.get_mut(place).and_then(Option::take);
        let is_early = |stream: &OpenStream| stream.head_ns > 0 && stream.done_ns == 0;
        if !is_warmup {
            let is_early = end == EventStreamEnd::Failed && stream.as_deref().is_some_and(is_early);
            self.figures.ended_early += u64::from(is_early);
            self.figures.closed_by_us += u64::from(end == EventStreamEnd::Cut);
            match &stream {
                Some(stream) => self.judge(stream, end, now_ns),
                None => self.judge(&OpenStream::default(), end, now_ns),
            }
        }
        self.spare.extend(stream.filter(|_| self.spare.len() < SPARE_COUNT_MAX));
    }

    /// The connection in whose place it was is gone.
    pub(super) fn forget(&mut self, place: usize) {
        let stream = self.open.get_mut(place).and_then(Option::take);
        self.spare.extend(stream.filter(|_| self.spare.len() < SPARE_COUNT_MAX));
    }

    fn judge(&mut self, stream: &OpenStream, end: EventStreamEnd, now_ns: u64) {
        let Some(objectives) = self.policy.objectives.as_ref().filter(|_| end != EventStreamEnd::Cut) else {
            return;
        };
        let facts = StreamFacts {
            first_ns: (stream.event_count > 0).then(|| stream.first_event_ns.saturating_sub(stream.begin_ns)),
            total_ns: now_ns.saturating_sub(stream.begin_ns),
            event_count: stream.event_count,
            gaps: &stream.gaps,
        };
        self.figures.judged += 1;
        self.figures.good += u64::from(end == EventStreamEnd::Ok && objectives.hold(facts));
    }

    /// Until when the stream in this place may stay as it is; `timeout_ns`: how long it may be silent.
    pub(in crate::shard) fn deadline(&self, place: usize, timeout_ns: u64) -> Option<u64> {
        let stream = self.stream(place)?;
        let silent_ns = stream.last_ns.saturating_add(timeout_ns);
        let held_from_ns = if stream.head_ns > 0 { stream.head_ns } else { stream.begin_ns };
        let done_ns = if stream.done_ns > 0 { stream.done_ns + DONE_GRACE_NS } else { u64::MAX };
        let too_large_ns = if stream.is_too_large || stream.is_coded { 0 } else { u64::MAX };
        let held_ns = held_from_ns.saturating_add(self.policy.hold_ns);
        Some(silent_ns.min(held_ns).min(done_ns).min(too_large_ns).min(stream.recorded_end_ns()))
    }

    /// Why the stream in this place, whose deadline is over, ends.
    pub(in crate::shard) fn due(&self, place: usize, now_ns: u64) -> StreamDue {
        let Some(stream) = self.stream(place) else { return StreamDue::Silent };
        let is_held = stream.head_ns > 0 && now_ns >= stream.head_ns.saturating_add(self.policy.hold_ns);
        match stream {
            _ if stream.is_too_large => StreamDue::TooLarge,
            _ if stream.is_coded => StreamDue::Coded,
            _ if stream.done_ns > 0 || is_held => StreamDue::Over(stream.status),
            _ if now_ns >= stream.recorded_end_ns() => StreamDue::Over(stream.status),
            _ => StreamDue::Silent,
        }
    }

    /// Whether the stream in this place has to be looked at before its deadline.
    pub(in crate::shard) fn is_urgent(&self, place: usize) -> bool {
        self.stream(place).is_some_and(|stream| {
            stream.done_ns > 0
                || stream.is_too_large
                || stream.is_coded
                || stream.recorded_end_ns() < u64::MAX
        }) || self.policy.hold_ns < u64::MAX
    }

    /// Whether the stream in this place has had an event.
    pub(in crate::shard) fn has_events(&self, place: usize) -> bool {
        self.stream(place).is_some_and(|stream| stream.event_count > 0)
    }

    /// Where the stream in this place, which has ended, goes on; `None`: its request was not sent.
    pub(in crate::shard) fn resumption(&self, place: usize) -> Option<StreamResumption> {
        let stream = self.stream(place)?;
        let mut resumption = stream.resumption.clone();
        if let Reading::Events(decoder) = &stream.reading {
            resumption.follow(decoder);
        }
        Some(resumption)
    }

    /// A stream is opened again.
    pub(in crate::shard) fn note_reconnect(&mut self, is_warmup: bool) {
        self.figures.reconnects += u64::from(!is_warmup);
    }

    /// Hands over the figures since the last call.
    pub(in crate::shard) fn fill(&mut self, snapshot: &mut Snapshot) {
        snapshot.streams.get_or_insert_default().merge(&self.figures);
        self.figures.clear();
    }

    fn stream(&self, place: usize) -> Option<&OpenStream> {
        self.open.get(place)?.as_deref()
    }
}

impl OpenStream {
    /// When a recorded stream is closed whose server goes on: a while after its recorded end, once it has had its recorded events.
    fn recorded_end_ns(&self) -> u64 {
        match self.recorded {
            Some(recorded) if self.whole_ns > 0 => {
                let end_ns = self.start_ns.saturating_add(recorded.length_ns);
                end_ns.max(self.whole_ns).saturating_add(DONE_GRACE_NS)
            }
            _ => u64::MAX,
        }
    }

    fn note_event(&mut self, policy: &StreamPolicy, figures: &mut StreamFigures, data: &[u8], at_ns: u64) {
        let gap_ns = at_ns.saturating_sub(self.last_event_ns);
        let is_first = self.event_count == 0;
        if is_first {
            self.first_event_ns = at_ns;
        } else if policy.objectives.as_ref().is_some_and(|objectives| objectives.want_gaps()) {
            self.gaps.record(gap_ns);
        }
        self.event_count += 1;
        self.last_event_ns = at_ns;
        if self.recorded.is_some_and(|recorded| recorded.event_count == self.event_count) {
            self.whole_ns = at_ns;
        }
        if policy.done.as_deref() == Some(data) && self.done_ns == 0 {
            self.done_ns = at_ns;
        }
        if self.is_warmup {
            return;
        }
        figures.events += 1;
        figures.event_bytes += data.len() as u64;
        match is_first {
            true => figures.first_event.record(at_ns.saturating_sub(self.begin_ns)),
            false => figures.event_gap.record(gap_ns),
        }
    }
}

impl Reading {
    fn new(format: StreamFormat, content_type: &[u8]) -> Self {
        let decoder = |format| Self::Events(Box::new(EventDecoder::new(format, STREAM_EVENT_BYTES_MAX)));
        match format {
            StreamFormat::Sse => decoder(EventFormat::EventStream),
            StreamFormat::Lines => decoder(EventFormat::Lines),
            StreamFormat::Pieces => Self::Pieces,
            StreamFormat::Auto => {
                let text = String::from_utf8_lossy(content_type).to_ascii_lowercase();
                match text.split(';').next().unwrap_or_default().trim() {
                    "text/event-stream" => decoder(EventFormat::EventStream),
                    kind if kind.contains("json") || kind.starts_with("text/") => decoder(EventFormat::Lines),
                    _ => Self::Pieces,
                }
            }
        }
    }
}

impl StreamResumption {
    fn follow(&mut self, decoder: &EventDecoder) {
        self.retry = decoder.retry;
        let last_id = decoder.last_event_id();
        if self.last_id.is_some() || !last_id.is_empty() {
            self.last_id = Some(last_id.to_vec());
        }
    }
}

/// Squall does not decode bodies while they come.
pub(in crate::shard) fn coded() -> Trouble {
    let text =
        "the response has a `Content-Encoding`, in which no events can be read: send no `Accept-Encoding`";
    Trouble::new(Cause::Other, Phase::Receiving, text.to_owned())
}

/// How long the end of a response may take after the event that is its last: then the stream is closed.
const DONE_GRACE_NS: u64 = 1_000_000_000;

/// Ended streams whose memory is kept.
const SPARE_COUNT_MAX: usize = 1024;

#[cfg(test)]
mod tests {
    use super::*;

    fn table(format: StreamFormat, done: Option<&str>) -> StreamTable {
        let objectives = Some("first<10ms,gap:max<10ms".parse().unwrap());
        let done = done.map(|data| data.as_bytes().into());
        let (hold_ns, finishes, reconnects) = (u64::MAX, false, true);
        StreamTable::new(StreamPolicy { format, done, hold_ns, finishes, reconnects, objectives })
    }

    fn open(table: &mut StreamTable, format: EventFormat) {
        table.begin(3, (1_000_000, false), None);
        let stream = table.open[3].as_mut().unwrap();
        stream.head_ns = 2_000_000;
        stream.reading = Reading::Events(Box::new(EventDecoder::new(format, 64)));
    }

    #[test]
    fn first_events_gaps_and_ends_are_counted() {
        let mut table = table(StreamFormat::Sse, Some("[DONE]"));
        open(&mut table, EventFormat::EventStream);
        for (at_ns, bytes) in [
            (4_000_000, "id: 7\ndata: a\n\n: hi\n"),
            (9_000_000, "data: b\n\ndata: [DO"),
            (11_000_000, "NE]\n\n"),
        ] {
            table.at_ns = at_ns;
            table.data(3, bytes.as_bytes());
        }
        assert!(table.finish(3).is_ok());
        let resumption = table.resumption(3).unwrap();
        assert_eq!((resumption.pause_ns(), resumption.last_id), (3_000_000_000, Some(b"7".to_vec())));
        table.end(3, EventStreamEnd::Ok, (false, 12_000_000));
        let figures = &table.figures;
        assert_eq!((figures.events, figures.comments, figures.ended_early), (3, 1, 0));
        assert_eq!((figures.judged, figures.good), (1, 1));
        assert_eq!(figures.first_event.min(), Some(3_000_000));
        assert_eq!((figures.event_gap.min(), figures.event_gap.max()), (Some(2_000_000), Some(5_000_000)));
        assert!(!table.has_events(3));
    }

    #[test]
    fn a_stream_without_its_last_event_has_ended_early() {
        let mut table = table(StreamFormat::Lines, Some("end"));
        open(&mut table, EventFormat::Lines);
        table.at_ns = 20_000_000;
        table.data(3, b"{}\n{}");
        assert!(table.finish(3).is_err());
        table.end(3, EventStreamEnd::Failed, (false, 21_000_000));
        let figures = &table.figures;
        assert_eq!((figures.events, figures.ended_early, figures.judged, figures.good), (2, 1, 1, 0));
    }

    #[test]
    fn a_recorded_stream_ends_a_while_after_its_end_once_it_is_whole() {
        let mut table = table(StreamFormat::Lines, None);
        let recorded = RecordedStream { event_count: 2, length_ns: 7_000_000 };
        table.begin_recorded(3, (0, 1_000_000, false), recorded);
        table.open[3].as_mut().unwrap().reading =
            Reading::Events(Box::new(EventDecoder::new(EventFormat::Lines, 64)));
        let mut read = |at_ns, expected_ns| {
            table.at_ns = at_ns;
            table.data(3, b"{}\n");
            assert_eq!(table.deadline(3, u64::MAX).unwrap(), expected_ns);
            assert_eq!(table.is_urgent(3), expected_ns < u64::MAX);
        };
        read(2_000_000, u64::MAX);
        read(3_000_000, 8_000_000 + DONE_GRACE_NS);
        // More events do not put it off.
        read(500_000_000, 8_000_000 + DONE_GRACE_NS);
        assert_eq!(table.due(3, 8_000_000 + DONE_GRACE_NS), StreamDue::Over(0));
    }

    #[test]
    fn silence_a_last_event_and_a_large_event_end_a_stream() {
        let mut table = table(StreamFormat::Lines, Some("end"));
        open(&mut table, EventFormat::Lines);
        assert_eq!(table.deadline(3, 5_000_000), Some(6_000_000));
        assert_eq!(table.due(3, 6_000_000), StreamDue::Silent);
        table.at_ns = 8_000_000;
        table.data(3, b"end\n");
        assert!(table.is_urgent(3));
        assert_eq!(table.deadline(3, 5_000_000_000), Some(8_000_000 + DONE_GRACE_NS));
        assert_eq!(table.due(3, u64::MAX), StreamDue::Over(0));
        table.data(3, &[b'x'; 100]);
        assert_eq!(table.due(3, u64::MAX), StreamDue::TooLarge);
        table.data(3, b"more");
    }
}
