//! TLS that clients begin: on a connection, and in a tunnel that they opened with CONNECT.
//!
//! Owns: which name the certificate is for. Never: what is said inside.

use hyper::Request;
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::LazyConfigAcceptor;
use tokio_rustls::server::TlsStream;

use crate::Authority;
use crate::body::Passage;

/// Accepts TLS on a connection. The certificate is for the name that the client asks for, or for the address that it connected to.
pub(crate) async fn accept(authority: &Authority, stream: TcpStream) -> Option<TlsStream<TcpStream>> {
    let address = stream.local_addr().ok()?.ip().to_canonical().to_string();
    accept_for(authority, stream, &address).await
}

/// Accepts TLS in the tunnel to `target` (`host:port`) that this request opens, once it is answered.
pub(crate) async fn accept_in(
    authority: &Authority,
    request: Request<Passage>,
    target: &str,
) -> Option<TlsStream<TokioIo<Upgraded>>> {
    let upgraded = hyper::upgrade::on(request).await.ok()?;
    let host = target.rsplit_once(':').map_or(target, |(host, _)| host);
    accept_for(authority, TokioIo::new(upgraded), host.trim_matches(['[', ']'])).await
}

async fn accept_for<S>(authority: &Authority, stream: S, default_name: &str) -> Option<TlsStream<S>>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let started = LazyConfigAcceptor::new(rustls::server::Acceptor::default(), stream).await.ok()?;
    let name = started.client_hello().server_name().unwrap_or(default_name).to_owned();
    started.into_stream(authority.config_for(&name).ok()?).await.ok()
}
