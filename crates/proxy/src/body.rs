//! Bodies: passed on as they come, and copied on the way as far as a recording takes them.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use squall_http3::RequestBody;
use squall_traffic::limits::{BODY_BYTES_MAX, BODY_ENDS_BYTES};
use squall_traffic::{Request, Spooled};
use squall_wire::events::{EventDecoder, EventFormat};
use tokio::time::{Instant, Sleep, sleep_until};

/// What a message carries.
pub(crate) enum Carried {
    /// Bytes that are there.
    Whole(Option<Bytes>),
    /// Bytes that pass through.
    Passing(Passage, Tap),
    /// Bytes that come at their times.
    Paced(Paced),
}

/// Pieces of a body, and when each is sent.
pub(crate) struct Paced {
    pieces: VecDeque<(Instant, Bytes)>,
    sleep: Pin<Box<Sleep>>,
}

/// A body that comes from elsewhere.
pub(crate) enum Passage {
    /// In HTTP/1.1 or HTTP/2.
    Http(Incoming),
    /// In HTTP/3.
    Http3(RequestBody),
}

/// Where what passes through is copied to; by default nothing is kept of it.
#[derive(Clone, Default)]
pub(crate) struct Tap(Arc<Mutex<Tapped>>);

/// Where a body goes that is too large for memory.
#[derive(Default)]
enum Spool {
    /// Nowhere: it is only counted.
    #[default]
    None,
    /// To a temporary file in this folder.
    Folder(PathBuf),
    /// To this file, which has all of it.
    File(File),
}

/// Why a body broke off.
pub(crate) type Broken = Box<dyn std::error::Error + Send + Sync>;

/// What is done with what has passed.
type OnEnd = Box<dyn FnOnce(&mut Tapped) + Send>;

/// What has passed.
#[derive(Default)]
pub(crate) struct Tapped {
    pub(crate) bytes: Vec<u8>,
    /// Where bytes go that are too many for memory.
    spool: Spool,
    /// Bytes that passed in all: those that were too many are only counted.
    pub(crate) length: u64,
    /// Most bytes that are kept.
    length_max: u64,
    /// It came to its end, and did not break off.
    is_complete: bool,
    /// Of an event stream: when its events came.
    events: Option<EventTimes>,
    /// Called when the body is at its end, or is given up.
    on_end: Option<OnEnd>,
}

/// Notes when each event of a stream has come.
pub(crate) struct EventTimes {
    decoder: EventDecoder,
    started: std::time::Instant,
    times_ns: Vec<u64>,
}

impl Carried {
    /// These bytes.
    pub(crate) fn of(bytes: impl Into<Bytes>) -> Self {
        Self::Whole(Some(bytes.into()))
    }

    /// Nothing.
    pub(crate) fn none() -> Self {
        Self::Whole(None)
    }
}

impl Tap {
    /// Keeps a body of at most so many bytes; a large one goes to a temporary file in this folder.
    pub(crate) fn up_to(length_max: u64, folder: PathBuf) -> Self {
        let spool = Spool::Folder(folder);
        Self(Arc::new(Mutex::new(Tapped { length_max, spool, ..Tapped::default() })))
    }

    /// Keeps a body of at most so many bytes in memory, and calls `on_end` once it is at its end, or is given up.
    pub(crate) fn at_end(
        length_max: u64,
        events: Option<EventTimes>,
        on_end: impl FnOnce(&mut Tapped) + Send + 'static,
    ) -> Self {
        let tapped = Tapped { length_max, events, on_end: Some(Box::new(on_end)), ..Tapped::default() };
        Self(Arc::new(Mutex::new(tapped)))
    }

    /// What has passed so far; it is taken.
    pub(crate) fn take(&self) -> Tapped {
        let mut tapped = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Tapped { length, length_max, is_complete, .. } = *tapped;
        let (bytes, spool) = (std::mem::take(&mut tapped.bytes), std::mem::take(&mut tapped.spool));
        Tapped { bytes, spool, length, length_max, is_complete, events: None, on_end: None }
    }

    fn copy(&self, bytes: &Bytes) {
        let mut tapped = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        tapped.length += bytes.len() as u64;
        if tapped.length > tapped.length_max || tapped.keep(bytes).is_err() {
            // What cannot be kept as a whole is only counted.
            (tapped.bytes, tapped.spool, tapped.length_max) = (Vec::new(), Spool::None, 0);
            tapped.events = None;
        }
        if let Some(events) = &mut tapped.events {
            events.hear(bytes);
        }
    }

    /// The body has passed as a whole, or has broken off. Only the first end counts.
    pub(crate) fn end(&self, is_complete: bool) {
        let mut tapped = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        tapped.is_complete |= is_complete;
        if let Some(on_end) = tapped.on_end.take() {
            on_end(&mut tapped);
        }
    }
}

impl Tapped {
    /// Whether all of the body has passed and is kept in memory. An event stream may end anywhere: clients leave those without an end.
    pub(crate) fn is_whole(&self) -> bool {
        (self.is_complete || self.events.is_some()) && self.bytes.len() as u64 == self.length
    }

    /// When the events of a stream came.
    pub(crate) fn take_event_times(&mut self) -> Vec<u64> {
        self.events.take().map(|events| events.times_ns).unwrap_or_default()
    }

