//! A stream of HTTP/3 as bytes in both directions: the body of a request, and that of its response.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use hyper::body::{Body, Frame};
use squall_http3::RequestBody;
use tokio::io::{AsyncRead, AsyncWriteExt, DuplexStream, ReadBuf, ReadHalf, WriteHalf, duplex, split};

use crate::limits;

/// What the client gets.
pub(crate) struct Tunnel {
    read: ReadHalf<DuplexStream>,
    buffer: Box<[u8]>,
}

impl Tunnel {
    /// The server's end of a stream, and the body of the response on it. Who does not read what the client sends makes it wait.
    pub(crate) fn open(body: RequestBody) -> (DuplexStream, Self) {
        let (near, far) = duplex(limits::TUNNEL_BYTES);
        let (read, write) = split(far);
        tokio::spawn(receive(body, write));
        (near, Self { read, buffer: vec![0; limits::TUNNEL_BYTES].into() })
    }

    /// The next piece of the response's body; `None`: it has ended.
    pub(crate) fn poll_data(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        let mut buffer = ReadBuf::new(&mut self.buffer);
        let read: io::Result<()> = ready!(Pin::new(&mut self.read).poll_read(cx, &mut buffer));
        let bytes = Bytes::copy_from_slice(buffer.filled());
        Poll::Ready((read.is_ok() && !bytes.is_empty()).then_some(bytes))
    }
}

/// Hands on what the client sends until it ends, or nobody reads it.
async fn receive(mut body: RequestBody, mut write: WriteHalf<DuplexStream>) {
    while let Some(Ok(frame)) = std::future::poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
        if let Ok(data) = Frame::into_data(frame)
            && write.write_all(&data).await.is_err()
        {
            return;
        }
    }
    // What was sent before is read before the end.
    write.shutdown().await.ok();
}
