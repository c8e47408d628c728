//! HTTP/3: QUIC connections by quinn, frames by `squall-wire`, and the same routes as on TCP.

use std::{
    collections::VecDeque,
    io,
    net::{SocketAddr, UdpSocket},
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::Poll,
    time::SystemTime,
};

use bytes::Bytes;
use http_body::Body as _;
use hyper::{
    HeaderMap, Method, Request, Response, StatusCode, Uri, Version,
    header::{CONTENT_LENGTH, DATE, HeaderName, HeaderValue},
    http::request::Parts,
};
use quinn::{
    ConnectionError, Endpoint, EndpointConfig, IdleTimeout, Incoming, ReadError, RecvStream, SendStream,
    ServerConfig, TokioRuntime, TransportConfig, VarInt, WriteError, congestion,
    crypto::rustls::QuicServerConfig,
};
use socket2::{Domain, Protocol, Socket, Type};
use squall_wire::{
    ErrorCode,
    h3::{
        self, Setup, StreamAbort,
        server::{self, Inbound, RequestError, RequestHead, RequestSink, SectionReader},
    },
};

use crate::{
    Error,
    answer::{Upload, answer},
    body::ReplyBody,
    connection::{Connection, Cut},
    limits,
    shared::Worker,
    tls::Identity,
};

/// Takes connections that come to a socket; called inside of a runtime.
pub(crate) fn endpoint(socket: UdpSocket, identity: &Identity) -> Result<Endpoint, Error> {
    let config = Some(server_config(identity)?);
    Endpoint::new(EndpointConfig::default(), config, socket, Arc::new(TokioRuntime)).map_err(Error::Thread)
}

/// Listens on a UDP port.
pub(crate) fn bind(address: SocketAddr) -> io::Result<UdpSocket> {
    let socket = Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
    // The kernel may grant less.
    socket.set_recv_buffer_size(limits::UDP_BUFFER_BYTES)?;
    socket.set_send_buffer_size(limits::UDP_BUFFER_BYTES)?;
    socket.bind(&address.into())?;
    Ok(socket.into())
}

fn server_config(identity: &Identity) -> Result<ServerConfig, Error> {
    let crypto = QuicServerConfig::try_from(Arc::clone(&identity.quic))
        .map_err(|_| rustls::Error::General("no cipher suite of TLS 1.3 for QUIC".to_owned()))?;
    let mut transport = TransportConfig::default();
    transport
        .max_concurrent_bidi_streams(limits::STREAM_COUNT_MAX.into())
        .max_concurrent_uni_streams(limits::UNI_STREAM_COUNT_MAX.into())
        .stream_receive_window(limits::QUIC_STREAM_WINDOW_BYTES.into())
        .receive_window(limits::QUIC_WINDOW_BYTES.into())
        .send_window(limits::QUIC_WINDOW_BYTES.into())
        .max_idle_timeout(IdleTimeout::try_from(limits::QUIC_IDLE_MAX).ok())
        .congestion_controller_factory(Arc::new(congestion::CubicConfig::default()));
    let mut config = ServerConfig::with_crypto(Arc::new(crypto));
    config.transport_config(Arc::new(transport));
    Ok(config)
}

/// Says goodbye to all connections.
pub(crate) async fn close(endpoint: &Endpoint) {
    endpoint.close(code(ErrorCode::H3_NO_ERROR), b"the server stops");
    tokio::time::timeout(limits::QUIC_CLOSE_MAX, endpoint.wait_idle()).await.ok();
}

/// One connection, and what its streams share. They all run on one thread; the locks only say so to the compiler.
struct Session {
    quic: quinn::Connection,
    connection: Arc<Connection>,
    control: Mutex<server::UniStreams>,
    sections: Mutex<SectionReader>,
}