    /// Gives the body to a request, or its length alone.
    pub(crate) fn give_to(self, request: &mut Request) {
        let length = self.length;
        let is_given = match self.spool {
            Spool::File(file) if self.is_complete => spooled(file, length, request).is_ok(),
            _ if self.is_whole() => {
                request.body = self.bytes;
                true
            }
            _ => false,
        };
        if !is_given {
            request.lost_body_bytes = length;
        }
    }

    fn keep(&mut self, bytes: &[u8]) -> io::Result<()> {
        let kept_bytes = self.bytes.len() + bytes.len();
        match &mut self.spool {
            Spool::File(file) => return file.write_all(bytes),
            Spool::Folder(folder) if kept_bytes > BODY_BYTES_MAX => {
                let mut file = tempfile::tempfile_in(folder)?;
                file.write_all(&std::mem::take(&mut self.bytes))?;
                file.write_all(bytes)?;
                self.spool = Spool::File(file);
            }
            _ => self.bytes.extend_from_slice(bytes),
        }
        Ok(())
    }
}

impl EventTimes {
    /// Of the response to a request that began then.
    pub(crate) fn since(started: std::time::Instant) -> Self {
        let decoder = EventDecoder::new(EventFormat::EventStream, BODY_BYTES_MAX);
        Self { decoder, started, times_ns: Vec::new() }
    }

    fn hear(&mut self, mut bytes: &[u8]) {
        let at_ns = u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX);
        while let Ok(Some(_)) = self.decoder.decode(&mut bytes) {
            self.times_ns.push(at_ns);
        }
    }
}

/// Gives a request the body in this file: its ends in memory, and no character cut in two.
fn spooled(file: File, length: u64, request: &mut Request) -> io::Result<()> {
    let is_continued = |byte: u8| byte & 0b1100_0000 == 0b1000_0000;
    let (mut body, mut tail) = (vec![0; BODY_ENDS_BYTES + 1], vec![0; BODY_ENDS_BYTES]);
    file.read_exact_at(&mut body, 0)?;
    file.read_exact_at(&mut tail, length - BODY_ENDS_BYTES as u64)?;
    let at = (0..3).fold(BODY_ENDS_BYTES, |at, _| at - usize::from(is_continued(body[at])));
    body.truncate(at);
    let cut = tail.iter().take(3).take_while(|byte| is_continued(**byte)).count();
    tail.drain(..cut);
    let bytes = length - (body.len() + tail.len()) as u64;
    body.append(&mut tail);
    request.body = body;
    request.spooled = Some(Spooled::plain(Arc::new(file), at as u64, bytes, at));
    Ok(())
}

impl Paced {
    pub(crate) fn new(pieces: VecDeque<(Instant, Bytes)>) -> Self {
        let first = pieces.front().map_or_else(Instant::now, |(at, _)| *at);
        Self { pieces, sleep: Box::pin(sleep_until(first)) }
    }

    fn poll_piece(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if self.pieces.is_empty() {
            return Poll::Ready(None);
        }
        ready!(self.sleep.as_mut().poll(context));
        let piece = self.pieces.pop_front().map(|(_, bytes)| bytes);
        if let Some((at, _)) = self.pieces.front() {
            self.sleep.as_mut().reset(*at);
        }
        Poll::Ready(piece)
    }
}

impl Body for Passage {
    type Data = Bytes;
    type Error = Broken;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        match self.get_mut() {
            Self::Http(body) => Pin::new(body).poll_frame(context).map_err(Broken::from),
            Self::Http3(body) => Pin::new(body).poll_frame(context).map_err(Broken::from),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Http(body) => body.is_end_stream(),
            Self::Http3(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Http(body) => body.size_hint(),
            Self::Http3(body) => body.size_hint(),
        }
    }
}

impl Body for Carried {
    type Data = Bytes;
    type Error = Broken;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        match self.get_mut() {
            Self::Whole(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Self::Passing(incoming, tap) => {
                let polled = Pin::new(&mut *incoming).poll_frame(context);
                match &polled {
                    Poll::Ready(Some(Ok(frame))) => {
                        if let Some(bytes) = frame.data_ref() {
                            tap.copy(bytes);
                        }
                        // There may be no more data, and the body may not be polled again.
                        if incoming.is_end_stream() {
                            tap.end(true);
                        }
                    }
                    Poll::Ready(Some(Err(_))) => tap.end(false),
                    Poll::Ready(None) => tap.end(true),
                    Poll::Pending => {}
                }
                polled
            }
            Self::Paced(paced) => {
                paced.poll_piece(context).map(|piece| piece.map(|piece| Ok(Frame::data(piece))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Whole(bytes) => bytes.is_none(),
            Self::Passing(incoming, _) => incoming.is_end_stream(),
            Self::Paced(paced) => paced.pieces.is_empty(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64)),
            Self::Passing(incoming, _) => incoming.size_hint(),
            Self::Paced(_) => SizeHint::new(),
        }
    }
}

impl Drop for Carried {
    fn drop(&mut self) {
        if let Self::Passing(incoming, tap) = self {
            tap.end(incoming.is_end_stream());
        }
    }
}
