//! What comes on a request's stream: its head, and a body that the service reads as it comes.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, HeaderName, HeaderValue};
use http::request::Parts;
use http::{HeaderMap, Method, Request, Uri, Version};
use http_body::{Body, Frame, SizeHint};
use quinn::{RecvStream, VarInt};
use squall_wire::ErrorCode;
use squall_wire::h1::Fields;
use squall_wire::h3::server::{Inbound, RequestError, RequestHead, RequestSink, SectionReader};
use tokio::sync::mpsc::{Receiver, Sender, channel};

use crate::limits;

/// The body of a request, as it comes.
#[derive(Debug)]
pub struct RequestBody {
    /// `None`: nothing follows.
    pieces: Option<Receiver<Result<Frame<Bytes>, BrokenBody>>>,
    /// Bytes that are still to come, where the request says so.
    left: Option<u64>,
}

/// `:protocol` of an extended CONNECT (RFC 9220), among the extensions of its request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectProtocol(pub Vec<u8>);

/// The client has broken the body off.
#[derive(thiserror::Error, Debug, Clone, Copy, PartialEq, Eq)]
#[error("the client broke the body off")]
pub struct BrokenBody;

/// Why a request is not served to its end.
#[derive(Debug, Clone, Copy)]
pub(crate) enum RequestFault {
    /// The client broke a rule.
    Rule(RequestError),
    /// The stream is of no further use, on either side.
    Gone,
}

/// Reads a request's stream.
pub(crate) struct RequestReader<'a> {
    recv: RecvStream,
    sections: &'a Mutex<SectionReader>,
    inbound: Inbound,
    received: Received,
    is_over: bool,
}

/// What has come of a request and is not used yet.
#[derive(Default)]
struct Received {
    /// What is being decoded; pieces of the body are parts of it.
    chunk: Bytes,
    head: Option<Result<Parts, RequestFault>>,
    pieces: VecDeque<Frame<Bytes>>,
}

impl RequestFault {
    pub(crate) const fn stream(code: ErrorCode) -> Self {
        Self::Rule(RequestError::Stream { code, text: "" })
    }
}

impl<'a> RequestReader<'a> {
    pub(crate) fn new(recv: RecvStream, sections: &'a Mutex<SectionReader>) -> Self {
        let (inbound, received) = (Inbound::default(), Received::default());
        Self { recv, sections, inbound, received, is_over: false }
    }

    /// The head, with a body that [`feed`](Self::feed) fills by the sender.
    pub(crate) async fn request(
        &mut self,
    ) -> Result<(Request<RequestBody>, Option<PieceSender>), RequestFault> {
        let head = loop {
            if let Some(head) = self.received.head.take() {
                break head?;
            }
            self.read().await?;
        };
        self.read_end().await?;
        let has_body = !self.is_over || !self.received.pieces.is_empty();
        let (sender, pieces) = has_body.then(|| channel(limits::PIECE_COUNT_MAX)).unzip();
        let length = || head.headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok();
        let left = if has_body { length() } else { Some(0) };
        Ok((Request::from_parts(head, RequestBody { pieces, left }), sender))
    }

    /// Most requests end with their head: what has come already is read, and nothing is waited for.
    async fn read_end(&mut self) -> Result<(), RequestFault> {
        let mut read = std::pin::pin!(self.read());
        match std::future::poll_fn(|context| Poll::Ready(read.as_mut().poll(context))).await {
            Poll::Ready(read) => read,
            Poll::Pending => Ok(()),
        }
    }

    /// Hands the body on to its end, or as far as it is wanted.
    pub(crate) async fn feed(&mut self, body: Option<PieceSender>) -> Result<(), RequestFault> {
        let Some(body) = body else { return Ok(()) };
        loop {
            while let Some(piece) = self.received.pieces.pop_front() {
                if body.send(Ok(piece)).await.is_err() {
                    return Ok(());
                }
            }
            if self.is_over {
                return Ok(());
            }
            if let Err(fault) = self.read().await {
                // The service may have gone.
                body.send(Err(BrokenBody)).await.ok();
                return Err(fault);
            }
        }
    }

