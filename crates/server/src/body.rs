//! Response bodies: whole ones, and made step by step so that a gigabyte is never in memory.

use std::{
    pin::Pin,
    sync::LazyLock,
    task::{Context, Poll, ready},
    time::{Duration, Instant},
};

use bytes::Bytes;
use http_body::{Frame, SizeHint};

use crate::{
    connection::{Cut, Ticket},
    pause::pause,
    sequence::noise,
    tunnel::Tunnel,
};

/// What a body is made of.
pub(crate) enum Source {
    /// All bytes at once.
    Whole(Bytes),
    /// Made while it is sent. Without a length it goes out chunked.
    Steps {
        steps: Box<dyn Iterator<Item = Step> + Send>,
        /// Bytes that are still to come, when known.
        left: Option<u64>,
    },
}

/// A piece of a body, or something to do between two pieces.
pub(crate) enum Step {
    Data(Bytes),
    /// Wait until this long after the body began.
    Until(Duration),
    /// Break the connection off.
    Cut(Cut),
}

impl Source {
    /// `length` bytes of `block`, repeated for ever, from the byte `from` on.
    pub(crate) fn repeated(block: Bytes, from: u64, length: u64) -> Self {
        let offset = from % block.len() as u64;
        if offset + length <= block.len() as u64 {
            return Self::Whole(block.slice(offset as usize..(offset + length) as usize));
        }
        Self::Steps { steps: Box::new(repeat(block, from, length)), left: Some(length) }
    }

    /// The same bytes, sent chunked.
    pub(crate) fn chunked(self) -> Self {
        match self {
            Self::Whole(_) => Self::steps(self.into_steps(), None),
            Self::Steps { steps, .. } => Self::Steps { steps, left: None },
        }
    }

    pub(crate) fn steps(steps: impl Iterator<Item = Step> + Send + 'static, length: Option<u64>) -> Self {
        Self::Steps { steps: Box::new(steps), left: length }
    }

    /// The steps alone.
    pub(crate) fn into_steps(mut self) -> impl Iterator<Item = Step> + Send {
        std::iter::from_fn(move || self.next())
    }

    fn next(&mut self) -> Option<Step> {
        match self {
            Self::Whole(bytes) if bytes.is_empty() => None,
            Self::Whole(bytes) => Some(Step::Data(std::mem::take(bytes))),
            Self::Steps { steps, left } => {
                let step = steps.next();
                if let (Some(left), Some(Step::Data(bytes))) = (left, &step) {
                    *left -= bytes.len() as u64;
                }
                step
            }
        }
    }

    /// Bytes that are still to come, when known.
    pub(crate) fn left(&self) -> Option<u64> {
        match self {
            Self::Whole(bytes) => Some(bytes.len() as u64),
            Self::Steps { left, .. } => *left,
        }
    }
}

/// The body of `/bytes/N`: noise of [`BLOCK_BYTES`], repeated. The unseeded block is made once.
pub(crate) fn block(seed: Option<u64>) -> Bytes {
    // A `Bytes` of static data is cloned without touching a counter that all threads share.
    static UNSEEDED: LazyLock<Vec<u8>> = LazyLock::new(|| noise(0, BLOCK_BYTES));
    match seed {
        None | Some(0) => Bytes::from_static(&UNSEEDED),
        Some(seed) => noise(seed, BLOCK_BYTES).into(),
    }
}

/// How many bytes of noise are made before they repeat: few enough to stay in a core's cache.
pub(crate) const BLOCK_BYTES: usize = 64 * 1024;

fn repeat(block: Bytes, from: u64, length: u64) -> impl Iterator<Item = Step> {
    let end = from + length;
    let mut at = from;
    std::iter::from_fn(move || {
        let offset = at % block.len() as u64;
        let size = (block.len() as u64 - offset).min(end - at);
        at += size;
        (size > 0).then(|| Step::Data(block.slice(offset as usize..(offset + size) as usize)))
    })
}

