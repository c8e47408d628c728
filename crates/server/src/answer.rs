//! How a request becomes a response, whatever version of HTTP it came in.

use std::{pin::Pin, sync::Arc, time::Duration};

use bytes::Bytes;
use hyper::{
    HeaderMap, Method, Response, StatusCode, Version,
    body::{Body, Frame},
    header::CONTENT_LENGTH,
    http::request::Parts,
    upgrade::OnUpgrade,
};

use squall_http3::RequestBody;

use crate::{
    body::{ReplyBody, Source},
    call::{Call, Received},
    connection::{Connection, Cut, Ticket},
    limits,
    pause::pause,
    reply::{Fate, Refusal, Reply},
    routes::{self, Intake},
    tunnel::Tunnel,
    websocket,
};

/// Answers a request of any version.
pub(crate) async fn answer(
    connection: Arc<Connection>,
    mut head: Parts,
    body: impl Body<Data = Bytes> + Unpin + Send,
) -> Result<Response<ReplyBody>, Cut> {
    let ticket = Ticket::new(Arc::clone(&connection), &head);
    let reply = match routes::find(&head) {
        Ok((route, args)) => {
            let received = receive(&connection, body, route.intake).await?;
            let shared = &*connection.worker.shared;
            received.and_then(|body| {
                (route.handler)(&Call { head: &head, args, body, peer: connection.peer, shared })
            })
        }
        Err(refusal) => receive(&connection, body, Intake::Count).await?.and(Err(refusal)),
    };
    let reply = reply.unwrap_or_else(Reply::from);
    if reply.delay > Duration::ZERO {
        pause(reply.delay).await;
    }
    send(&mut head, reply, ticket).await
}

/// Answers an extended CONNECT of HTTP/3 (RFC 9220), whose body goes on for as long as the stream.
pub(crate) async fn answer_connect(
    connection: Arc<Connection>,
    mut head: Parts,
    body: RequestBody,
) -> Result<Response<ReplyBody>, Cut> {
    let ticket = Ticket::new(Arc::clone(&connection), &head);
    let shared = &*connection.worker.shared;
    let reply = routes::find(&head).and_then(|(route, args)| {
        let body = Received::default();
        (route.handler)(&Call { head: &head, args, body, peer: connection.peer, shared })
    });
    let mut reply = reply.unwrap_or_else(Reply::from);
    let Some(session) = reply.upgrade.take() else { return send(&mut head, reply, ticket).await };
    let (io, tunnel) = Tunnel::open(body);
    let mut ticket = ticket;
    ticket.status = reply.status.as_u16();
    tokio::spawn(websocket::serve(io, *session, ticket));
    Ok(response(reply.status, reply.headers, ReplyBody::tunnel(tunnel)))
}

/// Reads the whole body, so that the connection can be used again. A broken body ends the connection.
async fn receive(
    connection: &Connection,
    mut body: impl Body<Data = Bytes> + Unpin,
    intake: Intake,
) -> Result<Result<Received, Refusal>, Cut> {
    if body.is_end_stream() {
        return Ok(Ok(Received::default()));
    }
    let mut kept = Vec::new();
    let mut length = 0;
    while let Some(data) = next_data(&mut body).await {
        let data = data?;
        length += data.len() as u64;
        connection.worker.counters().body_bytes_received.add(data.len() as u64);
        if intake == Intake::Keep && length <= limits::ECHO_BYTES_MAX {
            kept.extend_from_slice(&data);
        }
    }
    Ok(received(intake, length, kept.into()))
}

fn received(intake: Intake, length: u64, bytes: Bytes) -> Result<Received, Refusal> {
    if intake == Intake::Keep && length > limits::ECHO_BYTES_MAX {
        let limit = limits::ECHO_BYTES_MAX;
        let message = format!(
            "this route echoes at most {limit} body bytes, but the request has {length}; use /upload"
        );
        return Err(Refusal::new(message).with_status(StatusCode::PAYLOAD_TOO_LARGE));
    }
    Ok(Received { length, bytes })
}

async fn send(head: &mut Parts, reply: Reply, mut ticket: Ticket) -> Result<Response<ReplyBody>, Cut> {
    match reply.fate {
        Fate::Answer => {}
        Fate::Hang => std::future::pending().await, // until the client gives up, or the server stops
        Fate::Cut(cut) => return Err(ticket.cut(cut)),
    }
    ticket.status = reply.status.as_u16();
    if let Some(session) = reply.upgrade
        && let Some(upgrade) = head.extensions.remove::<OnUpgrade>()
    {
        tokio::spawn(websocket::serve_upgraded(upgrade, *session, ticket));
        return Ok(response(reply.status, reply.headers, ReplyBody::none()));
    }
    let is_bodiless = head.method == Method::HEAD
        || matches!(reply.status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED);
    ticket.is_complete = is_bodiless;
    let Reply { status, mut headers, mut source, .. } = reply;
    // In HTTP/1.1, hyper sends no body in these cases, and so never asks for it; later versions would get it.
    if is_bodiless && head.version > Version::HTTP_11 {
        let body_bytes = source.left().filter(|_| head.method == Method::HEAD);
        if let Some(bytes) = body_bytes.filter(|_| !headers.contains_key(CONTENT_LENGTH)) {
            headers.insert(CONTENT_LENGTH, bytes.into());
        }
        source = Source::Whole(Bytes::new());
    }
    Ok(response(status, headers, ReplyBody::new(source, ticket)))
}

fn response(status: StatusCode, headers: HeaderMap, body: ReplyBody) -> Response<ReplyBody> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    response
}

/// The next piece of a body; `None`: it is whole.
async fn next_data(body: &mut (impl Body<Data = Bytes> + Unpin)) -> Option<Result<Bytes, Cut>> {
    loop {
        let frame = std::future::poll_fn(|cx| Pin::new(&mut *body).poll_frame(cx)).await?;
        match frame.map(Frame::into_data) {
            Ok(Ok(data)) => return Some(Ok(data)),
            Ok(Err(_)) => {} // trailers
            Err(_) => return Some(Err(Cut::Close)),
        }
    }
}
