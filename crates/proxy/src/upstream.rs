//! Connections to the servers behind the proxy: for each connection of a client its own to each server it speaks to, and of the same
//! version where the server has it.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};

use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper::header::{HOST, HeaderValue};
use hyper::{Request, Response, Uri, Version};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use squall_traffic::Scheme;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::body::Carried;

/// Where a request goes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Server {
    pub(crate) scheme: Scheme,
    /// Host and port as in URLs.
    pub(crate) authority: String,
}

/// The connections of one client connection.
pub(crate) struct Upstream {
    tls: ClientTls,
    /// Hosts that may be reached on addresses of the link; `None`: no address is refused.
    named: Option<Vec<String>>,
    open: Mutex<HashMap<Server, Vec<Sender>>>,
}

/// How servers are spoken to over TLS.
#[derive(Clone, Debug)]
pub(crate) struct ClientTls {
    http1: Arc<ClientConfig>,
    /// Offers HTTP/2 by ALPN.
    http2: Arc<ClientConfig>,
}

/// What is asked of a connection: what the client speaks, the server is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// HTTP/1.1.
    Http1,
    /// HTTP/2 where the server agrees by ALPN.
    Http2,
    /// HTTP/2, without TLS as well: the client, too, did not ask first.
    Http2Plain,
}

enum Sender {
    Http1(http1::SendRequest<Carried>),
    Http2(http2::SendRequest<Carried>),
}

impl ClientTls {
    pub(crate) fn new(config: ClientConfig) -> Self {
        let mut http2 = config.clone();
        http2.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Self { http1: Arc::new(config), http2: Arc::new(http2) }
    }
}

impl Server {
    /// Host without brackets, and port.
    fn host_and_port(&self) -> (&str, u16) {
        let default = if self.scheme == Scheme::Https { 443 } else { 80 };
        let is_port = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let (host, port) = match self.authority.rsplit_once(':').filter(|(_, port)| is_port(port)) {
            Some((host, port)) => (host, port.parse().unwrap_or(default)),
            None => (self.authority.as_str(), default),
        };
        (host.trim_matches(['[', ']']), port)
    }
}

impl Upstream {
    pub(crate) fn new(tls: ClientTls, named: Option<Vec<String>>) -> Self {
        Self { tls, named, open: Mutex::default() }
    }

    /// Sends a request; a new connection is opened where there is none that is ready.
    pub(crate) async fn send(
        &self,
        server: &Server,
        wanted: Wanted,
        request: Request<Carried>,
    ) -> Result<Response<Incoming>, String> {
        let mut sender = match self.ready(server) {
            Some(sender) => sender,
            None => self.connect(server, wanted).await?,
        };
        let request = suited(request, server, matches!(sender, Sender::Http2(_)))?;
        let response = match &mut sender {
            Sender::Http1(sender) => sender.send_request(request).await,
            Sender::Http2(sender) => sender.send_request(request).await,
        };
        let response = response.map_err(|error| explain(&error))?;
        if let Sender::Http1(_) = sender {
            self.keep(server, sender);
        }
        Ok(response)
    }

    /// Sends a request that asks for another protocol, on a separate connection.
    pub(crate) async fn send_upgrade(
        &self,
        server: &Server,
        request: Request<Carried>,
    ) -> Result<Response<Incoming>, String> {
        let Sender::Http1(mut sender) = self.connect(server, Wanted::Http1).await? else {
            return Err("the server speaks HTTP/2 alone".to_owned());
        };
        let request = suited(request, server, false)?;
        sender.send_request(request).await.map_err(|error| explain(&error))
    }

