//! HTTP/3 servers: QUIC connections by quinn, frames by `squall-wire`, and a [`Service`] that answers requests.
//!
//! Owns: connections, and the streams on them. Never: routes, figures, certificates. `endpoint` is the socket and its settings, `session` a
//! connection and its streams, `request` what comes on one, `response` what goes.

mod endpoint;
mod limits;
mod request;
mod response;
mod session;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};

pub use endpoint::{Sockets, close, endpoint, listen};
pub use quinn::{Endpoint, Incoming};
pub use request::{BrokenBody, ConnectProtocol, RequestBody};
pub use session::serve;

/// What answers the requests of one connection.
pub trait Service: Send + Sync + 'static {
    /// The body of a response.
    type Body: http_body::Body<Data = Bytes, Error: Send> + Send;

    /// The response to a request; `None`: there is none, and the stream is reset. Dropped when the client gives up.
    fn answer(
        self: Arc<Self>,
        request: Request<RequestBody>,
    ) -> impl Future<Output = Option<Response<Self::Body>>> + Send;

    /// The handshake has been completed, or has failed.
    fn note_handshake(&self, _is_complete: bool) {}

    /// Whether it takes extended CONNECT requests (RFC 9220), which come with a [`ConnectProtocol`]: their body goes on for as long as the stream.
    fn has_extended_connect(&self) -> bool {
        false
    }

    /// How long the handshake, and the head of each request, may take.
    fn head_timeout(&self) -> Duration;
}
