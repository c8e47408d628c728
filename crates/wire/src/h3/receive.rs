//! Reads what the server sends: which stream it is for, and what it makes of the response there (RFC 9114 4 and 6).

use super::Error;
use super::client::Client;
use super::control::Notice;
use super::error::{decompression, excessive, id_error, stream_creation, unexpected};
use super::head::{HeadCache, Section};
use super::limits::{HELD_BYTES_MAX, IDLE_FRAME_COUNT_MAX};
use super::reader::{Phase, Step};
use super::stream::{Held, Stream};
use crate::h1::{Fields, HeadView, Sink, Version};
use crate::message::{Fault, Head, HeadWanted, Part};
use crate::{ErrorCode, Event, Progress, StreamFailure};

/// What is read, and for which request.
struct Readers<'a, S> {
    cache: &'a mut HeadCache,
    sink: &'a mut S,
    slot: u32,
}

/// How far some bytes of a response have led.
enum Reached {
    /// They were read.
    End,
    /// The request has failed, and its slot is free.
    Failed(StreamFailure),
    /// A section waits for the dynamic table; what follows was kept.
    Held,
}

impl Client {
    /// Reads bytes of one stream; `is_fin`: nothing follows them. Those of a request's stream are always read whole; those of other streams
    /// until something happened that the caller should know. A call without bytes reads what was kept of a
    /// [readable](Self::next_readable) stream.
    ///
    /// # Errors
    ///
    /// When the peer broke a rule that leaves the connection useless. Without a dynamic table, whether and why depends on the bytes of each
    /// stream alone, never on the pieces in which they come.
    pub fn decode_stream<S: Sink>(
        &mut self,
        cache: &mut HeadCache,
        stream_id: u64,
        (input, is_fin): (&[u8], bool),
        sink: &mut S,
    ) -> Result<Progress, Error> {
        match stream_id & 3 {
            0 => {
                let event = self.decode_response(cache, stream_id, (input, is_fin), sink)?;
                Ok(Progress { consumed: input.len(), event })
            }
            1 => Err(stream_creation("the server opened a bidirectional stream")),
            2 => Err(stream_creation("bytes from the server on a stream of ours")),
            _ => {
                let (consumed, notice) = self.control.decode(stream_id, input, is_fin)?;
                Ok(Progress { consumed, event: notice.and_then(|notice| self.on_notice(notice)) })
            }
        }
    }

    /// The server has reset a stream (RESET_STREAM): what it sent before is not to be delivered any more.
    ///
    /// # Errors
    ///
    /// When the connection cannot do without the stream.
    pub fn handle_reset(&mut self, stream_id: u64, code: ErrorCode) -> Result<Option<Event>, Error> {
        if stream_id & 3 == 3 {
            return self.control.handle_reset(stream_id).map(|()| None);
        }
        let Some(slot) = self.streams.find(stream_id).filter(|_| stream_id & 3 == 0) else { return Ok(None) };
        self.control.forget_sections(stream_id);
        self.reset_upload(slot, ErrorCode::H3_REQUEST_CANCELLED);
        self.end(slot);
        let failure = match code {
            ErrorCode::H3_REQUEST_REJECTED => StreamFailure::Unprocessed(code),
            _ => StreamFailure::Reset(code),
        };
        Ok(Some(Event::Failed { slot, failure }))
    }

    /// The server wants no more of a stream of ours (STOP_SENDING): a request's response is still awaited (RFC 9114 4.1).
    ///
    /// # Errors
    ///
    /// When the connection cannot do without the stream.
    pub fn handle_stop_sending(&mut self, stream_id: u64, code: ErrorCode) -> Result<(), Error> {
        if stream_id & 3 == 2 {
            return self.control.handle_stop_sending(stream_id, code);
        }
        if let Some(slot) = self.streams.find(stream_id).filter(|_| stream_id & 3 == 0) {
            // RFC 9000 3.5: answered with RESET_STREAM and the same code.
            self.reset_upload(slot, code);
        }
        Ok(())
    }

    fn on_notice(&mut self, notice: Notice) -> Option<Event> {
        match notice {
            Notice::Settings => Some(Event::Allowance),
            Notice::GoAway => Some(Event::GoingAway),
            Notice::Inserted => {
                let insert_count = self.control.decoder.insert_count();
                let is_ready = |held: &Held| held.insert_count <= insert_count;
                if self.held_count > 0 {
                    let ready = self.streams.live().filter(|one| one.held.as_deref().is_some_and(is_ready));
                    self.readable.extend(ready.map(Stream::id));
                }
                None
            }
        }
    }