/// A response body on its way; it holds the request's ticket, which is closed when the body is dropped.
pub(crate) struct ReplyBody {
    source: Source,
    /// None: the connection goes on after the response, and has it.
    ticket: Option<Ticket>,
    begun: Option<Instant>,
    wait: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    /// Comes from a WebSocket, not from the source.
    tunnel: Option<Box<Tunnel>>,
}

impl ReplyBody {
    pub(crate) fn new(source: Source, ticket: Ticket) -> Self {
        let mut body = Self { source, ticket: Some(ticket), begun: None, wait: None, tunnel: None };
        body.note_end();
        body
    }

    /// The body of a response that begins something else.
    pub(crate) fn none() -> Self {
        Self { source: Source::Whole(Bytes::new()), ticket: None, begun: None, wait: None, tunnel: None }
    }

    /// What a WebSocket sends on its stream.
    pub(crate) fn tunnel(tunnel: Tunnel) -> Self {
        Self { tunnel: Some(Box::new(tunnel)), ..Self::none() }
    }

    fn note_end(&mut self) {
        if self.source.left() == Some(0) {
            self.complete();
        }
    }

    fn complete(&mut self) {
        if let Some(ticket) = &mut self.ticket {
            ticket.is_complete = true;
        }
    }

    fn wait_until(&mut self, offset: Duration) {
        let elapsed = self.begun.get_or_insert_with(Instant::now).elapsed();
        self.wait = Some(Box::pin(pause(offset.saturating_sub(elapsed))));
    }

    fn handle_data(&mut self, bytes: Bytes) -> Frame<Bytes> {
        if let Some(ticket) = &mut self.ticket {
            ticket.body_bytes += bytes.len() as u64;
        }
        self.note_end();
        Frame::data(bytes)
    }
}

impl http_body::Body for ReplyBody {
    type Data = Bytes;
    type Error = Cut;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Cut>>> {
        let this = self.get_mut();
        if let Some(tunnel) = &mut this.tunnel {
            return tunnel.poll_data(cx).map(|data| data.map(|data| Ok(Frame::data(data))));
        }
        loop {
            if let Some(wait) = &mut this.wait {
                ready!(wait.as_mut().poll(cx));
                this.wait = None;
            }
            match this.source.next() {
                Some(Step::Data(bytes)) => return Poll::Ready(Some(Ok(this.handle_data(bytes)))),
                Some(Step::Until(offset)) => this.wait_until(offset),
                Some(Step::Cut(cut)) => {
                    let cut = this.ticket.as_ref().map_or(cut, |ticket| ticket.cut(cut));
                    return Poll::Ready(Some(Err(cut)));
                }
                None => {
                    this.complete();
                    return Poll::Ready(None);
                }
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.tunnel.is_none() && self.source.left() == Some(0)
    }

    fn size_hint(&self) -> SizeHint {
        let left = self.source.left().filter(|_| self.tunnel.is_none());
        left.map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes_of(source: Source) -> Vec<u8> {
        source
            .into_steps()
            .flat_map(|step| match step {
                Step::Data(bytes) => bytes.to_vec(),
                _ => Vec::new(),
            })
            .collect()
    }

    #[test]
    fn repeated_blocks_are_cut_at_any_offset() {
        let endless: Vec<u8> = b"abcde".iter().copied().cycle().take(40).collect();
        for from in 0..12 {
            for length in 0..20 {
                let source = Source::repeated(Bytes::from_static(b"abcde"), from, length);
                assert_eq!(source.left(), Some(length));
                let expected = &endless[from as usize..(from + length) as usize];
                assert_eq!(bytes_of(source), expected, "{length} from {from}");
            }
        }
    }

    #[test]
    fn seed_changes_the_block() {
        assert_eq!(block(None), block(Some(0)));
        assert_ne!(block(None), block(Some(1)));
    }
}
