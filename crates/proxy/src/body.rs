//! Bodies: passed on as they come, and copied on the way as far as a recording takes them.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;

/// What a message carries.
pub(crate) enum Carried {
    /// Bytes that are there.
    Whole(Option<Bytes>),
    /// Bytes that pass through.
    Passing(Incoming, Tap),
}

/// Where what passes through is copied to; by default nothing is kept of it.
#[derive(Clone, Default)]
pub(crate) struct Tap(Arc<Mutex<Tapped>>);

/// What is done with what has passed.
type OnEnd = Box<dyn FnOnce(&mut Tapped) + Send>;

/// What has passed.
#[derive(Default)]
pub(crate) struct Tapped {
    pub(crate) bytes: Vec<u8>,
    /// Bytes that passed in all: those that were too many are only counted.
    pub(crate) length: u64,
    /// Most bytes that are kept.
    length_max: u64,
    /// It came to its end, and did not break off.
    is_complete: bool,
    /// Called when the body is at its end, or is given up.
    on_end: Option<OnEnd>,
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
    /// Keeps a body of at most so many bytes.
    pub(crate) fn up_to(length_max: u64) -> Self {
        Self(Arc::new(Mutex::new(Tapped { length_max, ..Tapped::default() })))
    }

    /// The same, and calls `on_end` once the body is at its end, or is given up.
    pub(crate) fn at_end(length_max: u64, on_end: impl FnOnce(&mut Tapped) + Send + 'static) -> Self {
        let tapped = Tapped { length_max, on_end: Some(Box::new(on_end)), ..Tapped::default() };
        Self(Arc::new(Mutex::new(tapped)))
    }

    /// What has passed so far; it is taken.
    pub(crate) fn take(&self) -> Tapped {
        let mut tapped = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Tapped { length, length_max, is_complete, .. } = *tapped;
        Tapped { bytes: std::mem::take(&mut tapped.bytes), length, length_max, is_complete, on_end: None }
    }

    fn copy(&self, bytes: &Bytes) {
        let mut tapped = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        tapped.length += bytes.len() as u64;
        if tapped.length <= tapped.length_max {
            tapped.bytes.extend_from_slice(bytes);
        } else {
            tapped.bytes = Vec::new();
        }
    }

    /// The body has passed as a whole, or has broken off. Only the first end counts.
    fn end(&self, is_complete: bool) {
        let mut tapped = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        tapped.is_complete |= is_complete;
        if let Some(on_end) = tapped.on_end.take() {
            on_end(&mut tapped);
        }
    }
}

impl Tapped {
    /// Whether all of the body has passed and is kept.
    pub(crate) fn is_whole(&self) -> bool {
        self.is_complete && self.bytes.len() as u64 == self.length
    }
}

impl Body for Carried {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        match self.get_mut() {
            Self::Whole(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Self::Passing(incoming, tap) => {
                let polled = Pin::new(&mut *incoming).poll_frame(context);
                match &polled {
                    Poll::Ready(Some(Ok(frame))) => {
                        if let Some(bytes) = frame.data_ref() {
                            tap.copy(bytes);
                        }
                        // What comes next may be nothing, and nobody may ask for it.
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
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Whole(bytes) => bytes.is_none(),
            Self::Passing(incoming, _) => incoming.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64)),
            Self::Passing(incoming, _) => incoming.size_hint(),
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