/// Serves a connection until it ends.
pub(crate) async fn serve(worker: Arc<Worker>, incoming: Box<Incoming>) {
    let connection = Connection::new(worker, incoming.remote_address());
    let Ok(connecting) = incoming.accept() else {
        return connection.worker.counters().tls_handshakes_failed.add(1);
    };
    // Early data is served as it comes.
    let Ok((quic, handshake)) = connecting.into_0rtt() else { return };
    let control = server::UniStreams::new(Setup::new(limits::STREAM_COUNT_MAX));
    let sections = Mutex::new(SectionReader::default());
    let session = Arc::new(Session { quic, connection, control: Mutex::new(control), sections });
    tokio::spawn({
        let session = Arc::clone(&session);
        async move { session.note_handshake(handshake).await }
    });
    let error = session.run().await;
    if let Some(error) = error {
        session.quic.close(code(error.code), error.text.as_bytes());
    }
}

impl Session {
    async fn note_handshake(&self, handshake: quinn::ZeroRttAccepted) {
        let worker = &self.connection.worker;
        let is_late = tokio::time::timeout(worker.shared.head_timeout, handshake).await.is_err();
        if is_late {
            self.quic.close(code(ErrorCode::H3_NO_ERROR), b"the handshake took too long");
        }
        // A client may close as soon as its own side is done; it can say so only with the keys of a handshake that succeeded.
        let has_failed = match self.quic.close_reason() {
            None | Some(ConnectionError::ApplicationClosed(_)) => false,
            Some(_) => self.quic.stats().frame_tx.handshake_done == 0,
        };
        let counters = worker.counters();
        if has_failed { counters.tls_handshakes_failed.add(1) } else { counters.tls_handshakes.add(1) }
    }

    /// Accepts streams until the connection ends, or the client breaks a rule.
    async fn run(self: &Arc<Self>) -> Option<h3::Error> {
        let (fail, mut failed) = tokio::sync::mpsc::channel(1);
        // Kept for as long as the connection: its end would be an error.
        let Ok(_control) = self.open_control().await else { return None };
        loop {
            tokio::select! {
                stream = self.quic.accept_bi() => {
                    let Ok((send, recv)) = stream else { return None };
                    let (session, fail) = (Arc::clone(self), fail.clone());
                    tokio::spawn(async move {
                        if let Err(error) = session.serve_request(send, recv).await {
                            fail.try_send(error).ok();
                        }
                    });
                }
                stream = self.quic.accept_uni() => {
                    let Ok(recv) = stream else { return None };
                    let (session, fail) = (Arc::clone(self), fail.clone());
                    tokio::spawn(async move {
                        if let Err(error) = session.read_uni(recv).await {
                            fail.try_send(error).ok();
                        }
                    });
                }
                error = failed.recv() => return error,
            }
        }
    }

    async fn open_control(&self) -> Result<SendStream, WriteError> {
        let mut stream = self.quic.open_uni().await.map_err(WriteError::ConnectionLost)?;
        let id = u64::from(stream.id());
        let settings = self.control().uni_output(id).to_vec();
        stream.write_all(&settings).await?;
        self.control().uni_sent(id, settings.len());
        Ok(stream)
    }

    fn control(&self) -> MutexGuard<'_, server::UniStreams> {
        self.control.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn read_uni(&self, mut recv: RecvStream) -> Result<(), h3::Error> {
        let id = u64::from(recv.id());
        loop {
            let read = recv.read_chunk(usize::MAX, true).await;
            let is_over = match read {
                Ok(Some(chunk)) => self.control().decode_stream(id, (&chunk.bytes, false)).map(|()| false),
                Ok(None) => self.control().decode_stream(id, (&[], true)).map(|()| true),
                Err(ReadError::Reset(_)) => self.control().handle_reset(id).map(|()| true),
                Err(_) => Ok(true),
            }?;
            // The only thing that a client's stream can lead to is that it is refused.
            if let Some(StreamAbort::StopSending { code: why, .. }) = self.control().next_command() {
                recv.stop(code(why)).ok();
                return Ok(());
            }
            if is_over {
                return Ok(());
            }
        }
    }