    fn decode_response<S: Sink>(
        &mut self,
        cache: &mut HeadCache,
        stream_id: u64,
        (input, mut is_fin): (&[u8], bool),
        sink: &mut S,
    ) -> Result<Option<Event>, Error> {
        let Some(slot) = self.streams.find(stream_id) else {
            // A request that was given up, or whose response is whole.
            return self.check_opened(stream_id).map(|()| None);
        };
        let mut readers = Readers { cache, sink, slot };
        let mut reached = Reached::End;
        if self.held_count > 0
            && let Some(held) = self.streams.at(slot).held.take()
        {
            self.held_count -= 1;
            is_fin |= held.is_fin;
            reached = self.read_held(&mut readers, *held)?;
        }
        reached = match reached {
            Reached::End => self.read(&mut readers, input)?,
            Reached::Held => self.hold(slot, input)?,
            failed @ Reached::Failed(_) => failed,
        };
        match reached {
            Reached::Failed(failure) => Ok(Some(Event::Failed { slot, failure })),
            Reached::Held => {
                if let Some(held) = &mut self.streams.at(slot).held {
                    held.is_fin = is_fin;
                }
                Ok(received(slot, input))
            }
            Reached::End if is_fin => self.end_response(slot, input).map(Some),
            Reached::End => Ok(received(slot, input)),
        }
    }

    /// Reads bytes of a response, as far as no section waits.
    fn read<S: Sink>(&mut self, readers: &mut Readers<'_, S>, input: &[u8]) -> Result<Reached, Error> {
        let slot = readers.slot;
        let mut rest = input;
        while !rest.is_empty() {
            let step = self.streams.at(slot).reader.step(&mut rest)?;
            let failure = match step {
                Step::More => None,
                Step::Data(bytes) => self.on_data(readers, bytes),
                Step::Skipped => {
                    self.note_idle_frame()?;
                    None
                }
                Step::Section(section) => match self.on_section(readers, (section, None))? {
                    Reached::Held => return self.hold(slot, rest),
                    Reached::Failed(failure) => Some(failure),
                    Reached::End => None,
                },
                Step::BufferedSection => {
                    let section = std::mem::take(&mut self.streams.at(slot).reader.buffer);
                    let reached = self.on_section(readers, (&section, None))?;
                    // A slot that is free again keeps its buffer as well.
                    self.streams.at(slot).reader.give_back(section);
                    match reached {
                        Reached::Held => return self.hold(slot, rest),
                        Reached::Failed(failure) => Some(failure),
                        Reached::End => None,
                    }
                }
                Step::TooLarge => Some(self.fail_large(slot)),
            };
            if let Some(failure) = failure {
                return Ok(Reached::Failed(failure));
            }
        }
        Ok(Reached::End)
    }

    fn on_data<S: Sink>(&mut self, readers: &mut Readers<'_, S>, bytes: &[u8]) -> Option<StreamFailure> {
        let slot = readers.slot;
        let message = &mut self.streams.at(slot).message;
        if let Some(why) = message.data_fault(1) {
            return Some(self.fail(slot, why));
        }
        message.body_bytes += bytes.len() as u64;
        self.note_pause();
        readers.sink.stream(slot);
        readers.sink.data(bytes);
        None
    }

    /// A whole field section.
    fn on_section<S: Sink>(
        &mut self,
        readers: &mut Readers<'_, S>,
        (section, waited_for): (&[u8], Option<u64>),
    ) -> Result<Reached, Error> {
        let slot = readers.slot;
        let wanted = if readers.sink.wants_heads() { HeadWanted::Text } else { HeadWanted::Meaning };
        let head = match readers.cache.read(&self.control.decoder, (section, waited_for), wanted)? {
            Section::Read { head, insert_count } => {
                if insert_count > 0 {
                    let stream_id = self.streams.get(slot).id();
                    self.control.acknowledge_section(stream_id, insert_count)?;
                }
                head
            }
            Section::Blocked { insert_count } => {
                if self.held_count >= self.control.decoder.blocked_stream_count() {
                    return Err(decompression("more streams are blocked than was allowed"));
                }
                self.held_count += 1;
                let held = Held { section: section.to_vec(), insert_count, ..Held::default() };
                self.streams.at(slot).held = Some(Box::new(held));
                return Ok(Reached::Held);
            }
        };
        self.headers.received += head.bytes as u64;
        self.headers.received_packed += section.len() as u64;
        self.on_head(readers, &head).map(|failure| failure.map_or(Reached::End, Reached::Failed))
    }