    /// Reads some more, or the end.
    async fn read(&mut self) -> Result<(), RequestFault> {
        let chunk = self.recv.read_chunk(usize::MAX, true).await.map_err(|_| RequestFault::Gone)?;
        self.is_over = chunk.is_none();
        self.received.chunk = chunk.map_or_else(Bytes::new, |chunk| chunk.bytes);
        let chunk = self.received.chunk.clone();
        let mut sections = self.sections.lock().unwrap_or_else(PoisonError::into_inner);
        let decoded = self.inbound.decode(&mut sections, (&chunk, self.is_over), &mut self.received);
        decoded.map_err(RequestFault::Rule)
    }

    /// What has not been read is not wanted.
    pub(crate) fn stop(mut self, why: ErrorCode) {
        // It may have ended already.
        self.recv.stop(code_of(why)).ok();
    }
}

pub(crate) type PieceSender = Sender<Result<Frame<Bytes>, BrokenBody>>;

impl RequestSink for Received {
    fn head(&mut self, head: &RequestHead) {
        self.head = Some(parts_of(head).ok_or_else(|| RequestFault::stream(ErrorCode::H3_MESSAGE_ERROR)));
    }

    fn data(&mut self, bytes: &[u8]) {
        self.pieces.push_back(Frame::data(self.chunk.slice_ref(bytes)));
    }

    fn trailers(&mut self, fields: Fields<'_>) {
        let mut trailers = HeaderMap::new();
        for field in fields {
            // The decoder has refused what is no field.
            if let (Ok(name), Ok(value)) =
                (HeaderName::from_bytes(field.name), HeaderValue::from_bytes(field.value))
            {
                trailers.append(name, value);
            }
        }
        self.pieces.push_back(Frame::trailers(trailers));
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = BrokenBody;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BrokenBody>>> {
        let Some(pieces) = &mut self.pieces else { return Poll::Ready(None) };
        let piece = std::task::ready!(pieces.poll_recv(context));
        let data_bytes =
            piece.as_ref().and_then(|piece| piece.as_ref().ok()?.data_ref()).map_or(0, Bytes::len);
        self.left = self.left.map(|left| left.saturating_sub(data_bytes as u64));
        if piece.is_none() {
            self.pieces = None;
        }
        Poll::Ready(piece)
    }

    fn is_end_stream(&self) -> bool {
        // The reader of a body of known length may stop at its last byte.
        self.pieces.is_none() || self.left == Some(0)
    }

    fn size_hint(&self) -> SizeHint {
        self.left.map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}

/// The head as services see it; `None`: it has what no URI or header has.
fn parts_of(head: &RequestHead) -> Option<Parts> {
    let mut uri = Uri::builder();
    if head.path.is_empty() {
        uri = uri.authority(&head.authority[..]);
    } else {
        uri = uri.scheme(&head.scheme[..]).authority(&head.authority[..]).path_and_query(&head.path[..]);
    }
    let mut request = Request::new(());
    *request.version_mut() = Version::HTTP_3;
    *request.method_mut() = Method::from_bytes(&head.method).ok()?;
    *request.uri_mut() = uri.build().ok()?;
    if !head.protocol.is_empty() {
        request.extensions_mut().insert(ConnectProtocol(head.protocol.clone()));
    }
    for field in head.fields() {
        let name = HeaderName::from_bytes(field.name).ok()?;
        request.headers_mut().append(name, HeaderValue::from_bytes(field.value).ok()?);
    }
    Some(request.into_parts().0)
}

pub(crate) fn code_of(code: ErrorCode) -> VarInt {
    VarInt::from_u64(code.0).unwrap_or(VarInt::MAX)
}