    async fn serve_request(
        self: &Arc<Self>,
        mut send: SendStream,
        recv: RecvStream,
    ) -> Result<(), h3::Error> {
        let mut body = RequestBody {
            session: Arc::clone(self),
            recv,
            inbound: Inbound::default(),
            received: Received::default(),
            is_over: false,
        };
        let timeout = self.connection.worker.shared.head_timeout;
        let head = match tokio::time::timeout(timeout, body.head()).await {
            Ok(Ok(head)) => head,
            Ok(Err(fault)) => return body.give_up(&mut send, fault),
            Err(_) => return body.give_up(&mut send, Fault::stream(ErrorCode::H3_REQUEST_INCOMPLETE)),
        };
        let answered = {
            let answer = answer(Arc::clone(&self.connection), head, &mut body);
            let stopped = send.stopped();
            tokio::select! {
                answered = answer => answered,
                // The client has given up, or is gone.
                _ = stopped => Err(Cut::Close),
            }
        };
        let sent = match answered {
            Ok(response) => respond(&mut send, response).await,
            Err(_) => Err(Fault::stream(ErrorCode(H3_INTERNAL_ERROR))),
        };
        match sent {
            Ok(()) => Ok(()),
            Err(fault) => {
                let fault = body.received.fault.take().unwrap_or(fault);
                body.give_up(&mut send, fault)
            }
        }
    }
}

/// Why a request is not served to its end.
#[derive(Clone, Copy)]
enum Fault {
    /// The client broke a rule.
    Rule(RequestError),
    /// The stream is of no further use, on either side.
    Gone,
}

impl Fault {
    const fn stream(code: ErrorCode) -> Self {
        Self::Rule(RequestError::Stream { code, text: "" })
    }
}

/// A request's stream.
struct RequestBody {
    session: Arc<Session>,
    recv: RecvStream,
    inbound: Inbound,
    received: Received,
    is_over: bool,
}

/// What has come of a request and is not used yet.
#[derive(Default)]
struct Received {
    /// What is being decoded; pieces of the body are parts of it.
    chunk: Bytes,
    head: Option<Result<Parts, Fault>>,
    body: VecDeque<Bytes>,
    fault: Option<Fault>,
}

impl RequestSink for Received {
    fn head(&mut self, head: &RequestHead) {
        self.head = Some(parts_of(head).ok_or_else(|| Fault::stream(ErrorCode::H3_MESSAGE_ERROR)));
    }

    fn data(&mut self, bytes: &[u8]) {
        self.body.push_back(self.chunk.slice_ref(bytes));
    }
}

impl RequestBody {
    async fn head(&mut self) -> Result<Parts, Fault> {
        loop {
            if let Some(head) = self.received.head.take() {
                return head;
            }
            self.read().await?;
        }
    }

    /// Reads some more, or the end.
    async fn read(&mut self) -> Result<(), Fault> {
        let chunk = self.recv.read_chunk(usize::MAX, true).await.map_err(|_| Fault::Gone)?;
        self.is_over = chunk.is_none();
        self.received.chunk = chunk.map_or_else(Bytes::new, |chunk| chunk.bytes);
        let chunk = self.received.chunk.clone();
        let mut sections = self.session.sections.lock().unwrap_or_else(PoisonError::into_inner);
        let decoded = self.inbound.decode(&mut sections, (&chunk, self.is_over), &mut self.received);
        decoded.map_err(Fault::Rule)
    }

    /// The response will not come, or not whole.
    fn give_up(mut self, send: &mut SendStream, fault: Fault) -> Result<(), h3::Error> {
        let (why, result) = match fault {
            Fault::Rule(RequestError::Connection(error)) => (error.code, Err(error)),
            Fault::Rule(RequestError::Stream { code, .. }) => (code, Ok(())),
            Fault::Gone => (ErrorCode::H3_REQUEST_CANCELLED, Ok(())),
        };
        // Either may have ended already.
        self.recv.stop(code(why)).ok();
        send.reset(code(why)).ok();
        result
    }
}

impl Upload for &mut RequestBody {
    fn is_end(&self) -> bool {
        self.is_over && self.received.body.is_empty()
    }