    /// A connection on which a request can begin at once.
    fn ready(&self, server: &Server) -> Option<Sender> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let senders = open.get_mut(server)?;
        senders.retain(|sender| match sender {
            Sender::Http1(sender) => !sender.is_closed(),
            Sender::Http2(sender) => !sender.is_closed(),
        });
        let at = senders.iter().position(|sender| match sender {
            Sender::Http1(sender) => sender.is_ready(),
            Sender::Http2(_) => true,
        })?;
        match &senders[at] {
            Sender::Http2(sender) => Some(Sender::Http2(sender.clone())),
            Sender::Http1(_) => Some(senders.swap_remove(at)),
        }
    }

    fn keep(&self, server: &Server, sender: Sender) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.entry(server.clone()).or_default().push(sender);
    }

    async fn connect(&self, server: &Server, wanted: Wanted) -> Result<Sender, String> {
        let (host, port) = server.host_and_port();
        let cannot = |error: &dyn std::fmt::Display| format!("cannot connect to {host}:{port}: {error}");
        let found = tokio::net::lookup_host((host, port)).await.map_err(|error| cannot(&error))?;
        let mut addresses: Vec<SocketAddr> = found.collect();
        if self.named.as_ref().is_some_and(|named| !named.iter().any(|name| name == host)) {
            addresses.retain(|address| !is_of_link(address.ip()));
            if addresses.is_empty() {
                return Err(format!(
                    "{host} has a link-local address or that of a cloud's metadata service: `--only-host {host}` allows it"
                ));
            }
        }
        let stream = TcpStream::connect(&addresses[..]).await.map_err(|error| cannot(&error))?;
        let _ = stream.set_nodelay(true);
        if server.scheme == Scheme::Http {
            return match wanted {
                Wanted::Http2Plain => self.begin_http2(server, stream).await,
                Wanted::Http1 | Wanted::Http2 => begin_http1(stream).await,
            };
        }
        let name = ServerName::try_from(host.to_owned()).map_err(|error| cannot(&error))?;
        let config = if wanted == Wanted::Http1 { &self.tls.http1 } else { &self.tls.http2 };
        let connector = TlsConnector::from(Arc::clone(config));
        let stream = connector.connect(name, stream).await.map_err(|error| cannot(&error))?;
        match stream.get_ref().1.alpn_protocol() {
            Some(b"h2") => self.begin_http2(server, stream).await,
            _ => begin_http1(stream).await,
        }
    }

    /// One connection carries all that follows.
    async fn begin_http2<S: Stream>(&self, server: &Server, stream: S) -> Result<Sender, String> {
        let started = http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await;
        let (sender, connection) = started.map_err(|error| explain(&error))?;
        tokio::spawn(async move { drop(connection.await) });
        self.keep(server, Sender::Http2(sender.clone()));
        Ok(Sender::Http2(sender))
    }
}

/// Whether an address is link-local, or one where clouds give a machine's credentials to any process on it.
fn is_of_link(ip: IpAddr) -> bool {
    match ip.to_canonical() {
        IpAddr::V4(ip) => ip.is_link_local() || METADATA_V4.contains(&ip),
        IpAddr::V6(ip) => ip.is_unicast_link_local() || METADATA_V6.contains(&ip),
    }
}

/// Alibaba Cloud's and Oracle Cloud's; those of others are link-local.
const METADATA_V4: [Ipv4Addr; 2] = [Ipv4Addr::new(100, 100, 100, 200), Ipv4Addr::new(192, 0, 0, 192)];

/// Amazon's and Google's.
const METADATA_V6: [Ipv6Addr; 2] =
    [Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254), Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254)];

/// What HTTP can be spoken on.
trait Stream: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static {}

impl<S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static> Stream for S {}

async fn begin_http1<S: Stream>(stream: S) -> Result<Sender, String> {
    let started = http1::Builder::new().preserve_header_case(true).handshake(TokioIo::new(stream)).await;
    let (mut sender, connection) = started.map_err(|error| explain(&error))?;
    // It ends with the server's close, or when the sender is dropped.
    tokio::spawn(async move { drop(connection.with_upgrades().await) });
    sender.ready().await.map_err(|error| explain(&error))?;
    Ok(Sender::Http1(sender))
}

/// The request as this version wants it: RFC 9112 3.2, RFC 9113 8.3.1.
fn suited(request: Request<Carried>, server: &Server, is_http2: bool) -> Result<Request<Carried>, String> {
    let (mut parts, body) = request.into_parts();
    let path = parts.uri.path_and_query().map_or("/", |path| path.as_str());
    let uri = match is_http2 {
        true => format!("{}://{}{path}", server.scheme.text(), server.authority),
        false => path.to_owned(),
    };
    parts.uri = uri.parse::<Uri>().map_err(|error| error.to_string())?;
    if is_http2 {
        parts.version = Version::HTTP_2;
        parts.headers.remove(HOST);
    } else {
        parts.version = Version::HTTP_11;
        let host = HeaderValue::from_str(&server.authority).map_err(|error| error.to_string())?;
        parts.headers.insert(HOST, host);
    }
    Ok(Request::from_parts(parts, body))
}

fn explain(error: &hyper::Error) -> String {
    use std::error::Error;
    error.source().map_or_else(|| error.to_string(), |source| format!("{error}: {source}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_the_link_and_of_metadata_services_are_known() {
        for (ip, is_known) in [
            ("169.254.169.254", true),
            ("169.254.1.1", true),
            ("::ffff:169.254.169.254", true),
            ("fe80::1", true),
            ("fd00:ec2::254", true),
            ("100.100.100.200", true),
            ("127.0.0.1", false),
            ("10.0.0.1", false),
            ("192.168.1.1", false),
            ("::1", false),
            ("fd00::1", false),
        ] {
            assert_eq!(is_of_link(ip.parse().unwrap()), is_known, "{ip}");
        }
    }
}