    fn on_head<S: Sink>(
        &mut self,
        readers: &mut Readers<'_, S>,
        head: &Head,
    ) -> Result<Option<StreamFailure>, Error> {
        let slot = readers.slot;
        match head.fault {
            None => {}
            Some(Fault::Malformed(why)) => return Ok(Some(self.fail(slot, why))),
            Some(Fault::TooLarge) => return Ok(Some(self.fail_large(slot))),
        }
        let stream = self.streams.at(slot);
        if stream.reader.phase == Phase::Body && stream.message.is_tunnel() {
            return Err(unexpected("HEADERS within a tunnel"));
        }
        let part = match stream.message.note_section(head, stream.message.status != 0) {
            Ok(part) => part,
            Err(why) => return Ok(Some(self.fail(slot, why))),
        };
        match part {
            Part::Interim => {}
            Part::Head => stream.reader.phase = Phase::Body,
            Part::Trailers => stream.reader.phase = Phase::Over,
        }
        self.note_pause();
        tell(part, head.status, readers);
        Ok(None)
    }

    /// The server has ended its side: the response is whole, if it is as long as it said.
    fn end_response(&mut self, slot: u32, input: &[u8]) -> Result<Event, Error> {
        let stream = self.streams.at(slot);
        stream.reader.check_end()?;
        let response = match stream.message.end() {
            Ok(response) => response,
            Err(why) => {
                let failure = self.fail(slot, why);
                return Ok(Event::Failed { slot, failure });
            }
        };
        // RFC 9114 4.1: the server needs no more of the request.
        self.reset_upload(slot, ErrorCode::H3_NO_ERROR);
        self.end(slot);
        Ok(Event::Received { slot, bytes: input.len() as u32, response: Some(response) })
    }

    /// A section of this stream waits; what follows it is kept.
    fn hold(&mut self, slot: u32, bytes: &[u8]) -> Result<Reached, Error> {
        if let Some(held) = &mut self.streams.at(slot).held {
            if held.section.len() + held.rest.len() + bytes.len() > HELD_BYTES_MAX {
                return Err(excessive("too many bytes on a stream that waits for the dynamic table"));
            }
            held.rest.extend_from_slice(bytes);
        }
        Ok(Reached::Held)
    }

    /// Reads what was kept of a stream, if it need not wait any more.
    fn read_held<S: Sink>(&mut self, readers: &mut Readers<'_, S>, held: Held) -> Result<Reached, Error> {
        if held.insert_count > self.control.decoder.insert_count() {
            self.held_count += 1;
            self.streams.at(readers.slot).held = Some(Box::new(held));
            return Ok(Reached::Held);
        }
        match self.on_section(readers, (&held.section, Some(held.insert_count)))? {
            Reached::End => self.read(readers, &held.rest),
            reached => Ok(reached),
        }
    }

    /// The response is malformed: its stream is given up.
    fn fail(&mut self, slot: u32, why: &'static str) -> StreamFailure {
        self.abort(slot, ErrorCode::H3_MESSAGE_ERROR);
        StreamFailure::Malformed(why)
    }

    fn fail_large(&mut self, slot: u32) -> StreamFailure {
        self.abort(slot, ErrorCode::H3_REQUEST_CANCELLED);
        StreamFailure::HeadTooLarge
    }

    /// QUIC delivers nothing on streams that were never opened.
    const fn check_opened(&self, stream_id: u64) -> Result<(), Error> {
        if stream_id >= self.next_stream() {
            return Err(id_error("bytes on a request stream that was never opened"));
        }
        Ok(())
    }

    fn note_idle_frame(&mut self) -> Result<(), Error> {
        self.idle_frame_count += 1;
        if self.idle_frame_count > IDLE_FRAME_COUNT_MAX {
            return Err(excessive("too many consecutive frames without effect"));
        }
        Ok(())
    }
}

fn received(slot: u32, input: &[u8]) -> Option<Event> {
    let bytes = input.len() as u32;
    (bytes > 0).then_some(Event::Received { slot, bytes, response: None })
}

/// Passes a section on to the sink.
fn tell<S: Sink>(part: Part, status: u16, readers: &mut Readers<'_, S>) {
    if !readers.sink.wants_heads() {
        return;
    }
    readers.sink.stream(readers.slot);
    match part {
        Part::Trailers => readers.sink.trailers(Fields::new(readers.cache.text().lines())),
        Part::Interim => readers.sink.interim(status),
        Part::Head => {
            readers.sink.head(&HeadView::of_fields(Version::Http3, status, readers.cache.text().whole()));
        }
    }
}