    async fn next(&mut self) -> Option<Result<Bytes, Cut>> {
        loop {
            if let Some(bytes) = self.received.body.pop_front() {
                return Some(Ok(bytes));
            }
            if self.is_over {
                return None;
            }
            if let Err(fault) = self.read().await {
                self.received.fault = Some(fault);
                return Some(Err(Cut::Close));
            }
        }
    }
}

/// The head as routes see it; `None`: it has what no URI or header has.
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
    for field in head.fields() {
        let name = HeaderName::from_bytes(field.name).ok()?;
        request.headers_mut().append(name, HeaderValue::from_bytes(field.value).ok()?);
    }
    Some(request.into_parts().0)
}

/// Sends a response to its end. A short body leaves with its head.
async fn respond(send: &mut SendStream, response: Response<ReplyBody>) -> Result<(), Fault> {
    let (head, body) = response.into_parts();
    let mut body = std::pin::pin!(body);
    let mut data_left = body.size_hint().exact().unwrap_or_default();
    let mut out = Vec::with_capacity(256);
    put_head(head.status, head.headers, data_left, &mut out);
    if data_left > 0 {
        server::put_data_head(data_left, &mut out);
    }
    while let Some(data) = next_piece(send, body.as_mut(), &mut out).await? {
        if data_left == 0 && !data.is_empty() {
            server::put_data_head(data.len() as u64, &mut out);
        }
        data_left = data_left.saturating_sub(data.len() as u64);
        if out.len() + data.len() <= limits::COPIED_BYTES_MAX && body.is_end_stream() {
            out.extend_from_slice(&data);
            break;
        }
        let mut chunks = [Bytes::from(std::mem::take(&mut out)), data];
        send.write_all_chunks(&mut chunks).await.map_err(|_| Fault::Gone)?;
    }
    flush(send, &mut out).await?;
    send.finish().map_err(|_| Fault::Gone)
}

/// The next piece of a body. What waits to be sent does not wait for it.
async fn next_piece(
    send: &mut SendStream,
    mut body: Pin<&mut ReplyBody>,
    out: &mut Vec<u8>,
) -> Result<Option<Bytes>, Fault> {
    let frame = match std::future::poll_fn(|cx| Poll::Ready(body.as_mut().poll_frame(cx))).await {
        Poll::Ready(frame) => frame,
        Poll::Pending => {
            flush(send, out).await?;
            std::future::poll_fn(|cx| body.as_mut().poll_frame(cx)).await
        }
    };
    let Some(frame) = frame else { return Ok(None) };
    let frame = frame.map_err(|_| Fault::stream(ErrorCode(H3_INTERNAL_ERROR)))?;
    Ok(Some(frame.into_data().unwrap_or_default()))
}

async fn flush(send: &mut SendStream, out: &mut Vec<u8>) -> Result<(), Fault> {
    send.write_all(out).await.map_err(|_| Fault::Gone)?;
    out.clear();
    Ok(())
}

fn put_head(status: StatusCode, mut headers: HeaderMap, body_bytes: u64, out: &mut Vec<u8>) {
    if body_bytes > 0 && !headers.contains_key(CONTENT_LENGTH) {
        headers.insert(CONTENT_LENGTH, body_bytes.into());
    }
    if let Ok(date) = HeaderValue::from_str(&httpdate::fmt_http_date(SystemTime::now())) {
        headers.entry(DATE).or_insert(date);
    }
    let fields = headers.iter().filter(|(name, _)| !is_of_http1(name));
    server::put_section(
        status.as_u16(),
        fields.map(|(name, value)| (name.as_str().as_bytes(), value.as_bytes())),
        out,
    );
}

/// RFC 9114 4.2.
fn is_of_http1(name: &HeaderName) -> bool {
    ["connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade"].contains(&name.as_str())
}

fn code(code: ErrorCode) -> VarInt {
    VarInt::from_u64(code.0).unwrap_or(VarInt::MAX)
}

/// RFC 9114 8.1.
const H3_INTERNAL_ERROR: u64 = 0x102;
