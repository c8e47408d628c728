//! What goes on a request's stream: the head of its response, the body and the trailers.

use std::pin::Pin;
use std::task::Poll;
use std::time::SystemTime;

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, DATE, HeaderName, HeaderValue};
use http::{HeaderMap, Response, StatusCode};
use http_body::{Body, Frame};
use quinn::SendStream;
use squall_wire::ErrorCode;
use squall_wire::h3::server;

use crate::limits;
use crate::request::RequestFault;

/// Sends a response to its end. A short body leaves with its head.
pub(crate) async fn respond<B: Body<Data = Bytes>>(
    send: &mut SendStream,
    response: Response<B>,
) -> Result<(), RequestFault> {
    let (head, body) = response.into_parts();
    let mut body = std::pin::pin!(body);
    let mut data_left = body.size_hint().exact().unwrap_or_default();
    let mut out = Vec::with_capacity(256);
    put_head(head.status, head.headers, data_left, &mut out);
    if data_left > 0 {
        server::put_data_head(data_left, &mut out);
    }
    while let Some(frame) = next_frame(send, body.as_mut(), &mut out).await? {
        let data = match frame.into_data() {
            Ok(data) => data,
            Err(frame) => {
                let trailers = frame.trailers_ref();
                trailers.into_iter().for_each(|trailers| put_fields(0, trailers, &mut out));
                break;
            }
        };
        if data_left == 0 && !data.is_empty() {
            server::put_data_head(data.len() as u64, &mut out);
        }
        data_left = data_left.saturating_sub(data.len() as u64);
        if out.len() + data.len() <= limits::COPIED_BYTES_MAX && body.is_end_stream() {
            out.extend_from_slice(&data);
            break;
        }
        let mut chunks = [Bytes::from(std::mem::take(&mut out)), data];
        send.write_all_chunks(&mut chunks).await.map_err(|_| RequestFault::Gone)?;
    }
    flush(send, &mut out).await?;
    send.finish().map_err(|_| RequestFault::Gone)
}

/// The next piece of a body. What waits to be sent does not wait for it.
async fn next_frame<B: Body<Data = Bytes>>(
    send: &mut SendStream,
    mut body: Pin<&mut B>,
    out: &mut Vec<u8>,
) -> Result<Option<Frame<Bytes>>, RequestFault> {
    let frame = match std::future::poll_fn(|context| Poll::Ready(body.as_mut().poll_frame(context))).await {
        Poll::Ready(frame) => frame,
        Poll::Pending => {
            flush(send, out).await?;
            std::future::poll_fn(|context| body.as_mut().poll_frame(context)).await
        }
    };
    frame.transpose().map_err(|_| RequestFault::stream(ErrorCode(H3_INTERNAL_ERROR)))
}

async fn flush(send: &mut SendStream, out: &mut Vec<u8>) -> Result<(), RequestFault> {
    send.write_all(out).await.map_err(|_| RequestFault::Gone)?;
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
    put_fields(status.as_u16(), &headers, out);
}

fn put_fields(status: u16, headers: &HeaderMap, out: &mut Vec<u8>) {
    let fields = headers.iter().filter(|(name, _)| !is_of_http1(name));
    let fields = fields.map(|(name, value)| (name.as_str().as_bytes(), value.as_bytes()));
    server::put_section(status, fields, out);
}

/// RFC 9114 4.2.
fn is_of_http1(name: &HeaderName) -> bool {
    ["connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade"].contains(&name.as_str())
}

/// RFC 9114 8.1.
pub(crate) const H3_INTERNAL_ERROR: u64 = 0x102;
